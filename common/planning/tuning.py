"""What a run with `ensemble` does before its cases: a plan for each step of coming to decisions."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common import registry
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces import arm_names
from dynamometer.common.interfaces.option import defaults
from dynamometer.common.interfaces.run_options import (
    CANDIDATES,
    DECISIONS,
    DECISIONS_FILE,
    OUTPUT_DIR,
    RETUNE,
    TUNING_OPTIONS,
    TUNING_SECONDS,
    run_options,
)
from dynamometer.common.interfaces.workload_options import BACKENDS, TARGET
from dynamometer.common.planning.arms import usable
from dynamometer.common.planning.choosable import unchoosable
from dynamometer.results.values.cases import BASELINE, NO_BACKEND, TORCHSCRIPT, Mode, Protocol
from dynamometer.results.values.choices import ASSEMBLED, ENSEMBLE, Tuning
from dynamometer.results.values.graphs import short_key

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dynamometer.common.interfaces.option import Request
    from dynamometer.dynamo.backends.declared import Declared
    from dynamometer.results.values.cases import Case, RunPlan

_NEVER_CHOSEN = frozenset({NO_BACKEND, "aot_eager", "export", TORCHSCRIPT})
"""What is never faster than eager, and what torch has deprecated."""

_FREEZING = "inductor:freezing"
_CUDA_GRAPHS = "inductor:reduce-overhead"

_ROUNDS = (1, 3)
_TARGET = 0.02
"""How well speedups of candidates are to be known; what is within it makes little difference."""

_ARM_BUDGET_S = 0.4
_GRAPH_TIMEOUT_S = 600.0


def tuning_of(request: Request, arms: Sequence[str], *, decides: bool) -> Tuning | None:
    """Return how a run comes to its decisions; `None` where it comes to none.

    Args:
        request: what was asked for.
        arms: of the run.
        decides: whether deciding is what it is about.

    Raises:
        UsageError: a candidate is no backend, has no such option, or is made of decisions itself;
            it is named in two ways; or an option needs decisions, and the run makes and uses none.
    """
    if not decides and not {ENSEMBLE, ASSEMBLED} & set(arms):
        for option in TUNING_OPTIONS:
            if option in request.typed - request.of_project:
                msg = (
                    f"{option.named} needs decisions, and this run makes and uses none: add"
                    f" --backend {ENSEMBLE}, or leave it out"
                )
                raise UsageError(msg)
        return None
    if decides and request[BACKENDS] and CANDIDATES in request.typed - request.of_project:
        msg = (
            "--candidate names what --tune decides among, and so does --backend, which may also"
            " stand in pyproject.toml; leave out one of them"
        )
        raise UsageError(msg)
    for each in request[CANDIDATES]:
        if problem := unchoosable(each, of_models=False):
            msg = f"--candidate {each}: {problem}; leave it out"
            raise UsageError(msg)
    read = (arm_names.canonical(arm_names.read(text)) for text in request[CANDIDATES])
    candidates = tuple(map(str, read))
    path: Path = request[DECISIONS] or Path(request[OUTPUT_DIR], DECISIONS_FILE)
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return Tuning(
        decisions=str(path.resolve()),
        candidates=tuple(dict.fromkeys(candidates)),
        since=now if request[RETUNE] else None,
        budget_s=request[TUNING_SECONDS],
    )


def candidates_of(tuning: Tuning, device: str, mode: Mode, *, of_models: bool) -> tuple[str, ...]:
    """Return what may be chosen for graphs, or for models as a whole.

    Unless they are named, those are all that work here but for what is never faster than eager;
    for a graph without those that take models as a whole, as each of them has its like.

    Raises:
        UsageError: a backend of a plugin can't be imported.
    """
    if tuning.candidates:
        of_graphs = tuple(each for each in tuning.candidates if _takes_graphs(_declared(each)))
        return tuning.candidates if of_models or not of_graphs else of_graphs
    left_out = {*_NEVER_CHOSEN, BASELINE}
    names = [name for name in usable(device, mode).names if name not in left_out]
    known = {name: _declared(name) for name in names}
    found = [name for name, each in known.items() if of_models or _takes_graphs(each)]
    if "inductor" in found:
        freezing = (_FREEZING,) if mode is Mode.INFERENCE else ()
        graphs = (_CUDA_GRAPHS,) if device == "cuda" else ()
        after = found.index("inductor") + 1
        found[after:after] = (*freezing, *graphs)
    return tuple(found)


def to_be_tuned(plan: RunPlan, *, has_own_arms: bool) -> RunPlan:
    """Return the plan of a run that is about deciding, with its candidates.

    Args:
        plan: of the run, as others are.
        has_own_arms: whether candidates were named as backends.

    Raises:
        UsageError: it is of models, or one of the candidates can't be chosen.
    """
    tuning, cases, case = plan.tuning, plan.cases, plan.cases[0]
    assert tuning is not None
    if plan.suite != registry.CORPUS:  # models would never be compared with what is assembled
        msg = (
            "--tune decides on graphs of a corpus, which `dynamometer corpus record` makes;"
            " models are decided on by --backend ensemble"
        )
        raise UsageError(msg)
    if has_own_arms:
        for each in case.arms[1:]:
            if problem := unchoosable(each, of_models=False):
                msg = f"--backend {each}: {problem}; leave it out"
                raise UsageError(msg)
    else:
        arms = candidates_of(tuning, case.device, case.mode, of_models=False)
        cases = tuple(_with_arms(each, arms) for each in plan.cases)
    protocol = _quick(plan.protocol, tuning.budget_s)
    # A command that repeats a case names its arms; candidates would contradict them.
    tuning = msgspec.structs.replace(tuning, candidates=())
    return msgspec.structs.replace(plan, cases=cases, protocol=protocol, tuning=tuning)


def recording_plan(plan: RunPlan, graphs: Path) -> RunPlan:
    """Return the plan of recording the graphs of a run's cases into a corpus."""
    return _derived(
        plan,
        [_with_arms(case, (ASSEMBLED,)) for case in plan.cases],
        study="recording",
        protocol=msgspec.structs.replace(plan.protocol, replicates=1, most_replicates=1),
        corpus=str(graphs),
    )


