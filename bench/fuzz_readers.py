#!/usr/bin/env python3
"""Give every reader of files damaged ones for a time, and say what came of it.

    python bench/fuzz_readers.py --minutes 10 --output docs/fuzzing.md

Each input is a good file with something in its place: bytes, other values, lines that are repeated,
left out or exchanged, the end cut off. It must be read, or refused by an error of ours that names
the file. The readers, and what is good for each, are those of
tests/property/test_properties_of_readers.py, of which `make test` tries sixty inputs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "property")]
from test_properties_of_readers import OURS, READERS  # noqa: E402  found on the path above

PIECES = (
    b"\xff", b"\x00", b"\n", b"\r", b'"', b"'", b",", b":", b"[", b"]", b"{", b"}", b"null", b"-1",
    b"1e999", b"NaN", b"9" * 400, b"0.5", b"\xed\xa0\x80", b'"\\ud800"', b"true", b"=", b"[" * 3000,
    b'{"a":' * 800, b"\xef\xbb\xbf", b"=cmd|' /C calc'!A0", b"../../etc/passwd", b"\x1b[2J",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 0.5, float("inf"), float("nan"), "", "a\nb", "\ud800", [], {}, [[]],
    {"a": {}}, "x" * 5000,
)  # fmt: skip


@dataclass
class Tried:
    """What came of one reader's inputs."""

    inputs: int = 0
    read: int = 0
    refused: int = 0
    cpu_s: float = 0.0
    faults: dict[str, bytes] = field(default_factory=dict)
    """The last line of each other exception's traceback, with an input that raised it."""


def main() -> int:
    """Try all readers and write the table; give 1 where a fault was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="of each reader")
    parser.add_argument("--jobs", type=int, default=1, help="readers at a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", choices=sorted(READERS))
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    names = [*(options.only or READERS)]
    found = {}
    with ProcessPoolExecutor(options.jobs) as processes:
        begun = [
            processes.submit(tried, each, 60 * options.minutes, options.seed) for each in names
        ]
        for name, each in zip(names, begun, strict=True):
            found[name] = each.result()
            print(
                f"{name}: {found[name].inputs} inputs, {len(found[name].faults)} faults", flush=True
            )
    text = "\n".join(page(found, options.minutes, options.jobs))
    print(text)
    if options.output:
        options.output.write_text(text + "\n")
    return int(any(each.faults for each in found.values()))


def tried(name: str, lasts_s: float, seed: int) -> Tried:
    """Have a reader read damaged files for so many seconds."""
    (good, read), rng = READERS[name], random.Random(f"{seed} {name}")
    found, ends, began_s = Tried(), time.monotonic() + lasts_s, time.process_time()
    with tempfile.TemporaryDirectory() as home:
        while time.monotonic() < ends:
            folder = Path(home, "files")
            folder.mkdir()
            data = damaged(good, rng)
            (folder / "some").write_bytes(data)
            found.inputs += 1
            try:
                read(folder / "some")
            except OURS as error:
                found.refused += 1
                if str(folder) not in str(error) and "pyproject" not in str(error):
                    found.faults[f"names no file: {error}"[:200]] = data
            except Exception:  # noqa: BLE001  what is looked for
                found.faults[traceback.format_exc().strip().splitlines()[-1][:200]] = data
            else:
                found.read += 1
            shutil.rmtree(folder)
    found.cpu_s = time.process_time() - began_s
    return found


def damaged(good: bytes, rng: random.Random) -> bytes:
    """Return a good file that was damaged in one way, or in a few."""
    data = good
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice((_bytes, _bytes, _lines, _values, _cut))(data, rng)
    return data


def _bytes(data: bytes, rng: random.Random) -> bytes:
    start = rng.randint(0, len(data))
    end = rng.choice((start, min(len(data), start + 1), rng.randint(start, len(data))))
    piece = rng.choice((rng.choice(PIECES), rng.randbytes(rng.randint(0, 6))))
    return data[:start] + piece + data[end:]


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randint(0, len(data))]


def _lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    line = rng.choice(lines)
    lines.insert(rng.randint(0, len(lines)), line)
    if rng.choice((True, False)):
        lines.pop(rng.randrange(len(lines)))
    return b"".join(lines)


def _values(data: bytes, rng: random.Random) -> bytes:
    """Put another value in some place of a line of JSON, or of all of it; of other text, bytes."""
    before, newline, after = data.partition(b"\n")
    for part, rest in ((before, newline + after), (data, b"")):
        try:
            value = json.loads(part)
        except (ValueError, RecursionError):
            continue
        return json.dumps(_changed(value, rng)).encode() + rest
    return _bytes(data, rng)


def _changed(value: Any, rng: random.Random) -> Any:
    goes_on = rng.randrange(10) > 0
    if isinstance(value, dict) and value and goes_on:
        key = rng.choice(sorted(value))
        if rng.randrange(10) == 0:
            return {name: each for name, each in value.items() if name != key}
        return {**value, key: _changed(value[key], rng)}
    if isinstance(value, list) and value and goes_on:
        index = rng.randrange(len(value))
        return [*value[:index], _changed(value[index], rng), *value[index + 1 :]]
    return rng.choice(VALUES)


def page(found: dict[str, Tried], minutes: float, jobs: int) -> list[str]:
    """Return the table."""
    rows = [
        f"| {name} | {each.cpu_s:.0f} | {each.inputs:,} | {each.read:,} | {each.refused:,}"
        f" | {len(each.faults)} |"
        for name, each in found.items()
    ]
    faults = [
        f"- {name}: `{text}` for `{data[:200]!r}`"
        for name, each in found.items()
        for text, data in each.faults.items()
    ]
    return [
        "# Damaged files",
        "",
        (__doc__ or "").split("\n\n", 2)[2].strip(),
        "",
        f"{minutes:g} minutes for each, {jobs} at a time on {os.cpu_count()} processors.",
        "",
        "| reader | CPU seconds | inputs | read | refused | faults |",
        "|---|---|---|---|---|---|",
        *rows,
        *(["", *faults] if faults else []),
    ]


if __name__ == "__main__":
    sys.exit(main())
