#!/usr/bin/env python3
"""The TorchBench suite: models with TorchBench's own names and configurations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynamometer.common.interfaces.suite import Suite


def open_suite(options: Mapping[str, str]) -> Suite:
    """Return the embedded suite, or the one of a checkout of pytorch/benchmark.

    Args:
        options: `torchbench_root`, the checkout's folder, and with it `offline_weights`, `yes` or
            `no`; empty for the embedded suite.

    Raises:
        ValueError: there is no checkout at `torchbench_root`.
    """
    from dynamometer.models.suites.tables import TableSuite

    return open_checkout(options) if "torchbench_root" in options else TableSuite("torchbench")


def open_checkout(options: Mapping[str, str]) -> Suite:
    """Return the suite of a checkout of pytorch/benchmark.

    Args:
        options: `torchbench_root` and `offline_weights`, as above.

    Raises:
        ValueError: there is no checkout at `torchbench_root`, or none is named.
    """
    from dynamometer.models.suites.torchbench_checkout import TorchBenchCheckout

    if "torchbench_root" not in options:
        msg = "the suite torchbench-checkout needs --torchbench-root DIR"
        raise ValueError(msg)
    offline = options["offline_weights"] == "yes"
    return TorchBenchCheckout(Path(options["torchbench_root"]), offline_weights=offline)


if __name__ == "__main__":
    import sys

    from dynamometer.__main__ import main

    del sys.path[0]  # a benchmarked model's own `import common` must not meet ours
    raise SystemExit(main("torchbench"))
