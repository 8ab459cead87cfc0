"""The corpus that is written of what was found for classes of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

from dynamometer.common.studies.parity.corpus_files import FOLDER, CorpusFiles, texts
from dynamometer.models.parity.corpus import Corpus
from dynamometer.results.store.bounds import model_name
from dynamometer.results.values.parity import CorpusEntry, Parity
from dynamometer.results.values.records import PASSED, Outcome, Record, Stage, Status, packed

if TYPE_CHECKING:
    from pathlib import Path


def record(entry: CorpusEntry | None, outcome: Outcome = PASSED) -> Record:
    """Make what is stored of a class."""
    name = f"{entry.module}.{entry.class_name}" if entry else "a.B"
    made = factories.record(factories.case(name), outcome=outcome)
    return msgspec.structs.replace(made, found=packed(Parity(entry=entry)))


def case(
    module: str, class_name: str, root: str | None = None, beside: str | None = None
) -> CorpusEntry:
    """Make arguments that were found."""
    return CorpusEntry(
        module=module, class_name=class_name, init_args="([4], {'a': 'b'})",
        forward_args="([torch.rand([2])], {})", root=root, beside=beside,
    )  # fmt: skip


def test_a_file_for_each_project(tmp_path: Path) -> None:
    """Classes of one name are in files of their own; each file is what `parity.py` reads."""
    sink = CorpusFiles(tmp_path)
    skipped = Outcome(status=Status.SKIP, stage=Stage.LOAD, reason="it has no forward")
    for each in (case("net.b", "Net"), case("net.a", "Net", "/src"), case("other", "Conv")):
        sink.write([record(each)])
    sink.write([record(None, skipped)])
    sink.write([factories.record(factories.case("a.C"), outcome=skipped)])
    sink.close()
    names = ["test_net.py", "test_net_2.py", "test_other.py"]
    assert [path.name for path in sink.paths] == names
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == names
    text = (tmp_path / FOLDER / "test_net.py").read_text()
    assert "sys.path.insert(0, '/src')\n" in text
    assert "from net.a import Net\n" in text
    assert "lambda: ([4], {'a': 'b'}),\n     lambda: ([torch.rand([2])], {})),\n" in text
    found = Corpus(str(tmp_path / FOLDER)).specs()
    assert [each.name for each in found] == ["net.Net", "net_2.Net", "other.Conv"]


def test_projects_of_one_name_are_in_files_of_their_own() -> None:
    """Each file has one folder that its modules are imported from, or none."""
    found = [
        case("model", "A", "/p1"), case("model", "B", "/p2"), case("model.x", "C", "/p1", "/p1/x"),
        case("model", "D"), case("model_2", "E"),
    ]  # fmt: skip
    files = texts(found)
    assert {name: [each for each in "ABCDE" if f" import {each}\n" in text]
            for name, text in files.items()} == {
        "test_model.py": ["A", "C"], "test_model_2.py": ["B"], "test_model_3.py": ["D"],
        "test_model_2_2.py": ["E"],
    }  # fmt: skip
    assert "sys.path.insert(0, '/p1')\nsys.path.append('/p1/x')\n" in files["test_model.py"]
    assert "/p1" not in files["test_model_2.py"]
    assert "sys.path" not in files["test_model_3.py"]
    assert texts(found[::-1]) == files


def test_nothing_is_written_of_other_runs(tmp_path: Path) -> None:
    """Of a corpus nothing is found."""
    sink = CorpusFiles(tmp_path)
    sink.write([record(None)])
    sink.close()
    assert sink.paths == ()
    assert list(tmp_path.iterdir()) == []


FORGED = {
    "another's": {"module": "good"},
    "a name no file has": {"project": "p" * 300},
    "what is no name": {"class_name": "path\n)("},
    "no module": {"module": "a; import os"},
    "more than arguments": {"init_args": "([], {})), (B, lambda: ([1], {})"},
    "other arguments": {"forward_args": "[]"},
    "three": {"init_args": "([], {}, 1)"},
    "a keyword": {"class_name": "class"},
    "another": {"module": "a.lambda"},
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_worker_can_not_write_what_it_likes(kind: str, tmp_path: Path) -> None:
    """The code it runs may say anything: what is no entry of its own class is left out."""
    sink = CorpusFiles(tmp_path)
    forged = msgspec.structs.replace(case("a", "B"), **FORGED[kind])
    made = factories.record(factories.case("a.B"))
    sink.write([msgspec.structs.replace(made, found=packed(Parity(entry=forged)))])
    sink.write([record(case("good", "Net"))])
    sink.close()
    assert [path.name for path in sink.paths] == ["test_good.py"]
    assert [each.name for each in Corpus(str(tmp_path / FOLDER)).specs()] == ["good.Net"]


@pytest.mark.parametrize("text", ["([], {})  # x", "[], {}", "(\n[], {}\n)"])
def test_arguments_are_written_as_python_writes_them(tmp_path: Path, text: str) -> None:
    """So that nothing of them reaches beyond its place."""
    sink = CorpusFiles(tmp_path)
    entry = msgspec.structs.replace(case("a", "B"), init_args=text, forward_args=text)
    sink.write([record(entry)])
    sink.close()
    (path,) = sink.paths
    assert "    (B,\n     lambda: ([], {}),\n     lambda: ([], {})),\n" in path.read_text()
    assert [each.name for each in Corpus(str(tmp_path / FOLDER)).specs()] == ["a.B"]


def test_a_long_project_is_known_by_how_it_begins(tmp_path: Path) -> None:
    """The names of its cases are cut."""
    project = "a_project_whose_name_is_long" * 5
    entry = msgspec.structs.replace(case("model", "Net"), project=project)
    made = factories.record(factories.case(model_name(f"{project}.model.{'Net' * 40}")))
    sink = CorpusFiles(tmp_path)
    sink.write([msgspec.structs.replace(made, found=packed(Parity(entry=entry)))])
    sink.close()
    assert len(sink.paths) == 1
