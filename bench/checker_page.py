"""The page of `bench/checker.py`: what was noticed, what was missed, who was accused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dynamometer.dynamo.processor import processor_name

if TYPE_CHECKING:
    from spoiling import Spoiling

Entry = Mapping[str, Any]


def page(entries: Sequence[Entry], spoilings: Iterable[Spoiling]) -> str:
    """Write a log as Markdown."""
    mutations = [each for each in entries if each["what"] == "mutation"]
    right = [each for each in entries if each["what"] == "right"]
    left_out = [each for each in entries if each["what"] == "left out"]
    lines = [
        "# What the checker notices",
        "",
        f"Made by `bench/checker.py` on {processor_name()}. Models of the three suites at tiny",
        "scale; eager, spoiled in one way at a time, is held to eager. What counts is decided",
        "beforehand from eager's own values: at least half of the elements that are changed are",
        "changed by more than 0.5 % (float32) or 5 % (bfloat16, amp) of themselves and more than",
        "ten times what eager errs by against float64; of an optimizer's step, that an element of",
        "a weight moves by more than ten roundings more or less; of what is remembered, stale or",
        "drawn, that other inputs, weights or draws change some result so. PyTorch's check is",
        "`same` in `torch/_dynamo/utils.py` on the second iteration, as its harness applies it.",
        "*Missed, but said*: of what was spoiled, or of any result where that is a loss or the",
        "whole step, the pass says that rounding changes it by more than 5 %, or usually takes it",
        "less far from eager's, so that smaller errors don't show.",
    ]
    if mutations:
        lines += ["", "## By kind", "", *_by_kind(mutations, spoilings)]
        lines += ["", "## By precision and mode", "", *_by_precision(mutations)]
        lines += ["", "## Missed by ours", "", *_missed(mutations)]
    if right:
        lines += ["", "## Right arms", "", *_right(right)]
    if left_out:
        lines += ["", "## Left out", "", *_left_out(left_out)]
    return "\n".join(lines) + "\n"


def _by_kind(mutations: Sequence[Entry], spoilings: Iterable[Spoiling]) -> list[str]:
    lines = [
        f"| kind | why it is wrong | {_COUNTS}",
        "|---|---|---|---|---|---|---|",
    ]
    for spoiling in spoilings:
        found = [each for each in mutations if each["spoiling"] == spoiling.name]
        lines.append(f"| {spoiling.name} | {spoiling.why} {_counts(found)}")
    return [*lines, f"| **all** | {_counts(mutations)}"]


_COUNTS = (
    "counted | noticed by ours | missed, but said that it can't be seen | by PyTorch's "
    "| by theirs alone |"
)


def _counts(found: Sequence[Entry]) -> str:
    counted = [each for each in found if each["counted"]]
    judged = [each for each in counted if each["theirs"] is not None]
    ours = sum(bool(each["ours"]) for each in counted)
    theirs = sum(each["theirs"] for each in judged)
    alone = sum(each["theirs"] and not each["ours"] for each in judged)
    said = sum(each["said"] for each in counted if not each["ours"])
    return (
        f"| {len(counted)} | {_share(ours, len(counted))} | {said}"
        f" | {_share(theirs, len(judged))} | {alone} |"
    )


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.1%})" if whole else "-"


def _by_precision(mutations: Sequence[Entry]) -> list[str]:
    lines = [
        f"| mode | precision | {_COUNTS}",
        "|---|---|---|---|---|---|---|",
    ]
    for mode, dtype in _keys(mutations, lambda each: (each["mode"], each["dtype"])):
        found = [each for each in mutations if (each["mode"], each["dtype"]) == (mode, dtype)]
        lines.append(f"| {mode} | {dtype} {_counts(found)}")
    return lines


def _keys(entries: Iterable[Entry], key: Callable[[Entry], Any]) -> list[Any]:
    return list(dict.fromkeys(key(each) for each in entries))


def _missed(mutations: Sequence[Entry]) -> list[str]:
    lines = [
        f"- {_case(each)}: {each['spoiling']}, `{each['target']}`"
        + (" (noticed by PyTorch's)" if each["theirs"] else "")
        + "".join(f"; {said}" for said in each["reservations"])
        for each in mutations
        if each["counted"] and not each["ours"]
    ]
    return lines or ["None."]


def _case(entry: Entry) -> str:
    return f"{entry['suite']}/{entry['model']}, {entry['mode']}, {entry['dtype']}"


def _right(right: Sequence[Entry]) -> list[str]:
    names = ("arm", "shapes", "mode", "dtype")
    judged = [each for each in right if not each["error"]]
    models = _keys(judged, lambda each: f"{each['suite']}/{each['model']}")
    lines = [
        f"Of {len(models)} models: {', '.join(models)}.",
        "",
        "| arm | shapes | mode | precision | judged | accused |",
        "|---|---|---|---|---|---|",
    ]
    for key in _keys(judged, lambda each: tuple(each[name] for name in names)):
        found = [each for each in judged if tuple(each[name] for name in names) == key]
        accused = sum(bool(each["accused"]) for each in found)
        lines.append(f"| {' | '.join(key)} | {len(found)} | {accused} |")
    accusations = [
        f"- {_case(each)}, {each['shapes']}, seed {each['seed']}, {each['arm']}: {each['accused']}"
        for each in judged
        if each["accused"]
    ]
    return [*lines, "", *(accusations or ["None accused."]), *_failures(right)]


def _failures(right: Sequence[Entry]) -> list[str]:
    failures = Counter(f"{each['arm']}: {each['error']}" for each in right if each["error"])
    if not failures:
        return []
    return ["", "Failed, so that there was nothing to judge:", "", *_listed(failures)]


def _left_out(left_out: Sequence[Entry]) -> list[str]:
    return _listed(Counter(f"{_case(each)}: {each['reason']}" for each in left_out))


def _listed(counts: Counter[str]) -> list[str]:
    return [
        f"- {text}" + (f" ({count} times)" if count > 1 else "") for text, count in counts.items()
    ]
