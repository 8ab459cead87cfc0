"""The cases `bench/checker.py` spoils, and which spoilings of them count.

What counts is decided from what eager computes in the case's precision and in float64, before any
checker is asked.
"""

from __future__ import annotations

import random
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from spoiled_arm import inputs_by_path
from spoiling import ANOTHERS, ONE_PARAMETER, Part, Target, changed

from dynamometer.common import registry
from dynamometer.common.checking.copies import in_float64
from dynamometer.common.checking.looking import Settings
from dynamometer.common.checking.reference import reference_of
from dynamometer.common.checking.shapes import with_other_sizes
from dynamometer.common.checking.steps import DTYPES, configure, make_step, own_module
from dynamometer.dynamo import state
from dynamometer.dynamo.accuracy import accuracy
from dynamometer.dynamo.accuracy.leaves import by_path
from dynamometer.dynamo.accuracy.rounding import DrawsOf
from dynamometer.results.values.cases import BASELINE, Case, Dtype, Mode, Scale

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from spoiling import Spoiling

    from dynamometer.common.checking.reference import Reference
    from dynamometer.common.interfaces.suite import LoadedModel, Suite
    from dynamometer.results.values.cases import ModelSpec

SHARES = {Dtype.FLOAT32: 0.005, Dtype.BFLOAT16: 0.05, Dtype.AMP: 0.05}
"""Of an element that it must change by at least to be seen, by dtype."""

ERRORS = 10.0
"""And by this many times eager's error against float64."""

MOST_OF = 0.5
"""Of the elements that a spoiling changes must be changed so: then it counts."""

_ROUNDINGS = 4.0
"""That stand for eager's error where float64 fails."""


def suite_of(name: str) -> Suite:
    """Open one of the three suites."""
    return registry.suite(name).open({})


def case_of(
    spec: ModelSpec, suite: str, mode: Mode, dtype: Dtype, *, dynamic: bool = False
) -> Case:
    """Return the case of a model at tiny scale."""
    batch_size = spec.batch_size_at(Scale.TINY, "cpu", mode, dynamic=dynamic)
    return Case(
        suite=suite,
        model=spec.name,
        arms=(BASELINE,),
        mode=mode,
        dtype=dtype,
        dynamic=dynamic,
        scale=Scale.TINY,
        batch_size=batch_size,
    )


def load(spec: ModelSpec, case: Case, seed: int) -> LoadedModel:
    """Build a case's model as a worker does.

    Raises:
        Exception: whatever building it raises.
    """
    suite = suite_of(case.suite)
    state.seed_everything(seed)
    loaded = suite.load(spec, case)
    if case.dynamic:
        loaded = with_other_sizes(loaded, suite, spec, case)
    return configure(loaded, case, torch.device("cpu"))


def build_reference(loaded: LoadedModel, spec: ModelSpec, case: Case, seed: int) -> Reference:
    """Return what the arms of a case are held to.

    Raises:
        Exception: as `reference_of` does.
    """
    tolerance = accuracy.tolerance_of(case.device, case.dtype, case.mode)
    return reference_of(loaded, case, Settings(seed, spec.tolerance or tolerance))


