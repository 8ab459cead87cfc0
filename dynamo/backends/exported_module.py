"""A module that a runtime computes as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamometer.dynamo.backends.graphs import as_key
from dynamometer.dynamo.backends.programs import Given, ViewOf, build_of, export, program_of
from dynamometer.dynamo.backends.unsupported import refuse_training
from dynamometer.dynamo.private import offered

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch
    from torch import nn

    from dynamometer.dynamo.backends.programs import Build

    _Layout = tuple[torch.dtype, torch.Size, tuple[int, ...]]

tree_flatten = offered("torch.utils._pytree.tree_flatten")
tree_unflatten = offered("torch.utils._pytree.tree_unflatten")


class ExportedModule:
    """A module that was exported once, for inputs of one structure and of these sizes.

    Weights are as they were when it was exported: a runtime may have kept copies in forms of its
    own. Buffers that the module itself changes are followed.
    """

    def __init__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], build: Build
    ) -> None:
        """Export and build.

        Raises:
            UnsupportedError: the runtime would compute something else, or can't.
        """
        flat, self._spec = tree_flatten((args, dict(kwargs)))
        refuse_training(flat, module.parameters())
        exported = export(module, args, dict(kwargs))
        out_spec = exported.call_spec.out_spec
        assert out_spec is not None
        self._out_spec = out_spec
        self._names = tuple(kwargs)
        self._program = program_of(exported, flat)
        views = (each.base for each in self._program.results if isinstance(each, ViewOf))
        # Of what is only looked at from another side, the program is fed nothing.
        self._viewed = {
            base.index: _layout(flat[base.index]) for base in views if isinstance(base, Given)
        }
        self._compute = build_of(self._program, build)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute what the module does.

        Raises:
            ValueError: the inputs are not like those it was exported for.
        """
        if tuple(kwargs) != self._names and set(kwargs) == set(self._names):
            kwargs = {name: kwargs[name] for name in self._names}
        flat, spec = tree_flatten((args, kwargs))
        if spec != self._spec:
            msg = f"the module was exported for inputs {self._spec}, not {spec}"
            raise ValueError(msg)
        self._check(flat)
        return tree_unflatten(self._program.run(self._compute, flat), self._out_spec)

    def _check(self, flat: list[Any]) -> None:
        for index, value in self._program.constants:
            if as_key(flat[index]) != as_key(value):
                msg = f"the module was exported for input {index} = {value!r}, not {flat[index]!r}"
                raise ValueError(msg)
        for feed, example in zip(self._program.feeds, self._program.examples, strict=True):
            if not isinstance(feed, int):
                continue
            found = flat[feed]
            if found.shape != example.shape or found.dtype != example.dtype:
                raise ValueError(_otherwise(feed, _form(example), _form(found)))
        for index, layout in self._viewed.items():
            if _layout(flat[index]) != layout:
                forms = map(_form_of_layout, (layout, _layout(flat[index])))
                raise ValueError(_otherwise(index, *forms))


def _form(tensor: torch.Tensor) -> str:
    return f"{tensor.dtype} {tuple(tensor.shape)}"


def _layout(tensor: torch.Tensor) -> _Layout:
    return tensor.dtype, tensor.shape, tensor.stride()


def _form_of_layout(layout: _Layout) -> str:
    dtype, shape, strides = layout
    return f"{dtype} {tuple(shape)} with strides {strides}"


def _otherwise(index: int, exported: str, found: str) -> str:
    return f"the module was exported for input {index} of {exported}, not of {found}"
