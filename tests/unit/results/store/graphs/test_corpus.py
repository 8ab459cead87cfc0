from __future__ import annotations

import gzip
import io
import os
import tarfile
import tracemalloc
import zipfile
from typing import TYPE_CHECKING

import graph_files
import msgspec
import pytest

from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.graphs import archive as archive_module
from dynamometer.results.store.graphs.archive import read_tar, write_tar
from dynamometer.results.store.graphs.corpus import (
    DESCRIPTION,
    Corpus,
    is_corpus,
    read_description,
    write_archive,
)
from dynamometer.results.values.graphs import (
    Origin,
    Part,
    RecordedGraph,
    RecordedModel,
    Spread,
    TensorInput,
)

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS = {graph_files.key(number): number for number in (1, 2, 3)}
ONE, TWO, THREE = sorted(NUMBERS)


def put(corpus: Corpus, key: str, model: str = "net", **fields: object) -> None:
    """Put a graph into a corpus, with a model that has it."""
    origin = Origin(suite="mine", model=model)
    graph_files.write_graph(corpus.path(key), NUMBERS[key], origin=origin, **fields)
    recorded = RecordedGraph(key=key, part=Part.INFERENCE, op_count=2, calls=1)
    corpus.add(RecordedModel(origin=origin, graphs=(recorded,)))


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """A corpus of two graphs, of which two models share one."""
    made = Corpus.made(tmp_path / "corpus")
    put(made, ONE, "a")
    put(made, TWO, "b")
    put(made, ONE, "c")
    return made


def test_what_was_put_is_there(corpus: Corpus) -> None:
    """Graphs are known by keys, and each with the models that have it."""
    assert is_corpus(corpus.folder)
    assert corpus.keys() == [ONE, TWO]
    assert [graph.op_count for graph in corpus.graphs()] == [2, 2]
    names = {key: [each.name for each in found] for key, found in corpus.origins().items()}
    assert names == {ONE: ["mine/a", "mine/c"], TWO: ["mine/b"]}
    assert Corpus.made(corpus.folder) == corpus


def test_recording_a_model_again_replaces_what_was_known(corpus: Corpus) -> None:
    """It has the graphs that it had last."""
    put(corpus, TWO, "a")
    assert [each.model for each in corpus.origins()[TWO]] == ["a", "b"]
    assert [each.model for each in corpus.origins()[ONE]] == ["c"]