@dataclass(frozen=True)
class Seen:
    """Tensors of one step: output and loss, and in training gradients and buffers, by path."""

    outputs: Mapping[str, torch.Tensor]
    gradients: Mapping[str, torch.Tensor]
    buffers: Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class CaseToSpoil:
    """A model that is to be spoiled, and what eager makes of it.

    Attributes:
        case: which it is.
        loaded: its model, configured.
        seed: that every generator is seeded with.
        eager: first step of eager in the case's precision.
        exact: in float64; `None` where that fails.
    """

    case: Case
    loaded: LoadedModel
    seed: int
    eager: Seen
    exact: Seen | None

    @classmethod
    def of(cls, case: Case, loaded: LoadedModel, seed: int) -> CaseToSpoil:
        """Run eager once in both precisions."""
        exact = None
        with suppressed_float64(case, loaded) as wide:
            exact = None if wide is None else _seen(wide, case.mode, seed)
        return cls(case, loaded, seed, _seen(loaded.copy(), case.mode, seed), exact)

    def target(self, spoiling: Spoiling) -> Target | None:
        """Draw what a spoiling is done to, of what it counts for; `None` if it counts nowhere."""
        candidates = list(self._candidates(spoiling))
        random.Random(f"{self.case.id} {spoiling.name}").shuffle(candidates)
        return next((each for each in candidates if self._counts(spoiling, each)), None)

    def _candidates(self, spoiling: Spoiling) -> Iterator[Target]:
        module = own_module(self.loaded.module)
        match spoiling.part:
            case Part.OUTPUT | Part.LOSS:
                yield from (Target(path) for path in self.eager.outputs)
            case Part.GRADIENT if spoiling.name == ANOTHERS:
                yield from self._pairs()
            case Part.GRADIENT:
                yield from (Target(name) for name in self.eager.gradients)
            case Part.UPDATE if spoiling.name == ONE_PARAMETER:
                yield from (Target(name) for name in self.eager.gradients)
            case Part.BUFFER:
                yield from (Target(name) for name, _ in module.named_buffers())
            case Part.INPUT:
                leaves = inputs_by_path(self.loaded.args, self.loaded.kwargs)
                yield from (Target(path) for path, leaf in leaves.items() if _is_spoilable(leaf))
            case Part.PARAMETER:
                yield from (Target(name) for name, _ in module.named_parameters())
            case (
                Part.UPDATE
                | Part.MEMORY
                | Part.ARGUMENTS
                | Part.DRAWS
                | Part.STALE
                | Part.GIVEN
                | Part.SUMS
            ):
                yield Target()

    def _pairs(self) -> Iterator[Target]:
        for one, gradient in self.eager.gradients.items():
            for other, another in self.eager.gradients.items():
                if one != other and gradient.shape == another.shape:
                    yield Target(one, other)

    def _counts(self, spoiling: Spoiling, target: Target) -> bool:
        match spoiling.part:
            case Part.UPDATE:
                return self._update_is_seen(spoiling.factor, target.path)
            case Part.MEMORY | Part.ARGUMENTS | Part.DRAWS | Part.STALE:
                return self._depends_on(spoiling.part)
            case Part.BUFFER:
                return self._moves(target.path)
            case Part.GIVEN | Part.SUMS:
                return any(
                    self._is_seen(right, 2 * right, None) for right in self.eager.gradients.values()
                )
            case _:
                right, true = self._right(spoiling.part, target.path)
                return self._is_seen(right, self._wrong(spoiling, target, right), true)

    def _right(self, part: Part, name: str) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return what is right of a target, and the same in float64."""
        if part is Part.INPUT:
            leaf = inputs_by_path(self.loaded.args, self.loaded.kwargs)[name]
            assert isinstance(leaf, torch.Tensor)
            return leaf, leaf
        if part is Part.PARAMETER:
            parameter = own_module(self.loaded.module).get_parameter(name).detach()
            return parameter, parameter
        field = "gradients" if part is Part.GRADIENT else "outputs"
        true = getattr(self.exact, field).get(name) if self.exact else None
        return getattr(self.eager, field)[name], true

    def _wrong(self, spoiling: Spoiling, target: Target, right: torch.Tensor) -> torch.Tensor:
        """Return what is to stand in the place of what is right."""
        if target.other:
            return self.eager.gradients[target.other]
        return changed(spoiling, right)

    def _is_seen(self, right: torch.Tensor, wrong: torch.Tensor, true: torch.Tensor | None) -> bool:
        return is_seen(right, wrong, true, SHARES[self.case.dtype])

    def _update_is_seen(self, factor: float, name: str) -> bool:
        """Return whether an element of a weight moves by ten roundings more or less."""
        weights = dict(own_module(self.loaded.module).named_parameters())
        for each in [name] if name else self.eager.gradients:
            weight = weights[each].detach().double()
            change = abs(1 - factor) * 0.01 * self.eager.gradients[each].double()
            eps = torch.finfo(weights[each].dtype).eps
            if bool((change.abs() > ERRORS * eps * weight.abs()).any()):
                return True
        return False

    def _moves(self, name: str) -> bool:
        """Return whether a buffer changes in a call, or in one with other weights.

        Statistics may have been set to those of the batch, so that no call changes them until
        something is trained.
        """
        buffer = own_module(self.loaded.module).get_buffer(name)
        for found in (self.eager, self._elsewhere(Part.STALE)):
            now = found.buffers.get(name) if found else None
            is_same_form = now is not None and now.shape == buffer.shape
            if is_same_form and self._is_seen(now, buffer, None):
                return True
        return False

    def _elsewhere(self, part: Part) -> Seen | None:
        """Run eager with other weights, other draws or other inputs; `None` if it refuses them."""
        own = self.loaded.copy()
        with torch.no_grad():
            if part is Part.STALE:
                for parameter in own.module.parameters():
                    parameter.mul_(0.9)
            elif part is not Part.DRAWS:
                for leaf in inputs_by_path(own.args, own.kwargs).values():
                    if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
                        leaf.data.mul_(0.5)
                    elif isinstance(leaf, torch.Tensor) and leaf.dim():
                        leaf.data.copy_(leaf.roll(1, -1))
        try:
            return _seen(own, self.case.mode, self.seed + (part is Part.DRAWS))
        except Exception:  # noqa: BLE001  whatever a model makes of such inputs
            return None

    def _depends_on(self, part: Part) -> bool:
        """Return whether other inputs, weights or draws give other results."""
        other = self._elsewhere(part)
        if other is None:
            return False
        pairs = [(self.eager.outputs, other.outputs, self.exact.outputs if self.exact else {})]
        if part is Part.STALE:
            true = self.exact.gradients if self.exact else {}
            pairs.append((self.eager.gradients, other.gradients, true))
        return any(
            name in wrong
            and wrong[name].shape == value.shape
            and self._is_seen(value, wrong[name], exact.get(name))
            for right, wrong, exact in pairs
            for name, value in right.items()
        )


@contextmanager
def suppressed_float64(case: Case, loaded: LoadedModel) -> Iterator[LoadedModel | None]:
    """Return a copy in float64 that draws what eager draws; `None` if that can't run."""
    try:
        own = in_float64(loaded)
        with DrawsOf(DTYPES[case.dtype]):
            make_step(own.module, own, case.mode, 0).call()
        own = in_float64(loaded)
    except Exception:  # noqa: BLE001  an operator without float64
        yield None
        return
    with DrawsOf(DTYPES[case.dtype]):
        yield own


