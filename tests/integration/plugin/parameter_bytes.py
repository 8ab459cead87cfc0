"""A study that somebody else has written: how many bytes do a model's weights and buffers take?

All of it is in this file; the entry point beside it is what makes it known.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.interfaces.option import Exclusion, Flag, always
from dynamometer.common.interfaces.workload_options import BACKENDS
from dynamometer.common.studies.experiment import InOneProcess
from dynamometer.common.studies.study import StudyOfCases
from dynamometer.results.reports.columns import Column, Rows, Table
from dynamometer.results.reports.texts import name_columns
from dynamometer.results.values.cases import Mode, Value
from dynamometer.results.values.records import (
    PASSED,
    ArmResult,
    Record,
    Stage,
    StopReason,
    packed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.interfaces.workload import Workload
    from dynamometer.common.studies.experiment import Context
    from dynamometer.results.values.cases import Protocol

PARAMETER_BYTES = Flag(
    ("--parameter-bytes",), group="Measurement",
    help="Instead: bytes of parameters and buffers, by dtype.",
    again=always,
    excludes=Exclusion((BACKENDS,), "--parameter-bytes compiles nothing"),
)  # fmt: skip


class Bytes(Value, frozen=True, kw_only=True):
    """Bytes of parameters and buffers, by dtype."""

    by_dtype: dict[str, int]


class CountBytes(InOneProcess):
    """Loads the model and adds up."""

    finds: ClassVar[type[Value]] = Bytes

    def measure(self, context: Context) -> Findings:
        """Count in a worker, where torch is."""
        (arm,) = context.job.arms
        with context.stages.at(Stage.LOAD):
            module = context.load().module
        found: Counter[str] = Counter()
        for each in (*module.parameters(), *module.buffers()):
            found[str(each.dtype)] += each.numel() * each.element_size()
        return Findings(
            outcome=PASSED,
            arms=(ArmResult(arm=arm, outcome=PASSED),),
            found=packed(Bytes(by_dtype=dict(found))),
        )


Row = tuple[Record, str | None, int | None]
"""The last record of a model, a dtype, and the bytes of that."""

BYTES = Table[Row](
    "bytes",
    "A row for each dtype of a model.",
    (
        Column[Row]("dev", "Device.", lambda row: row[0].case.device),
        Column("name", "Model.", lambda row: row[0].case.model),
        Column("dtype", "Of parameters and buffers.", lambda row: row[1]),
        Column("bytes", "How many they take.", lambda row: row[2], "B"),
        Column("status", "How it ended.", lambda row: row[0].outcome.status),
        Column("reason", "Why.", lambda row: row[0].outcome.reason),
    ),
)


class ParameterBytes(StudyOfCases):
    """How many bytes do weights and buffers take? Counted twice, to have something to interrupt."""

    modules: ClassVar = {"parameter_bytes": "parameter_bytes:CountBytes"}
    asked_by = PARAMETER_BYTES
    usual_replicates = (2, 2)

    def workload(self, asked: Workload, request: Request) -> Workload:
        """Refuse what makes no difference to weights."""
        del request
        if asked.mode is Mode.TRAINING:
            msg = "--parameter-bytes is the same in training; leave out --training"
            raise UsageError(msg)
        return msgspec.structs.replace(asked, arms=())

    def stop_reason(self, records: Sequence[Record], protocol: Protocol) -> StopReason | None:
        """Stop when two agree."""
        return StopReason.FOUND if len(records) >= protocol.replicates else None

    def tables(self) -> list[Table[Any]]:
        """Return the one it has."""
        return [BYTES]

    def lines(self, records: Sequence[Record]) -> list[str]:
        """Say it in a line."""
        found = _bytes_of(records)
        text = ", ".join(f"{key} {n} bytes" for key, n in sorted(found.items()))
        return [f"{name_columns(records[0].case)} {text or records[-1].outcome.line}"]

    def closing_lines(self, cases: Sequence[Sequence[Record]]) -> list[str]:
        """Add up over models."""
        total = sum(sum(_bytes_of(records).values()) for records in cases)
        return ["", f"TOTAL {total} bytes of {len(cases)} models"]

    def rows(self, records: Sequence[Record], *, compatible: bool) -> list[Rows]:
        """Return a row for each dtype."""
        del compatible
        found = _bytes_of(records) or {None: None}
        rows = [(records[-1], dtype, count) for dtype, count in found.items()]
        return [BYTES.rows(records[0].case, "weights", rows)]


def _bytes_of(records: Sequence[Record]) -> dict[str, int]:
    found = msgspec.json.decode(records[-1].found, type=Bytes | None)
    return found.by_dtype if found else {}


STUDY = ParameterBytes()
