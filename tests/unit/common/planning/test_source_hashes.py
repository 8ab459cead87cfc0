"""Whether a run would go on with what it began with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

from dynamometer.common import registry
from dynamometer.common.command_line import begin, cli
from dynamometer.common.planning.source_hashes import changed_files, hashes_of
from dynamometer.models.suites.user_models import SUITE
from dynamometer.results.store import store
from dynamometer.results.store.graphs import corpus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FILES = {
    "mine.py": "import near, torch\nfrom package.inner import thing\n\ndef model(): ...\n",
    "near.py": "def f():\n    import far\n",
    "far.py": "import near\n",
    "package/__init__.py": "from . import beside\n",
    "package/inner.py": "thing = 1\n",
    "package/beside.py": "",
    "package/unused.py": "",
    "other.py": "",
}
RUN_WITH_MINE = [
    "far.py", "mine.py", "near.py", "package/__init__.py", "package/beside.py", "package/inner.py",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file of models and others beside it."""
    (tmp_path / "package").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def files(folder: Path, target: str) -> list[str]:
    """Name the files that are measured with a target."""
    found = SUITE.measured_files({"target": str(folder / target)})
    return [str(path.relative_to(folder)) for path in found]


def test_what_a_file_imports_of_its_folder_is_measured_with_it(folder: Path) -> None:
    """In functions as well, and what that imports; not what lies there besides."""
    assert files(folder, "mine.py::model") == RUN_WITH_MINE
    assert files(folder, "saved.pt2") == ["saved.pt2"]
    assert SUITE.measured_files({"target": "hub:some/model"}) == ()
    target = f"hub:{folder / 'package'}"
    found = SUITE.measured_files({"target": target})
    assert [each.name for each in found] == ["__init__.py", "beside.py", "inner.py", "unused.py"]


