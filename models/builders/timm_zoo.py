"""Builders of timm's image models, at their published size or smaller."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.settling import SAMPLES, settled
from dynamometer.models.builders.torchvision_schemas import define_missing_schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIZES = (32, 64, 96, 128, 160, 192, 224, 256)  # of images, tried from the smallest
DEPTHS = frozenset({"depth", "depths", "layers", "serial_depths", "num_blocks", "d"})
"""What timm's classes and configurations call the number of layers, or those of each stage."""


def image(
    *,
    batch_size: int,
    architecture: str,
    image_size: int,
    num_classes: int = 1000,
    arguments: Mapping[str, Any] | None = None,
    without: Sequence[str] = (),
) -> LoadedModel:
    """Build an architecture with changes of one's own.

    Args:
        batch_size: number of images.
        architecture: name in timm's registry.
        image_size: height and width in pixels.
        num_classes: number of logits; 0 for features.
        arguments: what replaces the published arguments of the architecture's class, see
            `changed`; also those that its registered function doesn't let a caller change.
        without: layers that hand on what they are given, for depths that a class fixes in code.
    """
    shape = (3, image_size, image_size)
    changes = {"num_classes": num_classes, **(arguments or {})}
    module = _create(architecture, shape, lambda _, given: changed(given, changes))
    for name in without:
        module.set_submodule(name, Passed())
    return _classifier(module, batch_size, shape)


def reduced(
    *, batch_size: int, architecture: str, pixels: int | None = None, depth: int | None = None
) -> LoadedModel:
    """Build any architecture, as small as it allows.

    Not every architecture takes every image or depth, and nothing in the registry says which. So
    the combinations are tried on tensors without data, and the first that an image gets through is
    built: at the fewest pixels with layers taken out, then with all layers, then at more pixels,
    and last what is published.

    Args:
        batch_size: number of images.
        architecture: name in timm's registry.
        pixels: smallest height and width; `None` for the published ones.
        depth: most layers of a stage; `None` for the published ones.
    """
    published: tuple[int, int, int] = _import("timm").get_pretrained_cfg(architecture).input_size
    channels, height, width = published
    sizes = [] if pixels is None else [size for size in SIZES if pixels <= size < height]
    shapes = [*((channels, size, size) for size in sizes), (channels, height, width)]
    candidates = [(shape, layers) for shape in shapes for layers in dict.fromkeys((depth, None))]
    shape, layers = next(
        (each for each in candidates[:-1] if _takes(architecture, *each)), candidates[-1]
    )
    loaded = _classifier(_shallow(architecture, shape, layers), batch_size, shape)
    if len(candidates) == 1:
        return loaded
    deep = "all layers" if layers is None else f"at most {layers} layers a stage"
    return replace(loaded, notes=(*loaded.notes, f"It takes {shape[-1]} pixels and has {deep}."))


def changed(published: Any, changes: Any) -> Any:
    """Put changes into arguments, keeping what they don't mention.

    Args:
        published: arguments by name, an object with fields, a sequence of such, or any value.
        changes: by name, the changes of arguments or fields; a list of them, one for each of the
            first elements of a sequence, whose other elements are left out; or another value,
            which takes the published one's place.
    """
    if isinstance(changes, Mapping):
        if isinstance(published, Mapping):
            return {
                **published,
                **{name: changed(published.get(name), each) for name, each in changes.items()},
            }
        if dataclasses.is_dataclass(published) and not isinstance(published, type):
            new = {name: changed(getattr(published, name), each) for name, each in changes.items()}
            return replace(published, **new)
    if _are_changes(changes) and isinstance(published, Sequence):
        return type(published)(  # type: ignore[call-arg]  # list and tuple both take one iterable
            changed(old, each) for old, each in zip(published, changes, strict=False)
        )
    return changes


