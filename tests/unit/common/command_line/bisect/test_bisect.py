"""`dynamometer bisect` over repositories made here, with a command that makes runs up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec
import pytest
from made_up_run import measuring_at

from dynamometer.common.command_line import cli
from dynamometer.common.command_line.bisect import command
from dynamometer.common.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[4]
TRUE = "true.json"


def git(folder: Path, *words: str, given: str | None = None) -> str:
    """Ask git about a repository of its own, whatever is set for its user."""
    command = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@b", *words]
    return subprocess.run(
        command, input=given, capture_output=True, text=True, check=True
    ).stdout.strip()


def repository(folder: Path, truths: Sequence[Mapping[str, object]], subject: str = "step") -> Path:
    """Make a repository with a commit for each of what is true."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    lines = []
    for number, each in enumerate(truths):
        text = json.dumps({"seed": number, **each})
        words = f"{subject} {number}"
        lines += [
            "commit refs/heads/main", f"committer A <a@b> {1700000000 + number} +0000",
            f"data {len(words.encode())}", words, f"M 644 inline {TRUE}",
            f"data {len(text)}", text, "",
        ]  # fmt: skip
    git(folder, "fast-import", "--quiet", given="\n".join(lines) + "\n")
    git(folder, "checkout", "--quiet", "--force", "main")
    return folder


@pytest.fixture
def bisect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., tuple[int, str]]]:
    """Run the command over a repository, and return its exit code and what it says."""

    def call(folder: Path, *words: object, state: str = "state") -> tuple[int, str]:
        measure = [sys.executable, "-ISs", HERE / "ask_for_run.py", address, folder / TRUE]
        capsys.readouterr()
        state_words = ["--state", tmp_path / state]
        code = cli.main(
            None, [str(each) for each in ("bisect", *words, *state_words, "--", *measure)]
        )
        said = capsys.readouterr()
        return code, said.out + said.err

    with TemporaryDirectory() as short:  # the name of a socket has 107 bytes at most
        address = Path(short, "socket")
        with measuring_at(address):
            yield call


def ends(folder: Path, branch: str = "main") -> list[object]:
    """Search from the first commit to the last."""
    first = git(folder, "rev-list", "--max-parents=0", branch)
    return ["--repo", folder, "--good", first, "--bad", branch]


def slower_from(first: int, count: int) -> list[dict[str, object]]:
    """Return that a model is 5 % slower from some commit on."""
    return [{"slower": 1.05 if number >= first else 1.0} for number in range(count)]


@pytest.mark.parametrize(
    ("first", "count"),
    [(1, 4), pytest.param(37, 64, marks=pytest.mark.slow), (3, 4), (1, 2)],
)
def test_the_first_slower_commit(
    tmp_path: Path, bisect: Callable[..., tuple[int, str]], first: int, count: int
) -> None:
    """At either end or between; the branch that was checked out is so again."""
    folder = repository(tmp_path / "repository", slower_from(first, count))
    code, said = bisect(folder, *ends(folder))
    assert code == 0
    assert "watched: model_00 inductor: speedup was" in said
    head, _, last = said.strip().rpartition("\n")
    assert head.endswith("the first bad one (wrong with p 0.05, about, at most):")
    assert last.endswith(f"step {first}")
    assert git(folder, "rev-parse", "--abbrev-ref", "HEAD") == "main"


def test_it_goes_on_where_it_was(tmp_path: Path, bisect: Callable[..., tuple[int, str]]) -> None:
    """What was measured is not measured again: nothing is switched to any more."""
    folder = repository(tmp_path / "repository", slower_from(5, 9))
    _, said = bisect(folder, *ends(folder), "--build", "echo built >> ../builds")
    builds = (tmp_path / "builds").read_text()
    assert bisect(folder, *ends(folder), "--build", "echo built >> ../builds")[1] == said
    assert (tmp_path / "builds").read_text() == builds


@pytest.mark.slow
def test_a_commit_that_fails(tmp_path: Path, bisect: Callable[..., tuple[int, str]]) -> None:
    """From which on it no longer passes."""
    truths = [{"fails": number >= 6} for number in range(9)]
    folder = repository(tmp_path / "repository", truths)
    _, said = bisect(folder, *ends(folder))
    assert "model_00 inductor: pass became fail_accuracy" in said
    assert said.strip().endswith("step 6")


