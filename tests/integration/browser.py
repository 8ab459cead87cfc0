"""Chromium without a window, driven through a pipe (DevTools protocol), for tests of the page."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path

_PROGRAMS = () if os.environ.get("NO_BROWSER") else ("chromium", "chromium-browser", "chrome")
PROGRAM = next(filter(None, map(shutil.which, _PROGRAMS)), None)
"""`None` where there is none, or where none can be started and somebody says so."""
_TIMEOUT_S = 1200.0
_START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads from descriptor 3 and writes to 4, whatever they were here."""

MODELS = (
    "[...document.querySelectorAll('table.data:not(.groups):not(.matrix) tbody th')]"
    ".map(each => each.textContent)"
)
"""What the first column of a table of models shows, from top to bottom."""


@dataclass
class Seen:
    """What the browser did that a page without faults does not make it do."""

    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


class Browser:
    """A browser with one tab."""

    def __init__(self, folder: Path, program: str) -> None:
        """Start it, with a profile of its own in a folder."""
        self.seen = Seen()
        self._number = 0
        self._buffer = b""
        self._session: str | None = None
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        words = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(theirs_in), str(theirs_out), *words],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)

    def __enter__(self) -> Self:
        """Open the tab."""
        try:
            target = self._call("Target.createTarget", url="about:blank")["targetId"]
            attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self._call(f"{domain}.enable")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Close everything."""
        self._process.terminate()
        self._process.wait(timeout=_TIMEOUT_S)
        os.close(self._out)
        os.close(self._in)

    def open(self, address: str) -> None:
        """Load a page, from anew."""
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && !!document.querySelector('h1')")

    def evaluate(self, expression: str) -> Any:
        """Return what an expression comes to in the page.

        Raises:
            AssertionError: it raised an error there.
        """
        found = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression holds in the page."""
        until = time.monotonic() + _TIMEOUT_S
        while not self.evaluate(expression):
            assert time.monotonic() < until, expression
            time.sleep(0.02)

    def press(self, key: str) -> None:
        """Press a key and release it."""
        text = {"text": key} if len(key) == 1 else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def resize(self, width: int, height: int) -> None:
        """Make it as large as some device."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip

    def prefer(self, scheme: str) -> None:
        """Let it be light or dark."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self._call("Emulation.setEmulatedMedia", features=[feature])

    def _call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Do something, and return what comes of it."""
        self._number += 1
        message: dict[str, object] = {
            "id": self._number, "method": method, "params": parameters,
        }  # fmt: skip
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            found = self._read()
            if found.get("id") == self._number:
                assert "error" not in found, (method, found)
                return dict(found["result"])
            self._note(found)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], _TIMEOUT_S)
            assert ready, "the browser says nothing"
            data = os.read(self._in, 65536)
            assert data, "the browser has ended"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        method, found = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.seen.requests.append(found["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.seen.errors.append(str(found["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.seen.errors.append(str(found["args"]))
        elif method == "Log.entryAdded":
            self.seen.errors.append(str(found["entry"]))
        elif method == "Page.javascriptDialogOpening":
            self.seen.dialogs.append(found["message"])


def press_chip(browser: Browser, text: str) -> None:
    """Press the button that begins with a text."""
    found = "[...document.querySelectorAll('button.chip')].find(each => each.textContent"
    browser.evaluate(f"{found}.startsWith({text!r})).click()")
