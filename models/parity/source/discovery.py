"""Which classes of a project or package are modules, read from its text; nothing is imported.

A class is one if `torch.nn.Module` is among its bases and theirs. Where only importing a base
tells, as of a package that isn't there, the class is taken for one until a worker imports it. What
is there and can't be imported stands among the classes, with what is wrong with it.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.models.parity.source.bases import Bases, Kind, Place
from dynamometer.models.parity.source.files import files_of, home_of
from dynamometer.results.store.bounds import encodable, model_name
from dynamometer.results.values.parity import NOT_IMPORTED, NOT_READ

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from dynamometer.models.parity.source.files import SourceFile

_NO_CLASS = "CLASSES"
"""In the place of a class' name, where a file can't be read."""
_MOST_FOLDERS = 3
"""In the name of a project, which is one of a file as well."""


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
        project: that it is of; if that isn't said, the first part of its module's name.
    """

    module: str
    class_name: str
    root: str | None
    beside: str | None = None
    file: str = ""
    fault: str | None = None
    project: str = ""

    @property
    def name(self) -> str:
        """What it is selected by, unless another has the same name: its project comes first."""
        is_first = self.module.split(".")[0] == self.project
        return self.name_with("" if is_first else self.project)

    def name_with(self, first: str) -> str:
        """Return its name behind another part."""
        return ".".join(filter(None, (first, self.module, self.class_name)))


def found_classes(targets: Iterable[str]) -> dict[str, FoundClass]:
    """Return the modules of projects, by their names.

    The first part of a name is its project. Where two of a project have one name, each is named by
    the folder as well that it is imported from.

    Args:
        targets: folders or files of Python, or names of installed packages or parts of them.

    Raises:
        ValueError: one is neither, or holds no module; says what to do.
    """
    bases, asked = Bases(), tuple(targets)
    projects = _projects(asked)
    found: dict[tuple[str, str, str | None], FoundClass] = {}
    for target in asked:
        own = [
            each for file in files_of(target) for each in _classes_of(file, projects[target], bases)
        ]
        if all(each.class_name == _NO_CLASS for each in own):
            msg = f"{target} holds no class of nn.Module: name a package or a folder of code"
            faults = [f"{each.file}: {each.fault}" for each in own]
            raise ValueError("; ".join([msg, *faults[:1]]))
        for each in own:
            found.setdefault((each.module, each.class_name, each.root), each)
    return _named(found.values())


def _projects(targets: Collection[str]) -> dict[str, str]:
    """Name what each target is of, differently: the package, or its folder or file.

    Where two have one name, so many of the folders above stand before it as tell them apart, or a
    number behind it.
    """
    homes = {target: home_of(target) for target in targets}
    own = list(dict.fromkeys(home for home in homes.values() if home is not None))
    named: dict[Path | None, str] = {}
    taken = {target.split(".")[0] for target, home in homes.items() if home is None}
    for home in own:
        others = [each for each in own if each != home]
        names = [
            name for length in range(1, _MOST_FOLDERS + 1)
            if (name := _last_folders(home, length))
            not in {_last_folders(each, length) for each in others}
        ]  # fmt: skip
        numbered = (f"{_last_folders(home, 1)}_{number}" for number in itertools.count(2))
        every = itertools.chain(names, numbered)
        named[home] = next(name for name in every if name not in taken)
        taken.add(named[home])
    return {
        target: target.split(".")[0] if home is None else named[home]
        for target, home in homes.items()
    }


def _last_folders(home: Path, length: int) -> str:
    """Return the last parts of a path as one word."""
    path = home.with_suffix("") if home.is_file() else home
    return re.sub(r"\W", "_", "_".join(path.parts[-length:])) or "project"


def _classes_of(file: SourceFile, project: str, bases: Bases) -> Iterator[FoundClass]:
    """Return the classes of a project's file that may be modules."""
    place = Place(file.path, file.folders)
    scope = bases.scope(file.path)
    if isinstance(scope, str):
        yield _found(file, project, _NO_CLASS, f"{NOT_READ}: {scope}")
        return
    for name, definitions in scope.classes.items():
        if max(bases.kind_of(each, place) for each in definitions) > Kind.PLAIN:
            yield _found(
                file, project, name, f"{NOT_IMPORTED}: {file.fault}" if file.fault else None
            )
    for name, definition in scope.inner.items():
        if bases.kind_of(definition, place) is Kind.MODULE:
            outer = name.rpartition(".")[0]
            yield _found(file, project, name, f"{NOT_IMPORTED}: it is defined within {outer}")


def _found(file: SourceFile, project: str, name: str, fault: str | None) -> FoundClass:
    root, beside = (
        None if each is None else encodable(str(each)) for each in (file.root, file.beside)
    )
    reason = None if fault is None else encodable(fault)
    module, path = encodable(file.module), encodable(str(file.path))
    return FoundClass(module, name, root, beside, path, reason, project)


def _named(found: Iterable[FoundClass]) -> dict[str, FoundClass]:
    """Name each class, differently from all others."""
    alike: defaultdict[str, list[FoundClass]] = defaultdict(list)
    for each in found:
        alike[model_name(each.name)].append(each)
    named = {name: own[0] for name, own in alike.items() if len(own) == 1}
    for name, own in alike.items():
        if len(own) > 1:
            named |= _apart(name, own, named)
    return named


def _apart(name: str, own: Sequence[FoundClass], taken: Collection[str]) -> dict[str, FoundClass]:
    """Name classes of one project and name by as many of their folders as it takes, or numbers."""
    for length in range(1, max(len(Path(each.root or "").parts) for each in own) + 1):
        names = {
            model_name(f"{each.project}.{each.name_with(_folders(each, length))}"): each
            for each in own
        }
        if len(names) == len(own) and not any(each in taken for each in names):
            return names
    return {model_name(f"{name}.{number}"): each for number, each in enumerate(own, start=1)}


def _folders(found: FoundClass, length: int) -> str:
    """Return the last folders that a class is imported from, as a part of a name."""
    parts = Path(found.root or "").parts[-length:]
    return ".".join(re.sub(r"[^\w-]", "_", part) for part in parts)
