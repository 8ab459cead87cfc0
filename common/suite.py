"""The seam between the runner and a collection of models."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch import nn

    from dynamometer.results.schema import Case, ModelSpec


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A module with the inputs it is called with. Never leaves the worker process.

    Attributes:
        module: the model, on the CPU or already on the case's device.
        args: positional inputs of `module.forward`.
        kwargs: keyword inputs of `module.forward`.
        notes: what a reader of the record must know about how it was built, such as weights
            that were substituted. One sentence each.
    """

    module: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def copy(self) -> LoadedModel:
        """Give a copy whose weights, buffers and inputs are its own."""
        return replace(
            self,
            module=copy.deepcopy(self.module),
            args=copy.deepcopy(self.args),
            kwargs=copy.deepcopy(dict(self.kwargs)),
        )


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
