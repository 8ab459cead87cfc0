"""The interface between the runner and a collection of models."""

from __future__ import annotations

import copy
import copyreg
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import torch
    from torch import nn

    from dynamometer.results.values.cases import Case, ModelSpec
    from dynamometer.results.values.parity import CorpusEntry


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a module is called with: positional and keyword inputs."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A module with the inputs it is called with. Never leaves the worker process.

    Attributes:
        module: the model, on the CPU or already on the case's device.
        args: positional inputs of `module.forward`.
        kwargs: keyword inputs of `module.forward`.
        others: inputs of other sizes that a step goes through as well.
        notes: what a reader of the record must know about how it was built, such as weights
            that were substituted. One sentence each.
        keeps_dtypes: whether module and inputs must stay of the dtypes that they are.
        nudged_from: of a copy whose weights and inputs are off by rounding, the model itself,
            whose values stay as they are.
        entry: the arguments that were found for a class that came without any.
        graph_key: of a captured graph, whose inputs differ with the seed it is loaded under.
        model_key: that decisions on the model as a whole are found by, as it was before any call.
    """

    module: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[Inputs, ...] = ()
    notes: tuple[str, ...] = ()
    keeps_dtypes: bool = False
    graph_key: str | None = None
    model_key: str | None = None
    nudged_from: LoadedModel | None = field(default=None, repr=False, compare=False)
    entry: CorpusEntry | None = None

    @property
    def calls(self) -> tuple[Inputs, ...]:
        """What each call of a step is made with."""
        return (Inputs(args=self.args, kwargs=self.kwargs), *self.others)

    def copy(self) -> LoadedModel:
        """Return a copy whose weights, buffers, inputs and locks are its own.

        Raises:
            TypeError: it holds what can't be copied, such as an open file.
        """
        attributes = [vars(each) for each in self.module.modules()]
        try:
            with _locks_made_anew():
                module = copy.deepcopy(self.module, _refused(attributes))
                for own in module.parameters():
                    if not own.is_leaf:  # a scripted module's is computed from that of the original
                        own.detach_().requires_grad_()
                return replace(self.with_inputs(copied), module=module)
        except TypeError as error:
            msg = f"the model can't be copied, and each arm needs a copy of its own: {error}"
            raise TypeError(msg) from error

    def with_inputs(self, change: Callable[[Any], Any]) -> LoadedModel:
        """Return the same module with inputs made of its own.

        Args:
            change: takes a tree of inputs, and gives a tree of the same structure.
        """
        changed = []
        for each in self.calls:
            args, kwargs = change((each.args, dict(each.kwargs)))
            changed.append(Inputs(args=args, kwargs=kwargs))
        first, *others = changed
        return replace(self, args=first.args, kwargs=first.kwargs, others=tuple(others))


def require_values(*named: tuple[str, torch.Tensor]) -> None:
    """Refuse tensors of device meta, which torch's own error would call not implemented.

    Raises:
        ValueError: there is one; names it, and what may have made it so.
    """
    name = next((name for name, tensor in named if tensor.is_meta), None)
    if name is None:
        return
    msg = f"{name} is on device meta, which has no values"
    if sys.modules["torch"].get_default_device().type == "meta":
        msg += ": torch.set_default_device has made that the default"
    raise ValueError(msg)


def copied(tree: Any, leaves: Iterable[Any] = ()) -> Any:
    """Copy inputs; what was computed is free of its history in the copy.

    Args:
        tree: of inputs.
        leaves: of it, where it has other containers than Python's own.
    """
    return copy.deepcopy(tree, _refused([tree, *leaves]))


def _refused(tree: Any) -> dict[int, Any]:
    """Copy the tensors of a tree that refuse to be deep-copied, by `id`, as a memo has them.

    These are such as were computed with gradients, as by the old `weight_norm`, which a forward
    computes anew, and those of compressed layouts. A deep copy of a nested one has other offsets
    than what is computed of it, which its backward refuses.
    """
    torch = sys.modules["torch"]  # the parent doesn't import it, and copies nothing
    memo: dict[int, Any] = {}
    left, seen = [tree], set[int]()
    compressed = {torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc}
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list | tuple | set):
            left += value
        elif not isinstance(value, torch.Tensor):
            continue
        elif value.grad_fn is not None:
            memo[id(value)] = value.detach().clone()
        elif value.layout in compressed or value.is_nested:
            memo[id(value)] = value.detach().clone().requires_grad_(value.requires_grad)
    return memo


@contextmanager
def _locks_made_anew() -> Iterator[None]:
    """Have `copy.deepcopy`, which refuses locks, put new ones in their place.

    Layers hold some that synchronise normalisation between devices.
    """
    made: dict[type, Callable[[Any], tuple[Any, ...]]] = {
        type(threading.Lock()): lambda _: (threading.Lock, ()),
        type(threading.RLock()): lambda _: (threading.RLock, ()),
        # Its methods are those of its lock, and would stay those of the first.
        threading.Condition: lambda held: (threading.Condition, (vars(held)["_lock"],)),
    }
    kept = {kind: copyreg.dispatch_table.get(kind) for kind in made}
    copyreg.dispatch_table.update(made)
    try:
        yield
    finally:
        for kind, before in kept.items():
            if before is None:
                del copyreg.dispatch_table[kind]
            else:
                copyreg.dispatch_table[kind] = before


class Suite(Protocol):
    """A named collection of models."""

    def specs(self) -> Iterable[ModelSpec]:
        """Describe every model of the suite, in order, without importing torch."""
        ...

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import what loading these models will need, once for all workers.

        Must start no thread and touch no device: worker processes are forked afterwards. What
        can't be imported is left for `load` to report.
        """
        ...

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Build one model with its inputs.

        Called in the worker process, after every random generator was seeded.
        """
        ...


@runtime_checkable
class TellingSuite(Suite, Protocol):
    """A suite that says how far loading a model came, which may take long or end the process."""

    def telling(self, tell: Callable[[str], None]) -> Suite:
        """Return the same suite, that tells.

        Args:
            tell: is given how the reason would begin if loading went no further; nothing at its
                end.
        """
        ...
