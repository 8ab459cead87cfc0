"""What a worker's end comes to in a record, and what it may take."""

from __future__ import annotations

import signal
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import factories
import msgspec
import pytest

from dynamometer.common.execution.channel import Receiver
from dynamometer.common.execution.executors.local import LocalExecutor
from dynamometer.common.execution.fork_servers import ForkServers
from dynamometer.common.execution.process import Limits, Worker
from dynamometer.common.interfaces.messages import Ended, Findings, Progress, Report
from dynamometer.common.machine.temporary import needs_quoting
from dynamometer.common.studies.parity.corpus_files import CorpusFiles
from dynamometer.common.studies.parity.summary import summarize
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.choices import Subject, Tuning
from dynamometer.results.values.decisions import Tuned
from dynamometer.results.values.parity import UNDER_WAY, FullGraph, Parity
from dynamometer.results.values.records import (
    NOTHING,
    PASSED,
    ArmResult,
    Record,
    Stage,
    Status,
    packed,
)
from dynamometer.results.values.sizes import STATIC, SizeSweep
from dynamometer.results.values.workers import Caches

if TYPE_CHECKING:
    from dynamometer.common.interfaces.messages import Job
    from dynamometer.results.values.cases import RunPlan

GIB = 2**30


class EndingServers(ForkServers):
    """Gives workers that end as they are told to."""

    def __init__(self, log: Path, **fields: Any) -> None:
        super().__init__(log)
        self.fields, self.limits = fields, list[Limits]()

    def run(self, plan: RunPlan, job: Job, log: Path, limits: Limits) -> Worker:
        """Keep the limits, and give a worker that has ended."""
        del plan, job, log
        self.limits.append(limits)
        defaults = {
            "progress": Progress(stage=Stage.COMPILE, arm=None),
            "ending": Ended(pid=1, wait_status=signal.SIGKILL, peak_bytes=3 * GIB),
        }
        return Worker(
            pid=1, results=-1, receiver=Receiver(""), started=time.monotonic(),
            **{**defaults, **self.fields},
        )  # fmt: skip


def executed(plan: RunPlan, folder: Path, **fields: Any) -> tuple[Record, Limits]:
    """Execute a plan's first case, whose worker ends so; give its record and its limits."""
    servers = EndingServers(folder / "log", **fields)
    record = LocalExecutor(factories.manifest(plan), folder, servers).execute(plan.cases[0], 0)
    return record, servers.limits[0]


def test_an_arm_that_was_run_as_one_graph_ends_as_its_process_does(tmp_path: Path) -> None:
    """What was kept before stands."""
    parity = Parity(full_graph=(FullGraph(arm="eager", outcome=UNDER_WAY),))
    arms = tuple(ArmResult(arm=arm, outcome=PASSED) for arm in (BASELINE, "eager"))
    kept = Findings(outcome=PASSED, arms=arms, found=packed(parity))
    plan = factories.plan(arms=(BASELINE, "eager"), suite="parity", experiments=("parity",))
    record, _ = executed(plan, tmp_path, interim=kept, killed="timeout")
    assert (record.outcome, record.arms) == (PASSED, arms)
    (found,) = msgspec.json.decode(record.found, type=Parity).full_graph
    assert found.outcome.status is Status.TIMEOUT


UNREADABLE = {
    "another kind": packed("no"),
    "a part missing": msgspec.Raw(b'{"full_graph":[{"arm":"eager"}]}'),
    "no UTF-8": msgspec.Raw(b'{"more":"\xff"}'),
    "no UTF-8 in a name": msgspec.Raw(
        b'{"full_graph":[{"arm":"\xff","outcome":{"status":"pass","stage":"run"}}]}'
    ),
    "nested too deeply": msgspec.Raw(b"[" * 100_000 + b"]" * 100_000),
    "nothing": NOTHING,
}


