"""What turns finished cases of tuning into decisions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import msgspec

from dynamometer.common.command_line.progress import duration
from dynamometer.results.reports.texts import count_text
from dynamometer.results.statistics.deciding import decide
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.choices import ASSEMBLED, Subject, moment
from dynamometer.results.values.decisions import Tuned
from dynamometer.results.values.records import NOTHING, PASSED, Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.results.store.decisions import Decisions
    from dynamometer.results.values.records import Outcome, Record


class DecisionSink:
    """Turns the records of each graph or model into a decision, and stores that at once."""

    def __init__(self, decisions: Decisions) -> None:
        """Decide nothing yet.

        Args:
            decisions: that what is decided is put into.
        """
        self._decisions = decisions
        self._begun = datetime.now(UTC)
        self._undrawn: list[str] = []

    def write(self, records: Sequence[Record]) -> None:
        """Decide on one graph or model, if its process said which it is.

        What was measured before this run was resumed doesn't replace what was decided since.
        """
        label = records[0].case.label
        found = next((each.found for each in records if each.found != NOTHING), None)
        if found is None:
            outcome = records[-1].outcome
            if outcome.status is not Status.SKIP:  # which is decided before
                click.echo(f"  {label} stays undecided: {outcome.line}", err=True)
            return
        about = msgspec.json.decode(found, type=Tuned)
        failing = _failing_eager(records, about)
        if failing is not None:
            self._leave_undecided(label, about, failing)
            return
        preferred = ASSEMBLED if about.subject is Subject.MODEL else None
        measured = moment(records[-1].started_at)
        if measured is None or measured >= self._begun:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            decision = decide(records, about, now, preferred)
            self._decisions.put(decision)
        else:
            decision = decide(records, about, records[-1].started_at, preferred)
            if not self._decisions.merge(decision):
                return
        speedup = decision.chosen.speedup if decision.chosen else None
        ratio = f" {speedup.value:.2f}x [{speedup.low:.2f}, {speedup.high:.2f}]" if speedup else ""
        click.echo(
            f"  {decision.subject} {label}: {decision.arm}{ratio} of"
            f" {count_text(len(decision.evidence), 'candidate')}, in {duration(decision.tuning_s)}",
            err=True,
        )

    def _leave_undecided(self, label: str, about: Tuned, failing: Outcome) -> None:
        """Store nothing, so that nothing counts as decided: candidates can't be judged."""
        click.echo(
            f"  {about.subject} {label} stays undecided: eager did not pass: {failing.line}",
            err=True,
        )
        if about.is_eager_failing and about.subject is Subject.GRAPH:
            self._undrawn.append(label)

    def close(self) -> None:
        """Name the graphs that no inputs can be drawn for."""
        if self._undrawn:
            names = ", ".join(self._undrawn)
            click.echo(
                f"inputs can't be drawn for {count_text(len(self._undrawn), 'graph')}, as eager"
                f" fails there. What stays eager and undecided: {names}",
                err=True,
            )

    @property
    def paths(self) -> Sequence[Path]:
        """No file of the run's directory."""
        return ()


_DECIDED = frozenset((Status.PASS, Status.NONDETERMINISTIC, Status.FAIL_ACCURACY))
"""How eager may end for its candidates to be judged all the same."""


def _failing_eager(records: Sequence[Record], about: Tuned) -> Outcome | None:
    """Return how eager ended where that leaves nothing to hold candidates to; `None` if it didn't.

    In the first round its worker says so. There is a later one only if it passed: then any other
    end counts, also one that the harness is to blame for, as a candidate may have caused it. Eager
    that merely differs from itself is decided for, in every round.
    """
    if about.is_eager_failing:
        return next(each.outcome for each in records if each.outcome != PASSED)
    of_eager = (
        result.outcome
        for record in records
        for result in record.arms
        if record.replicate and result.arm == BASELINE
    )
    return next((each for each in of_eager if each.status not in _DECIDED), None)
