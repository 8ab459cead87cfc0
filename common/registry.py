"""Names to implementations: built-ins and plugins alike are lazy `module:attribute` strings.

A plugin declares an entry point in the group `dynamometer.<kind>` (`suites`, `backends`,
`studies`, `executors`, `sinks`, `exports`). Nothing is imported before it is resolved, so listing
names never imports torch.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from dynamometer.common import loading, plugins
from dynamometer.common.ending import tell
from dynamometer.common.errors import DynamometerError, UnknownNameError, UsageError
from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.cases import BASELINE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dynamometer.common.interfaces.suite_source import SuiteSource
    from dynamometer.common.studies.study import Study

Kind = Literal["suites", "backends", "studies", "executors", "sinks", "exports"]

_BUILT_IN: dict[Kind, dict[str, str]] = {
    "suites": {
        "corpus": "dynamometer.models.corpus:SUITE",
        "huggingface": "dynamometer.models.huggingface:SUITE",
        "parity": "dynamometer.models.parity:SUITE",
        "timm_models": "dynamometer.models.timm_models:SUITE",
        "torchbench": "dynamometer.models.torchbench:SUITE",
        "torchbench-checkout": "dynamometer.models.torchbench:CHECKOUT",
        "user": "dynamometer.models.suites.user_models:SUITE",
    },
    "backends": {
        "aot_eager": "dynamometer.dynamo.backends.backends:aot_eager",
        "aot_inductor": "dynamometer.dynamo.backends.exported:aot_inductor",
        "assembled": "dynamometer.dynamo.ensemble.ensemble:assembled",
        "baseline": "dynamometer.dynamo.backends.backends:baseline",
        "cudagraphs": "dynamometer.dynamo.backends.backends:cudagraphs",
        "eager": "dynamometer.dynamo.backends.backends:eager",
        "ensemble": "dynamometer.dynamo.ensemble.ensemble:ensemble",
        "export": "dynamometer.dynamo.backends.exported:export",
        "inductor": "dynamometer.dynamo.backends.inductor:inductor",
        "ofi": "dynamometer.dynamo.backends.torchscript:ofi",
        "onnx": "dynamometer.dynamo.backends.runtimes.onnx_runtime:onnx",
        "onnxrt": "dynamometer.dynamo.backends.runtimes.onnx_runtime:onnxrt",
        "openvino": "dynamometer.dynamo.backends.runtimes.openvino_runtime:openvino",
        "ov": "dynamometer.dynamo.backends.runtimes.openvino_runtime:ov",
        "tensorrt": "dynamometer.dynamo.backends.runtimes.tensorrt:tensorrt",
        "trt": "dynamometer.dynamo.backends.runtimes.tensorrt:trt",
        "ts": "dynamometer.dynamo.backends.torchscript:torchscript",
        "tvm": "dynamometer.dynamo.backends.runtimes.tvm:tvm",
    },
    "studies": {
        "accuracy": "dynamometer.common.studies.accuracy.study:STUDY",
        "batch_sizes": "dynamometer.common.studies.batch_sizes.study:STUDY",
        "sizes": "dynamometer.common.studies.sizes.study:STUDY",
        "speedup": "dynamometer.common.studies.speedup.study:STUDY",
        "coverage": "dynamometer.common.studies.coverage.study:STUDY",
        "recording": "dynamometer.common.studies.recording.study:STUDY",
        "tuning": "dynamometer.common.studies.tuning.study:STUDY",
        "graphs": "dynamometer.common.studies.graphs.study:STUDY",
        "parity": "dynamometer.common.studies.parity.study:STUDY",
        "in_pairs": "dynamometer.common.studies.calibration.study:STUDY",
    },
    "executors": {"local": "dynamometer.common.execution.executors.local:LocalExecutor"},
    "sinks": {
        "console": "dynamometer.results.reports.console:Console",
        "csv": "dynamometer.results.reports.csv_sink:CsvFiles",
        "report": "dynamometer.results.reports.page.sink:ReportFile",
    },
    "exports": {
        "bencher": "dynamometer.results.exports.bencher:export",
        "benchmark-database": "dynamometer.results.exports.benchmark_database:export",
        "expected-accuracy": "dynamometer.results.exports.expected_accuracy:export",
        "github-action-benchmark": "dynamometer.results.exports.action_benchmark:export",
        "github-comment": "dynamometer.results.exports.markdown:comment",
        "github-summary": "dynamometer.results.exports.markdown:step_summary",
        "junit": "dynamometer.results.exports.junit:export",
        "openmetrics": "dynamometer.results.exports.openmetrics:export",
        "pytorch-csv": "dynamometer.results.exports.pytorch_csv:export",
    },
}


def targets(kind: Kind) -> dict[str, str]:
    """Map every registered name of a kind to its `module:attribute`; a name of ours stays ours."""
    found = dict(_BUILT_IN[kind])
    for each in plugins.registered(kind):
        found.setdefault(each.name, each.place)
    return found


def choices(kind: Kind) -> list[str]:
    """List the names a user can choose from, sorted; the baseline is never a choice."""
    _tell_of_what_has_no_name(kind)
    return sorted(set(targets(kind)) - {BASELINE})


def is_built_in(kind: Kind, name: str) -> bool:
    """Return whether a name is one of this project's own."""
    return name in _BUILT_IN[kind]


