"""`dynamometer compare` of tags, branches and commits: which run is taken, and what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest
from simulated_runs import KNOWN
from test_history_command import said

from dynamometer.results.store import store
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import StopReason

if TYPE_CHECKING:
    from pathlib import Path

_AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ann"), ("EMAIL", "a@b"), ("DATE", "2026-01-01T00:00:00Z"))
}


def git(folder: Path, *words: str) -> str:
    """Ask git."""
    done = subprocess.run(
        ["git", "-C", folder, *words],
        env={**os.environ, **_AUTHOR, "GIT_CONFIG_GLOBAL": os.devnull},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


@dataclass(frozen=True)
class Repository:
    """A repository of some commits in a row, beside a folder of runs."""

    folder: Path
    commits: tuple[str, ...]

    @property
    def runs(self) -> Path:
        """Where runs are."""
        return self.folder.parent / "runs"

    def make(self, name: str, commit: str | None, day: int = 1, *, replicates: int = 3) -> Path:
        """Make a run on a commit; with fewer than three replicates it is unfinished."""
        plan = factories.plan(factories.model_spec("alexnet"))
        manifest = factories.manifest(
            plan,
            run_id=name,
            created_at=f"2026-01-{day:02}T00:00:00+00:00",
            environment=factories.environment(git=commit),
            between_sd=KNOWN,
        )
        store.create(self.runs / name, manifest)
        with store.RunStore(self.runs / name) as events:
            for replicate in range(replicates):
                record = factories.measured_record(
                    plan.cases[0], replicate=replicate, seconds={BASELINE: 0.015, "inductor": 0.010}
                )
                events.append(
                    msgspec.structs.replace(
                        record,
                        run_id=name,
                        stopped=StopReason.REPLICATES if replicate == 2 else None,
                        between_sd=KNOWN,
                    )
                )
        return self.runs / name


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Make one with six commits, and go there."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for number in range(6):
        git(folder, "commit", "--quiet", "--allow-empty", "-m", f"change {number}")
    commits = git(folder, "rev-list", "--reverse", "HEAD").split()
    git(folder, "tag", "-a", "-m", "first", "v1.0", commits[0])
    git(folder, "branch", "feature/fast", commits[2])
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    return Repository(folder, tuple(commits))


def compared(
    repository: Repository, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0
) -> str:
    """Compare, and return all that is printed."""
    return said(capsys, "compare", *words, "--output-dir", repository.runs, code=code)


def test_tags_branches_and_commits(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that git takes for a commit; an annotated tag is that of its commit."""
    first, last = repository.commits[0], repository.commits[-1]
    old = repository.make("old", first[:12], 1)
    new = repository.make("new", last[:12], 2)
    for words in (("v1.0", "main"), (first, last[:7]), ("HEAD~5", "HEAD"), ("v1.0^{}", "new")):
        found = compared(repository, capsys, *words)
        assert f"before: {old} of " in found
        assert str(new) in found or f"after:  {repository.runs / 'new'}" in found
    assert f"v1.0: commit {first[:12]}, {old} of 2026-01-01 00:00\n" in compared(
        repository, capsys, "v1.0", "main"
    )
    repository.make("branch", repository.commits[2][:12], 3)
    assert f"feature/fast: commit {repository.commits[2][:12]}" in compared(
        repository, capsys, "feature/fast", "main"
    )


