"""What a call is to come to, and how far rounding takes it, from several runs of eager."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from dynamometer.dynamo.numbers import same
from dynamometer.dynamo.spread import Centre, Distance, Spread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynamometer.dynamo.leaves import Leaf, Leaves

CHANGE = "change of "
"""How the paths of changes begin. What doesn't change has no such leaf: its change is zero."""


@dataclass(frozen=True)
class Rounding:
    """How far results of the same computation are from one of them.

    Attributes:
        centre: the leaves they are compared with.
        spreads: by path, of leaves of floating point.
        others: by path, of integers the values of runs that differ.
    """

    centre: Leaves
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    others: Mapping[str, tuple[torch.Tensor, ...]] = field(default_factory=dict)

    def with_run(self, run: Leaves) -> Rounding:
        """Take another run into account; leaves that it doesn't have in this form are left out."""
        spreads, others = dict(self.spreads), dict(self.others)
        for path, leaf in self.centre.items():
            other = run.get(path) or no_change(path, leaf)
            if other is None or not _are_alike(leaf.value, other.value):
                continue
            if not leaf.value.is_floating_point():
                if not torch.equal(leaf.value, other.value):
                    others[path] = (*others.get(path, ()), other.value)
                continue
            found = Distance.between(Centre(leaf.value), other.value)
            known = spreads.get(path)
            spreads[path] = known.with_run(found) if known else Spread.of(found)
        return replace(self, spreads=spreads, others=others)


@dataclass(frozen=True)
class Expected:
    """What a call is to come to, from several runs of eager.

    Attributes:
        eager: around eager's own result.
        truth: around the result in float64; `None` where there is none.
    """

    eager: Rounding
    truth: Rounding | None = None

    @classmethod
    def of(cls, eager: Leaves, truth: Leaves | None = None) -> Expected:
        """Expect what eager gives, or float64 in its place."""
        around_truth = Rounding(truth).with_run(eager) if truth else None
        return cls(Rounding(eager), around_truth)

    def with_run(self, run: Leaves) -> Expected:
        """Take another run of eager into account, whose result is as right."""
        truth = self.truth.with_run(run) if self.truth else None
        return Expected(self.eager.with_run(run), truth)

    def and_unchanged(self, actual: Leaves) -> Expected:
        """Expect what an arm changes, and eager does not, to change by zero."""
        zero = {
            path: still
            for path, leaf in actual.items()
            if path not in self.eager.centre and (still := no_change(path, leaf))
        }
        if not zero:
            return self
        eager = replace(self.eager, centre={**self.eager.centre, **zero})
        return replace(self, eager=eager)


def are_identical(one: Leaves, other: Leaves) -> bool:
    """Tell whether two results have the same leaves, bit for bit but for the sign of zero."""
    return one.keys() == other.keys() and all(
        leaf.kind == other[path].kind and are_equal(leaf, other[path]) for path, leaf in one.items()
    )


def are_equal(one: Leaf, other: Leaf) -> bool:
    """Tell whether two leaves of one kind are equal; two that can't be compared count as equal."""
    if not isinstance(one.value, torch.Tensor):
        return one.value is other.value or not one.is_comparable or one.value == other.value
    return torch.equal(one.value, other.value) or bool(same(one.value, other.value).all())


def no_change(path: str, leaf: Leaf) -> Leaf | None:
    """Give a change of zero beside another; `None` beside what is no change."""
    if not path.startswith(CHANGE) or not isinstance(leaf.value, torch.Tensor):
        return None
    return replace(leaf, value=torch.zeros_like(leaf.value))


def _are_alike(one: object, other: object) -> bool:
    """Tell whether two leaves can be subtracted, or compared element by element."""
    return (
        isinstance(one, torch.Tensor)
        and isinstance(other, torch.Tensor)
        and one.shape == other.shape
        and one.is_floating_point() == other.is_floating_point()
    )
