"""Modules of projects as a suite: what discovery found, tried out by workers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Self

from dynamometer.models.parity.source.discovery import FoundClass, found_classes
from dynamometer.results.values.cases import ModelSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.results.values.cases import Case


class ModulesOfProjects:
    """The classes of nn.Module in folders, files and installed packages.

    Attributes:
        targets: paths, or names of packages.
        tell: is told how far a class has come.
    """

    def __init__(
        self, targets: Sequence[str], tell: Callable[[str], None] = lambda _: None
    ) -> None:
        """Read nothing yet."""
        self.targets = targets
        self.tell = tell

    def telling(self, tell: Callable[[str], None]) -> Self:
        """Return the same classes, with another one who is told how far one has come."""
        return type(self)(self.targets, tell)

    def specs(self) -> list[ModelSpec]:
        """Describe each class, by the text that defines it.

        Raises:
            ValueError: there are none; says what to do.
        """
        return [
            ModelSpec(
                suite="parity",
                name=name,
                task="module of a project",
                origin=each.project,
                build="source:ModulesOfProjects",
                options=asdict(each),
            )
            for name, each in found_classes(self.targets).items()
        ]

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import what torchvision lacks where it is no build for this torch."""
        if specs:
            from dynamometer.models.builders.torchvision_schemas import define_missing_schemas

            define_missing_schemas()

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Find arguments that a class runs with, and make it with those.

        Raises:
            SkippedError: there are none; says how far it came.
        """
        from dynamometer.models.parity.source.trials import load

        del case
        return load(FoundClass(**spec.options), self.tell)