def test_a_writer_that_dies_leaves_what_there_was(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a file is never seen under its name, whatever becomes of the writer."""

    class KilledError(BaseException):
        """Stands for a signal: nothing is cleaned up after it."""

    def killed(*_: object) -> None:
        raise KilledError

    for method in ("write_bytes", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(type(corpus.folder), method, killed)
            with pytest.raises(KilledError):
                put(corpus, THREE, "d")
        assert set(corpus.keys()) - {THREE} == {ONE, TWO}
        corpus.graphs()
        assert {each.origin.model for each in corpus.models()} == {"a", "b", "c"}


def test_another_folder_is_not_made_one(tmp_path: Path) -> None:
    """What is somebody else's stays as it is."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="is no corpus"):
        Corpus.made(tmp_path)
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208  names are enough


def test_another_format_is_said_to_be(corpus: Corpus) -> None:
    """What a later version writes is not guessed at."""
    put(corpus, ONE, format=2)
    with pytest.raises(StoreError, match="is of format 2, and this version reads 1"):
        read_description(corpus.path(ONE))


def test_the_union_of_two_is_that_of_their_files(corpus: Corpus, tmp_path: Path) -> None:
    """Importing twice changes nothing, and what is there stays."""
    path = tmp_path / "all.tar"
    assert write_tar(corpus, path) == 2
    other = Corpus.made(tmp_path / "other")
    put(other, ONE, "z")
    assert read_tar(other.folder, path) == (1, 2)
    assert read_tar(other.folder, path) == (0, 2)
    assert other.keys() == corpus.keys()
    assert [each.model for each in other.origins()[ONE]] == ["a", "c", "z"]
    again = tmp_path / "again.tar"
    write_tar(corpus, again)
    assert again.read_bytes() == path.read_bytes()


def test_what_is_too_large_for_an_archive_is_copied(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says so; a file that can't be looked at is no fault of the harness."""
    with monkeypatch.context() as patch:
        patch.setattr("dynamometer.results.store.graphs.archive._MOST_BYTES", 1)
        with pytest.raises(StoreError, match=r"is too large for one archive.* copy the folder"):
            write_tar(corpus, tmp_path / "all.tar")
    corpus.path(ONE).unlink()
    corpus.path(ONE).symlink_to("nowhere")
    with pytest.raises(StoreError, match="can't be read: No such file"):
        write_tar(corpus, tmp_path / "all.tar")
    assert not (tmp_path / "all.tar").exists()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    """Make a member of an archive."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize(
    "hostile",
    [
        member("/tmp/hit"),
        member("../hit"),
        member(f"graphs/../../{ONE}.graph"),
        member(f"graphs/{ONE}.graph", tarfile.SYMTYPE, "/etc/passwd"),
        member(f"graphs/{ONE}.graph", tarfile.LNKTYPE, "corpus.json"),
        member("models/x.json", tarfile.FIFOTYPE),
        member("graphs", tarfile.SYMTYPE, "/tmp"),
        member("models/../corpus.json"),
        member("models/.hidden.json"),
        member("hit.py"),
        member(f"graphs/{ONE}.graph"),
        member("models/x.json"),
    ],
    ids=lambda each: f"{each.name} {each.type!r}",
)
def test_a_hostile_archive_writes_nothing(
    hostile: tarfile.TarInfo, corpus: Corpus, tmp_path: Path
) -> None:
    """Where one member is nothing of a corpus, or isn't what its name says, none is taken."""
    path, other = tmp_path / "all.tar", Corpus.made(tmp_path / "other").folder
    write_tar(corpus, path)
    with tarfile.open(path, "a") as archive:
        hostile.size = 3 if hostile.isreg() else 0
        archive.addfile(hostile, io.BytesIO(b"no!"))
    before = everything(tmp_path)
    with pytest.raises(StoreError, match="Nothing was imported"):
        read_tar(other, path)
    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK, tarfile.GNUTYPE_SPARSE,
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_first", [True, False])
def test_no_header_of_any_size_is_read(
    kind: bytes, corpus: Corpus, tmp_path: Path, *, is_first: bool
) -> None:
    """A file of some kilobytes would unpack to gigabytes of memory before it is looked at."""
    path = tmp_path / "all.tar"
    write_tar(corpus, path)
    header = member("PaxHeaders/x", kind)
    header.size = 20 * 2**20
    bomb = header.tobuf(tarfile.GNU_FORMAT) + b" " * header.size
    with gzip.open(tmp_path / "packed.tar.gz", "wb") as packed:
        members = path.read_bytes().rstrip(b"\0")
        members += bytes(-len(members) % tarfile.BLOCKSIZE)
        packed.write((bomb if is_first else b"") + members + bomb)
    tracemalloc.start()
    try:
        with pytest.raises(StoreError, match="is not taken: it has a header of type"):
            read_tar(tmp_path / "other", tmp_path / "packed.tar.gz")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert not (tmp_path / "other").exists()


def test_long_names_are_packed_and_taken(corpus: Corpus, tmp_path: Path) -> None:
    """Of models, as far as a file may be called so."""
    origin = Origin(suite="mine", model="ä" * 100)
    corpus.add(RecordedModel(origin=origin, graphs=()))
    write_tar(corpus, tmp_path / "all.tar")
    read_tar(tmp_path / "other", tmp_path / "all.tar")
    assert [each.name for each in (tmp_path / "other/models").iterdir() if "ä" in each.name]


@pytest.mark.parametrize("way", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED])
def test_no_more_is_unpacked_than_a_file_says_it_has(way: int, tmp_path: Path) -> None:
    """It says a hundred bytes, and would come to fifty million."""
    path = tmp_path / f"{ONE}.graph"
    with zipfile.ZipFile(path, "w", way) as archive:
        archive.writestr(DESCRIPTION, b" " * 50_000_000)
    data = path.read_bytes()
    size = (50_000_000).to_bytes(4, "little")
    assert data.count(size) == 2
    path.write_bytes(data.replace(size, (100).to_bytes(4, "little")))
    tracemalloc.start()
    try:
        with pytest.raises(StoreError, match="is damaged"):
            read_description(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def everything(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder."""
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def test_a_graph_of_another_key_is_not_taken(corpus: Corpus, tmp_path: Path) -> None:
    """Its name would lie."""
    corpus.path(ONE).rename(corpus.path(THREE))
    write_tar(corpus, tmp_path / "all.tar")
    with pytest.raises(StoreError, match=f"is the graph {ONE}"):
        read_tar(tmp_path / "other", tmp_path / "all.tar")


def test_what_is_no_archive_is_said_to_be(corpus: Corpus, tmp_path: Path) -> None:
    """So is one without graphs."""
    path = tmp_path / "all.tar"
    path.write_text("no")
    with pytest.raises(StoreError, match=r"all\.tar can't be read: it is no tar archive. `dyn"):
        read_tar(corpus.folder, path)
    write_tar(Corpus.made(tmp_path / "empty"), path)
    with pytest.raises(StoreError, match="holds no graphs"):
        read_tar(corpus.folder, path)


def test_an_archive_that_names_a_graph_twice(corpus: Corpus, tmp_path: Path) -> None:
    """It is one graph."""
    path, other = tmp_path / "all.tar", Corpus.made(tmp_path / "other").folder
    write_tar(corpus, path)
    with tarfile.open(path, "a", format=tarfile.GNU_FORMAT) as archive:
        archive.add(corpus.path(ONE), f"graphs/{ONE}.graph")
    assert read_tar(other, path) == (2, 2)


@pytest.mark.parametrize("kind", ["gz", "xz"])
def test_half_an_archive_is_said_to_be_damaged(corpus: Corpus, tmp_path: Path, kind: str) -> None:
    """Whatever unpacks it."""
    path = tmp_path / "all.tar"
    write_tar(corpus, path)
    with (
        tarfile.open(path) as plain,
        tarfile.open(tmp_path / "all", f"w:{kind}") as archive,  # type: ignore[call-overload]  # modes by name
    ):
        for each in plain:
            archive.addfile(each, plain.extractfile(each))
    (tmp_path / "all").replace(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StoreError, match=r"all\.tar can't be read"):
        read_tar(tmp_path / "other", path)


def test_a_graph_that_was_changed_anywhere_is_read_or_said_to_be_damaged(corpus: Corpus) -> None:
    """A byte is changed at each place, one of them so that the file says it is encrypted."""
    path = corpus.path(ONE)
    whole = path.read_bytes()
    damaged = 0
    for place in range(len(whole)):
        changed = bytes([whole[place] ^ 0xFF])
        path.write_bytes(whole[:place] + changed + whole[place + 1 :])
        try:
            read_description(path)
        except StoreError:
            damaged += 1
    assert damaged > len(whole) / 2


def test_a_graph_under_the_name_of_another_is_said_to_be(corpus: Corpus) -> None:
    """What is shown of it would be that of the other."""
    corpus.path(ONE).replace(corpus.path(THREE))
    with pytest.raises(StoreError, match=f"{THREE}.graph is damaged: .*{ONE}"):
        corpus.graphs()


def test_a_corpus_that_was_half_made_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was killed while making it left nothing that is refused."""
    folder, made = tmp_path / "corpus", []

    def killed(self: Path, *_: object, **__: object) -> None:
        made.append(self.name)
        if len(made) == 2:
            raise KeyboardInterrupt
        os.makedirs(self)  # noqa: PTH103  Path.mkdir is this function

    with monkeypatch.context() as patch:
        patch.setattr(type(folder), "mkdir", killed)
        with pytest.raises(KeyboardInterrupt):
            Corpus.made(folder)
    put(Corpus.made(folder), ONE)
    assert Corpus.made(folder).keys() == [ONE]


def test_what_is_no_key_is_said_to_be(corpus: Corpus) -> None:
    """A file that somebody else wrote may say that it is anything."""
    graph = msgspec.structs.replace(read_description(corpus.path(ONE)), key="../../x")
    write_archive(corpus.path(ONE), {DESCRIPTION: msgspec.json.encode(graph)})
    with pytest.raises(StoreError, match=r"'\.\./\.\./x' is no key"):
        read_description(corpus.path(ONE))


def packed(path: Path, members: dict[str, bytes], kind: str = "") -> None:
    """Write an archive of whatever members, in order."""
    with tarfile.open(path, f"w:{kind}") as archive:  # type: ignore[call-overload]  # modes by name
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def members(path: Path) -> dict[str, bytes]:
    """Return what is in an archive."""
    with tarfile.open(path) as archive:
        return {each.name: read.read() for each in archive if (read := archive.extractfile(each))}


def refused(tmp_path: Path, says: str) -> None:
    """Import an archive, which is refused and leaves nothing behind."""
    with pytest.raises(StoreError, match=says):
        read_tar(tmp_path / "new" / "other", tmp_path / "all.tar")
    assert not (tmp_path / "new").exists()


def test_an_archive_that_was_cut_is_not_taken_for_a_whole_one(
    corpus: Corpus, tmp_path: Path
) -> None:
    """Wherever it was cut: its first member lists the others."""
    path = tmp_path / "all.tar"
    write_tar(corpus, path)
    whole = path.read_bytes()
    with tarfile.open(path) as archive:
        end = max(each.offset_data + each.size for each in archive)
    end += -end % 512  # a member is whole blocks
    for length in range(0, end, 512):
        path.write_bytes(whole[:length])
        refused(tmp_path, "all.tar")
    path.write_bytes(whole[:end])
    assert read_tar(tmp_path / "other", path) == (2, 2)


def test_an_archive_says_what_there_is_in_it(corpus: Corpus, tmp_path: Path) -> None:
    """One of an earlier version does not, and what isn't a corpus' has no such list."""
    path = tmp_path / "all.tar"
    write_tar(corpus, path)
    inside = members(path)
    packed(path, {**inside, "corpus.json": b'{"dynamometer corpus": 1}'})
    refused(tmp_path, "doesn't list what there is in it.*export it anew")
    packed(path, {**inside, "corpus.json": b'{"dynamometer corpus": 99, "members": []}'})
    refused(tmp_path, "is of format 99, and this version reads 1")
    packed(path, {**inside, "corpus.json": b"{}"})
    refused(tmp_path, "corpus.json of .*all.tar is damaged")
    del inside["corpus.json"]
    packed(path, inside)
    refused(tmp_path, "doesn't begin with the corpus.json of a corpus")


@pytest.mark.parametrize(
    ("stride", "fields", "says"),
    [
        ((1,), {"key": ONE}, "of its key, or was written by an earlier .* anew"),
        ((-1,), {}, "no tensor of shape"),
        ((1, 1), {}, "no tensor of shape"),
        ((1,), {"inputs": ()}, "takes 1 inputs, and 0 are described"),
    ],
)
def test_a_description_of_another_graph_is_not_taken(
    stride: tuple[int, ...], fields: dict[str, object], says: str, tmp_path: Path
) -> None:
    """What a file says of itself is compared with what it holds."""
    tensor = TensorInput(
        shape=(2,), stride=stride, dtype="float32", device="cpu", requires_grad=False,
        is_weight=False, spread=Spread(),
    )  # fmt: skip
    corpus = Corpus.made(tmp_path / "corpus")
    name = fields.get("key", graph_files.key(1, (tensor,)))
    graph_files.write_graph(corpus.path(str(name)), 1, (tensor,), **fields)
    write_tar(corpus, tmp_path / "all.tar")
    refused(tmp_path, f"{name}.graph is damaged.*{says}")


def test_a_graph_without_nodes_is_not_taken(corpus: Corpus, tmp_path: Path) -> None:
    """Nor is one whose nodes can't be read."""
    with zipfile.ZipFile(corpus.path(ONE)) as archive:
        said = archive.read(DESCRIPTION)
    more: dict[str, bytes]
    for more in ({}, {"graph.json": b"garbage"}):
        write_archive(corpus.path(ONE), {DESCRIPTION: said, **more})
        write_tar(corpus, tmp_path / "all.tar")
        refused(tmp_path, f"{ONE}.graph is damaged")


def test_an_archive_is_not_unpacked_without_limit(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member has a limit, and so have all together; what says so names no temporary file."""
    path = tmp_path / "all.tar"
    name = "models/large.json"
    listed = msgspec.json.encode({"dynamometer corpus": 1, "members": [name]})
    packed(path, {"corpus.json": listed, name: bytes(17 * 2**20)}, "gz")
    refused(tmp_path, f"all.tar is not taken: {name} is larger than 16 MiB. Nothing was imported")
    write_tar(corpus, path)
    monkeypatch.setattr(archive_module, "_MOST_BYTES", 600)
    refused(tmp_path, "it unpacks to more than 0 MiB. Nothing was imported")
    with pytest.raises(StoreError, match="is too large for one archive"):
        write_tar(corpus, path)


def test_a_folder_of_another_version_is_said_to_be(corpus: Corpus) -> None:
    """Its marker is read before anything is put into it or taken from it."""
    for text, says in (('{"dynamometer corpus": 99}', "is of format 99"), ("[]", "is damaged")):
        (corpus.folder / "corpus.json").write_text(text)
        for use in (Corpus.made, Corpus.opened):
            with pytest.raises(StoreError, match=f"corpus.json {says}"):
                use(corpus.folder)
