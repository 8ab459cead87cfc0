"""What a file of a corpus imports that isn't there: a package, a module or a name of one.

Every file of the published corpus begins by importing some twenty packages, of which few of its
modules use one, by names that some packages have dropped since. A stand-in takes the place of each,
for that file alone, and fails where it is used, by name.
"""

from __future__ import annotations

import builtins
import collections.abc
import importlib.util
import linecache
import math
import re
import sys
from abc import ABCMeta
from contextlib import contextmanager, suppress
from itertools import takewhile
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_ELSEWHERE: dict[str, Mapping[str, Any]] = {
    "collections": vars(collections.abc),
    "torch._six": {
        "container_abcs": collections.abc,
        "inf": math.inf,
        "int_classes": int,
        "nan": math.nan,
        "string_classes": (str, bytes),
    },
}
"""What modules have held, as Python 3.9 and torch 1.13 had it."""
_OLDEST = "0.0.0"
"""The version of what isn't there: a file that asks for one does what it does for the oldest."""
_TRY = re.compile(r"try\s*:")
_SUPPRESSED = re.compile(
    r"with\b.*\bsuppress\(.*\b(ImportError|ModuleNotFoundError|(Base)?Exception)\b"
)
_EXCEPT = re.compile(r"\s*except\b")
_HANDLER = re.compile(r"\s*except\s*(:|.*\b(ImportError|ModuleNotFoundError|(Base)?Exception)\b)")
_BESIDE = "a file of a corpus has no modules beside it"


class AbsentKind(ABCMeta):
    """The kind of what is absent: it has any attribute, and nothing works.

    It is an abstract class', too, so that a class may be derived from both.
    """

    def __getattr__(cls, name: str) -> Any:
        """Return a stand-in for an attribute.

        Raises:
            AttributeError: it is one that Python itself looks for.
        """
        return cls.imports.attribute(cls.stands_for, name, cls.why)

    @property
    def register(cls) -> Any:
        """Return a stand-in as for any attribute: an abstract class has one of this name."""
        return cls.imports.attribute(cls.stands_for, "register", cls.why)

    def __call__(cls, *args: Any, **options: Any) -> Any:
        """Refuse to be called, but while its file is imported: then it decorates, or gives another.

        Raises:
            ModuleNotFoundError: says what is needed, and why it isn't there.
        """
        cls.refuse()
        if len(args) == 1 and callable(args[0]) and not options:
            cls.imports.notes.add(f"what {cls.stands_for} decorates is measured without it")
            return args[0]
        return cls.imports.absent(f"{cls.stands_for}()", cls.why)

    def __getitem__(cls, key: object) -> Any:
        """Refuse to be looked up in, but while its file is imported: as `__call__`."""
        cls.refuse()
        return cls.imports.absent(f"{cls.stands_for}[{key!r}]", cls.why)

    def __iter__(cls) -> Iterator[Any]:
        """Refuse to be gone through, but while its file is imported, when it is empty."""
        cls.refuse()
        return iter(())

    def __bool__(cls) -> bool:
        """Be false while its file is imported, as what says whether there is something."""
        cls.refuse()
        return False

    def refuse(cls) -> None:
        """Do nothing while its file is imported."""
        if not cls.imports.is_importing:
            msg = f"{cls.stands_for} is needed, and {cls.why}"
            raise ModuleNotFoundError(msg, name=cls.stands_for.partition(".")[0])


class AbsentModule(ModuleType):
    """In the place of a module, or of what one holds, to import from."""

    def __init__(self, name: str, why: str, imports: Imports, held: Mapping[str, Any]) -> None:
        """Stand in for a module.

        Args:
            name: of the module.
            why: it isn't there.
            imports: make what is asked of it.
            held: what there is of it.
        """
        super().__init__(name)
        # No name of these may be one that a file imports.
        vars(self).update(__absent__=(why, imports, held), __all__=[])

    def __getattr__(self, name: str) -> Any:
        """Return what there is, or a stand-in: it can be named, derived from, asked for attributes.

        Raises:
            AttributeError: it is one that Python itself looks for.
        """
        why, imports, held = vars(self)["__absent__"]
        return held[name] if name in held else imports.attribute(self.__name__, name, why)


