"""Trees without what torch doesn't promise."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import pytest
import torch
from torch.utils import _pytree as theirs

from dynamometer.dynamo import trees


class Pair(NamedTuple):
    """A named tuple."""

    left: object
    right: object


ONE, TWO = torch.ones(1), torch.ones(2)


@pytest.mark.parametrize(
    "tree",
    [
        ONE,
        [ONE, (TWO, 3), None],
        {"a": ONE, "b": {"c": [TWO]}},
        OrderedDict(a=ONE, b=2),
        Pair(ONE, [TWO]),
        (),
        "text",
    ],
    ids=lambda tree: type(tree).__name__,
)
def test_own_trees_are_as_torchs_are(tree: Any) -> None:
    """Of Python's containers the same leaves in the same order, and containers of the same kind."""
    mine, torchs = trees.leaves(tree), theirs.tree_leaves(tree)
    kept = [each for each in torchs if each is not None]
    assert len([each for each in mine if each is not None]) == len(kept)
    assert all(a is b for a, b in zip([e for e in mine if e is not None], kept, strict=True))

    def grown(leaf: torch.Tensor) -> int:
        return leaf.numel() + 10

    changed = trees.map_only(torch.Tensor, grown, tree)
    assert changed == theirs.tree_map_only(torch.Tensor, grown, tree)
    assert type(changed) is type(theirs.tree_map_only(torch.Tensor, grown, tree))


def test_torchs_own_are_used_while_there_are_any() -> None:
    """They know what containers libraries have registered; a lost name has a substitute."""
    assert trees.tree_leaves is theirs.tree_leaves
    assert trees._offered("no_such_function", trees.leaves) is trees.leaves