def test_what_has_no_replicates_is_run_again_without(
    tmp_path: Path, bisect: Callable[..., tuple[int, str]]
) -> None:
    """As `-r` is refused there, and one run says too little of how an arm ends."""
    truths = [{"fails": number >= 2, "study": "graphs"} for number in range(4)]
    folder = repository(tmp_path / "repository", truths)
    code, said = bisect(folder, *ends(folder))
    assert code == 0
    assert "pass became fail_accuracy" in said
    assert said.strip().endswith("step 2")


@pytest.mark.slow
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
    assert bisect(folder, *ends(folder))[1].replace("attempt-2", "attempt-1") == said


@pytest.mark.slow
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


@pytest.mark.slow
def test_ends_that_do_not_differ(tmp_path: Path, bisect: Callable[..., tuple[int, str]]) -> None:
    """There is nothing to search for, which is said after as many replicates as are made."""
    folder = repository(tmp_path / "repository", slower_from(9, 4))
    code, said = bisect(folder, *ends(folder))
    assert code == 2
    assert "is not worse than" in said


def test_names_that_look_alike(tmp_path: Path, bisect: Callable[..., tuple[int, str]]) -> None:
    """Each has runs of its own, and none leaves the folder of the search."""
    folder = tmp_path / "versions"
    (folder / "a").mkdir(parents=True)
    for number, name in enumerate(["a_b", "a/b", "z"]):
        true = {"seed": number, "slower": 1.08 if number >= 1 else 1.0}
        (folder / name).write_text(json.dumps(true))
    switch = f"cp {folder}/{{}} {folder}/{TRUE}"
    _, said = bisect(folder, "--among", "a_b,a/b,z", "--switch", switch)
    assert said.strip().endswith("  a/b")


def test_whatever_a_subject_holds(tmp_path: Path, bisect: Callable[..., tuple[int, str]]) -> None:
    """Lines of other alphabets, and what a terminal would obey."""
    folder = repository(tmp_path / "repository", slower_from(2, 4), "a\u2028b\x1b[2J\rc")
    code, said = bisect(folder, *ends(folder))
    assert (code, "\x1b" in said) == (0, False)
    assert said.strip().endswith("c 2")


def test_a_build_may_change_files(tmp_path: Path, bisect: Callable[..., tuple[int, str]]) -> None:
    """Of the repository: these are as they were at the next commit, and at the end."""
    folder = repository(tmp_path / "repository", slower_from(3, 6))
    code, said = bisect(folder, *ends(folder), "--build", f"echo ' ' >> {TRUE}")
    assert (code, said.strip()[-6:]) == (0, "step 3")
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "symbolic-ref", "--short", "HEAD") == "main"


def test_a_file_in_the_way(tmp_path: Path, bisect: Callable[..., tuple[int, str]]) -> None:
    """Is no commit's, so it stays; what git says of it is told."""
    folder = repository(tmp_path / "repository", slower_from(3, 6))
    git(folder, "rm", "--quiet", TRUE)
    git(folder, "commit", "--quiet", "-m", "gone")
    (folder / TRUE).write_text("mine")
    code, said = bisect(folder, "--repo", folder, "--good", "main~6", "--bad", "main~1")
    assert (code, (folder / TRUE).read_text()) == (2, "mine")
    assert f"overwritten by checkout: {TRUE}" in said


@pytest.mark.slow
def test_what_was_checked_out_is_so_again(
    tmp_path: Path, bisect: Callable[..., tuple[int, str]]
) -> None:
    """A commit, too; and after a search that was killed and goes on."""
    folder = repository(tmp_path / "repository", slower_from(3, 6))
    git(folder, "tag", "main", "main~1")
    words = ["--repo", folder, "--good", "refs/heads/main~5", "--bad", "refs/heads/main"]
    bisect(folder, *words)
    assert git(folder, "symbolic-ref", "HEAD") == "refs/heads/main"
    git(folder, "checkout", "--quiet", "--detach", "refs/heads/main~2")
    bisect(folder, *words)  # as after kill -9: the state says where it began
    assert git(folder, "symbolic-ref", "HEAD") == "refs/heads/main"
    git(folder, "checkout", "--quiet", "--detach", "refs/heads/main~2")
    before = git(folder, "rev-parse", "HEAD")
    bisect(folder, *words, state="other")
    assert git(folder, "rev-parse", "HEAD") == before


