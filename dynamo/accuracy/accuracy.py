"""Whether an arm computes what eager computes, element by element.

What an element may be off by is the larger of two: a share of itself (the tolerance), and a
multiple of what rounding changes there when eager computes the same thing again in another way
(`Expected`). No element's allowance depends on a larger one beside it, and none is held to a
precision that eager itself doesn't have. `docs/decisions/0011-correctness.md` says why.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING

import torch

from dynamometer.dynamo.accuracy.agreement import relative_error
from dynamometer.dynamo.accuracy.deviation import (
    IN_FLOAT32,
    IN_HALF,
    MOST_ROUNDING,
    NOTHING,
    Deviation,
)
from dynamometer.dynamo.accuracy.expected import are_equal, no_change
from dynamometer.dynamo.accuracy.numbers import (
    finite,
    is_all_nan,
    is_none_finite,
    root_mean_square,
    same,
)
from dynamometer.dynamo.accuracy.whole_numbers import Judged
from dynamometer.results.values.cases import Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynamometer.dynamo.accuracy.deviation import Multiples
    from dynamometer.dynamo.accuracy.expected import Expected, Known
    from dynamometer.dynamo.accuracy.leaves import Leaf, Leaves
    from dynamometer.dynamo.accuracy.spread import Centre

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
rounding, by device type and dtype; other accelerators are taken for CUDA devices.

In float32 those of PyTorch's own harness (`benchmarks/dynamo`: TorchBench 1e-4, the other suites
and GPUs 1e-3, where convolutions use TF32; ten times as much in training). In half precision one
rounding (`torch.testing.assert_close` takes 1e-3 and 1.6e-2): what is more must be rounding that
eager shows as well.
"""

_FLOAT64 = 1e-5
"""Of the tolerance: what a model that is published in float64 may be off by."""

_MOST_OFF = 0.25
"""What share of float64's values eager's may be off by in the mean square, again and again, by
rounding in half precision."""

_ROUNDINGS_OF_WHOLE = 8.0
"""Of its dtype, that a whole number may be off by which all runs agree on."""

_NEGLIGIBLE = 1e-4
"""A gradient that is a smaller share of the median size of its like is zero but for rounding."""


@dataclass(frozen=True)
class Allowed:
    """What a leaf may be off by.

    Attributes:
        tolerance: share of itself, of an element.
        multiples: of what rounding does.
        nothing: absolute, of a leaf that is exactly zero.
    """

    tolerance: float
    multiples: Multiples
    nothing: float = NOTHING


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
    """Return the share of itself that an element may be off by."""
    inference, training = TOLERANCES["cpu" if device == "cpu" else "cuda", dtype]
    return training if mode is Mode.TRAINING else inference


def compare(
    expected: Expected, actual: Leaves, tolerance: float, multiples: Multiples = IN_FLOAT32
) -> Comparison:
    """Judge the leaves of a call.

    A deviation is measured from float64's result, as an arm may be more accurate than eager; from
    eager's where float64 has none, or computed something else. NaN agrees with NaN, and an infinity
    with itself. Integers must be equal where no run of eager differs.

    Args:
        expected: what it is to come to.
        actual: the arm's.
        tolerance: what share of itself an element may be off by.
        multiples: of the effect of rounding, which an element may be off by in addition.
    """
    expected = expected.and_unchanged(actual)
    wanted = {path: known.eager for path, known in expected.leaves.items()}
    still = {path: no_change(path, wanted[path]) for path in wanted.keys() - actual.keys()}
    actual = {**actual, **{path: leaf for path, leaf in still.items() if leaf}}
    if wanted.keys() != actual.keys():
        differing = ", ".join(sorted(wanted.keys() ^ actual.keys()))
        return Comparison(math.inf, f"the results have different structure: {differing}")
    largest, loose = 0.0, dict[str, float]()
    largest_gradient = cache(partial(_largest_gradient, wanted))
    usual = Allowed(tolerance, multiples)
    for path in wanted:
        known, allowed = expected.leaves[path], usual
        if is_gradient(path) and known.centre is not None and not known.centre.size:
            nothing = min(NOTHING, multiples.nothing * largest_gradient())
            allowed = replace(usual, nothing=nothing or NOTHING)
        found = _compare_leaf(path, known, actual[path], allowed)
        if found.mismatch:
            return replace(found, mismatch=f"{path}: {found.mismatch}")
        largest = max(largest, found.max_error)
        loose |= found.loose
    return Comparison(
        largest,
        unchecked=beyond_comparison(wanted, actual),
        loose=_that_matter(loose, wanted),
    )


