"""Whether an arm computes what eager computes, element by element.

What an element may be off by is the larger of two: a share of itself (the tolerance), and a
multiple of what rounding changes there when eager computes the same thing again in another way
(`Expected`). No element's allowance depends on a larger one beside it, and none is held to a
precision that eager itself doesn't have. `docs/decisions/0011-correctness.md` says why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from dynamometer.results.cases import Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dynamometer.dynamo.leaves import Leaf, Leaves

TOLERANCES: Mapping[tuple[str, Dtype], tuple[float, float]] = {
    ("cpu", Dtype.FLOAT32): (1e-4, 1e-3),
    ("cuda", Dtype.FLOAT32): (1e-3, 1e-2),
    ("cpu", Dtype.FLOAT16): (1e-3, 1e-3),
    ("cuda", Dtype.FLOAT16): (1e-3, 1e-3),
    ("cpu", Dtype.BFLOAT16): (8e-3, 8e-3),
    ("cuda", Dtype.BFLOAT16): (8e-3, 8e-3),
    ("cpu", Dtype.AMP): (8e-3, 8e-3),  # autocast computes in bfloat16 there
    ("cuda", Dtype.AMP): (1e-3, 1e-3),  # and in float16 here
}
"""What share of itself an element may be off by in inference and in training, whatever eager's
rounding, by device type and dtype.

In float32 those of PyTorch's own harness (`benchmarks/dynamo`: TorchBench 1e-4, the other suites
and GPUs 1e-3, where convolutions use TF32; ten times as much in training). In half precision one
rounding (`torch.testing.assert_close` takes 1e-3 and 1.6e-2): what is more must be rounding that
eager shows as well.
"""

ROUNDING_MULTIPLE = 32.0
"""An element may be off by this many times what rounding changes there, or in others of its
magnitude, in any of the runs of eager.

Right arms need up to 30 of three runs and 16 of nine, in the convolutional networks that are worst
(docs/decisions/0011-correctness.md).
"""

MEAN_SQUARE_MULTIPLE = 4.0
"""And elements of one magnitude by this many times in the mean square: many errors that are small
one by one are no rounding. PyTorch's harness allows 2 to 3 times eager's error against float64
(`same` in `torch/_dynamo/utils.py`)."""

LARGEST_MEAN_SQUARE, LEAST_MULTIPLE = 0.5, 1.5
"""But by no more than this share of their size, or this many times what rounding changes if that is
more: a result that is missing is no rounding."""

MEAN_SQUARE_SHARE = 0.3
"""Of the tolerance, which they may be off by in the mean square whatever eager's rounding."""

MOST_ROUNDING = 0.05
"""Where rounding is a larger share of the values, only large errors show, and that is said."""

_ZERO = 0.01
"""Values in float64 that are a smaller share of rounding are zero in exact arithmetic."""

_UNLIKE, _UNLIKE_TOLERANCES = 30.0, 10.0
"""If float64 is this many times farther from eager than rounding takes it, and this many
tolerances, in the mean square, the two did not compute the same thing: it is no referee."""

CHANGE = "change of "
"""How the paths of changes begin. What doesn't change has no such leaf: its change is zero."""

_TINY = float(torch.finfo(torch.float32).tiny)

_EXPONENT_BITS = 3
"""Binary exponents that differ in these lowest bits only make one magnitude."""

_FEWEST = 8
"""Elements whose mean square says something."""


