from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from dynamometer.dynamo.accuracy.accuracy import TOLERANCES, Comparison, tolerance_of
from dynamometer.dynamo.accuracy.accuracy import compare as compare_leaves
from dynamometer.dynamo.accuracy.deviation import IN_FLOAT32, IN_HALF, Multiples
from dynamometer.dynamo.accuracy.expected import CHANGE, Expected, are_identical
from dynamometer.dynamo.accuracy.leaves import collect
from dynamometer.results.values.cases import Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Sequence

TOLERANCE = 1e-4
NAN, INF = math.nan, math.inf
F32 = "torch.float32"


def compare(  # noqa: PLR0913  what is known of a leaf, by name
    eager: object,
    arm: object,
    *,
    runs: Sequence[object] = (),
    coarse: Sequence[object] = (),
    truth: object = None,
    tolerance: float = TOLERANCE,
    multiples: Multiples = IN_FLOAT32,
    path: str = "output",
) -> Comparison:
    """Compare an arm's result with eager's, beside further runs of eager and one in float64."""
    expected = Expected.of(
        collect(eager, path),
        None if truth is None else collect(truth, path),
        [collect(run, path) for run in runs[:2]],
        tolerance,
    )
    for run in runs[2:]:
        expected = expected.with_run(collect(run, path))
    for run in coarse:
        expected = expected.with_run(collect(run, path), coarse=True)
    return compare_leaves(expected, collect(arm, path), tolerance, multiples)


