"""The HuggingFace suite: transformers as PyTorch's own benchmarks configure them, and newer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.common.interfaces.suite_source import SuiteSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynamometer.common.interfaces.suite import Suite


class HuggingFace(SuiteSource):
    """The models of `models/huggingface`."""

    def open(self, opening: Mapping[str, str]) -> Suite:
        """Read its tables."""
        from dynamometer.models.suites.tables import TableSuite

        del opening
        return TableSuite("huggingface")


SUITE = HuggingFace()
