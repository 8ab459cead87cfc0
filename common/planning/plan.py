"""From what was asked for to a plan, refusing what contradicts itself."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from dynamometer.common import registry
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.run_options import (
    ALLOCATOR,
    CACHES,
    CALLS,
    CASE_BUDGET,
    EXECUTOR,
    HALF_WIDTH,
    MEMORY_LIMIT,
    REPLICATES,
    RETRIES_FOR,
    RIGOROUS,
    SEED,
    SPAWN,
    TIMEOUT,
)
from dynamometer.common.interfaces.workload import Workload
from dynamometer.common.interfaces.workload_options import (
    ALLOW_IN_GRAPH,
    BACKENDS,
    BATCH_SIZE,
    CHANNELS_LAST,
    COMPILED_OPTIMIZER,
    DEVICE,
    DISABLE_FRAME,
    DTYPE,
    DYNAMIC,
    DYNAMIC_BATCH,
    MATMUL_PRECISION,
    MODEL_OVERRIDES,
    NO_SKIP,
    NOPYTHON,
    ONLY_OVERRIDES,
    QUICK,
    RAISE_BACKEND_ERRORS,
    SCALE,
    SUBSTITUTE,
    TRAINING,
)
from dynamometer.common.planning import refusals
from dynamometer.common.planning.arms import asked_arms
from dynamometer.common.planning.cases import build_cases
from dynamometer.common.planning.functions import refuse_unknown_functions
from dynamometer.common.planning.jobs import jobs_of, threads_of
from dynamometer.common.planning.tuning import to_be_tuned, tuning_of
from dynamometer.common.studies.study import with_usual_study
from dynamometer.results.values.cases import (
    RIGOROUS_REPLICATES,
    DynamicDims,
    Mode,
    Overrides,
    Protocol,
    RunPlan,
)
from dynamometer.results.values.records import Status
from dynamometer.results.values.workers import StartMethod

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.studies.study import Study
    from dynamometer.results.values.cases import ModelSpec

_MEMORY_SHARE = 0.85
"""Of the machine's memory: what a worker may take where no limit is given."""


def make_plan(
    suite: str,
    suite_options: dict[str, str],
    models: tuple[ModelSpec, ...],
    request: Request,
    batch_sizes: Mapping[str, int],
) -> RunPlan:
    """Fix everything a run will do.

    Args:
        suite: name of the suite.
        suite_options: what it was opened with.
        models: those of its models that were selected.
        request: what was asked for.
        batch_sizes: of the models named, in place of their own.

    Raises:
        UsageError: options contradict each other, or no model can be run so.
        UnknownNameError: there is no such backend or executor.
    """
    request = with_usual_study(request, suite)
    study = asked_study(request, registry.studies())
    asked = _workload(request, batch_sizes)
    refusals.check_batch_size(suite, models, asked)
    workload = study.workload(asked, request)
    refusals.check_workload(workload)
    folders = registry.suite(suite).import_folders(suite_options)
    if folders is not None:
        refuse_unknown_functions(workload.overrides.names, folders)
    registry.target("executors", request[EXECUTOR])
    cases = build_cases(models, workload)
    jobs = max(1, min(jobs_of(study, request), len(cases)))
    plan = RunPlan(
        suite=suite,
        suite_options=suite_options,
        models=models,
        cases=cases,
        experiments=study.experiments(request),
        protocol=_protocol(request, *_replicates(study, request)),
        timeout_s=_timeout_s(study, request),
        memory_limit_bytes=request[MEMORY_LIMIT] or _memory_limit_of_worker(suite, study, jobs),
        seed=request[SEED],
        threads=threads_of(study, request),
        jobs=jobs,
        retries_for=_retries_for(request),
        executor=request[EXECUTOR],
        no_skip=request[NO_SKIP],
        raise_backend_errors=request[RAISE_BACKEND_ERRORS],
        tuning=tuning_of(request, workload.arms, decides=study.decides),
        corpus=str(corpus) if (corpus := study.corpus(request)) else None,
    )
    if study.decides:
        plan = to_be_tuned(plan, has_own_arms=bool(request[BACKENDS]))
    refusals.refuse_fixed_sizes(study, plan)
    refusals.check_expectations(study, plan, request)
    refusals.check_output(study, plan, request)
    return plan


