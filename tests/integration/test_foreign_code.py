"""Hostile test cases of a corpus: each is contained, and has a record of its own."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from dynamometer.common.command_line import cli
from dynamometer.results.store import store
from dynamometer.results.values.records import Record, Status

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = """
import os, resource, signal, socket, subprocess, time
from pathlib import Path
import torch
from torch import nn

def outcome(action):
    try:
        return f"succeeded with {action()!r}"
    except OSError as error:
        return f"refused: {type(error).__name__} {error.errno}"

class Base(nn.Module):
    def forward(self, x):
        raise RuntimeError(outcome(self.attack))

class Connects(Base):
    def attack(self):
        with socket.create_connection(("127.0.0.1", PORT), 5) as found:
            found.send(b"here")

class Writes(Base):
    def attack(self):
        return Path(OUTSIDE, "written").write_text("here")

class Removes(Base):
    def attack(self):
        return Path(OUTSIDE, "kept").unlink()

class WritesInItsOwn(Base):
    def attack(self):
        return Path("mine").write_text("here"), Path.home() == Path.cwd()

class FillsTheDisk(Base):
    def attack(self):
        with open("large", "wb") as file:
            for _ in range(1024):
                file.write(bytes(2**20))

class FillsTheDiskWithFiles(Base):
    def attack(self):
        for index in range(64):
            Path(f"large{index}").write_bytes(bytes(64 * 2**20))

class ChangesModes(Base):
    def attack(self):
        return os.chmod(Path(OUTSIDE, "kept"), 0o777)

class ChangesTimes(Base):
    def attack(self):
        return os.utime(Path(OUTSIDE, "kept"), (1, 1))

class KillsItsParent(Base):
    def attack(self):
        return os.kill(os.getppid(), signal.SIGKILL)

class KillsAnother(Base):
    def attack(self):
        return os.kill(VICTIM, signal.SIGKILL)

class LimitsAnother(Base):
    def attack(self):
        return resource.prlimit(VICTIM, resource.RLIMIT_NOFILE, (3, 3))

class LimitsItsParent(nn.Module):
    def forward(self, x):
        resource.prlimit(os.getppid(), resource.RLIMIT_FSIZE, (0, 0))
        os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)
        return x + 1

class KillsItself(nn.Module):
    def forward(self, x):
        os.abort()

class SharesMemory(Base):
    def attack(self):
        return Path("/dev/shm/mine").write_text("here")

class TakesMemoryInChildren(nn.Module):
    def forward(self, x):
        code = "import time; all = b'x' * (300 * 2**20); time.sleep(1000)"
        for _ in range(20):
            subprocess.Popen(["python3", "-c", code], start_new_session=True)
        time.sleep(1000)

class ReadsTheEnvironment(nn.Module):
    def forward(self, x):
        texts = [repr(dict(os.environ)), Path("/proc/self/environ").read_text()]
        for pid in (os.getppid(), VICTIM):
            texts.append(outcome(Path(f"/proc/{pid}/environ").read_text))
        raise RuntimeError("found it" if SECRET in "".join(texts) else "found nothing")

class ReportsForAnother(nn.Module):
    def forward(self, x):
        # Whatever descriptor it finds: that of the channel takes what is signed alone.
        for name in os.listdir("/proc/self/fd"):
            try:
                os.write(int(name), b'{"type":"report"}\\n')
            except OSError:
                pass
        return x + 1

class Storm(nn.Module):
    def forward(self, x):
        for _ in range(600):
            subprocess.Popen(["sleep", "1000"], start_new_session=True)
        time.sleep(1000)

class Works(nn.Module):
    def forward(self, x):
        return x + 1

