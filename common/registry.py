"""Names to implementations: built-ins and plugins alike are lazy `module:attribute` strings.

A plugin declares an entry point in the group `dynamometer.<kind>` (`suites`, `backends`,
`studies`, `executors`, `sinks`, `exports`). Nothing is imported before it is resolved, so listing
names never imports torch.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

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
    """Map every registered name of a kind to its `module:attribute`.

    Raises:
        UsageError: two distributions register the same name.
    """
    found = dict(_BUILT_IN[kind])
    if not _have_plugins(tuple(sys.path)):
        return found
    from importlib.metadata import entry_points  # takes a fifth of the start-up time

    for point in entry_points(group=f"dynamometer.{kind}"):
        known = found.setdefault(point.name, point.value)
        if known != point.value:
            msg = f"{kind} {point.name!r} is registered twice: {known} and {point.value}"
            raise UsageError(msg)
    return found


@cache
def _have_plugins(folders: tuple[str, ...]) -> bool:
    """Return whether a distribution in folders of the path declares entry points for us.

    Reads `entry_points.txt` where the standard puts it (packaging.python.org, entry points), so
    that nobody without a plugin waits for `importlib.metadata`.
    """
    for folder in folders:
        with suppress(OSError):
            names = os.listdir(folder or ".")  # noqa: PTH208  half of what Path.iterdir takes
            if any(_declares(f"{folder}/{name}") for name in names if name.endswith("-info")):
                return True
    return False


def _declares(distribution: str) -> bool:
    """Return whether one does, given its `*-info` folder."""
    with suppress(OSError), open(f"{distribution}/entry_points.txt", "rb") as file:  # noqa: PTH123  likewise
        return b"[dynamometer." in file.read()
    return False  # most have no entry points


def choices(kind: Kind) -> list[str]:
    """List the names a user can choose from, sorted; the baseline is never a choice.

    Raises:
        UsageError: two distributions register the same name.
    """
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
            of the module.
    """
    if name in _BUILT_IN[kind]:
        return _BUILT_IN[kind][name]
    module_name, colon, attribute = name.partition(":")
    if attribute and _is_file(module_name):
        raise UsageError(_cannot_load(kind, name, name, _of_file(kind, module_name, attribute)))
    if colon and module_name.strip(".") == module_name and module_name and attribute:
        package = module_name.partition(".")[0]
        if not _is_there(package):
            raise UsageError(_cannot_load(kind, name, name, _not_found(package)))
        return name
    known = targets(kind)
    if kind == "backends" and name not in known and _is_of_dynamo(name):
        return f"dynamometer.dynamo.backends.named:{name}"
    if name not in known:
        hint = "A callable of your own is given as module:attribute." if kind == "backends" else ""
        raise UnknownNameError(_singular(kind), name, set(known) - {BASELINE}, hint)
    return known[name]


def resolve(kind: Kind, name: str) -> Any:
    """Import what a name stands for.

    Raises:
        UnknownNameError: the name is not registered.
        UsageError: its module can't be imported, or lacks the attribute; or it is nothing of the
            kind.
    """
    path = target(kind, name)
    found = load(kind, name, path)
    if reason := _misfit(kind, found):
        raise UsageError(_cannot_load(kind, name, path, reason))
    return found


def _misfit(kind: Kind, found: object) -> str | None:
    """Return why something is nothing of a kind, as far as that shows before it is used.

    A worker says it of a backend: there it costs one arm.
    """
    its_type = type(found).__name__
    if kind not in _ASKED:
        is_fit = kind == "backends" or callable(found)
        return None if is_fit else f"its type is {its_type}, which can't be called"
    if isinstance(found, type):
        it, example = found.__name__, _singular(kind).upper()
        return f"{it} is a class: register an instance, such as {example} = {it}()"
    lacking = [each for each in _ASKED[kind] if not hasattr(found, each)]
    return f"its type is {its_type}, which lacks {', '.join(lacking)}" if lacking else None


_ASKED: dict[Kind, tuple[str, ...]] = {
    "suites": ("options", "target", "opening", "open"),
    "studies": ("asked_by", "options", "experiments", "experiment"),
}
"""Kinds that are asked something as they are, and what every run asks; the others are called."""


