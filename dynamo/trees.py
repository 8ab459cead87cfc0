"""Tensors within lists, tuples, dictionaries, and whatever libraries tell torch is a container.

torch does all of it, by functions that it doesn't promise; without them only lists, tuples and
dictionaries are gone through. They are looked up at import, as Dynamo would trace the look-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamometer.dynamo.private import GoneError, private

if TYPE_CHECKING:
    from collections.abc import Callable


def leaves(tree: object) -> list[Any]:
    """Return what is in a container, however deep, in order; what is none is a leaf."""
    if not isinstance(tree, (list, tuple, dict)):
        return [tree]
    within = tree.values() if isinstance(tree, dict) else tree
    return [leaf for each in within for leaf in leaves(each)]


def map_only(kind: type, change: Callable[[Any], Any], tree: Any) -> Any:
    """Return a container like another, with every leaf of a kind changed."""
    match tree:
        case dict():
            return type(tree)((key, map_only(kind, change, each)) for key, each in tree.items())
        case tuple() if hasattr(tree, "_fields"):
            return type(tree)(*(map_only(kind, change, each) for each in tree))
        case list() | tuple():
            return type(tree)(map_only(kind, change, each) for each in tree)
    return change(tree) if isinstance(tree, kind) else tree


def once(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Change each object once: what is given twice stays one, and is written to as one."""
    made: dict[int, tuple[Any, Any]] = {}

    def changed(leaf: Any) -> Any:
        if id(leaf) not in made:  # it is kept, so that no other one gets its number
            made[id(leaf)] = (leaf, change(leaf))
        return made[id(leaf)][1]

    return changed


def _offered(name: str, own: Callable[..., Any]) -> Callable[..., Any]:
    try:
        found: Callable[..., Any] = private(f"torch.utils._pytree.{name}")
    except GoneError:
        return own
    return found


tree_leaves = _offered("tree_leaves", leaves)
tree_map_only = _offered("tree_map_only", map_only)