@pytest.mark.parametrize("kind", UNREADABLE)
@pytest.mark.parametrize("is_reported", [True, False])
def test_what_nobody_can_read_fails_its_case(
    kind: str, tmp_path: Path, *, is_reported: bool
) -> None:
    """Code that says what it likes may send it, as a report or before; whoever reads it goes on."""
    arms = tuple(ArmResult(arm=arm, outcome=PASSED) for arm in (BASELINE, "eager"))
    sent = Findings(outcome=PASSED, arms=arms, found=UNREADABLE[kind], notes=("kept",))
    report = Report(findings=sent, seconds={})
    fields = {"report": report} if is_reported else {"interim": sent, "killed": "timeout"}
    plan = factories.plan(arms=(BASELINE, "eager"), suite="parity", experiments=("parity",))
    record, _ = executed(plan, tmp_path, **fields)
    assert (record.outcome.status, record.found) == (Status.FAIL, NOTHING)
    assert "what its process says it found is damaged" in (record.outcome.reason or "")
    assert "kept" in record.notes
    (found,) = summarize(record)
    assert found.outcome.status is found.full_graph.status is Status.FAIL
    CorpusFiles(tmp_path).write([record])


def both_pass(**fields: Any) -> Findings:
    """Make findings of two arms that pass."""
    arms = tuple(ArmResult(arm=arm, outcome=PASSED) for arm in (BASELINE, "eager"))
    return Findings(**{"outcome": PASSED, "arms": arms, "found": packed(Parity()), **fields})


FORGED = {
    "more than once": both_pass(arms=(ArmResult(arm="eager", outcome=PASSED),) * 50),
    "did not have, such as 'nonsense'": both_pass(
        arms=(ArmResult(arm="nonsense", outcome=PASSED),)
    ),
    "did not have, such as 'other'": both_pass(measurements=(factories.measurement(arm="other"),)),
    "did not have, such as 'third'": both_pass(build_order=(BASELINE, "third")),
    "bytes, more than": both_pass(
        measurements=(factories.measurement(arm="eager", samples=(0.123456789,) * 500_000),)
    ),
}


@pytest.mark.parametrize("reason", FORGED)
@pytest.mark.parametrize("is_reported", [True, False])
def test_what_no_worker_of_ours_reports_fails_its_case(
    reason: str, tmp_path: Path, *, is_reported: bool
) -> None:
    """Its tables would have arms that nobody asked for, and its run no end."""
    sent = FORGED[reason]
    report = Report(findings=sent, seconds={})
    fields = {"report": report} if is_reported else {"interim": sent, "killed": "timeout"}
    plan = factories.plan(arms=(BASELINE, "eager"), suite="parity", experiments=("parity",))
    record, _ = executed(plan, tmp_path, **fields)
    assert record.outcome.status is Status.FAIL
    assert reason in (record.outcome.reason or "")
    assert [each.arm for each in record.arms] == [BASELINE, "eager"]
    assert not record.measurements


def test_a_study_may_report_more_than_the_arms_of_a_case(tmp_path: Path) -> None:
    """Such as what is compiled for one size alone; code that nobody has read may not."""
    sweep = SizeSweep(sizes=("1",), frames=1, recompiles=(), guards=(), specializations=())
    of_one_size = factories.measurement(arm=STATIC)
    sent = both_pass(measurements=(of_one_size,), found=packed(sweep))
    report = Report(findings=sent, seconds={})
    plan = factories.plan(arms=(BASELINE, "eager"), experiments=("sizes",))
    record, _ = executed(plan, tmp_path, report=report)
    assert record.outcome == PASSED
    assert [each.arm for each in record.measurements] == [STATIC]


@pytest.mark.parametrize(
    "seconds", [{Stage.LOAD: 1e308, Stage.RUN: 1e308}, {Stage.RUN: -1.0}, {Stage.RUN: 3600.0}]
)
def test_seconds_that_cannot_have_passed_fail_their_case(
    seconds: dict[Stage, float], tmp_path: Path
) -> None:
    """Their sum may be infinite, which no record can hold."""
    plan = factories.plan(arms=(BASELINE, "eager"), suite="parity", experiments=("parity",))
    record, _ = executed(plan, tmp_path, report=Report(findings=both_pass(), seconds=seconds))
    assert record.outcome.status is Status.FAIL
    assert "seconds that can't have passed" in (record.outcome.reason or "")
    assert all(0 <= each < 1 for each in record.seconds.values())
    assert msgspec.json.decode(msgspec.json.encode(record), type=Record) == record


@pytest.mark.parametrize(("limit_bytes", "status"), [(4 * GIB, Status.OOM), (None, Status.CRASH)])
def test_a_kill_is_judged_by_what_the_worker_may_take(
    limit_bytes: int | None, status: Status, tmp_path: Path
) -> None:
    """Three GiB are most of four, and little of a machine."""
    plan = factories.plan(memory_limit_bytes=limit_bytes)
    assert executed(plan, tmp_path)[0].outcome.status is status


