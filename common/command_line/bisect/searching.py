"""The search itself: which point is measured when, and when it is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dynamometer.common.command_line.bisect.measuring import MOST_RUNS, NoRunError
from dynamometer.common.errors import UsageError
from dynamometer.results.bisection import search
from dynamometer.results.bisection.deciding import (
    Decision,
    Nearer,
    again,
    decide,
    doubts,
    watch,
    why_apart,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dynamometer.common.command_line.bisect.points import Point, Points
    from dynamometer.results.bisection.deciding import Watched
    from dynamometer.results.comparison.sides import Side


class Measures(Protocol):
    """Whoever measures points."""

    def kept(self, point: int) -> list[Side]:
        """Return the runs of a point that there are already."""
        ...

    def measure(self, point: int, number: int) -> Side:
        """Measure a point of which there are so many runs, and return a further one.

        Raises:
            NoRunError: it can't be measured.
        """
        ...


@dataclass(frozen=True)
class Search:
    """A search that goes on.

    Attributes:
        points: what is searched.
        measuring: how each is measured.
        run_sd: how far runs differ beyond what their processes show.
        say: takes what is to be told meanwhile.
    """

    points: Points
    measuring: Measures
    run_sd: float
    say: Callable[[str], None]

    def run(self) -> Sequence[Point]:
        """Measure the ends, then points between, and return which may be the first bad one.

        Raises:
            UsageError: the ends don't differ, or can't be measured.
        """
        found = self.points.found
        count = len(found)
        measured = min(search.steps(count) + 2, count)
        self.say(f"{count} points, of which some {measured} are measured")
        watched = self._watched()
        self.say(f"watched: {watched.text}")
        decided: dict[int, Nearer] = {}
        while (number := search.next_point(count, decided)) is not None:
            decision = self._decision(watched, number)
            decided[number] = decision.nearer
            self.say(f"{found[number].title}: {decision.nearer}; {decision.text}")
        last_good, first_bad = search.ends(count, decided)
        return found[last_good + 1 : first_bad + 1]

    def _watched(self) -> Watched:
        """Measure both ends until they differ.

        Raises:
            UsageError: they don't, or one can't be measured.
        """
        good, bad = self.points.found[0], self.points.found[-1]
        doubted: list[str] = []
        for runs in range(1, MOST_RUNS + 1):
            before, after = self._ends(runs)
            if why_not := why_apart(before[0], after[0]):
                msg = f"{good.title} and {bad.title} were not measured alike: {why_not}"
                raise UsageError(msg)
            watched = watch(before, after, self.run_sd)
            if watched is not None:
                return watched
            doubted = doubts([*before, *after])
        if doubted:
            self.say(f"in doubt, and so left out: {'; '.join(dict.fromkeys(doubted))}")
        msg = (
            f"{bad.title} is not worse than {good.title} in anything that the command measures,"
            " beyond chance and what is of interest: there is nothing to search for"
        )
        raise UsageError(msg)

    def _ends(self, runs: int) -> tuple[list[Side], list[Side]]:
        """Return so many runs of both ends.

        Raises:
            UsageError: one can't be measured.
        """
        last = len(self.points.found) - 1
        try:
            return self._measured(0, runs), self._measured(last, runs)
        except NoRunError as error:
            msg = f"an end of the search can't be measured: {error}"
            raise UsageError(msg) from error

    def _decision(self, watched: Watched, number: int) -> Decision:
        """Measure a point until it is like one end, or nothing more can be done.

        The ends have as many runs as the point, or more: their levels must be known as well.
        """
        wrong_p = search.wrong_p_of_look(len(self.points.found), MOST_RUNS)
        decision = Decision(Nearer.UNTESTABLE, "it can't be measured")
        for runs in range(1, MOST_RUNS + 1):
            try:
                sides = self._measured(number, runs)
            except NoRunError as error:
                is_first = runs == 1
                return Decision(Nearer.UNTESTABLE, str(error)) if is_first else decision
            before, after = self._ends(max(runs, *watched.runs))
            if why_not := why_apart(before[0], sides[0]):
                return Decision(Nearer.UNTESTABLE, f"it was not measured alike: {why_not}")
            levels = again(watched, before, after)
            decision = decide(levels, sides, wrong_p, self.run_sd)
            if decision.nearer is not Nearer.UNCLEAR:
                break
        return decision

    def _measured(self, number: int, count: int) -> list[Side]:
        """Return so many runs of a point: no more, so that a search that goes on decides alike.

        Raises:
            NoRunError: it can't be switched to, or measured.
        """
        point = self.points.found[number]
        sides = self.measuring.kept(number)
        if len(sides) < count and (why_not := self.points.switch(point)):
            raise NoRunError(why_not)
        while len(sides) < count:
            sides.append(self.measuring.measure(number, len(sides)))
        return sides[:count]
