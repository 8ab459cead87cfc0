from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest
import stored

from dynamometer.common.studies.batch_sizes.study import STUDY
from dynamometer.common.studies.batch_sizes.summary import Throughput, is_over, summarize_search
from dynamometer.results.exports import junit
from dynamometer.results.reports.console import Console
from dynamometer.results.reports.csv_sink import CsvFiles
from dynamometer.results.values.records import Outcome, Record, Stage, Status

if TYPE_CHECKING:
    from pathlib import Path

CASE = factories.case(arms=("baseline",))
TOO_MUCH = Outcome(status=Status.OOM, stage=Stage.EAGER, reason="MemoryError: 9 GiB")


def search() -> list[Record]:
    """Return a search that ends at four, where two was faster per sample."""
    ran = [
        factories.record(
            CASE,
            replicate=exponent,
            experiments=("batch_sizes",),
            measurements=(
                factories.measurement("batch_size", samples=(float(2**exponent),), unit="1"),
                factories.measurement("latency", samples=(seconds, seconds)),
            ),
        )
        for exponent, seconds in enumerate((1.0, 1.0, 4.0))
    ]
    end = factories.record(CASE, replicate=3, experiments=("batch_sizes",), outcome=TOO_MUCH)
    return [*ran, end]


def test_a_search() -> None:
    """The largest that ran, the fastest of them, and what became of the next."""
    found = summarize_search(search())
    assert found.largest == Throughput(4, 1.0)
    assert found.fastest == Throughput(2, 2.0)
    assert found.end == TOO_MUCH


@pytest.mark.parametrize(
    ("statuses", "over"),
    [
        ([], False),
        ([Status.PASS, Status.PASS], False),
        ([Status.PASS, Status.FAIL], True),
        ([Status.FAIL], False),
        ([Status.FAIL, Status.PASS], False),
        ([Status.FAIL, Status.PASS, Status.CRASH], True),
        ([Status.FAIL, Status.OOM], True),
        ([Status.SKIP], True),
        ([Status.FAIL] * 10, True),
    ],
)
def test_when_a_search_is_over(statuses: list[Status], *, over: bool) -> None:
    """What a larger batch can't mend ends it, and so does any failure after a pass."""
    records = [
        factories.record(
            CASE,
            replicate=index,
            outcome=Outcome(status=status),
            measurements=(factories.measurement(),),
        )
        for index, status in enumerate(statuses)
    ]
    assert is_over(records) is over


def test_a_search_ends_at_slow_steps() -> None:
    """The size that was slow ran, and counts."""
    records = search()[:1]
    assert not is_over(records)
    slow = tuple(
        factories.measurement(each.metric, samples=(11.0,)) if each.metric == "latency" else each
        for each in records[0].measurements
    )
    records = [factories.record(CASE, experiments=("batch_sizes",), measurements=slow)]
    assert is_over(records)
    found = summarize_search(records)
    assert found.largest is not None
    assert found.largest.batch_size == 1
    assert found.end.reason == "a step takes 11 s, and the search goes to 10"


def test_a_search_that_found_nothing() -> None:
    """Not even one sample fits."""
    found = summarize_search(search()[-1:])
    assert (found.largest, found.fastest, found.end) == (None, None, TOO_MUCH)


GOES_ON = "the run goes on, or was interrupted"


def failed(status: Status) -> Record:
    """Make the size of eight, which ended so."""
    outcome = Outcome(status=status, stage=Stage.WORKER, reason="the fork server died")
    return factories.record(CASE, replicate=3, experiments=("batch_sizes",), outcome=outcome)


@pytest.mark.parametrize(
    ("records", "status", "said"),
    [
        (
            search()[:2],
            Status.SKIP,
            f"NOT ENDED: batch size 2 ran; {GOES_ON}",
        ),
        (
            [msgspec.structs.replace(failed(Status.FAIL), replicate=0)],
            Status.SKIP,
            f"NOT ENDED: batch size 1 ended with FAIL (worker) the fork server died; {GOES_ON}",
        ),
        (
            [*search()[:3], failed(Status.INFRA)],
            Status.INFRA,
            "LOST at batch size 8, which dynamometer resume tries again: the fork server died",
        ),
    ],
    ids=["after a size that ran", "after one that failed", "with a worker that was lost"],
)
def test_a_search_that_has_not_ended(records: list[Record], status: Status, said: str) -> None:
    """Has found no largest batch, and the model has not failed."""
    found = summarize_search(records)
    assert found.is_unfinished
    assert (found.largest, found.fastest) == (None, None)
    (line,) = STUDY.lines(records)
    assert line.endswith(said)
    ending = STUDY.ending(records)
    assert (ending.status, ending.reason, ending.is_fault) == (status, said, False)
    (rows,) = STUDY.rows(records, compatible=False)
    (row,) = rows.by_column()
    assert (row["batch_size"], row["end"], row["reason"]) == (None, "unfinished", said)


def test_a_search_that_says_that_it_has_ended() -> None:
    """It had as many sizes as it may have."""
    found = summarize_search(stored.ended(search()[:2]))
    assert found.largest == Throughput(2, 2.0)
    assert (found.is_unfinished, found.end.reason) == (False, "the search goes no further")


def test_a_search_that_ends_is_a_pass_everywhere() -> None:
    """Every search ends with a size that doesn't run: no program is told of a failure for it."""
    run = stored.run_of([search()])
    run = replace(run, reporter=STUDY)
    assert STUDY.ending(search()).status is Status.PASS
    assert STUDY.ending(search()[-1:]).status is Status.OOM
    broken = factories.record(CASE, replicate=3, outcome=Outcome(status=Status.INFRA))
    assert STUDY.ending([*search()[:-1], broken]).status is Status.INFRA
    assert [each.outcome.status for each in run.endings()] == [Status.PASS]
    (entry,) = STUDY.compared(search())
    assert entry.outcome.status is Status.PASS
    (document,) = junit.export(run)
    assert 'failures="0" errors="0"' in document.text
    part = STUDY.on_page([search()]).part
    assert (part.arms[0].status, part.looks) == (Status.PASS, ())
    assert [(each.passed, each.counted) for each in part.groups] == [(1, 1)]


def test_how_it_is_shown(tmp_path: Path) -> None:
    """On the console in a line, in the CSV in a row."""
    stream = io.StringIO()
    Console(STUDY, factories.destination(stream=stream)).write(search())
    sizes = "batch size 4 (1 samples/s); fastest 2 (2 samples/s)"
    assert f"{sizes}; then 8: OOM (eager) MemoryError: 9 GiB" in stream.getvalue()
    files = CsvFiles(STUDY, factories.destination(tmp_path))
    files.write(search())
    files.close()
    (path,) = files.paths
    assert path.name == "baseline_torchbench_float32_inference_cpu_batch_sizes.csv"
    header, row = path.read_text().splitlines()
    assert header.startswith("dev,name,batch_size,samples_per_s,fastest_batch_size")
    assert row == "cpu,alexnet,4,1,2,2,oom,MemoryError: 9 GiB,full"
