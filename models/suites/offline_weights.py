"""Random weights wherever a model asks a hub for trained ones, so that it can be built offline.

Speed and compilability don't depend on what the weights are, and a benchmark that downloads
gigabytes first is one that isn't run. What is replaced is only the download: the architecture is
built by the library it belongs to, from the configuration that the model names.
"""

from __future__ import annotations

import functools
import inspect
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Configurations = dict[str, dict[str, Any]]
"""Values of a hub's `config.json`, by the hub's name of the model; `model_type` among them."""


class Substitutions:
    """What was substituted so far, one sentence each, in the order it happened."""

    def __init__(self) -> None:
        """Start with none."""
        self._notes: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """The sentences, each once."""
        return tuple(self._notes)

    def add(self, sentence: str) -> None:
        """Note one, unless it was noted before."""
        self._notes.setdefault(sentence)


class AbsentWeights(dict[str, Any]):
    """Stands for a checkpoint that was not downloaded: empty, and loading it changes nothing.

    Looking up a part of it, as in `checkpoint["model"]`, gives the same stand-in.
    """

    def __missing__(self, key: str) -> AbsentWeights:
        """Take any part of a checkpoint for the state of a module."""
        return self

    def get(self, _key: str, _default: object = None, /) -> AbsentWeights:
        """Take a part that may be missing likewise."""
        return self

    def pop(self, _key: str, _default: object = None, /) -> AbsentWeights:
        """Take a part out."""
        return self


@contextmanager
def offline_weights(configurations: Configurations | None = None) -> Iterator[Substitutions]:
    """Substitute random weights for downloads while a model is built.

    Covers checkpoints by URL, `torch.hub.load` of torchvision's models, torchvision's
    `weights=`, timm's `pretrained=True` and the `from_pretrained` of transformers' models and
    configurations. Tokenizers and processors are left alone: their output depends on the text.

    Import what builds the model first. Libraries that are imported within the context still find
    the checkpoints by URL replaced, but not their own ways of downloading.

    Args:
        configurations: what to build from where transformers is asked for a configuration by
            its hub name. One that isn't there becomes the default of the class that is asked.

    Yields:
        What was substituted, filled as it happens.
    """
    substitutions = Substitutions()
    with ExitStack() as undo:
        _cover_torch(substitutions, undo)
        if "torchvision" in sys.modules:
            _cover_torchvision(substitutions, undo)
        if "timm" in sys.modules:
            _cover_timm(substitutions, undo)
        if "transformers" in sys.modules:
            _cover_transformers(configurations or {}, substitutions, undo)
        yield substitutions


def _cover_torch(substitutions: Substitutions, undo: ExitStack) -> None:
    def load_state_dict_from_url(url: str, *_: object, **__: object) -> AbsentWeights:
        file = PurePosixPath(urlparse(url).path).name
        substitutions.add(f"Random weights instead of {file}.")
        return AbsentWeights()

    load_from_hub: Callable[..., object] = torch.hub.load
    load_into_module = nn.Module.load_state_dict

    @functools.wraps(load_from_hub)
    def load(repo_or_dir: str, model: str, *args: object, **kwargs: Any) -> object:
        if kwargs.get("source") == "local":
            return load_from_hub(repo_or_dir, model, *args, **kwargs)
        return _build_from_hub(repo_or_dir, model, kwargs, substitutions)

    @functools.wraps(load_into_module)
    def load_state_dict(
        module: nn.Module,
        state_dict: Mapping[str, Any],
        *args: Any,
        **kwargs: Any,
    ) -> object:
        # A copy under other keys is an empty dictionary.
        if isinstance(state_dict, AbsentWeights) or (substitutions.notes and not state_dict):
            state_dict = module.state_dict()
        return load_into_module(module, state_dict, *args, **kwargs)

    _replace_everywhere(undo, torch.hub.load_state_dict_from_url, load_state_dict_from_url)
    _replace_everywhere(undo, load_from_hub, load)
    _replace(undo, nn.Module, "load_state_dict", load_state_dict)