X = lambda: ([torch.rand([4, 3])], {})
TESTCASES = [
NAMES
]
"""
NAMES = (
    "Connects", "Writes", "Removes", "WritesInItsOwn", "FillsTheDisk", "FillsTheDiskWithFiles",
    "ChangesModes", "ChangesTimes", "KillsItsParent", "KillsAnother", "LimitsAnother",
    "LimitsItsParent", "KillsItself", "SharesMemory", "ReadsTheEnvironment", "ReportsForAnother",
    "Storm", "TakesMemoryInChildren", "Works",
)  # fmt: skip
SECRET = "what-nobody-else-should-know"
REFUSED = {
    "Connects": ("refused: ", "network"),
    "Writes": ("refused: OSError 30|refused: PermissionError 13", "written"),
    "Removes": ("refused: OSError 30|refused: PermissionError 13", "written"),
    "WritesInItsOwn": ("succeeded with (4, True)", ""),
    "FillsTheDisk": ("refused: OSError 27", ""),
    "FillsTheDiskWithFiles": ("refused: OSError 28", "disk"),
    "ChangesModes": ("refused: OSError 30", "modes"),
    "ChangesTimes": ("refused: OSError 30", "modes"),
    "KillsItsParent": ("refused: PermissionError 1", "signalled"),
    "KillsAnother": ("refused: PermissionError 1|refused: ProcessLookupError 3", "signalled"),
    "LimitsAnother": ("refused: ProcessLookupError 3", "other processes"),
    "KillsItself": ("SIGABRT", ""),
    "SharesMemory": ("succeeded with 4", "modes"),
    "ReadsTheEnvironment": ("found nothing", "other processes"),
    "Storm": ("killed over its limit of processes", ""),
    "TakesMemoryInChildren": ("memory", ""),
}
"""What the record says of it, and the word of the note that says where it isn't so."""


def run(tmp_path: Path, **values: object) -> dict[str, Record]:
    """Run the hostile corpus, and give the records by class."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    text = HOSTILE.replace(
        "NAMES\n", "".join(f"    ({each}, lambda: ([], {{}}), X),\n" for each in NAMES)
    )
    for name, value in values.items():
        text = f"{name} = {value!r}\n{text}"
    (folder / "test_hostile.py").write_text(text)
    words = [str(folder), "-j", "1", "--timeout", "300", "--output-dir", str(tmp_path / "runs")]
    words += ["--memory-limit", "4GiB"]
    assert cli.main("parity", words) == 0
    (directory,) = (tmp_path / "runs").iterdir()
    records = store.read_records(directory)
    assert len(records) == len(NAMES)
    return {each.case.model.partition(".")[2]: each for each in records}


def notes(found: dict[str, Record]) -> str:
    """Return all that is said of what is missing."""
    return " ".join({note for each in found.values() for note in each.notes if "can be" in note})


@pytest.mark.skipif(sys.platform != "linux", reason="contained by what Linux offers")
def test_each_is_contained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network call, writing, filling the disk, signals, secrets, a storm of processes."""
    monkeypatch.setenv("A_SECRET", SECRET)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    victim = subprocess.Popen(["sleep", "3000"])
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(0)
            port = server.getsockname()[1]
            found = run(tmp_path, PORT=port, OUTSIDE=str(outside), VICTIM=victim.pid, SECRET=SECRET)
            if "network" not in notes(found):
                with pytest.raises(BlockingIOError):
                    server.accept()
        assert victim.poll() is None or "signalled" in notes(found)
    finally:
        victim.kill()
        victim.wait()
    # Of an older kernel, or one that permits less, it is said what is missing.
    missing = notes(found)
    for name, (expected, unless) in REFUSED.items():
        if unless and unless in missing:
            continue
        reason = found[name].outcome.reason or ""
        assert any(each in reason for each in expected.split("|")), (name, reason, missing)
        assert found[name].outcome.status is Status.SKIP, name
    for name in ("ReportsForAnother", "LimitsItsParent", "Works"):
        assert found[name].outcome.status is Status.PASS, found[name].outcome
    if "written" not in missing:
        assert [each.name for each in outside.iterdir()] == ["kept"]