class Imports:
    """Stands in for `builtins.__import__`, as one module sees it; all others see the real one.

    Packages that look whether another one is there must be told the truth.

    Attributes:
        notes: what was asked for and isn't there.
        is_importing: whether the module is still being imported.
    """

    def __init__(self, asking: str, real: Callable[..., ModuleType]) -> None:
        """Stand in for nothing yet.

        Args:
            asking: the name of the module.
            real: Python's own function.
        """
        self._asking = asking
        self._real = real
        self.notes: set[str] = set()
        self.is_importing = True

    def __call__(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002  Python's own name
        locals: Mapping[str, object] | None = None,  # noqa: A002  Python's own name
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import as Python does, with stand-ins for what can't be imported."""
        if not self.is_importing or not self._is_asked(globals):
            return self._real(name, globals, locals, fromlist, level)
        if level:
            self.notes.add(_BESIDE)
            return AbsentModule(name or "a module beside it", _BESIDE, self, {})
        frame = sys._getframe(1)  # noqa: SLF001  inspect's is the same, and slower
        if _is_tried(frame.f_code.co_filename, frame.f_lineno):
            return self._real(name, globals, locals, fromlist, level)
        names = [each for each in fromlist or () if each != "*"]
        try:
            found = self._real(name, globals, locals, fromlist, level)
        except ImportError as error:
            why = self._why(name, error)
            return self._some_of(name, names, why) if fromlist else self._first_of(name, why)
        if all(hasattr(found, each) for each in names):
            return found
        return self._some_of(name, names, "")

    def _is_asked(self, globals_: Mapping[str, object] | None) -> bool:
        return globals_ is not None and globals_.get("__name__") == self._asking

    def absent(self, stands_for: str, why: str) -> AbsentKind:
        """Return a stand-in, from which classes can be derived."""
        held = {"stands_for": stands_for, "why": why, "imports": self}
        return AbsentKind(stands_for.rpartition(".")[2], (), held)

    def attribute(self, of: str, name: str, why: str) -> Any:
        """Return a stand-in for an attribute of what isn't there; its version is the oldest.

        Raises:
            AttributeError: it is one that Python itself looks for.
        """
        if name == "__version__":
            return _OLDEST
        if name.startswith("__"):
            raise AttributeError(name)
        return self.absent(f"{of}.{name}", why)

    def _some_of(self, name: str, names: Sequence[str], why: str) -> AbsentModule:
        """Return what some names are taken from, of which a module lacks one, or all."""
        held = dict(_ELSEWHERE.get(name, {}))
        for each in names:
            with suppress(ImportError, AttributeError):
                held[each] = getattr(self._real(name, None, None, (each,)), each)
        lacking = [each for each in names if each not in held]
        if lacking and not why:
            why = f"{name} has no {', '.join(lacking)}"
        if lacking or not names:
            self.notes.add(why)
        return AbsentModule(name, why, self, held)

    def _first_of(self, name: str, why: str) -> ModuleType:
        """Return what `import a.b.c` binds, which is `a`.

        Where that is there, the first part that isn't is set in the module before it.
        """
        self.notes.add(why)
        parts = name.split(".")
        known, found = self._known(parts)
        if found is None:
            return AbsentModule(parts[0], why, self, {})
        there = getattr(found, parts[known], None)
        if there is not None and not isinstance(there, AbsentModule):  # it is nobody's to replace
            raise ImportError(why, name=name)
        missing = ".".join(parts[: known + 1])
        held = _ELSEWHERE.get(missing, {})
        setattr(found, parts[known], AbsentModule(missing, why, self, held))
        return sys.modules[parts[0]]

    def _known(self, parts: Sequence[str]) -> tuple[int, ModuleType | None]:
        """Return how many parts of a dotted name can be imported, and the last of these."""
        for count in range(len(parts) - 1, 0, -1):
            with suppress(ImportError):
                return count, self._real(".".join(parts[:count]), None, None, ("",))
        return 0, None

    def _why(self, name: str, error: ImportError) -> str:
        package = name.partition(".")[0]
        if package not in sys.modules and importlib.util.find_spec(package) is None:
            return f"the package {package} is not installed"
        return f"{name} can't be imported: {error}"


def _is_tried(file: str, line: int) -> bool:
    """Return whether a line stands in a `try` that goes on after an ImportError, by its text."""
    lines = linecache.getlines(file)
    indent = _indent(linecache.getline(file, line)) + 1  # what it begins with may be on it, too
    for text in lines[line - 1 :: -1]:
        if _is_code(text) and _indent(text) < indent:
            indent = _indent(text)
            if _SUPPRESSED.match(text.lstrip()):
                return True
            if _TRY.match(text.lstrip()):
                after = (
                    each for each in lines[line:] if _is_code(each) and _indent(each) <= indent
                )
                if any(map(_HANDLER.match, takewhile(_EXCEPT.match, after))):
                    return True
            if not indent:  # nothing is further out, and a file may have thousands of lines before
                return False
    return False


def _is_code(line: str) -> bool:
    """Return whether a line is neither empty nor a comment, which may stand anywhere."""
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


@contextmanager
def absent_as_stand_ins(asking: str) -> Iterator[Imports]:
    """Let a module import what isn't there.

    Args:
        asking: its name.
    """
    real = builtins.__import__
    imports = Imports(asking, real)
    builtins.__import__ = imports
    try:
        yield imports
    finally:
        builtins.__import__ = real