@dataclass(frozen=True)
class Rounding:
    """How far results of the same computation are from one of them.

    Attributes:
        centre: the leaves they are compared with.
        spread: by path, the largest deviation of each element in any run; for whatever is not of
            floating point, whether any run differs there.
    """

    centre: Leaves
    spread: Mapping[str, torch.Tensor] = field(default_factory=dict)

    def with_run(self, run: Leaves) -> Rounding:
        """Take another run into account; leaves that it doesn't have in this form are left out."""
        wider = dict(self.spread)
        for path, leaf in self.centre.items():
            other = run.get(path) or _no_change(path, leaf)
            if other is not None and _are_alike(leaf.value, other.value):
                found = _spread(leaf.value, other.value)
                wider[path] = torch.maximum(wider[path], found) if path in wider else found
        return replace(self, spread=wider)


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
            if path not in self.eager.centre and (still := _no_change(path, leaf))
        }
        if not zero:
            return self
        eager = replace(self.eager, centre={**self.eager.centre, **zero})
        return replace(self, eager=eager)


@dataclass(frozen=True)
class Comparison:
    """How a result differs from what is expected.

    Attributes:
        max_error: largest deviation of a leaf from eager's in the root mean square, relative to
            that of its values, of those that are more than rounding; infinite where the two can't
            be subtracted.
        mismatch: the first leaf that is wrong: its path, and what is wrong with it.
        may_be_rounding: whether a mismatch is one of numbers, which more runs of eager may explain.
        unchecked: leaves that can't be compared, each with its path and why.
        loose: by path, what share of its values rounding changes, of leaves in which only larger
            errors are seen.
    """

    max_error: float = 0.0
    mismatch: str | None = None
    may_be_rounding: bool = False
    unchecked: tuple[str, ...] = ()
    loose: Mapping[str, float] = field(default_factory=dict)


def tolerance_of(device: str, dtype: Dtype, mode: Mode) -> float:
    """Give the share of itself that an element may be off by."""
    inference, training = TOLERANCES[device, dtype]
    return training if mode is Mode.TRAINING else inference


def are_identical(one: Leaves, other: Leaves) -> bool:
    """Tell whether two results have the same leaves, bit for bit but for the sign of zero."""
    return one.keys() == other.keys() and all(
        leaf.kind == other[path].kind and _are_equal(leaf, other[path])
        for path, leaf in one.items()
    )


def _are_equal(one: Leaf, other: Leaf) -> bool:
    if not isinstance(one.value, torch.Tensor):
        return one.value is other.value or not one.is_comparable or one.value == other.value
    return torch.equal(one.value, other.value) or bool(_same(one.value, other.value).all())


def compare(expected: Expected, actual: Leaves, tolerance: float) -> Comparison:
    """Judge the leaves of a call.

    A deviation is measured from eager's value or from float64's, whichever a leaf agrees with, as
    an arm may be more accurate than eager. NaN agrees with NaN, and an infinity with itself.
    Integers must be equal where no run of eager differs.

    Args:
        expected: what it is to come to.
        actual: the arm's.
        tolerance: what share of itself an element may be off by.
    """
    expected = expected.and_unchanged(actual)
    wanted = expected.eager.centre
    still = {path: _no_change(path, wanted[path]) for path in wanted.keys() - actual.keys()}
    actual = {**actual, **{path: leaf for path, leaf in still.items() if leaf}}
    if wanted.keys() != actual.keys():
        differing = ", ".join(sorted(wanted.keys() ^ actual.keys()))
        return Comparison(math.inf, f"the results have different structure: {differing}")
    largest, loose = 0.0, dict[str, float]()
    for path in wanted:
        found = _compare_leaf(expected, path, actual[path], tolerance)
        if found.mismatch:
            return replace(found, mismatch=f"{path}: {found.mismatch}")
        largest = max(largest, found.max_error)
        loose |= found.loose
    return Comparison(largest, unchecked=beyond_comparison(wanted, actual), loose=loose)


def beyond_comparison(eager: Leaves, actual: Leaves) -> tuple[str, ...]:
    """Name leaves that tell nothing, each with why: what has no equality, and what is all NaN."""
    return tuple(
        f"{path}: {reason}"
        for path, leaf in eager.items()
        if (reason := _why_beyond(leaf, actual[path]))
    )


