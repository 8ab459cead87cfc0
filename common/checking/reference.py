"""What arms are held to: eager's results, call by call, and how far rounding takes these."""

from __future__ import annotations

import math
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from dynamometer.common.checking.copies import drawn_in, in_float64, nudged
from dynamometer.common.checking.looking import Call, Look, make_call
from dynamometer.common.checking.repeats import (
    BY_FAR,
    DIFFER,
    NO_DRAWS,
    Constancy,
    FurtherRuns,
    after_one_call_more,
    call_that_adds,
    do_draws_matter,
    first_two_calls,
    on_other_inputs,
)
from dynamometer.common.checking.runs import OtherRoundings, Runs
from dynamometer.common.checking.snapshots import (
    Snapshot,
    numbers_of,
    state_of,
)
from dynamometer.common.checking.steps import DTYPES, make_step
from dynamometer.common.interfaces.outcome import NondeterministicError
from dynamometer.dynamo import process_settings, state
from dynamometer.dynamo.accuracy.accuracy import (
    Comparison,
    beyond_comparison,
    is_gradient,
    is_result,
)
from dynamometer.dynamo.accuracy.agreement import differ, wanders
from dynamometer.dynamo.accuracy.deviation import multiples_of
from dynamometer.dynamo.accuracy.expected import are_identical
from dynamometer.dynamo.accuracy.leaves import OFFSETS
from dynamometer.dynamo.accuracy.rounding import (
    DrawsOf,
    OtherKernels,
    change_of,
    multiplied_in_tf32,
)
from dynamometer.results.listing import first_of
from dynamometer.results.values.cases import Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from dynamometer.common.checking.looking import Settings
    from dynamometer.common.checking.repeats import Fresh
    from dynamometer.common.checking.steps import Step
    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.dynamo.accuracy.leaves import Leaves
    from dynamometer.results.values.cases import Case


