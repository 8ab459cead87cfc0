#!/usr/bin/env python3
"""The HuggingFace suite: transformers as PyTorch's own benchmarks configure them, and newer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynamometer.common.interfaces.suite import Suite


def open_suite(options: Mapping[str, str]) -> Suite:
    """Return the suite; it takes no options."""
    from dynamometer.models.suites.tables import TableSuite

    del options
    return TableSuite("huggingface")


if __name__ == "__main__":
    import sys

    from dynamometer.__main__ import main

    del sys.path[0]  # a benchmarked model's own `import common` must not meet ours
    raise SystemExit(main("huggingface"))