def _workload(request: Request, batch_sizes: Mapping[str, int]) -> Workload:
    """Return how models are to be run, before a study has its say.

    Raises:
        UnknownNameError: there is no such backend.
        UsageError: options contradict each other.
    """
    return Workload(
        arms=asked_arms(request),
        device=request[DEVICE],
        mode=Mode.TRAINING if request[TRAINING] else Mode.INFERENCE,
        dtype=request[DTYPE],
        matmul_precision=request[MATMUL_PRECISION],
        channels_last=request[CHANNELS_LAST],
        compiled_optimizer=request[COMPILED_OPTIMIZER],
        nopython=request[NOPYTHON],
        dynamic=request[DYNAMIC] or request[DYNAMIC_BATCH],
        dynamic_dims=DynamicDims.BATCH if request[DYNAMIC_BATCH] else DynamicDims.ALL,
        scale=request[SCALE],
        batch_size=request[BATCH_SIZE],
        batch_sizes=batch_sizes,
        overrides=_overrides_of(request),
        model_overrides=request[MODEL_OVERRIDES],
        only_overrides=request[ONLY_OVERRIDES],
    )


def default_memory_limit() -> int:
    """Return the bytes a worker may take where no limit is given."""
    from dynamometer.common.machine.environment import memory_bytes

    return int(_MEMORY_SHARE * memory_bytes())


def _retries_for(request: Request) -> tuple[str, ...]:
    """Return the statuses after which a replicate is attempted again.

    Raises:
        UsageError: there is no such status, or it is none of a failure.
    """
    asked = [word.strip() for text in request[RETRIES_FOR] for word in text.split(",")]
    known = [str(each) for each in Status if each not in {Status.PASS, Status.SKIP}]
    for word in asked:
        if word not in known:
            msg = f"--retries-for {word}: no such failure; there are {', '.join(known)}"
            raise UsageError(msg)
    return tuple(dict.fromkeys(asked))


def _memory_limit_of_worker(suite: str, study: Study, jobs: int) -> int:
    """Return the limit of one worker.

    Workers of foreign code that run together share the whole. So do those that look for the batch
    that no longer fits: each goes on until its memory is used up.
    """
    shares = registry.suite(suite).is_foreign or study.varies_batch
    return default_memory_limit() // (jobs if shares else 1)


def asked_study(request: Request, studies: Sequence[Study]) -> Study:
    """Return the study a command line asks for.

    Args:
        request: what was asked for.
        studies: all there are.

    Raises:
        UsageError: it asks for several.
    """
    asked = [study for study in studies if study.asked_by and request[study.asked_by]]
    if len(asked) > 1:
        flags = " and ".join(each.asked_by.named for each in asked if each.asked_by)
        msg = f"one run asks one question: {flags} are several"
        raise UsageError(msg)
    return asked[0] if asked else registry.study(registry.DEFAULT_STUDY)


def _protocol(request: Request, least: int, most: int) -> Protocol:
    """Return how each case is measured, in so many replicates at least and at most."""
    return Protocol(
        replicates=least,
        most_replicates=most,
        target=request[HALF_WIDTH],
        case_budget_s=request[CASE_BUDGET],
        calls=request[CALLS],
        allocator=request[ALLOCATOR],
        caches=request[CACHES],
        start_method=StartMethod.SPAWN if request[SPAWN] else StartMethod.FORK,
    )


def _timeout_s(study: Study, request: Request) -> float:
    asked = request[TIMEOUT]
    return study.usual_timeout_s if asked is None else asked


def _overrides_of(request: Request) -> Overrides:
    """Read how Dynamo is to treat functions.

    Raises:
        UsageError: a name isn't one.
    """
    pairs = []
    for text in request[SUBSTITUTE]:
        original, equals, replacement = text.partition("=")
        if not equals or "=" in replacement:
            msg = f"--substitute {text}: give MODULE:FUNCTION=MODULE:FUNCTION"
            raise UsageError(msg)
        pairs.append((original, replacement))
    names = (
        *(*request[ALLOW_IN_GRAPH], *request[DISABLE_FRAME]),
        *itertools.chain(*pairs),
    )
    for name in names:
        module, colon, function = name.partition(":")
        if not (module and colon and function):
            msg = f"{name!r} names no function: give MODULE:FUNCTION, such as my_package.nets:norm"
            raise UsageError(msg)
    return Overrides(
        allow_in_graph=request[ALLOW_IN_GRAPH],
        disable=request[DISABLE_FRAME],
        substitute=tuple(pairs),
    )


def _replicates(study: Study, request: Request) -> tuple[int, int]:
    """Return the least and the most; one where figures are for screening, or there are none.

    Raises:
        UsageError: how many was said in two ways.
    """
    usual = study.replicates(request)
    exact = request[REPLICATES]
    if request[RIGOROUS] and (exact or request[QUICK] or usual == _SCREENING):
        one = f", {study.asked_by.named}" if usual == _SCREENING and study.asked_by else ""
        msg = f"--rigorous takes 5 to 10 replicates: leave out -r, --quick{one}"
        raise UsageError(msg)
    if request[RIGOROUS]:
        return RIGOROUS_REPLICATES
    if exact is None and request[QUICK] and study.is_timed:
        return _SCREENING
    return usual if exact is None else (exact, exact)


_SCREENING = (1, 1)
