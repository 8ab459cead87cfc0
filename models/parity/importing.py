"""The worker's half: importing a file of a corpus, and making the module of a test case."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from torch import nn

from dynamometer.common.interfaces.outcome import SkippedError
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.torchvision_schemas import define_missing_schemas
from dynamometer.models.parity.absent import absent_as_stand_ins
from dynamometer.models.parity.compiling import MODULE, code_of
from dynamometer.models.parity.offered import patch_functional
from dynamometer.models.parity.roots import forget_others, roots_of
from dynamometer.results.values.parity import FORM, NO_TEST_CASE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path
    from types import ModuleType

    from dynamometer.models.parity.corpus import CorpusCase

_OFFERED = "_paritybench_helpers"
_USUAL = (
    "PIL", "cv2", "einops", "matplotlib", "numpy", "pandas", "scipy", "scipy.io", "scipy.ndimage",
    "scipy.optimize", "scipy.signal", "scipy.stats", "sklearn", "torch.utils.cpp_extension",
    "torchaudio", "torchvision", "tqdm", "unittest.mock", "yaml",
)  # fmt: skip
"""What the head of nearly every file of the published corpus imports."""
_LEAST = 3
_UNLISTED = (
    "TESTCASES of {case.file.name} has {count} entries once the file is run, and {case.listed} in"
    " its text: only these are test cases"
)


def preload(others: Collection[str] = ()) -> None:
    """Import, once for all workers, what files of a corpus usually import.

    Args:
        others: packages that some of the files take from elsewhere.
    """
    define_missing_schemas()
    for name in _USUAL:
        if name.partition(".")[0] not in others:
            with suppress(Exception, SystemExit):  # who needs what is broken says so
                importlib.import_module(name)


def load(case: CorpusCase) -> LoadedModel:
    """Make the module of a test case, with the inputs of its forward.

    Raises:
        LookupError: the file's list has another entry there by now.
        SkippedError: the entry is no test case; or the class has no forward, so there is nothing to
            capture.
        Exception: whatever the file, the class or its functions raise.
    """
    with absent_as_stand_ins(MODULE) as imports:
        module = import_file(case.file)
        imports.is_importing = False
        entries = module.TESTCASES
        entry = _entry_of(case, entries, getattr(module, case.class_name, None))
        if len(entry) < _LEAST:
            raise _refused(case, "it has fewer parts")
        kind, init_args, forward_args = entry[:_LEAST]
        if not (isinstance(kind, type) and hasattr(kind, "forward")):
            raise _refused(case, f"{case.class_name} is no class of nn.Module")
        if kind.forward is nn.Module.forward:
            msg = f"{case.class_name} has no forward"
            raise SkippedError(msg)
        if case.listed not in {None, len(entries)}:
            imports.notes.add(_UNLISTED.format(case=case, count=len(entries)))
        args, kwargs = _arguments(case, "init_args", init_args)
        made = kind(*args, **kwargs)
        inputs, keyword_inputs = _arguments(case, "forward_args", forward_args)
    return LoadedModel(
        module=made,
        args=tuple(inputs),
        kwargs=dict(keyword_inputs),
        notes=tuple(sorted(imports.notes)),
    )


def _entry_of(case: CorpusCase, entries: Iterable[Any], named: object) -> Sequence[Any]:
    """Return the entry that a test case was read from, wherever the file has put it by now.

    Raises:
        LookupError: there is none, or several may be meant.
    """
    found = {
        index: each
        for index, each in enumerate(entries)
        if isinstance(each, (tuple, list)) and each and each[0] is named
        if case.line in {None, _line_of(each)}
    }
    if case.index in found:
        return found[case.index]
    if case.line is not None and len(found) == 1:
        return next(iter(found.values()))
    msg = f"{case.file.name} holds no test case {case.index} of {case.class_name} any more"
    raise LookupError(msg)


def _line_of(entry: Sequence[Any]) -> int | None:
    code = getattr(entry[1], "__code__", None) if len(entry) > 1 else None
    return getattr(code, "co_firstlineno", None)


def _arguments(case: CorpusCase, name: str, function: Any) -> tuple[Iterable[Any], Any]:
    """Call a function of a test case, which gives positional and keyword arguments.

    Raises:
        SkippedError: it is no function, or gives something else.
        Exception: whatever it raises.
    """
    if not callable(function):
        raise _refused(case, f"its {name} is no function")
    match function():
        case (tuple() | list() as args, Mapping() as kwargs):
            return args, kwargs
    raise _refused(case, f"its {name} doesn't return a list and a dictionary")


def _refused(case: CorpusCase, why: str) -> SkippedError:
    place = f"{case.file}, entry {case.index + 1} of TESTCASES"
    return SkippedError(f"{NO_TEST_CASE}: {place}: {why}; {FORM}")


def import_file(file: Path) -> ModuleType:
    """Run a file as a module of its own, which classes can be pickled and copied by.

    It finds itself alone on the command line, and modules in the folders that it names, whatever
    else is loaded.

    Raises:
        ImportError: it is no Python file.
        Exception: whatever it raises.
    """
    with suppress(ImportError):
        importlib.import_module(_OFFERED)  # of a checkout that is on the path
    if _OFFERED not in sys.modules:
        sys.modules[_OFFERED] = sys.modules[patch_functional.__module__]
    spec = importlib.util.spec_from_file_location(MODULE, file)
    if spec is None:
        msg = f"{file} is no Python file"
        raise ImportError(msg)
    sys.argv[:] = [str(file)]
    for root in roots_of(file):
        forget_others(root)
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    exec(code_of(file), vars(module))  # noqa: S102  as an import does
    return module
