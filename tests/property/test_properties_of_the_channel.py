"""Whatever a model writes between messages, in whatever pieces they arrive."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from dynamometer.common.execution.channel import Channel, Receiver
from dynamometer.common.interfaces.messages import Findings, Message, Progress, Report
from dynamometer.results.values.records import Outcome, Stage, Status

TOKEN = "f00dcafe"
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
progresses = st.builds(Progress, stage=st.sampled_from(Stage), arm=st.none() | texts)
reports = st.builds(
    Report,
    findings=st.builds(
        Findings, outcome=st.builds(Outcome, status=st.sampled_from(Status), detail=texts)
    ),
    seconds=st.dictionaries(st.sampled_from(Stage), st.floats(0, 1e6), max_size=2),
)
foreign = st.binary(max_size=40).filter(lambda data: TOKEN.encode() not in data)
streams = st.lists(foreign | progresses | reports, max_size=8)


def on_the_wire(written: list[bytes | Message]) -> bytes:
    """Return the bytes that a pipe would carry."""
    reading, writing = os.pipe()
    try:
        channel = Channel(writing, TOKEN)
        for each in written:
            if isinstance(each, bytes):
                os.write(writing, each)
            else:
                channel.send(each)
        os.close(writing)
        writing = -1
        return b"".join(iter(lambda: os.read(reading, 1 << 16), b""))
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)


@given(streams, st.lists(st.integers(1, 30), min_size=1, max_size=10))
def test_all_messages_come_out_in_order(written: list[bytes | Message], sizes: list[int]) -> None:
    """Foreign bytes and the sizes of what is read change neither messages nor their order."""
    data = on_the_wire(written)
    receiver = Receiver(TOKEN)
    received: list[Message] = []
    position = turn = 0
    while position < len(data):
        size = sizes[turn % len(sizes)]
        received += receiver.feed(data[position : position + size])
        position, turn = position + size, turn + 1
    assert received == [each for each in written if not isinstance(each, bytes)]


@given(streams, st.integers(1, 50))
def test_what_is_counted_does_not_depend_on_the_pieces(
    written: list[bytes | Message], size: int
) -> None:
    """Foreign bytes are counted alike whether they come at once or bit by bit."""
    data = on_the_wire(written) + b"\n"
    whole, pieces = Receiver(TOKEN), Receiver(TOKEN)
    whole.feed(data)
    for start in range(0, len(data), size):
        pieces.feed(data[start : start + size])
    assert pieces.foreign_bytes == whole.foreign_bytes
    foreign_bytes = sum(
        len(each.replace(b"\n", b"")) for each in written if isinstance(each, bytes)
    )
    assert whole.foreign_bytes == foreign_bytes
