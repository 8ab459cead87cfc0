"""What files of the published corpus import from `_paritybench_helpers`.

Its files hold modules without the programs around them: what those would have had from a command
line, a configuration or another file is replaced when a file is written, by these names. What else
is named here is private, as scripts hold the text of it beside a file's own (`standalone.py`).
"""

import collections.abc as _abc
import typing as _typing
import unittest as _unittest

from torch import functional as _functional
from torch import nn as _nn


class _mock_config(dict[str, _typing.Any]):  # noqa: N801  the corpus' name
    """A configuration: its entries are its attributes, too."""

    def __getattr__(self, name: str) -> _typing.Any:
        """Return an entry.

        Raises:
            AttributeError: there is none; so copying and pickling find out what it lacks.
        """
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(name) from error


class _StandInLayer(_nn.ReLU):
    """A layer in the place of one that was not at hand."""

    expansion = 1


def _mock_layer(
    in_features: int | None = None,
    out_features: int | None = None,
    *_: _typing.Any,
    **options: _typing.Any,
) -> _nn.Module:
    """Return a linear layer where both sizes are said, else one that keeps the size."""
    if in_features and out_features:
        return _nn.Linear(in_features, out_features, **options)
    return _StandInLayer()


def patch_functional() -> None:
    """Give `torch.functional` and `torch.nn.functional` each the other's functions.

    Projects import either as `F`, and in a file of the corpus one import is left.
    """
    ones = (_functional, _nn.functional)
    for here, there in (ones, ones[::-1]):
        for name in set(dir(there)) - set(dir(here)):
            if name[:1].isalpha() and name[:1].islower():
                setattr(here, name, getattr(there, name))


class _paritybench_base(_unittest.TestCase):  # noqa: N801  the corpus' name
    """What older files derive the tests of another runner from; ours makes no use of them."""


def _fails_compile() -> _abc.Callable[[_typing.Any], _typing.Any]:
    """Return what leaves a test of another runner as it is."""
    return lambda test: test
