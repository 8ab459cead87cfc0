#!/usr/bin/env python3
"""The TIMM suite: the image models of PyTorch's own benchmarks, and any other of timm."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynamometer.common.interfaces.suite import Suite


def open_suite(options: Mapping[str, str]) -> Suite:
    """Return the suite: the models of its tables, and with `all` every other architecture too."""
    from dynamometer.models.suites.timm_names import TimmModels

    return TimmModels(everything=options.get("all") == "yes")


if __name__ == "__main__":
    import sys

    from dynamometer.__main__ import main

    del sys.path[0]  # a benchmarked model's own `import common` must not meet ours
    raise SystemExit(main("timm_models"))
