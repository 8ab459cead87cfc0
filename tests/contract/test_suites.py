"""Every registered suite, as far as it opens without a checkout or a download."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from protocols import deviations

from dynamometer.common import registry
from dynamometer.common.interfaces.option import defaults
from dynamometer.common.interfaces.run_options import run_options
from dynamometer.common.interfaces.suite import Suite
from dynamometer.common.interfaces.suite_source import SuiteSource
from dynamometer.common.interfaces.workload import Workload
from dynamometer.common.planning.cases import build_cases
from dynamometer.common.planning.selection import Selection, select
from dynamometer.results.store.graphs.corpus import DESCRIPTION, Corpus, write_archive
from dynamometer.results.values.cases import BASELINE, ModelSpec, Scale
from dynamometer.results.values.graphs import Origin, SavedGraph

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = sorted(registry.targets("suites"))
OURS = [name for name in NAMES if registry.is_built_in("suites", name)]
ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"


def checkout(tmp_path: Path) -> dict[str, str]:
    """Make a checkout of two models that are never imported."""
    for name in ("alexnet", "resnet18"):
        folder = tmp_path / "torchbenchmark" / "models" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("raise RuntimeError('imported')\n")
    return {"torchbench_root": str(tmp_path), "offline_weights": "yes"}


def own_file(tmp_path: Path) -> dict[str, str]:
    """Make a file with two models that is never imported."""
    path = tmp_path / "mine.py"
    path.write_text("raise RuntimeError('imported')\ndef a(): ...\ndef b(): ...\n")
    return {"target": str(path)}


def corpus(tmp_path: Path) -> dict[str, str]:
    """Make a corpus of one graph that is never loaded."""
    made = Corpus.made(tmp_path / "corpus")
    key, origin = "ab" * 32, Origin(suite="mine", model="net")
    graph = SavedGraph(key=key, origin=origin, ops={}, inputs=(), torch="2.13")
    write_archive(made.path(key), {DESCRIPTION: msgspec.json.encode(graph)})
    return {"target": str(made.folder)}


def modules_of_projects(tmp_path: Path) -> dict[str, str]:
    """Make a corpus of two test cases that is never imported."""
    cases = "TESTCASES = [(A, lambda: ([], {}), lambda: ([], {})), (B, None, None)]"
    (tmp_path / "test_some_project.py").write_text(f"raise RuntimeError('imported')\n{cases}\n")
    return {"target": str(tmp_path)}


OPENINGS: dict[str, Callable[[Path], dict[str, str]]] = {
    "corpus": corpus,
    "parity": modules_of_projects,
    "torchbench-checkout": checkout,
    "user": own_file,
}
"""What a suite is opened with that needs to be told where its models are."""


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """The name of a suite."""
    return str(request.param)


@pytest.fixture
def suite(name: str, tmp_path: Path) -> Suite:
    """The suite, opened."""
    opening = OPENINGS.get(name, lambda path: {})(tmp_path)
    return registry.suite(name).open(opening)


def test_it_has_the_protocols_methods(suite: Suite, name: str) -> None:
    """Methods and their arguments are those of the interface."""
    assert deviations(SuiteSource, registry.suite(name)) == []
    assert deviations(Suite, suite) == []


def test_an_empty_command_line_opens_it_as_it_is(name: str) -> None:
    """No option of its own is needed, and none changes what it is opened with unless typed."""
    source = registry.suite(name)
    assert source.opening(defaults(run_options(of_suites=source.options))) == {}


def test_no_other_suite_takes_its_name_for_a_target(name: str) -> None:
    """What names models is told from what names suites."""
    assert registry.suite_of(name) is None


def test_importing_it_takes_no_time() -> None:
    """The help of every command looks at all suites, so it may import nothing heavy."""
    code = (
        "import sys\n"
        "from dynamometer.common import registry\n"
        "registry.suites()\n"
        "assert not {'torch', 'numpy', 'scipy', 'rich', 'rtoml', 'timm'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def names_of_suites(tree: ast.AST) -> list[str]:
    """Find what mentions a suite: imports of its folder, and comparisons with its name.

    Args:
        tree: of a module.
    """
    homes = {f"dynamometer.models.{name}" for name in OURS}
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)) if module in homes:
                found.append(module)
            case ast.Compare():
                values = [leaf.value for leaf in ast.walk(node) if isinstance(leaf, ast.Constant)]
                found += [value for value in values if value in OURS]
            case _:
                pass
    return found


def test_nothing_but_the_registry_names_a_suite() -> None:
    """Whoever adds one writes its script and its tables, and a line of the registry."""
    paths = [
        path for top in ("common", "results", "dynamo", "models") for path in
        (ROOT / top).rglob("*.py") if path != ROOT / "common" / "registry.py"
    ]  # fmt: skip
    assert len(paths) > 100
    assert {str(path): found for path in paths if (found := names_of_suites(parsed(path)))} == {}


def parsed(path: Path) -> ast.AST:
    """Read a module."""
    return ast.parse(path.read_text())


@pytest.mark.parametrize(
    "code",
    ["from dynamometer.models.torchbench import SUITE", "if suite == 'user': pass"],
)
def test_a_name_would_be_seen(code: str) -> None:
    """The check finds what it is for."""
    assert names_of_suites(ast.parse(code))


def test_every_script_is_a_suite() -> None:
    """Each is registered under its name; the folder of that name in `models` says what it is."""
    scripts = sorted(ROOT.glob("*.py"))
    assert len(scripts) >= 3
    for path in scripts:
        assert registry.target("suites", path.stem) == f"dynamometer.models.{path.stem}:SUITE"


def test_specs_describe_models(suite: Suite) -> None:
    """There is at least one model, names are unique and sorted, and asking twice is the same."""
    specs = list(suite.specs())
    assert specs
    assert all(isinstance(spec, ModelSpec) for spec in specs)
    names = [spec.name for spec in specs]
    assert names == sorted(set(names))
    assert list(suite.specs()) == specs


def test_specs_name_a_suite_that_workers_can_open(suite: Suite) -> None:
    """The suite that a case carries into its worker is a registered one."""
    for spec in suite.specs():
        assert spec.suite in NAMES


def test_every_spec_builds_into_a_case(suite: Suite) -> None:
    """At every scale and on every device each model gives one case, with an id of its own."""
    specs = select(suite.specs(), Selection())
    ids = set()
    for scale in Scale:
        for device in ("cpu", "cuda"):
            cases = build_cases(specs, Workload(arms=("eager",), device=device, scale=scale))
            assert [case.model for case in cases] == [spec.name for spec in specs]
            assert {case.arms for case in cases} == {(BASELINE, "eager")}
            ids |= {case.id for case in cases}
    assert len(ids) == len(specs) * len(Scale) * 2


@pytest.mark.parametrize("name", OURS)
def test_every_builder_is_there(suite: Suite) -> None:
    """`module:function` of each model that is run exists below `models`, read and not imported."""
    before = set(sys.modules)
    missing = []
    for spec in suite.specs():
        module, _, attribute = spec.build.partition(":")
        rooms = ("builders", "suites", spec.suite)
        paths = [MODELS / room / f"{module}.py" for room in rooms]
        path = next((each for each in paths if each.exists()), paths[0])
        tree = ast.parse(path.read_text()) if path.exists() else ast.Module([], [])
        defined = {
            node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        if attribute.partition(".")[0] not in defined and not spec.is_never_run:
            missing.append(spec.build)
    assert missing == []
    assert not {each for each in set(sys.modules) - before if each.startswith("torch")}


def test_preloading_nothing_is_allowed(suite: Suite) -> None:
    """A selection of which nothing can be preloaded is no fault."""
    suite.preload([])


@pytest.mark.parametrize("name", ["torchbench", "torchbench-checkout"])
def test_a_checkout_that_is_not_there_is_a_value_error(name: str, tmp_path: Path) -> None:
    """A folder that is no checkout is said so, as the command line expects it."""
    options = {"torchbench_root": str(tmp_path / "nowhere"), "offline_weights": "yes"}
    with pytest.raises(ValueError, match="nowhere is no checkout"):
        registry.suite(name).open(options)
