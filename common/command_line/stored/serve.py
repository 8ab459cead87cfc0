"""`dynamometer serve [DIR...]`: the runs of the index in a browser, read-only."""

from __future__ import annotations

import errno
import re
import socket
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import click
import msgspec

from dynamometer.common import registry
from dynamometer.common.command_line.stored.history import DEFAULT_METRICS
from dynamometer.common.command_line.stored.indexing import (
    FOLDERS,
    INDEX,
    RUNS,
    opened,
    refreshed,
)
from dynamometer.common.command_line.stored.kept import KeptPages
from dynamometer.common.command_line.stored.report import compared
from dynamometer.common.errors import DynamometerError, UsageError
from dynamometer.common.interfaces.option import Valued
from dynamometer.results.store import store
from dynamometer.results.store.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from dynamometer.common.command_line.options import Invocation
    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.reports.page.run import RunToShow
    from dynamometer.results.store.index.index import Index
    from dynamometer.results.values.history import History

_THIS_MACHINE = "127.0.0.1"
_HOME = "/"
HOST = Valued(
    ("--host",), reads=click.STRING, default=_THIS_MACHINE, metavar="ADDRESS", group="Execution",
    help="Where to listen; anything but this machine lets others read all runs: 0.0.0.0 at every"
    " address it has.",
)  # fmt: skip
PORT = Valued(
    ("--port",), reads=click.IntRange(0, 65535), default=8000, metavar="N", group="Execution",
    help="The port; 0 takes one that is free.",
)  # fmt: skip
OPTIONS = (HOST, PORT, INDEX, RUNS, FOLDERS)
HELP = """Show runs in a browser, as they are when a page is read.

DIR is a folder of run directories, which the index then knows, too. Nothing is written but the
index, and nobody is served but this machine, unless --host says otherwise. Ctrl-C ends it.
"""


@dataclass(frozen=True)
class Pages:
    """What is served: each page shows what is stored when it is asked for.

    Attributes:
        asked: which index and which folders.
        one_at_a_time: the index is brought up to date by one request at a time.
        histories: those that were made of the index as it is.
    """

    asked: Request
    one_at_a_time: Lock
    histories: KeptPages = field(default_factory=KeptPages)

    def of(self, address: str) -> str | None:
        """Return the page of an address; `None` where there is none.

        Raises:
            UsageError: a run can't be read, or the index can't.
            StoreError: likewise.
        """
        try:
            parts = urlsplit(address)
        except ValueError:  # such as of `http://[x/`, which is no page's
            parts = urlsplit("")
        names = [unquote(each) for each in parts.path.split("/")[1:]]
        match names:
            case [""]:
                return self._runs()
            case ["run", run_id]:
                return self._run(run_id)
            case ["compare"]:
                asked = parse_qs(parts.query)
                return self._compare(asked.get("a", [""])[0], asked.get("b", [""])[0])
            case ["history"]:
                return self._history(parts.path, {"metric": DEFAULT_METRICS})
            case ["history", model]:
                return self._history(parts.path, {"model": (model,)})
            case _:
                return None

    def _runs(self) -> str:
        from dynamometer.results.reports.page.listing import ListedRun, runs_page

        with self.one_at_a_time, opened(self.asked, _folders(self.asked)) as index:
            refreshed(index)
            runs, _ = index.read({"metric": ()})
            places = _directories(index)
        listed = [
            ListedRun(
                each.run_id, each.created_at, each.study, each.conditions.get("torch", ""),
                places.get(each.run_id, ""),
            )
            for each in runs.values()
        ]  # fmt: skip
        return runs_page(listed[::-1])

    def _run(self, run_id: str) -> str | None:
        from dynamometer.results.reports.page.document import page

        found = self._to_show(run_id)
        return None if found is None else page([found], home=_HOME)

    def _compare(self, before: str, after: str) -> str | None:
        from dynamometer.results.reports.page.document import page

        runs = [self._to_show(each) for each in (before, after)]
        known = [each for each in runs if each is not None]
        return page(known, compared(*known), home=_HOME) if len(known) == len(runs) else None

    def _history(self, name: str, wanted: Mapping[str, Sequence[str]]) -> str | None:
        with self.one_at_a_time, opened(self.asked, _folders(self.asked)) as index:
            refreshed(index)
            # Its points are what was read of these, and a page counts weeks from its day.
            state = index.directories(), index.version_key(), datetime.now(UTC).date()
        return self.histories.page(name, state, partial(self._made_history, wanted))

    def _made_history(self, wanted: Mapping[str, Sequence[str]]) -> str | None:
        from dynamometer.results.history.of_index import history_of
        from dynamometer.results.reports.page.document import page
        from dynamometer.results.reports.page.history import shown_history

        with opened(self.asked, _folders(self.asked)) as index:
            found = history_of(index, wanted, None, with_points=True)
            places = _directories(index)
        if "model" in wanted and not found.series:
            return None
        shown = shown_history(found, datetime.now(UTC).isoformat(), places)
        return page([], history=shown, home=_HOME)

    def _to_show(self, run_id: str) -> RunToShow | None:
        """Return a run that the index knows: no address is ever read as a path."""
        from dynamometer.results.reports.page.earlier import Earlier
        from dynamometer.results.reports.page.run import run_to_show

        with self.one_at_a_time, opened(self.asked, _folders(self.asked)) as index:
            places = _directories(index)
            if not _is_there(places.get(run_id)):  # it may have begun, or have been removed, since
                refreshed(index)
                places = _directories(index)
        if not _is_there(places.get(run_id)):
            return None
        found = self._earlier(run_id)
        place = Path(places[run_id])
        manifest, records = store.read_manifest(place), store.read_records(place)
        study = registry.study(manifest.plan.study)
        earlier = Earlier(found, places) if found else None
        return run_to_show(manifest, records, study, place, earlier)

    def _earlier(self, run_id: str) -> History | None:
        """Return what earlier runs had of a run; a page goes without what can't be read."""
        from dynamometer.results.history.of_index import history_until

        unread = suppress(UsageError, msgspec.MsgspecError)
        with unread, opened(self.asked, _folders(self.asked)) as index:
            return history_until(index, run_id)
        return None