def _are_changes(value: Any) -> bool:
    """Whether a list holds changes, not values."""
    return isinstance(value, list) and all(
        isinstance(each, Mapping) or (each and _are_changes(each)) for each in value
    )


class Passed(nn.Module):
    """Hands on its last input."""

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Return the last input."""
        return inputs[-1]


def _create(
    architecture: str,
    shape: tuple[int, int, int],
    change: Callable[[type, dict[str, Any]], dict[str, Any]],
) -> nn.Module:
    """Build an architecture for images of a shape, after `change` saw the class and its arguments.

    Most registered functions pass on what a caller gives, but some repeat the names of their own
    arguments, which is an error, and configurations can't be reached at all. All of them go through
    one function of timm, which is wrapped meanwhile.
    """
    timm = _import("timm")
    original = timm.models._builder.build_model_with_cfg  # noqa: SLF001  there is no public one
    size = {"img_size": shape[1:]} if timm.get_pretrained_cfg(architecture).fixed_input_size else {}

    def build(model_cls: type, *names: Any, **given: Any) -> nn.Module:
        module: nn.Module = original(model_cls, *names, **change(model_cls, {**given, **size}))
        return module

    with _in_place_of(original, build):
        module: nn.Module = timm.create_model(architecture, pretrained=False)
    return module


@contextmanager
def _in_place_of(original: object, wrapper: object) -> Iterator[None]:
    """Let timm's modules call a wrapper of one of its functions."""
    users = [
        (vars(module), name)
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith("timm.")
        for name, value in vars(module).items()
        if value is original
    ]
    for namespace, name in users:
        namespace[name] = wrapper
    try:
        yield
    finally:
        for namespace, name in users:
            namespace[name] = original


def _shallow(architecture: str, shape: tuple[int, int, int], depth: int | None) -> nn.Module:
    """Build an architecture with at most `depth` layers in each stage."""

    def change(model_cls: type, given: dict[str, Any]) -> dict[str, Any]:
        if depth is None:
            return given
        taken = inspect.signature(model_cls).parameters
        defaults = {name: taken[name].default for name in DEPTHS & taken.keys()}
        return {**given, **_at_most({**defaults, **given}, depth)}

    return _create(architecture, shape, change)


def _at_most(given: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Return the arguments that say how deep a network is, with smaller numbers."""
    found = {name: _shortened(value, depth) for name, value in given.items() if name in DEPTHS}
    if "block_args" in given:
        found["block_args"] = [stage[:depth] for stage in given["block_args"]]
    if "model_cfg" in given:
        found["model_cfg"] = _shortened_config(given["model_cfg"], depth)
    return found


def _shortened(value: Any, depth: int) -> Any:
    if isinstance(value, int):
        return min(value, depth)
    if isinstance(value, list | tuple):
        return type(value)(_shortened(each, depth) for each in value)
    return value


def _shortened_config(config: Any, depth: int) -> Any:
    if isinstance(config, list | tuple):
        return type(config)(_shortened_config(each, depth) for each in config)
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        return config
    fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    nested = {name: _shortened_config(value, depth) for name, value in fields.items()}
    return replace(config, **{**nested, **_at_most(nested, depth)})


def _takes(architecture: str, shape: tuple[int, int, int], depth: int | None) -> bool:
    """Whether an image of a shape gets through, found out without memory for data."""
    try:
        with torch.device("meta"), torch.no_grad():
            _shallow(architecture, shape, depth).eval()(torch.empty(1, *shape))
    except Exception:  # noqa: BLE001  each architecture refuses in its own way
        return False
    return True


def _import(name: str) -> Any:
    define_missing_schemas()  # of torchvision, which timm imports
    return importlib.import_module(name)


def _classifier(module: nn.Module, batch_size: int, shape: tuple[int, int, int]) -> LoadedModel:
    images, samples = torch.randn(batch_size, *shape), torch.randn(SAMPLES, *shape)
    return settled(LoadedModel(module=module, args=(images,)), (samples,))