def test_the_newest_finished_run(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which that is is said; one that is unfinished is not taken, nor one with changes."""
    commit = repository.commits[0][:12]
    repository.make("a", commit, 1)
    taken = repository.make("b", commit, 2)
    repository.make("c", commit, 3, replicates=1)
    repository.make("d", f"{commit}-dirty", 4)
    repository.make("e", repository.commits[1][:12], 5)
    found = compared(repository, capsys, "v1.0", "HEAD~4")
    assert f"{taken} of 2026-01-02 00:00, the newest finished one of 3 runs\n" in found


def test_names_of_runs_and_paths_come_first(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """No index is made for these."""
    repository.make("main", repository.commits[0][:12], 1)
    repository.make("other", repository.commits[1][:12], 2)
    found = compared(repository, capsys, "main", "other")
    assert "commit " not in found.partition("\n")[0]
    assert not list(repository.runs.glob("index.sqlite*"))
    repository.make("of main", repository.commits[-1][:12], 2)
    found = compared(repository, capsys, "refs/heads/main", "other")
    assert f"before: {repository.runs / 'of main'} of" in found


def test_a_commit_without_runs(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that have some are named, the nearest first; and what there is and is not taken."""
    commits = [each[:12] for each in repository.commits]
    repository.make("a", commits[0], 1)
    repository.make("f", commits[5], 2)
    repository.make("other", "123456789abc", 3)
    found = compared(repository, capsys, "HEAD~4", "main", code=2)
    assert f"no finished run was made on the commit {commits[1]} (HEAD~4)" in found
    assert (
        f"the nearest with runs: {commits[0]} (1 commit away), {commits[5]} (4 commits away)\n"
        in found
    )
    repository.make("b", f"{commits[1]}-dirty", 4)
    repository.make("c", commits[1], 5, replicates=1)
    found = compared(repository, capsys, commits[1], "main", code=2)
    assert f"[{repository.runs}/c: interrupted, 0 of 1; {repository.runs}/b: the checkout" in found


def test_runs_of_another_repository(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said what commits runs know."""
    assert "nor was any on another commit" in _of_none(repository, capsys)
    repository.make("other", "123456789abc", 3)
    found = _of_none(repository, capsys)
    assert "that of its dynamometer" in found
    assert "the latest with runs: 123456789abc (run of 2026-01-03)" in found


def _of_none(repository: Repository, capsys: pytest.CaptureFixture[str]) -> str:
    repository.runs.mkdir(exist_ok=True)
    return compared(repository, capsys, "main", "v1.0", code=2)


def test_what_is_ambiguous(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A tag and a branch of one name, unless they are of one commit."""
    first, second, *_ = (each[:12] for each in repository.commits)
    old = repository.make("a", first, 1)
    repository.make("b", second, 2)
    git(repository.folder, "branch", "v1.0", first)
    assert f"before: {old} of" in compared(repository, capsys, "v1.0", second)
    git(repository.folder, "branch", "--force", "v1.0", second)
    found = compared(repository, capsys, "v1.0", second, code=2)
    assert f"refs/heads/v1.0 ({second}), refs/tags/v1.0 ({first})" in found
    assert f"before: {old} of" in compared(repository, capsys, "refs/tags/v1.0", second)


def test_the_beginning_of_several_commits(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four digits of a few hundred are."""
    tree = git(repository.folder, "rev-parse", "HEAD^{tree}")
    by_start: dict[str, list[str]] = {}
    for number in range(4000):
        commit = git(repository.folder, "commit-tree", tree, "-m", str(number))
        found = by_start.setdefault(commit[:4], [])
        found.append(commit[:12])
        if len(found) > 1:
            break
    else:
        pytest.fail("no two begin alike")
    said_of = compared(repository, capsys, found[0][:4], "main", code=2)
    assert (
        f"{found[0][:4]} is the beginning of several commits: {', '.join(sorted(found))}" in said_of
    )


def test_without_a_repository(
    repository: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beginnings of commits are looked up in the index alone; so they are without git."""
    one = repository.make("a", "abcd01234567", 1)
    repository.make("b", "abcd11234567", 2)
    repository.make("c", "ef0001234567-dirty", 3)
    for step in ("no repository", "no git"):
        if step == "no git":
            monkeypatch.setenv("PATH", str(repository.folder / "nothing"))
        else:
            shutil.rmtree(repository.folder / ".git")
        assert f"before: {one} of" in compared(repository, capsys, "abcd0", "abcd1")
        found = compared(repository, capsys, "abcd", "abcd1", code=2)
        assert "abcd is the beginning of several commits: abcd01234567, abcd11234567" in found
        found = compared(repository, capsys, "ffff", "abcd1", code=2)
        assert "commit ffff; the latest with runs: abcd11234567 (run of 2026-01-02), abcd0" in found
        found = compared(repository, capsys, "ef00", "abcd1", code=2)
        assert f"[{repository.runs}/c: the checkout had changes]" in found
        for word in ("main", "abc", "ABCD0", "-x"):
            where = ("--output-dir", repository.runs, "--", word, "abcd1")
            found = said(capsys, "compare", *where, code=2)
            assert "git knows no such tag, branch or commit here (" in found
            assert ("not a git repository" in found) == (step == "no repository")


def test_runs_elsewhere(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of all folders that the index knows; of what a file brought only rows are known."""
    repository.make("a", repository.commits[0][:12], 1)
    repository.make("b", repository.commits[5][:12], 2)
    index, file = repository.folder.parent / "index", repository.folder.parent / "file.parquet"
    said(capsys, "index", "--output-dir", repository.runs, "--index", index, "--parquet", file)
    words = ("compare", "v1.0", "main", "--output-dir", repository.folder)
    assert f"before: {repository.runs / 'a'} of" in said(capsys, *words, "--index", index)
    alone = repository.folder.parent / "alone"
    said(capsys, "index", "--output-dir", alone, "--from-parquet", file)
    found = said(capsys, "compare", "v1.0", "main", "--output-dir", alone, code=2)
    assert "[a: its rows are from a file, without its records]" in found


def test_a_run_that_can_not_be_read(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told once, and the one before it is taken."""
    one = repository.make("a", repository.commits[0][:12], 1)
    damaged = repository.make("b", repository.commits[0][:12], 2)
    repository.make("c", repository.commits[5][:12], 3)
    (damaged / store.EVENTS).write_text("{}\n")
    found = compared(repository, capsys, "v1.0", "main")
    assert f"before: {one} of" in found
    assert found.count("left out: ") == 1
