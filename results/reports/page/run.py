"""A run as the page shows it. Reads logs; no torch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.reports.page.details import details_of
from dynamometer.results.reports.page.values import Look, ShownCase, ShownRun
from dynamometer.results.reports.texts import printable_lines
from dynamometer.results.statistics.significance import Verdict
from dynamometer.results.statistics.summary import by_case
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.history import DEVICE_NAME
from dynamometer.results.values.metrics import LATENCY
from dynamometer.results.values.records import Level, Status, has_ended

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from dynamometer.results.reports.page.earlier import Earlier
    from dynamometer.results.reports.page.values import Details, Part
    from dynamometer.results.reports.sinks import Reporter
    from dynamometer.results.values.cases import Case, RunPlan
    from dynamometer.results.values.records import Environment, Manifest, Record

NOT_RUN = "not run"
ABSENT = "no result yet: the run goes on, or was interrupted before it"
UNFINISHED = "unfinished"
MORE_TO_COME = "some replicates are still to come: the run goes on, or was interrupted"


@dataclass(frozen=True)
class RunToShow:
    """What a run's part of the page is made of.

    Attributes:
        manifest: of the run.
        cases: the records of each case that has any.
        reporter: the study that the run asked.
        directory: the run's, which holds the logs.
        earlier: the run among earlier ones, where an index has some.
    """

    manifest: Manifest
    cases: Sequence[Sequence[Record]]
    reporter: Reporter
    directory: Path
    earlier: Earlier | None = None


def run_to_show(
    manifest: Manifest,
    records: Iterable[Record],
    reporter: Reporter,
    directory: Path,
    earlier: Earlier | None = None,
) -> RunToShow:
    """Return a stored run, to be shown."""
    return RunToShow(manifest, by_case(records), reporter, directory, earlier)


def shown(found: RunToShow) -> tuple[ShownRun, list[Details]]:
    """Return a run, and the details of each of its cases that has any record."""
    manifest, cases = found.manifest, found.cases
    seen = {records[0].case.id for records in cases}
    absent = [each for each in manifest.plan.cases if each.id not in seen]
    begun = [index for index, records in enumerate(cases) if not has_ended(records, manifest.plan)]
    part, lines, closing_lines = found.reporter.on_page(cases)
    details = [
        details_of(records, printable_lines(told), found.directory)
        for records, told in zip(cases, lines, strict=True)
    ]
    run = ShownRun(
        run_id=manifest.run_id,
        title=_title(manifest.plan),
        facts=tuple(_facts(manifest, cases, len(cases) - len(begun))),
        warnings=tuple(
            f"{each.subject}: {each.finding}"
            for each in manifest.diagnoses
            if each.level is Level.UNFIT
        ),
        planned=len(manifest.plan.cases),
        ended=len(cases) - len(begun),
        absent=ABSENT,
        good="" if part.looks or absent or begun else _good(part),
        cases=(
            *(_case(each[0].case, found.reporter.ending(each).status, len(each)) for each in cases),
            *(_case(each, NOT_RUN, 0) for each in absent),
        ),
        part=_with_unfinished(part, begun, range(len(cases), len(cases) + len(absent))),
        lines=tuple(printable_lines(closing_lines)),
    )
    return run, details


def _with_unfinished(part: Part, begun: Iterable[int], absent: Iterable[int]) -> Part:
    """Add what was planned and has not ended, so that it is not mistaken for what passed.

    Args:
        part: what the study shows.
        begun: numbers of cases that have some record.
        absent: of those that have none.
    """
    looks = [Look(kind=UNFINISHED, text=MORE_TO_COME, case=each) for each in begun]
    looks += [Look(kind=NOT_RUN, text=ABSENT, case=each) for each in absent]
    return msgspec.structs.replace(part, looks=(*part.looks, *looks))


def _good(part: Part) -> str:
    """Return what a run comes to of which nothing needs a look."""
    counted = sum(each.counted for each in part.groups)
    if not counted:
        return "Nothing was run: all was left out."
    passed = f"Nothing: {sum(each.passed for each in part.groups)} of {counted} passed"
    if not part.is_timed:
        return f"{passed}."
    verdicts = Counter(each.verdict for each in part.arms if each.verdict)
    unclear = verdicts[Verdict.UNCLEAR]
    without = sum(
        each.status is Status.PASS and each.group is not None and each.speedup is None
        for each in part.arms
    )
    unknown = f"; {unclear} of {verdicts.total()} {Verdict.UNCLEAR}" if unclear else ""
    unknown += f"; {without} without a speedup" if without else ""
    return f"{passed}, none is {Verdict.SLOWER} than eager{unknown}."


def _title(plan: RunPlan) -> str:
    arms = dict.fromkeys(arm for case in plan.cases for arm in case.arms if arm != BASELINE)
    names = ", ".join(arms)
    if len(names) > _LONGEST_NAMES:
        names = f"{len(arms)} backends"
    of_arms = f": {names} against the baseline" if arms else ""
    return f"{plan.suite}, {plan.study.replace('_', ' ')}{of_arms}"


_LONGEST_NAMES = 48
"""Characters of a heading."""


def _case(case: Case, status: str, replicates: int) -> ShownCase:
    return ShownCase(
        id=case.id,
        label=case.label,
        suite=case.suite,
        mode=case.mode,
        device=case.device,
        dtype=case.dtype,
        shapes=case.shapes,
        batch_size=case.batch_size,
        status=status,
        replicates=replicates,
    )


def _facts(
    manifest: Manifest, cases: Sequence[Sequence[Record]], ended: int
) -> list[tuple[str, str]]:
    """Say what was measured, where and how; of so many cases that have ended."""
    plan, machine = manifest.plan, manifest.environment
    devices = dict.fromkeys(
        record.device_name for records in cases for record in records if record.device_name
    )
    threads = "as torch chooses" if plan.threads is None else str(plan.threads)
    return [
        ("run", manifest.run_id),
        ("began", manifest.created_at),
        ("command", manifest.command),
        ("cases", f"{ended} of {len(plan.cases)} ended"),
        *((name, _all(getattr(each, name) for each in plan.cases))
          for name in ("mode", "device", "dtype", "scale", "shapes")),
        *([(DEVICE_NAME, ", ".join(devices))] if devices else []),
        ("machine", _machine(machine)),
        ("torch", machine.packages.get("torch", "not known")),
        ("packages", _packages(machine)),
        ("Python, system", f"{machine.python}; {machine.os}"),
        ("commit", machine.measured_git or "not known"),
        ("commit of dynamometer", machine.git or "not known"),
        ("governor, load", f"{machine.governor or 'not known'}, {machine.load_1min:.1f}"),
        ("threads", threads),
        ("protocol", _protocol(plan, is_timed=_is_timed(cases))),
        *((f"${name}", value) for name, value in sorted(machine.variables.items())),
    ]  # fmt: skip


def _machine(found: Environment) -> str:
    memory = f"{found.memory_bytes / 2**30:.1f} GiB"
    return f"{found.machine}: {found.cpu}, {found.cpus} CPUs, {memory}"


def _packages(machine: Environment) -> str:
    others = {name: version for name, version in machine.packages.items() if name != "torch"}
    return ", ".join(f"{name} {version}" for name, version in sorted(others.items())) or "-"


def _is_timed(cases: Sequence[Sequence[Record]]) -> bool:
    return any(
        each.metric == LATENCY.name for records in cases for record in records
        for each in record.measurements
    )  # fmt: skip


def _protocol(plan: RunPlan, *, is_timed: bool) -> str:
    """Say how it was measured; of timing only where there was any."""
    found = plan.protocol
    replicates = f"{found.replicates} to {found.most_replicates}"
    if found.replicates == found.most_replicates:
        replicates = str(found.replicates)
    timing = (
        f", until intervals are within {found.target:.1%};"
        f" {found.arm_budget_s:g} s of each arm in {found.min_blocks} to {found.max_blocks} blocks;"
        f" allocator {found.allocator}"
    )
    return (
        f"{replicates} replicates{timing if is_timed else ''}, caches {found.caches},"
        f" {found.start_method}"
    )


def _all(values: Iterable[object]) -> str:
    return ", ".join(sorted({str(each) for each in values}))
