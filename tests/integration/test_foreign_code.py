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
import os, signal, socket, subprocess, time
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

class KillsItsParent(Base):
    def attack(self):
        return os.kill(os.getppid(), signal.SIGKILL)

class KillsAnother(Base):
    def attack(self):
        return os.kill(VICTIM, signal.SIGKILL)

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
    "KillsItsParent", "KillsAnother", "ReadsTheEnvironment", "ReportsForAnother", "Storm", "Works",
)  # fmt: skip
SECRET = "what-nobody-else-should-know"
REFUSED = {
    "Connects": "refused: ",
    "Writes": "refused: PermissionError 13",
    "Removes": "refused: PermissionError 13",
    "WritesInItsOwn": "succeeded with (4, True)",
    "FillsTheDisk": "refused: OSError 27",
    "FillsTheDiskWithFiles": "refused: OSError 28",
    "KillsItsParent": "refused: PermissionError 1",
    "KillsAnother": "refused: PermissionError 1",
    "ReadsTheEnvironment": "found nothing",
    "Storm": "killed over its limit of processes",
}


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
    assert cli.main("parity", words) == 0
    (directory,) = (tmp_path / "runs").iterdir()
    records = store.read_records(directory)
    assert len(records) == len(NAMES)
    return {each.case.model.partition(".")[2]: each for each in records}


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
            with pytest.raises(BlockingIOError):
                server.accept()
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()
    uncontained = {note for each in found.values() for note in each.notes if "can be" in note}
    if uncontained:  # an older kernel, or one that permits less: it is said, and that is all
        pytest.skip("; ".join(sorted(uncontained)))
    for name, expected in REFUSED.items():
        assert expected in (found[name].outcome.reason or ""), name
        assert found[name].outcome.status is Status.SKIP, name
    assert found["ReportsForAnother"].outcome.status is Status.PASS
    assert found["Works"].outcome.status is Status.PASS
    assert [each.name for each in outside.iterdir()] == ["kept"]
