"""The TorchBench suite: models with TorchBench's own names and configurations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Need, Switch, Valued
from dynamometer.common.interfaces.suite_source import SuiteSource
from dynamometer.common.interfaces.workload_options import LIST, SCALE
from dynamometer.results.values.cases import Scale

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.interfaces.suite import Suite
    from dynamometer.results.values.cases import Case, RunPlan


def _offline_weights(plan: RunPlan, _: Case) -> bool | None:
    return {"yes": True, "no": False}.get(plan.suite_options.get("offline_weights", ""))


TORCHBENCH_ROOT = Valued[str | None](
    ("--torchbench-root",), reads=click.STRING, default=None, variable="TORCHBENCH_ROOT",
    metavar="DIR", group="Selection",
    help="Run the models of a checkout of pytorch/benchmark instead.",
    again=lambda plan, _: plan.suite_options.get("torchbench_root"),
)  # fmt: skip
OFFLINE_WEIGHTS = Switch[bool | None](
    ("--offline-weights", "--hub-weights"), default=None, group="Selection",
    help="With --torchbench-root: random weights where a model asks a hub, or not; the default is"
    " random where there is no network.",
    again=_offline_weights,
    needs=Need(
        TORCHBENCH_ROOT, "--offline-weights and --hub-weights go with --torchbench-root"
    ),
)  # fmt: skip


class Checkout(SuiteSource):
    """The models of a checkout of pytorch/benchmark."""

    options = (TORCHBENCH_ROOT, OFFLINE_WEIGHTS)

    def opening(self, request: Request) -> dict[str, str]:
        """Name the checkout's folder, and say whether weights are random.

        Raises:
            UsageError: its models were to be shrunk.
        """
        root, offline = request[TORCHBENCH_ROOT], request[OFFLINE_WEIGHTS]
        if root is None:
            return {}
        if request[SCALE] is not Scale.FULL:
            msg = (
                f"the models of a checkout have one scale; --scale {request[SCALE]} can't go with"
                " --torchbench-root, nor with TORCHBENCH_ROOT in the environment"
            )
            raise UsageError(msg)
        if offline is None and not request[LIST]:
            from dynamometer.common.machine.network import hub_is_reachable

            offline = not hub_is_reachable()
        return {
            "torchbench_root": str(Path(root).resolve()),
            "offline_weights": "yes" if offline else "no",
        }

    def import_folders(self, opening: Mapping[str, str]) -> tuple[str, ...] | None:
        """Return that models of a checkout may come from anywhere."""
        return None if "torchbench_root" in opening else ()

    def measured_files(self, opening: Mapping[str, str]) -> tuple[Path, ...]:
        """Return the folder of a checkout's package: its models share code."""
        root = opening.get("torchbench_root")
        return (Path(root, "torchbenchmark"),) if root else ()

    def open(self, opening: Mapping[str, str]) -> Suite:
        """Look into the checkout.

        Raises:
            ValueError: there is no checkout at `torchbench_root`, or none is named.
        """
        from dynamometer.models.suites.torchbench_checkout import TorchBenchCheckout

        if "torchbench_root" not in opening:
            msg = "the suite torchbench-checkout needs --torchbench-root DIR"
            raise ValueError(msg)
        offline = opening["offline_weights"] == "yes"
        return TorchBenchCheckout(Path(opening["torchbench_root"]), offline_weights=offline)


class TorchBench(Checkout):
    """The models of `models/torchbench`, or of a checkout where one is named."""

    def open(self, opening: Mapping[str, str]) -> Suite:
        """Read its tables, or look into the checkout."""
        if "torchbench_root" in opening:
            return super().open(opening)
        from dynamometer.models.suites.tables import TableSuite

        return TableSuite("torchbench")


CHECKOUT = Checkout()
SUITE = TorchBench()
