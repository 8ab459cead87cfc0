"""What a command line can't ask for: each refusal says why, and what to leave out."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import OVERRIDE_OPTIONS, Exclusion, flag_of
from dynamometer.common.studies.study import skip_reason
from dynamometer.results.store import store
from dynamometer.results.values.cases import FIXED_SIZES, Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dynamometer.common.interfaces.workload import Workload
    from dynamometer.common.studies.study import Study
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


def check_options(options: dict[str, Any], studies: Sequence[Study]) -> None:
    """Refuse options that contradict each other, before anything runs.

    Raises:
        UsageError: some do.
    """
    check_reporting(options)
    if options["compiled_optimizer"] and not options["training"]:
        msg = "--compile-optimizer goes with --training: without it there is no optimizer"
        raise UsageError(msg)
    for exclusion in _exclusions(studies):
        for name in sorted(exclusion.others) if options[exclusion.name] else ():
            if options[name]:
                flag = _flag(name)
                msg = f"{exclusion.why}; leave out {flag}, which may also stand in pyproject.toml"
                raise UsageError(msg)


def _exclusions(studies: Sequence[Study]) -> Iterator[Exclusion]:
    """Yield all there are. One run asks one question: an option of a study excludes the others'."""
    yield from _EXCLUSIONS
    flags = {study.flag for study in studies if study.flag}
    for study in studies:
        for each in study.exclusions:
            others = flags - {study.flag} if each.name == study.flag else set()
            yield replace(each, others=each.others | others)


def _flag(name: str) -> str:
    """Write an option as it is typed."""
    return _FLAGS.get(name, flag_of(name))


_FLAGS = {
    "backends": "--backend",
    "caches": "--cold and --warm",
    "calls": "--repeat",
    "case_budget_s": "--max-seconds",
    "compiled_optimizer": "--compile-optimizer",
    "dynamic": "--dynamic-shapes",
    "dynamic_batch": "--dynamic-batch-only",
    "model_overrides": "--overrides",
}
"""Options whose names differ from how they are typed."""

_EXCLUSIONS = (
    Exclusion(
        "dynamic", "--dynamic-shapes makes every size a symbol", frozenset({"dynamic_batch"})
    ),
    Exclusion(
        "expect",
        "--expect compares each model with what it came to without overrides",
        OVERRIDE_OPTIONS,
    ),
)


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


def check_expectations(study: Study, options: dict[str, Any]) -> None:
    """Refuse to compare what has no expected results.

    Raises:
        UsageError: that was asked for.
    """
    if options["expect"] and not study.has_expectations:
        msg = "what this run asks has no expected results; leave out --expect"
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


def refuse_fixed_sizes(study: Study, plan: RunPlan) -> None:
    """Refuse a run in which every model would be skipped for the same reason.

    Raises:
        UsageError: no model lets its sizes be varied.
    """
    if {skip_reason(study, plan, case) for case in plan.cases} == {FIXED_SIZES}:
        names = ", ".join(case.model for case in plan.cases[:3])
        msg = f"no size of {names} can be varied, as they set their own"
        if plan.suite == "user":
            msg += "; a function with an argument batch_size=NUMBER lets it be varied"
        elif not study.varies_batch:
            msg += "; --batch-size N gives them one that can"
        raise UsageError(msg)
