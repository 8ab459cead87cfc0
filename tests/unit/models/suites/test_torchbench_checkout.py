"""The suite over a checkout of pytorch/benchmark, on a small checkout made for each test."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

import msgspec
import pytest

from dynamometer.models.suites.torchbench_checkout import (
    MODELS,
    ONE_SCALE,
    TABLE,
    Table,
    TorchBenchCheckout,
)
from dynamometer.results.values.cases import BASELINE, Case, Mode, Scale

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.results.values.cases import ModelSpec

PLAIN = """
import torch
class Model:
    task = NLP.LANGUAGE_MODELING if False else None
    def __init__(self, test, device, batch_size=None, extra_args=[]):
        self.asked = (test, device, batch_size, tuple(extra_args))
        self.module = torch.nn.Linear(3, 2)
        self.module.asked = self.asked
    def get_module(self):
        return self.module, [torch.ones(self.asked[2] or 5, 3)]
"""
REFUSING = """
class Model:
    def __init__(self, test, device, batch_size=None, extra_args=[]):
        raise NotImplementedError("The eval test only supports CUDA.")
"""
DOWNLOADING = """
import torch
from torch.hub import load_state_dict_from_url
class Model:
    def __init__(self, test, device, batch_size=None, extra_args=[]):
        self.module = torch.nn.Linear(3, 2)
        self.module.load_state_dict(load_state_dict_from_url("https://host.invalid/linear.pth"))
        self.module.load_state_dict(torch.hub.load_state_dict_from_url("file:///none.pth")["model"])
    def get_module(self):
        return self.module, {"input": torch.ones(1, 3)}
"""
RESEEDING = """
import torch
class Model:
    def __init__(self, test, device, batch_size=None, extra_args=[]):
        torch.manual_seed = lambda seed: None
    def get_module(self):
        return torch.nn.Identity(), torch.ones(1)
"""
JITTABLE = """
import sys, torch
class Model:
    def __init__(self, test, device, batch_size=None, extra_args=[]):
        self.module = sys.modules["torch_geometric.compile"].to_jittable(torch.nn.Identity())
    def get_module(self):
        return self.module, (torch.ones(1),)
"""
LAZY = """
raise AssertionError("imported")
from torchbenchmark.util.framework.timm.model_factory import TimmModel
class Model(TimmModel):
    task = COMPUTER_VISION.CLASSIFICATION
"""


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """Make a checkout, and forget what of it was imported."""
    models = tmp_path / "torchbenchmark" / "models"
    for name, source in {
        "downloading": DOWNLOADING,
        "jittable": JITTABLE,
        "plain": PLAIN,
        "refusing": REFUSING,
        "reseeding": RESEEDING,
    }.items():
        add_model(tmp_path, name, source)
    (models / "not_a_model").mkdir()
    (models / "__init__.py").touch()
    (models.parent / "__init__.py").touch()
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchbenchmark"]:
        del sys.modules[name]


def add_model(root: Path, name: str, source: str = "") -> None:
    """Add a model's folder to a checkout."""
    folder = root / "torchbenchmark" / "models" / name
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(source)


def spec_of(root: Path, name: str, *, offline: bool = True) -> ModelSpec:
    """Find the spec of one model."""
    specs = TorchBenchCheckout(root, offline_weights=offline).specs()
    return next(spec for spec in specs if spec.name == name)


def load(root: Path, name: str, *, offline: bool = True, **changes: object) -> LoadedModel:
    """Load one model of a checkout."""
    plain = Case(suite="torchbench", model=name, arms=(BASELINE,))
    case = msgspec.structs.replace(plain, **changes)
    checkout = TorchBenchCheckout(root, offline_weights=offline)
    return checkout.load(spec_of(root, name, offline=offline), case)


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    """The message names the path, what was looked for, and where to get a checkout."""
    with pytest.raises(ValueError, match="no checkout") as caught:
        TorchBenchCheckout(tmp_path, offline_weights=True)
    for part in (str(tmp_path), str(MODELS), "git clone"):
        assert part in str(caught.value)