def _that_matter(loose: Mapping[str, float], wanted: Leaves) -> dict[str, float]:
    """Leave out gradients and changes so small beside their like that they are rounding of zero.

    The gradient of the key's bias in attention is zero in exact arithmetic. Of what a model gives,
    small results may matter as much as large ones.
    """
    roots = {_root(path) for path in loose}
    sizes = {
        path: root_mean_square(leaf.value)
        for path, leaf in wanted.items()
        if _root(path) in roots and isinstance(leaf.value, torch.Tensor)
    }
    usual = {
        root: statistics.median(size for path, size in sizes.items() if _root(path) == root)
        for root in roots
    }
    return {
        path: share
        for path, share in loose.items()
        if is_result(path) or sizes[path] >= _NEGLIGIBLE * usual[_root(path)]
    }


def is_gradient(path: str) -> bool:
    """Return whether a leaf of a call is a gradient, at whatever size."""
    return path.startswith("gradients")


def is_result(path: str) -> bool:
    """Return whether a leaf is of what a model gives: an output or a loss."""
    return path.startswith(("output", "loss"))


def do_coarse_runs_count(path: str, multiples: Multiples) -> bool:
    """Return whether coarse runs count for a leaf.

    In half precision for gradients alone: a gradient jumps where an activation is cut off, the
    activation itself doesn't; of other results such runs would hide errors.

    Args:
        path: of the leaf, or a text that begins with it.
        multiples: of what rounding does.
    """
    return multiples is not IN_HALF or is_gradient(path)


def _largest_gradient(wanted: Leaves) -> float:
    """Return the largest finite value of all gradients; 0 if they are all zero."""
    values = [leaf.value for path, leaf in wanted.items() if is_gradient(path)]
    return max((float(finite(each).abs().max()) for each in values if each.numel()), default=0.0)


def _root(path: str) -> str:
    return path.partition(".")[0]


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
    if is_all_nan(value):
        return "all of it is NaN in eager"
    return "none of it is finite in eager" if is_none_finite(value) else None


def _compare_leaf(path: str, known: Known, actual: Leaf, allowed: Allowed) -> Comparison:
    if known.eager.kind != actual.kind:
        return Comparison(math.inf, f"expected {known.eager.kind}, got {actual.kind}")
    if not isinstance(known.eager.value, torch.Tensor):
        return _compare_objects(known.eager, actual)
    if known.centre is None:
        return _compare_whole(path, known, actual.value, allowed)
    return _compare_values(path, known, actual.value, allowed)


def _compare_objects(leaf: Leaf, actual: Leaf) -> Comparison:
    if are_equal(leaf, actual):
        return Comparison()
    return Comparison(math.inf, f"expected {leaf.value!r}, got {actual.value!r}")


def _compare_whole(path: str, known: Known, actual: torch.Tensor, allowed: Allowed) -> Comparison:
    found = Judged.of(known, actual, is_half=allowed.multiples is IN_HALF)
    if found.wrong:
        return Comparison(math.inf, f"{found.wrong} elements differ", may_be_rounding=True)
    return Comparison(loose={path: found.share} if found.is_loose else {})


