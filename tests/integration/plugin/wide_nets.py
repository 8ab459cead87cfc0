"""A suite that somebody else has written, with an option of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from dynamometer.common.interfaces.option import Valued
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.common.interfaces.suite_source import SuiteSource
from dynamometer.results.values.cases import ModelSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.values.cases import Case, RunPlan

USUAL_WIDTH = 4


def _width(plan: RunPlan, _: Case) -> int:
    return int(plan.suite_options.get("width", USUAL_WIDTH))


WIDTH = Valued(
    ("--width",), reads=click.IntRange(1), default=USUAL_WIDTH, metavar="N", group="Selection",
    help="Of every layer.",
    again=_width,
)  # fmt: skip


@dataclass(frozen=True)
class Nets:
    """One layer."""

    width: int

    def specs(self) -> Iterable[ModelSpec]:
        """Describe it."""
        return [
            ModelSpec(
                suite="wide_nets", name="layer", task="none", origin="made for the tests",
                build="none:none", batch_size={"cpu": 2}, quick=True,
            )
        ]  # fmt: skip

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Need nothing."""

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Build it."""
        import torch

        module = torch.nn.Linear(self.width, self.width, bias=False)
        return LoadedModel(module=module, args=(torch.ones(case.batch_size or 1, self.width),))


class WideNets(SuiteSource):
    """As wide as asked for."""

    options = (WIDTH,)

    def opening(self, request: Request) -> dict[str, str]:
        """Return how wide."""
        return {"width": str(request[WIDTH])} if request.is_set(WIDTH) else {}

    def open(self, opening: Mapping[str, str]) -> Nets:
        """Build nothing yet."""
        return Nets(int(opening.get("width", USUAL_WIDTH)))


SUITE = WideNets()
