"""From the words of a command line to a plan, refusing what contradicts itself."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynamometer.common import registry
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import flag_of
from dynamometer.common.interfaces.workload import Workload
from dynamometer.common.planning import refusals
from dynamometer.common.planning.plan import Selection, build_cases
from dynamometer.results.values.cases import (
    BASELINE,
    RIGOROUS_REPLICATES,
    Allocator,
    Caches,
    Dtype,
    DynamicDims,
    Mode,
    Overrides,
    Protocol,
    RunPlan,
    Scale,
    StartMethod,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.studies.study import Study
    from dynamometer.results.values.cases import ModelSpec

_MEMORY_SHARE = 0.85
"""Of the machine's memory: what a worker may take where no limit is given."""


def selection(options: dict[str, Any]) -> Selection:
    """Return what was asked for of a suite's models."""
    return Selection(
        include=options["include"],
        exclude=options["exclude"],
        only=options["only"],
        quick=options["quick"],
        partition=(options["partition_id"], options["total_partitions"]),
    )


def opening_options(suite: str, options: dict[str, Any]) -> dict[str, str]:
    """Return what the suite is opened with.

    Raises:
        UsageError: an option of one suite was given to another, or can't go with another option.
    """
    everything = bool(options.get("all_architectures"))
    if everything and suite != "timm_models":
        msg = "--all goes with the suite timm_models"
        raise UsageError(msg)
    if suite != "torchbench":
        _refuse_checkout(suite)
        if everything:
            return {"all": "yes"}
        return {"target": options["target"]} if "target" in options else {}
    return _checkout_options(options)


def _refuse_checkout(suite: str) -> None:
    typed = click.core.ParameterSource.COMMANDLINE
    source = click.get_current_context().get_parameter_source
    if typed in {source("torchbench_root"), source("offline_weights")}:
        msg = f"--torchbench-root and what belongs to it can't go with the suite {suite}"
        raise UsageError(msg)


def _checkout_options(options: dict[str, Any]) -> dict[str, str]:
    root, offline = options["torchbench_root"], options["offline_weights"]
    if root is None:
        if offline is not None:
            msg = "--offline-weights and --hub-weights go with --torchbench-root"
            raise UsageError(msg)
        return {}
    if options["scale"] != Scale.FULL:
        msg = (
            f"the models of a checkout have one scale; --scale {options['scale']} can't go with"
            " --torchbench-root, nor with TORCHBENCH_ROOT in the environment"
        )
        raise UsageError(msg)
    if offline is None and not options["list_names"]:
        from dynamometer.common.machine.network import hub_is_reachable

        offline = not hub_is_reachable()
    return {
        "torchbench_root": str(Path(root).resolve()),
        "offline_weights": "yes" if offline else "no",
    }


def make_plan(
    suite: str,
    suite_options: dict[str, str],
    models: tuple[ModelSpec, ...],
    options: dict[str, Any],
) -> RunPlan:
    """Fix everything a run will do.

    Args:
        suite: name of the suite.
        suite_options: what it was opened with.
        models: those of its models that were selected.
        options: what the command line was parsed to.

    Raises:
        UsageError: options contradict each other, or no model can be run so.
        UnknownNameError: there is no such backend.
    """
    studies = registry.studies()
    refusals.check_options(options, studies)
    fixed = [spec.name for spec in models if suite == "user" and not spec.batch_size]
    if options["batch_size"] is not None and fixed:
        msg = f"{fixed[0]} takes no batch_size=NUMBER as an argument; leave out --batch-size"
        raise UsageError(msg)
    study = asked_study(options, studies)
    refusals.check_expectations(study, options)
    workload = study.workload(_workload(options), options)
    refusals.check_workload(workload)
    least, most = _replicates(study, options)
    plan = RunPlan(
        suite=suite,
        suite_options=suite_options,
        models=models,
        cases=build_cases(models, workload),
        experiments=study.experiments(options),
        protocol=Protocol(
            replicates=least,
            most_replicates=most,
            target=options["half_width"],
            case_budget_s=options["case_budget_s"],
            calls=options["calls"],
            allocator=Allocator(options["allocator"]),
            caches=Caches(options["caches"] or Caches.FIRST_COLD),
            start_method=StartMethod.SPAWN if options["spawn"] else StartMethod.FORK,
        ),
        timeout_s=options["timeout_s"],
        memory_limit_bytes=options["memory_limit_bytes"] or usual_memory_limit(),
        seed=options["seed"],
        threads=options["threads"],
        no_skip=options["no_skip"],
        raise_backend_errors=options["raise_backend_errors"],
    )
    refusals.refuse_fixed_sizes(study, plan)
    return plan


