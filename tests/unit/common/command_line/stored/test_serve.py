"""Runs in a browser: what is served, to whom, and what is not."""

from __future__ import annotations

import http.client
import shutil
import socket
import sqlite3
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import factories
import msgspec
import pytest

from dynamometer.common.command_line import cli
from dynamometer.common.command_line.stored import serve
from dynamometer.common.command_line.stored.indexing import FOLDERS, INDEX, RUNS
from dynamometer.common.command_line.stored.serve import OPTIONS, Handler, Pages, Server, is_called
from dynamometer.common.interfaces.option import defaults
from dynamometer.results.history import of_index
from dynamometer.results.history.of_index import history_of
from dynamometer.results.store import store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from dynamometer.results.store.index.index import Index
    from dynamometer.results.values.history import History


NAMES = ("run-1", "run-2", "<script>alert(1)</")


def make_run(directory: Path, name: str, day: int) -> None:
    """Make a run of alexnet."""
    plan = factories.plan(factories.model_spec("alexnet"))
    created = f"2026-01-{day:02}T00:00:00+00:00"
    store.create(directory, factories.manifest(plan, run_id=name, created_at=created))
    with store.RunStore(directory) as events:
        record = factories.measured_record(plan.cases[0])
        events.append(msgspec.structs.replace(record, run_id=name))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of three runs, at a port that is free."""
    runs = tmp_path / "runs"
    for number, name in enumerate(NAMES):
        make_run(runs / f"run-{number}", name, number + 1)
    (tmp_path / "secret").write_text("not for everybody")
    asked = defaults(OPTIONS).but(RUNS, runs).but(INDEX, tmp_path / "index").but(FOLDERS, ())
    with Server("127.0.0.1", 0, Pages(asked, threading.Lock())) as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield found
        finally:
            found.shutdown()
            thread.join()


def ask(
    server: Server, path: str, *, method: str = "GET", host: str | None = None
) -> tuple[http.client.HTTPResponse, str]:
    """Ask for a path as it is written, and give the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=1200)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host or f"localhost:{server.server_port}")
    connection.endheaders()
    answer = connection.getresponse()
    return answer, answer.read().decode()


def test_pages_are_those_of_the_runs(server: Server) -> None:
    """A list, each run, two compared, the history; all as they are stored now."""
    answer, text = ask(server, "/")
    assert answer.status == 200
    assert 'href="/run/run-1"' in text
    assert text.index("run-2") < text.index("run-1")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;" in text
    assert 'href="/run/%3Cscript%3Ealert%281%29%3C%2F"' in text
    for path in ("/run/run-1", "/run/%3Cscript%3Ealert(1)%3C%2F", "/compare?a=run-1&b=run-2"):
        answer, text = ask(server, path)
        assert (answer.status, answer.getheader("Content-Type")) == (
            200,
            "text/html; charset=utf-8",
        )
        assert "alexnet" in text
        assert "<script>alert" not in text
    for path in ("/history", "/history/alexnet"):
        answer, text = ask(server, path)
        assert answer.status == 200
        assert '"model":"alexnet"' in text
        assert "<script>alert" not in text


def test_a_history_is_made_once(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the runs are as they were: with another it is made again, as another model's is."""
    made: list[Mapping[str, Sequence[str]]] = []

    def noted(
        index: Index, wanted: Mapping[str, Sequence[str]], *rest: Any, **more: Any
    ) -> History:
        made.append(wanted)
        return history_of(index, wanted, *rest, **more)

    monkeypatch.setattr(of_index, "history_of", noted)
    _, text = ask(server, "/history")
    assert ask(server, "/history")[1] == text
    assert len(made) == 1
    ask(server, "/history/alexnet")
    assert ask(server, "/history/no-such")[0].status == 404
    assert ask(server, "/history")[1] == text
    assert [each.get("model") for each in made] == [None, ("alexnet",), ("no-such",)]
    make_run(tmp_path / "runs" / "another", "run-9", 9)
    assert '"run-9"' in ask(server, "/history")[1]
    shutil.rmtree(tmp_path / "runs" / "another")
    assert '"run-9"' not in ask(server, "/history")[1]
    assert len(made) == 5


def test_a_run_among_earlier_ones(server: Server) -> None:
    """Is shown with these; the first has none."""
    ask(server, "/")  # which reads them
    assert 'id="earlier-0"' not in ask(server, "/run/run-1")[1]
    text = ask(server, "/run/run-2")[1]
    assert 'id="earlier-0"' in text
    assert '"run-1"' in text


@pytest.mark.parametrize(
    "damage", ["UPDATE runs SET value = '{'", "ALTER TABLE points RENAME TO p"]
)
def test_a_run_is_shown_though_earlier_ones_can_not_be_read(
    server: Server, tmp_path: Path, damage: str
) -> None:
    """Its page needs its directory alone."""
    ask(server, "/")
    with closing(sqlite3.connect(tmp_path / "index")) as file, file:
        file.execute(damage)
    answer, text = ask(server, "/run/run-2")
    assert answer.status == 200
    assert 'id="earlier-0"' not in text


def test_pages_lead_home(server: Server) -> None:
    """To the list of runs; the list leads to the history."""
    assert '<a href="/history">' in ask(server, "/")[1]
    for path in ("/run/run-1", "/compare?a=run-1&b=run-2", "/history"):
        assert '<a href="/">' in ask(server, path)[1]


@pytest.mark.parametrize(
    "path",
    [
        "/nothing", "/run/", "/run/no-such", "/run/../../secret", "/run/..%2F..%2Fsecret",
        "/run/run-1/events.jsonl", "//etc/passwd", "/compare", "/compare?a=run-1&b=../secret",
        "/run//etc/passwd", "http://[x/", "secret", "/history/", "/history/no-such", "/history/a/b",
    ],
)  # fmt: skip
def test_nothing_else_is_served(server: Server, path: str) -> None:
    """Runs are found by name in the index; no path of a request is one of a file."""
    answer, text = ask(server, path)
    assert answer.status == 404
    assert text == "there is no such page\n"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "localhost.evil:8000"])
