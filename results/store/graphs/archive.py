"""A corpus as one file, and the union of such a file with a corpus."""

from __future__ import annotations

import io
import re
import shutil
import tarfile
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.store.atomic_file import replacing
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.graphs.contents import read_contents
from dynamometer.results.store.graphs.corpus import (
    FORMAT,
    GRAPHS,
    MARKER,
    MODELS,
    SUFFIX,
    Corpus,
    Marker,
    is_corpus,
    read_marker,
)
from dynamometer.results.values.graphs import RecordedModel

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import IO, Self

_GRAPH = re.compile(rf"{GRAPHS}/([0-9a-f]{{64}}){re.escape(SUFFIX)}")
_MODEL = re.compile(rf"{MODELS}/[\w-][\w.-]*\.json")
_MIB = 2**20
_MOST_BYTES, _MOST_OF_A_GRAPH, _MOST_OF_ANOTHER = 1024 * _MIB, 256 * _MIB, 16 * _MIB
"""What an archive may unpack to: all members together, a graph, and any other member."""
_MOST_OF_A_NAME = 4096
_EXTENDED = frozenset((
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK, tarfile.GNUTYPE_SPARSE,
))  # fmt: skip
"""Types of headers that are followed by more of the header."""


class _RefusedError(Exception):
    """Raised where a header of an archive is none that a corpus has."""


class _Member(tarfile.TarInfo):
    """A member of a kind that is read bit by bit.

    `tarfile` reads what extends a header into memory, whatever its size, before it gives a member.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Read a header, unless what follows it may be of any size."""
        found = super().frombuf(buf, encoding, errors)
        is_name = found.type == tarfile.GNUTYPE_LONGNAME and found.size <= _MOST_OF_A_NAME
        if found.type in _EXTENDED and not is_name:
            msg = (
                f"it has a header of type {found.type!r}, which may be of any size: pack it by"
                " `dynamometer corpus export`, or `tar --format=gnu`"
            )
            raise _RefusedError(msg)
        return found


def write_tar(corpus: Corpus, path: Path) -> int:
    """Write a corpus as a tar archive, whole or not at all, and return how many graphs it has.

    Its first member says what there is in it, so that half of it isn't taken for all.

    Raises:
        StoreError: the file can't be written, is in the corpus' folder, or couldn't be imported.
    """
    if path.resolve().is_relative_to(corpus.folder.resolve()):
        msg = f"{path} is in the folder of the corpus itself; name a file that is elsewhere"
        raise StoreError(msg)
    names = sorted(
        str(each.relative_to(corpus.folder))
        for folder in (GRAPHS, MODELS)
        for each in (corpus.folder / folder).glob("*")
    )
    chosen = [name for name in names if _GRAPH.fullmatch(name) or _MODEL.fullmatch(name)]
    marker = msgspec.json.encode(Marker(format=FORMAT, members=tuple(chosen)))
    try:
        size = sum((corpus.folder / name).stat().st_size for name in chosen)
    except OSError as error:
        msg = f"{corpus.folder} can't be read: {error.strerror or error}"
        raise StoreError(msg) from error
    if size > _MOST_BYTES:
        msg = (
            f"{corpus.folder} is too large for one archive, which holds {_MOST_BYTES // _MIB} MiB:"
            " copy the folder instead, which is a corpus wherever it is"
        )
        raise StoreError(msg)
    try:
        with (
            replacing(path) as unfinished,
            tarfile.open(unfinished, "w|", format=tarfile.GNU_FORMAT) as archive,
        ):
            first = tarfile.TarInfo(MARKER)
            first.size = len(marker)
            archive.addfile(_plain(first), io.BytesIO(marker))
            for name in chosen:
                archive.add(corpus.folder / name, name, recursive=False, filter=_plain)
    except OSError as error:
        msg = f"{path} can't be written: {error.strerror or error}"
        raise StoreError(msg) from error
    return sum(_GRAPH.fullmatch(name) is not None for name in chosen)


def read_tar(folder: Path, path: Path) -> tuple[int, int]:
    """Add what a tar archive of a corpus holds; what is there already stays as it is.

    Nothing is added, and no corpus is made, unless all that the archive's list names is there and
    is a corpus'.

    Args:
        folder: of the corpus, which is made if it isn't there.
        path: of the archive.

    Returns:
        How many graphs were new, and how many the archive holds.

    Raises:
        StoreError: it can't be read, or holds something else than a corpus; says what.
    """
    with _made(folder) as corpus, tempfile.TemporaryDirectory(dir=folder) as unpacked:
        names = _unpacked(path, Path(unpacked))
        graphs = [name for name in names if _GRAPH.fullmatch(name)]
        if not graphs:
            msg = f"{path} holds no graphs; `dynamometer corpus export` writes such files"
            raise StoreError(msg)
        new = [name for name in names if not (corpus.folder / name).exists()]
        for name in sorted(new):  # graphs before the models that have them
            Path(unpacked, name).replace(corpus.folder / name)
    return sum(_GRAPH.fullmatch(name) is not None for name in new), len(graphs)


