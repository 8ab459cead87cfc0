"""Sweeps over sizes in real workers: what each model, and each way to fail, has for a row."""

from __future__ import annotations

import csv
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dynamometer.common.command_line import cli

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FILE = Path(__file__).resolve().parent / "swept_nets.py"
SIZES = tuple(f"batch size {size}" for size in (8, 7, 6, 5, 4))


@dataclass(frozen=True)
class Swept:
    """What a run printed, and the rows of each model."""

    printed: str
    rows: Mapping[str, Sequence[Mapping[str, str]]]

    def by_size(self, model: str, column: str) -> dict[str, str]:
        """Give what a column says of each size."""
        return {row["size"]: row[column] for row in self.rows[model]}


def sweep(folder: Path, *words: str) -> Swept:
    """Sweep once over the sizes of all models, or of those that are named, with few calls."""
    asked = ["run", str(FILE), "--sweep-sizes", "-r", "1", "-n", "3", "-t", "1", *words]
    with redirect_stdout(StringIO()) as printed:
        assert cli.main(None, [*asked, "--output-dir", str(folder)]) == 0
    (table,) = folder.glob("*/*_sizes.csv")
    rows: dict[str, list[Mapping[str, str]]] = {}
    for row in csv.DictReader(table.read_text().splitlines()):
        rows.setdefault(row["name"], []).append(row)
    return Swept(printed.getvalue(), rows)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """Sweep over all models, with sizes that nothing is said about."""
    return sweep(tmp_path_factory.mktemp("sizes"), "--backend", "swept_nets:by_width")


@pytest.mark.parametrize(
    ("words", "shapes"),
    [("--dynamic-shapes", "dynamic"), ("--dynamic-batch-only", "dynamic_batch")],
)
def test_symbols_from_the_start_need_no_second_compilation(
    words: str, shapes: str, tmp_path: Path
) -> None:
    """Five sizes, each with a row."""
    found = sweep(tmp_path, words, "--backend", "eager", "-k", "^net$")
    assert tuple(found.by_size("net", "size")) == SIZES
    assert set(found.by_size("net", "shapes").values()) == {shapes}
    assert set(found.by_size("net", "recompiles").values()) == {"0"}


def test_untold_the_second_size_compiles_again(swept: Swept) -> None:
    """Five sizes, each with a row and in the output, and with both ratios."""
    assert tuple(swept.by_size("net", "size")) == SIZES
    assert set(swept.by_size("net", "shapes").values()) == {"varying"}
    assert set(swept.by_size("net", "recompiles").values()) == {"1"}
    assert all(row["speedup"] and row["over_static"] for row in swept.rows["net"])
    assert all(swept.printed.count(size) >= 1 for size in SIZES)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("no_fives", "not timed: BackendCompilerFailed"),
        ("wrong_fives", "not timed: output: 100 of 100 elements are wrong"),
        ("tired_fives", "not timed: RuntimeError: tired"),
    ],
)
def test_a_size_that_does_not_run_compiled_alone_loses_no_other(
    model: str, says: str, swept: Swept
) -> None:
    """It has its figure against eager, and the reason why it has no other, right or wrong."""
    assert says in swept.printed
    alone = {size: bool(value) for size, value in swept.by_size(model, "over_static").items()}
    assert alone == {size: size != "batch size 5" for size in SIZES}
    assert all(swept.by_size(model, "speedup").values())
    assert set(swept.by_size(model, "fallbacks").values()) == {"0"}


def test_what_ends_the_process_at_one_size_leaves_those_before_it(swept: Swept) -> None:
    """They have all figures; of the others it is said how it ended, and the arm is not to blame."""
    assert tuple(swept.by_size("fatal_fives", "size")) == SIZES[:3]
    assert all(row["speedup"] and row["over_static"] for row in swept.rows["fatal_fives"])
    assert {row["status"] for row in swept.rows["fatal_fives"]} == {"pass"}
    (line,) = [each for each in swept.printed.splitlines() if each.split()[1:2] == ["fatal_fives"]]
    assert line.endswith("2 sizes left out; screening: one replicate (-r 3 for more)")
    assert "not timed: killed by SIGSEGV at stage compile of swept_nets:by_width" in swept.printed


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("one_size", "SKIP (eager) it runs at one size only"),
        ("own_calls", "SKIP (load) it has several calls of its own"),
        ("wrong", "FAIL_ACCURACY (compare)"),
        ("fails", "FAIL (compile) the backend failed on every graph: NotImpl"),
    ],
)
def test_a_sweep_of_what_does_not_compute_is_none(model: str, says: str, swept: Swept) -> None:
    """Each says why, and what was observed before, and no size has a speedup."""
    (line,) = [each for each in swept.printed.splitlines() if each.split()[1:2] == [model]]
    assert says in line
    assert (" compilations, " in line) == (model in {"wrong", "fails"})
    (row,) = swept.rows[model]
    assert (row["size"], row["speedup"]) == ("", "")
