#!/usr/bin/env python3
"""Check, again and again, what needs a real clock, and say how often it went as it should.

    make check-timing
    python bench/check_timing.py --repeats 20 --only threads --output /tmp/check-timing.md

No test depends on how fast or steady its machine is (docs/timing-tests.md); what does is here. It
reports rates and judges none of them: exits with 1 only if a check could not be made.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
from disturbance import measure

from dynamometer.common.machine.disturber import disturbed
from dynamometer.common.machine.surroundings import Machine, read_counters
from dynamometer.common.measuring.threads import Linux, busy_threads, wait_until_idle
from dynamometer.common.measuring.timing import Stopwatch
from dynamometer.common.measuring.warm_up import warm_up_to_steady
from dynamometer.dynamo.processor import processor_name
from dynamometer.results.statistics.disturbance import disturbs
from dynamometer.results.statistics.significance import Verdict
from dynamometer.results.statistics.summary import CaseSummary, summarize_cases
from dynamometer.results.statistics.verdicts import judge
from dynamometer.results.store import store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent
MODEL, SCALE = "squeezenet1_1", "small"
KNOWN = "dynamometer.dynamo.known"
WATCHED_S = 0.5
SOON_S = 0.2
DIFFERENT = {Verdict.FASTER, Verdict.SLOWER}
_DATA = bytes(1_000_000)


@dataclass(frozen=True)
class Check:
    """Something that should come out so whenever the machine lets it.

    Attributes:
        name: for `--only`.
        text: what should be so.
        passes: makes it once.
    """

    name: str
    text: str
    passes: Callable[[], bool]


@contextmanager
def _spinner() -> Iterator[tuple[int, threading.Event]]:
    """Have a thread that computes while an event is set, and give its number."""
    spins, ends = threading.Event(), threading.Event()

    def run() -> None:
        while not ends.is_set():
            spins.wait()
            hashlib.sha256(_DATA)  # without Python's lock

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield thread.native_id or 0, spins
    finally:
        ends.set()
        spins.set()
        thread.join()


def _sees_busy_threads() -> bool:
    """Watch a step during which a thread computes."""
    with _spinner() as (number, spins):

        def step() -> None:
            spins.set()
            time.sleep(0.02)
            spins.clear()

        return number in busy_threads(step)


def _sees_idle_threads() -> bool:
    """Watch a step during which it sleeps."""
    with _spinner() as (number, _):
        return number not in busy_threads(lambda: time.sleep(0.02))


def _waits_for_threads() -> bool:
    """Wait for one that stops after 50 ms: about as long, and not for the longest wait."""
    with _spinner() as (number, spins):
        others = frozenset(each for each in Linux().others() if each != number)
        spins.set()
        threading.Timer(0.05, spins.clear).start()
        started = time.perf_counter()
        wait_until_idle(others)
        return not spins.is_set() and time.perf_counter() - started < SOON_S


def _load_disturbs() -> bool:
    """Compute for a while, and ask whether others did."""
    machine = Machine(read_counters, lambda: False)
    machine.begin()
    until_s = time.perf_counter() + WATCHED_S
    while time.perf_counter() < until_s:
        hashlib.sha256(_DATA)
    return disturbs(machine.load())


def _sees_a_process() -> bool:
    """Compute beside a process that always does."""
    with disturbed(0, busy_s=60.0, idle_s=1e-6):
        time.sleep(WATCHED_S)  # until it has started
        return _load_disturbs()


def _gets_steady() -> bool:
    """Warm up a call of a millisecond."""
    watch = Stopwatch(lambda: None)
    return warm_up_to_steady(watch, lambda: hashlib.sha256(_DATA), lambda: 0).steady


def _run(*arms: str, replicates: int) -> CaseSummary:
    """Measure one model in some arms beside eager."""
    with tempfile.TemporaryDirectory() as runs:
        command = [sys.executable, str(ROOT / "torchbench.py"), "--only", MODEL, "--scale", SCALE]
        command += [word for arm in arms for word in ("--backend", arm)]
        command += ["-r", str(replicates), "--output-dir", runs]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "bench")}
        subprocess.run(command, check=True, capture_output=True, env=environment)
        (directory,) = Path(runs).iterdir()
        (case,) = summarize_cases(store.read_records(directory))
        return case


def _verdicts(case: CaseSummary) -> list[Verdict]:
    """Say what is concluded of the arms.

    Raises:
        ValueError: nothing, as nothing was timed.
    """
    judged = judge([case])
    if not judged:
        ended = "; ".join(f"{each.name}: {each.outcome.line}" for each in case.arms)
        msg = f"nothing was timed ({ended})"
        raise ValueError(msg)
    return [each.verdict for each in judged]


def _same_arms_are_not_different() -> bool:
    """Time eager beside eager."""
    return DIFFERENT.isdisjoint(_verdicts(_run(f"{KNOWN}:eager_again", replicates=3)))


def _sees_five_percent() -> bool:
    """Time what wastes a twentieth of each call."""
    return _verdicts(_run(f"{KNOWN}:slower_by_5_percent", replicates=3)) == [Verdict.SLOWER]


def _sees_spinning_threads() -> bool:
    """Time eager beside a runtime with threads of its own: waited for, or timed apart."""
    case = _run("spinning_arm:spinning", replicates=1)
    return case.is_isolated or case.interferes or any(each.waited for each in case.records)


def _marks_blocks() -> bool:
    """Run beside a process that stays: some block is marked."""
    (found,) = measure("stays", SCALE, (MODEL,))
    return bool(found.marked)


def _is_not_fooled() -> bool:
    """Run identical arms beside a process that comes and goes: they are not called different."""
    (found,) = measure("comes and goes", SCALE, (MODEL,))
    return DIFFERENT.isdisjoint(_verdicts(found.case))


CHECKS = (
    Check("threads", "a thread that computes during a step is seen", _sees_busy_threads),
    Check("idle", "a thread that sleeps during a step is not", _sees_idle_threads),
    Check("wait", "a thread that stops after 50 ms is waited for", _waits_for_threads),
    Check("process", "another process that computes is seen", _sees_a_process),
    Check("alone", "where no other does, none is", lambda: not _load_disturbs()),
    Check("steady", "a call that always does the same gets steady", _gets_steady),
    Check("same", "identical arms are not called different", _same_arms_are_not_different),
    Check("slower", "an arm that is 5 % slower is called so", _sees_five_percent),
    Check("spinning", "arms whose idle threads spin are noticed", _sees_spinning_threads),
    Check("marked", "blocks beside a process that stays are marked", _marks_blocks),
    Check("fooled", "identical arms are not so beside one that comes and goes", _is_not_fooled),
)  # fmt: skip


@dataclass(frozen=True)
class Rate:
    """How often a check came out as it should, and why it could not be made, if so."""

    check: Check
    passed: int
    made: int
    seconds: float
    failure: str | None = None


def main() -> int:
    """Make the checks and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    names = [each.name for each in CHECKS]
    parser.add_argument("--only", action="append", choices=names, help="may be repeated")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    found = []
    for check in CHECKS:
        if check.name in (options.only or names):
            found.append(_made(check, options.repeats))
            print(_row(found[-1]), flush=True)
    text = _page(found, options.repeats)
    print(f"\n{text}")
    if options.output:
        options.output.write_text(text)
    return 1 if any(each.failure for each in found) else 0


def _made(check: Check, repeats: int) -> Rate:
    """Make a check until it has been made often enough, or could not be."""
    started, passed = time.perf_counter(), 0
    for index in range(repeats):
        try:
            passed += check.passes()
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            return Rate(check, passed, index, time.perf_counter() - started, repr(error))
    return Rate(check, passed, repeats, time.perf_counter() - started)


def _row(found: Rate) -> str:
    share = f"{found.passed / found.made:.0%}" if found.made else "-"
    text = found.check.text + (f" (could not be made: {found.failure})" if found.failure else "")
    return (
        f"| {found.check.name} | {text} | {found.passed} of {found.made} | {share}"
        f" | {found.seconds / max(found.made, 1):.1f} s |"
    )


def _page(found: Sequence[Rate], repeats: int) -> str:
    lines = [
        "# What needs a real clock",
        "",
        f"Each check {repeats} times, on {os.cpu_count()} cores ({processor_name()}); runs are of",
        f"{MODEL}, {SCALE} scale. Made by `bench/check_timing.py`.",
        "",
        "| check | should be so | was | rate | each takes |",
        "|---|---|---|---|---|",
        *map(_row, found),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
