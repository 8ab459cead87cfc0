from __future__ import annotations

import io
from typing import TYPE_CHECKING

import factories

from dynamometer.results.batch_sizes import Throughput, summarize_search
from dynamometer.results.console import Console
from dynamometer.results.csv_sink import CsvFiles
from dynamometer.results.schema import BATCH_SIZES, Outcome, Record, Stage, Status

if TYPE_CHECKING:
    from pathlib import Path

CASE = factories.case(arms=("baseline",))
TOO_MUCH = Outcome(status=Status.OOM, stage=Stage.EAGER, reason="MemoryError: 9 GiB")


def search() -> list[Record]:
    """Give a search that ends at four, where two was faster per sample."""
    ran = [
        factories.record(
            CASE,
            replicate=exponent,
            experiments=(BATCH_SIZES,),
            measurements=(
                factories.measurement("batch_size", samples=(float(2**exponent),), unit="1"),
                factories.measurement("latency", samples=(seconds, seconds)),
            ),
        )
        for exponent, seconds in enumerate((1.0, 1.0, 4.0))
    ]
    end = factories.record(CASE, replicate=3, experiments=(BATCH_SIZES,), outcome=TOO_MUCH)
    return [*ran, end]


def test_a_search() -> None:
    """The largest that ran, the fastest of them, and what became of the next."""
    found = summarize_search(search())
    assert found.largest == Throughput(4, 1.0)
    assert found.fastest == Throughput(2, 2.0)
    assert found.end == TOO_MUCH


def test_a_search_that_found_nothing() -> None:
    """Not even one sample fits."""
    found = summarize_search(search()[-1:])
    assert (found.largest, found.fastest, found.end) == (None, None, TOO_MUCH)


def test_how_it_is_shown(tmp_path: Path) -> None:
    """On the console in a line, in the CSV in a row."""
    stream = io.StringIO()
    Console(stream).write(search())
    line = (
        "batch size 4 (1 samples/s); fastest 2 (2 samples/s); then OOM (eager) MemoryError: 9 GiB"
    )
    assert line in stream.getvalue()
    files = CsvFiles(tmp_path)
    files.write(search())
    files.close()
    (path,) = files.paths
    assert path.name == "baseline_torchbench_float32_inference_cpu_batch_sizes.csv"
    header, row = path.read_text().splitlines()
    assert header.startswith("dev,name,batch_size,samples_per_s,fastest_batch_size")
    assert row == "cpu,alexnet,4,1,2,2,oom,MemoryError: 9 GiB,full"
