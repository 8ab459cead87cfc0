"""Every registered study, as the rest of the program sees it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest
from protocols import deviations

from dynamometer.common import registry
from dynamometer.common.interfaces.option import Request, defaults
from dynamometer.common.interfaces.run_options import run_options
from dynamometer.common.interfaces.workload import Workload
from dynamometer.common.planning.plan import asked_study
from dynamometer.common.studies.study import Study, options_of
from dynamometer.results.reports.sinks import Reporter
from dynamometer.results.values.records import Record, Status

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(registry.targets("studies"))
OURS = [name for name in NAMES if registry.is_built_in("studies", name)]
FOLDERS = {registry.target("studies", name).split(".")[-2] for name in OURS}


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """The name of a study."""
    return str(request.param)


@pytest.fixture
def study(name: str) -> Study:
    """The study."""
    return registry.study(name)


@pytest.fixture
def nothing() -> Request:
    """What an empty command line asks for."""
    return defaults(run_options(options_of(*registry.studies())))


def failed(name: str) -> list[Record]:
    """Make a case that failed, of a study."""
    outcome = factories.failure(Status.TIMEOUT, reason="killed after 3 s")
    case = factories.case()
    return [factories.record(case, outcome=outcome, experiments=(name,))]


def test_it_has_the_protocols_members(study: Study) -> None:
    """Methods and their arguments are those of the interface."""
    assert deviations(Study, study) == []
    assert deviations(Reporter, study) == []


def test_its_name_is_that_of_its_first_experiment(
    study: Study, name: str, nothing: Request
) -> None:
    """Records name their experiments, and so their study."""
    assert study.experiments(nothing)[0] == name
    for each in study.experiments(nothing):
        assert study.experiment(each)


def test_nothing_asks_for_it_but_its_option(study: Study, nothing: Request) -> None:
    """Without an option there is one study that a run makes."""
    studies = registry.studies()
    assert asked_study(nothing, studies) is registry.study(registry.DEFAULT_STUDY)
    if study.asked_by is not None:
        assert asked_study(nothing.but(study.asked_by, value=True), studies) is study


def test_it_runs_at_least_once(study: Study, nothing: Request) -> None:
    """There is a least number of replicates, and no fewer than that at most."""
    least, most = study.replicates(nothing)
    assert 1 <= least <= most
    assert study.replicate_name(0) != study.replicate_name(1)
    arms = study.workload(Workload(arms=("inductor",)), nothing).arms
    assert arms in {("inductor",), ("eager",), ()}


def test_a_failure_is_told_and_ends_its_case(study: Study, name: str) -> None:
    """On the terminal and in a file; nothing is repeated for ever."""
    records = failed(name)
    text = "\n".join([*study.lines(records), *study.closing_lines([records])])
    assert "killed after 3 s" in text
    for compatible in (False, True):
        for each in study.rows(records, compatible=compatible):
            (table,) = (
                table for table in study.tables() if each.file.endswith(f"_{table.kind}.csv")
            )
            known = tuple(column.name for column in table.columns)
            assert set(each.columns) <= set(known) if compatible else each.columns == known
    part, lines, closing_lines = study.on_page([records])
    assert lines == [study.lines(records)]
    assert closing_lines == study.closing_lines([records])
    assert [each.case for each in part.looks] == [0]
    assert "killed after 3 s" in part.looks[0].text
    assert sum(each.counted for each in part.groups) >= 1
    protocol = factories.plan().protocol
    many = [msgspec.structs.replace(records[0], replicate=each) for each in range(50)]
    assert study.stop_reason(many, protocol)
    taught = msgspec.structs.replace(records[0].case, arms=study.taught_arms(records[0].case))
    assert study.comparable(records[0]).case == taught
    assert isinstance(study.observed([records]), dict)
    compared = study.compared(records)
    assert {(each.passed, each.outcome.reason) for each in compared} == {
        (False, "killed after 3 s")
    }


def test_its_tables_are_documented(study: Study) -> None:
    """Each table and column in a sentence, and no column twice."""
    for table in study.tables():
        names = [each.name for each in table.columns]
        assert len(names) == len(set(names))
        assert all(each.doc.endswith(".") for each in (table, *table.columns))


def names_of_studies(tree: ast.AST, own: Collection[str] = ()) -> Sequence[str]:
    """Find what mentions a study: imports from its folder, and comparisons with its name.

    Args:
        tree: of a module.
        own: folders of studies that it may mention.
    """
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)):
                parts = module.split(".")
                if "studies" in parts and FOLDERS.difference(own) & set(parts):
                    found.append(module)
            case ast.Compare():
                values = [leaf.value for leaf in ast.walk(node) if isinstance(leaf, ast.Constant)]
                found += [value for value in values if value in {*OURS, *FOLDERS}]
            case _:
                pass
    return found


BUILDS_ON = {"calibration": {"speedup"}, "recording": {"graphs"}, "tuning": {"speedup"}}
"""Studies that repeat the experiments of another."""

EXCEPTIONS = {"common/command_line/calibrate.py"}
"""A command that is of one study alone."""


def test_nothing_but_the_registry_names_a_study() -> None:
    """Whoever adds one edits its own folder and a line of the registry."""
    seen = 0
    for top in ("common", "results", "dynamo", "models"):
        for path in (ROOT / top).rglob("*.py"):
            name = str(path.relative_to(ROOT))
            if name in {"common/registry.py", *EXCEPTIONS}:
                continue
            folder = path.parent.name if path.parents[1].name == "studies" else ""
            own = {folder, *BUILDS_ON.get(folder, ())}
            assert names_of_studies(ast.parse(path.read_text()), own) == [], name
            seen += 1
    assert seen > 100


@pytest.mark.parametrize(
    "code",
    [
        "from dynamometer.common.studies.coverage.study import STUDY",
        "from dynamometer.common.studies.sizes import report",
        "if plan.experiments[0] == 'speedup': pass",
        "x = 'coverage' in plan.experiments",
    ],
)
def test_a_name_would_be_seen(code: str) -> None:
    """The check finds what it is for."""
    assert names_of_studies(ast.parse(code))
