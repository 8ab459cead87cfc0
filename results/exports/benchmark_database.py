"""Records of PyTorch's benchmark database, version 3: a line of JSON for each model and metric.

What the uploader adds itself (repository, commit, workflow, job) is not there.
Source: `output_json` in `benchmarks/dynamo/common.py`; pytorch/pytorch wiki, "How to integrate with
PyTorch OSS benchmark database".
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dynamometer.results.exports.export import Document, json_text
from dynamometer.results.exports.figures import figures
from dynamometer.results.reports.arms.dashboard_status import accuracy_string
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from dynamometer.results.exports.export import Ending, StoredRun
    from dynamometer.results.exports.figures import Figure
    from dynamometer.results.values.cases import Case

SCHEMA = "v3"


def export(run: StoredRun) -> list[Document]:
    """Return one document; a metric that is not known has no record."""
    run_part = _run_part(run)
    by_case: defaultdict[str, list[Figure]] = defaultdict(list)
    for figure in figures(run):
        by_case[figure.case.id].append(figure)
    records: list[dict[str, Any]] = []
    told: set[str] = set()
    unfinished = {case.id for case in run.unfinished}
    for ending in run.endings():
        # PyTorch's dashboards count what was skipped as passed, which nobody knows of these yet.
        if not (ending.case.id in unfinished and ending.outcome.status is Status.SKIP):
            records.append(_accuracy(run_part, ending))
        if ending.case.id not in told:
            told.add(ending.case.id)
            records += [_metric(run_part, each) for each in by_case[ending.case.id]]
    lines = "".join(json_text(each, indent=None) for each in records)
    return [Document(f"{run.manifest.run_id}.json", lines)]


def _run_part(run: StoredRun) -> dict[str, Any]:
    manifest = run.manifest
    environment = manifest.environment
    return {
        "timestamp": int(datetime.fromisoformat(manifest.created_at).timestamp()),
        "schema_version": SCHEMA,
        "name": "dynamometer",
        "runners": [
            {
                "name": environment.machine,
                "type": environment.os,
                "cpu_info": environment.cpu,
                "cpu_count": environment.cpus,
                "mem_info": str(environment.memory_bytes),
            }
        ],
        "dependencies": {
            name: {"version": version} for name, version in sorted(environment.packages.items())
        },
    }


def _record(
    run_part: dict[str, Any], case: Case, arm: str, extra: dict[str, str], metric: dict[str, Any]
) -> dict[str, Any]:
    return {
        **run_part,
        "benchmark": {
            "name": "dynamometer",
            "mode": str(case.mode),
            "dtype": str(case.dtype),
            "extra_info": {
                "device": case.device,
                "scale": str(case.scale),
                "shapes": case.shapes,
                "case": case.id_without_arms,
                **({} if case.batch_size is None else {"batch_size": str(case.batch_size)}),
                **extra,
            },
        },
        "model": {
            "name": case.label,
            "type": "OSS model",
            "backend": arm,
            "origins": [case.suite],
        },
        "metric": metric,
    }


def _accuracy(run_part: dict[str, Any], ending: Ending) -> dict[str, Any]:
    """Return the record of how an arm ended: as words they are extra, since values are numbers."""
    outcome = ending.outcome
    extra = {"status": str(outcome.status)}
    extra |= {"stage": str(outcome.stage)} if outcome.stage else {}
    extra |= {"reason": outcome.reason} if outcome.reason else {}
    words = {"name": "accuracy", "extra_info": {"benchmark_values": [accuracy_string(outcome)]}}
    return _record(run_part, ending.case, ending.arm, extra, words)


def _metric(run_part: dict[str, Any], figure: Figure) -> dict[str, Any]:
    column = figure.column
    about = {
        "unit": column.unit,
        "better": column.better,
        "low": figure.low,
        "high": figure.high,
        "doubt": figure.doubt,
    }
    metric = {
        "name": column.name,
        "benchmark_values": [figure.value],
        "extra_info": {key: str(each) for key, each in about.items() if each not in {None, ""}},
    }
    extra = {} if figure.size is None else {"size": figure.size}
    return _record(run_part, figure.case, figure.arm, extra, metric)
