"""What the tables of the embedded suite promise, checked without building a model."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from dynamometer.common import registry
from dynamometer.common.errors import DynamometerError
from dynamometer.models.suites import tables
from dynamometer.models.suites.tables import TableSuite
from dynamometer.results.values.cases import Overrides, Scale

if TYPE_CHECKING:
    from dynamometer.results.values.cases import ModelSpec

ROOT = Path(__file__).resolve().parents[4]
MODELS = ROOT / "models"
SUITES = [
    TableSuite(name) for name in registry.targets("suites") if [*MODELS.glob(f"{name}/*.toml")]
]
SPECS = [spec for suite in SUITES for spec in suite.specs()]
BUILT = [spec for spec in SPECS if not spec.is_never_run]
QUICK_AT_MOST = 10


def ids(spec: ModelSpec) -> str:
    """Name a test by its suite and model."""
    return f"{spec.suite}-{spec.name}"


def builder(spec: ModelSpec) -> ast.FunctionDef:
    """Find the function that builds a model, without importing anything."""
    module, function = spec.build.split(":")
    tree = ast.parse((MODELS / "builders" / f"{module}.py").read_text())
    return next(
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function
    )


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_names_are_unique_over_all_tables(suite: TableSuite) -> None:
    """A model is described once, and no alias is another model's name."""
    names = [
        name for path in suite.tables for name in msgspec.toml.decode(
            path.read_bytes(), type=dict[str, object]
        )
    ]  # fmt: skip
    specs = list(suite.specs())
    assert sorted(names) == [spec.name for spec in specs]
    names += [alias for spec in specs for alias in spec.aliases]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[mine]\ntask = 1", "'mine' is not the table of a model: Expected `str`, got `int`"),
        ("[mine]\nsmoll = {}", "'mine' is not the table of a model: .*unknown field `smoll`"),
        ("stray = 1\n[mine]", "'stray' is not the table of a model: Expected `object`"),
        ("[mine", "is not TOML: .*line 1"),
        ("# \udcff", "line 1 can't be read: byte 0xff is not UTF-8"),
    ],
)
def test_a_damaged_table_is_named(
    text: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong is said with its file and its table."""
    (tmp_path / "suite").mkdir()
    file = tmp_path / "suite" / "some.toml"
    file.write_bytes(text.encode(errors="surrogateescape"))
    monkeypatch.setattr(tables, "_HERE", tmp_path)
    with pytest.raises(DynamometerError, match=f"{re.escape(str(file))}.*{fault}"):
        TableSuite("suite").specs()


def test_a_table_says_how_dynamo_is_to_treat_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the words docs/capture.md has."""
    page = (ROOT / "docs" / "capture.md").read_text()
    example = page[page.index("    [some_model.overrides]") :].partition("\n\n")[0]
    fields = 'task = "a"\norigin = "b"\nbuild = "c:d"\nbatch_size = { cpu = 1 }'
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "some.toml").write_text(f"[some_model]\n{fields}\n{example}\n")
    monkeypatch.setattr(tables, "_HERE", tmp_path)
    (spec,) = TableSuite("suite").specs()
    assert spec.overrides == Overrides(
        allow_in_graph=("my_package.ops:fused",),
        substitute=(("my_package.layers:noisy", "my_package.layers:quiet"),),
    )


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_quick_is_a_handful(suite: TableSuite) -> None:
    """The quick selection is small and runs everywhere."""
    quick = [spec for spec in suite.specs() if spec.quick]
    assert 3 <= len(quick) <= QUICK_AT_MOST
    assert not any(spec.is_never_run for spec in quick)


@pytest.mark.parametrize("spec", SPECS, ids=ids)
def test_a_table_says_what_a_reader_needs(spec: ModelSpec) -> None:
    """Name, task and origin are there, and every exception has its reason."""
    assert re.fullmatch(r"[\w.-]+", spec.name)  # it names a log file and a test
    assert spec.task
    assert spec.origin
    assert (spec.tolerance is None) == (spec.tolerance_reason is None)
    for skip in spec.skips:
        assert len(skip.reason.split()) >= 3
        assert set(skip.devices) <= {"cpu", "cuda"}


@pytest.mark.parametrize("spec", BUILT, ids=ids)
def test_builders_take_what_the_tables_give(spec: ModelSpec) -> None:
    """At every scale and on every device the options are arguments of the builder, and enough."""
    arguments = builder(spec).args
    assert not arguments.args
    names = [each.arg for each in arguments.kwonlyargs]
    needed = {
        name for name, default in zip(names, arguments.kw_defaults, strict=True) if default is None
    }
    for scale in Scale:
        for device in ("cpu", "cuda"):
            given = {"batch_size", *spec.options_at(scale, device)}
            assert needed <= given, (scale, device)
            assert arguments.kwarg or given <= set(names), (scale, device)


@pytest.mark.parametrize("spec", BUILT, ids=ids)
def test_batch_sizes_are_positive(spec: ModelSpec) -> None:
    """TorchBench's batch size is known for both device types, at every scale."""
    assert {"cpu", "cuda"} <= set(spec.batch_size)
    for scale in Scale:
        for device in ("cpu", "cuda"):
            size = spec.batch_size_at(scale, device)
            assert size is not None
            assert size > 0


@pytest.mark.parametrize("spec", BUILT, ids=ids)
def test_what_varies_is_an_option(spec: ModelSpec) -> None:
    """At every scale it is a number, and a multiple of what it must be one of."""
    for scale in Scale:
        for device in ("cpu", "cuda"):
            options = spec.options_at(scale, device)
            assert all(options[name] % multiple == 0 for name, multiple in spec.varies.items())


@pytest.mark.parametrize("spec", BUILT, ids=ids)
def test_scales_shrink(spec: ModelSpec) -> None:
    """Where a scale replaces a number by a number, it is no larger than the published one."""
    for overrides in (spec.small, spec.tiny):
        for name, value in overrides.items():
            full = spec.options.get(name)
            if name == "batch_size":
                assert value <= max(spec.batch_size.values())
            elif isinstance(full, int | float) and isinstance(value, int | float):
                assert value <= full, name


def test_every_model_is_shrunk() -> None:
    """`--scale tiny` makes every model that is built smaller than published."""
    assert [spec.name for spec in BUILT if not spec.tiny] == []


def test_required_packages_are_in_the_extra() -> None:
    """`pip install '.[models]'` brings everything that a runnable model needs."""
    setup = (ROOT / "setup.cfg").read_text()
    extra = setup[setup.index("\nmodels =") : setup.index("\ntest =")]
    declared = set(re.findall(r"^    ([\w-]+)", extra, re.MULTILINE))
    assert {package for spec in BUILT for package in spec.requires} <= declared