def _build_from_hub(
    repository: str, model: str, options: dict[str, Any], substitutions: Substitutions
) -> nn.Module:
    """Build what `torch.hub.load` would, where its code is that of an installed package."""
    if repository.partition(":")[0] != "pytorch/vision":
        msg = f"torch.hub.load: the code of {repository} is not installed and can't be downloaded"
        raise RuntimeError(msg)
    from torchvision.models import get_model

    substitutions.add(f"Random weights instead of those torch.hub has for torchvision's {model}.")
    not_for_the_model = {"source", "pretrained", "weights", "progress", "trust_repo"} | {
        "force_reload",
        "verbose",
        "skip_validation",
    }
    kept = {name: value for name, value in options.items() if name not in not_for_the_model}
    built: nn.Module = get_model(model, weights=None, **kept)
    return built


def _cover_torchvision(substitutions: Substitutions, undo: ExitStack) -> None:
    from torchvision.models import WeightsEnum

    def get_state_dict(weights: WeightsEnum, *_: object, **__: object) -> AbsentWeights:
        model = type(weights).__name__.removesuffix("_Weights")
        substitutions.add(f"Random weights instead of torchvision's {model} {weights.name}.")
        return AbsentWeights()

    _replace(undo, WeightsEnum, "get_state_dict", get_state_dict)


def _cover_timm(substitutions: Substitutions, undo: ExitStack) -> None:
    from timm.models import load_pretrained

    def keep_random(
        _model: nn.Module,
        pretrained_cfg: dict[str, Any] | None = None,
        *_: object,
        **__: object,
    ) -> None:
        source = pretrained_cfg or {}
        name = ".".join(filter(None, (source.get("architecture"), source.get("tag"))))
        substitutions.add(f"Random weights instead of timm's {name}.")

    _replace_everywhere(undo, load_pretrained, keep_random)


def _cover_transformers(
    configurations: Configurations, substitutions: Substitutions, undo: ExitStack
) -> None:
    from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel

    configure, configure_any = _substitutes_for_configurations(configurations, substitutions)
    build, build_any = _substitutes_for_models(AutoConfig, substitutions)
    owners: dict[type[Any], Callable[..., object]] = {
        PreTrainedConfig: configure,
        AutoConfig: configure_any,
        PreTrainedModel: build,
    }
    # Every automatic class has a copy of its own of the method that it inherits.
    owners |= dict.fromkeys(_with_method(AutoModel.__base__, "from_pretrained"), build_any)
    for owner, substitute in owners.items():
        _replace(undo, owner, "from_pretrained", _unless_local(owner.from_pretrained, substitute))


def _substitutes_for_configurations(
    configurations: Configurations, substitutions: Substitutions
) -> tuple[Callable[..., object], Callable[..., object]]:
    """Make `from_pretrained` of a configuration class, and of the one that finds the class."""

    def configure(cls: type[Any], name: str, **options: Any) -> object:
        known = configurations.get(name, {})
        fits = known.get("model_type") == cls.model_type
        substitutions.add(
            f"The configuration of {name} as this project's tables have it."
            if fits
            else f"The default {cls.__name__} instead of the configuration of {name}."
        )
        return _with_options(cls(**_values(known) if fits else {}), options)

    def configure_any(cls: type[Any], name: str, **options: Any) -> object:
        if name not in configurations:
            # The error transformers itself raises offline, which callers may be prepared for.
            msg = f"the configuration of {name} is not downloaded and not in this project's tables"
            raise OSError(msg)
        known = configurations[name]
        substitutions.add(f"The configuration of {name} as this project's tables have it.")
        return _with_options(cls.for_model(known["model_type"], **_values(known)), options)

    return configure, configure_any


