"""Random weights in place of downloads, on the real libraries and without a network."""

from __future__ import annotations

import socket
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import torch
from torch import nn
from torch.utils import model_zoo

from dynamometer.models.builders.torchvision_schemas import define_missing_schemas
from dynamometer.models.suites.offline_weights import AbsentWeights, offline_weights
from dynamometer.models.suites.torchbench_checkout import TABLE, Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONFIGURATIONS = {"small/bert": {"model_type": "bert", "hidden_size": 12, "num_hidden_layers": 1}}
TINY_BERT = {"vocab_size": 11, "hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2}


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a test that would download fail."""

    def refuse(*_: object) -> None:
        msg = "a test connected to the network"
        raise AssertionError(msg)

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def torchvision() -> Any:
    """Import torchvision, if it is installed."""
    define_missing_schemas()
    return pytest.importorskip("torchvision")


@pytest.fixture
def timm(torchvision: Any) -> Any:
    """Import timm, if it is installed."""
    return pytest.importorskip("timm")


@pytest.fixture
def transformers(torchvision: Any) -> Any:
    """Import transformers, if it is installed."""
    return pytest.importorskip("transformers")


def test_a_checkpoint_by_url_leaves_the_initial_weights() -> None:
    """Loading the stand-in succeeds, changes nothing, and is noted once."""
    module = nn.Linear(2, 2)
    before = module.weight.clone()
    url = "https://host.invalid/a/net-1.pth"
    with offline_weights() as substitutions:
        for _ in range(2):
            result = module.load_state_dict(torch.hub.load_state_dict_from_url(url))
            assert result.missing_keys == []
    assert torch.equal(module.weight, before)
    assert substitutions.notes == ("Random weights instead of net-1.pth.",)


def test_a_part_of_a_checkpoint_is_a_stand_in_too() -> None:
    """Checkpoints that wrap the weights in a dictionary need no special case."""
    with offline_weights():
        checkpoint = torch.hub.load_state_dict_from_url("https://host.invalid/net.pth")
        part = checkpoint["state_dict"]
    assert isinstance(part, AbsentWeights)


def test_a_state_dict_of_ones_own_still_loads() -> None:
    """Only the stand-in is special: real weights are loaded, and checked, as ever."""
    source, target = nn.Linear(2, 2), nn.Linear(2, 2)
    with offline_weights():
        target.load_state_dict(source.state_dict())
        with pytest.raises(RuntimeError, match="Missing key"):
            target.load_state_dict({})
    assert torch.equal(source.weight, target.weight)


def test_what_a_checkpoint_is_asked_for_is_a_stand_in_too() -> None:
    """By its methods as by its keys; a copy under other keys loads as well."""
    module = nn.Linear(2, 2)
    before = module.weight.clone()
    with offline_weights():
        checkpoint = torch.hub.load_state_dict_from_url("https://host.invalid/net.pth")
        assert isinstance(checkpoint.get("state_dict"), AbsentWeights)
        assert isinstance(checkpoint.pop("fc.weight"), AbsentWeights)
        renamed = {key.removeprefix("module."): each for key, each in checkpoint.items()}
        module.load_state_dict(renamed)
    assert torch.equal(module.weight, before)


def test_torch_hub_builds_what_torchvision_has(torchvision: Any) -> None:
    """The hub's repository of torchvision is the installed package, without its weights."""
    with offline_weights() as substitutions:
        model = torch.hub.load(  # type: ignore[no-untyped-call]  # torch's
            repo_or_dir="pytorch/vision:v0.10.0", model="squeezenet1_1", pretrained=True
        )
    assert isinstance(model, torchvision.models.SqueezeNet)
    assert substitutions.notes == (
        "Random weights instead of those torch.hub has for torchvision's squeezenet1_1.",
    )


def test_torch_hub_says_which_code_is_missing() -> None:
    """The code of another repository can't be made up."""
    with offline_weights(), pytest.raises(RuntimeError, match="someone/else"):
        torch.hub.load("someone/else", "net")  # type: ignore[no-untyped-call]  # torch's


def test_torch_hub_still_loads_local_code(tmp_path: Path) -> None:
    """A repository on this machine needs no substitute."""
    (tmp_path / "hubconf.py").write_text("def net():\n    return 'local'\n")
    with offline_weights():
        assert torch.hub.load(str(tmp_path), "net", source="local") == "local"  # type: ignore[no-untyped-call]  # torch's


@pytest.mark.parametrize("name", ["squeezenet1_1", "densenet121"])
def test_torchvision_weights_are_random(torchvision: Any, name: str) -> None:
    """The architecture is built, also where weights are renamed before they are loaded."""
    with offline_weights() as substitutions:
        model = torchvision.models.get_model(name, weights="DEFAULT")
    assert isinstance(model, nn.Module)
    (note,) = substitutions.notes
    assert note.lower() == f"random weights instead of torchvision's {name} imagenet1k_v1."


def test_timm_weights_are_random(timm: Any) -> None:
    """The note names architecture and tag of what was not downloaded."""
    with offline_weights() as substitutions:
        timm.create_model("test_resnet.r160_in1k", pretrained=True)
    assert substitutions.notes == ("Random weights instead of timm's test_resnet.r160_in1k.",)


def test_a_known_configuration_is_the_tables(transformers: Any) -> None:
    """The automatic and the concrete class both give the hub's values, with the overrides."""
    with offline_weights(CONFIGURATIONS) as substitutions:
        automatic = transformers.AutoConfig.from_pretrained("small/bert", num_attention_heads=3)
        concrete = transformers.BertConfig.from_pretrained("small/bert")
    assert (automatic.hidden_size, automatic.num_attention_heads) == (12, 3)
    assert (type(automatic), concrete.hidden_size) == (transformers.BertConfig, 12)
    assert substitutions.notes == (
        "The configuration of small/bert as this project's tables have it.",
    )


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("albert-base-v2", 11_683_584),
        ("allenai/longformer-base-4096", 148_659_456),
        ("distil-whisper/distil-medium.en", 394_375_168),
        ("distilbert-base-uncased", 66_362_880),
        ("facebook/bart-base", 139_420_416),
        ("gpt2", 124_439_808),
        ("gpt2-large", 774_030_080),
        ("t5-small", 60_506_624),
        ("t5-base", 222_903_552),
        ("t5-large", 737_668_096),
        ("xlm-roberta-base", 278_043_648),
    ],
)
def test_the_tables_give_the_published_sizes(transformers: Any, name: str, parameters: int) -> None:
    """A configuration as the project has it builds a model with the published parameters."""
    table = msgspec.toml.decode(TABLE.read_bytes(), type=Table)
    with offline_weights(table.configurations), torch.device("meta"):
        model = transformers.AutoModel.from_config(transformers.AutoConfig.from_pretrained(name))
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