def _workload(options: dict[str, Any]) -> Workload:
    """Return how models are to be run, before a study has its say.

    Raises:
        UnknownNameError: there is no such backend.
        UsageError: options contradict each other.
    """
    return Workload(
        arms=_arms(options),
        device=options["device"],
        mode=Mode.TRAINING if options["training"] else Mode.INFERENCE,
        dtype=Dtype(options["dtype"] or "float32"),
        channels_last=options["channels_last"],
        compiled_optimizer=options["compiled_optimizer"],
        nopython=options["nopython"],
        dynamic=options["dynamic"] or options["dynamic_batch"],
        dynamic_dims=DynamicDims.BATCH if options["dynamic_batch"] else DynamicDims.ALL,
        scale=Scale(options["scale"]),
        batch_size=options["batch_size"],
        overrides=_overrides_of(options),
        model_overrides=options["model_overrides"],
    )


def usual_memory_limit() -> int:
    """Return the bytes a worker may take where no limit is given."""
    from dynamometer.common.machine.environment import memory_bytes

    return int(_MEMORY_SHARE * memory_bytes())


def asked_study(options: dict[str, Any], studies: Sequence[Study]) -> Study:
    """Return the study a command line asks for.

    Raises:
        UsageError: it asks for several.
    """
    asked = [study for study in studies if study.is_asked(options)]
    if len(asked) > 1:
        flags = " and ".join(flag_of(each.flag) for each in asked if each.flag)
        msg = f"one run asks one question: {flags} are several"
        raise UsageError(msg)
    return asked[0] if asked else registry.study(registry.USUAL_STUDY)


def _arms(options: dict[str, Any]) -> tuple[str, ...]:
    """Return what is compared with the baseline, unless the study has it otherwise.

    Raises:
        UnknownNameError: there is no such backend.
        UsageError: the baseline was named.
    """
    baselines = ("ts",) if options["speedup_ts"] else ()
    arms = tuple(dict.fromkeys((*options["backends"], *baselines))) or ("inductor",)
    for arm in arms:
        registry.target("backends", arm)
        if arm == BASELINE:
            msg = "the baseline is always measured; --backend names what is compared with it"
            raise UsageError(msg)
    return arms


def _overrides_of(options: dict[str, Any]) -> Overrides:
    """Read how Dynamo is to treat functions.

    Raises:
        UsageError: a name isn't one.
    """
    pairs = tuple(tuple(each.split("=")) for each in options["substitute"])
    for text, pair in zip(options["substitute"], pairs, strict=True):
        if len(pair) != len(("original", "replacement")):
            msg = f"--substitute {text}: give MODULE:FUNCTION=MODULE:FUNCTION"
            raise UsageError(msg)
    names = (*options["allow_in_graph"], *options["disable_frame"], *itertools.chain(*pairs))
    for name in names:
        module, colon, function = name.partition(":")
        if not (module and colon and function):
            msg = f"{name!r} names no function: give MODULE:FUNCTION, such as my_package.nets:norm"
            raise UsageError(msg)
    return Overrides(
        allow_in_graph=options["allow_in_graph"], disable=options["disable_frame"], substitute=pairs
    )


def _replicates(study: Study, options: dict[str, Any]) -> tuple[int, int]:
    """Return the least and the most; one where figures are for screening, or there are none.

    Raises:
        UsageError: how many was said in two ways.
    """
    usual = study.replicates(options)
    exact: int | None = options["replicates"]
    if options["rigorous"] and (exact or options["quick"] or usual == _SCREENING):
        one = f", {flag_of(study.flag)}" if usual == _SCREENING and study.flag else ""
        msg = f"--rigorous takes 5 to 10 replicates: leave out -r, --quick{one}"
        raise UsageError(msg)
    if options["rigorous"]:
        return RIGOROUS_REPLICATES
    if exact is None and options["quick"] and study.is_timed:
        return _SCREENING
    return usual if exact is None else (exact, exact)


_SCREENING = (1, 1)
