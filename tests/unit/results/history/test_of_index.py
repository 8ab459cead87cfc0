"""A history as the index has it: latencies are looked at where a speedup changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from simulated_histories import indexed

from dynamometer.results.history import by_eager, of_index
from dynamometer.results.history.of_index import history_of, history_until
from dynamometer.results.store.index.index import Index, IndexedDirectory
from dynamometer.results.store.index.index_file import IndexFile
from dynamometer.results.store.index.series import ALL, Asked
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
        self, wanted: Mapping[str, Sequence[str]], asked: Asked = ALL
    ) -> tuple[dict[int, IndexedRun], list[StoredSeries]]:
        """Remember it."""
        self.asked.append(wanted)
        return super().read(wanted, asked)


def row(model: str, metric: str, value: float | None, status: str = "pass") -> Row:
    """Describe what a run says of a model."""
    return Row(
        identity={"suite": "torchbench", "model": model, "mode": "inference"},
        arm=BASELINE if metric == "eager_latency" else "inductor",
        metric=metric, status=status, value=value, low=value, high=value,
        error=None if value is None else 0.005, n=3,
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
                row("alexnet", "status", None),
            ]  # fmt: skip
            found.add(IndexedDirectory(f"/runs/{run.run_id}", "1", 1, run.run_id), run, rows)
        yield found


def test_a_faster_eager_is_named(index: Watched) -> None:
    """By the latencies of that model, apart from eager of all others."""
    found = history_of(index, SPEEDUPS, None, with_points=True)
    assert [each.identity["model"] for each in found.series] == ["alexnet", "vgg16"]
    assert [len(each.points) for each in found.series] == [18, 18]
    [change] = found.series[0].changes
    assert change.by_eager
    of_one = {"model": ["alexnet"], "metric": by_eager.LATENCIES}
    assert index.asked == [SPEEDUPS, of_one, {"metric": ("eager_latency",)}]


def test_latencies_are_not_read_for_nothing(index: Watched) -> None:
    """Where no speedup changed, or none since then."""
    wanted = {**SPEEDUPS, "model": ("vgg16",)}
    assert history_of(index, wanted, None, with_points=False).series[0].points == ()
    found = history_of(index, SPEEDUPS, "2027", with_points=False)
    assert [each.changes for each in found.series] == [(), ()]
    assert index.asked == [wanted, SPEEDUPS]


@pytest.mark.parametrize("metric", ["speedup", "status"])
def test_points_change_nothing(index: Watched, metric: str) -> None:
    """What is found is the same without them, also of runs that were added in another order."""
    early = indexed(4)
    for run in reversed(early.values()):
        old = msgspec.structs.replace(
            run, run_id=f"old-{run.run_id}", created_at=run.created_at.replace("2026", "2025")
        )
        rows = [row("alexnet", "speedup", 0.9), row("alexnet", "status", None, "crash")]
        index.add(IndexedDirectory(f"/runs/{old.run_id}", "1", 1, old.run_id), old, rows)
    found = [
        history_of(index, {"metric": (metric,)}, None, with_points=each) for each in (True, False)
    ]
    whole, brief = (each.series[0] for each in found)
    assert brief == msgspec.structs.replace(whole, points=())
    assert whole.last == whole.points[-1]
    assert [each.before for each in whole.changes] == (
        ["crash"] if metric == "status" else [pytest.approx(0.9), pytest.approx(10 / 7)]
    )


def test_a_run_among_earlier_ones(index: Watched) -> None:
    """Up to it: what came later is not known; of the first there is nothing to tell."""
    found = history_until(index, "run-12")
    assert found is not None
    ended, speedup, other = found.series
    assert (ended.metric, speedup.metric, other.identity["model"]) == (
        "status", "speedup", "vgg16",
    )  # fmt: skip
    assert [each.run_id for each in speedup.points] == [f"run-{each}" for each in range(13)]
    assert speedup.runs == 13
    [change] = speedup.changes
    assert change.by_eager
    before = history_until(index, "run-9")
    assert before is not None
    assert [each.changes for each in before.series] == [(), (), ()]
    assert history_until(index, "run-0") is None
    assert history_until(index, "no-such") is None


def test_of_what_a_run_did_not_measure_nothing_is_told(index: Watched) -> None:
    """Nor of what no earlier run did."""
    [last] = list(indexed(19).values())[18:]
    rows = [row("vgg16", "speedup", 1.2), row("dcgan", "speedup", 1.2)]
    index.add(IndexedDirectory("/runs/last", "1", 1, last.run_id), last, rows)
    found = history_until(index, last.run_id)
    assert found is not None
    assert [each.identity["model"] for each in found.series] == ["vgg16"]


def test_the_last_runs_are_enough(index: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """To be shown; what changed is found in all of them."""
    monkeypatch.setattr(of_index, "POINTS_OF_A_RUN", 4)
    found = history_until(index, "run-17")
    assert found is not None
    speedup = found.series[1]
    assert [each.run_id for each in speedup.points] == [f"run-{each}" for each in range(14, 18)]
    assert speedup.runs == 18
    assert [each.index for each in speedup.changes] == [10]
