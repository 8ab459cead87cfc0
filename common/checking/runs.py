"""Runs of eager that round otherwise: what a call is to come to, and how far rounding takes it."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.common.checking.looking import Call, make_call
from dynamometer.common.checking.snapshots import Snapshot
from dynamometer.dynamo.accuracy.accuracy import (
    Comparison,
    compare,
    do_coarse_runs_count,
    is_result,
)
from dynamometer.dynamo.accuracy.expected import Expected, are_identical

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from dynamometer.common.checking.looking import Settings
    from dynamometer.common.checking.steps import Step
    from dynamometer.dynamo.accuracy.leaves import Leaves

FEWEST_RUNS, MOST_RUNS = 2, 16
"""Of eager with other roundings: before an arm is judged, and before it is accused. Now and then
rounding decides which activation is cut off, or which value is the largest; some of 16 show it."""

COARSE_RUNS = 8
"""Runs of eager that are off by several times as much (`deviation.Multiples.coarse`), before an arm
is accused."""


@dataclass(frozen=True)
class OtherRoundings:
    """Where steps come from that compute what eager does, rounded otherwise.

    Attributes:
        other: gives a step that rounds otherwise, drawn from a seed, and so many times as coarsely,
            to be taken within the context.
        wide: gives one in float64, likewise.
        announced: the context in which any of them is run.
    """

    other: Callable[[int, float], AbstractContextManager[Step]]
    wide: Callable[[], AbstractContextManager[Step]]
    announced: Callable[[], AbstractContextManager[None]] = nullcontext


class Runs:
    """Further runs of eager; more of them are made before an arm is accused.

    Attributes:
        expected: what each call is to come to, as far as these runs show it.
        made: how many came to something.
    """

    def __init__(
        self, eager: Mapping[Call, Leaves], roundings: OtherRoundings, settings: Settings
    ) -> None:
        """Make the first runs, and one in float64.

        Args:
            eager: what each call came to.
            roundings: where the runs come from.
            settings: what they are called with.
        """
        self._calls = tuple(eager)
        self._roundings = roundings
        self._settings = settings
        self._tried = self.made = 0
        self._coarsened: frozenset[Call] = frozenset()
        with roundings.announced():
            truth = self._in_float64()
            runs = [self._another() for _ in range(FEWEST_RUNS)]
        self.expected = {
            call: Expected.of(
                found,
                truth.get(call),
                [run[call] for run in runs if run],
                settings.tolerance,
            )
            for call, found in eager.items()
        }

    def compare(self, call: Call, found: Leaves) -> Comparison:
        """Compare what a call of an arm came to with what it is to come to."""
        settings = self._settings
        return compare(self.expected[call], found, settings.tolerance, settings.multiples)

    def compare_with_many(self, call: Call, found: Leaves) -> Comparison:
        """Compare likewise by as many runs as there are to be before an arm is accused."""
        self._grow()
        judged = self.compare(call, found)
        if not judged.may_be_rounding or not do_coarse_runs_count(
            judged.mismatch or "", self._settings.multiples
        ):
            return judged
        self._coarsen(call)
        return self.compare(call, found)

    def untold(self, call: Call, other: Leaves) -> tuple[str, ...]:
        """Name results of a call in whose place another call's would pass, though they differ.

        As far as the runs tell that were made by now.
        """
        if call not in self.expected:
            return ()
        wanted, settings = self.expected[call].leaves, self._settings

        def would_pass(path: str) -> bool:
            alone, leaf = Expected({path: wanted[path]}), {path: other[path]}
            if are_identical({path: wanted[path].eager}, leaf):
                return False
            return not compare(alone, leaf, settings.tolerance, settings.multiples).mismatch

        results = filter(is_result, wanted)
        return tuple(path for path in results if path in other and would_pass(path))

    def _grow(self) -> None:
        while self._tried < MOST_RUNS:
            with self._roundings.announced():
                run = self._another()
            if run:
                self.expected = {
                    call: expected.with_run(run[call]) for call, expected in self.expected.items()
                }

    def _coarsen(self, call: Call) -> None:
        """Make coarse runs, and keep of them what a call comes to."""
        if call in self._coarsened:
            return
        self._coarsened |= {call}
        for _ in range(COARSE_RUNS):
            with self._roundings.announced():
                run = self._another(self._settings.multiples.coarse)
            if run:
                self.expected[call] = self.expected[call].with_run(run[call], coarse=True)

    def _another(self, times: float = 1.0) -> dict[Call, Leaves]:
        """Run eager with other roundings; nothing where the model refuses the inputs.

        Args:
            times: how many times as coarsely as it rounds.
        """
        self._tried += 1
        with suppress(Exception), self._roundings.other(self._tried, times) as step:
            found = self._take_calls(step)
            self.made += 1
            return found
        return {}

    def _take_calls(self, step: Step) -> dict[Call, Leaves]:
        start = Snapshot.of(step.loaded)
        return {call: make_call(step, start, call, self._settings).found for call in self._calls}

    def _in_float64(self) -> dict[Call, Leaves]:
        try:
            with self._roundings.wide() as step:
                return self._take_calls(step)
        except Exception:  # noqa: BLE001  an operator without float64, or too little memory
            return {}