def test_other_names_are_refused(server: Server, host: str) -> None:
    """A site whose name was made to mean this machine can't read runs by its visitor's browser."""
    answer, text = ask(server, "/", host=host or "-")
    assert answer.status == 421
    assert "run-1" not in text


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("localhost", True), ("LOCALHOST:8000", True), ("127.0.0.1", True), ("[::1]:80", True),
        ("[::1]", True), ("192.168.1.5:8000", True), ("mybox", True), ("MyBox:8000", True),
        ("evil.example", False), ("1.evil.example:80", False), ("", False), (":80", False),
        ("localhost.evil:8000", False), ("127.0.0.1.evil", False), ("[::1].evil:1", False),
    ],
)  # fmt: skip
def test_what_this_server_is_called(host: str, *, is_own: bool) -> None:
    """Any address, as nobody can make one mean this machine, and the names that it was given."""
    assert is_called(host, {"localhost", "mybox"}) is is_own


@pytest.mark.parametrize("host", ["0.0.0.0", "0"])
def test_a_server_at_every_address(tmp_path: Path, host: str) -> None:
    """Others ask for it by the machine's name; where it says it is can be opened here."""
    asked = defaults(OPTIONS).but(RUNS, tmp_path).but(FOLDERS, ())
    with Server(host, 0, Pages(asked, threading.Lock())) as found:
        assert found.is_everywhere
        assert found.address == f"http://localhost:{found.server_port}/"
        assert socket.gethostname().lower() in found.names
        assert is_called("LocalHost:80", found.names)


def test_a_run_that_has_begun_since_is_shown(server: Server, tmp_path: Path) -> None:
    """Whoever knows its name needs not look at the list first."""
    ask(server, "/")
    make_run(tmp_path / "runs" / "later", "run-later", 9)
    assert ask(server, "/run/run-later")[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_can_be_written(server: Server, method: str) -> None:
    """It answers GET and HEAD."""
    answer, _ = ask(server, "/", method=method)
    assert answer.status == 501


def test_heads_forbid_what_pages_dont_need(server: Server) -> None:
    """And HEAD has no body."""
    answer, text = ask(server, "/", method="HEAD")
    assert (answer.status, text) == (200, "")
    assert int(answer.getheader("Content-Length") or 0) > 0
    assert "frame-ancestors 'none'" in (answer.getheader("Content-Security-Policy") or "")
    assert answer.getheader("X-Content-Type-Options") == "nosniff"
    assert "Python" not in (answer.getheader("Server") or "")
    _, text = ask(server, "/")
    assert "default-src &#39;none&#39;" in text


def test_a_run_that_is_damaged_is_its_own_loss(server: Server, tmp_path: Path) -> None:
    """It is said without a traceback, and the others are served."""
    ask(server, "/")
    (tmp_path / "runs" / "run-0" / store.MANIFEST).write_text("{")
    answer, text = ask(server, "/run/run-1")
    assert answer.status in {404, 500}
    assert "Traceback" not in text
    assert ask(server, "/run/run-2")[0].status == 200


def test_a_run_that_is_removed_is_no_page(server: Server, tmp_path: Path) -> None:
    """As of a name that no run ever had."""
    assert ask(server, "/run/run-1")[0].status == 200
    shutil.rmtree(tmp_path / "runs" / "run-0")
    for path in ("/run/run-1", "/compare?a=run-1&b=run-2"):
        answer, text = ask(server, path)
        assert (answer.status, text) == (404, "there is no such page\n")


def test_a_reader_who_goes_no_further_is_left(
    server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whoever begins a request and never ends it would keep a thread."""
    assert Handler.timeout == 60
    monkeypatch.setattr(Handler, "timeout", 0.1)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as reader:
        reader.sendall(b"GET / HT")
        assert reader.recv(1) == b""
    assert capfd.readouterr().err == ""


def test_readers_at_the_same_time(server: Server) -> None:
    """Each gets the whole page."""
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(ask(server, "/")[1])) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_no_address_is_not_every_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where a variable of a script is empty: the operating system would listen everywhere."""
    runs = tmp_path / "runs"
    runs.mkdir()
    assert cli.main(None, ["serve", "--host", "", "--output-dir", str(runs), "--port", "0"]) == 2
    assert "--host is empty" in capsys.readouterr().err


def test_a_port_that_is_taken_is_said(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what to do."""
    words = ["serve", "--output-dir", str(tmp_path / "runs"), "--port", str(server.server_port)]
    assert cli.main(None, words) == 2
    assert "--port 0 takes a port that is free" in capsys.readouterr().err


def test_a_name_that_means_no_address_is_no_matter_of_the_port(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another port wouldn't help."""

    def unknown(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(serve, "Server", unknown)
    words = ["serve", "--output-dir", str(tmp_path), "--host", "no.such", "--port", "0"]
    assert cli.main(None, words) == 2
    found = capsys.readouterr().err
    assert "no.such, port 0 can't be listened at: Name or service not known" in found
    assert "--port 0 takes" not in found