def test_a_branch_that_was_checked_out_since_stays(
    tmp_path: Path, bisect: Callable[..., tuple[int, str]]
) -> None:
    """Where the last call ended in order, and so did check out again what it had found."""
    folder = repository(tmp_path / "repository", slower_from(2, 3))
    bisect(folder, *ends(folder))
    git(folder, "switch", "--quiet", "-c", "other")
    git(folder, "branch", "-m", "main", "trunk")
    _, said = bisect(folder, *ends(folder, "trunk"))
    assert "not checked out" not in said
    assert git(folder, "symbolic-ref", "--short", "HEAD") == "other"


def test_a_good_commit_that_was_merged_in(
    tmp_path: Path, bisect: Callable[..., tuple[int, str]]
) -> None:
    """Commits of the main line before that merge don't contain it: they may well be bad."""
    folder = repository(tmp_path / "repository", slower_from(2, 4))
    git(folder, "switch", "--quiet", "-c", "release", "main~2")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "mended")
    git(folder, "switch", "--quiet", "main")
    git(folder, "merge", "--quiet", "--no-ff", "-m", "merged", "release")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "later")
    merge = git(folder, "rev-parse", "main~1")
    code, said = bisect(folder, "--repo", folder, "--good", "release", "--bad", "main")
    assert code == 2
    assert f"release came into main by the merge {merge[:12]}" in said
    assert f"--good {merge[:12]}" in said


def test_a_run_that_was_cut_off_is_made_again(
    tmp_path: Path, bisect: Callable[..., tuple[int, str]]
) -> None:
    """One that lacks replicates is no result."""
    truths = slower_from(2, 4)
    truths[1]["keeps"] = 1
    folder = repository(tmp_path / "repository", truths)
    _, said = bisect(folder, *ends(folder))
    assert "step 1: untestable; it left no result" in said


@pytest.mark.slow
def test_stopped_in_a_build(tmp_path: Path) -> None:
    """It ends, the branch is checked out again, and it is said how to go on."""
    folder = repository(tmp_path / "repository", slower_from(2, 4))
    build = f"echo $$ > {tmp_path}/building; sleep 1000; true"
    words = ["bisect", *ends(folder), "--build", build, "--state", tmp_path / "state", "--", "true"]
    process = subprocess.Popen(
        [sys.executable, "-m", "dynamometer", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while not (tmp_path / "building").exists() or not (tmp_path / "building").read_text():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate()
    assert (process.returncode, "the same command goes on" in said) == (143, True)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "building").read_text()), 0)
    assert git(folder, "symbolic-ref", "--short", "HEAD") == "main"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "--good COMMIT --bad COMMIT"),
        (["--good", "main", "--bad", "no-such"], "there is no commit 'no-such' in"),
        (["--good", "v1", "--bad", "main"], "(--good)"),
        (["--good", "main", "--bad", "main~2"], "--good is the older one"),
        (["--good", "main", "--bad", "main"], "are one commit"),
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
    code, said = bisect(folder, *ends(folder), "--build", "true")
    assert (code, "holds another search" in said) == (2, True)
    assert "ask_for_run.py" in said
    (tmp_path / "state" / "search.json").write_bytes(b"\xff")
    code, said = bisect(folder, *ends(folder))
    assert (code, "search.json" in said) == (2, True)


def test_a_command_that_was_mistyped_blocks_none(tmp_path: Path) -> None:
    """Where nothing was measured, another search begins in the same folder."""
    found = command.Searched(
        command=("wrong",), points=("a", "b"), repository="r", build=None, switch=None, at="branch"
    )
    right = msgspec.structs.replace(found, command=("right",), at="0123")
    with command._kept(tmp_path, found) as known:
        assert known == found
    with command._kept(tmp_path, right) as known:
        assert known == msgspec.structs.replace(right, at="branch")
    run = tmp_path / "0000" / "run-1" / "attempt-1" / "a-run"
    run.mkdir(parents=True)
    (run / "manifest.json").touch()
    with pytest.raises(UsageError, match="holds another search, with `right`"):
        command._kept(tmp_path, found).__enter__()