def is_seen(
    right: torch.Tensor, wrong: torch.Tensor, true: torch.Tensor | None, share: float
) -> bool:
    """Return whether a tensor is spoiled by more than its precision resolves.

    At least half of the elements that are changed must be changed by more than a share of
    themselves and more than ten times eager's error: what it errs by against float64 there, or
    in the median of all elements if that is more.

    Args:
        right: eager's.
        wrong: what is to stand in its place.
        true: the same in float64.
        share: the least change of an element.
    """
    one, other = right.detach().double(), wrong.detach().double()
    differs = (one != other) & ~(one.isnan() & other.isnan())
    if not bool(differs.any()):
        return False
    change = (one - other).abs()[differs]
    size = one.abs()[differs]
    if true is None or true.shape != right.shape:
        eps = torch.finfo(right.dtype).eps if right.is_floating_point() else 0.0
        error = _ROUNDINGS * eps * size
    else:
        errors = (one - true.detach().double()).abs().nan_to_num()
        error = errors.clamp_min(float(errors.median()))[differs]
    is_large = (change > share * size) & (change > ERRORS * error)
    is_new_nan = change.isnan() & ~one.isnan()[differs]
    return float((is_large | is_new_nan).double().mean()) >= MOST_OF


def _seen(loaded: LoadedModel, mode: Mode, seed: int) -> Seen:
    """Take one call of a step on a copy that is the caller's to change."""
    module = own_module(loaded.module)
    before = {name: each.detach().clone() for name, each in module.named_buffers()}
    output = make_step(loaded.module, loaded, mode, seed).calls[0]()
    found = by_path(output, "output")
    gradients = {
        name: each.grad.detach().clone()
        for name, each in module.named_parameters()
        if each.grad is not None and each.grad.layout is torch.strided
    }
    buffers = {
        name: each.detach().clone()
        for name, each in module.named_buffers()
        if name in before and not torch.equal(each, before[name])
    }
    outputs = {
        path: leaf.detach().clone()
        for path, leaf in found.items()
        if isinstance(leaf, torch.Tensor) and _is_spoilable(leaf)
    }
    return Seen(outputs, gradients, buffers)


def _is_spoilable(leaf: object) -> Any:
    """Return whether a leaf is a tensor whose elements can be written one by one."""
    return (
        isinstance(leaf, torch.Tensor)
        and not leaf.is_nested
        and leaf.layout is torch.strided
        and not leaf.is_complex()
        and leaf.numel() > 0
        and all(stride or size == 1 for size, stride in zip(leaf.shape, leaf.stride(), strict=True))
    )
