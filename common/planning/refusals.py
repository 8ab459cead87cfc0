"""What a command line can't ask for: each refusal says why, and what to leave out."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dynamometer.common.errors import UsageError
from dynamometer.results.store import store
from dynamometer.results.values.cases import BATCH_SIZES, FIXED_SIZES, Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dynamometer.common.planning.plan import Workload
    from dynamometer.results.values.cases import RunPlan


@contextmanager
def store_errors_as_usage() -> Iterator[None]:
    """Blame the command line for what can't be done with a file or directory it names.

    Raises:
        UsageError: in place of a `StoreError`.
    """
    try:
        yield
    except store.StoreError as error:
        raise UsageError(str(error)) from error


def check_options(options: dict[str, Any]) -> None:
    """Refuse options that contradict each other, before anything runs.

    Raises:
        UsageError: some do.
    """
    check_reporting(options)
    if options["compiled_optimizer"] and not options["training"]:
        msg = "--compile-optimizer goes with --training: without it there is no optimizer"
        raise UsageError(msg)
    for chosen, why, others in _BY_ITSELF:
        for name in others if options[chosen] else ():
            if options[name]:
                msg = f"{why}; leave out {_FLAGS[name]}, which may also stand in pyproject.toml"
                raise UsageError(msg)


_FLAGS = {
    "accuracy": "--accuracy",
    "allow_in_graph": "--allow-in-graph",
    "backends": "--backend",
    "batch_size": "--batch-size",
    "caches": "--cold and --warm",
    "calls": "--repeat",
    "case_budget_s": "--max-seconds",
    "compiled_optimizer": "--compile-optimizer",
    "coverage": "--coverage",
    "disable_frame": "--disable-frame",
    "dynamic": "--dynamic-shapes",
    "dynamic_batch": "--dynamic-batch-only",
    "expect": "--expect",
    "model_controls": "--controls",
    "nopython": "--nopython",
    "overhead": "--overhead",
    "replicates": "--replicates",
    "rigorous": "--rigorous",
    "speedup_ts": "--speedup-ts",
    "substitute": "--substitute",
    "sweep_sizes": "--sweep-sizes",
}

_CONTROLS = frozenset({"allow_in_graph", "disable_frame", "model_controls", "substitute"})

_BY_ITSELF = (
    (
        "overhead",
        "--overhead is of Dynamo without a backend",
        ("accuracy", "backends", "speedup_ts"),
    ),
    ("find_batch_sizes", "--find-batch-sizes runs eager at sizes of its own", tuple(_FLAGS)),
    (
        "dynamic",
        "--dynamic-shapes makes every size a symbol",
        ("dynamic_batch",),
    ),
    (
        "sweep_sizes",
        "--sweep-sizes times one backend at each size by itself",
        (
            "accuracy",
            "caches",
            "compiled_optimizer",
            "expect",
            "nopython",
            "overhead",
            "rigorous",
            "speedup_ts",
            *_CONTROLS,
        ),
    ),
    (
        "expect",
        "--expect compares each model with what it came to without controls",
        tuple(_CONTROLS),
    ),
    (
        "coverage",
        "--coverage counts what Dynamo captures, once, whatever the backend",
        tuple(_FLAGS.keys() - {"batch_size", "coverage", "dynamic", "dynamic_batch"} - _CONTROLS),
    ),
)
"""Options that measure something else, why, and the options they don't go with."""


def check_reporting(options: dict[str, Any]) -> None:
    """Refuse a table of expected results that can't be used, before anything runs.

    Raises:
        UsageError: it is damaged, or not there and not to be made, or `--update-expected` names
            none.
    """
    expect: Path | None = options["expect"]
    if expect is None and options["update_expected"]:
        msg = "--update-expected rewrites a table: name it with --expect FILE"
        raise UsageError(msg)
    if expect is None:
        return
    if expect.exists():
        from dynamometer.results.store import expected

        with store_errors_as_usage():
            expected.read_table(expect)  # damaged, it had better be known now than after the run
    elif not options["update_expected"]:
        msg = f"there is no table {expect} to compare with; --update-expected makes it"
        raise UsageError(msg)


def check_workload(workload: Workload) -> None:
    """Refuse what no arm could do, before anything runs.

    Raises:
        UsageError: two options contradict each other.
    """
    if "ts" not in workload.arms:
        return
    if workload.mode is Mode.TRAINING:
        msg = "--speedup-ts freezes the model, which can't be trained then; leave out --training"
        raise UsageError(msg)
    if workload.dtype is Dtype.AMP:
        msg = "--speedup-ts traces the model, and a trace can't hold autocast; leave out --amp"
        raise UsageError(msg)


def refuse_fixed_sizes(plan: RunPlan) -> None:
    """Refuse a run in which every model would be skipped for the same reason.

    Raises:
        UsageError: no model lets its sizes be varied.
    """
    if {plan.skip_reason(case) for case in plan.cases} == {FIXED_SIZES}:
        names = ", ".join(case.model for case in plan.cases[:3])
        msg = f"no size of {names} can be varied, as they set their own"
        if plan.suite == "user":
            msg += "; a function with an argument batch_size=NUMBER lets it be varied"
        elif BATCH_SIZES not in plan.experiments:
            msg += "; --batch-size N gives them one that can"
        raise UsageError(msg)
