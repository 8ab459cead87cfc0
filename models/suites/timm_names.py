"""The TIMM suite and the names of timm's architectures, read without importing timm or torch."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.models.suites.tables import TableSuite
from dynamometer.results.values.cases import ModelSpec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.results.values.cases import Case

NAME = "timm_models"
REGISTERED = re.compile(r"^@register_model\s*\n(?:@.*\n)*def (\w+)\(", re.MULTILINE)


def architectures() -> tuple[str, ...]:
    """Name every architecture of the installed timm, sorted; none where it isn't installed."""
    found = importlib.util.find_spec("timm")
    if found is None or found.origin is None:
        return ()
    sources = (Path(found.origin).parent / "models").glob("*.py")
    names = (
        name for path in sources for name in REGISTERED.findall(path.read_text(encoding="utf-8"))
    )
    return tuple(sorted(set(names)))


@dataclass(frozen=True)
class TimmModels:
    """The models of the tables and, if asked for, every other architecture of timm.

    Attributes:
        everything: whether the others are in it. At the smaller scales they have smaller images and
            fewer layers, as far as each allows.
    """

    everything: bool = False

    @cached_property
    def _tables(self) -> TableSuite:
        return TableSuite(NAME)

    def specs(self) -> Iterable[ModelSpec]:
        """Describe the models, sorted by name."""
        listed = list(self._tables.specs())
        if not self.everything:
            return listed
        known = {name for spec in listed for name in (spec.name, *spec.aliases)}
        others = [_spec(name) for name in architectures() if name not in known]
        return sorted([*listed, *others], key=lambda spec: spec.name)

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import the builders, and timm if it is installed."""
        self._tables.preload(specs)

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Build one model.

        Raises:
            SkippedError: timm is not installed.
        """
        return self._tables.load(spec, case)


def _spec(architecture: str) -> ModelSpec:
    return ModelSpec(
        suite=NAME,
        name=architecture,
        task="image recognition",
        origin=f"timm, {architecture}",
        build="timm_zoo:reduced",
        batch_size={"cpu": 8, "cuda": 32},
        options={"architecture": architecture},
        small={"pixels": 128, "depth": 4, "batch_size": 2},
        tiny={"pixels": 32, "depth": 1, "batch_size": 1},
        requires=("timm",),
    )
