"""`dynamometer bisect` over repositories made here, with a command that makes runs up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dynamometer.common.command_line import cli

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[4]
TRUE = "true.json"


def git(folder: Path, *words: str, given: str | None = None) -> str:
    """Ask git about a repository of its own, whatever is set for its user."""
    command = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@b", *words]
    return subprocess.run(
        command, input=given, capture_output=True, text=True, check=True
    ).stdout.strip()


def repository(folder: Path, truths: Sequence[Mapping[str, object]]) -> Path:
    """Make a repository with a commit for each of what is true."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    lines = []
    for number, each in enumerate(truths):
        text = json.dumps({"seed": number, **each})
        lines += [
            "commit refs/heads/main", f"committer A <a@b> {1700000000 + number} +0000",
            f"data {len(f'step {number}')}", f"step {number}", f"M 644 inline {TRUE}",
            f"data {len(text)}", text, "",
        ]  # fmt: skip
    git(folder, "fast-import", "--quiet", given="\n".join(lines) + "\n")
    git(folder, "checkout", "--quiet", "--force", "main")
    return folder


@pytest.fixture
def bisect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str]]:
    """Run the command over a repository, and return its exit code and what it says."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'tests'}:{ROOT}")

    def call(folder: Path, *words: object, state: str = "state") -> tuple[int, str]:
        measure = [sys.executable, HERE / "made_up_run.py", folder / TRUE]
        capsys.readouterr()
        state_words = ["--state", tmp_path / state]
        code = cli.main(
            None, [str(each) for each in ("bisect", *words, *state_words, "--", *measure)]
        )
        said = capsys.readouterr()
        return code, said.out + said.err

    return call


def ends(folder: Path) -> list[object]:
    """Search from the first commit to the last."""
    first = git(folder, "rev-list", "--max-parents=0", "main")
    return ["--repo", folder, "--good", first, "--bad", "main"]


def slower_from(first: int, count: int) -> list[dict[str, object]]:
    """Return that a model is 5 % slower from some commit on."""
    return [{"slower": 1.05 if number >= first else 1.0} for number in range(count)]


@pytest.mark.parametrize("first", [1, 37, 63])
def test_the_first_slower_commit(
    tmp_path: Path, bisect: Callable[..., tuple[int, str]], first: int
) -> None:
    """Of 64, at either end or between; the branch that was checked out is so again."""
    folder = repository(tmp_path / "repository", slower_from(first, 64))
    code, said = bisect(folder, *ends(folder))
    assert code == 0
    assert "watched: model_00 inductor: speedup was" in said
    head, _, last = said.strip().rpartition("\n")
    assert head.endswith("the first bad one (wrong with p 0.05 at most):")
    assert last.endswith(f"step {first}")
    assert git(folder, "rev-parse", "--abbrev-ref", "HEAD") == "main"


def test_it_goes_on_where_it_was(tmp_path: Path, bisect: Callable[..., tuple[int, str]]) -> None:
    """What was measured is not measured again: nothing is switched to any more."""
    folder = repository(tmp_path / "repository", slower_from(5, 9))
    _, said = bisect(folder, *ends(folder), "--build", "echo built >> ../builds")
    builds = (tmp_path / "builds").read_text()
    assert bisect(folder, *ends(folder), "--build", "echo built >> ../builds")[1] == said
    assert (tmp_path / "builds").read_text() == builds


def test_a_commit_that_fails(tmp_path: Path, bisect: Callable[..., tuple[int, str]]) -> None:
    """From which on it no longer passes."""
    truths = [{"fails": number >= 6} for number in range(9)]
    folder = repository(tmp_path / "repository", truths)
    _, said = bisect(folder, *ends(folder))
    assert "model_00 inductor: pass became fail_accuracy" in said
    assert said.strip().endswith("step 6")


def test_commits_that_cant_be_measured_are_passed_over(
    tmp_path: Path, bisect: Callable[..., tuple[int, str]]
) -> None:
    """Those beside them are; where the first bad one may be among them, all are named."""
    truths = slower_from(4, 9)
    for number in (3, 4):
        truths[number]["exit"] = 3
    folder = repository(tmp_path / "repository", truths)
    _, said = bisect(folder, *ends(folder))
    assert "untestable; it left no result: exit code 3" in said
    assert "one of these is the first bad one" in said
    assert [line.split()[-1] for line in said.strip().splitlines()[-3:]] == ["3", "4", "5"]


def test_what_does_not_build(tmp_path: Path, bisect: Callable[..., tuple[int, str]]) -> None:
    """Is passed over as well, and the log says why."""
    folder = repository(tmp_path / "repository", slower_from(6, 9))
    build = f"grep -q '\"seed\": 4' {TRUE} && exit 7 || exit 0"
    _, said = bisect(folder, *ends(folder), "--build", build)
    assert "it can't be built: exit code 7" in said
    assert said.strip().endswith("step 6")


def test_versions_of_a_package(tmp_path: Path, bisect: Callable[..., tuple[int, str]]) -> None:
    """Or whatever else has names and a command that switches."""
    folder = tmp_path / "versions"
    folder.mkdir()
    for number, name in enumerate(["2.9", "2.10", "2.11", "2.12"]):
        true = {"seed": number, "slower": 1.08 if number >= 2 else 1.0}
        (folder / name).write_text(json.dumps(true))
    switch = f"cp {folder}/{{}} {folder}/{TRUE}"
    code, said = bisect(folder, "--among", "2.9, 2.10,2.11,2.12", "--switch", switch)
    assert code == 0
    assert said.strip().endswith("  2.11")


def test_ends_that_do_not_differ(tmp_path: Path, bisect: Callable[..., tuple[int, str]]) -> None:
    """There is nothing to search for, which is said after as many replicates as are made."""
    folder = repository(tmp_path / "repository", slower_from(9, 4))
    code, said = bisect(folder, *ends(folder))
    assert code == 2
    assert "is not worse than" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "--good COMMIT --bad COMMIT"),
        (["--good", "main", "--bad", "no-such"], "git rev-parse"),
        (["--good", "main", "--bad", "main~2"], "is no ancestor"),
        (["--good", "main~2", "--bad", "main", "--switch", "x {}"], "goes with --among"),
        (["--among", "a", "--switch", "x {}"], "two names or more"),
        (["--among", "a,b"], "--switch COMMAND"),
        (["--among", "a,b", "--switch", "x"], "with {} for the name"),
        (["--among", "a,b", "--good", "a", "--switch", "x {}"], "leave out"),
        (["--repo", ROOT, "--good", "HEAD~1", "--bad", "HEAD"], "that is running"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, bisect: Callable[..., tuple[int, str]], words: list[object], says: str
) -> None:
    """Before anything is switched or measured."""
    folder = repository(tmp_path / "repository", slower_from(2, 4))
    place = [] if "--repo" in words else ["--repo", folder]
    code, said = bisect(folder, *place, *words)
    assert code == 2
    assert says in said
    assert not (tmp_path / "state" / "search.json").exists()


def test_changes_are_not_lost(tmp_path: Path, bisect: Callable[..., tuple[int, str]]) -> None:
    """A work tree with changes is not switched."""
    folder = repository(tmp_path / "repository", slower_from(2, 4))
    (folder / TRUE).write_text("{}")
    code, said = bisect(folder, *ends(folder))
    assert (code, (folder / TRUE).read_text()) == (2, "{}")
    assert "git stash" in said


def test_another_search_is_not_mixed(
    tmp_path: Path, bisect: Callable[..., tuple[int, str]]
) -> None:
    """With the runs of one before it in the same folder; nor with a file that is none."""
    folder = repository(tmp_path / "repository", slower_from(2, 4))
    bisect(folder, *ends(folder))
    code, said = bisect(folder, "--repo", folder, "--good", "main~2", "--bad", "main")
    assert (code, "holds another search" in said) == (2, True)
    (tmp_path / "state" / "search.json").write_bytes(b"\xff")
    code, said = bisect(folder, *ends(folder))
    assert (code, "search.json" in said) == (2, True)
