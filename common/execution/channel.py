r"""The private channel from a worker to its parent: one message a line, signed with a token.

A model may print anything and write to any descriptor it finds. A line is a message only if it
starts with the job's random token, so foreign bytes are counted and passed over. Each message
begins with a newline, so that foreign bytes before it never swallow it.

    \n<token> <json>\n
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import msgspec

from dynamometer.common.interfaces.messages import Message
from dynamometer.results.store.reading import BAD_JSON

_LONGEST_LINE = 256 * 2**20


@dataclass(frozen=True)
class Channel:
    """The worker's end.

    Attributes:
        descriptor: of the pipe.
        token: what each message begins with.
        owner: the process whose messages these are, and not those of children that a model forks.
    """

    descriptor: int
    token: str
    owner: int = field(default_factory=os.getpid)

    def send(self, message: Message) -> None:
        """Write one message whole.

        Raises:
            OSError: the model closed the descriptor.
        """
        if os.getpid() != self.owner:
            return
        line = b"\n" + self.token.encode() + b" " + msgspec.json.encode(message) + b"\n"
        view = memoryview(line)
        while view:
            view = view[os.write(self.descriptor, view) :]


@dataclass
class Receiver:
    """The parent's end: bytes in, messages out."""

    token: str
    foreign_bytes: int = 0
    _pending: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> list[Message]:
        """Take what was read and give the messages that are complete."""
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = bytes(self._pending) + lines[0]
            self._pending = bytearray()
        self._pending += rest
        if len(self._pending) > _LONGEST_LINE:
            self.foreign_bytes += len(self._pending)
            self._pending = bytearray()
        return [message for line in lines if (message := self._parse(line))]

    def _parse(self, line: bytes) -> Message | None:
        prefix = self.token.encode() + b" "
        if not line.startswith(prefix):
            self.foreign_bytes += len(line)
            return None
        try:
            message: Message = msgspec.json.decode(line.removeprefix(prefix), type=Message)
        except BAD_JSON:  # a message of ours that foreign bytes were written into
            self.foreign_bytes += len(line)
            return None
        return message
