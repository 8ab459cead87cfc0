"""Whether a run would go on with what it began with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from dynamometer.common.command_line import cli
from dynamometer.common.planning.identity import changes, sources_of
from dynamometer.models.suites.user_models import SUITE
from dynamometer.results.store import store

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


def test_what_has_changed_is_named(folder: Path) -> None:
    """Each file, and how."""
    sources = sources_of(SUITE.measured_files({"target": str(folder / "mine.py")}))
    assert changes(sources) == []
    (folder / "other.py").write_text("x = 1")
    assert changes(sources) == []
    (folder / "far.py").write_text("x = 1")
    (folder / "near.py").unlink()
    assert changes(sources) == [
        f"{folder / 'far.py'} has changed", f"{folder / 'near.py'} is gone",
    ]  # fmt: skip


def test_a_run_is_not_gone_on_with_another_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Old and new results would stand in one table."""
    monkeypatch.chdir(folder)
    notes: list[str] = []

    def keep(manifest: object, directory: object, asked: object, given: Sequence[str] = ()) -> int:
        notes.extend(given)
        return 0

    monkeypatch.setattr(cli, "_execute", keep)
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


def test_a_run_from_before_files_were_known_is_gone_on_with(folder: Path) -> None:
    """Nothing is said of what nothing is known of."""
    assert changes(msgspec.json.decode(b"{}", type=dict[str, str])) == []
