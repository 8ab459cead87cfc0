"""What a command line can't ask for: each refusal says why, and what to leave out."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.common import registry
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces import arm_names
from dynamometer.common.interfaces.run_options import (
    EXPECT,
    OUTPUT,
    SINKS,
    UPDATE_EXPECTED,
    run_options,
)
from dynamometer.common.interfaces.workload_options import TARGET
from dynamometer.common.planning.cases import asked_batch_size
from dynamometer.common.studies.study import FIXED_SIZES, options_of, skip_reason, with_usual_study
from dynamometer.results.listing import first_of
from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.cases import NO_OVERRIDES, TORCHSCRIPT, Dtype, Mode
from dynamometer.results.values.choices import ASSEMBLED, ENSEMBLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.interfaces.workload import Workload
    from dynamometer.common.studies.study import Study
    from dynamometer.results.values.cases import ModelSpec, RunPlan


@contextmanager
def store_errors_as_usage() -> Iterator[None]:
    """Blame the command line for what can't be done with a file or directory it names.

    Raises:
        UsageError: in place of a `StoreError`.
    """
    try:
        yield
    except StoreError as error:
        raise UsageError(str(error)) from error


def check_options(request: Request, suite: str, studies: Sequence[Study]) -> None:
    """Refuse options that contradict each other, before anything runs.

    Raises:
        UsageError: some do.
    """
    _check_suite(request, suite, studies)
    check_reporting(request)
    request = with_usual_study(request, suite)
    questions = {study.asked_by for study in studies if study.asked_by}
    for option in filter(request.is_set, request):
        excludes = option.excludes
        if excludes is None:
            continue
        # One run asks one question: the option of a study excludes the others'.
        others = questions - {option} if option in questions else set()
        for other in filter(request.is_set, (*excludes.others, *others)):
            msg = f"{excludes.why}; leave out {other.named}, which may also stand in pyproject.toml"
            raise UsageError(msg)


def _check_suite(request: Request, suite: str, studies: Sequence[Study]) -> None:
    """Refuse options of other suites.

    Raises:
        UsageError: one was typed.
    """
    known = {TARGET, *run_options(options_of(*studies), registry.suite(suite).options)}
    for option in request:
        if option in request.typed and option not in known:
            suites = [
                name
                for name, source in registry.loadable("suites").items()
                if option in source.options
            ]
            msg = (
                f"{option.named} goes with the suite {' or '.join(suites)}; it can't go with the"
                f" suite {suite}"
            )
            raise UsageError(msg)


def check_reporting(request: Request) -> None:
    """Refuse what can't be done with results, before anything runs.

    Raises:
        UsageError: the table of expected results is damaged, or not there and not to be made; or
            an option lacks the one it goes with.
        UnknownNameError: there is no such sink.
    """
    for option in filter(request.is_set, request):
        if option.needs and not request.is_set(option.needs.other):
            raise UsageError(option.needs.why)
    for sink in request[SINKS]:
        registry.target("sinks", sink)
    expect = request[EXPECT]
    if expect is None:
        return
    if expect.exists():
        from dynamometer.results.store import expected, their_expected

        is_theirs = their_expected.is_theirs(expect)
        if is_theirs and request[UPDATE_EXPECTED]:
            msg = f"{expect} is a table of PyTorch's: {_UPDATE_THEIRS}"
            raise UsageError(msg)
        table = their_expected if is_theirs else expected
        with store_errors_as_usage():
            table.read_table(expect)  # damaged, it had better be known now than after the run
    elif not request[UPDATE_EXPECTED]:
        msg = f"there is no table {expect} to compare with; --update-expected makes it"
        raise UsageError(msg)


_UPDATE_THEIRS = "`dynamometer export RUN --format expected-accuracy` writes it anew, given a run"


def check_expectations(study: Study, plan: RunPlan, request: Request) -> None:
    """Refuse to compare what has no expected results, whether a run begins or goes on.

    Raises:
        UsageError: that was asked for.
    """
    if request[EXPECT] and not study.has_expectations:
        msg = "what this run asks has no expected results; leave out --expect"
        raise UsageError(msg)
    changed = next((each for each in plan.cases if each.overrides != NO_OVERRIDES), None)
    if request[EXPECT] and changed:
        msg = (
            "--expect compares each model with what it came to without overrides, and this run has"
            f" {changed.label}; leave out --expect"
        )
        raise UsageError(msg)


def check_batch_size(suite: str, models: Sequence[ModelSpec], workload: Workload) -> None:
    """Refuse a batch size that a model can't be given.

    Raises:
        UsageError: one was asked for.
    """
    argument = registry.suite(suite).batch_size_argument
    fixed = [
        spec.name for spec in models if not spec.batch_size and asked_batch_size(spec, workload)
    ]
    if argument and fixed:
        many = len(fixed) > 1
        msg = (
            f"{', '.join(fixed)} {'take' if many else 'takes'} no {argument} as an argument; give"
            f" {'them' if many else 'it'} no batch size"
        )
        if len(fixed) < len(models):
            words = [f"-x {shlex.quote(f'^{re.escape(name)}$')}" for name in fixed]
            msg += f", or leave {'them' if many else 'it'} out: {' '.join(words)}"
        raise UsageError(msg)


def check_workload(workload: Workload) -> None:
    """Refuse what no arm could do, before anything runs.

    Raises:
        UsageError: two options contradict each other.
    """
    chosen = [arm for arm in workload.arms if arm in {ENSEMBLE, ASSEMBLED}]
    if workload.compiled_optimizer and chosen:
        msg = (
            f"{chosen[0]} uses decisions on graphs of models, and --compile-optimizer compiles"
            " graphs of optimizers; leave out one of them"
        )
        raise UsageError(msg)
    if TORCHSCRIPT not in workload.arms:
        return
    if workload.mode is Mode.TRAINING:
        msg = "--speedup-ts freezes the model, which can't be trained then; leave out --training"
        raise UsageError(msg)
    if workload.dtype is Dtype.AMP:
        msg = "--speedup-ts traces the model, and a trace can't hold autocast; leave out --amp"
        raise UsageError(msg)


def _check_their_table(arms: Sequence[str], request: Request) -> None:
    """Refuse to compare several backends with a table of PyTorch's, which is of one."""
    from dynamometer.results.store import their_expected

    expect = request[EXPECT]
    if expect and len(arms) > 1 and their_expected.is_theirs(expect):
        msg = (
            f"{expect} is a table of PyTorch's, which is of one backend, and these are"
            f" {', '.join(arms)}: give one"
        )
        raise UsageError(msg)


