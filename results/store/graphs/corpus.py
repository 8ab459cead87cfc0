"""A corpus on disk: a folder of captured graphs, a file each, and of the models they are from.

`corpus.json` says what the folder is. `graphs/KEY.graph` are the graphs, `models/NAME.json` says
of each model which graphs it has. Every file is written whole or not at all, and none is changed
by another's coming: whatever dies at whatever moment, the rest is readable, and the union of two
corpora is the union of their files.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.store.atomic_file import replacing
from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.graphs import RecordedModel, SavedGraph

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dynamometer.results.values.graphs import Origin

MARKER, GRAPHS, MODELS, SUFFIX = "corpus.json", "graphs", "models", ".graph"
DESCRIPTION, GRAPH = "description.json", "graph.json"
"""What is in the file of a graph, besides constants."""

FORMAT = 1
_MARKED = msgspec.json.encode({"dynamometer corpus": FORMAT}) + b"\n"
_DATE = (1980, 1, 1, 0, 0, 0)
"""The first that a zip archive can hold: the same graph is the same bytes."""

_MOST_BYTES = 256 * 2**20
_KEY = re.compile(r"[0-9a-f]{64}")


class Marker(msgspec.Struct, frozen=True):
    """What `corpus.json` says; in an archive also what there is in it.

    Attributes:
        format: of the corpus.
        members: names of the files; `None` in a folder.
    """

    format: int = msgspec.field(name="dynamometer corpus")
    members: tuple[str, ...] | None = None


def is_corpus(path: Path) -> bool:
    """Return whether a folder is a corpus, of whichever format."""
    return (path / MARKER).is_file()


def read_marker(data: bytes, called: str) -> Marker:
    """Read what a `corpus.json` says.

    Raises:
        StoreError: it says no such thing, or another format.
    """
    try:
        found = msgspec.json.decode(data, type=Marker)
    except msgspec.DecodeError as error:
        msg = f"{called} is damaged, or was not written by dynamometer: {error}"
        raise StoreError(msg) from error
    if found.format != FORMAT:
        msg = (
            f"{called} is of format {found.format}, and this version reads {FORMAT}: use the"
            " version of dynamometer that wrote it, or name another corpus"
        )
        raise StoreError(msg)
    return found


def read_description(path: Path, called: str | None = None) -> SavedGraph:
    """Read what the file of a graph says of it.

    Args:
        path: of the file.
        called: what errors call it, if that isn't its path.

    Raises:
        StoreError: there is no such file, it is damaged, or of another format.
    """
    called = called or str(path)
    try:
        with zipfile.ZipFile(path) as archive:
            _refuse_size(archive, called)
            found = msgspec.json.decode(member_of(archive, DESCRIPTION), type=SavedGraph)
    except StoreError:
        raise
    except OSError as error:
        msg = f"{called} can't be read: {error.strerror or error}"
        raise StoreError(msg) from error
    except Exception as error:  # zipfile and what unpacks for it raise errors of many kinds
        msg = f"{called} is damaged, or was not written by this version of dynamometer: {error!r}"
        raise StoreError(msg) from error
    if found.format != FORMAT:
        msg = f"{called} is of format {found.format}, and this version reads {FORMAT}"
        raise StoreError(msg)
    if not _KEY.fullmatch(found.key):
        msg = f"{called} is damaged: {found.key!r} is no key of a graph"
        raise StoreError(msg)
    return found


def _refuse_size(archive: zipfile.ZipFile, called: str) -> None:
    if sum(each.file_size for each in archive.infolist()) > _MOST_BYTES:
        msg = f"{called} is damaged: it is larger than a graph can be"
        raise StoreError(msg)


def member_of(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return what a file of an archive holds; no more is unpacked than it says it has.

    Raises:
        KeyError: there is none of that name.
        ValueError: it is packed in a way that can't be unpacked bit by bit.
    """
    member = archive.getinfo(name)
    if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        msg = f"{name} is packed in another way than files of graphs are"
        raise ValueError(msg)
    with archive.open(member) as file:
        return file.read(member.file_size)


