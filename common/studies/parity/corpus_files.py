"""A corpus of the classes that arguments were found for, as files that a later run reads."""

from __future__ import annotations

import ast
import keyword
import re
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.store.reading import BAD_PYTHON
from dynamometer.results.values.parity import CorpusEntry, Parity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Record

FOLDER = "corpus"
_HEAD = '''"""Modules of {project}, with arguments that were found for them."""

import sys

import torch
from torch import nn

from _paritybench_helpers import _mock_config

{roots}{imports}

TESTCASES = [
    # (nn.Module, init_args, forward_args)
{entries}
]
'''


class CorpusFiles:
    """Writes `corpus/test_<project>.py` where a run found arguments for classes."""

    def __init__(self, directory: Path) -> None:
        """Write nothing yet.

        Args:
            directory: of the run, in which the corpus gets a folder.
        """
        self._folder = directory / FOLDER
        self._found: list[CorpusEntry] = []
        self._written: list[Path] = []

    def write(self, records: Sequence[Record]) -> None:
        """Take the arguments of a case, if it has any."""
        found = msgspec.json.decode(records[-1].found, type=Parity | None)
        if found is not None and found.entry is not None:
            sound = _sound(found.entry, records[-1].case)
            self._found += [] if sound is None else [sound]

    def close(self) -> None:
        """Write the files."""
        files = texts(self._found)
        if files:
            self._folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (self._folder / name).write_text(text, encoding="utf-8")
        self._written = [self._folder / name for name in files]

    @property
    def paths(self) -> Sequence[Path]:
        """The files written so far."""
        return tuple(self._written)


def _sound(entry: CorpusEntry, case: Case) -> CorpusEntry | None:
    """Return an entry with its arguments as Python writes them, if it is one of a case's class.

    A worker that runs any code says it, and what is no Python would cost all of its file.
    """
    names = (*entry.module.split("."), entry.class_name)
    project = f"{_project(entry)}."[:_TOLD]
    if not case.model.startswith(project) or not all(map(_is_name, names)):
        return None
    try:
        found = [ast.parse(each, mode="eval") for each in (entry.init_args, entry.forward_args)]
    except BAD_PYTHON:
        return None
    if not all(isinstance(each.body, ast.Tuple) and len(each.body.elts) == 2 for each in found):  # noqa: PLR2004  a list and a dictionary
        return None
    init_args, forward_args = map(ast.unparse, found)
    return msgspec.structs.replace(entry, init_args=init_args, forward_args=forward_args)


_TOLD = 30
"""Characters of a project that are in the name of each case of it, however long that is."""


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def texts(found: Iterable[CorpusEntry]) -> dict[str, str]:
    """Return a file for each project, which names where the project is imported from.

    Projects of one name are in files of their own, and so are classes of one name.

    Returns:
        Texts by the files' names.
    """
    files: defaultdict[str, list[CorpusEntry]] = defaultdict(list)
    for each in sorted(found, key=lambda one: (one.module, one.class_name, one.root or "")):
        project = _project(each)
        name, number = project, 1
        while not all(_fits(each, one) for one in files[name]):
            number += 1
            name = f"{project}_{number}"
        files[name].append(each)
    return {f"test_{name}.py": _text(name, own) for name, own in files.items()}


def _project(entry: CorpusEntry) -> str:
    return re.sub(r"\W", "_", entry.project or entry.module.partition(".")[0])


def _fits(entry: CorpusEntry, other: CorpusEntry) -> bool:
    """Return whether both may be in one file, which imports each by its name."""
    same = _project(entry) == _project(other) and entry.root == other.root
    return same and entry.class_name != other.class_name


def _text(project: str, found: Sequence[CorpusEntry]) -> str:
    roots = dict.fromkeys(each.root for each in found if each.root is not None)
    folders = dict.fromkeys(each.beside for each in found if each.beside is not None)
    paths = "".join(
        [f"sys.path.insert(0, {root!r})\n" for root in roots]
        + [f"sys.path.append({folder!r})\n" for folder in folders]
    )
    imports = "\n".join(f"from {each.module} import {each.class_name}" for each in found)
    entries = "\n".join(
        f"    ({each.class_name},\n     lambda: {each.init_args},\n"
        f"     lambda: {each.forward_args}),"
        for each in found
    )
    return _HEAD.format(
        project=project, roots=f"{paths}\n" if paths else "", imports=imports, entries=entries
    )