def _folders(asked: Request) -> tuple[Path, ...]:
    return asked[FOLDERS]


def _directories(index: Index) -> dict[str, str]:
    """Return where the runs of an index are: of copies, the one that counts."""
    found = sorted(index.directories().values(), key=lambda each: (each.size, each.path))
    return {each.run_id: each.path for each in found if each.run_id is not None}


def _is_there(directory: str | None) -> bool:
    return directory is not None and Path(directory).exists()


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD, to whoever means this server by its name.

    Attributes:
        timeout: seconds for which a reader is waited for who neither goes on nor leaves.
    """

    server_version, sys_version = "dynamometer", ""
    timeout = 60.0

    def __init__(self, pages: Pages, names: Container[str], *connection: object) -> None:
        """Answer one connection.

        Args:
            pages: what is served.
            names: which this server may be called by.
            connection: what `BaseHTTPRequestHandler` takes.
        """
        self._pages, self._names = pages, names
        super().__init__(*connection)  # type: ignore[arg-type]  # as its server passes them

    def do_GET(self) -> None:
        """Answer with a page."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer with the head of a page."""
        self._answer(with_body=False)

    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""

    def _answer(self, *, with_body: bool) -> None:
        status, text, kind = self._made()
        body = text.encode()
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"text/{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def _made(self) -> tuple[HTTPStatus, str, str]:
        if not is_called(self.headers.get("Host", ""), self._names):
            return HTTPStatus.MISDIRECTED_REQUEST, _NOT_CALLED_SO, "plain"
        try:
            found = self._pages.of(self.path)
        except (DynamometerError, StoreError) as error:
            return HTTPStatus.INTERNAL_SERVER_ERROR, f"{error}\n", "plain"
        except Exception as error:  # noqa: BLE001  one page must not end the others
            traceback.print_exc()
            text = f"this page can't be made: {type(error).__name__}\n"
            return HTTPStatus.INTERNAL_SERVER_ERROR, text, "plain"
        if found is None:
            return HTTPStatus.NOT_FOUND, "there is no such page\n", "plain"
        return HTTPStatus.OK, found, "html"


_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'; form-action 'self'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Pages have a stricter policy of their own, which lets them ask nobody for anything."""


_NOT_CALLED_SO = (
    "this server is not called so: ask for it by an address, or begin it with --host and the name\n"
)


def is_called(host: str, names: Container[str]) -> bool:
    """Return whether a request's `Host` means this server.

    A page elsewhere whose name was made to mean this machine (DNS rebinding) asks by that name. An
    address is nobody's to give, so any may be asked by.

    Args:
        host: the header, with a port or without.
        names: which this server may be called by besides, in lower case.
    """
    name = re.sub(r":[0-9]+$", "", host.lower()).removesuffix(".")
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return name in names
    return True


class Server(ThreadingHTTPServer):
    """Serves each request in a thread."""

    daemon_threads = True

    def __init__(self, host: str, port: int, pages: Pages) -> None:
        """Begin to listen.

        Raises:
            OSError: it can't be listened there.
        """
        if ":" in host:
            self.address_family = socket.AF_INET6
        self.names = {"localhost", host.lower()}
        super().__init__((host, port), partial(Handler, pages, self.names))
        # However it was written, such as `0`.
        self.is_everywhere = ip_address(str(self.server_address[0])).is_unspecified
        if self.is_everywhere:
            own = socket.gethostname().lower()
            self.names |= {own, f"{own}.local", socket.getfqdn().lower()}  # the second by mDNS
            host_shown = "localhost"
        else:
            host_shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{host_shown}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a reader who left, or went no further, before its page was written."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def run(asked: Request, _: Invocation) -> int:
    """Serve until it is interrupted.

    Raises:
        UsageError: it can't be listened there, or the index can't be used.
    """
    if not asked[HOST]:
        msg = f"--host is empty: leave it out for {_THIS_MACHINE}, or name an address"
        raise UsageError(msg)
    with opened(asked, _folders(asked)) as index:
        refreshed(index)
    try:
        server = Server(asked[HOST], asked[PORT], Pages(asked, Lock()))
    except OSError as error:
        hint = "; --port 0 takes a port that is free" if error.errno in _OF_THE_PORT else ""
        msg = f"{asked[HOST]}, port {asked[PORT]} can't be listened at: {error.strerror}{hint}"
        raise UsageError(msg) from error
    with server:
        click.echo(server.address)
        if server.is_everywhere:
            click.echo("whoever reaches this machine can read all of it", err=True)
        server.serve_forever()
    return 0


_OF_THE_PORT = (errno.EADDRINUSE, errno.EACCES)
"""Why it can't be listened, where another port may do."""