def test_what_python_finds_elsewhere_is_measured_as_well(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a package that is installed to be edited; what is installed for good is not."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for name in ("src/edited_pkg/__init__.py", "site-packages/installed_pkg/__init__.py"):
        (elsewhere / name).parent.mkdir(parents=True)
        (elsewhere / name).write_text("import edited_pkg.inner\n")
    (elsewhere / "src/edited_pkg/inner.py").touch()
    monkeypatch.syspath_prepend(str(elsewhere / "src"))
    monkeypatch.syspath_prepend(str(elsewhere / "site-packages"))
    (folder / "other.py").write_text("import installed_pkg\nfrom edited_pkg import Net\n")
    found = SUITE.measured_files({"target": str(folder / "other.py")})
    inside = elsewhere / "src" / "edited_pkg"
    assert sorted(found) == sorted(
        [folder / "other.py", inside / "__init__.py", inside / "inner.py"]
    )


def test_too_many_dots_name_nothing(folder: Path) -> None:
    """Python itself refuses them as it runs the file."""
    (folder / "other.py").write_text(f"from {'.' * 99} import x\n")
    assert files(folder, "other.py") == ["other.py"]


def test_of_a_large_neighbour_the_folder_is_named(folder: Path) -> None:
    """To look into each file of torch's checkout would take seconds; all are still watched."""
    large = folder / "large"
    large.mkdir()
    names = [f"part{number}" for number in range(300)]
    (large / "__init__.py").write_text("".join(f"from . import {name}\n" for name in names))
    for name in names:
        (large / f"{name}.py").touch()
    (folder / "other.py").write_text("import large\n")
    assert files(folder, "other.py") == ["large", "other.py"]
    measured = SUITE.measured_files({"target": str(folder / "other.py")})
    sources = hashes_of(measured)
    assert changed_files(sources, measured) == []
    (large / "part7.py").write_text("x = 1")
    assert changed_files(sources, measured) == [f"{large} has changed"]


def test_a_checkout_and_a_corpus_are_measured(tmp_path: Path) -> None:
    """A `git pull`, or a graph that is recorded anew, would be mixed with what was before."""
    root = {"torchbench_root": str(tmp_path)}
    assert registry.suite("torchbench").measured_files({}) == ()
    assert registry.suite("torchbench").measured_files(root) == (tmp_path / "torchbenchmark",)
    graph = {"target": str(tmp_path / f"a{corpus.SUFFIX}")}
    assert registry.suite("corpus").measured_files(graph) == (tmp_path / f"a{corpus.SUFFIX}",)
    kept = corpus.Corpus.made(tmp_path / "kept")
    kept.path("a" * 64).parent.mkdir(parents=True, exist_ok=True)
    kept.path("a" * 64).touch()
    found = registry.suite("corpus").measured_files({"target": str(tmp_path / "kept")})
    assert found == (kept.path("a" * 64),)


def test_a_new_file_is_named(folder: Path) -> None:
    """One that was looked for, and is there now; not a graph beside those of the run."""
    target = {"target": str(folder / "mine.py")}
    sources = hashes_of(SUITE.measured_files(target))
    (folder / "torch.py").touch()
    measured = (*SUITE.measured_files(target), folder / "new.pt2")
    (folder / "new.pt2").touch()
    assert changed_files(sources, measured) == [f"{folder / 'torch.py'} is new"]


def test_what_has_changed_is_named(folder: Path) -> None:
    """Each file, and how."""
    sources = hashes_of(SUITE.measured_files({"target": str(folder / "mine.py")}))
    assert changed_files(sources, ()) == []
    (folder / "other.py").write_text("x = 1")
    assert changed_files(sources, ()) == []
    (folder / "far.py").write_text("x = 1")
    (folder / "near.py").unlink()
    assert changed_files(sources, ()) == [
        f"{folder / 'far.py'} has changed", f"{folder / 'near.py'} is gone",
    ]  # fmt: skip


def test_a_run_is_not_gone_on_with_another_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Old and new results would stand in one table."""
    monkeypatch.chdir(folder)
    notes: list[str] = []

    def keep(
        manifest: object, directory: object, asked: object, given: Sequence[str] = (), **_: object
    ) -> int:
        notes.extend(given)
        return 0

    monkeypatch.setattr(begin, "execute", keep)
    assert cli.main(None, ["run", "mine.py", "--accuracy"]) == 0
    (directory,) = (folder / "runs").iterdir()
    assert len(store.read_manifest(directory).sources) == len(RUN_WITH_MINE)
    assert cli.main(None, ["resume", str(directory)]) == 0
    (folder / "near.py").write_text("x = 1")
    assert cli.main(None, ["resume", str(directory)]) == 4
    assert f"{folder / 'near.py'} has changed" in capsys.readouterr().err
    assert notes == []
    assert cli.main(None, ["resume", str(directory), "--anyway"]) == 0
    assert notes == [f"resumed though {folder / 'near.py'} has changed"]
    (folder / "mine.py").unlink()
    capsys.readouterr()
    assert cli.main(None, ["resume", str(directory), "--anyway"]) == 4
    told = capsys.readouterr().err
    assert f"{folder / 'mine.py'} is gone" in told
    assert "--anyway" not in told


def test_a_run_from_before_files_were_known_is_gone_on_with(folder: Path) -> None:
    """Nothing is said of what nothing is known of."""
    store.create(folder / "run", factories.manifest())
    path = folder / "run" / store.MANIFEST
    stored = msgspec.json.decode(path.read_bytes())
    del stored["sources"]
    path.write_bytes(msgspec.json.encode(stored))
    sources = store.read_manifest(folder / "run").sources
    assert changed_files(sources, [folder / "mine.py"]) == []


def test_a_file_whose_name_is_not_utf_8_is_known_again(tmp_path: Path) -> None:
    """By a name that a manifest can hold."""
    odd = tmp_path / "bad\udcff.py"
    odd.write_text("x = 1")
    known = msgspec.json.decode(msgspec.json.encode(hashes_of([odd])), type=dict[str, str])
    assert changed_files(known, [odd]) == []
    odd.write_text("x = 2")
    assert changed_files(known, [odd]) == [f"{tmp_path}/bad\\udcff.py has changed"]
