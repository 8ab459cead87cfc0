#!/usr/bin/env python3
"""Compare SQLite and DuckDB as the index of a year of runs.

    pip install --target /somewhere duckdb
    python bench/index.py --duckdb /somewhere --output docs/index-of-a-year.md

SQLite is used by the project's own code. DuckDB has the same tables and gets each run as one
transaction too, from a file of JSON lines, which is faster there than row by row. Each is measured
in a process of its own. What is timed here is the index alone: reading run directories is not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree
import msgspec

from dynamometer.results.store.index.index import Index, IndexedDirectory
from dynamometer.results.store.index.index_file import IndexFile
from dynamometer.results.values.history import IndexedRun, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

METRICS = ("status", "speedup", "compile_time", "memory_ratio", "eager_latency", "latency")
SETTING = {"cpu": "Made-up CPU", "cpus": "2", "threads": "2", "arm_budget_s": "1"}
MODEL = "model_17"
REPEATS = 5


class Candidate(Protocol):
    """What is measured."""

    def add(self, run: IndexedRun, rows: Sequence[Row]) -> None:
        """Put in a run."""
        ...

    def of_model(self) -> int:
        """Read all of a model, as `history MODEL` does, and return how many rows that is."""
        ...

    def of_all_models(self) -> int:
        """Read the speedups of all models, as `history --suite` does."""
        ...

    def of_two_runs(self, one: str, other: str) -> int:
        """Read what two runs have in common side by side, as a comparison would."""
        ...


class InSqlite:
    """The project's own."""

    def __init__(self, folder: Path) -> None:
        """Make it."""
        self._file = IndexFile(folder / "index.sqlite")
        self._index = Index(self._file)

    def add(self, run: IndexedRun, rows: Sequence[Row]) -> None:
        """Put in a run."""
        self._index.add(IndexedDirectory(f"/runs/{run.run_id}", "1", 1, run.run_id), run, rows)

    def of_model(self) -> int:
        """Read all of a model."""
        _, found = self._index.read({"model": (MODEL,)})
        return sum(len(each.points) for each in found)

    def of_all_models(self) -> int:
        """Read the speedups of all models."""
        _, found = self._index.read({"metric": ("speedup",)})
        return sum(len(each.points) for each in found)

    def of_two_runs(self, one: str, other: str) -> int:
        """Read what two runs have in common."""
        # The command itself reads the two run directories, which hold the samples.
        return len(self._file.read(SIDE_BY_SIDE, (one, other)))


SIDE_BY_SIDE = """
SELECT a.series, a.value, a.error, b.value, b.error FROM points a JOIN points b USING (series)
WHERE a.run = (SELECT id FROM runs WHERE run_id = ?)
AND b.run = (SELECT id FROM runs WHERE run_id = ?)
"""

_DUCKDB_TABLES = """
CREATE SEQUENCE numbers;
CREATE TABLE runs (id BIGINT, run_id TEXT UNIQUE, created_at TEXT, value TEXT);
CREATE TABLE series (
    id BIGINT DEFAULT nextval('numbers'), suite TEXT, model TEXT, metric TEXT, arm TEXT, key TEXT
);
CREATE TABLE points (
    series BIGINT, run BIGINT, status TEXT, value DOUBLE, low DOUBLE, high DOUBLE, error DOUBLE,
    n INTEGER, doubt TEXT
);
"""
_DUCKDB_COLUMNS = (
    "{suite: 'TEXT', model: 'TEXT', metric: 'TEXT', arm: 'TEXT', key: 'TEXT', status: 'TEXT',"
    " value: 'DOUBLE', low: 'DOUBLE', high: 'DOUBLE', error: 'DOUBLE', n: 'INTEGER',"
    " doubt: 'TEXT'}"
)


class InDuckdb:
    """The same tables in DuckDB."""

    def __init__(self, folder: Path) -> None:
        """Make it."""
        import duckdb  # type: ignore[import-not-found,unused-ignore]  # it is no dependency

        self._folder = folder
        self._file: Any = duckdb.connect(str(folder / "index.duckdb"))
        self._file.execute("SET threads = 2")
        self._file.execute(_DUCKDB_TABLES)
        self._runs = 0

    def add(self, run: IndexedRun, rows: Sequence[Row]) -> None:
        """Put in a run."""
        lines = self._folder / "rows.jsonl"
        with lines.open("wb") as file:
            for each in rows:
                identity = each.identity
                line = {
                    "suite": identity["suite"], "model": identity["model"],
                    "metric": each.metric, "arm": each.arm,
                    "key": json.dumps([identity, each.condition, run.setting], sort_keys=True),
                    **{name: getattr(each, name) for name in
                       ("status", "value", "low", "high", "error", "n", "doubt")},
                }  # fmt: skip
                file.write(msgspec.json.encode(line) + b"\n")
        self._runs += 1
        source = f"read_json('{lines}', format = 'newline_delimited', columns = {_DUCKDB_COLUMNS})"
        same = "(model, metric, arm, key)"
        text = msgspec.json.encode(run).decode()
        self._file.execute("BEGIN")
        self._file.execute(
            "INSERT INTO runs VALUES (?, ?, ?, ?)", (self._runs, run.run_id, run.created_at, text)
        )
        self._file.execute(
            "INSERT INTO series (suite, model, metric, arm, key) SELECT suite, model, metric, arm,"  # noqa: S608  names of ours, no text of users
            f" key FROM {source} r WHERE NOT EXISTS (SELECT 1 FROM series s WHERE s.model = r.model"
            " AND s.metric = r.metric AND s.arm = r.arm AND s.key = r.key)"
        )
        self._file.execute(
            f"INSERT INTO points SELECT id, {self._runs}, status, value, low, high, error, n, doubt"  # noqa: S608  names of ours, no text of users
            f" FROM {source} JOIN series USING {same}"
        )
        self._file.execute("COMMIT")

    def of_model(self) -> int:
        """Read all of a model."""
        return self._count(
            "SELECT p.* FROM points p JOIN series s ON p.series = s.id WHERE s.model = ?"
            " ORDER BY p.series, p.run", (MODEL,),
        )  # fmt: skip

    def of_all_models(self) -> int:
        """Read the speedups of all models."""
        return self._count(
            "SELECT p.* FROM points p JOIN series s ON p.series = s.id WHERE s.metric = 'speedup'"
            " ORDER BY p.series, p.run"
        )

    def of_two_runs(self, one: str, other: str) -> int:
        """Read what two runs have in common."""
        return self._count(SIDE_BY_SIDE, (one, other))

    def _count(self, query: str, values: Sequence[str] = ()) -> int:
        return len(self._file.execute(query, values).fetchall())


