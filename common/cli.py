"""The command line: from words to a plan, a run and an exit code."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dynamometer
from dynamometer.common import registry
from dynamometer.common.errors import (
    DynamometerError,
    UnfitEnvironmentError,
    UsageError,
)
from dynamometer.common.options import GroupedCommand, report_options, run_options
from dynamometer.common.plan import Selection, Workload, build_cases, select
from dynamometer.results import store
from dynamometer.results.batch_sizes import SEARCHED_SIZES
from dynamometer.results.schema import (
    BASELINE,
    BATCH_SIZES,
    FIXED_SIZES,
    Allocator,
    Dtype,
    Manifest,
    Mode,
    Protocol,
    RunPlan,
    Scale,
    StartMethod,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dynamometer.common.suite import Suite
    from dynamometer.results.schema import ModelSpec

_USAGE, _INTERRUPTED, _READER_LEFT = 2, 130, 141
_MEMORY_SHARE = 0.85


def main(suite: str | None = None, argv: Sequence[str] | None = None) -> int:
    """Run the program and give its exit code.

    Args:
        suite: name of the suite a script stands for; `None` for the `dynamometer` command.
        argv: the words after the program's name; `None` for those of this process.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    program = _script_words(sys.argv[0]) if suite else "dynamometer"
    command = _script(suite) if suite else _program()
    try:
        name = Path(sys.argv[0]).name if suite else program
        code = command.main(words, prog_name=name, standalone_mode=False, obj=(program, words))
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        error.show()
        return _USAGE
    except (DynamometerError, store.StoreError) as error:
        click.echo(f"error: {error}", err=True)
        return getattr(error, "exit_code", DynamometerError.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read standard output has left, as `head` does. What was measured is stored.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _READER_LEFT
    return code if isinstance(code, int) else 0


def _script_words(script: str) -> str:
    """Give the words that start a script from anywhere."""
    return shlex.join([sys.executable, str(Path(script).resolve())])


def _script(suite: str) -> click.Command:
    """Make the command that `./<suite>.py` is."""

    @click.command(cls=GroupedCommand, help=_RUN_HELP.format(suite=suite))
    @run_options(suite)
    @click.pass_obj
    def script(invocation: tuple[str, list[str]], /, **options: Any) -> int:
        program, words = invocation
        return _run_suite(suite, program, words, options)

    return script


def _program() -> click.Group:
    """Make the `dynamometer` command."""

    @click.group(help="What torch.compile with a given backend does to real PyTorch models.")
    @click.version_option(dynamometer.__version__, package_name="dynamometer")
    def program() -> None:
        pass

    @program.command("run", cls=GroupedCommand, help=_RUN_HELP.format(suite="TARGET") + _TARGETS)
    @click.argument("target", required=False)
    @run_options(None)
    @click.pass_obj
    def run(invocation: tuple[str, list[str]], /, target: str | None, **options: Any) -> int:
        name, words = invocation
        rest = words[1:]
        if target is None:
            from dynamometer.common.project import read_project

            words = ["run", *read_project(Path("pyproject.toml")), *rest]
            return int(program.main(words, standalone_mode=False, obj=(name, words)))
        rest.remove(target)
        return _run_target(target, name, rest, options)

    @program.command("resume", cls=GroupedCommand, help="Finish an interrupted run.")
    @click.argument("directory", type=click.Path(path_type=Path))
    @report_options
    def resume(*, directory: Path, **options: Any) -> int:
        return _resume(directory, options)

    @program.command("ls", help="List what there is, one name a line.")
    @click.argument("what", type=click.Choice(["suites", "backends", "models"]))
    @click.argument("suite", required=False)
    def ls(what: str, suite: str | None) -> None:
        click.echo("\n".join(_names(what, suite)))

    return program


_RUN_HELP = """Measure what compiling does to the models of {suite}.

Each case runs in a process of its own; a line is printed as it ends, and everything is kept in
a directory below --output-dir, from which an interrupted run can be resumed.
"""

_TARGETS = """
TARGET is a suite (`dynamometer ls suites`), FILE.py or FILE.py::name with models of your own, a
program.pt2 that torch.export saved, or hub:NAME for a model transformers can load. Without one,
[tool.dynamometer] in ./pyproject.toml says what to run.
"""


def _run_target(target: str, name: str, words: list[str], options: dict[str, Any]) -> int:
    """Run a suite, or models of a user's own."""
    path, colons, function = target.partition("::")
    if not path.endswith((".py", ".pt2")) and not target.startswith("hub:"):
        return _run_suite(target, f"{name} run {shlex.quote(target)}", words, options)
    if not target.startswith("hub:"):
        target = str(Path(path).resolve()) + colons + function
    if options["scale"] != Scale.FULL:
        msg = "models of your own are what your code makes them: leave out --scale"
        raise UsageError(msg)
    program = f"{name} run {shlex.quote(target)}"
    return _run_suite("user", program, words, {**options, "target": target})


def _names(what: str, suite: str | None) -> list[str]:
    match what:
        case "suites":
            return sorted(registry.targets("suites"))
        case "backends":
            return sorted(set(registry.targets("backends")) - {"baseline"})
        case _:
            suites = [suite or "torchbench"]
            return [spec.name for name in suites for spec in _open(name, {}).specs()]


def _open(suite: str, options: dict[str, str]) -> Suite:
    open_suite: Callable[[dict[str, str]], Suite] = registry.resolve("suites", suite)
    try:
        return open_suite(options)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _run_suite(suite: str, program: str, words: list[str], options: dict[str, Any]) -> int:
    """Plan a run and execute it."""
    if suite != "user" and not set(words) - {"--"}:
        click.echo("nothing asked for: taking --quick (see --help)", err=True)
        options["quick"] = True
    suite_options = _suite_options(suite, options)
    models = select(_open(suite, suite_options).specs(), _selection(options))
    if options["list_names"]:
        click.echo("\n".join(spec.name for spec in models))
        return 0
    plan = _plan(suite, suite_options, models, options)
    from dynamometer.common.environment import read_environment, require_device

    require_device(options["device"])
    now = datetime.now(UTC)
    manifest = Manifest(
        run_id=f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
        created_at=now.isoformat(timespec="seconds"),
        version=dynamometer.__version__,
        program=program,
        command=shlex.join([*shlex.split(program), *words]),
        plan=plan,
        environment=read_environment(),
    )
    directory = Path(options["output_dir"]) / manifest.run_id
    try:
        store.create(directory, manifest)
    except store.StoreError as error:
        raise UsageError(str(error)) from error
    return _execute(manifest, directory, options)


def _selection(options: dict[str, Any]) -> Selection:
    return Selection(
        include=options["include"],
        exclude=options["exclude"],
        only=options["only"],
        quick=options["quick"],
        partition=(options["partition_id"], options["total_partitions"]),
    )


def _suite_options(suite: str, options: dict[str, Any]) -> dict[str, str]:
    """Give what the suite is opened with.

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
        from dynamometer.common.network import hub_is_reachable

        offline = not hub_is_reachable()
    return {
        "torchbench_root": str(Path(root).resolve()),
        "offline_weights": "yes" if offline else "no",
    }


def _plan(
    suite: str,
    suite_options: dict[str, str],
    models: tuple[ModelSpec, ...],
    options: dict[str, Any],
) -> RunPlan:
    _check_options(options)
    fixed = [spec.name for spec in models if suite == "user" and not spec.batch_size]
    if options["batch_size"] is not None and fixed:
        msg = f"{fixed[0]} takes no batch_size=NUMBER as an argument; leave out --batch-size"
        raise UsageError(msg)
    workload = Workload(
        arms=_arms(options),
        device=options["device"],
        mode=Mode.TRAINING if options["training"] else Mode.INFERENCE,
        dtype=Dtype(options["dtype"] or "float32"),
        channels_last=options["channels_last"],
        compiled_optimizer=options["compiled_optimizer"],
        dynamic=options["dynamic"],
        scale=Scale(options["scale"]),
        batch_size=options["batch_size"],
    )
    _check_workload(workload)
    from dynamometer.common.environment import memory_bytes

    plan = RunPlan(
        suite=suite,
        suite_options=suite_options,
        models=models,
        cases=build_cases(models, workload),
        experiments=_experiments(options),
        protocol=Protocol(
            replicates=_replicates(options),
            calls=options["calls"],
            allocator=Allocator(options["allocator"]),
            start_method=StartMethod.SPAWN if options["spawn"] else StartMethod.FORK,
        ),
        timeout_s=options["timeout_s"],
        memory_limit_bytes=options["memory_limit_bytes"] or int(_MEMORY_SHARE * memory_bytes()),
        seed=options["seed"],
        threads=options["threads"],
        no_skip=options["no_skip"],
    )
    _refuse_fixed_sizes(plan)
    return plan


def _arms(options: dict[str, Any]) -> tuple[str, ...]:
    """Give what is compared with the baseline; nothing in a search for batch sizes.

    Raises:
        UnknownNameError: there is no such backend.
        UsageError: the baseline was named.
    """
    if options["find_batch_sizes"]:
        return ()
    baselines = ("ts",) if options["speedup_ts"] else ()
    arms = tuple(dict.fromkeys((*options["backends"], *baselines))) or ("inductor",)
    for arm in arms:
        registry.target("backends", arm)
        if arm == BASELINE:
            msg = "the baseline is always measured; --backend names what is compared with it"
            raise UsageError(msg)
    return arms


def _refuse_fixed_sizes(plan: RunPlan) -> None:
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


def _resume(directory: Path, options: dict[str, Any]) -> int:
    """Finish a run where it was begun.

    Raises:
        UnfitEnvironmentError: machine or software are not those of the run; says what differs.
    """
    from dynamometer.common.environment import differences, read_environment, require_device

    _check_reporting(options)
    manifest = store.read_manifest(directory)
    if options["expect"] and BATCH_SIZES in manifest.plan.experiments:
        msg = f"{directory} is a search for batch sizes, which has no expected results"
        raise UsageError(msg)
    require_device(manifest.plan.cases[0].device)
    changes = differences(manifest.environment, read_environment())
    if changes:
        msg = (
            f"{directory} was begun under other conditions: {'; '.join(changes)}. Put these back,"
            f" or measure anew: {manifest.command}"
        )
        raise UnfitEnvironmentError(msg)
    return _execute(manifest, directory, options)


def _experiments(options: dict[str, Any]) -> tuple[str, ...]:
    if options["find_batch_sizes"]:
        return (BATCH_SIZES,)
    return ("accuracy",) if options["accuracy"] else ("speedup", "memory")


def _replicates(options: dict[str, Any]) -> int:
    """Give three, but one where the figures are for screening or there are none."""
    if options["find_batch_sizes"]:
        return SEARCHED_SIZES
    return int(options["replicates"] or (1 if options["quick"] or options["accuracy"] else 3))


def _check_options(options: dict[str, Any]) -> None:
    """Refuse options that contradict each other, before anything runs.

    Raises:
        UsageError: some do.
    """
    _check_reporting(options)
    if options["compiled_optimizer"] and not options["training"]:
        msg = "--compile-optimizer goes with --training: without it there is no optimizer"
        raise UsageError(msg)
    if not options["find_batch_sizes"]:
        return
    for name, flag in _NOT_IN_A_SEARCH.items():
        if options[name]:
            msg = (
                f"--find-batch-sizes runs eager at sizes of its own; leave out {flag}, which may"
                " also stand in pyproject.toml"
            )
            raise UsageError(msg)


_NOT_IN_A_SEARCH = {
    "accuracy": "--accuracy",
    "backends": "--backend",
    "batch_size": "--batch-size",
    "calls": "--repeat",
    "compiled_optimizer": "--compile-optimizer",
    "dynamic": "--dynamic-shapes",
    "expect": "--expect",
    "replicates": "--replicates",
    "speedup_ts": "--speedup-ts",
}


def _check_reporting(options: dict[str, Any]) -> None:
    expect: Path | None = options["expect"]
    if expect is None and options["update_expected"]:
        msg = "--update-expected rewrites a table: name it with --expect FILE"
        raise UsageError(msg)
    if expect is None:
        return
    if expect.exists():
        from dynamometer.results import expected

        try:
            expected.read_table(expect)  # damaged, it had better be known now than after the run
        except store.StoreError as error:
            raise UsageError(str(error)) from error
    elif not options["update_expected"]:
        msg = f"there is no table {expect} to compare with; --update-expected makes it"
        raise UsageError(msg)


def _check_workload(workload: Workload) -> None:
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


def _execute(manifest: Manifest, directory: Path, options: dict[str, Any]) -> int:
    """Run a plan, or the rest of it, and say where the results are."""
    # rich and scipy take a while to import
    from dynamometer.common.session import Reporting, Session

    reporting = Reporting(
        csv_compat=options["csv_compat"],
        expect=options["expect"],
        update_expected=options["update_expected"],
    )
    return Session(manifest, directory, reporting).run()