def test_specs_list_the_model_folders_without_importing(root: Path) -> None:
    """A folder is a model if it has an __init__.py, and describing it executes nothing."""
    add_model(root, "lazy", LAZY)
    names = [spec.name for spec in TorchBenchCheckout(root, offline_weights=True).specs()]
    assert names == ["downloading", "jittable", "lazy", "plain", "refusing", "reseeding"]
    assert "torchbenchmark" not in sys.modules


def test_a_spec_tells_task_and_package_from_the_source(root: Path) -> None:
    """The task is the one the class names, the package that of its framework."""
    add_model(root, "lazy", LAZY)
    spec = spec_of(root, "lazy")
    assert (spec.task, spec.requires) == ("classification", ("timm",))
    assert spec_of(root, "refusing").task == "other tasks"


def test_a_spec_has_the_packages_of_the_table(root: Path) -> None:
    """What a model imports beyond its framework is in the table."""
    add_model(root, "dlrm")
    assert spec_of(root, "dlrm").requires == ("onnx", "sklearn")


def test_missing_data_is_a_skip_until_it_is_there(root: Path) -> None:
    """A model whose data set was downloaded into the checkout is not skipped."""
    add_model(root, "yolov3")
    reason = spec_of(root, "yolov3").skip_reason("cpu")
    assert reason is not None
    assert "coco128" in reason
    (root / "torchbenchmark" / "data" / ".data" / "coco128").mkdir(parents=True)
    assert spec_of(root, "yolov3").skip_reason("cpu") is None


