from __future__ import annotations

import os
import threading

import pytest

from dynamometer.common.execution import channel
from dynamometer.common.execution.channel import Channel, Receiver
from dynamometer.common.interfaces.messages import Findings, Progress, Report
from dynamometer.results.values.records import PASSED, Outcome, Stage, Status

TOKEN = "0123456789abcdef"
HELLO = Progress(stage=Stage.LOAD, arm=None)


def through_a_pipe(
    *written: Progress | Report | bytes,
) -> tuple[list[Progress | Report], Receiver]:
    """Send messages and foreign bytes through a pipe; give what came out, and what read it."""
    receiver = Receiver(TOKEN)
    reading, writing = os.pipe()
    sender = Channel(writing, TOKEN)

    def write() -> None:
        for each in written:
            if isinstance(each, bytes):
                os.write(writing, each)
            else:
                sender.send(each)
        os.close(writing)

    thread = threading.Thread(target=write)
    thread.start()
    messages: list[Progress | Report] = []
    while data := os.read(reading, 1000):
        messages += receiver.feed(data)
    thread.join()
    os.close(reading)
    return messages, receiver


def test_messages_come_out_whole() -> None:
    """A report larger than a pipe holds arrives as it was sent."""
    report = Report(
        findings=Findings(outcome=Outcome(status=Status.FAIL, detail="x\n" * 200_000)),
        seconds={Stage.LOAD: 1.5},
    )
    messages, receiver = through_a_pipe(HELLO, report)
    assert messages == [HELLO, report]
    assert receiver.foreign_bytes == 0


@pytest.mark.parametrize(
    "foreign",
    [b"printed", b"printed\n", b"\n\n", b"{}\n", b"\x00\xff\xfe", b"fedcba9876543210 {}"],
)
def test_foreign_bytes_are_counted_and_passed_over(foreign: bytes) -> None:
    """What a model writes to the descriptor swallows no message, with or without newlines."""
    messages, receiver = through_a_pipe(foreign, HELLO, foreign, HELLO, b"\n")
    assert messages == [HELLO, HELLO]
    assert receiver.foreign_bytes == 2 * len(foreign.replace(b"\n", b""))


def test_a_message_that_was_cut_short_is_passed_over() -> None:
    """A worker that dies within a message leaves half of one, after which others may write."""
    receiver = Receiver(TOKEN)
    half = f'\n{TOKEN} {{"type":"prog'.encode()
    assert receiver.feed(half + b"\nbye\n") == []
    assert receiver.foreign_bytes > 0


def test_a_message_that_is_nested_too_deeply_is_passed_over() -> None:
    """Code that has found the token may send one."""
    receiver, deep = Receiver(TOKEN), "[" * 100_000 + "]" * 100_000
    findings = f'{{"outcome":{{"status":"pass"}},"found":{deep}}}'
    forged = f'\n{TOKEN} {{"type":"report","findings":{findings},"seconds":{{}}}}\n'
    assert receiver.feed(forged.encode()) == []
    assert receiver.foreign_bytes > len(deep)


def test_a_report_of_seconds_in_no_stage_is_passed_over() -> None:
    """What they were spent on is shown on the terminal."""
    receiver = Receiver(TOKEN)
    report = '{"type":"report","findings":{"outcome":{"status":"pass"}},"seconds":{"a\\nb":1}}'
    assert receiver.feed(f"\n{TOKEN} {report}\n".encode()) == []
    assert len(receiver.feed(f"\n{TOKEN} {report}\n".replace("a\\nb", "run").encode())) == 1


def test_a_model_cannot_sign_a_message() -> None:
    """A line that looks like a message but for its token is foreign."""
    receiver = Receiver(TOKEN)
    forged = b"\n" + TOKEN[:-1].encode() + b'0 {"type":"progress","stage":"load","arm":null}\n'
    assert receiver.feed(forged) == []
    assert receiver.foreign_bytes == len(forged) - 2


def test_an_endless_line_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that floods the descriptor costs the parent no memory without end."""
    monkeypatch.setattr(channel, "_LONGEST_LINE", 1_000)
    receiver = Receiver(TOKEN)
    for _ in range(50):
        assert receiver.feed(b"x" * 300) == []
        assert len(receiver._pending) <= 1_000
    assert receiver.foreign_bytes >= 50 * 300 - 1_000


def test_a_closed_descriptor_is_an_error() -> None:
    """A model that closes the channel is noticed when the report is sent."""
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)
    with pytest.raises(OSError, match="Bad file descriptor"):
        Channel(writing, TOKEN).send(Report(findings=Findings(outcome=PASSED), seconds={}))