def test_an_unknown_configuration_is_the_class_default(transformers: Any) -> None:
    """A concrete class has defaults, and says so; options it lacks are handed back on request."""
    with offline_weights() as substitutions:
        config, unused = transformers.BertConfig.from_pretrained(
            "who/knows", hidden_size=8, revision="main", return_unused_kwargs=True
        )
    assert (config.hidden_size, unused) == (8, {"revision": "main"})
    (note,) = substitutions.notes
    assert note == "The default BertConfig instead of the configuration of who/knows."


def test_an_unknown_automatic_configuration_is_an_error(transformers: Any) -> None:
    """Nobody can tell which class it is; the error is the one transformers raises offline."""
    with offline_weights(), pytest.raises(OSError, match="who/knows"):
        transformers.AutoConfig.from_pretrained("who/knows")


def test_pretrained_models_are_built_from_their_configuration(transformers: Any) -> None:
    """Concrete and automatic classes give a model in evaluation mode, of the dtype asked for."""
    config = transformers.BertConfig(num_hidden_layers=1, **TINY_BERT)
    with offline_weights(CONFIGURATIONS) as substitutions:
        concrete = transformers.BertModel.from_pretrained("any/bert", config=config)
        automatic = transformers.AutoModel.from_pretrained(
            "small/bert", num_attention_heads=2, vocab_size=11, dtype=torch.bfloat16
        )
    assert not concrete.training
    assert (type(automatic), automatic.dtype) == (transformers.BertModel, torch.bfloat16)
    assert "Random weights instead of those of any/bert." in substitutions.notes
    assert "Random weights instead of those of small/bert." in substitutions.notes