def test_a_missing_variable_is_a_skip_until_it_is_set(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gated weights are no obstacle to someone with a token."""
    add_model(root, "llama_v2_7b_16h")
    monkeypatch.delenv("HUGGING_FACE_HUB_TOKEN", raising=False)
    assert spec_of(root, "llama_v2_7b_16h").skip_reason("cuda") is not None
    monkeypatch.setenv("HUGGING_FACE_HUB_TOKEN", "a token")
    assert spec_of(root, "llama_v2_7b_16h").skip_reason("cuda") is None


def test_a_missing_package_is_a_skip_until_it_is_installed(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What the package index doesn't have can still be installed from source."""
    add_model(root, "torch_multimodal_clip")
    assert spec_of(root, "torch_multimodal_clip").skip_reason("cpu") is not None
    (tmp_path / "torchmultimodal.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert spec_of(root, "torch_multimodal_clip").skip_reason("cpu") is None


def test_an_offline_obstacle_is_none_where_downloads_are_allowed(root: Path) -> None:
    """A model that asks the hub for more than weights is skipped only offline."""
    add_model(root, "hf_clip")
    assert spec_of(root, "hf_clip", offline=True).skip_reason("cpu") is not None
    assert spec_of(root, "hf_clip", offline=False).skip_reason("cpu") is None


def test_cuda_only_code_is_skipped_on_the_cpu_alone(root: Path) -> None:
    """The skip is limited to the devices it holds for."""
    add_model(root, "moco")
    spec = spec_of(root, "moco")
    assert spec.skip_reason("cpu") is not None
    assert spec.skip_reason("cuda") is None


def test_the_table_gives_every_skip_a_reason_and_every_configuration_a_type() -> None:
    """A reason is a phrase, and a configuration without its type can't be built."""
    table = msgspec.toml.decode(TABLE.read_bytes(), type=Table)
    assert all("model_type" in values for values in table.configurations.values())
    reasons = [obstacle.reason for known in table.models.values() for obstacle in known.obstacles]
    assert all(len(reason.split()) > 3 for reason in reasons)


def test_a_list_of_inputs_becomes_positional(root: Path) -> None:
    """The module runs on what get_module gave, and nothing was substituted."""
    loaded = load(root, "plain")
    assert loaded.module(*loaded.args, **loaded.kwargs).shape == (5, 2)
    assert (dict(loaded.kwargs), loaded.notes) == ({}, ())


@pytest.mark.parametrize(("asked", "given"), [(None, None), (0, None), (4, 4)])
def test_the_model_is_asked_for_the_case(root: Path, asked: int | None, given: int | None) -> None:
    """Device and batch size are the case's; none, or 0, leaves the model its own."""
    loaded = load(root, "plain", batch_size=asked)
    assert loaded.module.asked == ("eval", "cpu", given, ("--precision", "fp32"))


def test_training_asks_for_the_training_setup(root: Path) -> None:
    """A training case gets the module and the inputs that the checkout trains with."""
    loaded = load(root, "plain", mode=Mode.TRAINING)
    assert loaded.module.asked == ("train", "cpu", None, ("--precision", "fp32"))


def test_another_scale_is_noted(root: Path) -> None:
    """A reader of the record learns that the model was not shrunk."""
    assert load(root, "plain", scale=Scale.TINY).notes == (ONE_SCALE,)


def test_a_model_that_refuses_is_heard(root: Path) -> None:
    """The worker turns the model's own NotImplementedError into a skip; the path is clean."""
    path = list(sys.path)
    with pytest.raises(NotImplementedError, match="only supports CUDA"):
        load(root, "refusing")
    assert sys.path == path


@pytest.mark.parametrize(
    "source", ["", "class Model:\n    def __init__(self, device=None, jit=False): ..."]
)
def test_a_model_of_another_revision_is_named(root: Path, source: str) -> None:
    """With its file, and a revision whose models can be built."""
    add_model(root, "older", source or "Model = None")
    with pytest.raises(TypeError, match=r"older/__init__.py has no class Model with .* 0e83c440"):
        load(root, "older")


def test_a_source_that_is_no_text_is_listed(root: Path) -> None:
    """The others are listed with it; importing it says what is wrong."""
    add_model(root, "odd")
    (root / MODELS / "odd" / "__init__.py").write_bytes(b"# \xe9\n")
    assert spec_of(root, "odd").name == "odd"


def test_inputs_of_an_unknown_kind_are_an_error(root: Path) -> None:
    """A lone tensor is not guessed to be an argument, and the seeding function is put back."""
    import torch

    before = torch.manual_seed
    with pytest.raises(TypeError, match="Tensor"):
        load(root, "reseeding")
    assert torch.manual_seed is before


def test_downloads_are_replaced_by_random_weights(root: Path) -> None:
    """Names imported before are covered too, inputs by name become keywords, each is noted."""
    import torch

    before = torch.hub.load_state_dict_from_url, torch.nn.Module.load_state_dict
    loaded = load(root, "downloading")
    assert loaded.module(**loaded.kwargs).shape == (1, 2)
    assert loaded.notes == (
        "Random weights instead of linear.pth.",
        "Random weights instead of none.pth.",
    )
    assert (torch.hub.load_state_dict_from_url, torch.nn.Module.load_state_dict) == before


def test_downloads_are_left_alone_unless_asked(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without offline weights the model's own download is attempted."""
    import torch

    def refuse(url: str, *_: object, **__: object) -> None:
        raise ConnectionError(url)

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(torch.hub, "download_url_to_file", refuse)
    with pytest.raises(ConnectionError, match=r"linear\.pth"):
        load(root, "downloading", offline=False)


def test_the_missing_part_of_torch_geometric_is_stood_in_for(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkout finds the module that newer releases lack, during the load alone."""
    monkeypatch.setitem(sys.modules, "torch_geometric", ModuleType("torch_geometric"))
    monkeypatch.delitem(sys.modules, "torch_geometric.compile", raising=False)
    (note,) = load(root, "jittable").notes
    assert "to_jittable" in note
    assert "torch_geometric.compile" not in sys.modules


def test_a_module_that_torch_geometric_still_has_is_used(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older release keeps its own module, without a note."""
    theirs = ModuleType("torch_geometric.compile")
    vars(theirs)["to_jittable"] = lambda module: module
    monkeypatch.setitem(sys.modules, "torch_geometric", ModuleType("torch_geometric"))
    monkeypatch.setitem(sys.modules, "torch_geometric.compile", theirs)
    assert load(root, "jittable").notes == ()
    assert sys.modules["torch_geometric.compile"] is theirs


def test_another_torchbenchmark_is_not_taken_for_the_checkout(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package imported earlier from elsewhere must not be measured in its place."""
    other = ModuleType("torchbenchmark.models.plain")
    other.__file__ = "elsewhere"
    monkeypatch.setitem(sys.modules, "torchbenchmark.models.plain", other)
    with pytest.raises(RuntimeError, match="elsewhere"):
        load(root, "plain")
