"""The page a calibration comes to, each result as CSV, and a picture where matplotlib is there."""

from __future__ import annotations

import csv
import io
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tabulate import tabulate

from dynamometer.common.machine.disturber import BUSY_S, IDLE_S
from dynamometer.common.studies.calibration import evaluation as calibration
from dynamometer.common.studies.calibration.arms import OF_EAGER, OF_INDUCTOR, PAIRS
from dynamometer.common.studies.calibration.picture import draw
from dynamometer.common.studies.calibration.rates import accused, naive_rates, rates
from dynamometer.results.statistics.between_processes import learnt, scatters
from dynamometer.results.statistics.replicates import is_assumed
from dynamometer.results.store.atomic_file import write_text
from dynamometer.results.values.cases import Protocol
from dynamometer.results.values.records import (
    ASSUMED_SD,
    BetweenProcessSd,
    Manifest,
    Record,
    Status,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.common.studies.calibration.evaluation import NaiveTest, Series
    from dynamometer.results.values.records import Estimate
    from dynamometer.results.values.workers import StartMethod


@dataclass(frozen=True)
class Calibration:
    """A run of arms whose effect is known."""

    manifest: Manifest
    records: tuple[Record, ...]

    @property
    def in_blocks(self) -> list[Record]:
        """The records as they would be without isolated runs."""
        return [calibration.without_isolated_runs(each) for each in self.records]


class _Kind(NamedTuple):
    """What may differ between runs that are evaluated together, but not within a table.

    Attributes:
        start_method: how processes come to be.
        busy: whether a process of ours came and went meanwhile.
    """

    start_method: StartMethod
    busy: bool

    def __str__(self) -> str:
        return f"{self.start_method}, busy" if self.busy else str(self.start_method)


_INTRODUCTION = """# How often measuring is wrong

Measured by `dynamometer calibrate` on {cpus} cores ({cpu}), torch {torch}: {models} models of
torchbench at {scale} scale, {replicates} replicates. Arms whose effect is known were
measured: identical ones (eager beside eager, Inductor beside Inductor), and eager slowed by 1, 2
and 5 %.
"""

_LEGEND = f"""
*Ours* is the default protocol: 3 to 5 processes until the interval is within 1 %, its variance
moderated by what all other models teach of the same pair. *In a first run*
{ASSUMED_SD.sd_log:.1%} is assumed as long as it goes on; when it ends its own other models have
taught as well, unless it is *of a single model*. Results that something disturbed conclude nothing,
in a run as here, and are left out of the rates. So are those whose arms are said to interfere with
each other, as none of these do; a run may time such arms in processes of their own, which has a
table of its own. Seconds are those of bursts, without building the arms and warming them up; to
+-1 % is the median of what each result would take. For identical arms coverage is what false alarms
leave of 100 %; that of slowed arms is a figure of its own. *Had it not been seen*: as where Linux's
counters show nothing of what keeps the machine busy. *Usual* is one process, 30 pairs of calls that
alternate, and an unpaired t test, on the same models, in the same run. In brackets: 95 %
intervals (Wilson 1927).
"""

_RHYTHM = f"computes for {BUSY_S} s and sleeps for {IDLE_S} s, on average"
_ISOLATED = "Arms in isolated runs, as those are timed that interfere:"


def write_page(path: Path, runs: Sequence[Calibration]) -> None:
    """Write a page, and beside it a picture and a CSV of the same name.

    Raises:
        OSError: one can't be written.
    """
    groups = [_results(*each) for each in _by_kind(runs).items()]
    write_text(path.with_suffix(".csv"), _results_as_csv(groups))
    picture = path.with_suffix(".png")
    drawn = draw(picture, groups[0].found, groups[0].naive)
    write_text(path, _page(runs, groups, picture.name if drawn else None))


@dataclass(frozen=True)
class _Results:
    """Of runs of one kind.

    Attributes:
        kind: theirs.
        found: judged by what is known of the machine.
        assumed: judged as in a first run of all models.
        alone: judged as in a first run of each model alone.
        unseen: judged as if nothing had been seen of what kept the machine busy; else nothing.
        in_isolation: those of arms in processes of their own.
        naive: judged the usual way.
    """

    kind: _Kind
    found: list[Series]
    assumed: list[Series]
    alone: list[Series]
    unseen: list[Series]
    in_isolation: list[Series]
    naive: list[NaiveTest]


def _by_kind(runs: Sequence[Calibration]) -> dict[_Kind, list[Calibration]]:
    """Group runs; the kind of the first comes first."""
    groups: dict[_Kind, list[Calibration]] = {}
    for run in runs:
        plan = run.manifest.plan
        groups.setdefault(_Kind(plan.protocol.start_method, plan.busy), []).append(run)
    return groups


def _results(kind: _Kind, runs: Sequence[Calibration]) -> _Results:
    usual = Protocol()

    in_blocks = [run.in_blocks for run in runs]
    unseen = [[calibration.as_if_unseen(each) for each in run] for run in in_blocks if kind.busy]

    def cut(
        records: Sequence[Sequence[Record]],
        assumed: BetweenProcessSd | None,
        *,
        alone: bool = False,
    ) -> list[Series]:
        return [
            one for run in records for one in calibration.series(run, usual, assumed, alone=alone)
        ]

    return _Results(
        kind=kind,
        found=cut(in_blocks, None),
        assumed=cut(in_blocks, ASSUMED_SD),
        alone=cut(in_blocks, ASSUMED_SD, alone=True),
        unseen=cut(unseen, None),
        in_isolation=[
            one for run in runs for one in calibration.series_in_isolation(run.records, usual)
        ],
        naive=[one for run in runs for one in calibration.naive_tests(run.records)],
    )


def _page(runs: Sequence[Calibration], groups: Sequence[_Results], picture: str | None) -> str:
    environment = runs[0].manifest.environment
    passed = [
        record for run in runs for record in run.records if record.outcome.status is Status.PASS
    ]
    text = _INTRODUCTION.format(
        cpus=environment.cpus,
        cpu=environment.cpu,
        torch=environment.packages.get("torch", "?"),
        models=len({record.case.model for record in passed}),
        scale=runs[0].manifest.plan.cases[0].scale,
        replicates=len(passed),
    )
    lines = [text, f"Processes by {groups[0].kind.start_method}{_busy(groups[0].kind)}.", ""]
    lines += [*_tables(groups[0]), _LEGEND]
    if picture:
        lines += [f"![Each result of identical arms]({picture})", ""]
    for group in groups[1:]:
        title = f"## With processes by {group.kind.start_method}{_busy(group.kind)}"
        lines += [title, "", *_tables(group), ""]
    lines += ["## By model", "", *_drift_lines(runs), "", *_learnt_lines(runs), ""]
    return "\n".join(lines)


def _busy(kind: _Kind) -> str:
    return f", beside a process that {_RHYTHM}" if kind.busy else ""


def _tables(group: _Results) -> list[str]:
    ours = {
        "ours": group.found,
        "ours, in a first run": group.assumed,
        "ours, in one of a single model": group.alone,
    }
    if group.unseen:
        ours["ours, had it not been seen"] = group.unseen
    lines = _table(_rate_rows(list(ours.values()), group.naive), ["", *ours, "usual"])
    if not group.in_isolation:
        return lines
    return [
        *lines,
        "",
        _ISOLATED,
        "",
        *_table(_rows_in_isolation(group.in_isolation), ["", "isolated runs"]),
    ]


def _rows_in_isolation(found: list[Series]) -> list[list[str]]:
    known = rates(found)
    return [
        ["identical arms called different", _share(known.false_alarms)],
        ["intervals that hold the truth, identical", _share(known.coverage)],
        ["5 % slower, noticed", _share(known.detection[5])],
        ["left out, something disturbed them", _disturbed(found)],
        ["results within 1 %", _within(found)],
        ["replicates for one result", _mean_n(found)],
    ]


def _rate_rows(ours: Sequence[list[Series]], naive: list[NaiveTest]) -> list[list[str]]:
    columns = [*map(rates, ours), naive_rates(naive)]
    rows = [
        ["identical arms called different", *(_share(each.false_alarms) for each in columns)],
        ["- eager beside eager", *(_share(each.of_eager) for each in columns)],
        ["- Inductor beside Inductor", *(_share(each.of_inductor) for each in columns)],
        ["intervals that hold the truth, identical", *(_share(each.coverage) for each in columns)],
        ["the same, 2 % slower", *(_share(each.coverage_slowed) for each in columns)],
        *(
            [f"{share} % slower, noticed", *(_share(each.detection[share]) for each in columns)]
            for share in (5, 2, 1)
        ),
    ]
    return [
        *rows,
        ["left out, something disturbed them", *map(_disturbed, ours), ""],
        ["left out, arms wrongly said to interfere", *map(_accused, ours), ""],
        ["results within 1 %", *map(_within, ours), ""],
        ["processes for one result", *map(_mean_n, ours), "1"],
        ["seconds of timing for it", *map(_seconds, ours), ""],
        ["seconds of timing to +-1 %", *map(_seconds_to_1, ours), ""],
    ]


def _drift_lines(runs: Sequence[Calibration]) -> list[str]:
    rows = [
        [
            drift.model,
            "inductor" if drift.pair == OF_INDUCTOR else "eager",
            str(kind),
            f"{drift.mean:+.2%}",
            f"{drift.t:+.1f}",
            f"{drift.sd:.2%}",
            str(drift.n),
        ]
        for kind, alike in _by_kind(runs).items()
        for drift in calibration.drifts([record for run in alike for record in run.in_blocks])
    ]
    rows.sort()
    headers = ["model", "arms", "processes by", "mean difference", "t", "sd between", "n"]
    return _table(rows, headers)


def _learnt_lines(runs: Sequence[Calibration]) -> list[str]:
    lines = []
    for kind, alike in _by_kind(runs).items():
        for name, (base, arm) in (("eager", OF_EAGER), ("Inductor", OF_INDUCTOR)):
            between_sd = learnt(
                [each for run in alike for each in scatters(run.in_blocks, arm, base)]
            )
            if not is_assumed(between_sd):
                lines.append(
                    f"Learnt of a pair of {name} in processes by {kind}: beyond what each leaves"
                    f" open of its own they differ by {between_sd.sd_log:.2%}, worth"
                    f" {between_sd.df:.1f} degrees of freedom."
                )
    return lines


_COLUMNS = (
    "protocol", "processes_by", "model", "baseline", "arm", "truth", "speedup", "low", "high",
    "p_value", "replicates", "is_conclusive",
)  # fmt: skip


def _results_as_csv(groups: Sequence[_Results]) -> str:
    """Return every result of the default protocol and of the usual one, to be counted again."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(_COLUMNS)
    for group in groups:
        for each in group.found:
            of_pair = ["ours", str(group.kind), each.model, *map(_short, each.pair)]
            found = (each.truth, each.ratio.value, each.ratio.low, each.ratio.high)
            texts = [f"{value:.6g}" for value in (*found, each.ratio.p_value)]
            rows.writerow([*of_pair, *texts, each.replicates, each.is_conclusive])
        for test in group.naive:
            of_pair = ["usual", str(group.kind), test.model, *map(_short, test.pair)]
            texts = [f"{value:.6g}" for value in (PAIRS[test.pair], test.value, test.p_value)]
            rows.writerow([*of_pair, *texts[:2], "", "", texts[2], 1, True])
    return text.getvalue()


def _short(arm: str) -> str:
    """Leave out the module an arm of known effect is in."""
    return arm.rpartition(":")[2]


def _share(found: Estimate | None) -> str:
    if found is None:
        return "-"
    return f"{found.value:.1%} [{found.low:.1%}, {found.high:.1%}] of {found.n}"


def _disturbed(found: Sequence[Series]) -> str:
    return f"{sum(each.is_disturbed for each in found)} of {len(found)}"


def _accused(found: Sequence[Series]) -> str:
    return _share(accused(found))


def _within(found: Sequence[Series]) -> str:
    return _mean([100.0 * each.within_target for each in found], "{:.0f}%")


def _mean_n(found: Sequence[Series]) -> str:
    return _mean([each.replicates for each in found], "{:.1f}")


def _seconds(found: Sequence[Series]) -> str:
    return _mean([each.measured_s for each in found], "{:.1f}")


def _seconds_to_1(found: Sequence[Series]) -> str:
    seconds = [each.seconds_to(0.01) for each in found]
    return f"{statistics.median(seconds):.1f}" if seconds else "-"


def _mean(values: Sequence[float], form: str) -> str:
    return form.format(statistics.fmean(values)) if values else "-"


def _table(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> list[str]:
    return tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True).splitlines()