@pytest.mark.parametrize(("jobs", "status"), [(1, Status.CRASH), (2, Status.OOM)])
def test_a_kill_beside_others_is_judged_by_a_share_of_the_machine(
    jobs: int, status: Status, tmp_path: Path
) -> None:
    """Three GiB are little of its eight, and most of what is there for one of two."""
    plan = factories.plan(memory_limit_bytes=7 * GIB, jobs=jobs)
    assert executed(plan, tmp_path)[0].outcome.status is status


def test_arms_that_are_decided_on_have_their_own_time(tmp_path: Path) -> None:
    """Unless their code may say anything of itself."""
    tuning = Tuning(decisions="decisions.sqlite")
    for suite, study, is_of_each in (
        ("torchbench", "speedup", False), ("corpus", "tuning", True), ("parity", "tuning", False),
    ):  # fmt: skip
        plan = factories.plan(suite=suite, experiments=(study,), tuning=tuning)
        assert executed(plan, tmp_path)[1].is_of_each_arm is is_of_each


class CrashingServers(ForkServers):
    """Gives workers that the last of their arms ends; one with eager alone passes."""

    def __init__(self, log: Path) -> None:
        super().__init__(log)
        self.arms = list[tuple[str, ...]]()

    def run(self, plan: RunPlan, job: Job, log: Path, limits: Limits) -> Worker:
        """Keep the arms, and give a worker that has ended."""
        del plan, log, limits
        self.arms.append(job.arms)
        worker = Worker(pid=1, results=-1, receiver=Receiver(""), started=time.monotonic())
        worker.ending = Ended(pid=1, wait_status=signal.SIGSEGV, peak_bytes=GIB)
        if job.arms == (BASELINE,):
            results = (ArmResult(arm=BASELINE, outcome=PASSED),)
            findings = Findings(outcome=PASSED, arms=results, found=ABOUT)
            worker.report = Report(findings=findings, seconds={})
        else:
            worker.progress = Progress(stage=Stage.COMPILE, arm=job.arms[-1])
        return worker


ABOUT = packed(Tuned(subject=Subject.GRAPH, key="ab" * 32, setting=factories.setting()))


@pytest.mark.parametrize("study", ["speedup", "tuning"])
def test_where_every_candidate_ends_its_process_that_is_decided_on(
    study: str, tmp_path: Path
) -> None:
    """Eager says by itself what it is about; elsewhere there is nothing to run it for."""
    arms = (BASELINE, "inductor", "ts")
    plan = factories.plan(arms=arms, experiments=(study,))
    servers = CrashingServers(tmp_path / "log")
    executor = LocalExecutor(factories.manifest(plan), tmp_path, servers)
    record = executor.execute(plan.cases[0], 0)
    decides = study == "tuning"
    assert servers.arms == [arms, arms[:2], arms[:1]][: 3 if decides else 2]
    assert record.found == (ABOUT if decides else NOTHING)
    ends = {each.arm: each.outcome for each in record.arms}
    assert [*ends] == [*arms]
    assert ends[BASELINE].status is (Status.PASS if decides else Status.SKIP)
    for arm in arms[1:]:
        assert ends[arm].status is Status.CRASH
        assert arm in (ends[arm].reason or "")
    assert record.outcome.status is Status.CRASH


class FillingServers(CrashingServers):
    """Gives workers that leave something in the caches, and ends as they do."""

    def __init__(self, log: Path) -> None:
        super().__init__(log)
        self.found, self.cache_dirs = list[list[str]](), list[str]()

    def run(self, plan: RunPlan, job: Job, log: Path, limits: Limits) -> Worker:
        """Keep what is in the caches, and add to it."""
        folder = Path(job.cache_dir)
        self.cache_dirs.append(job.cache_dir)
        self.found.append([each.name for each in folder.iterdir()])
        (folder / "graph").touch()
        return super().run(plan, job, log, limits)


