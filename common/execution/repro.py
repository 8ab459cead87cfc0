"""The command that repeats a case alone."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from dynamometer.common import registry
from dynamometer.results.values.cases import (
    BASELINE,
    DEFAULT_REPLICATES,
    RIGOROUS_REPLICATES,
    Allocator,
    Caches,
    DynamicDims,
    Mode,
    Protocol,
    StartMethod,
)

if TYPE_CHECKING:
    from dynamometer.results.values.cases import Case, RunPlan
    from dynamometer.results.values.records import Manifest


def single_case_command(manifest: Manifest, case: Case) -> str:
    """Return the command line that measures one case of a run exactly as the run did."""
    plan = manifest.plan
    words = [*shlex.split(manifest.program), "--only", case.model]
    for arm in case.arms:
        if arm == "ts":
            words.append("--speedup-ts")
        elif arm != BASELINE:
            words += ["--backend", arm]
    words += ["--device", case.device, "--scale", case.scale, f"--{case.dtype}"]
    words.append("--training" if case.mode is Mode.TRAINING else "--inference")
    flags = {
        "--channels-last": case.channels_last,
        "--compile-optimizer": case.compiled_optimizer,
        "--nopython": case.nopython,
        "--dynamic-shapes": case.has_dynamic_dims(DynamicDims.ALL),
        "--dynamic-batch-only": case.has_dynamic_dims(DynamicDims.BATCH),
    }
    words += [flag for flag, is_set in flags.items() if is_set]
    study = registry.study(plan.study)
    words += study.words(plan)
    words += case.overrides.words
    spec = plan.spec_of(case)
    if case.batch_size is not None and case.batch_size != spec.batch_size_at(
        case.scale, case.device, case.mode, dynamic=case.dynamic
    ):
        words += ["--batch-size", str(case.batch_size)]
    if study.is_repeated:
        words += _precision_words(plan.protocol)
    words += ["--seed", str(plan.seed)]
    words += _execution_words(plan)
    if plan.no_skip or spec.skip_reason(case.device, case.mode) is not None:
        words.append("--no-skip")
    return shlex.join(words)


def _precision_words(protocol: Protocol) -> list[str]:
    """Return how often, and until when, a case is measured."""
    usual = Protocol()
    words = []
    replicates = (protocol.replicates, protocol.most_replicates)
    if replicates == RIGOROUS_REPLICATES:
        words.append("--rigorous")
    elif replicates != DEFAULT_REPLICATES:
        words += ["--replicates", str(protocol.replicates)]
    if protocol.target != usual.target:
        words += ["--target", repr(protocol.target)]
    if protocol.case_budget_s is not None:
        words += ["--max-seconds", repr(protocol.case_budget_s)]
    if protocol.caches is not Caches.FIRST_COLD:
        words.append(f"--{protocol.caches}")
    return words


def _execution_words(plan: RunPlan) -> list[str]:
    words = ["--timeout", repr(plan.timeout_s)]
    if plan.memory_limit_bytes is not None:
        words += ["--memory-limit", str(plan.memory_limit_bytes)]
    if plan.protocol.calls is not None:
        words += ["--repeat", str(plan.protocol.calls)]
    if plan.threads is not None:
        words += ["--threads", str(plan.threads)]
    if plan.protocol.allocator is not Allocator.KEEP:
        words += ["--allocator", plan.protocol.allocator]
    if plan.raise_backend_errors:
        words.append("--raise-backend-errors")
    if plan.protocol.start_method is StartMethod.SPAWN:
        words.append("--spawn")
    if plan.suite_options.get("all") == "yes":
        words.append("--all")
    if "torchbench_root" in plan.suite_options:
        words += ["--torchbench-root", plan.suite_options["torchbench_root"]]
        offline = plan.suite_options["offline_weights"] == "yes"
        words.append("--offline-weights" if offline else "--hub-weights")
    return words
