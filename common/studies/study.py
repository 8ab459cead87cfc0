"""The interface between the rest and a study: one question that a run asks of its models."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec

from dynamometer.common import loading, registry
from dynamometer.common.errors import UsageError
from dynamometer.results.reports.sinks import Reporter
from dynamometer.results.values.cases import BASELINE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dynamometer.common.interfaces.option import Option, Request
    from dynamometer.common.interfaces.workload import Workload
    from dynamometer.common.studies.experiment import Experiment
    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.reports.sinks import OnPage, Sink
    from dynamometer.results.store.expected import Expectations
    from dynamometer.results.values.cases import Case, RunPlan
    from dynamometer.results.values.cases import Protocol as Measuring
    from dynamometer.results.values.records import Outcome, Record, StopReason


class Jobs(Enum):
    """How many cases of a study may run at the same time."""

    ONE = "one"
    """It times them."""
    AS_ASKED = "as asked"
    """One, unless more are asked for: it times them roughly."""
    ALL_CORES = "all cores"
    """One for each core, unless another number is asked for."""


FIXED_SIZES = "it sets the sizes of its inputs itself, so they can't be varied"
"""Why a case is skipped whose sizes were to vary."""


class Study(Reporter, Protocol):
    """Everything the rest must know of one question. Never imports torch.

    Its name is that of its first experiment, which every plan and record holds.

    Attributes:
        asked_by: the option that asks for it; `None` where there is none.
        options: what else it adds to the command line.
        is_timed: whether it measures speedups, from which later runs learn how far processes
            differ.
        takes_turns: whether the replicates of several cases take turns.
        varies_batch: whether each model must run at whatever batch size it is given.
        has_expectations: whether `--expect` can compare what it finds.
        decides: whether what it finds of a graph or model is kept as a decision.
        jobs: whether cases may run at the same time as others: what is timed runs alone.
        usual_threads: of each case where cases may run at the same time; `None` for two.
        cost_factor: how long a case takes, as a multiple of one that is timed.
        usual_timeout_s: after which a worker is killed unless another time is asked for.
    """

    asked_by: Option[Any] | None
    options: Sequence[Option[Any]]
    is_timed: bool
    takes_turns: bool
    varies_batch: bool
    has_expectations: bool
    decides: bool
    jobs: Jobs
    usual_threads: int | None
    cost_factor: float
    usual_timeout_s: float

    def experiments(self, request: Request) -> tuple[str, ...]:
        """Return the names of the experiments a run makes, in order."""
        ...

    def experiment(self, name: str) -> Experiment:
        """Return one of them.

        Raises:
            UsageError: there is none of that name, or its module can't be imported.
        """
        ...

    def workload(self, asked: Workload, request: Request) -> Workload:
        """Return how models are run for this question, given how they were asked to be run.

        Raises:
            UsageError: they can't be run so for it.
        """
        ...

    def corpus(self, request: Request) -> Path | None:
        """Return the folder that graphs are put into; `None` where none are recorded."""
        ...

    def sinks(self, directory: Path) -> Sequence[Sink]:
        """Return what takes its results besides what takes those of every study.

        Args:
            directory: of the run.
        """
        ...

    def replicates(self, request: Request) -> tuple[int, int]:
        """Return the least and the most replicates of a case, where no number is asked for."""
        ...

    def announcement(self, cases: Sequence[Case]) -> str | None:
        """Return what a run is about to do; `None` where the usual line says it."""
        ...

    def arms(self, case: Case, records: Sequence[Record]) -> tuple[str, ...]:
        """Return the arms a case's next replicate is of.

        Args:
            case: its first arm is always one of them.
            records: of the replicates before that one, in order.
        """
        ...

    def replicate_name(self, replicate: int) -> str:
        """Name a replicate of a case."""
        ...

    def stop_reason(self, records: Sequence[Record], protocol: Measuring) -> StopReason | None:
        """Return why a case needs no further replicate, or `None` if it does.

        What decides is how well something is known, never what it is: to go on until a difference
        is significant would find one in the end.

        Args:
            records: of the case, one for each replicate it had; at least one.
            protocol: what was asked for.
        """
        ...

    def comparable(self, record: Record) -> Record:
        """Return the part of a record from which later runs learn how far processes differ."""
        ...

    def taught_arms(self, case: Case) -> tuple[str, ...]:
        """Return the arms that `comparable` records of a case are of, the baseline among them."""
        ...

    def observed(self, cases: Sequence[Sequence[Record]]) -> Expectations:
        """Return what the cases of a run came to, to be compared with what is expected."""
        ...

    def failing(self, records: Sequence[Record]) -> Case | None:
        """Return a case as it fails: with the first arm that does; `None` where none does.

        Args:
            records: of the case, one for each replicate it had; at least one.
        """
        ...


class StudyOfCases:
    """What most studies share: cases that take turns, each in as many replicates as asked for.

    A study that differs says so; what it must say itself is its experiments and its report.
    """

    modules: ClassVar[Mapping[str, str]]
    """`module:attribute` of each experiment, by name."""
    asked_by: ClassVar[Option[Any] | None] = None
    usual_replicates: ClassVar[tuple[int, int]] = (1, 1)
    options: ClassVar[Sequence[Option[Any]]] = ()
    is_timed: ClassVar[bool] = False
    takes_turns: ClassVar[bool] = True
    varies_batch: ClassVar[bool] = False
    has_expectations: ClassVar[bool] = False
    decides: ClassVar[bool] = False
    jobs: ClassVar[Jobs] = Jobs.ONE
    usual_threads: ClassVar[int | None] = None
    cost_factor: ClassVar[float] = 1.0
    usual_timeout_s: ClassVar[float] = 1200.0

    def experiments(self, request: Request) -> tuple[str, ...]:
        """Return all its experiments."""
        del request
        return tuple(self.modules)

    def experiment(self, name: str) -> Experiment:
        """Import one of its experiments."""
        if name not in self.modules:
            msg = f"this study has no experiment {name!r} any more: {', '.join(self.modules)}"
            raise UsageError(msg)
        experiment: Experiment = loading.load("experiments", name, self.modules[name])()
        return experiment

    def workload(self, asked: Workload, request: Request) -> Workload:
        """Run models as asked."""
        del request
        return asked

    def corpus(self, request: Request) -> Path | None:
        """Return that none are."""
        del request
        return None

    def sinks(self, directory: Path) -> Sequence[Sink]:
        """Return that there is nothing."""
        del directory
        return ()

    def replicates(self, request: Request) -> tuple[int, int]:
        """Return the usual number."""
        del request
        return self.usual_replicates

    def announcement(self, cases: Sequence[Case]) -> str | None:
        """Leave it to the usual line."""
        del cases
        return None

    def arms(self, case: Case, records: Sequence[Record]) -> tuple[str, ...]:
        """Return all the case has."""
        del records
        return case.arms

    def replicate_name(self, replicate: int) -> str:
        """Count from 0."""
        return f"replicate {replicate}"

    def stop_reason(self, records: Sequence[Record], protocol: Measuring) -> StopReason | None:
        """Stop at the number of replicates, or where there is nothing to repeat."""
        from dynamometer.results.statistics.stopping import end_of_measuring

        return end_of_measuring(records, protocol, ())

    def comparable(self, record: Record) -> Record:
        """Return all of it."""
        return record

    def taught_arms(self, case: Case) -> tuple[str, ...]:
        """Return all of its arms."""
        return case.arms

    def observed(self, cases: Sequence[Sequence[Record]]) -> Expectations:
        """Return nothing."""
        del cases
        return {}

    def failing(self, records: Sequence[Record]) -> Case | None:
        """Take the first arm that failed in some replicate."""
        for record in records:
            for each in record.arms:
                if each.arm != BASELINE and each.outcome.is_fault:
                    return msgspec.structs.replace(record.case, arms=(BASELINE, each.arm))
        return None

    def ending(self, records: Sequence[Record]) -> Outcome:
        """Return the first that was not a pass, or a pass."""
        from dynamometer.results.statistics.summary import ending_of

        return ending_of(records)

    def compared(self: Study, records: Sequence[Record]) -> list[Entry]:
        """Compare how it ended."""
        from dynamometer.results.comparison.entries import of_outcome

        return of_outcome(records, self.ending(records))

    def closing_lines(self, cases: Sequence[Sequence[Record]]) -> list[str]:
        """Return nothing: there is nothing to say of all cases together."""
        del cases
        return []

    def closing_rows(self, cases: Sequence[Sequence[Record]]) -> list[Any]:
        """Leave the rows of all cases as they were written."""
        del cases
        return []

    def on_page(self: Study, cases: Sequence[Sequence[Record]]) -> OnPage:
        """Show how cases ended, and its tables."""
        from dynamometer.results.reports.page.parts import beside_lines, part_of_any

        return beside_lines(self, cases, part_of_any(self, cases))


class StudyOfFixedReplicates(StudyOfCases):
    """What studies share that find the same in every process: nothing is repeated to know it."""

    def stop_reason(self, records: Sequence[Record], protocol: Measuring) -> StopReason | None:
        """Stop at the number of replicates, whatever became of them."""
        from dynamometer.results.values.records import StopReason

        return StopReason.REPLICATES if len(records) >= protocol.replicates else None


def options_of(*studies: Study) -> list[Option[Any]]:
    """Return all that studies add to the command line."""
    return [
        option
        for study in studies
        for option in (*([study.asked_by] if study.asked_by else []), *study.options)
    ]


def with_usual_study(request: Request, suite: str) -> Request:
    """Return a request which asks what is usually asked of a suite's models, if it asks nothing.

    Whoever types `--performance` asks what is asked of those of other suites.
    """
    usual = registry.suite(suite).usual_study
    option = registry.study(usual).asked_by if usual else None
    questions = [study.asked_by for study in registry.studies() if study.asked_by]
    is_asked = any(request.is_set(each) or each in request.typed for each in questions)
    return request if is_asked or option is None else request.but(option, value=True)


def skip_reason(study: Study, plan: RunPlan, case: Case) -> str | None:
    """Return why a case is not run, or `None` if it is."""
    spec = plan.spec_of(case)
    skipped = None if plan.no_skip else spec.skip_reason(case.device, case.mode)
    if skipped or case.batch_size is not None:
        return skipped
    varies_batch = study.varies_batch or (case.dynamic and not spec.varies)
    return FIXED_SIZES if varies_batch else None
