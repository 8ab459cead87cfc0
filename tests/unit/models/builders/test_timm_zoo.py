"""The TIMM suite: its names, its changes of published arguments, and one small model of each."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dynamometer.models.suites.timm_names import TimmModels, architectures
from dynamometer.models.timm_models import SUITE
from dynamometer.results.values.cases import Case, ModelSpec, Scale

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[4]
TABLES = list(TimmModels().specs())
EVERYTHING = list(TimmModels(everything=True).specs())


@pytest.fixture(scope="module")
def timm() -> Any:
    """Import timm, if it is installed."""
    pytest.importorskip("torch")
    from dynamometer.models.builders.torchvision_schemas import define_missing_schemas

    define_missing_schemas()
    return pytest.importorskip("timm")


@pytest.fixture(scope="module")
def zoo(timm: Any) -> ModuleType:
    """Import the builders."""
    from dynamometer.models.builders import timm_zoo

    return timm_zoo


def test_architectures_are_those_of_the_registry(timm: Any) -> None:
    """What is read from the sources is what timm itself lists."""
    assert list(architectures()) == sorted(timm.list_models())


@pytest.mark.usefixtures("timm")
def test_reading_the_names_imports_nothing_heavy() -> None:
    """Neither the names nor the specs of all architectures need torch or timm."""
    code = (
        "import sys\n"
        "from dynamometer.models.timm_models import SUITE\n"
        "assert len(list(SUITE.open({'all': 'yes'}).specs())) > 1000\n"
        "assert not {'torch', 'timm', 'torchvision'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_without_timm_there_are_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where timm isn't installed the tables alone are listed."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert architectures() == ()
    assert list(TimmModels(everything=True).specs()) == TABLES


@pytest.mark.parametrize("specs", [TABLES, EVERYTHING], ids=["tables", "everything"])
def test_specs_are_unique_and_sorted(specs: list[ModelSpec]) -> None:
    """No model is there twice, be it by name or alias."""
    names = [spec.name for spec in specs]
    assert names == sorted(set(names))
    names += [alias for spec in specs for alias in spec.aliases]
    assert len(names) == len(set(names))


def test_the_option_adds_the_rest() -> None:
    """The suite has the tables, and with `all` every architecture."""
    assert list(SUITE.open({}).specs()) == TABLES
    specs = list(SUITE.open({"all": "yes"}).specs())
    assert specs == EVERYTHING
    assert {spec.name for spec in specs} >= set(architectures())
    assert [spec for spec in specs if spec in TABLES] == TABLES


@pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.name)
def test_tables_name_todays_architectures(spec: ModelSpec, timm: Any) -> None:
    """A table has timm's name; its images and classes are the published ones."""
    assert spec.name in architectures()
    assert spec.options["architecture"] == spec.name
    published = timm.get_pretrained_cfg(spec.name)
    size = spec.options["image_size"]
    assert published.input_size == (3, size, size)
    assert published.num_classes == spec.options.get("num_classes", 1000)


@pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.name)
def test_aliases_are_names_timm_no_longer_lists(spec: ModelSpec, timm: Any) -> None:
    """An alias is a deprecated name or one with weights; OpenCLIP's name is neither."""
    for alias in spec.aliases:
        assert alias not in timm.list_models()
        assert alias.startswith("ViT-B-16-SigLIP") or timm.is_model(alias.partition(".")[0])


@dataclass(frozen=True)
class Stage:
    """Like the configurations of timm's stages."""

    kind: str
    depth: int


@pytest.mark.parametrize(
    ("published", "changes", "expected"),
    [
        pytest.param(4, 2, 2, id="a value"),
        pytest.param((1, 2, 3), [4, 5], [4, 5], id="values"),
        pytest.param({"a": 1, "b": 2}, {"b": 3, "c": 4}, {"a": 1, "b": 3, "c": 4}, id="names"),
        pytest.param(Stage("x", 3), {"depth": 1}, Stage("x", 1), id="fields"),
        pytest.param([{"a": 1}, {"a": 2}], [{}], [{"a": 1}], id="the first stages"),
        pytest.param(
            (Stage("x", 3), (Stage("y", 4), Stage("z", 5))),
            [{"depth": 1}, [{}, {"depth": 2}]],
            (Stage("x", 1), (Stage("y", 4), Stage("z", 2))),
            id="stages of stages",
        ),
        pytest.param([[3, 16]], [[5, 8], [5, 9]], [[5, 8], [5, 9]], id="rows of values"),
    ],
)
def test_changes_keep_what_they_dont_mention(
    published: Any, changes: Any, expected: Any, zoo: ModuleType
) -> None:
    """A table changes some arguments; types and everything else stay as published."""
    result = zoo.changed(published, changes)
    assert result == expected
    assert type(result) is type(expected)


def load(spec: ModelSpec, scale: Scale) -> Any:
    """Build a model as a worker does."""
    import torch

    case = Case(suite=spec.suite, model=spec.name, arms=("eager",), scale=scale, batch_size=2)
    torch.manual_seed(0)
    return TimmModels().load(spec, case)


def outputs(loaded: Any) -> Any:
    """Run a model without gradients."""
    import torch

    with torch.no_grad():
        return loaded.module.eval()(*loaded.args)


@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize(
    "name", ["botnet26t_256", "convmixer_768_32", "mixer_b16_224", "mobilenetv2_100"]
)
def test_a_small_one_sees_its_images(name: str) -> None:
    """Built with random weights, two images give finite outputs that differ."""
    spec = next(spec for spec in TABLES if spec.name == name)
    loaded = load(spec, Scale.TINY)
    first, second = outputs(loaded)
    assert first.isfinite().all()
    assert (first - second).abs().max() > 1e-3 * first.abs().max() > 0


@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize(
    ("name", "size", "blocks"),
    [("vit_small_patch16_384", 32, 1), ("test_vit", 32, 1), ("resnet10t", 32, None)],
)
def test_others_are_as_small_as_they_allow(name: str, size: int, blocks: int | None) -> None:
    """Any architecture is built with the fewest pixels and layers it takes."""
    spec = next(spec for spec in EVERYTHING if spec.name == name)
    loaded = load(spec, Scale.TINY)
    assert loaded.args[0].shape == (2, 3, size, size)
    assert blocks is None or len(loaded.module.blocks) == blocks
    assert outputs(loaded).isfinite().all()


@pytest.mark.usefixtures("timm")
def test_others_are_published_ones_at_full_scale() -> None:
    """Without an override nothing is taken away."""
    spec = next(spec for spec in EVERYTHING if spec.name == "test_vit")
    loaded = load(spec, Scale.FULL)
    assert loaded.args[0].shape == (2, 3, 160, 160)
    assert len(loaded.module.blocks) > 1


def test_timm_is_left_as_it_was(timm: Any, zoo: ModuleType) -> None:
    """Arguments are changed for one model and not for those built afterwards."""
    before = timm.create_model("test_vit")
    smaller = {"depth": 1, "embed_dim": 32}
    zoo.image(batch_size=1, architecture="test_vit", image_size=32, arguments=smaller)
    with pytest.raises(TypeError, match="no_such_argument"):
        zoo.image(
            batch_size=1, architecture="test_vit", image_size=32, arguments={"no_such_argument": 1}
        )
    after = timm.create_model("test_vit")
    assert repr(after) == repr(before)