def write_archive(path: Path, members: Mapping[str, bytes]) -> None:
    """Write a zip archive, whole or not at all.

    Raises:
        StoreError: it can't be written.
    """
    deflated = zipfile.ZIP_DEFLATED
    try:
        with (
            replacing(path) as unfinished,
            zipfile.ZipFile(unfinished, "w", deflated) as archive,
        ):
            for name, data in members.items():
                info = zipfile.ZipInfo(name, _DATE)
                info.compress_type = deflated
                archive.writestr(info, data)
    except OSError as error:
        raise _unwritable(path, error) from error


@dataclass(frozen=True)
class Corpus:
    """A folder of captured graphs.

    Attributes:
        folder: that is a corpus.
    """

    folder: Path

    @classmethod
    def opened(cls, folder: Path) -> Corpus:
        """Return the corpus of a folder that is one.

        Raises:
            StoreError: its marker is damaged, or of another format.
        """
        path = folder / MARKER
        try:
            data = path.read_bytes()
        except OSError as error:
            msg = f"{path} can't be read: {error.strerror or error}"
            raise StoreError(msg) from error
        read_marker(data, str(path))
        return cls(folder)

    @classmethod
    def made(cls, folder: Path) -> Corpus:
        """Return the corpus of a folder, which is made if it isn't there.

        Raises:
            StoreError: there is something else in the folder, or it can't be written.
        """
        if is_corpus(folder):
            cls.opened(folder)
        else:
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                msg = f"{folder} is no corpus; name a folder that isn't there, or is empty"
                raise StoreError(msg)
            _make(folder)
            _write(
                folder / MARKER, _MARKED
            )  # before all else, lest half a corpus be taken for none
        for each in (GRAPHS, MODELS):
            _make(folder / each)
        return cls(folder)

    def path(self, key: str) -> Path:
        """Return where the graph of a key is, if it is there."""
        return self.folder / GRAPHS / f"{key}{SUFFIX}"

    def keys(self) -> list[str]:
        """Return the keys of all graphs, sorted."""
        names = (path.name.removesuffix(SUFFIX) for path in self._files(GRAPHS, SUFFIX))
        return sorted(name for name in names if _KEY.fullmatch(name))

    def graphs(self) -> list[SavedGraph]:
        """Read what is said of all graphs, in the order of their keys.

        Raises:
            StoreError: one is damaged, or is another than its name says.
        """
        return [self._read(key) for key in self.keys()]

    def add(self, model: RecordedModel) -> None:
        """Write down which graphs a model has, in place of what was known of it.

        Raises:
            StoreError: it can't be written.
        """
        _write(self._model_path(model), msgspec.json.encode(model))

    def models(self) -> list[RecordedModel]:
        """Read which graphs each model has, sorted by the models' names.

        Raises:
            StoreError: a file is damaged.
        """
        found = []
        for path in self._files(MODELS, ".json"):
            try:
                found.append(msgspec.json.decode(path.read_bytes(), type=RecordedModel))
            except (OSError, msgspec.DecodeError) as error:
                msg = f"{path} is damaged: {error}"
                raise StoreError(msg) from error
        return sorted(found, key=lambda each: (each.origin.name, msgspec.json.encode(each.origin)))

    def origins(self) -> dict[str, tuple[Origin, ...]]:
        """Return the models that have each graph, by its key.

        Raises:
            StoreError: a file is damaged.
        """
        found: defaultdict[str, dict[Origin, None]] = defaultdict(dict)
        for model in self.models():
            for graph in model.graphs:
                found[graph.key][msgspec.structs.replace(model.origin, part=graph.part)] = None
        return {key: tuple(each) for key, each in found.items()}

    def _read(self, key: str) -> SavedGraph:
        path = self.path(key)
        found = read_description(path)
        if found.key != key:
            msg = f"{path} is damaged: it says that it is the graph {found.key!r}"
            raise StoreError(msg)
        return found

    def _files(self, folder: str, suffix: str) -> list[Path]:
        inside = self.folder / folder
        return sorted(inside.glob(f"*{suffix}")) if inside.is_dir() else []

    def _model_path(self, model: RecordedModel) -> Path:
        digest = hashlib.sha256(msgspec.json.encode(model.origin)).hexdigest()[:12]
        name = re.sub(r"[^\w.-]+", "-", f"{model.origin.suite}-{model.origin.model}")
        return self.folder / MODELS / f"{name[:80]}-{digest}.json"


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _write(path: Path, data: bytes) -> None:
    try:
        with replacing(path) as unfinished:
            unfinished.write_bytes(data)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{path} can't be written: {error.strerror or error}")
