"""Whether eager comes to the same again: on other inputs, with other random numbers, later on."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import torch

from dynamometer.common.checking.alteration import Alteration, left_alone
from dynamometer.common.checking.looking import Call, Look, make_call
from dynamometer.common.checking.snapshots import attributes_of, numbers_of, written
from dynamometer.common.interfaces.outcome import (
    NondeterministicError,
    SkippedError,
    error_text,
    is_out_of_memory,
)
from dynamometer.dynamo.accuracy.accuracy import Comparison, is_result
from dynamometer.dynamo.accuracy.agreement import differ, wanders
from dynamometer.dynamo.accuracy.expected import are_identical
from dynamometer.dynamo.accuracy.numbers import is_all_nan
from dynamometer.results.values.cases import BASELINE, Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from dynamometer.common.checking.looking import Settings
    from dynamometer.common.checking.runs import Runs
    from dynamometer.common.checking.snapshots import Snapshot
    from dynamometer.common.checking.steps import Step
    from dynamometer.dynamo.accuracy.leaves import Leaves

    Fresh = Callable[[], tuple[Step, Snapshot]]

BY_FAR = 10.0
"""Tolerances that two results must differ by for one not to pass for the other."""


def first_two_calls(
    own: Step, start: Snapshot, settings: Settings
) -> tuple[dict[Call, Look], tuple[str, ...], Settings]:
    """Make eager's first call, and the second that goes on from there.

    Args:
        own: a step of eager on a copy of the model, which it changes.
        start: the state that it begins with.
        settings: of the calls.

    Returns:
        What they came to, the plain attributes that they write to, and the settings of further
        calls. In training the second call goes on from the buffers of the first if it gives
        something else there, or where there is more state than buffers, which can't be put back;
        else both are mostly the very same, and begin alike.
    """
    attributes, numbers = attributes_of(own.loaded), numbers_of(own.loaded)
    found = dict[Call, Look]()
    changed = dict[str, None]()
    for call in (Call.FIRST, Call.SECOND):
        found[call] = make_call(own, start, call, settings)
        changed |= dict.fromkeys(written(attributes, attributes_of(own.loaded)))
    keeps_more = bool(changed) or numbers != numbers_of(own.loaded)
    gives_like = found[Call.FIRST].gives_like(found[Call.SECOND])
    if own.mode is Mode.TRAINING and gives_like and not keeps_more:
        settings = replace(settings, goes_on=False)
        found[Call.SECOND] = make_call(own, start, Call.SECOND, settings)
    return found, tuple(changed), settings


def call_that_adds(own: Step, start: Snapshot, settings: Settings) -> Look | None:
    """Make a call of eager that adds its gradients to others; `None` where it can't.

    Mostly it adds what the first gives, but hooks may clip that, and four times that may overflow.
    """
    if own.mode is Mode.INFERENCE:
        return None
    try:
        return make_call(own, start, Call.ADDING, settings)
    except Exception:  # noqa: BLE001  a hook may raise whatever it likes
        return None


def on_other_inputs(
    fresh: Fresh,
    called: list[tuple[Step, Snapshot]],
    first: Leaves,
    settings: Settings,
) -> tuple[Look, tuple[str, ...], Settings] | None:
    """Make eager's call on other inputs, as many of them others as it takes.

    Args:
        fresh: gives a step on a copy of the model, and the state that it begins with.
        called: one that has been called, as an arm has by then, and the state it began with; taken
            out, so that nobody keeps it while there are others.
        first: what the first call came to.
        settings: of the first call.

    Returns:
        What it came to, which inputs have no other values and which results none in part, and the
        settings with what was altered; `None` where eager fails on all of them, or gives nothing
        but NaN in place of a result. Those that give the fewest NaN are kept.
    """
    fewest, best, before = math.inf, None, _nan_counts(first)
    not_finite = _not_finite_counts(first)
    overlaps = (True, False) if settings.overlapping else (False,)
    for alteration, overlapping in product(Alteration, overlaps):
        altered = replace(settings, alteration=alteration, overlapping=overlapping)
        try:
            own, start = called.pop() if called else _called(fresh, settings)[:2]
            found = make_call(own, start, Call.ALTERED, altered)
        except Exception:  # noqa: BLE001, S112  not every model takes any inputs
            continue
        start.restore()
        # Where other results overflow than did, larger numbers are no inputs of this model.
        if alteration is Alteration.BEYOND and _not_finite_counts(found.found) != not_finite:
            continue
        lost = _nan_counts(found.found) - before
        if any(is_all_nan(found.found[path].value) for path in lost):
            continue
        if lost.total() < fewest:
            named = (f"{path} where it is NaN on other inputs" for path in lost)
            best = (found, (*left_alone(own.loaded, alteration), *named), altered)
            fewest = lost.total()
        if not lost:
            break
    return best


def after_one_call_more(fresh: Fresh, settings: Settings) -> Look:
    """Make the call on other inputs behind two calls: a model that alternates differs there."""
    (own, start), calls = fresh(), (Call.FIRST, Call.SECOND, Call.ALTERED)
    *_, found = (make_call(own, start, call, settings) for call in calls)
    return found


def _called(fresh: Fresh, settings: Settings) -> tuple[Step, Snapshot, Look]:
    own, start = fresh()
    return own, start, make_call(own, start, Call.FIRST, settings)


DIFFER = "two eager runs from one seed differ at {}"


_MOVED = (
    "it can't be judged: eager computes something else by now than before the arms were there; run "
    "it without those before it"
)
_WANDERS = "it can't be judged: eager computes something else by now, which is no arm's doing"
_ROUNDS_OTHERWISE = "what rounding does: since the arms are there eager rounds otherwise"


@dataclass(frozen=True)
class FurtherRuns:
    """Eager's further runs, as far as there are any.

    Attributes:
        made: gives those that were made; `None` before.
        announced: the context of runs that are made while an arm is judged.
    """

    made: Callable[[], Runs | None]
    announced: Callable[[], AbstractContextManager[None]]


class Constancy:
    """Whether eager still computes what it did before any arm was there.

    A runtime may have put kernels or settings of its own in the place of torch's. Runs of eager
    that are made from then on would take for rounding what these do.

    Attributes:
        moved_by: the first arm behind which it came to something else.
        doubts: what can't be told of later arms, as it fails or rounds otherwise by now.
    """

    def __init__(
        self,
        fresh: Fresh,
        eager: Mapping[Call, Leaves],
        settings: Settings,
        further: FurtherRuns,
        *,
        repeats: bool,
        is_repeated: bool,
    ) -> None:
        """Take what eager came to.

        Args:
            fresh: gives a step on a copy of the model, and the state that it begins with.
            eager: what its calls came to before any arm was there, in the order in which arms make
                them.
            settings: of the calls.
            further: what it may come to when it rounds otherwise.
            repeats: whether another copy came to the very same, if there was one.
            is_repeated: whether there was.
        """
        self._fresh, self._eager = fresh, eager
        self._settings, self._further = settings, further
        self._repeats, self._is_repeated = repeats, is_repeated
        self.moved_by: str | None = None
        self.doubts: tuple[str, ...] = ()
        self._moved: str | None = None

    @property
    def has_moved(self) -> bool:
        """Whether it came to something else when it was last asked."""
        return self._moved is not None

    def ask(self) -> Comparison | None:
        """Make eager's calls again; return how they differ, if by more than rounding.

        Raises:
            NondeterministicError: copies differ, whatever arms do.
            SkippedError: eager already differed when it was last asked.
        """
        runs = self._further.made()
        if runs is None and not self._repeats:
            return None
        with self._further.announced():
            found = self._once_more(runs)
        self.doubts = found.unchecked
        if found.mismatch and self.has_moved:
            raise SkippedError(_WANDERS if self.moved_by == BASELINE else _MOVED)
        self._moved = found.mismatch
        return found if found.mismatch else None

    def blame(self, arm: str, *, asks: bool = True) -> str | None:
        """Ask behind an arm; if eager differs since then, keep its name, and say where.

        Args:
            arm: its name.
            asks: whether it may have changed what eager computes; else that only counts if it was
                seen while the arm was judged.

        Raises:
            NondeterministicError: copies differ, whatever arms do.
        """
        if self.moved_by:
            return None
        if asks and not self._moved:
            self.ask()
        if self._moved is not None:
            self.moved_by = arm
        return self._moved

    def _once_more(self, runs: Runs | None) -> Comparison:
        is_same, found = True, Comparison()
        try:
            for call, now in self._calls_by_now():
                found = self._compared(call, now, runs)
                if found.may_be_rounding and not self._comes_again(call, now):
                    found = Comparison()  # each run rounds otherwise
                elif self._repeats:
                    is_same &= are_identical(self._eager[call], now)
                if found.mismatch:
                    break
        except Exception as error:  # noqa: BLE001  whatever a model raises; it is said
            if runs is None or is_out_of_memory(error):
                why = "eager fails since the arms are there"
                return Comparison(unchecked=(f"what rounding does: {why}",))
            what = (
                f"since the arms are there eager fails: {type(error).__name__}: {error_text(error)}"
            )
            return Comparison(math.inf, what)
        if found.mismatch:
            where = found.mismatch.partition(": ")[0]
            if not self._is_repeated and do_copies_differ(self._fresh, self._settings):
                raise NondeterministicError(DIFFER.format(where))
            return Comparison(math.inf, f"{where}: since the arms are there eager differs")
        return Comparison(unchecked=() if is_same else (_ROUNDS_OTHERWISE,))

    def _calls_by_now(self) -> Iterator[tuple[Call, Leaves]]:
        own, start = self._fresh()
        for call in self._eager:
            yield call, make_call(own, start, call, self._settings).found

    def _comes_again(self, wanted: Call, now: Leaves) -> bool:
        """Return whether a call comes to the very same in one more copy."""
        again = next(found for call, found in self._calls_by_now() if call is wanted)
        return are_identical(now, again)

    def _compared(self, call: Call, now: Leaves, runs: Runs | None) -> Comparison:
        """Compare a call with what it came to before: it is judged as an arm's is."""
        before, tolerance = self._eager[call], self._settings.tolerance
        if are_identical(before, now):
            return Comparison()
        if runs is not None and self._repeats:
            return runs.compare(call, now)
        if runs is not None:  # of its call on other inputs nobody knows how far it wanders
            is_known = call is not Call.ALTERED and runs.compare(call, now).mismatch
            where = wanders(runs.expected[call], now, tolerance) if is_known else None
            return Comparison(mismatch=where)
        for path, leaf in before.items():
            # A gradient may be zero but for rounding, and then differs from itself by all it is.
            if is_result(path) and differ({path: leaf}, now, BY_FAR * tolerance):
                return Comparison(mismatch=path)
        return Comparison()


