"""What the options of decisions need, and what can be chosen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

from dynamometer.common.command_line.cli import main
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import defaults
from dynamometer.common.interfaces.run_options import (
    CANDIDATES,
    DECISIONS,
    RETUNE,
    TUNING_SECONDS,
    run_options,
)
from dynamometer.common.interfaces.workload_options import BACKENDS
from dynamometer.common.planning.choosable import unchoosable
from dynamometer.common.planning.refusals import check_planned
from dynamometer.common.planning.tuning import to_be_tuned, tuning_of
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.choices import ASSEMBLED, ENSEMBLE, Tuning

if TYPE_CHECKING:
    from dynamometer.common.interfaces.option import Option, Request

VALUES = {
    DECISIONS: Path("zz.sqlite"),
    CANDIDATES: ("nonsense",),
    RETUNE: True,
    TUNING_SECONDS: 3.0,
}


def asked(option: Option[object], *, is_typed: bool = True) -> Request:
    """Ask for one option; what isn't typed comes from the environment."""
    request = defaults(run_options()).but(option, VALUES[option])
    return msgspec.structs.replace(request, typed=frozenset({option} if is_typed else ()))


@pytest.mark.parametrize("option", VALUES, ids=lambda option: option.named)
def test_options_of_decisions_need_some(option: Option[object]) -> None:
    """They would be ignored, even where they name what isn't there."""
    with pytest.raises(UsageError, match=rf"{option.named} needs decisions.*--backend ensemble"):
        tuning_of(asked(option), ("inductor",), decides=False)


@pytest.mark.parametrize("option", VALUES, ids=lambda option: option.named)
def test_a_project_may_have_options_of_decisions_for_every_run(option: Option[object]) -> None:
    """As an environment may."""
    request = msgspec.structs.replace(asked(option), of_project=frozenset({option}))
    assert tuning_of(request, ("inductor",), decides=False) is None


def test_an_environment_may_name_a_file_for_every_run() -> None:
    """Of which those without decisions take no notice."""
    request = asked(DECISIONS, is_typed=False)
    assert tuning_of(request, ("inductor",), decides=False) is None


@pytest.mark.parametrize("arms", [(ENSEMBLE,), ("inductor", ASSEMBLED)])
def test_with_decisions_they_are_taken(arms: tuple[str, ...]) -> None:
    """Whichever of both arms is there."""
    found = tuning_of(asked(TUNING_SECONDS), arms, decides=False)
    assert found is not None
    assert found.budget_s == VALUES[TUNING_SECONDS]


@pytest.mark.parametrize(
    ("arm", "of_graphs", "of_models"),
    [
        (ENSEMBLE, False, False),
        (BASELINE, False, False),
        (ASSEMBLED, False, True),
        ("nobody", False, False),
        ("inductor:nonsense", False, False),
        ("inductor:freezing", True, True),
        ("eager", True, True),
    ],
)
def test_what_can_be_chosen(arm: str, *, of_graphs: bool, of_models: bool) -> None:
    """Nothing that is made of choices, but that a model may be assembled of them."""
    assert (unchoosable(arm, of_models=False) is None) == of_graphs
    assert (unchoosable(arm, of_models=True) is None) == of_models


def test_tuning_chooses_among_what_can_be_chosen() -> None:
    """Or a decision might name itself."""
    case = factories.case(arms=(BASELINE, "inductor", ENSEMBLE))
    plan = factories.plan(cases=(case,), tuning=Tuning(decisions="decisions.sqlite"))
    with pytest.raises(UsageError, match="--backend ensemble: ensemble is nothing that can be"):
        to_be_tuned(msgspec.structs.replace(plan, suite="corpus"), has_own_arms=True)
    with pytest.raises(UsageError, match="--tune decides on graphs of a corpus"):
        to_be_tuned(plan, has_own_arms=False)


def test_what_is_decided_among_is_named_in_one_way() -> None:
    """A project's candidates give way to what is typed; beside `ensemble` a backend is an arm."""
    named = (BACKENDS, CANDIDATES)
    request = defaults(run_options()).but(BACKENDS, ("inductor",)).but(CANDIDATES, ("aot_eager",))
    both = msgspec.structs.replace(request, typed=frozenset(named))
    with pytest.raises(UsageError, match=r"and so does --backend.* leave out one of them"):
        tuning_of(both, ("inductor",), decides=True)
    assert tuning_of(both, ("inductor", ENSEMBLE), decides=False) is not None
    of_project = msgspec.structs.replace(both, of_project=frozenset({CANDIDATES}))
    assert tuning_of(of_project, ("inductor",), decides=True) is not None


def test_candidates_are_arms_where_deciding_is_what_a_run_is_about() -> None:
    """So that a command that repeats a case names them once."""
    tuning = Tuning(decisions="decisions.sqlite", candidates=("inductor", "aot_eager"))
    plan = factories.plan(suite="corpus", tuning=tuning)
    made = to_be_tuned(plan, has_own_arms=False)
    assert [case.arms for case in made.cases] == [(BASELINE, "inductor", "aot_eager")]
    assert CANDIDATES.value_again(made, made.cases[0]) is None


@pytest.mark.parametrize("damaged", ["text", "text/below"])
def test_a_file_that_can_not_be_used_ends_a_run_before_it_begins(
    damaged: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing is measured in vain, and no directory made."""
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("not a database, and long enough to be seen as none " * 20)
    words = ["--only", "alexnet", "--backend", ENSEMBLE, "--decisions"]
    assert main("torchbench", [*words, damaged]) == 2
    assert "another with --decisions" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_an_arm_of_an_earlier_version_is_no_fault_of_the_harness() -> None:
    """A run that is resumed says which, before anything is measured."""
    plan = factories.plan(factories.model_spec(), arms=(BASELINE, "inductor"))
    check_planned(plan)
    arm = "inductor:config.max_autotune=False,max-autotune"
    plan = factories.plan(factories.model_spec(), arms=(BASELINE, arm))
    with pytest.raises(UsageError, match=r"can't be had so any more.*contradict.*measure anew"):
        check_planned(plan)