@pytest.mark.parametrize("automatic", [False, True])
def test_options_of_a_pretrained_model_are_its_constructors(
    transformers: Any,
    automatic: bool,  # noqa: FBT001  pytest gives it by name
) -> None:
    """Others are noted, but for those of the download; what was loaded is told on request."""
    kind = transformers.AutoModel if automatic else transformers.BertModel
    with offline_weights(CONFIGURATIONS) as substitutions:
        model, loading = kind.from_pretrained(
            pretrained_model_name_or_path="small/bert", **TINY_BERT, attn_implementation="eager",
            add_pooling_layer=False, device_map="auto", cache_dir="x", output_loading_info=True,
        )  # fmt: skip
    assert model.pooler is None
    assert model.config._attn_implementation == "eager"
    assert loading["missing_keys"] == []
    assert substitutions.notes[-1] == "Options for small/bert that are left out: device_map."


def test_a_model_without_a_name_is_loaded_as_ever(transformers: Any) -> None:
    """Whoever gives no name has the weights."""
    config = transformers.BertConfig(num_hidden_layers=1, **TINY_BERT)
    with offline_weights() as substitutions:
        model = transformers.BertModel.from_pretrained(None, config=config, state_dict={})
    assert model.config.hidden_size == 8
    assert substitutions.notes == ()


def test_local_models_are_loaded_as_ever(transformers: Any, tmp_path: Path) -> None:
    """What lies in a folder of this machine is not replaced."""
    model = transformers.BertModel(transformers.BertConfig(num_hidden_layers=1, **TINY_BERT))
    model.save_pretrained(tmp_path)
    with offline_weights() as substitutions:
        loaded = transformers.BertModel.from_pretrained(tmp_path)
    ours, theirs = (each.embeddings.word_embeddings.weight for each in (model, loaded))
    assert torch.equal(ours, theirs)
    assert substitutions.notes == ()


def replaceable(timm: Any, torchvision: Any, transformers: Any) -> list[object]:
    """Read everything the context replaces, under each name that callers may hold."""
    return [
        torch.hub.load,
        torch.hub.load_state_dict_from_url,
        vars(model_zoo)["load_url"],
        vars(nn.Module)["load_state_dict"],
        vars(torchvision.models.WeightsEnum)["get_state_dict"],
        torchvision.models._api.load_state_dict_from_url,
        timm.models.load_pretrained,
        timm.models._builder.load_pretrained,
        vars(transformers.AutoConfig)["from_pretrained"],
        vars(transformers.PreTrainedConfig)["from_pretrained"],
        vars(transformers.PreTrainedModel)["from_pretrained"],
        vars(transformers.AutoModel)["from_pretrained"],
        vars(transformers.AutoModelForCausalLM)["from_pretrained"],
    ]


@pytest.mark.parametrize("fails", [False, True])
def test_everything_is_put_back(
    timm: Any,
    torchvision: Any,
    transformers: Any,
    fails: bool,  # noqa: FBT001  pytest gives it by name
) -> None:
    """After the context, and after an exception in it, every library is as it was."""
    before = replaceable(timm, torchvision, transformers)

    def inside() -> None:
        with offline_weights():
            during = replaceable(timm, torchvision, transformers)
            assert not any(ours is theirs for ours, theirs in zip(during, before, strict=True))
            if fails:
                raise LookupError

    _ending_in(LookupError if fails else None, inside)
    after = replaceable(timm, torchvision, transformers)
    assert all(ours is theirs for ours, theirs in zip(after, before, strict=True))


def _ending_in(error: type[Exception] | None, action: Callable[[], None]) -> None:
    if error is None:
        action()
        return
    with pytest.raises(error):
        action()


def test_a_module_imported_inside_gets_the_real_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name bound to the substitute while it was there doesn't keep it."""
    late: Any = ModuleType("late")
    with offline_weights():
        monkeypatch.setitem(sys.modules, "late", late)
        late.fetch = torch.hub.load_state_dict_from_url
    assert late.fetch is torch.hub.load_state_dict_from_url