def do_copies_differ(fresh: Fresh, settings: Settings) -> bool:
    """Return whether two copies of a model differ, each of which repeats itself.

    What an arm has done to torch shows in both; if it is unsteady, a copy doesn't repeat itself, or
    fails: one ran before the arms were there.

    Raises:
        Exception: there was no memory for a copy, which says nothing of it.
    """

    def results_if_repeated() -> Leaves | None:
        own, start, first = _called(fresh, settings)
        if not make_call(own, start, Call.SECOND, settings).is_like(first):
            return None
        return {path: leaf for path, leaf in first.found.items() if is_result(path)}

    try:
        one = results_if_repeated()
        other = None if one is None else results_if_repeated()
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return False
    if one is None or other is None:
        return False
    return differ(one, other, BY_FAR * settings.tolerance)


_SEEDS = 8
"""Further seeds that are tried until one changes a result: few of them may skip no layer."""


NO_DRAWS = f"random numbers: it draws none, {_SEEDS} seeds change nothing"


def do_draws_matter(fresh: Fresh, first: Leaves, settings: Settings) -> bool:
    """Return whether eager's first call comes to something else with other random numbers."""

    def differs(seed: int) -> bool:
        found = make_call(*fresh(), Call.FIRST, replace(settings, seed=seed)).found
        return differ(first, found, settings.tolerance)

    return any(map(differs, range(settings.seed + 1, settings.seed + 1 + _SEEDS)))


def _nan_counts(found: Leaves) -> Counter[str]:
    """Return by path how many elements of a result are NaN."""
    return _counts(found, torch.isnan)


def _not_finite_counts(found: Leaves) -> Counter[str]:
    """Return by path how many elements of a result are NaN or infinite."""
    return _counts(found, lambda values: ~values.isfinite())


def _counts(found: Leaves, counted: Callable[[torch.Tensor], torch.Tensor]) -> Counter[str]:
    return Counter(
        {
            path: int(counted(leaf.value).sum())
            for path, leaf in found.items()
            if isinstance(leaf.value, torch.Tensor)
        }
    )
