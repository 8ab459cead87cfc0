"""`dynamometer corpus`, up to what it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import graph_files
import pytest

from dynamometer.common.command_line import begin, cli
from dynamometer.results.store.graphs.corpus import Corpus
from dynamometer.results.values.graphs import Origin, ScalarInput, Spread, TensorInput

ROOT = Path(__file__).resolve().parents[4]
INPUTS = (
    ScalarInput(value=3),
    TensorInput(
        shape=(2,), stride=(1,), dtype="float32", device="cpu", requires_grad=False,
        is_weight=True, spread=Spread(),
    ),
)  # fmt: skip
KEY = graph_files.key(1, INPUTS)


def put(corpus: Corpus, model: str = "net") -> None:
    """Put a graph into a corpus."""
    ops = {"torch.add": 2, "torch.mul": 1}
    origin = Origin(suite="mine", model=model)
    graph_files.write_graph(corpus.path(KEY), 1, INPUTS, ops=ops, origin=origin)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """A corpus of one graph."""
    made = Corpus.made(tmp_path / "corpus")
    put(made)
    return made


def test_list_shows_each_graph(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    """A line has its key, how large it is, and where it is from."""
    assert cli.main(argv=["corpus", "list", str(corpus.folder)]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[2].split() == [KEY[:12], "3", "1", "1", "1", "1", "mine/net"]
    assert table[-1] == "1 graph, 0.0 MiB"


def test_list_shows_the_usual_corpus(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where no folder is named it is the one that is recorded into."""
    monkeypatch.chdir(corpus.folder.parent)
    assert cli.main(argv=["corpus", "list"]) == 0
    assert KEY[:12] in capsys.readouterr().out


