"""The TIMM suite: the image models of PyTorch's own benchmarks, and any other of timm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.common.interfaces.option import Flag
from dynamometer.common.interfaces.suite_source import SuiteSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.interfaces.suite import Suite

ALL = Flag(
    ("--all",), group="Selection",
    help="Also every other architecture of timm; -k and --only choose among them.",
    again=lambda plan, _: "all" in plan.suite_options,
)  # fmt: skip


class Timm(SuiteSource):
    """The models of `models/timm_models`, and with `--all` every other architecture too."""

    options = (ALL,)

    def opening(self, request: Request) -> dict[str, str]:
        """Return whether the others are in it."""
        return {"all": "yes"} if request[ALL] else {}

    def open(self, opening: Mapping[str, str]) -> Suite:
        """Read its tables."""
        from dynamometer.models.suites.timm_names import TimmModels

        return TimmModels(everything="all" in opening)


SUITE = Timm()