def tensor(*values: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Make a vector."""
    return torch.tensor(values, dtype=dtype)


def normal(count: int, seed: int = 0) -> torch.Tensor:
    """Draw normally distributed numbers."""
    return torch.randn(count, generator=torch.Generator().manual_seed(seed))


def rounded(values: torch.Tensor, share: float, seed: int) -> torch.Tensor:
    """Return the values off by a share of the largest, as sums that cancel are."""
    return values + share * values.abs().max() * normal(values.numel(), seed).view_as(values)


X = tensor(1.0, -2.0, 3.0)


@pytest.mark.parametrize(
    ("eager", "arm"),
    [
        (X, X.clone()),
        (X, X * (1 + 0.5 * TOLERANCE)),
        ((X, X), [X, X]),
        ({"a": X, "b": None}, {"a": X}),
        (tensor(NAN, 1.0), tensor(NAN, 1.0)),
        (tensor(INF, -INF, 1.0), tensor(INF, -INF, 1.0)),
        (tensor(0.0), tensor(-0.0)),
        (torch.empty(0, 3), torch.empty(0, 3)),
        (tensor(1, 2, dtype=torch.int64), tensor(1, 2, dtype=torch.int64)),
        (torch.tensor([True, False]), torch.tensor([True, False])),
        (torch.tensor([1 + 2j]), torch.tensor([1 + 2j + 1e-6])),
        (torch.zeros(3), torch.full((3,), 1e-7)),
        (X.to(torch.bfloat16), X.to(torch.bfloat16)),
        (torch.eye(2).to_sparse(), torch.eye(2).to_sparse()),
        (X, X.clone().requires_grad_()),
        (7, 7),
        (2.5, 2.5 * (1 + 0.5 * TOLERANCE)),
        (NAN, NAN),
        ("text", "text"),
        ({1, 2}, {2, 1}),
        (None, None),
        (np.array([1.0, 2.0]), np.array([1.0, 2.0])),
        (np.array(["a"]), np.array(["a"])),
        (np.array([3.0, 2.0])[::-1], np.array([2.0, 3.0])),
    ],
    ids=lambda value: str(value).replace("\n", " ")[:40],
)
def test_what_agrees(eager: object, arm: object) -> None:
    """Equal results agree, whatever they are made of, and small errors are tolerated."""
    found = compare(eager, arm)
    assert found.mismatch is None
    assert not found.unchecked or "NaN" in found.unchecked[0]


@pytest.mark.parametrize(
    ("eager", "arm", "words"),
    [
        ((X, X), (X, X + 1), ["output[1]: 3 of 3 elements are wrong", "2 where 1 is expected"]),
        ({"a": X}, {"a": X[:2]}, ["output.a", f"shape (3,) of {F32}, got shape (2,) of {F32}"]),
        (X, X.double(), ["output", f"shape (3,) of {F32}, got shape (3,) of torch.float64"]),
        (X, [1.0, -2.0, 3.0], ["different structure", "output[0]"]),
        (X, 1.0, ["output", f"expected shape (3,) of {F32}, got float"]),
        ((X, X), (X,), ["different structure", "output[1]"]),
        ({"a": X}, {"b": X}, ["different structure", "output.a", "output.b"]),
        ({"a": X, "b": X}, {"a": X, "b": None}, ["different structure", "output.b"]),
        (1, 1.0, ["expected int, got float"]),
        (1, True, ["expected int, got bool"]),
        ("a", "b", ["expected 'a', got 'b'"]),
        (torch.float32, torch.float16, ["expected torch.float32, got torch.float16"]),
        (NAN, 1.0, ["output: it is not NaN everywhere"]),
        (1.0, NAN, ["output: 1 of 1 elements are wrong", "nan where 1 is expected"]),
        (1.0, 1.01, ["output: 1 of 1 elements are wrong", "1.01 where 1 is expected"]),
        (tensor(1.0, NAN), tensor(1.0, 2.0), ["output: 1 of 2", "at [1]: 2 where nan"]),
        (tensor(1.0, INF), tensor(1.0, -INF), ["output: 1 of 2", "-inf where inf is expected"]),
        (tensor(1.0, 2.0), tensor(1.0, INF), ["output: 1 of 2", "inf where 2 is expected"]),
        (torch.tensor([1 + 2j]), torch.tensor([1 - 2j]), ["output", "at [0, 1]: -2 where 2"]),
        (torch.tensor([True]), torch.tensor([False]), ["output: 1 elements differ"]),
        (torch.tensor([10**9, 1]), torch.tensor([10**9 + 1, 1]), ["output: 1 elements differ"]),
        (torch.zeros(3), torch.full((3,), 1e-3), ["output: 3 of 3 elements are wrong"]),
        (np.array([1.0, 2.0]), np.array([1.0, 3.0]), ["output: 1 of 2"]),
        (np.array(["a"]), np.array(["b"]), ["expected ['a'], got ['b']"]),
    ],
    ids=lambda value: str(value).replace("\n", " ")[:40],
)
def test_what_does_not_agree(eager: object, arm: object, words: list[str]) -> None:
    """A mismatch names the path and what is wrong there."""
    found = compare(eager, arm)
    assert found.mismatch is not None
    for word in words:
        assert word in found.mismatch
    assert found.max_error == math.inf


def test_what_cannot_be_compared_is_named() -> None:
    """Nothing is passed over without a word."""
    found = compare({"f": object(), "x": X}, {"f": object(), "x": X})
    assert found.mismatch is None
    assert found.unchecked == ("output.f: a object can't be compared",)
    all_nan = compare(tensor(NAN, NAN), tensor(NAN, NAN))
    assert all_nan.unchecked == ("output: all of it is NaN in eager",)
    beyond = compare(tensor(INF, -INF), tensor(INF, -INF))
    assert beyond.unchecked == ("output: none of it is finite in eager",)


@pytest.mark.parametrize("large", [torch.finfo(torch.float32).min, -1e9, 400.0 * 256])
@pytest.mark.parametrize("share", [0.001, 0.5, 0.999])
def test_no_large_element_frees_the_others(large: float, share: float) -> None:
    """Logits masked with a large number, or coordinates beside scores, set no other's allowance."""
    eager = normal(10_000)
    masked = torch.arange(10_000) >= 10_000 * (1 - share)
    eager[masked] = large
    wrong = eager.clone()
    wrong[~masked] = 123.0
    factors = [1 + 1e-7 * normal(10_000, seed) for seed in (1, 2)]
    runs = [torch.where(masked, eager, eager * factor) for factor in factors]
    assert compare(eager, wrong, runs=runs).mismatch
    one = eager.clone()
    one[0] += 0.01
    assert compare(eager, one, runs=runs).mismatch
    assert compare(eager, runs[0], runs=runs[1:]).mismatch is None


def test_one_wrong_element_of_a_million_is_found() -> None:
    """None is averaged away."""
    eager = normal(1_000_000)
    arm = rounded(eager, 1e-7, seed=1)
    runs = [rounded(eager, 1e-7, seed) for seed in (2, 3)]
    assert compare(eager, arm, runs=runs).mismatch is None
    arm[12_345] += 1e-3
    found = compare(eager, arm, runs=runs)
    assert found.mismatch is not None
    assert found.mismatch.startswith(
        "output: 1 of 1000000 elements are wrong, the worst at [12345]"
    )


def test_a_small_element_is_held_to_no_precision_that_eager_lacks() -> None:
    """What is left of sums that cancel is rounding, in eager as in an arm."""
    eager = torch.linspace(-1, 1, 100_001)
    arm, runs = rounded(eager, 1e-6, 1), [rounded(eager, 1e-6, seed) for seed in (2, 3)]
    assert compare(eager, arm).mismatch is not None
    assert compare(eager, arm, runs=runs).mismatch is None


def test_many_errors_that_are_small_one_by_one_are_found() -> None:
    """A factor is no rounding, though each element is within the tolerance."""
    eager = normal(1000)
    runs = [rounded(eager, 1e-8, seed) for seed in (1, 2)]
    found = compare(eager, eager * (1 + 0.8 * TOLERANCE), runs=runs)
    assert "in the mean square" in (found.mismatch or "")


def test_what_is_zero_but_for_rounding_is_not_compared_with_itself() -> None:
    """The mean of a normalised channel, the gradient of a bias before a normalisation."""
    truth = 1e-18 * normal(64).double()
    eager, arm, *runs = (1e-9 * normal(64, seed) for seed in range(1, 5))
    found = compare(eager, 10 * arm, runs=runs, truth=truth)
    assert (found.mismatch, found.max_error, found.loose) == (None, 0.0, {})
    assert compare(eager, arm + 1e-5, runs=runs, truth=truth).mismatch
    exactly = torch.zeros(64)
    assert compare(exactly, arm, runs=[exactly, exactly]).mismatch is None


def test_an_arm_may_be_nearer_the_truth_than_eager() -> None:
    """An arm that rounds less is not accused of differing from eager."""
    truth = normal(1000).double()
    eager = (truth * 1.03).float()
    runs = [eager * (1 + 1e-4 * normal(1000, seed)) for seed in (1, 2)]
    assert compare(eager, truth.float(), runs=runs).mismatch
    close = [eager * (1 + 2e-3 * normal(1000, seed)) for seed in (1, 2)]
    assert compare(eager, truth.float(), runs=close, truth=truth).mismatch is None


def test_float64_that_computed_something_else_is_no_referee() -> None:
    """Another random mask absolves nobody but who draws the same."""
    eager, truth, other = normal(1000), normal(1000, seed=1), normal(1000, seed=4)
    runs = [rounded(eager, 1e-7, seed) for seed in (2, 3)]
    found = compare(eager, other, runs=runs, truth=truth.double())
    assert "1000 of 1000 elements are wrong" in (found.mismatch or "")


def test_an_arm_may_be_right_where_low_precision_is_always_wrong() -> None:
    """What bfloat16 rounds in the same way again and again shows in no run."""
    truth = normal(1000).double()
    eager = (truth * 1.5).bfloat16()
    known = {"runs": [eager, eager], "truth": truth, "tolerance": 8e-3}
    assert compare(eager, truth.bfloat16(), **known).mismatch is None
    assert compare(eager, (truth * 1.2).bfloat16(), **known).mismatch


def test_what_low_precision_is_always_wrong_of_may_be_of_any_magnitude() -> None:
    """Eager loses all that is small, and has no magnitude for it."""
    truth = normal(1000).double() * torch.logspace(0, -12, 1000, dtype=torch.float64)
    eager = (truth * 1.5 + 1.0).bfloat16()
    known = {"runs": [eager, eager], "truth": truth, "tolerance": 8e-3}
    assert compare(eager, truth.bfloat16(), **known).mismatch is None
    assert compare(eager, (truth * 1.2).bfloat16(), **known).mismatch


def test_a_zero_in_half_precision_is_zero() -> None:
    """What leaks through a mask is no rounding."""
    eager = torch.relu(normal(1000)).bfloat16()
    leaky = torch.where(eager == 0, 0.007, eager.float()).bfloat16()
    assert compare(eager, leaky, runs=[eager, eager]).mismatch


def test_where_eager_overflows_an_arm_is_not_free() -> None:
    """It gives what eager gives, or what float64 does."""
    truth = torch.tensor([1.0, 7e4, -8e4, 3.0], dtype=torch.float64)
    eager = torch.tensor([1.0, INF, -INF, 3.0], dtype=torch.float16)
    assert compare(eager, eager.clone(), runs=[eager], truth=truth).mismatch is None
    five = torch.tensor([1.0, 5.0, 5.0, 3.0], dtype=torch.float16)
    assert compare(eager, five, runs=[eager], truth=truth).mismatch


def test_a_model_in_float64_is_held_to_float64() -> None:
    """It is published in it for a reason."""
    eager = normal(100).double() / 3
    assert compare(eager, eager * (1 + 1e-12), runs=[eager]).mismatch is None
    assert compare(eager, eager.float().double(), runs=[eager]).mismatch


def test_what_rounding_hides_is_said() -> None:
    """Where eager itself is off by a third, an error of a hundredth can't be seen."""
    eager = normal(1000)
    runs = [eager + 0.3 * normal(1000, seed) for seed in (1, 2)]
    found = compare(eager, eager * 1.01, runs=runs)
    assert found.mismatch is None
    assert found.loose["output"] == pytest.approx(0.4, abs=0.1)
    assert compare(eager, eager + 50, runs=runs).mismatch


def test_an_index_may_be_another_where_rounding_decides() -> None:
    """Of two values that are almost equal either may be the largest; of others not."""
    eager = torch.tensor([3, 5, 7])
    other = torch.tensor([3, 6, 7])
    assert compare(eager, other).mismatch == "output: 1 elements differ"
    assert compare(eager, other, runs=[other]).mismatch is None
    assert compare(eager, torch.tensor([3, 10**6, 7]), runs=[other]).mismatch
    assert compare(eager, torch.tensor([2, 6, 7]), runs=[other]).mismatch


def test_a_run_of_another_form_is_left_out() -> None:
    """How many boxes are found may depend on rounding."""
    assert compare(X, X + 1, runs=[tensor(1.0), "text", 2.0, {"a": X}]).mismatch


def test_where_a_run_overflows_an_arm_may() -> None:
    """In half precision rounding decides what is infinite."""
    eager, arm = tensor(6e4, 1.0, dtype=torch.float16), tensor(INF, 1.0, dtype=torch.float16)
    assert compare(eager, arm).mismatch
    assert compare(eager, arm, runs=[arm]).mismatch is None


def test_no_change_is_a_change_of_zero() -> None:
    """What an arm changes, and eager does not, is wrong by all of it; so is the reverse."""
    path = f"{CHANGE}inputs.args[0]"
    changed = collect(X, path)
    found = compare_leaves(Expected.of({}), changed, TOLERANCE)
    assert (found.mismatch or "").startswith(f"{path}: 3 of 3 elements are wrong")
    found = compare_leaves(Expected.of(changed), {}, TOLERANCE)
    assert "0 where 3 is expected" in (found.mismatch or "")
    tiny = collect(X * 1e-9, path)
    assert compare_leaves(Expected.of({}), tiny, TOLERANCE).mismatch is None


def test_the_largest_error_of_all_leaves_is_given() -> None:
    """What agrees still tells how well."""
    found = compare([X, X, X], [X, X * (1 + 2.5e-5), X * (1 + 2e-5)])
    assert found.mismatch is None
    assert found.max_error == pytest.approx(2.5e-5, rel=0.01)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_two_results_are_identical_to_the_last_bit(dtype: torch.dtype) -> None:
    """Two eager runs that differ in one bit differ; NaN is itself."""
    one = tensor(1.0, NAN, INF, 0.0, dtype=dtype)
    other = one.clone()
    assert are_identical(collect(one), collect(other))
    other[3] = -0.0
    assert are_identical(collect(one), collect(other))
    other[0] += torch.finfo(dtype).eps
    assert not are_identical(collect(one), collect(other))
    assert not are_identical(collect(one), collect([one]))


def test_every_case_has_a_tolerance() -> None:
    """For each device type and dtype; training's is never the smaller."""
    assert set(TOLERANCES) == {(device, dtype) for device in ("cpu", "cuda") for dtype in Dtype}
    for device, dtype in TOLERANCES:
        inference = tolerance_of(device, dtype, Mode.INFERENCE)
        assert 0 < inference <= tolerance_of(device, dtype, Mode.TRAINING) < 0.1


def leaf(value: Any) -> Any:
    """Return the only leaf of a value."""
    return collect(value)["output"].value


@pytest.mark.parametrize("share", [1e-3, 1e-2])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_compared_by_its_own_rounding(dtype: torch.dtype, share: float) -> None:
    """One rounding of the result is tolerated, a share beyond all of them is not."""
    truth = normal(1000).double()
    eager, *runs = ((truth * (1 + 1e-3 * normal(1000, seed))).to(dtype) for seed in (1, 2, 3))
    one_rounding = (truth * (1 + 1e-3 * normal(1000, 4))).to(dtype)
    assert compare(eager, one_rounding, runs=runs, truth=truth).mismatch is None
    found = compare(eager, (leaf(eager) * (1 + 20 * share)).to(dtype), runs=runs, truth=truth)
    assert found.mismatch


def test_what_is_mostly_rounding_is_as_large_as_that() -> None:
    """The gradients of a chaotic network may be any, but not none."""
    truth = normal(500).double()
    eager, *runs = ((truth + 2 * normal(500, seed)).float() for seed in (1, 2, 3))
    known = {"runs": runs, "truth": truth}
    assert compare(eager, (truth + 2 * normal(500, 4)).float(), **known).mismatch is None
    assert compare(eager, truth.float(), **known).mismatch is None
    assert "root mean square is 0" in (compare(eager, 0 * eager, **known).mismatch or "")


def test_which_elements_rounding_takes_far_is_chance() -> None:
    """Of a gradient of which much is rounding, in half precision.

    Channels that are dead come alive in few runs, each in others: one may be as far off as those
    that are alive. Two of the 40 were accused when each was held to what it did itself.
    """
    alive = torch.arange(1000) % 30 == 0
    truth = torch.where(alive, 0.02 * normal(1000, 8), 1e-6 * normal(1000, 9)).double()

    def run(seed: int) -> torch.Tensor:
        draw = torch.Generator().manual_seed(seed + 2000)
        comes_alive = torch.rand(1000, generator=draw) < 0.002
        jumps = 1e-3 * (1.5 * normal(1000, seed + 1000)).exp() * comes_alive
        return truth.float() + torch.where(alive, 0.05, 1e-5) * normal(1000, seed) + jumps

    eager, *runs = (run(seed) for seed in range(10, 27))
    known: Any = {"runs": runs, "truth": truth, "multiples": IN_HALF, "path": "gradients.weight"}
    for seed in range(100, 140):
        assert compare(eager, run(seed), **known).mismatch is None
    many, far = run(100), run(100)
    many[::2] = 0.05
    far[500] = 10
    assert compare(eager, many, **known).mismatch
    assert compare(eager, far, **known).mismatch


def test_few_noisy_elements_free_no_others() -> None:
    """A row that is 0/0 but for rounding says nothing of the rows beside it."""
    eager = normal(4096).view(64, 64)
    noisy = torch.zeros(64, 1, dtype=torch.bool)
    noisy[7] = True

    def run(seed: int) -> torch.Tensor:
        other = normal(4096, seed).view(64, 64)
        return torch.where(noisy, other, eager * (1 + 1e-7 * other))

    runs = [run(1), run(2)]
    assert compare(eager, run(3), runs=runs).mismatch is None
    assert compare(eager, torch.where(noisy, eager, eager * 1.1), runs=runs).mismatch
    one = run(4)
    one[3] = 0
    assert compare(eager, one, runs=runs).mismatch


def test_a_factor_shows_in_the_sum_before_it_does_in_any_element() -> None:
    """Where rounding hides a tenth of each element, it doesn't hide a tenth of all."""
    truth = normal(5000).double()
    eager, *runs = ((truth + 0.06 * normal(5000, seed)).bfloat16() for seed in (1, 2, 3, 4))
    right = (truth + 0.06 * normal(5000, 5)).bfloat16()
    assert compare(eager, right, runs=runs, truth=truth).mismatch is None
    found = compare(eager, (right * 1.1), runs=runs, truth=truth)
    assert "of itself on average" in (found.mismatch or "")


def test_a_result_that_is_missing_is_no_rounding() -> None:
    """However much rounding changes, as long as it leaves half of it."""
    eager = normal(500)
    runs = [eager + 0.2 * normal(500, seed) for seed in (1, 2)]
    assert compare(eager, torch.zeros(500), runs=runs).mismatch


def test_what_is_too_small_for_its_dtype_may_be_flushed() -> None:
    """Some processors, and some compilers, take denormal numbers for zero."""
    eager = torch.tensor([1.0, 1e-39, -1e-40])
    assert compare(eager, torch.tensor([1.0, 0.0, 0.0])).mismatch is None


def test_what_cancels_exactly_may_leave_a_rounding() -> None:
    """In eager a value less itself; in an arm that multiplies and adds in one, what is rounded."""
    assert compare(torch.zeros(15), torch.full((15,), -4.8e-7)).mismatch is None
    assert compare(torch.zeros(15), torch.full((15,), 1e-4)).mismatch


@pytest.mark.parametrize("size", [1e2, 1e9])
def test_noise_in_one_column_frees_no_other(size: float) -> None:
    """Be it larger than all that is not noise."""
    eager = normal(1024).view(64, 16)
    runs = [eager * (1 + 1e-7 * normal(1024, seed).view(64, 16)) for seed in (1, 2, 3)]
    for index, each in enumerate((eager, *runs)):
        each[:, 0] = size * normal(64, 10 + index)
    other = eager.clone()
    other[:, 0] = size * normal(64, 20)
    assert compare(eager, other, runs=runs).mismatch is None
    other[:, 1:] = 0.3
    assert compare(eager, other, runs=runs).mismatch


def test_what_is_zero_is_so_whatever_eager_leaves_of_it_every_time() -> None:
    """As of the gradient of a bias in front of a softmax over all positions."""
    eager, truth = tensor(0.0, 1.5e-8), tensor(1e-17, -1e-17, dtype=torch.float64)
    known = {"runs": [eager, eager, eager], "truth": truth}
    assert compare(eager, tensor(4e-8, -4e-8), **known).mismatch is None
    assert compare(eager, tensor(1e-4, 0.0), **known).mismatch
    large = {"runs": [1e4 * eager] * 3, "truth": truth}
    assert compare(1e4 * eager, tensor(4e-4, -4e-4), **large).mismatch


# What rounding does now and then: an activation that is cut off, seen in coarse runs alone


def cut_off(values: torch.Tensor, place: int, by: float = 0.1) -> torch.Tensor:
    """Change one of the values as a cut-off activation does, and all by rounding."""
    found = rounded(values, 1e-7, place)
    found[place] += by
    return found


@pytest.mark.parametrize(
    ("multiples", "share"), [(IN_FLOAT32, 1e-7), (IN_HALF, 1e-4)], ids=["float32", "half"]
)
def test_what_coarse_runs_do_now_and_then_an_arm_may_do(multiples: Multiples, share: float) -> None:
    """It isn't larger there, only more frequent; at another place, too."""
    values = normal(1000)
    fine = [rounded(values, share, seed) for seed in range(16)]
    times = 2 * multiples.coarse
    coarse = [cut_off(rounded(values, times * share, seed), 10 * seed) for seed in range(4)]
    arm = cut_off(values, 55)
    given: Any = {"runs": fine, "truth": values.double(), "multiples": multiples}
    assert compare(values, arm, **given).mismatch
    assert bool(compare(values, arm, coarse=coarse, **given).mismatch) is (multiples is IN_HALF)
    found = compare(values, arm, coarse=coarse, path="gradients.weight", **given)
    assert not found.mismatch
    assert found.loose


@pytest.mark.parametrize("by", [10.0, float("nan")])
@pytest.mark.parametrize(
    ("multiples", "share"), [(IN_FLOAT32, 1e-7), (IN_HALF, 1e-4)], ids=["float32", "half"]
)
def test_what_no_coarse_run_does_an_arm_may_not_do(
    multiples: Multiples, share: float, by: float
) -> None:
    """Neither by far more, nor as smooth an error as coarse runs have with none of it."""
    values, times = normal(1000), 2 * multiples.coarse
    fine = [rounded(values, share, seed) for seed in range(16)]
    coarse = [cut_off(rounded(values, times * share, seed), 10 * seed) for seed in range(4)]
    given: Any = {
        "runs": fine, "coarse": coarse, "truth": values.double(), "multiples": multiples,
        "path": "gradients.weight",
    }  # fmt: skip
    assert compare(values, cut_off(values, 55, by), **given).mismatch
    assert compare(values, values * 1.01, **given).mismatch
    smooth = [rounded(values, times * share, seed) for seed in range(8)]
    calm: Any = {**given, "coarse": smooth}
    assert compare(values, cut_off(values, 55), **calm).mismatch
    assert compare(values, cut_off(values, 55, 1e5 * share), **calm).mismatch


def test_what_coarse_runs_overflow_to_frees_nothing() -> None:
    """A run that is NaN where eager isn't says nothing of an arm that is."""
    values = normal(1000)
    fine = [rounded(values, 1e-4, seed) for seed in range(16)]
    given: Any = {"runs": fine, "truth": values.double(), "multiples": IN_HALF}
    overflown = [torch.full_like(values, NAN)] * 8
    for arm in (torch.full_like(values, NAN), cut_off(values, 55)):
        found = compare(values, arm, coarse=overflown, path="gradients.weight", **given)
        assert found.mismatch


def test_elements_left_out_of_a_gradient_are_noticed_in_half_precision() -> None:
    """Not excused by how often smooth errors of coarse runs exceed the usual by chance."""
    values = normal(10_000)
    fine = [rounded(values, 0.005, seed) for seed in range(16)]
    coarse = [rounded(values, 0.02, seed) for seed in range(8)]
    arm = values.clone()
    arm[:30] = 0.0
    given: Any = {"runs": fine, "coarse": coarse, "truth": values.double()}
    found = compare(values, arm, multiples=IN_HALF, path="gradients.weight", **given)
    assert found.mismatch


def test_coarse_runs_of_what_is_mostly_rounding_say_nothing() -> None:
    """So many times as much would be all there is."""
    values = normal(1000)
    fine = [rounded(values, 0.01, seed) for seed in range(16)]
    coarse = [rounded(values, 1.0, seed) for seed in range(8)]
    given: Any = {"runs": fine, "coarse": coarse, "truth": values.double()}
    assert compare(values, torch.zeros(1000), **given).mismatch
    assert compare(values, -values, **given).mismatch


# Elements that a kernel leaves out


def one_left_out(values: torch.Tensor, place: int) -> torch.Tensor:
    """Change all by rounding, and one to zero."""
    found = rounded(values, 1e-7, 99)
    found[place] = 0.0
    return found


def test_a_zero_is_none_of_what_rounding_does_now_and_then() -> None:
    """One run takes another branch in some elements: that makes no zero of any."""
    values = 1 + normal(1000).abs()
    values[700] = 1.2
    another = rounded(values, 1e-7, 3)
    another[:50] += 0.5
    given: Any = {
        "runs": [rounded(values, 1e-7, 1), rounded(values, 1e-7, 2), another],
        "truth": values.double(),
    }
    assert compare(values, cut_off(values, 700, 0.5), **given).mismatch is None
    assert "0 where" in (compare(values, one_left_out(values, 700), **given).mismatch or "")
    assert compare(values, one_left_out(values, 700), path="gradients.w", **given).mismatch is None


@pytest.mark.parametrize("where", ["eager", "runs", "coarse"])
def test_a_zero_may_be_where_eager_has_some(where: str) -> None:
    """Such as an activation that is cut off, which may be another one in an arm."""
    values = 1 + normal(1000).abs()
    another = cut_off(values, 3, 2.0)
    runs = [rounded(values, 1e-7, 1), another]
    coarse = [rounded(values, 1e-6, 4)]
    if where == "eager":
        values[5] = 0.0
    else:
        {"runs": another, "coarse": coarse[0]}[where][5] = 0.0
    given: Any = {"runs": runs, "coarse": coarse, "truth": values.double()}
    assert compare(values, one_left_out(values, 700), **given).mismatch is None


@pytest.mark.parametrize("none", [INF, NAN])
def test_a_zero_is_right_where_runs_excuse_it(none: float) -> None:
    """Where eager overflows, and runs give any number, an arm may give zero."""
    eager, one, other = (1 + normal(1000).abs() for _ in range(3))
    arm = eager.clone()
    eager[0], one[0], other[0], arm[0] = none, 3e4, -2e4, 0.0
    assert compare(eager, arm, runs=[one, other]).mismatch is None


@pytest.mark.parametrize(("value", "is_right"), [(0.03, True), (0.07, False)])
def test_a_zero_may_be_off_by_half_of_what_others_may(value: float, *, is_right: bool) -> None:
    """What is as small as rounding may come to nothing."""
    truth = 1 + normal(1000).abs()
    truth[700] = value
    given: Any = {
        "runs": [(truth + 0.006 * normal(1000, seed)).bfloat16() for seed in range(16)],
        "truth": truth.double(), "multiples": IN_HALF, "tolerance": 8e-3,
    }  # fmt: skip
    arm, other = one_left_out(truth, 700).bfloat16(), truth.clone()
    other[700] += value
    assert (compare(truth.bfloat16(), arm, **given).mismatch is None) is is_right
    assert compare(truth.bfloat16(), other.bfloat16(), **given).mismatch is None