def _why_beyond(leaf: Leaf, actual: Leaf) -> str | None:
    value = leaf.value
    if not isinstance(value, torch.Tensor):
        same = leaf.is_comparable or value is actual.value
        return None if same else f"a {leaf.kind} can't be compared"
    is_nan = value.is_floating_point() and value.numel() and math.isnan(float(value.sum()))
    return "all of it is NaN in eager" if is_nan and bool(value.isnan().all()) else None


MOST_WANDERING = 0.1
"""Of the elements of a result: if more differ between two runs of eager by more than the tolerance,
it is not rounding."""


def wanders(expected: Expected, again: Leaves, tolerance: float) -> str | None:
    """Say where eager disagrees with itself by more than rounding, if it does.

    Args:
        expected: eager's first run, and its result in float64.
        again: of the same inputs, weights and seed.
        tolerance: what share of itself an element may be off by.
    """
    eager = expected.eager.centre
    if eager.keys() != again.keys():
        return "the structure of the results"
    for path, leaf in eager.items():
        if leaf.kind != again[path].kind:
            return f"{path}: {leaf.kind}, then {again[path].kind}"
        share = _wandering_share(leaf, again[path], tolerance)
        if share > MOST_WANDERING and not _is_zero(expected.truth, path):
            return f"{path}: {share:.0%} of its elements"
    return None


def _wandering_share(leaf: Leaf, again: Leaf, tolerance: float) -> float:
    if _are_equal(leaf, again):
        return 0.0
    if not isinstance(leaf.value, torch.Tensor):
        return 1.0
    moved = _spread(leaf.value, again.value)
    if leaf.value.is_floating_point():
        moved = moved > tolerance * leaf.value.abs()
    return float(moved.double().mean())


def _compare_leaf(expected: Expected, path: str, actual: Leaf, tolerance: float) -> Comparison:
    leaf = expected.eager.centre[path]
    if leaf.kind != actual.kind:
        return Comparison(math.inf, f"expected {leaf.kind}, got {actual.kind}")
    if not isinstance(leaf.value, torch.Tensor):
        return _compare_objects(leaf, actual)
    if leaf.value.is_floating_point():
        return _compare_values(expected, path, actual.value, tolerance)
    return _compare_integers(expected, path, actual.value)


def _compare_objects(leaf: Leaf, actual: Leaf) -> Comparison:
    if _are_equal(leaf, actual):
        return Comparison()
    return Comparison(math.inf, f"expected {leaf.value!r}, got {actual.value!r}")


def _compare_integers(expected: Expected, path: str, actual: torch.Tensor) -> Comparison:
    """Compare where rounding decides nothing, as it does between indices of almost equal values."""
    wrong = expected.eager.centre[path].value != actual
    for rounding in (expected.eager, expected.truth):
        if rounding is not None and path in rounding.spread:
            wrong &= ~rounding.spread[path]
    differing = int(wrong.sum())
    if differing:
        return Comparison(math.inf, f"{differing} elements differ", may_be_rounding=True)
    return Comparison()


def _compare_values(
    expected: Expected, path: str, actual: torch.Tensor, tolerance: float
) -> Comparison:
    eager = expected.eager.centre[path].value
    if eager.numel() and bool(eager.isnan().all()):
        is_nan = bool(actual.isnan().all())
        return Comparison() if is_nan else _accusation("it is not NaN everywhere, as in eager")
    problems = []
    for name, rounding in _referees(expected, path, tolerance):
        centre = _Centre.of(rounding, path, actual)
        problem = centre.problem(tolerance)
        if problem is None and centre.rounding_share <= MOST_ROUNDING:
            return Comparison(_relative(eager, actual))
        if problem is None:
            is_zero = _is_zero(expected.truth, path)
            return Comparison(loose={} if is_zero else {path: centre.rounding_share})
        problems.append(f"{problem} ({name})")
    return _accusation("; ".join(problems))


def _accusation(problem: str) -> Comparison:
    return Comparison(math.inf, problem, may_be_rounding=True)