@pytest.mark.parametrize(
    ("caches", "are_cold"),
    [
        (Caches.FIRST_COLD, [True, True, False, False]),
        (Caches.COLD, [True, True, True, True]),
        (Caches.WARM, [False, False, False, False]),
    ],
)
def test_arms_that_begin_again_find_the_caches_as_they_were(
    caches: Caches, are_cold: list[bool], tmp_path: Path
) -> None:
    """What the process that one of them ended has compiled is gone where it found nothing."""
    plan = factories.plan(arms=(BASELINE, "inductor", "ts"), experiments=("speedup",))
    protocol = msgspec.structs.replace(plan.protocol, caches=caches)
    plan = msgspec.structs.replace(plan, protocol=protocol)
    servers = FillingServers(tmp_path / "log")
    executor = LocalExecutor(factories.manifest(plan), tmp_path, servers)
    for replicate in range(2):
        executor.execute(plan.cases[0], replicate)
    measured = [found for found, arms in zip(servers.found, servers.arms, strict=True)
                if BASELINE in arms]  # fmt: skip
    assert [not each for each in measured] == are_cold


def test_compilers_can_use_the_path_of_the_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the folder of the run is called; what was linked for that is removed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    directory = tmp_path / "My Project's"
    directory.mkdir()
    plan = factories.plan(arms=(BASELINE, "ts"), experiments=("speedup",))
    servers = FillingServers(tmp_path / "log")
    executor = LocalExecutor(factories.manifest(plan), directory, servers)
    for replicate in range(2):
        executor.execute(plan.cases[0], replicate)
    assert servers.found == [[], ["graph"]]
    assert not any(needs_quoting(each) for each in servers.cache_dirs)
    assert [*directory.rglob("graph")]
    executor.close()
    assert [each.name for each in directory.iterdir()] == ["logs"]
    assert not [*tmp_path.glob("dynamometer-*")]


def test_a_further_attempt_finds_the_caches_as_the_first_did(tmp_path: Path) -> None:
    """Its compile times are cold, too, whatever the first had compiled before it failed."""
    plan = factories.plan(arms=(BASELINE, "ts"), experiments=("speedup",))
    servers = FillingServers(tmp_path / "log")
    executor = LocalExecutor(factories.manifest(plan), tmp_path, servers)
    for replicate in (0, 0, 1):
        executor.execute(plan.cases[0], replicate)
    assert servers.found == [[], [], ["graph"]]


class DyingServers(CrashingServers):
    """Gives workers that pass, but for one whose fork server dies.

    Attributes:
        dies_at: its number.
    """

    dies_at = 0

    def run(self, plan: RunPlan, job: Job, log: Path, limits: Limits) -> Worker:
        """Count it, and give it an end."""
        worker = super().run(plan, job, log, limits)
        worker.report = Report(findings=Findings(outcome=PASSED), seconds={Stage.RUN: 0.1})
        if len(self.arms) == self.dies_at:
            worker.report = worker.ending = None
        return worker


@pytest.mark.parametrize(("dies_at", "status"), [(1, Status.INFRA), (3, Status.PASS)])
def test_a_fork_server_that_dies_costs_no_memory(
    dies_at: int, status: Status, tmp_path: Path
) -> None:
    """Without it the case passes, so that it would never be attempted again."""
    plan = factories.plan(arms=(BASELINE, "ts"), experiments=("speedup", "memory"))
    servers = DyingServers(tmp_path / "log")
    servers.dies_at = dies_at
    executor = LocalExecutor(factories.manifest(plan), tmp_path, servers)
    record = executor.execute(plan.cases[0], 0)
    assert record.outcome.status is status
    if status is Status.PASS:
        assert servers.arms == [(BASELINE, "ts"), (BASELINE,), ("ts",), ("ts",)]
        assert not record.absent


class TalkingServers(CrashingServers):
    """Gives workers that have written something, each its text."""

    def __init__(self, log: Path, texts: list[str]) -> None:
        super().__init__(log)
        self._texts = texts

    def run(self, plan: RunPlan, job: Job, log: Path, limits: Limits) -> Worker:
        """Add a text to the log."""
        worker = super().run(plan, job, log, limits)
        with log.open("a") as file:
            worker.log, worker.log_begins = log, file.tell()
            file.write(self._texts.pop(0))
        return worker


def test_what_is_quoted_of_a_log_is_what_that_worker_wrote(tmp_path: Path) -> None:
    """Neither what others of its case write later, nor what was there before."""
    plan = factories.plan(arms=(BASELINE, "ts"), experiments=("tuning",))
    servers = TalkingServers(tmp_path / "log", ["the stack", "of eager alone", "", "likewise"])
    executor = LocalExecutor(factories.manifest(plan), tmp_path, servers)
    ends = [executor.execute(plan.cases[0], 0).outcome for _ in range(2)]
    assert [each.status for each in ends] == [Status.CRASH] * 2
    assert [each.detail for each in ends] == ["the stack", None]