def is_backend(name: str) -> bool:
    """Return whether a name is a backend's; a `module:attribute` is none."""
    return is_built_in("backends", name) or name in targets("backends") or _is_of_dynamo(name)


def _is_of_dynamo(name: str) -> bool:
    """Return whether it is a backend that nobody registered here, and `torch.compile` knows."""
    from dynamometer.dynamo.backends import torch_names

    return torch_names.is_known(name)


def target(kind: Kind, name: str) -> str:
    """Find the `module:attribute` of a name; a name with a colon is one already.

    Imports nothing, so what a module lacks shows only when it is resolved.

    Raises:
        UnknownNameError: the name is not registered; says which come near.
        UsageError: nothing is installed under the module's first name, or a file is named in place
            of the module; or two plugins register the name.
    """
    if name in _BUILT_IN[kind]:
        return _BUILT_IN[kind][name]
    module_name, colon, attribute = name.partition(":")
    if attribute and loading.is_file(module_name):
        reason = loading.of_file(kind, module_name, attribute)
        raise UsageError(loading.cannot_load(kind, name, name, reason))
    if colon and module_name.strip(".") == module_name and module_name and attribute:
        package = module_name.partition(".")[0]
        if not loading.is_there(package):
            raise UsageError(loading.cannot_load(kind, name, name, loading.not_found(package)))
        return name
    known = targets(kind)
    if kind == "backends" and name not in known and _is_of_dynamo(name):
        return f"dynamometer.dynamo.backends.named:{name}"
    if name not in known:
        hint = "A callable of your own is given as module:attribute." if kind == "backends" else ""
        raise UnknownNameError(loading.singular(kind), name, set(known) - {BASELINE}, hint)
    origins = {each.place: each.origin for each in plugins.registered(kind) if each.name == name}
    if len(origins) > 1:
        both = " and ".join(origins.values())
        what = f"{loading.singular(kind)} {name!r}"
        msg = f"{what} is registered twice: {both}; uninstall one of them"
        raise UsageError(msg)
    return known[name]


def resolve(kind: Kind, name: str) -> Any:
    """Import what a name stands for.

    Raises:
        UnknownNameError: the name is not registered.
        UsageError: its module can't be imported, or lacks the attribute; or it is nothing of the
            kind.
        DynamometerError: a plugin's fails as it is looked at.
    """
    path = target(kind, name)
    found = loading.load(kind, name, path)
    with named(kind, name):
        reason = loading.misfit(kind, found)
    if reason:
        raise UsageError(loading.cannot_load(kind, name, path, reason))
    return found


def made(kind: Kind, name: str, *arguments: object) -> Any:
    """Make a sink or an executor of what its name stands for.

    Raises:
        UnknownNameError: the name is not registered.
        UsageError: it can't be imported, or what it makes is nothing of the kind.
        DynamometerError: making one of a plugin failed.
    """
    make = resolve(kind, name)
    with named(kind, name):
        found = make(*arguments)
        reason = loading.lacking(found, loading.ASKED_OF_MADE[kind])
    if reason:
        raise UsageError(loading.cannot_load(kind, name, target(kind, name), reason))
    return found


@contextmanager
def named(kind: Kind, name: str, *says_itself: type[Exception]) -> Iterator[None]:
    """Say of an error in a plugin's code that it came from there.

    Args:
        kind: of what the plugin brings.
        name: of it.
        says_itself: errors whose text is meant for whoever runs it.

    Raises:
        DynamometerError: something of a plugin failed; says what, and in which line.
    """
    say: tuple[type[Exception], ...] = (DynamometerError, StoreError, OSError, *says_itself)
    try:
        yield
    except say:  # themselves what is wrong
        raise
    except (Exception, SystemExit) as error:
        if is_built_in(kind, name):
            raise
        raise DynamometerError(fault(kind, name, error)) from error


def fault(kind: Kind, name: str, error: BaseException) -> str:
    """Say of an error in a plugin's code what it came from, and from which line."""
    import traceback  # which nothing else needs

    origin = loading.origin(kind, name, target(kind, name))
    what = f"the {loading.singular(kind)} {name!r} of {origin} failed"
    if isinstance(error, DynamometerError | StoreError):
        return f"{what}: {error}"
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{what} with {type(error).__name__}: {error} ({place.filename}:{place.lineno})"


def blame(kind: Kind, name: str, reason: str) -> NoReturn:
    """Say of what a plugin gives that it is not what it must be.

    Raises:
        DynamometerError: always.
    """
    raise DynamometerError(fault(kind, name, DynamometerError(reason)))


