"""A corpus as one file, and the union of such a file with a corpus."""

from __future__ import annotations

import re
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.store.atomic_file import replacing
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.graphs.corpus import GRAPHS, MARKER, MODELS, SUFFIX, read_description
from dynamometer.results.values.graphs import RecordedModel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dynamometer.results.store.graphs.corpus import Corpus

_GRAPH = re.compile(rf"{GRAPHS}/([0-9a-f]{{64}}){re.escape(SUFFIX)}")
_MODEL = re.compile(rf"{MODELS}/[\w-][\w.-]*\.json")
_MOST_BYTES = 2**30
"""Of one member."""


def write_tar(corpus: Corpus, path: Path) -> int:
    """Write a corpus as a tar archive, whole or not at all, and return how many graphs it has.

    Raises:
        StoreError: the file can't be written.
    """
    names = sorted(
        str(each.relative_to(corpus.folder))
        for folder in (GRAPHS, MODELS)
        for each in (corpus.folder / folder).glob("*")
    )
    chosen = [name for name in names if _GRAPH.fullmatch(name) or _MODEL.fullmatch(name)]
    try:
        with replacing(path) as unfinished, tarfile.open(unfinished, "w|") as archive:
            for name in (MARKER, *chosen):
                archive.add(corpus.folder / name, name, recursive=False, filter=_plain)
    except OSError as error:
        msg = f"{path} can't be written: {error.strerror or error}"
        raise StoreError(msg) from error
    return sum(_GRAPH.fullmatch(name) is not None for name in chosen)


def read_tar(corpus: Corpus, path: Path) -> tuple[int, int]:
    """Add what a tar archive of a corpus holds; what is there already stays as it is.

    Nothing is added unless all of it is a corpus'.

    Returns:
        How many graphs were new, and how many the archive holds.

    Raises:
        StoreError: it can't be read, or holds something else than a corpus; says what.
    """
    with tempfile.TemporaryDirectory(dir=corpus.folder) as folder:
        try:
            with tarfile.open(path) as archive:
                names = list(dict.fromkeys(_taken_out(archive, Path(folder), path)))
        except StoreError:
            raise
        except Exception as error:  # tarfile and what unpacks for it raise errors of many kinds
            msg = f"{path} can't be read: {error!r}"
            raise StoreError(msg) from error
        graphs = [name for name in names if _GRAPH.fullmatch(name)]
        if not graphs:
            msg = f"{path} holds no graphs; `dynamometer corpus export` writes such files"
            raise StoreError(msg)
        new = [name for name in names if not (corpus.folder / name).exists()]
        for name in sorted(new):  # graphs before the models that have them
            Path(folder, name).replace(corpus.folder / name)
    return sum(name in graphs for name in new), len(graphs)


def _taken_out(archive: tarfile.TarFile, folder: Path, source: Path) -> Iterator[str]:
    """Write members into an empty folder, and yield their names.

    Raises:
        StoreError: one is no file of a corpus.
    """
    for each in (GRAPHS, MODELS):
        (folder / each).mkdir()
    for member in archive:
        known = _GRAPH.fullmatch(member.name) or _MODEL.fullmatch(member.name)
        if member.name == MARKER and member.isreg():
            continue
        file = archive.extractfile(member) if known and member.isreg() else None
        if file is None or member.size > _MOST_BYTES:
            msg = (
                f"{source} is not taken: {member.name!r} is no file of a corpus. Nothing was"
                " imported"
            )
            raise StoreError(msg)
        path = folder / member.name
        path.write_bytes(file.read())
        _check(path, member.name, source)
        yield member.name


def _check(path: Path, name: str, source: Path) -> None:
    """Raise unless a file is what its name says.

    Raises:
        StoreError: it isn't.
    """
    graph = _GRAPH.fullmatch(name)
    try:
        if graph is None:
            msgspec.json.decode(path.read_bytes(), type=RecordedModel)
            return
        key = read_description(path).key
    except (StoreError, msgspec.DecodeError) as error:
        msg = f"{source} is not taken: {name} is damaged: {error}. Nothing was imported"
        raise StoreError(msg) from error
    if key != graph[1]:
        msg = f"{source} is not taken: {name} is the graph {key}. Nothing was imported"
        raise StoreError(msg)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out who wrote a file and when: the same corpus is the same bytes."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    member.mode = 0o644
    return member