CANDIDATES: dict[str, Callable[[Path], Candidate]] = {"sqlite": InSqlite, "duckdb": InDuckdb}


def made_rows(number: int, models: int) -> Iterator[Row]:
    """Yield what one run would put in."""
    noise = random.Random(number)
    for model in range(models):
        identity = {
            "suite": "torchbench", "model": f"model_{model}", "mode": "inference",
            "device": "cpu", "dtype": "float32", "shapes": "static", "scale": "full",
            "settings": "", "batch_size": "16",
        }  # fmt: skip
        for metric in METRICS:
            value = None if metric == "status" else noise.lognormvariate(0.3, 0.01)
            yield Row(
                identity=identity, arm="inductor", metric=metric, status="pass", value=value,
                low=value, high=value, error=None if value is None else 0.008, n=3,
            )  # fmt: skip


def made_run(number: int) -> IndexedRun:
    """Return one of a year's runs."""
    packages = {f"package_{each}": f"1.{number // 30}" for each in range(30)}
    return IndexedRun(
        run_id=f"2026-{number:03}",
        created_at=f"2026-{1 + number // 31:02}-{1 + number % 31:02}T00:00:00+00:00",
        study="speedup",
        conditions={"torch": f"2.{number // 60}", **packages},
        setting=SETTING,
    )


def measure(name: str, runs: int, models: int) -> dict[str, float]:
    """Fill one of them, ask it, and return what that took."""
    load, _, _ = os.getloadavg()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as place:
        folder = Path(place)
        candidate = CANDIDATES[name](folder)
        adding_s = 0.0
        at_start = at_a_tenth = _peak_mb()
        for number in range(runs):
            rows = list(made_rows(number, models))
            run = made_run(number)
            started = time.perf_counter()
            candidate.add(run, rows)
            adding_s += time.perf_counter() - started
            if number == runs // 10:
                at_a_tenth = _peak_mb()
        count = runs * models * len(METRICS)
        found = {
            "processes that waited for a processor when it was begun": load,
            "rows": count,
            "adding, s": adding_s,
            "rows added a second": count / adding_s,
            "peak memory before, MB": at_start,
            "peak memory at a tenth of the rows, MB": at_a_tenth,
            "peak memory when all are added, MB": _peak_mb(),
            "file, MB": sum(
                each.stat().st_size for each in folder.iterdir() if each.suffix != ".jsonl"
            ) / 1e6,
        }  # fmt: skip
        for title, query in {
            f"all {runs * len(METRICS)} rows of a model, s": candidate.of_model,
            f"all {runs * models} speedups, s": candidate.of_all_models,
            f"two runs side by side, {models * len(METRICS)} rows, s": lambda: (
                candidate.of_two_runs("2026-001", f"2026-{runs - 1:03}")
            ),
        }.items():
            found[title] = statistics.median(_seconds(query) for _ in range(REPEATS))
        return {**found, "peak memory after the queries, MB": _peak_mb()}


def _seconds(query: Callable[[], int]) -> float:
    started = time.perf_counter()
    assert query() > 0
    return time.perf_counter() - started


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def main() -> int:
    """Measure each in a process of its own, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=365)
    parser.add_argument("--models", type=int, default=457)
    parser.add_argument("--duckdb", type=Path, help="where that package is installed")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--only", choices=CANDIDATES, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only:
        print(json.dumps(measure(asked.only, asked.runs, asked.models)))
        return 0
    if asked.duckdb:
        os.environ["PYTHONPATH"] = str(asked.duckdb)
    names = [each for each in CANDIDATES if each == "sqlite" or asked.duckdb]
    size = ("--runs", str(asked.runs), "--models", str(asked.models))
    found = [
        json.loads(
            subprocess.run(
                [sys.executable, __file__, "--only", name, *size],
                check=True, stdout=subprocess.PIPE,
            ).stdout
        )
        for name in names
    ]  # fmt: skip
    text = page(names, found)
    print(text)
    if asked.output:
        asked.output.write_text(text)
    return 0


def page(names: Sequence[str], found: Sequence[dict[str, float]]) -> str:
    """Return a table of both."""
    rows = [
        f"| {title} | {' | '.join(_number(each[title]) for each in found)} |" for title in found[0]
    ]
    return "\n".join(
        [
            "# The index of a year of runs", "",
            "Made by `bench/index.py`; queries are medians of 5, in the process that filled it.",
            "",
            f"| | {' | '.join(names)} |", f"|---|{'---|' * len(names)}", *rows, "",
        ]
    )  # fmt: skip


def _number(value: float) -> str:
    decimals = max(0, 3 - len(str(int(value)))) if value >= 1 else 4
    return f"{value:,.{decimals}f}"


if __name__ == "__main__":
    raise SystemExit(main())
