"""In what two sides differ apart from what they found, and whether that lets them be compared."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from dynamometer.results.values.comparison import Condition
from dynamometer.results.values.history import DEVICE_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dynamometer.results.comparison.sides import Side

NOT_THERE = "not there"
_BATCH = "batch_size"

_HARDWARE = "what differs between machines can't be told from what differs between compilers"
_PROTOCOL = "runs are comparable only if they were measured in the same way"
_THREADS = "the number of threads changes every speedup"
_WHY_NOT = {
    "study": "they asked different questions",
    "scale": "models of different scales are different models",
    "matmul precision": "matrices were multiplied in different ways",
    "device": _HARDWARE,
    DEVICE_NAME: _HARDWARE,
    "cpu": _HARDWARE,
    "cpus": _HARDWARE,
    **dict.fromkeys(("threads", "$OMP_NUM_THREADS", "$MKL_NUM_THREADS"), _THREADS),
    "allocator": "the allocator changes every speedup",
    "busy": "one was measured on a machine that was kept busy",
    **dict.fromkeys(
        (
            "arm_budget_s", "min_blocks", "max_blocks", "calls", "discarded_s", "discarded_calls",
            "burst_s", "burst_calls", "sample_s",
        ),
        _PROTOCOL,
    ),
}  # fmt: skip
"""What must be equal, and why. How many replicates there are may differ: intervals tell."""

MUST_BE_EQUAL = _WHY_NOT.keys()
"""Names of conditions without which two runs can't be compared."""

_OF_IDENTITY = {
    "dtype": "results of different dtypes are different results",
    "scale": _WHY_NOT["scale"],
    "device": _WHY_NOT["device"],
}
"""Parts of a case's identity in which nothing may be equal."""


def differences(before: Side, after: Side) -> list[Condition]:
    """Return in what two sides differ; what must be equal comes first.

    Of what only one of them knows nothing is said, unless both are runs.
    """
    found = {each.name: each for each in _of_identity(before, after)}
    if before.conditions and after.conditions:
        for name in dict.fromkeys((*before.conditions, *after.conditions)):
            was, now = (each.conditions.get(name, NOT_THERE) for each in (before, after))
            if name == DEVICE_NAME and NOT_THERE in {was, now}:
                continue  # where all workers crashed it says nothing of the machine
            if was != now and name not in found:
                found[name] = Condition(
                    name=name, before=was, after=now, why_not=_why_not(name, before, after)
                )
    found |= {each.name: each for each in _of_batch_sizes(before, after)}
    return sorted(found.values(), key=lambda each: each.why_not is None)


def _why_not(name: str, before: Side, after: Side) -> str | None:
    """Return why a difference forbids a comparison.

    Runs of which a part has the same scale or device are compared by that part.
    """
    if name in _OF_IDENTITY and before.values(name) & after.values(name):
        return None
    return _WHY_NOT.get(name)


def _of_batch_sizes(before: Side, after: Side) -> Iterator[Condition]:
    """Name batch sizes, of models whose sizes are all others on the other side."""
    known = [each for each in before.known if each in after.known and each != _BATCH]
    was, now = (_sizes_by_case(each, known) for each in (before, after))
    others = [each for each in was if each in now and not was[each] & now[each]]
    if others:
        all_before, all_after = (
            ", ".join(sorted(set().union(*(side[each] for each in others)), key=_by_number))
            for side in (was, now)
        )
        yield Condition(name="batch size", before=all_before, after=all_after)


def _sizes_by_case(side: Side, known: Sequence[str]) -> dict[tuple[str, ...], set[str]]:
    """Return the batch sizes of each case, by what else both sides know of it."""
    found: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for each in side.entries:
        if _BATCH in each.identity and each.passed:  # in files it is 0 of what failed
            found[tuple(each.identity[name] for name in known)].add(each.identity[_BATCH])
    return found


def _by_number(size: str) -> tuple[int, str]:
    return len(size), size


def _of_identity(before: Side, after: Side) -> Iterator[Condition]:
    for name, why in _OF_IDENTITY.items():
        was, now = before.values(name), after.values(name)
        if was and now and not was & now:
            yield Condition(
                name=name, before=", ".join(sorted(was)), after=", ".join(sorted(now)), why_not=why
            )
