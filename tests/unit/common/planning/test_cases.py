from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import factories
import pytest

from dynamometer.common.errors import NothingSelectedError, UnknownNameError, UsageError
from dynamometer.common.interfaces.workload import Workload
from dynamometer.common.planning.cases import build_cases
from dynamometer.common.planning.selection import Selection, listed, select
from dynamometer.common.studies.speedup.study import STUDY
from dynamometer.common.studies.study import skip_reason
from dynamometer.results.values.cases import Scale

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.results.values.cases import Case, ModelSpec

SPECS = (
    factories.model_spec("vgg16"),
    factories.model_spec("resnet50", skipped="too slow"),
    factories.model_spec("resnet18", quick=True),
    factories.model_spec("hf_Bert"),
)


def names(selection: Selection) -> list[str]:
    """Select from `SPECS` and give the names."""
    return [spec.name for spec in select(SPECS, selection)]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), ["hf_Bert", "resnet18", "resnet50", "vgg16"]),
        (Selection(include=("resnet",)), ["resnet18", "resnet50"]),
        (Selection(include=("^v", "18$")), ["resnet18", "vgg16"]),
        (Selection(include=("BERT",)), ["hf_Bert"]),
        (Selection(exclude=("res", "_")), ["vgg16"]),
        (Selection(include=("net",), exclude=("50",)), ["resnet18"]),
        (Selection(only=("vgg16", "hf_Bert")), ["hf_Bert", "vgg16"]),
        (Selection(only=("vgg16", "hf_Bert"), exclude=("hf_",)), ["vgg16"]),
        (Selection(quick=True), ["resnet18"]),
        (Selection(partition=(0, 2)), ["hf_Bert", "resnet18"]),
        (Selection(partition=(1, 2)), ["resnet50", "vgg16"]),
        (Selection(include=("net",), partition=(1, 2)), ["resnet50"]),
    ],
    ids=str,
)
def test_selection(selection: Selection, expected: list[str]) -> None:
    """Each way of selecting gives the models it is documented to, sorted by name."""
    assert names(selection) == expected


@dataclass(frozen=True)
class Listing:
    """A suite that lists some models."""

    models: tuple[ModelSpec, ...]

    def specs(self) -> Iterable[ModelSpec]:
        """List them."""
        return self.models

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import nothing."""

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Build nothing."""
        raise NotImplementedError


@pytest.mark.parametrize(
    ("added", "says"),
    [
        (factories.model_spec("vgg16"), "several models of the suite torchbench .*: vgg16"),
        (factories.model_spec("bert", aliases=("hf_Bert",)), "name or alias: hf_Bert"),
        (
            factories.model_spec("own", suite="torchbnech"),
            "the model own is of a suite .*'torchbnech'; did you mean torchbench",
        ),
    ],
)
def test_a_list_of_what_cant_be_run_is_refused(added: ModelSpec, says: str) -> None:
    """One of two models would be left out, and no worker could load that of another suite."""
    assert listed(Listing(SPECS)) == [*SPECS]
    with pytest.raises(UsageError, match=says):
        listed(Listing((*SPECS, added)))


def test_skipped_models_stay_in_the_selection() -> None:
    """A skip is a record of the run, not a hole in it."""
    (spec,) = select(SPECS, Selection(only=("resnet50",)))
    assert spec.skip_reason("cpu") == "too slow"


@pytest.mark.parametrize(("no_skip", "reason"), [(False, "too slow"), (True, None)])
def test_no_skip_lifts_every_skip(reason: str | None, *, no_skip: bool) -> None:
    """With `--no-skip` no case of the plan is skipped, though its model's table keeps the skip."""
    plan = factories.plan(*select(SPECS, Selection()), no_skip=no_skip)
    reasons = {case.model: skip_reason(STUDY, plan, case) for case in plan.cases}
    expected = dict.fromkeys((spec.name for spec in SPECS), None)
    assert reasons == {**expected, "resnet50": reason}
    assert [spec.name for spec in plan.models if spec.skips] == ["resnet50"]


@pytest.mark.parametrize(
    ("selection", "error", "text"),
    [
        (Selection(include=("[",)), UsageError, r"-k '\[' is not a regular expression"),
        (Selection(exclude=("*",)), UsageError, r"-x '\*' is not a regular expression"),
        (Selection(only=("vgg",)), UnknownNameError, "unknown model 'vgg'; did you mean vgg16"),
        (Selection(only=("vgg16",), exclude=("v",)), NothingSelectedError, "holds none"),
        (Selection(only=("vgg16",), quick=True), UsageError, "--only and --quick"),
        (Selection(partition=(2, 2)), UsageError, "--partition-id 2 is not below"),
        (Selection(include=("nope",)), NothingSelectedError, "none of the suite's 4 models"),
        (Selection(quick=True, exclude=("18",)), NothingSelectedError, "; leave out --quick"),
        (
            Selection(quick=True, include=("vgg",)),
            NothingSelectedError,
            "the quick selection has none of these: vgg16; leave out --quick",
        ),
        (Selection(partition=(0, 9)), NothingSelectedError, "part 0 of 9 is empty: only 4 models"),
        (Selection(quick=True, partition=(0, 9)), NothingSelectedError, "part 0 of 9 is empty"),
    ],
    ids=str,
)
def test_selections_that_cannot_be(selection: Selection, error: type[Exception], text: str) -> None:
    """What can't be selected is refused with what is wrong and what to do."""
    with pytest.raises(error, match=text):
        select(SPECS, selection)


def test_a_suite_without_a_quick_selection_says_so() -> None:
    """As one of a user's models: what to leave out, not which models there are."""
    with pytest.raises(NothingSelectedError, match="has no quick selection: leave out --quick"):
        select([factories.model_spec("mine")], Selection(quick=True))


def test_cases_have_the_baseline_first() -> None:
    """Every case compares its arms with the baseline, in the order they were asked for."""
    cases = build_cases(SPECS, Workload(arms=("inductor", "eager")))
    assert [case.model for case in cases] == [spec.name for spec in SPECS]
    assert {case.arms for case in cases} == {("baseline", "inductor", "eager")}


def test_cases_take_the_suites_batch_size_unless_told() -> None:
    """`--batch-size` replaces what the tables say for scale and device."""
    spec = factories.model_spec(tiny={"batch_size": 1})
    sizes = {
        (scale, asked): build_cases(
            [spec], Workload(arms=("eager",), device="cuda", scale=scale, batch_size=asked)
        )[0].batch_size
        for scale in (Scale.FULL, Scale.TINY)
        for asked in (None, 7)
    }
    assert sizes == {
        (Scale.FULL, None): 64,
        (Scale.FULL, 7): 7,
        (Scale.TINY, None): 1,
        (Scale.TINY, 7): 7,
    }