def graphs_plan(plan: RunPlan, graphs: Path, keys: Collection[str], threads: int) -> RunPlan:
    """Return the plan of tuning some graphs of a corpus.

    Args:
        plan: of the run.
        graphs: the corpus.
        keys: of the graphs.
        threads: that they are computed with, which are those of their models.
    """
    from dynamometer.common.interfaces.workload import Workload
    from dynamometer.common.planning.cases import build_cases

    assert plan.tuning is not None
    source, device = registry.suite(registry.CORPUS), plan.cases[0].device
    asked = defaults(run_options(of_suites=source.options)).but(TARGET, str(graphs))
    opening = source.opening(asked)
    specs = tuple(
        spec
        for spec in source.open(opening).specs()
        if any(spec.name.endswith(f".{short_key(key)}") for key in keys)
    )
    arms = candidates_of(plan.tuning, device, Mode.INFERENCE, of_models=False)
    if plan.cases[0].mode is Mode.TRAINING and not plan.tuning.candidates:
        # Forward and backward graphs are computed as in inference, but have no weights to freeze.
        arms = tuple(each for each in arms if each != _FREEZING)
    precision = plan.cases[0].matmul_precision
    workload = Workload(arms=arms, device=device, matmul_precision=precision)
    return _derived(
        plan,
        build_cases(specs, workload),
        study="tuning",
        protocol=_protocol(plan, plan.tuning.budget_s),
        suite=registry.CORPUS,
        suite_options=opening,
        models=specs,
        threads=threads,
        timeout_s=min(plan.timeout_s, _GRAPH_TIMEOUT_S),
    )


def models_plan(plan: RunPlan, models: Mapping[str, bool]) -> RunPlan:
    """Return the plan of timing models made of decisions beside single backends.

    Args:
        plan: of the run.
        models: by a case's id, whether its model is a single graph that has a decision. That says
            all of what goes through Dynamo.
    """
    assert plan.tuning is not None
    cases = []
    for case in plan.cases:
        if case.id in models:
            arms = candidates_of(plan.tuning, case.device, case.mode, of_models=True)
            if models[case.id] and case.mode is Mode.INFERENCE:
                arms = tuple(each for each in arms if not _takes_graphs(_declared(each)))
            cases.append(_with_arms(case, (ASSEMBLED, *arms)))
    return _derived(
        plan, cases, study="tuning", protocol=_protocol(plan, plan.protocol.case_budget_s)
    )


def _declared(arm: str) -> Declared | None:
    return arm_names.declared(arm_names.read(arm).backend)


def _takes_graphs(backend: Declared | None) -> bool:
    """Return whether a backend compiles Dynamo's graphs, as a user's callable does."""
    return backend is None or backend.captures


def _protocol(plan: RunPlan, budget_s: float | None) -> Protocol:
    least, most = _ROUNDS
    quick = _quick(plan.protocol, budget_s)
    return msgspec.structs.replace(quick, replicates=least, most_replicates=most)


def _quick(protocol: Protocol, budget_s: float | None) -> Protocol:
    """Return how candidates are measured: well enough to choose."""
    return msgspec.structs.replace(
        protocol,
        target=max(protocol.target, _TARGET),
        arm_budget_s=min(protocol.arm_budget_s, _ARM_BUDGET_S),
        case_budget_s=budget_s,
    )


def _derived(plan: RunPlan, cases: Sequence[Case], *, study: str, **fields: object) -> RunPlan:
    """Return a plan of other cases for another study, whose candidates are arms by now.

    They run one after the other, whatever the run itself does: where workers share cores their
    threads wait asleep, and candidates that are timed must not.
    """
    assert plan.tuning is not None
    experiments = registry.study(study).experiments(defaults(()))
    tuning = msgspec.structs.replace(plan.tuning, candidates=())
    fields = {"experiments": experiments, "tuning": tuning, "jobs": 1, **fields}
    return msgspec.structs.replace(plan, cases=tuple(cases), **fields)


def _with_arms(case: Case, arms: Sequence[str]) -> Case:
    return msgspec.structs.replace(case, arms=(BASELINE, *arms))
