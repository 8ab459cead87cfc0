"""Decisions in a file of SQLite. What was decided survives whatever happens next.

Each decision is one transaction under SQLite's rollback journal: a process that is killed leaves
the file as it was before or as it is after. Several processes may read and write at a time.
"""

from __future__ import annotations

import math
import re
import sqlite3
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.reading import from_json
from dynamometer.results.values.cases import NO_BACKEND
from dynamometer.results.values.choices import moment
from dynamometer.results.values.decisions import DECISION_FORMAT, Decision, Setting
from dynamometer.results.values.records import PASSED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dynamometer.results.values.choices import Subject, Tuning

_WAIT_S = 60.0
"""For another process that is writing."""

_WAY_OUT = "move the file away, or name another with --decisions"

_TABLES = """
CREATE TABLE IF NOT EXISTS settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS decisions (
    subject TEXT NOT NULL,
    key TEXT NOT NULL,
    setting TEXT NOT NULL REFERENCES settings (key),
    arm TEXT NOT NULL,
    decided_at TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (subject, key, setting)
);
"""


def decision_that_counts(
    tuning: Tuning, subject: Subject, key: str, setting: Setting
) -> Decision | None:
    """Return the decision on a graph or model that a run goes by; `None` if there is none.

    Those in its file are; with `--retune` only those made since the run began.

    Raises:
        StoreError: the file can't be read, or is none of decisions.
    """
    found = Decisions(Path(tuning.decisions)).find(subject, key, setting)
    if found is None or not tuning.counts(found.decided_at, datetime.now(UTC)):
        return None
    return found