def _is_zero(truth: Rounding | None, path: str) -> bool:
    """Tell whether a leaf is zero in exact arithmetic, so that only rounding is to be seen."""
    if truth is None or path not in truth.spread:
        return False
    size = _root_mean_square(truth.centre[path].value)
    return size < _ZERO * _root_mean_square(truth.spread[path])


def _referees(expected: Expected, path: str, tolerance: float) -> Iterator[tuple[str, Rounding]]:
    """Give what a leaf may agree with: eager's, and float64's where that computed the same."""
    eager, truth = expected.eager, expected.truth
    yield "against eager", eager
    if truth is None or path not in truth.spread:
        return
    distance = _root_mean_square(truth.centre[path].value - eager.centre[path].value)
    usual = _root_mean_square(eager.spread[path]) if path in eager.spread else 0.0
    size = _root_mean_square(eager.centre[path].value)
    if distance <= max(_UNLIKE * usual, _UNLIKE_TOLERANCES * tolerance * size):
        yield "against float64", truth


@dataclass(frozen=True)
class _Centre:
    """One leaf of an arm beside the values it is compared with.

    Attributes:
        values: expected.
        deviation: of the arm's from these; infinite where only one is finite.
        actual: the arm's.
        spread: largest deviation of each element in any run of eager.
        magnitudes: which elements are of one magnitude: an index for each, 0 for zero and for
            whatever is not finite.
        typical: root mean square of `spread` for each magnitude.
        least: what a zero may be off by: a rounding of 1, or of the largest value if that is less.
    """

    values: torch.Tensor
    deviation: torch.Tensor
    actual: torch.Tensor
    spread: torch.Tensor
    magnitudes: torch.Tensor
    typical: torch.Tensor
    least: float

    @classmethod
    def of(cls, rounding: Rounding, path: str, actual: torch.Tensor) -> _Centre:
        """Take a leaf out of what is expected."""
        values = rounding.centre[path].value
        deviation = _spread(values, actual)
        spread = rounding.spread.get(path, torch.zeros_like(deviation))
        magnitudes = _magnitudes(values)
        largest = float(_finite(values).abs().max()) if values.numel() else 0.0
        eps = torch.finfo(actual.dtype).eps
        return cls(
            values=values,
            deviation=deviation,
            actual=actual,
            spread=spread,
            magnitudes=magnitudes,
            typical=_typical(spread, magnitudes),
            least=eps * (min(1.0, largest) if largest else 1.0),
        )

    @property
    def rounding_share(self) -> float:
        """What share of the values rounding changes, in the mean square; infinite of zeros."""
        rounding, size = _root_mean_square(self.spread), _root_mean_square(self.values)
        return rounding / size if size else math.inf if rounding else 0.0

    def problem(self, tolerance: float) -> str | None:
        """Say what is wrong with the arm's values, if anything is."""
        noise = torch.maximum(self.spread, self.typical[self.magnitudes])
        allowed = ROUNDING_MULTIPLE * noise + tolerance * _finite(self.values).abs()
        allowed[self.values == 0] += self.least
        over = self.deviation > allowed
        if bool(over.any()):
            return self._worst(over, allowed)
        return self._on_average(tolerance)

    def _worst(self, over: torch.Tensor, allowed: torch.Tensor) -> str:
        excess = torch.where(over, self.deviation / allowed.clamp_min(_TINY), 0.0)
        index = int(excess.flatten().argmax())
        place = [int(each) for each in torch.unravel_index(torch.tensor(index), over.shape)]
        expected, found, most = (
            float(each.flatten()[index]) for each in (self.values, self.actual, allowed)
        )
        return (
            f"{int(over.sum())} of {over.numel()} elements are wrong, the worst at {place}: "
            f"{found:.6g} where {expected:.6g} is expected, give or take {most:.2g}"
        )

    def _on_average(self, tolerance: float) -> str | None:
        """Look at all elements of a magnitude together."""
        sizes = _typical(self.values, self.magnitudes)
        errors = _typical(self.deviation, self.magnitudes)
        most = torch.maximum(LARGEST_MEAN_SQUARE * sizes, LEAST_MULTIPLE * self.typical)
        allowed = MEAN_SQUARE_MULTIPLE * self.typical + MEAN_SQUARE_SHARE * tolerance * sizes
        allowed = torch.minimum(allowed, most)
        counts = torch.bincount(self.magnitudes.flatten(), minlength=len(sizes))
        judged = (counts >= _FEWEST) & (self.typical <= sizes)
        judged[0] = False
        if not bool((judged & (errors > allowed)).any()):
            return None
        worst = int(torch.where(judged, errors / allowed.clamp_min(_TINY), 0.0).argmax())
        size = float(sizes[worst])
        return (
            f"{int(counts[worst])} elements are off by {float(errors[worst]) / size:.2g} of their "
            f"size in the mean square, where {float(allowed[worst]) / size:.2g} is allowed"
        )


