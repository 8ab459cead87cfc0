"""Which classes of a project or package are modules, read from its text; nothing is imported.

A class is one if `torch.nn.Module` is among its bases and theirs. Where only importing a base
tells, as of a package that isn't there, the class is taken for one until a worker imports it. What
is there and can't be imported stands among the classes, with what is wrong with it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.models.parity.source.bases import Bases, Kind, Place
from dynamometer.models.parity.source.files import files_of
from dynamometer.results.values.parity import NOT_IMPORTED, NOT_READ

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from dynamometer.models.parity.source.files import SourceFile

_NO_CLASS = "CLASSES"
"""In the place of a class' name, where a file can't be read."""


@dataclass(frozen=True)
class FoundClass:
    """A class that seems to be a module.

    Attributes:
        module: that defines it, as it is imported.
        class_name: its name in there.
        root: folder to import from; `None` for what is installed.
        beside: a folder that its project may import from as well, as the last.
        file: that it is in.
        fault: why it can't be tried, or all classes of its file, for which it stands.
    """

    module: str
    class_name: str
    root: str | None
    beside: str | None = None
    file: str = ""
    fault: str | None = None

    @property
    def name(self) -> str:
        """What it is selected by, unless another has the same name."""
        return f"{self.module}.{self.class_name}"


def found_classes(targets: Iterable[str]) -> dict[str, FoundClass]:
    """Return the modules of projects, by their names.

    Where two have one name, each is named by the folder as well that it is imported from.

    Args:
        targets: folders or files of Python, or names of installed packages or parts of them.

    Raises:
        ValueError: one is neither, or holds no module; says what to do.
    """
    bases = Bases()
    found: list[FoundClass] = []
    for target in targets:
        own = [each for file in files_of(target) for each in _classes_of(file, bases)]
        if all(each.class_name == _NO_CLASS for each in own):
            msg = f"{target} holds no class of nn.Module: name a package or a folder of code"
            faults = [f"{each.file}: {each.fault}" for each in own]
            raise ValueError("; ".join([msg, *faults[:1]]))
        found += own
    return _named(found)


def _classes_of(file: SourceFile, bases: Bases) -> Iterator[FoundClass]:
    """Return the classes of a file that may be modules."""
    place = Place(file.path, file.folders)
    scope = bases.scope(file.path)
    if isinstance(scope, str):
        yield _found(file, _NO_CLASS, f"{NOT_READ}: {scope}")
        return
    for name, definitions in scope.classes.items():
        if max(bases.kind_of(each, place) for each in definitions) > Kind.PLAIN:
            yield _found(file, name, f"{NOT_IMPORTED}: {file.fault}" if file.fault else None)
    for name, definition in scope.inner.items():
        if bases.kind_of(definition, place) is Kind.MODULE:
            outer = name.rpartition(".")[0]
            yield _found(file, name, f"{NOT_IMPORTED}: it is defined within {outer}")


def _found(file: SourceFile, name: str, fault: str | None) -> FoundClass:
    root, beside = (None if each is None else str(each) for each in (file.root, file.beside))
    return FoundClass(file.module, name, root, beside, str(file.path), fault)


def _named(found: Iterable[FoundClass]) -> dict[str, FoundClass]:
    """Name each class, differently from all others; what is found twice is there once."""
    alike: defaultdict[str, dict[str | None, FoundClass]] = defaultdict(dict)
    for each in found:
        alike[each.name].setdefault(each.root, each)
    named = {name: each for name, own in alike.items() for each in own.values() if len(own) == 1}
    for name, own in alike.items():
        if len(own) > 1:
            named |= _apart(name, own, named)
    return named


def _apart(
    name: str, own: Mapping[str | None, FoundClass], taken: Collection[str]
) -> dict[str, FoundClass]:
    """Name classes of one name by as many folders before their roots as it takes, or numbers."""
    for length in range(1, max(len(Path(root or "").parts) for root in own) + 1):
        names = {_folders(root, length) + name: each for root, each in own.items()}
        if len(names) == len(own) and not any(each in taken for each in names):
            return names
    return {f"{name}.{number}": each for number, each in enumerate(own.values(), start=1)}


def _folders(root: str | None, length: int) -> str:
    """Return the last folders of a path, as the beginning of a name."""
    parts = Path(root or "").parts[-length:]
    return "".join(re.sub(r"[^\w-]", "_", part) + "." for part in parts)