def _substitutes_for_models(
    auto_config: type[Any], substitutions: Substitutions
) -> tuple[Callable[..., object], Callable[..., object]]:
    """Make `from_pretrained` of a model class, and of one that finds the class."""

    def build(cls: type[Any], name: str, *args: object, **options: Any) -> object:
        find = cls.config_class.from_pretrained
        return randomly(cls._from_config, find, name, args, options)

    def build_any(cls: type[Any], name: str, *args: object, **options: Any) -> object:
        return randomly(cls.from_config, auto_config.from_pretrained, name, args, options)

    def randomly(
        construct: Callable[..., nn.Module],
        find: Callable[..., tuple[Any, dict[str, Any]]],
        name: str,
        args: tuple[object, ...],
        options: dict[str, Any],
    ) -> object:
        config, unused = options.pop("config", None), options
        if config is None:
            config, unused = find(name, return_unused_kwargs=True, **options)
        unused = {key: each for key, each in unused.items() if key not in _OF_THE_DOWNLOAD}
        dtype = options.get("dtype", options.get("torch_dtype"))
        settings = {} if dtype in {None, "auto"} else {"dtype": dtype}
        given = {key: each for key, each in unused.items() if _takes(construct, config, key)}
        substitutions.add(f"Random weights instead of those of {name}.")
        left_out = sorted(unused.keys() - given) + ["what is given by position"] * bool(args)
        if left_out:
            substitutions.add(f"Options for {name} that are left out: {', '.join(left_out)}.")
        # A pretrained model comes in evaluation mode.
        model = construct(config, **settings, **given).eval()
        return (model, _NOTHING_MISSING) if options.get("output_loading_info") else model

    return build, build_any


_NOTHING_MISSING: dict[str, list[str]] = {
    "missing_keys": [], "unexpected_keys": [], "mismatched_keys": [], "error_msgs": [],
}  # fmt: skip
"""What transformers says of a checkpoint that fits."""

_OF_THE_DOWNLOAD = {
    "cache_dir", "code_revision", "dtype", "force_download", "ignore_mismatched_sizes",
    "local_files_only", "low_cpu_mem_usage", "output_loading_info", "proxies", "resume_download",
    "revision", "state_dict", "subfolder", "token", "torch_dtype", "trust_remote_code",
    "use_auth_token", "use_safetensors", "variant", "weights_only",
}  # fmt: skip
"""Options that say where weights come from, or that are seen to."""


def _takes(construct: Any, config: Any, option: str) -> bool:
    """Return whether the class that is constructed of a configuration has an option."""
    if option == "attn_implementation":
        return True
    kind = construct.__self__
    mapping = getattr(kind, "_model_mapping", None)  # of an automatic class
    if mapping is not None:
        kind = mapping.get(type(config), None)
    return isinstance(kind, type) and option in inspect.signature(kind).parameters


def _with_method(base: Any, name: str) -> Iterator[type[Any]]:
    """Return a class and those derived from it that define a method themselves."""
    if name in vars(base):
        yield base
    for derived in base.__subclasses__():
        yield from _with_method(derived, name)


def _values(known: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in known.items() if name != "model_type"}


def _with_options(config: Any, options: dict[str, Any]) -> object:
    """Apply the values a caller overrides, and hand back the rest to one who asks for it."""
    unused = {}
    hand_back = options.pop("return_unused_kwargs", False)
    for name, value in options.items():
        if hasattr(config, name):
            setattr(config, name, value)
        else:
            unused[name] = value
    return (config, unused) if hand_back else config


def _unless_local(original: Any, substitute: Callable[..., object]) -> object:
    """Make a class method of a substitute that leaves folders of this machine to the original."""

    def from_pretrained(
        cls: type[Any], pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any
    ) -> object:
        name = pretrained_model_name_or_path
        if name is None or Path(name).is_dir():  # without a name it is the caller who has weights
            return original.__func__(cls, name, *args, **kwargs)
        return substitute(cls, name, *args, **kwargs)

    return classmethod(from_pretrained)


def _replace(undo: ExitStack, owner: type[Any], name: str, stand_in: object) -> None:
    """Set an attribute that a class itself has, until `undo` is closed."""
    undo.callback(setattr, owner, name, vars(owner)[name])
    setattr(owner, name, stand_in)


def _replace_everywhere(undo: ExitStack, original: object, stand_in: object) -> None:
    """Replace a function under every name that a module gave it, until `undo` is closed.

    Modules that were imported in between took the stand-in for the real one, and get that back.
    """
    _rebind(original, stand_in)
    undo.callback(_rebind, stand_in, original)


def _rebind(before: object, after: object) -> None:
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        for name in [name for name, value in list(names.items()) if value is before]:
            names[name] = after