def test_a_terminal_does_not_obey_a_graph(
    corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a file of somebody else holds is shown."""
    put(corpus, "\x1b]0;hit\x07net")
    assert cli.main(argv=["corpus", "list", str(corpus.folder)]) == 0
    assert "mine/ ]0;hit net" in capsys.readouterr().out


def test_list_as_json_says_the_same(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    """One graph a line, with its whole key."""
    assert cli.main(argv=["corpus", "list", str(corpus.folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["key"], found["ops"], found["inputs"], found["weights"]) == (KEY, 3, 1, 1)
    assert found["origins"] == ["mine/net"]


def test_a_corpus_goes_to_another_machine(
    corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is exported can be imported, into a folder that is made for it."""
    file, other = str(tmp_path / "all.tar"), tmp_path / "other"
    assert cli.main(argv=["corpus", "export", "-o", str(corpus.folder), file]) == 0
    assert cli.main(argv=["corpus", "import", "-o", str(other), file]) == 0
    assert f"1 graph read, 1 new in {other}" in capsys.readouterr().out
    assert cli.main(argv=["corpus", "import", "-o", str(other), file]) == 0
    assert f"1 graph read, 0 new in {other}" in capsys.readouterr().out
    assert Corpus(other).keys() == [KEY]


def test_a_corpus_is_not_exported_into_itself(
    corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `-o` names the corpus here, and its own files would be lost."""
    marker = corpus.folder / "corpus.json"
    before = marker.read_bytes()
    for name in (marker, corpus.folder / "graphs" / "new.tar"):
        assert cli.main(argv=["corpus", "export", "-o", str(corpus.folder), str(name)]) == 2
        assert "is in the folder of the corpus itself" in capsys.readouterr().err
        assert not name.exists() or name.read_bytes() == before


@pytest.mark.parametrize("words", [["list"], ["export", "x.tar", "-o"]])
def test_a_folder_that_is_no_corpus_is_said_to_be(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what makes one."""
    assert cli.main(argv=["corpus", *words, str(tmp_path)]) == 2
    assert "is no corpus; `dynamometer corpus record" in capsys.readouterr().err


def test_its_graphs_are_models(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    """`run` is that of `dynamometer run`, with its options; the file of a graph is a target."""
    name = f"mine.net.{KEY[:12]}\n"
    for words in (["corpus", "run"], ["run"]):
        for target in (corpus.folder, corpus.path(KEY)):
            assert cli.main(argv=[*words, str(target), "--list", "-k", "net"]) == 0
            assert capsys.readouterr().out == name
    assert cli.main(argv=["corpus", "run", str(corpus.folder), "--list", "-x", "net"]) == 5


@pytest.mark.parametrize("option", ["--scale=tiny", "--training", "--bfloat16", "--channels-last"])
def test_graphs_are_run_as_they_were_captured(
    option: str, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever would make another computation of them is refused."""
    assert cli.main(argv=["run", str(corpus.folder), option]) == 2
    assert "as they were captured: leave out --" in capsys.readouterr().err


def test_an_empty_corpus_says_how_to_fill_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is nothing to run."""
    folder = Corpus.made(tmp_path / "corpus").folder
    assert cli.main(argv=["run", str(folder), "--list"]) == 2
    assert f"dynamometer corpus record SUITE -o {folder}" in capsys.readouterr().err


def test_record_is_a_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It selects models as a run does, and puts nothing into a folder of somebody else's."""
    words = ["corpus", "record", "-o", str(tmp_path / "new"), "torchbench"]
    assert cli.main(argv=[*words, "--list", "--only", "dcgan"]) == 0
    assert capsys.readouterr().out == "dcgan\n"
    assert cli.main(argv=[*words, "--backend", "inductor"]) == 2
    assert "--record-graphs takes what Dynamo captures" in capsys.readouterr().err
    (tmp_path / "file").touch()
    words[3] = str(tmp_path)
    assert cli.main(argv=[*words, "--only", "dcgan", "--output-dir", str(tmp_path / "runs")]) == 2
    assert "is no corpus" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        "-k^mobilenet_v2$ -o DIR",
        "-k=^mobilenet_v2$ -oDIR",
        "-xmoco --only mobilenet_v2 -o=DIR",
        "--filter=^mobilenet_v2$ --corpus DIR",
        "--corpus=DIR -t4 --only mobilenet_v2",
    ],
)
def test_record_takes_no_letter_of_another_option(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The `o` in `-kmobilenet` is no `-o`, of which all spellings name the corpus."""
    kept = []
    monkeypatch.setattr(begin, "execute", lambda manifest, *_, **__: kept.append(manifest) or 0)
    monkeypatch.chdir(tmp_path)
    assert cli.main(argv=["corpus", "record", *words.split(), "torchbench", "--scale", "tiny"]) == 0
    plan = kept[0].plan
    assert [each.model for each in plan.cases] == ["mobilenet_v2"]
    assert plan.corpus == str(tmp_path / "DIR")


def test_record_without_a_folder_after_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    """It is said that one is missing."""
    assert cli.main(argv=["corpus", "record", "torchbench", "-o"]) == 2
    assert "requires an argument" in capsys.readouterr().err


def test_nothing_but_running_graphs_imports_torch(corpus: Corpus) -> None:
    """Listing is for machines without it."""
    code = (
        "import sys\n"
        "from dynamometer.common.command_line import cli\n"
        f"assert cli.main(argv=['corpus', 'list', {str(corpus.folder)!r}]) == 0\n"
        f"assert cli.main(argv=['run', {str(corpus.folder)!r}, '--list']) == 0\n"
        "assert cli.main(argv=['corpus', '--help']) == 0\n"
        "assert not {'torch', 'numpy', 'scipy', 'rich'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_a_corpus_that_isnt_there_is_no_unknown_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is missing is a folder, and it is said what makes one."""
    monkeypatch.chdir(tmp_path)
    for word in ("run", "tune"):
        assert cli.main(argv=["corpus", word, "nothere", "--only", "x"]) == 2
        said = capsys.readouterr().err
        assert "there is no corpus at nothere; `dynamometer corpus record SUITE" in said


def test_a_failed_import_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong is said once, and no empty corpus is left."""
    junk = tmp_path / "junk"
    junk.write_text("no archive")
    assert cli.main(argv=["corpus", "import", "-o", str(tmp_path / "new"), str(junk)]) == 2
    said = capsys.readouterr().err
    assert "it is no tar archive. `dynamometer corpus export` writes such" in said
    assert "ReadError" not in said
    assert not (tmp_path / "new").exists()
