"""The worker's half: importing a file of a corpus, and making the module of a test case."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from torch import nn

from dynamometer.common.interfaces.outcome import SkippedError
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.torchvision_schemas import define_missing_schemas
from dynamometer.models.parity.offered import AbsentModule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from types import ModuleType

    from dynamometer.models.parity.corpus import CorpusCase

_MODULE = "_corpus_file"
_OFFERED = "_paritybench_helpers"
_BOARD, _BOARD_OF_TORCH = "tensorboard", "torch.utils.tensorboard"
_USUAL = (
    "PIL", "cv2", "einops", "matplotlib", "numpy", "pandas", "scipy", "scipy.ndimage",
    "scipy.optimize", "scipy.stats", "sklearn", "torchaudio", "torchvision", "tqdm",
    "unittest.mock", "yaml",
)  # fmt: skip
"""What the head of nearly every file of the published corpus imports."""


def preload() -> None:
    """Import, once for all workers, what files of a corpus usually import."""
    define_missing_schemas()
    for name in _USUAL:
        with suppress(ImportError):
            importlib.import_module(name)


def load(case: CorpusCase) -> LoadedModel:
    """Make the module of a test case, with the inputs of its forward.

    Raises:
        LookupError: the file's list has another entry there by now.
        SkippedError: the class has no forward, so there is nothing to capture.
        Exception: whatever the file, the class or its functions raise.
    """
    with _absent_packages(case.file) as finder:
        module = import_file(case.file)
        finder.is_importing = False
        entries = module.TESTCASES
        if case.index >= len(entries) or entries[case.index][0].__name__ != case.class_name:
            msg = f"{case.file.name} holds no test case {case.index} of {case.class_name} any more"
            raise LookupError(msg)
        kind, init_args, forward_args = entries[case.index][:3]
        if kind.forward is nn.Module.forward:
            msg = f"{case.class_name} has no forward"
            raise SkippedError(msg)
        args, kwargs = init_args()
        made = kind(*args, **kwargs)
        inputs, keyword_inputs = forward_args()
    return LoadedModel(
        module=made,
        args=tuple(inputs),
        kwargs=dict(keyword_inputs),
        notes=tuple(f"the package {name} is not installed" for name in sorted(finder.found)),
    )


def import_file(file: Path) -> ModuleType:
    """Run a file as a module of its own, which classes can be pickled and copied by.

    Raises:
        ImportError: it is no Python file.
        Exception: whatever it raises.
    """
    with suppress(ImportError):
        importlib.import_module(_OFFERED)  # of a checkout that is on the path
    if _OFFERED not in sys.modules:
        sys.modules[_OFFERED] = importlib.import_module(AbsentModule.__module__)
    spec = importlib.util.spec_from_file_location(_MODULE, file)
    if spec is None or spec.loader is None:
        msg = f"{file} is no Python file"
        raise ImportError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    spec.loader.exec_module(module)
    return module


@contextmanager
def _absent_packages(file: Path) -> Iterator[_StandInFinder]:
    """Let a file import packages that are not installed.

    Every file of the published corpus begins by importing some twenty packages, of which few of its
    modules use one. Whatever is used of an absent one fails then, by name.
    """
    finder = _StandInFinder(str(file))
    sys.meta_path.append(finder)
    if importlib.util.find_spec(_BOARD) is None:  # which part of torch asks for, not the file
        sys.modules[_BOARD_OF_TORCH] = AbsentModule(_BOARD, lambda: finder.is_importing)
    try:
        yield finder
    finally:
        sys.meta_path.remove(finder)


class _StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what nothing else has found, where the file itself asks for it.

    Packages that look whether another one is there must be told the truth.

    Attributes:
        found: the packages that were asked for.
        is_importing: whether the file is still being imported.
    """

    def __init__(self, file: str) -> None:
        """Find for a file alone."""
        self._file = file
        self.found: set[str] = set()
        self.is_importing = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a stand-in's spec, where the file asks, or where it is part of a stand-in."""
        del path, target
        package = fullname.partition(".")[0]
        if package not in self.found:
            if "." in fullname or self._asking() != self._file:
                return None
            self.found.add(package)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Make a stand-in."""
        return AbsentModule(spec.name, lambda: self.is_importing)

    def exec_module(self, module: ModuleType) -> None:
        """Leave it as it is."""

    def _asking(self) -> str:
        """Return the file whose code imports something: the innermost that is not importlib's."""
        frame: Any = sys._getframe(2)  # noqa: SLF001  inspect's is the same, and slower
        while frame is not None and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        return "" if frame is None else str(frame.f_code.co_filename)