@contextmanager
def named(kind: Kind, name: str) -> Iterator[None]:
    """Say of an error in a plugin's code that it came from there.

    Raises:
        DynamometerError: something of a plugin failed; says what, and in which line.
    """
    try:
        yield
    except (DynamometerError, StoreError, OSError):  # these say themselves what is wrong
        raise
    except Exception as error:
        if is_built_in(kind, name):
            raise
        import traceback  # which nothing else needs

        place = traceback.extract_tb(error.__traceback__)[-1]
        msg = (
            f"the {_singular(kind)} {name!r} of {target(kind, name)} failed with"
            f" {type(error).__name__}: {error} ({place.filename}:{place.lineno})"
        )
        raise DynamometerError(msg) from error


DEFAULT_STUDY = "speedup"
"""What a run asks unless it is asked something else."""

DEFAULT_EXECUTOR = "local"
"""What runs cases unless another is named."""

DEFAULT_SINKS = ("console", "csv", "report")
"""What every run's results are put into."""

DEFAULT_SUITE = "torchbench"
"""Whose models are meant where no suite is named."""


def studies() -> list[Study]:
    """Return all studies, in the order in which the help shows their options.

    Raises:
        UsageError: one of a plugin can't be imported, or two have the same name.
    """
    return [resolve("studies", name) for name in targets("studies")]


def study(name: str) -> Study:
    """Return the study of a name.

    Raises:
        UnknownNameError: there is none; the plugin that brings it isn't installed.
        UsageError: it can't be imported.
    """
    found: Study = resolve("studies", name)
    return found


def suites() -> list[SuiteSource]:
    """Return what all suites are opened by.

    Raises:
        UsageError: one of a plugin can't be imported, or two have the same name.
    """
    return [resolve("suites", name) for name in targets("suites")]


def suite(name: str) -> SuiteSource:
    """Return what the suite of a name is opened by.

    Raises:
        UnknownNameError: there is none; the plugin that brings it isn't installed.
        UsageError: it can't be imported.
    """
    found: SuiteSource = resolve("suites", name)
    return found


def suite_of(text: str) -> str | None:
    """Return the name of the suite of which a text, such as a file, names models; `None` if none.

    Raises:
        UsageError: a suite of a plugin can't be imported.
    """
    return next((name for name in targets("suites") if suite(name).target(text) is not None), None)


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


def load(kind: str, name: str, path: str) -> Any:
    """Import `module:attribute`.

    Args:
        kind: of thing it is, for the message.
        name: what it is known by.
        path: where it is.

    Raises:
        UsageError: its module can't be imported, or lacks the attribute.
    """
    module_name, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(_cannot_load(kind, name, path, str(error))) from error
    except (Exception, SystemExit) as error:  # a plugin's module may do anything as it is imported
        reason = f"importing it raised {type(error).__name__}: {error}"
        raise UsageError(_cannot_load(kind, name, path, reason)) from error


def _cannot_load(kind: str, name: str, path: str, reason: str) -> str:
    source = "" if path == name else f" from {path}"
    return f"{_singular(kind)} {name!r} can't be loaded{source}: {reason}"


def _not_found(package: str) -> str:
    """Say what to do about a package that isn't there.

    The current folder isn't searched unasked: what a file of decisions or a plan names would be
    taken from whichever folder the command happens to run in.
    """
    reason = f"no module named {package!r}"
    if Path(f"{package}.py").is_file() or Path(package).is_dir():
        return f"{reason} where Python looks, but one in the current folder: set PYTHONPATH=."
    return f"{reason}; install it, or put its folder on PYTHONPATH"


def _is_there(package: str) -> bool:
    return package in sys.modules or importlib.util.find_spec(package) is not None


def _is_file(module_name: str) -> bool:
    """Return whether what is named as a module can only be a file."""
    if not module_name.endswith(".py"):
        return False
    package = module_name.partition(".")[0]
    return os.path.isfile(module_name) or not (package and _is_there(package))  # noqa: PTH113  so is no name that is too long


def _of_file(kind: str, file: str, attribute: str) -> str:
    """Say how a model of a file is named, or what else a module has."""
    name = attribute.lstrip(":")
    if kind == "suites":
        return f"did you mean {file}::{name}?"
    return f"{file} is a file: name its module, {Path(file).stem}:{name}"


def _singular(kind: str) -> str:
    return kind.removesuffix("ies") + "y" if kind.endswith("ies") else kind.removesuffix("s")
