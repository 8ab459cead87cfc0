"""What files of the published corpus import from `_paritybench_helpers`.

Its files hold modules without the programs around them: what those would have had from a command
line, a configuration or another file is replaced when a file is written, by these names.
"""

from __future__ import annotations

import unittest
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable


class _mock_config(dict[str, Any]):  # noqa: N801  the corpus' name
    """A configuration: its entries are its attributes, too."""

    def __getattr__(self, name: str) -> Any:
        """Return an entry.

        Raises:
            AttributeError: there is none; so copying and pickling find out what it lacks.
        """
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(name) from error


class _StandInLayer(nn.ReLU):
    """A layer in the place of one that was not at hand."""

    expansion = 1


def _mock_layer(
    in_features: int | None = None, out_features: int | None = None, *_: Any, **options: Any
) -> nn.Module:
    """Return a linear layer where both sizes are said, else one that keeps the size."""
    if in_features and out_features:
        return nn.Linear(in_features, out_features, **options)
    return _StandInLayer()


def patch_functional() -> None:
    """Give `torch.functional` and `torch.nn.functional` each the other's functions.

    Projects import either as `F`, and in a file of the corpus one import is left.
    """
    ones = (torch.functional, nn.functional)
    for here, there in (ones, ones[::-1]):
        for name in set(dir(there)) - set(dir(here)):
            if name[:1].isalpha() and name[:1].islower():
                setattr(here, name, getattr(there, name))


class _paritybench_base(unittest.TestCase):  # noqa: N801  the corpus' name
    """What older files derive the tests of another runner from; ours makes no use of them."""


def _fails_compile() -> Callable[[Any], Any]:
    """Return what leaves a test of another runner as it is."""
    return lambda test: test
