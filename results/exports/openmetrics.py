"""OpenMetrics text, as node_exporter's textfile collector and Prometheus read it.

Units are base units: seconds, bytes, ratios. What is known of the run stands in an `_info` metric
alone, so that a commit makes no new series. What can't be counted on is left out.
Source: prometheus.io/docs/specs/om/open_metrics_spec, version 1.0; `expfmt/text_parse.go` in
prometheus/common, which node_exporter reads files by.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dynamometer.results.exports.export import Document
from dynamometer.results.exports.figures import certain_figures
from dynamometer.results.reports.texts import printable
from dynamometer.results.statistics.summary import is_counted
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dynamometer.results.exports.export import StoredRun
    from dynamometer.results.values.cases import Case

_PREFIX = "dynamometer"
_BASE_UNITS = {
    "s": ("seconds", 1.0),
    "ms": ("seconds", 1e-3),
    "GB": ("bytes", 1e9),
    "B": ("bytes", 1.0),
    "x": ("ratio", 1.0),
    "1/s": ("per_second", 1.0),
    "1/call": ("per_call", 1.0),
}


@dataclass(frozen=True)
class _Family:
    """A metric and its samples, each with its labels."""

    unit: str
    doc: str
    samples: list[tuple[Mapping[str, str], float]] = field(default_factory=list)


def export(run: StoredRun) -> list[Document]:
    """Return one document."""
    families: dict[str, _Family] = {}
    for figure in certain_figures(run):
        unit, factor = _base_unit(figure.column.unit)
        labels = _labels(figure.case, figure.arm)
        labels |= {} if figure.size is None else {"size": figure.size}
        doc = figure.column.doc
        ends = {"low": "Lower end, or the least", "high": "Upper end, or the most"}
        _add(families, (figure.name,), unit, doc, labels, figure.value * factor)
        for end, text in ends.items():
            value = getattr(figure, end)
            if value is not None:
                told = f"{text}: {doc}"
                _add(families, (figure.name, end), unit, told, labels, value * factor)
    for ending in run.endings():
        if is_counted(ending.outcome):
            passed = float(ending.outcome.status is Status.PASS)
            doc = "Whether it computed what eager does; without skips and faults of the harness."
            _add(families, ("passed",), "", doc, _labels(ending.case, ending.arm), passed)
    lines = [*_info(run), *(line for name, each in families.items() for line in _text(name, each))]
    return [Document("dynamometer.prom", "".join(f"{line}\n" for line in (*lines, "# EOF")))]


def _add(
    families: dict[str, _Family],
    words: tuple[str, ...],
    unit: str,
    doc: str,
    labels: Mapping[str, str],
    value: float,
) -> None:
    own = (re.sub(r"\W", "_", _ascii(word)) for word in words)
    name = "_".join((_PREFIX, *own, *[unit] * bool(unit)))
    families.setdefault(name, _Family(unit, doc)).samples.append((labels, value))


def _base_unit(unit: str) -> tuple[str, float]:
    """Return the name of a base unit, and how many of it one is."""
    return _BASE_UNITS.get(unit, (re.sub(r"\W+", "_", _ascii(unit)).strip("_").lower(), 1.0))


def _ascii(text: str) -> str:
    """Return text in letters that names may have: others become numbers, so that none is lost."""
    return text.encode("ascii", "backslashreplace").decode()


def _labels(case: Case, arm: str) -> dict[str, str]:
    return {
        "suite": case.suite,
        "model": case.label,
        "mode": case.mode,
        "dtype": case.dtype,
        "device": case.device,
        "backend": arm,
        "scale": case.scale,
        "shapes": case.shapes,
        "case": case.id_without_arms,
    }


def _info(run: StoredRun) -> Iterator[str]:
    manifest = run.manifest
    labels = {
        "run_id": manifest.run_id,
        "version": manifest.version,
        "torch": manifest.environment.packages.get("torch"),
        "machine": manifest.environment.machine,
        "git": manifest.environment.git,
        "study": manifest.plan.study,
    }
    known = {key: value for key, value in labels.items() if value is not None}
    # A gauge, as the textfile collector refuses a file with the type `info`, which it doesn't know.
    yield f"# TYPE {_PREFIX}_run_info gauge"
    yield f"# HELP {_PREFIX}_run_info What was run, where and with which versions."
    yield f"{_PREFIX}_run_info{_braced(known)} 1"


def _text(name: str, family: _Family) -> Iterator[str]:
    yield f"# TYPE {name} gauge"
    if family.unit:
        yield f"# UNIT {name} {family.unit}"
    yield f"# HELP {name} {_escaped(family.doc)}"
    for labels, value in family.samples:
        yield f"{name}{_braced(labels)} {value!r}"


def _braced(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    text = printable(text, instead="\ufffd", kept="\n")
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