def check_output(study: Study, plan: RunPlan, request: Request) -> None:
    """Refuse what the file of `--output` can't hold, and a file that can't be written.

    It has PyTorch's columns, none of which tells backends apart.

    Raises:
        UsageError: there is something of the kind.
    """
    path, arms = request[OUTPUT], plan.cases[0].arms[1:]
    _check_their_table(arms, request)
    if path is None:
        return
    if len(arms) > 1:
        msg = (
            f"--output {path} holds the results of one backend, and these are"
            f" {', '.join(arms)}: leave it out, as each has a file in the run's directory"
        )
        raise UsageError(msg)
    from dynamometer.results.reports.csv_file import IDENTITY

    if study.asked_by and len(study.tables()[0].theirs().columns) <= len(IDENTITY):
        msg = f"--output {path} has PyTorch's columns, which say nothing of {study.asked_by.named}"
        raise UsageError(msg)
    _check_file(path)


def _check_file(path: Path) -> None:
    """Refuse a file of `--output` that can't be written; what is made to find out is removed."""
    file = Path(os.path.realpath(path))  # a link stays, whether it leads to something or not
    made: list[Path] = []
    try:
        if path.exists() and not path.is_file():
            msg = f"--output {path} is no file: its rows are written anew as each case ends"
            raise UsageError(msg)
        made += [each for each in (file, *file.parents) if not os.path.lexists(each)]
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8"):
            pass
        file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        msg = f"--output {path} can't be written: {why}; name another file"
        raise UsageError(msg) from error
    finally:
        for each in made:
            with suppress(OSError):  # it was not made, or somebody has put something there
                each.unlink() if each == file else each.rmdir()


def check_planned(plan: RunPlan) -> None:
    """Refuse to resume a run with arms that are no longer accepted, or a bad file of decisions.

    Raises:
        UsageError: an earlier version planned an arm that this one refuses; or the file is damaged,
            or can't be written.
    """
    for text in dict.fromkeys(arm for case in plan.cases for arm in case.arms):
        try:
            arm_names.settings_of(arm_names.read(text))
        except UsageError as error:
            msg = f"the run has an arm that can't be had so any more: {error}; measure anew"
            raise UsageError(msg) from error
    check_decisions(plan)


def check_decisions(plan: RunPlan) -> None:
    """Refuse a file of decisions that can't be read and written, before anything is measured.

    Raises:
        UsageError: it is damaged, or can't be written.
    """
    if plan.tuning is None:
        return
    from dynamometer.results.store.decisions import Decisions

    with store_errors_as_usage():
        Decisions(Path(plan.tuning.decisions)).make_ready()


def refuse_fixed_sizes(study: Study, plan: RunPlan) -> None:
    """Refuse a run in which every model would be skipped for the same reason.

    Raises:
        UsageError: no model lets its sizes be varied.
    """
    if {skip_reason(study, plan, case) for case in plan.cases} == {FIXED_SIZES}:
        names = first_of([case.model for case in plan.cases])
        msg = f"no size of {names} can be varied, as they set their own"
        argument = registry.suite(plan.suite).batch_size_argument
        if argument:
            msg += f"; a function with an argument {argument} lets it be varied"
        elif not study.varies_batch:
            msg += "; --batch-size N gives them one that can"
        raise UsageError(msg)