def loadable(kind: Kind) -> dict[str, Any]:
    """Import all of a kind; what of plugins has a fault is left out, which is told once."""
    _tell_of_what_has_no_name(kind)
    found = {}
    for name, path in targets(kind).items():
        if (kind, name, path) in _left_out:
            continue
        try:
            found[name] = resolve(kind, name)
        except Exception as error:  # noqa: BLE001  a plugin may raise anything
            leave_out(kind, name, why_not(kind, name, error))
    return found


def why_not(kind: Kind, name: str, error: Exception) -> str:
    """Return why what a plugin brings can't be used, given what loading or asking it raised.

    Raises:
        Exception: it is one of ours, whose errors are ours.
    """
    if is_built_in(kind, name):
        raise error
    return str(error) if isinstance(error, DynamometerError) else fault(kind, name, error)


def leave_out(kind: Kind, name: str, reason: str) -> None:
    """Do without what a plugin brings, and say why, once."""
    _left_out.add((kind, name, targets(kind)[name]))
    _tell_once(reason)


def _tell_of_what_has_no_name(kind: Kind) -> None:
    """Say of what plugins bring and nobody can ask for."""
    for text in plugins.unread():
        _tell_once(text)
    for each in plugins.registered(kind):
        if _BUILT_IN[kind].get(each.name, each.place) != each.place:
            what = f"{loading.singular(kind)} {each.name!r} of {each.origin}"
            _tell_once(f"{what}: Dynamometer has its own {each.name}")


def _tell_once(reason: str) -> None:
    if reason not in _told:
        _told.add(reason)
        tell(f"left out: {reason}")


_left_out: set[tuple[Kind, str, str]] = set()
"""What of plugins this process does without: kind, name and place."""

_told: set[str] = set()
"""Why, as far as that has been said."""


DEFAULT_STUDY = "speedup"
"""What a run asks unless it is asked something else."""

DEFAULT_EXECUTOR = "local"
"""What runs cases unless another is named."""

DEFAULT_SINKS = ("console", "csv", "report")
"""What every run's results are put into."""

DEFAULT_SUITE = "torchbench"
"""Whose models are meant where no suite is named."""

CORPUS = "corpus"
"""The suite of captured graphs, which `--tune` decides on."""


def studies() -> list[Study]:
    """Return all studies, in the order in which the help shows their options."""
    return [*loadable("studies").values()]


def study(name: str) -> Study:
    """Return the study of a name.

    Raises:
        UnknownNameError: there is none; the plugin that brings it isn't installed.
        UsageError: it can't be imported.
    """
    found: Study = resolve("studies", name)
    return found


def suites() -> list[SuiteSource]:
    """Return what all suites are opened by."""
    return [*loadable("suites").values()]


def suite(name: str) -> SuiteSource:
    """Return what the suite of a name is opened by.

    Raises:
        UnknownNameError: there is none; the plugin that brings it isn't installed.
        UsageError: it can't be imported.
    """
    found: SuiteSource = resolve("suites", name)
    if is_built_in("suites", name):
        return found
    watched: Any = loading.WatchedSource(
        found, partial(named, "suites", name), partial(blame, "suites", name)
    )
    return watched  # type: ignore[no-any-return]  # it has all that the source has


def suite_of(text: str) -> str | None:
    """Return the name of the suite of which a text, such as a file, names models; `None` if none.

    Of the name of a suite of ours that suite alone is asked: a folder of that name may be what it
    runs. One that is given what it runs besides its name isn't, nor is a plugin's.
    """
    if text not in targets("suites"):
        known = loadable("suites")
    elif is_built_in("suites", text) and not suite(text).takes_target:
        known = {text: suite(text)}
    else:
        return None
    for name, source in known.items():
        try:
            found: object = source.target(text)
            if isinstance(found, str):
                return name
            if found is not None:
                msg = f"its target gives {type(found).__name__}, which is no text"
                raise DynamometerError(msg)  # noqa: TRY301  as whatever else is wrong
        except (Exception, SystemExit) as error:
            if is_built_in("suites", name):
                raise
            leave_out("suites", name, fault("suites", name, error))
    return None


def suite_named(text: str) -> str:
    """Return a text that is the name of a suite.

    Raises:
        UnknownNameError: it is none; says which come near.
        UsageError: it is a path, at which nothing can be run, or that of a file without its ending.
    """
    try:
        target("suites", text)
    except UsageError as error:
        file, colons, name = text.partition("::")
        if os.path.isfile(f"{file}.py"):  # noqa: PTH113  so is no name that is too long
            msg = f"{text!r} is no suite; did you mean the file {file}.py{colons}{name}?"
            raise UsageError(msg) from error
        is_unknown = isinstance(error, UnknownNameError)
        if not is_unknown or ("/" not in text and not os.path.exists(text)):  # noqa: PTH110  likewise
            raise
        msg = (
            f"{text!r} is neither a suite nor a path of what can be run: a FILE.py, a program.pt2,"
            " a corpus of graphs, or a folder or file with TESTCASES"
        )
        raise UsageError(msg) from error
    return text