@contextmanager
def _made(folder: Path) -> Iterator[Corpus]:
    """Give the corpus of a folder; one that had to be made is gone again if something is raised."""
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    is_new = not is_corpus(folder)
    corpus = Corpus.made(folder)
    try:
        yield corpus
    except BaseException:
        if is_new:
            with suppress(OSError):  # which say that something is in it by now
                for each in (folder / GRAPHS, folder / MODELS):
                    each.rmdir()
                (folder / MARKER).unlink()
                for each in new:
                    each.rmdir()
        raise


def _unpacked(path: Path, folder: Path) -> list[str]:
    """Write the members of an archive into an empty folder, and return their names.

    Raises:
        StoreError: it can't be read, something is missing, or one is no file of a corpus.
    """
    try:
        with tarfile.open(path, tarinfo=_Member) as archive:
            listed = _listed(archive, path)
            names = list(dict.fromkeys(_taken_out(archive, listed, folder, path)))
    except StoreError:
        raise
    except _RefusedError as error:
        msg = f"{path} is not taken: {error}. Nothing was imported"
        raise StoreError(msg) from error
    except tarfile.ReadError as error:
        if tarfile.is_tarfile(path):
            raise _unreadable(path, str(error)) from error
        msg = f"{path} can't be read: it is no tar archive. `dynamometer corpus export` writes such"
        raise StoreError(msg) from error
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except Exception as error:  # tarfile and what unpacks for it raise errors of many kinds
        raise _unreadable(path, repr(error)) from error
    missing = {*listed} - {*names}
    if missing:
        msg = (
            f"{path} is not whole: {len(missing)} of the {len({*listed})} files that it lists are"
            " missing. Nothing was imported; copy or export it anew"
        )
        raise StoreError(msg)
    return names


def _unreadable(path: Path, why: str) -> StoreError:
    return StoreError(f"{path} can't be read: {why}. Nothing was imported; copy or export it anew")


def _listed(archive: tarfile.TarFile, source: Path) -> tuple[str, ...]:
    """Read the list that an archive begins with.

    Raises:
        StoreError: it begins with something else, or its list is of another format.
    """
    first = archive.next()
    if first is None or first.name != MARKER or not first.isreg():
        msg = (
            f"{source} is not taken: it doesn't begin with the {MARKER} of a corpus. Nothing was"
            " imported; `dynamometer corpus export` writes such files"
        )
        raise StoreError(msg)
    file = archive.extractfile(first)
    assert file is not None
    _refuse_size(first, 0, source)
    members = read_marker(file.read(), f"{MARKER} of {source}").members
    if members is None:
        msg = (
            f"{source} is not taken: it doesn't list what there is in it, as an earlier version"
            " wrote it. Nothing was imported; export it anew"
        )
        raise StoreError(msg)
    return members


def _taken_out(
    archive: tarfile.TarFile, listed: Collection[str], folder: Path, source: Path
) -> Iterator[str]:
    """Write members into an empty folder, and yield their names.

    Raises:
        StoreError: one is no file of a corpus, or isn't listed.
    """
    for each in (GRAPHS, MODELS):
        (folder / each).mkdir()
    known, taken = set(listed), 0
    for member in archive:
        if member.name == MARKER and member.offset == 0:
            continue
        is_of_corpus = _GRAPH.fullmatch(member.name) or _MODEL.fullmatch(member.name)
        file = archive.extractfile(member) if is_of_corpus and member.isreg() else None
        if file is None or member.name not in known:
            msg = (
                f"{source} is not taken: {member.name!r} is no file of a corpus, or isn't in its"
                " list. Nothing was imported"
            )
            raise StoreError(msg)
        _refuse_size(member, taken, source)
        taken += member.size
        _write(file, folder / member.name)
        _check(folder / member.name, member.name, source)
        yield member.name


def _refuse_size(member: tarfile.TarInfo, taken: int, source: Path) -> None:
    """Raise `StoreError` before a member is unpacked that is larger than it may be."""
    most = _MOST_OF_A_GRAPH if _GRAPH.fullmatch(member.name) else _MOST_OF_ANOTHER
    if member.size > most:
        msg = f"{source} is not taken: {member.name} is larger than {most // _MIB} MiB"
    elif taken + member.size > _MOST_BYTES:
        msg = f"{source} is not taken: it unpacks to more than {_MOST_BYTES // _MIB} MiB"
    else:
        return
    msg += ". Nothing was imported"
    raise StoreError(msg)


def _write(file: IO[bytes], path: Path) -> None:
    with path.open("wb") as written:
        shutil.copyfileobj(file, written)


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
        key = read_contents(path, name)[0].key
    except StoreError as error:
        msg = f"{source} is not taken: {error}. Nothing was imported"
        raise StoreError(msg) from error
    except msgspec.DecodeError as error:
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