def reference_of(
    loaded: LoadedModel,
    case: Case,
    settings: Settings,
    announced: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Reference:
    """Run eager on copies of a configured model, and give what arms are held to.

    Args:
        loaded: stays as it is.
        case: mode, dtype and device.
        settings: as `Reference` takes them; the multiples are those of the case's dtype.
        announced: likewise.

    Raises:
        Exception: as `Reference` does.
    """
    # Elsewhere memory is scarce, and what CUDA graphs reserve for it they keep.
    overlapping = case.mode is Mode.TRAINING and case.device == "cpu"
    # Under autocast it is the narrower dtype that rounds.
    is_amp = case.dtype is Dtype.AMP
    dtype = torch.get_autocast_dtype(case.device) if is_amp else DTYPES[case.dtype]

    in_tf32 = multiplied_in_tf32(case.device)
    # A copy: functions and weak references that a model holds lead from its copies to the original,
    # whose own tensors may change. Elsewhere it would be held while arms are timed.
    original = Snapshot.of(loaded).kept if settings.is_brief else {}

    def fresh() -> tuple[Step, Snapshot]:
        # A forward that changes its buffers or inputs changes only those of its own copy.
        own = loaded.copy()
        step = make_step(own.module, own, case.mode, settings.seed)
        return step, Snapshot.of(own, beside=original)

    @contextmanager
    def other(draw: int, times: float) -> Iterator[Step]:
        own = nudged(loaded, times * change_of(dtype), draw)
        kernels = OtherKernels(draw, times, in_tf32, has_half_parts=dtype is torch.float32)
        with state.uncompiled(), kernels:
            yield make_step(own.module, own, case.mode, settings.seed)

    @contextmanager
    def wide() -> Iterator[Step]:
        own = in_float64(loaded)
        with state.uncompiled(), DrawsOf(drawn_in(loaded, DTYPES[case.dtype])):
            yield make_step(own.module, own, case.mode, settings.seed)

    pace = dict[str, Any]()

    @contextmanager
    def as_before() -> Iterator[None]:
        with process_settings.at_pace(pace), announced():
            yield

    settings = replace(settings, multiples=multiples_of(dtype), overlapping=overlapping)
    reference = Reference(fresh, original, other, wide, settings, as_before)
    pace |= process_settings.pace()  # what the model's own calls set is eager's
    return reference


class Reference:
    """What eager computes in every call that is compared; arms are held to it.

    Runs beside eager's own are made when first needed, if not before, and more before it accuses.

    Attributes:
        settings: what arms are called with.
        is_repeatable: whether a call comes to the same once the state is put back: not so of a
            model that keeps state in plain attributes.
        adds: whether a call that adds its gradients to others comes to the very same as the first.
        left_alone: inputs of which no other values are tried.
        fresh: gives a step of eager on a copy of its own, and the state that it begins with.
        original: briefly, the model's state before any call, by path; all snapshots share it, and
            nobody writes to it.
        counts: whether calls change numbers or tensors among the model's plain attributes.
    """

    def __init__(
        self,
        fresh: Fresh,
        original: Mapping[str, object],
        other: Callable[[int, float], AbstractContextManager[Step]],
        wide: Callable[[], AbstractContextManager[Step]],
        settings: Settings,
        announced: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Run eager on two copies; briefly on one, where both its calls come to the very same.

        Args:
            fresh: gives a step on a copy of the model, and the state that it begins with.
            original: as the attribute.
            other: gives one that rounds otherwise, drawn from a seed, and so many times as
                coarsely, to be taken within the context.
            wide: gives one in float64, likewise.
            settings: `alteration` is left out, and found out here; so is whether calls can overlap
                where that is asked for.
            announced: the context of runs that are made later, while an arm is judged.

        Raises:
            NondeterministicError: the two runs differ by more than rounding; names the first leaf
                that does.
            Exception: whatever the model raises.
        """
        self.fresh, self.original = fresh, original
        self._roundings = OtherRoundings(other, wide, announced)
        self.left_alone: tuple[str, ...] = ()
        self.adds, self._repeats = False, True
        self._made: Runs | None = None
        own, start = self.fresh()
        numbers = numbers_of(own.loaded)
        self._eager, changed, settings = first_two_calls(own, start, settings)
        self.settings = settings
        self._unchecked = _beyond_calls(own, changed)
        self._keeps_no_state = self._eager[Call.FIRST].is_like(self._eager[Call.SECOND])
        if self._keeps_no_state:  # one copy will do for both
            self._eager[Call.SECOND] = self._eager[Call.FIRST]
        self._is_repeated = not (settings.is_brief and self._keeps_no_state)
        self.is_repeatable, later = self._keeps_no_state, self._eager[Call.SECOND]
        if self._is_repeated:
            own, start = self.fresh()
            for call in (Call.FIRST,) if settings.is_brief else (Call.FIRST, Call.SECOND):
                self._require_same(call, make_call(own, start, call, settings))
        if not settings.is_brief:
            if added := call_that_adds(own, start, settings):
                self.adds = are_identical(self._eager[Call.FIRST].found, added.found)
            later, added = make_call(own, start, Call.LATER, settings), None
            self.is_repeatable = not self._where_other(Call.FIRST, later)
        self._draws_later, self._form_later = later.draws, later.form
        self.counts = bool(changed) or numbers != numbers_of(own.loaded)
        called = [] if self.counts else [(own, start)]  # else it makes the call as other runs do
        del own, start, later
        if self.is_repeatable:
            self._try_other_inputs(called)
        if changed and Call.ALTERED in self._eager:
            later = after_one_call_more(self.fresh, self.settings)
            self.is_repeatable = not self._where_other(Call.ALTERED, later)

    @property
    def untold_replays(self) -> tuple[str, ...]:
        """What the call on other inputs can't tell from a replay of the first, each with why."""
        first, other = (self._eager[call].found for call in (Call.FIRST, Call.ALTERED))
        by_rounding = self._made.untold(Call.ALTERED, first) if self._made else ()
        return _untold_replays(first, other, self.settings.tolerance, by_rounding)

    @property
    def calls(self) -> tuple[Call, ...]:
        """Those that are compared; a second one that comes to what the first does is that again."""
        left_out = {Call.SECOND: self._keeps_no_state, Call.ALTERED: not self.is_repeatable}
        return tuple(call for call in self._eager if not left_out.get(call))

    def judge(self, call: Call, found: Look) -> Comparison:
        """Compare what an arm's call came to with what eager's did.

        Raises:
            SkippedError, NondeterministicError: as `Constancy.ask` does; it isn't the very same.
        """
        is_later = call in {Call.LATER, Call.ADDING}
        if is_later or (call is Call.SECOND and self._keeps_no_state):
            call = Call.FIRST
        eager = self._eager[call]
        if is_later:
            eager = replace(eager, draws=self._draws_later, form=self._form_later)
        odd = _beside_values(eager, found, self._written)
        draws_nothing = eager.draws and not found.draws
        if not odd and draws_nothing and self._draws_matter:
            odd = "it draws no random numbers, or always the same"
        if odd:
            return Comparison(math.inf, odd)
        own = [*self._unchecked, *([NO_DRAWS] * draws_nothing)]
        own += [f"parameters.{name}: the model changes it itself" for name in eager.updates]
        if are_identical(eager.found, found.found):
            beyond = beyond_comparison(eager.found, found.found)
            return Comparison(unchecked=(*own, *beyond))
        judged = self._judge(call, found.found)
        own += self.constancy.doubts
        # None may be made where eager has become another: they would take that for rounding.
        if self._made is not None and not self._made.made:
            own.append("what rounding does: eager fails with other weights or inputs")
        return replace(judged, unchecked=(*own, *judged.unchecked))

    @property
    def _written(self) -> frozenset[str]:
        """Paths of what some call of eager changes."""
        return frozenset(path for each in self._eager.values() for path in each.found)

    @cached_property
    def _draws_matter(self) -> bool:
        """Whether eager comes to something else with other random numbers."""
        with self._roundings.announced():
            return do_draws_matter(self.fresh, self._eager[Call.FIRST].found, self.settings)

    def _judge(self, call: Call, found: Leaves) -> Comparison:
        """Compare by as few runs of eager as will do; there are many before an accusation."""
        if self._made is None and (moved := self.constancy.ask()):
            return moved
        runs = self._runs
        judged = runs.compare(call, found)
        if not judged.mismatch:
            return judged
        if moved := self.constancy.ask():
            return moved
        return runs.compare_with_many(call, found) if judged.may_be_rounding else judged

    @cached_property
    def constancy(self) -> Constancy:
        """Whether eager still computes what it did before any arm was there."""
        return Constancy(
            self.fresh, {call: self._eager[call].found for call in self.calls}, self.settings,
            FurtherRuns(lambda: self._made, self._roundings.announced),
            repeats=self._repeats, is_repeated=self._is_repeated,
        )  # fmt: skip

    def make_runs(self) -> None:
        """Make the first further runs now: arms may change torch, and later ones with it."""
        _ = self._runs

    @property
    def _runs(self) -> Runs:
        """Further runs of eager, of the calls that are known by now."""
        if self._made is None:
            looks = {call: self._eager[call].found for call in self.calls}
            self._made = Runs(looks, self._roundings, self.settings)
        return self._made

    def _try_other_inputs(self, called: list[tuple[Step, Snapshot]]) -> None:
        first = self._eager[Call.FIRST].found
        found = on_other_inputs(self.fresh, called, first, self.settings)
        if found is not None:
            self._eager[Call.ALTERED], self.left_alone, self.settings = found
            self._made = None  # those that were made are without this call

    def forgo_later_calls(self) -> None:
        """Have no later calls of any arm compared: being called changes what eager comes to."""
        self.is_repeatable = False

    def _require_same(self, call: Call, found: Look) -> None:
        self._repeats &= are_identical(self._eager[call].found, found.found)
        if where := self._where_other(call, found):
            raise NondeterministicError(DIFFER.format(where))

    def _where_other(self, call: Call, found: Look) -> str | None:
        if are_identical(self._eager[call].found, found.found):
            return None
        expected = self._runs.expected
        return wanders(
            expected.get(call, expected[Call.FIRST]), found.found, self.settings.tolerance
        )


def _beside_values(eager: Look, found: Look, written: frozenset[str]) -> str | None:
    """Say what else than values is wrong with an arm's call, if something is."""
    wrong = [name for name in found.updates if name not in eager.updates]
    if wrong:
        return f"parameters.{wrong[0]}: {found.updates[wrong[0]]}"
    rewritten = sorted(found.rewritten - written)
    if rewritten:
        return f"{rewritten[0]}: eager leaves it as it was"
    # Where there are other results, these say more. A change or a gradient may be there in one
    # alone, where it is nothing but rounding.
    results, expected = (set(filter(is_result, each)) for each in (found.found, eager.found))
    return found.form.problem(eager.form) if results == expected else None


def _untold_replays(
    first: Leaves, other: Leaves, tolerance: float, by_rounding: Sequence[str]
) -> tuple[str, ...]:
    whole = {  # not the gradients of which the other call keeps a sample alone
        path: leaf
        for path, leaf in first.items()
        if path not in other or not is_gradient(path) or leaf.kind == other[path].kind
    }
    if not differ(whole, other, BY_FAR * tolerance):
        return ("whether a call is replayed: other inputs change no result",)
    same = [
        path
        for path, leaf in first.items()
        if is_result(path) and not path.endswith(OFFSETS)
        if isinstance(leaf.value, torch.Tensor) and leaf.value.numel()
        if path in other and are_identical({path: leaf}, {path: other[path]})
    ]
    found = {
        "other inputs don't change it": same,
        "other inputs change it by no more than an arm may be off by": by_rounding,
    }
    return tuple(f"{first_of(paths, 1, ' ')}: {why}" for why, paths in found.items() if paths)


def _beyond_calls(step: Step, attributes: Sequence[str]) -> tuple[str, ...]:
    """Return what no call of an arm can show to be wrong."""
    # In training gradients say whether a weight is used.
    undecided = _undecided_state(step.loaded) if step.mode is Mode.INFERENCE else []
    found = {
        "plain attributes, which a call writes": attributes,
        "all zeros or ones, and could be left out": undecided,
    }
    return tuple(f"{first_of(paths, 1, ' ')}: {why}" for why, paths in found.items() if paths)


def _undecided_state(loaded: LoadedModel) -> list[str]:
    """Name weights and statistics that are all zeros or all ones, as layers create them."""
    return [
        path
        for path, each in state_of(loaded).items()
        if isinstance(each, torch.Tensor) and not path.startswith("inputs")
        if (each.is_floating_point() or path.startswith("parameters")) and _is_undecided(each)
    ]


def _is_undecided(weight: torch.Tensor) -> bool:
    with suppress(RuntimeError):  # of a tensor that wraps others, or a nested one
        if weight.numel() > 0:
            first = weight[(0,) * weight.dim()].item()
            return first in {0, 1} and bool((weight == first).all())
    return False