def _compare_values(path: str, known: Known, actual: torch.Tensor, allowed: Allowed) -> Comparison:
    eager = known.eager.value
    if is_all_nan(eager):
        is_same = is_all_nan(actual)
        return Comparison() if is_same else _accusation("it is not NaN everywhere, as in eager")
    tolerance = _own_tolerance(known, allowed.tolerance)
    if known.beyond is not None:
        off = (actual - known.beyond).abs()
        subnormal = torch.finfo(eager.dtype).tiny
        is_theirs = off <= tolerance * known.beyond.abs() + subnormal
        actual = torch.where(is_theirs & known.beyond.isfinite(), eager, actual)
    assert known.centre is not None  # of floating point there is one
    found = _deviation(known, known.centre, actual, allowed)
    problem = found.problem(tolerance)
    if problem and known.unlike is not None:
        nearest = _nearest(known.unlike, eager, actual, allowed.multiples)
        if not _deviation(known, nearest, actual, allowed).problem(tolerance):
            return Comparison(loose={path: relative_error(known.unlike.values, eager)})
    is_rare = (
        bool(problem)
        and do_coarse_runs_count(path, allowed.multiples)
        and _is_explained_by_coarse_runs(known, actual, allowed, tolerance)
    )
    if problem and not is_rare:
        return _accusation(problem, may_be_rounding=not found.is_hopeless)
    may_have_zeros = not is_result(path) or (known.coarse and known.coarse.has_zeros)
    if not may_have_zeros and (left_out := found.left_out(tolerance)):
        return _accusation(left_out)
    if known.is_zero:
        return Comparison()
    error, share = relative_error(eager, actual), _hidden_share(known, found, is_rare=is_rare)
    hides = is_rare or share > MOST_ROUNDING or (error > tolerance and found.is_rare)
    return Comparison(loose={path: share}) if hides else Comparison(error)


def _own_tolerance(known: Known, tolerance: float) -> float:
    """Return what share of itself an element of a leaf may be off by."""
    eager = known.eager.value
    is_wide = eager.dtype is torch.float64 and known.eager.kind != "float"
    # What float32 holds without loss was computed in it.
    if is_wide and not bool(same(eager.float().double(), eager).all()):
        tolerance *= _FLOAT64
    if _are_whole(known):
        tolerance = min(tolerance, _ROUNDINGS_OF_WHOLE * torch.finfo(eager.dtype).eps)
    return tolerance


def _hidden_share(known: Known, found: Deviation, *, is_rare: bool) -> float:
    """Return what share of a leaf errors may be that don't show.

    Args:
        known: what it is held to.
        found: an arm that is right.
        is_rare: whether only coarse runs explain it.
    """
    assert known.centre is not None  # of floating point there is one
    share, size = found.rounding_share, known.centre.size
    if known.eager.resolution is not None and size:
        share = max(share, root_mean_square(known.eager.resolution) / size)
    if is_rare and known.coarse and size:
        share = max(share, known.coarse.overall / size)
    return max(share, 1.0) if found.has_strays else share


def _are_whole(known: Known) -> bool:
    """Return whether they are whole numbers, the same in every run: counts or indices, say."""
    eager, spread = known.eager.value, known.spread
    if spread is None or not known.has_truth or spread.strays is not None or spread.overall:
        return False
    return bool(eager.numel()) and torch.equal(eager, eager.round())


def _deviation(known: Known, centre: Centre, actual: torch.Tensor, allowed: Allowed) -> Deviation:
    resolution = known.eager.resolution
    return Deviation.of(
        centre, known.spread, actual, allowed.multiples, resolution, allowed.nothing
    )


def _is_explained_by_coarse_runs(
    known: Known, actual: torch.Tensor, allowed: Allowed, tolerance: float
) -> bool:
    """Return whether what rounding does now and then explains it; not where runs are chaos."""
    multiples = allowed.multiples.of_coarse_runs
    if known.centre is None or known.coarse is None or multiples is None:
        return False
    if known.coarse.overall > multiples.chaos * known.centre.size:
        return False
    coarse = replace(allowed, multiples=multiples)
    # Of coarse runs none says where there may be no number.
    spread = replace(known.coarse, strays=known.spread.strays if known.spread else None)
    found = _deviation(replace(known, spread=spread), known.centre, actual, coarse)
    return not found.problem(tolerance)


def _nearest(
    truth: Centre, eager: torch.Tensor, actual: torch.Tensor, multiples: Multiples
) -> Centre:
    """Return what an arm is compared with where eager's values aren't float64's but for rounding.

    In half precision eager may be off by the same again and again, and an arm that rounds more or
    less often by something else: what is no farther from float64's values than eager's is right,
    unless these are so far apart that they are two computations.
    """
    if multiples is not IN_HALF or relative_error(truth.values, eager) > _MOST_OFF:
        return truth
    off = (eager.double() - truth.values.double()).abs()
    moved = (actual.double() - truth.values.double()).clamp(-off, off)
    return replace(truth, values=truth.values.double() + finite(moved))


def _accusation(problem: str, *, may_be_rounding: bool = True) -> Comparison:
    return Comparison(math.inf, problem, may_be_rounding=may_be_rounding)
