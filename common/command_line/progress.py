"""Progress on standard error: a live line on a terminal, a plain one per case elsewhere."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Never, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from dynamometer.common.planning.estimate import LATER_REPLICATE_SHARE
from dynamometer.results.reports.texts import printable_lines
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Record


class _Console(Console):
    """Standard error, whose reader may leave: that ends this program as any broken pipe does."""

    def on_broken_pipe(self) -> Never:
        """Let `exit_code_of` see the error that is being handled; rich would exit with 1."""
        raise  # noqa: PLE0704  rich calls it in its `except BrokenPipeError`


_AT_ONCE_S = 1.0
"""Seconds that a case takes at most which is skipped before anything is built."""


class ProgressLine:
    """Shows total, time left, current case and counts so far; a `runner.Observer`.

    Attributes:
        seconds: of all records that were made, by what they were spent on.
    """

    def __init__(
        self,
        cases: int,
        replicates: int,
        estimate_s: float,
        replicate_name: Callable[[int], str],
        *,
        earlier: int = 0,
    ) -> None:
        """Show nothing yet.

        Args:
            cases: how many there will be.
            replicates: how many each has at least.
            estimate_s: how long all of them may take, a guess.
            replicate_name: names a replicate of a case by its index.
            earlier: how many of the cases had ended before; no time is estimated for them.
        """
        self._replicate_name = replicate_name
        self._console = _Console(stderr=True, highlight=False)
        self._estimate_s = estimate_s
        self._total, self._open = cases, cases - earlier
        self._replicates = replicates
        self._shares: dict[str, float] = {}
        self._ended = 0
        self._counts: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._started = time.monotonic()
        self._seen_s = 0.0  # when the last record was made
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]} {task.fields[left]}"),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
            auto_refresh=False,  # a model may be being timed on this core
        )
        self._task = self._progress.add_task("starting", total=cases, counts="", left="")

    def __enter__(self) -> Self:
        """Start to show."""
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the live line away."""
        self._progress.stop()

    def say(self, text: str) -> None:
        """Print a line above the live one."""
        self._progress.console.print(
            "\n".join(printable_lines([text])), markup=False, soft_wrap=True
        )

    def case_started(self, case: Case) -> None:
        """Name the current case."""
        self._update(case.model)

    def record_made(self, record: Record) -> None:
        """Say how a replicate ended where there is no live line."""
        for stage, seconds in record.seconds.items():
            self.seconds[stage] += seconds
        if record.outcome.status is Status.SKIP and sum(record.seconds.values()) < _AT_ONCE_S:
            self._open -= 1  # no time was estimated for it
        else:
            self._shares[record.case.id] = self._share_of(record)
            self._seen_s = time.monotonic() - self._started
        if not self._console.is_terminal:
            spent = sum(record.seconds.values())
            outcome = record.outcome
            part = self._replicate_name(record.replicate)
            self.say(
                f"[{self._ended}/{self._total} done] {record.case.label} {part}:"
                f" {outcome.status} in {spent:.1f} s, {self._left()}"
            )
        self._counts[record.outcome.status] += 1

    def case_ended(self, case: Case) -> None:
        """Move on."""
        self._ended += 1
        if case.id in self._shares:  # else it had ended before
            self._shares[case.id] = 1.0
        self._update(case.model)

    def _update(self, description: str) -> None:
        counts = " ".join(f"{status} {n}" for status, n in self._counts.items())
        self._progress.update(
            self._task,
            description=description,
            completed=self._ended,
            counts=counts,
            left=self._left(),
            refresh=True,
        )

    def _left(self) -> str:
        """Return how long the rest takes: the estimate counts as much as one case that was seen."""
        one = 1.0 / max(self._open, 1)
        share = sum(self._shares.values()) * one if self._open > 0 else 1.0
        whole_s = (one * self._estimate_s + self._seen_s) / (one + share)
        since_s = time.monotonic() - self._started - self._seen_s
        return f"about {duration(max(0.0, (1 - share) * whole_s - since_s))} left"

    def _share_of(self, record: Record) -> float:
        """Return how much of a case is done with a replicate of it.

        The first takes longer, and after the least number there may be one more.
        """
        if record.stopped is not None:
            return 1.0
        made, later = record.replicate + 1, LATER_REPLICATE_SHARE
        least = max(self._replicates, made + 1)
        return (1 + later * (made - 1)) / (1 + later * (least - 1))


def duration(seconds: float) -> str:
    """Render a rough duration."""
    minute_s, hour_s = 60, 3600
    if seconds < minute_s:
        return f"{seconds:.0f} s"
    if seconds < hour_s:
        return f"{seconds / minute_s:.0f} min"
    return f"{seconds / hour_s:.1f} h"