class Decisions:
    """The decisions of a file."""

    def __init__(self, path: Path) -> None:
        """Take the file's path; it is made when something is put into it."""
        self.path = path

    def put(self, *decisions: Decision) -> int:
        """Store what was decided here, all of it or nothing, and return how many there are.

        It replaces what was decided on the same graph or model and setting, whenever that was.

        Raises:
            StoreError: the file can't be written.
        """
        with self._writing() as database:
            for each in decisions:
                _put(database, each)
        return len(decisions)

    def merge(self, *decisions: Decision) -> int:
        """Store what was decided elsewhere, all of it or nothing; return how many were taken.

        One of the same graph or model and setting replaces an earlier one, never a later one.

        Raises:
            StoreError: the file can't be written.
        """
        taken = 0
        with self._writing() as database:
            for each in decisions:
                if _is_newest(database, each):
                    _put(database, each)
                    taken += 1
        return taken

    def make_ready(self) -> None:
        """Make the file unless it is there, and see that all of it can be read and written.

        Raises:
            StoreError: it can't be, or is none of decisions; says what to do.
        """
        with self._writing() as database:
            # A file that may only be read can be locked for writing; what is written fails.
            (version,) = database.execute("PRAGMA user_version").fetchone()
            database.execute(f"PRAGMA user_version = {version}")
        self.all()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = f"{self.path} can't be made: {error.strerror}; choose another with --decisions"
            raise StoreError(msg) from error
        with self._open("IMMEDIATE") as database:
            yield database

    def find(self, subject: Subject, key: str, setting: Setting) -> Decision | None:
        """Return the decision on a graph or model in a setting; `None` if there is none.

        Raises:
            StoreError: the file can't be read, or is none of decisions.
        """
        found = self._read("WHERE subject = ? AND key = ? AND setting = ?", subject, key,
                           setting.key)  # fmt: skip
        return found[0] if found else None

    def starting_with(self, key: str) -> list[Decision]:
        """Return those whose key begins so, in whatever setting.

        Raises:
            StoreError: the file can't be read, or is none of decisions.
        """
        return self._read("WHERE substr(key, 1, ?) = ?", len(key), key)

    def all(self) -> list[Decision]:
        """Return all, by what they are about, key and setting.

        Raises:
            StoreError: the file can't be read, or is none of decisions.
        """
        return self._read("")

    def _read(self, condition: str, *values: object) -> list[Decision]:
        if not self.path.exists():
            return []
        text = f"SELECT rowid, value FROM decisions {condition} ORDER BY subject, key, setting"  # noqa: S608  conditions are those above
        with self._open("DEFERRED") as database:
            rows = database.execute(text, values).fetchall() if _has_tables(database) else []
        try:
            return [_decision(value, f"{self.path}, row {row}") for row, value in rows]
        except StoreError as error:
            msg = f"{error}; {_WAY_OUT}"
            raise StoreError(msg) from error

    @contextmanager
    def _open(self, kind: str) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction.

        Args:
            kind: `IMMEDIATE` to write, `DEFERRED` to read.

        Raises:
            StoreError: it can't be read or written.
        """
        try:
            database = sqlite3.connect(self.path, timeout=_WAIT_S, isolation_level=None)
            try:
                database.execute("PRAGMA synchronous = FULL")
                with _transaction(database, kind):
                    self._refuse_others(database)
                    if kind == "IMMEDIATE":
                        _make_tables(database)
                    yield database
            finally:
                database.close()
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                msg = f"{self.path} is being written by another process; wait for it, or stop it"
            else:
                msg = f"{self.path} can't be used as a file of decisions: {error}; {_WAY_OUT}"
            raise StoreError(msg) from error

    def _refuse_others(self, database: sqlite3.Connection) -> None:
        """Leave other programs' databases, and the index of runs, as they are.

        Raises:
            StoreError: it is one.
        """
        (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and not _has_tables(database):
            msg = f"{self.path} is no file of decisions; choose another with --decisions"
            raise StoreError(msg)


def exported(decisions: Iterable[Decision]) -> str:
    """Return decisions as JSON, one a line."""
    return "".join(msgspec.json.encode(each).decode() + "\n" for each in decisions)


def imported(text: str, name: str, now: datetime) -> list[Decision]:
    """Read what was exported.

    Args:
        text: JSON, one decision a line; empty lines are passed over.
        name: of the file, for messages.
        now: what is dated more than a day later is refused, as nothing would ever replace it.

    Raises:
        StoreError: a line is no decision, of a later format, or holds what none can; says which.
    """
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        decision = _decision(line, f"{name}:{number}")
        if problem := _problem(decision, now):
            msg = f"{name}:{number} is no decision: {problem}"
            raise StoreError(msg)
        found.append(decision)
    return found


_KEY = re.compile(r"[0-9a-f]{64}")
_MOST_AHEAD = timedelta(days=1)
"""Clocks of two machines differ, but not by more."""


def _problem(decision: Decision, now: datetime) -> str | None:
    """Say what a decision holds that none can; `None` if that is nothing."""
    at = moment(decision.decided_at)
    evidence = decision.evidence
    seconds = (
        decision.tuning_s,
        decision.eager_s,
        *(each.latency_s for each in evidence),
        *(each.compile_s for each in evidence),
    )
    if not _KEY.fullmatch(decision.key):
        return f"its key {decision.key[:80]!r} is not of 64 hexadecimal digits"
    if at is None:
        return f"{decision.decided_at[:80]!r} is no date"
    if at > now + _MOST_AHEAD:
        return f"it was decided at {decision.decided_at}, which is more than a day ahead"
    if any(each is not None and not 0 <= each < math.inf for each in seconds):
        return "it holds a number of seconds below zero, or without end"
    return _problem_of_speedups(decision)


def _problem_of_speedups(decision: Decision) -> str | None:
    ratios = (each.speedup for each in decision.evidence if each.speedup is not None)
    if not all(0 < each.low <= each.value <= each.high < math.inf for each in ratios):
        return "it holds a speedup that is none, or beside its interval"
    chosen = decision.chosen
    is_faster = (
        chosen is not None
        and chosen.outcome == PASSED
        and chosen.speedup is not None
        and chosen.speedup.low > 1
    )
    if decision.arm != NO_BACKEND and not is_faster:
        return f"nothing in it shows that {decision.arm[:80]!r} is faster than eager"
    return None


def _decision(data: object, place: str) -> Decision:
    """Read a decision.

    Raises:
        StoreError: it is none, or of another format.
    """
    found = from_json(data, Decision, place)
    if found.format != DECISION_FORMAT:
        msg = f"{place} is of format {found.format}; this version reads format {DECISION_FORMAT}"
        raise StoreError(msg)
    return found


def _has_tables(database: sqlite3.Connection) -> bool:
    """Return whether there is a place for decisions; nothing is written by who reads."""
    known = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'decisions'")
    return bool(known.fetchone()[0])


def _make_tables(database: sqlite3.Connection) -> None:
    if not _has_tables(database):
        for statement in filter(str.strip, _TABLES.split(";")):
            database.execute(statement)


@contextmanager
def _transaction(database: sqlite3.Connection, kind: str) -> Iterator[None]:
    database.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _is_newest(database: sqlite3.Connection, decision: Decision) -> bool:
    """Return whether a decision is later than what is there on the same."""
    found = database.execute(
        "SELECT decided_at FROM decisions WHERE subject = ? AND key = ? AND setting = ?",
        (decision.subject, decision.key, decision.setting.key),
    ).fetchone()
    known, at = moment(found[0]) if found else None, moment(decision.decided_at)
    return known is None or (at is not None and at > known)


def _put(database: sqlite3.Connection, decision: Decision) -> None:
    setting = decision.setting
    database.execute(
        "INSERT OR IGNORE INTO settings VALUES (?, ?)",
        (setting.key, msgspec.json.encode(setting).decode()),
    )
    database.execute(
        "INSERT OR REPLACE INTO decisions VALUES (?, ?, ?, ?, ?, ?)",
        (
            decision.subject,
            decision.key,
            setting.key,
            decision.arm,
            decision.decided_at,
            msgspec.json.encode(decision).decode(),
        ),
    )
