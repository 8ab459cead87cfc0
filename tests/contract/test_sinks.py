"""Every registered sink, with every kind of case."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import factories
import msgspec
import pytest
from protocols import deviations

from dynamometer.common import registry
from dynamometer.common.studies.speedup.study import STUDY
from dynamometer.results.reports.sinks import Destination, Sink
from dynamometer.results.store import store
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import PASSED, Absence, ArmResult, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from dynamometer.results.reports.sinks import Reporter
    from dynamometer.results.values.records import Record


def written(folder: Path) -> str:
    """Return everything below a folder."""
    return "".join(
        path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != store.MANIFEST
    )


def partially_absent() -> list[Record]:
    """Make a case of which some metrics are absent, each in one replicate or for one arm."""
    records = [factories.measured_record(replicate=each) for each in range(3)]
    dropped = [("latency", "inductor"), ("calls_memory", BASELINE), ("compile_time", "inductor")]
    return [
        msgspec.structs.replace(
            record,
            measurements=tuple(
                each for each in record.measurements if (each.metric, each.arm) != drop
            ),
            absent=(Absence(metric=drop[0], arm=drop[1], reason="taken away"),),
        )
        for record, drop in zip(records, dropped, strict=True)
    ]


def one_arm_failed() -> list[Record]:
    """Make a case of which one arm failed without a reason."""
    failed = factories.failure(Status.CRASH, stage=None, reason=None)
    arms = (ArmResult(arm=BASELINE, outcome=PASSED), ArmResult(arm="inductor", outcome=failed))
    return [factories.record(outcome=failed, arms=arms)]


def with_outcome(status: Status, reason: str) -> list[Record]:
    """Make a case that ended so."""
    return [factories.record(outcome=factories.failure(status, reason=reason))]


CASES: dict[str, Callable[[], Sequence[Record]]] = {
    "passing": lambda: [factories.measured_record(replicate=each) for each in range(3)],
    "screening": lambda: [factories.measured_record()],
    "failing later": lambda: [
        factories.measured_record(),
        factories.record(replicate=1, outcome=factories.failure(Status.TIMEOUT)),
    ],
    "nothing measured": lambda: [factories.record()],
    "partially absent": partially_absent,
    "one arm failed": one_arm_failed,
    "many arms": lambda: [
        factories.measured_record(factories.case(arms=(BASELINE, "a.b:c", "eager", "ts")))
    ],
    "only the baseline": lambda: [factories.measured_record(factories.case(arms=(BASELINE,)))],
    "a reason of several lines": lambda: with_outcome(Status.FAIL, 'a, "b"\nc;\r\nd'),
    "no word for any arm": lambda: [factories.record(outcome=factories.failure(), arms=())],
    **{str(status): lambda status=status: with_outcome(status, "so it was") for status in Status},
}


@pytest.fixture(params=sorted(registry.targets("sinks")))
def name(request: pytest.FixtureRequest) -> str:
    """The name of a sink."""
    return str(request.param)


@pytest.fixture(autouse=True)
def _run_directory(tmp_path: Path) -> None:
    """Make the run's directory what it is when sinks are made: its manifest is there."""
    store.create(tmp_path / "run", factories.manifest())
    (tmp_path / "run" / store.MANIFEST).rename(tmp_path / store.MANIFEST)


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[TextIO]:
    """A file in place of the terminal; closing it is not the sink's business."""
    with (tmp_path / "out.txt").open("w") as file:
        yield file


@pytest.fixture
def sink(name: str, stream: TextIO, tmp_path: Path) -> Sink:
    """The sink, made."""
    make: Callable[[Reporter, Destination], Sink] = registry.resolve("sinks", name)
    return make(STUDY, Destination(tmp_path, stream))


def test_it_has_the_protocols_methods(sink: Sink) -> None:
    """Methods and their arguments are those of the interface."""
    assert deviations(Sink, sink) == []


@pytest.mark.parametrize("kind", CASES)
def test_every_kind_of_case_is_taken(sink: Sink, kind: str) -> None:
    """Whatever became of a case, it can be written, and the sink closed after it."""
    sink.write(CASES[kind]())
    sink.close()


def test_a_resumed_run_says_each_case_once(name: str, tmp_path: Path) -> None:
    """Its sinks get the cases that ended before once more, and replace what is there."""
    texts = []
    for _ in range(2):
        with (tmp_path / "out.txt").open("w") as stream:
            sink = registry.resolve("sinks", name)(STUDY, Destination(tmp_path, stream))
            sink.write(CASES["passing"]())
            sink.close()
        texts.append(written(tmp_path))
    assert texts[0] == texts[1] != ""


def test_all_kinds_are_taken_one_after_the_other(sink: Sink, name: str, tmp_path: Path) -> None:
    """A run of everything is taken, and every model is named in what comes of it."""
    for kind, make in CASES.items():
        model = f"model_{kind.replace(' ', '_')}"
        sink.write(
            [
                msgspec.structs.replace(
                    record, case=msgspec.structs.replace(record.case, model=model)
                )
                for record in make()
            ]
        )
    sink.close()
    assert all(path.is_relative_to(tmp_path) and path.exists() for path in sink.paths)
    text = written(tmp_path)
    for kind in CASES:
        if kind != "only the baseline" or name == "console":
            assert f"model_{kind.replace(' ', '_')}" in text


def test_a_case_is_out_before_the_next_begins(sink: Sink, tmp_path: Path) -> None:
    """Who looks on, or kills the run, has what was finished."""
    sink.write(CASES["passing"]())
    assert "alexnet" in written(tmp_path)
    sink.close()


def test_closing_without_a_case(sink: Sink) -> None:
    """A run that was interrupted at once is closed like any other."""
    sink.close()


def test_closing_twice(sink: Sink) -> None:
    """Whoever cleans up need not know whether someone did."""
    sink.write(CASES["passing"]())
    sink.close()
    sink.close()


def test_a_failure_is_never_a_number(sink: Sink, tmp_path: Path) -> None:
    """What failed is named as what it is."""
    sink.write(with_outcome(Status.NONDETERMINISTIC, "so it was"))
    sink.close()
    text = written(tmp_path).lower()
    assert "nondeterministic" in text
    assert "so it was" in text