def _magnitudes(values: torch.Tensor) -> torch.Tensor:
    """Group elements by their binary exponents: an index for each, 0 for what has none."""
    wide = values if values.dtype is torch.float64 else values.float()
    exponents = torch.frexp(wide).exponent >> _EXPONENT_BITS
    has_one = values != 0
    if not _all_finite(values):
        has_one &= values.isfinite()
    if not bool(has_one.any()):
        return torch.zeros_like(exponents)
    return torch.where(has_one, exponents - exponents[has_one].min() + 1, 0)


def _typical(values: torch.Tensor, magnitudes: torch.Tensor) -> torch.Tensor:
    """Give the root mean square of the finite values of each magnitude.

    Zeros take that of the smallest magnitude there is, if it is more: what is zero may be so by
    chance.
    """
    indices, flat = magnitudes.flatten(), values.flatten().double()
    if not _all_finite(flat):
        finite = flat.isfinite()
        indices, flat = indices[finite], flat[finite]
    count = int(magnitudes.max()) + 1 if magnitudes.numel() else 1
    sums = torch.bincount(indices, weights=flat.square(), minlength=count)
    counts = torch.bincount(indices, minlength=count)
    found = (sums / counts.clamp_min(1)).sqrt()
    if len(found) > 1:
        found[0] = max(found[0], found[1])
    return found


def _spread(centre: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Give what each element deviates by; infinity where only one is finite.

    In float32 wherever one of the two is: the difference of two that are close is exact.
    """
    if not centre.is_floating_point():
        return centre != other
    widest = torch.promote_types(torch.promote_types(centre.dtype, other.dtype), torch.float32)
    difference = (centre.to(widest) - other.to(widest)).abs_()
    if other.dtype is not torch.float64:
        difference = difference.float()
    if _all_finite(difference):
        return difference
    difference = torch.where(_same(centre, other), 0.0, difference)
    return difference.nan_to_num_(nan=math.inf, posinf=math.inf)


def _no_change(path: str, leaf: Leaf) -> Leaf | None:
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


def _same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    if not one.is_floating_point():
        return one == other
    return (one == other) | (one.isnan() & other.isnan())


def _relative(expected: torch.Tensor, actual: torch.Tensor) -> float:
    size = _root_mean_square(expected)
    error = _root_mean_square(_spread(expected, actual))
    return error / size if size else error


def _finite(values: torch.Tensor) -> torch.Tensor:
    return values if _all_finite(values) else torch.where(values.isfinite(), values, 0.0)


def _all_finite(values: torch.Tensor) -> bool:
    """Tell whether all elements are finite; the sum is, if they are, and is found much faster."""
    return math.isfinite(float(values.sum())) or bool(values.isfinite().all())


def _root_mean_square(values: torch.Tensor) -> float:
    """Give that of the finite elements; 0 of none."""
    return math.sqrt(float(_finite(values.double()).square().mean())) if values.numel() else 0.0
