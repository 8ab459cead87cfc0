"""Which files of a file's own folder are run with it, by what their text says they import."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import TYPE_CHECKING

from dynamometer.results.store.reading import file_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def with_neighbours(file: Path) -> tuple[Path, ...]:
    """Return a file, and all that it and its neighbours import of its folder, sorted."""
    found = {file}
    waiting = [file]
    while waiting:
        path = waiting.pop()
        new = set(_imported(path, file.parent)) - found
        found |= new
        waiting += new
    return tuple(sorted(found))


def _imported(path: Path, folder: Path) -> Iterator[Path]:
    tree = ast.Module(body=[], type_ignores=[])
    with suppress(OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        tree = ast.parse(file_bytes(path))
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for each in names:
                    yield from _files(folder, each.name.split("."))
            case ast.ImportFrom(module=module, names=names, level=level):
                start = path.parents[level - 1] if level else folder
                words = module.split(".") if module else []
                for each in names:
                    yield from _files(start, [*words, each.name])


def _files(folder: Path, words: list[str]) -> Iterator[Path]:
    """Yield the files that importing a dotted name runs, as far as they are in a folder."""
    for number in range(1, len(words) + 1):
        inside = folder.joinpath(*words[:number])
        for each in (inside / "__init__.py", inside.with_name(f"{inside.name}.py")):
            if each.is_file():
                yield each
