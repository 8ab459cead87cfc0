"""A history as the index has it: latencies are looked at where a speedup changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from simulated_histories import indexed

from dynamometer.results.history import by_eager
from dynamometer.results.history.of_index import history_of
from dynamometer.results.store.index.index import Index, Known
from dynamometer.results.store.index.index_file import IndexFile
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.history import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from dynamometer.results.values.history import IndexedRun, StoredSeries

SPEEDUPS = {"metric": ("speedup",)}


class Watched(Index):
    """An index that remembers what was asked of it."""

    def __init__(self, file: IndexFile) -> None:
        super().__init__(file)
        self.asked: list[Mapping[str, Sequence[str]]] = []

    def read(
        self, wanted: Mapping[str, Sequence[str]]
    ) -> tuple[dict[int, IndexedRun], list[StoredSeries]]:
        """Remember it."""
        self.asked.append(wanted)
        return super().read(wanted)


def row(model: str, metric: str, value: float) -> Row:
    """Describe what a run says of a model."""
    return Row(
        identity={"suite": "torchbench", "model": model, "mode": "inference"},
        arm=BASELINE if metric == "eager_latency" else "inductor",
        metric=metric, status="pass", value=value, low=value, high=value, error=0.005, n=3,
    )  # fmt: skip


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Watched]:
    """Eighteen runs: from the eleventh on eager of alexnet is faster; vgg16 stays as it is."""
    with IndexFile(tmp_path / "index.sqlite") as file:
        found = Watched(file)
        for day, run in enumerate(indexed(18).values()):
            eager = 10.0 if day < 10 else 8.0
            rows = [
                row("alexnet", "speedup", eager / 7.0), row("vgg16", "speedup", 1.2),
                row("alexnet", "eager_latency", eager), row("alexnet", "latency", 7.0),
            ]  # fmt: skip
            found.add(Known(f"/runs/{run.run_id}", "1", 1, run.run_id), run, rows)
        yield found


def test_a_faster_eager_is_named(index: Watched) -> None:
    """By the latencies of that model alone."""
    found = history_of(index, SPEEDUPS, None, with_points=True)
    assert [each.identity["model"] for each in found.series] == ["alexnet", "vgg16"]
    assert [len(each.points) for each in found.series] == [18, 18]
    [change] = found.series[0].changes
    assert change.by_eager
    assert index.asked == [SPEEDUPS, {"model": ["alexnet"], "metric": by_eager.LATENCIES}]


def test_latencies_are_not_read_for_nothing(index: Watched) -> None:
    """Where no speedup changed, or none since then."""
    wanted = {**SPEEDUPS, "model": ("vgg16",)}
    assert history_of(index, wanted, None, with_points=False).series[0].points == ()
    found = history_of(index, SPEEDUPS, "2027", with_points=False)
    assert [each.changes for each in found.series] == [(), ()]
    assert index.asked == [wanted, SPEEDUPS]
