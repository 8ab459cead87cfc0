#!/usr/bin/env python3
"""Plant changes into the second of two stored runs, compare them, and count what is named.

    python bench/planted_comparisons.py runs/<run> runs/<another> --output FILE

The runs are real, of the same models on the same machine. Of each seed three models of the second
become slower by 5 %, two fail and one is missing, drawn at random. The arms' times get noise as
wide as that of the calibration: once in place of their own, where both runs have the speedups of
the first, as on a machine as steady as then; and once on top of their own, which shows what the
machine they were made on allows. Everything that judges is the project's own. It measures nothing,
so it may run beside anything.
"""

from __future__ import annotations

import argparse
import math
import shlex
import statistics
import sys
import textwrap
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import msgspec
import numpy as np
from simulated_runs import CALIBRATED, KNOWN, block_noise

from dynamometer.common import registry
from dynamometer.common.command_line.stored.runs import side_of
from dynamometer.results.comparison.compare import compare
from dynamometer.results.comparison.quantities import SPEEDUP
from dynamometer.results.statistics.between_processes import with_between_sd
from dynamometer.results.statistics.replicates import latencies
from dynamometer.results.statistics.summary import by_case
from dynamometer.results.store import store
from dynamometer.results.values import metrics
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.comparison import Change
from dynamometer.results.values.records import Outcome, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.comparison.sides import Side
    from dynamometer.results.values.comparison import Comparison
    from dynamometer.results.values.records import Manifest, Measurement, Record

    Named = Counter[tuple[str, str, str]]
    Cases = Mapping[str, Sequence[Record]]

SLOWER, FAILING, MISSING = 3, 2, 1
"""How many models each is planted in."""
CHANGES = SLOWER + FAILING + MISSING
FACTOR = 1.05
_TIMES = frozenset(
    each.name for each in (metrics.LATENCY, metrics.LATENCY_ALONE, metrics.LATENCY_ISOLATED)
)
_FAILED = Outcome(status=Status.FAIL_ACCURACY, reason="planted")


@dataclass(frozen=True)
class Stored:
    """A stored run.

    Attributes:
        directory: where it is.
        manifest: what it says of itself.
        cases: the records of each case, by what it is known by.
    """

    directory: Path
    manifest: Manifest
    cases: Cases

    def side(self, cases: Cases) -> Side:
        """Return it as a side of a comparison, with these records."""
        records = [record for own in cases.values() for record in own]
        return side_of(self.directory, self.manifest, records)

    def entries(self, case: str) -> list[Entry]:
        """Return what of a case is compared."""
        return registry.study(self.manifest.plan.study).compared(self.cases[case])


def read(directory: Path) -> Stored:
    """Read a run."""
    found = by_case(store.read_records(directory))
    cases = {records[0].case.id_without_arms: records for records in found}
    return Stored(directory, store.read_manifest(directory), cases)


def usable(before: Stored, after: Stored) -> list[str]:
    """Return the cases whose arms all passed and were timed in both runs, beyond doubt."""
    return [
        case
        for case in after.cases
        if case in before.cases
        and all(
            each.passed and each.doubt is None and SPEEDUP.name in each.quantities
            for run in (before, after)
            for each in run.entries(case)
        )
    ]


def without_noise(run: Stored, before: Stored) -> Stored:
    """Return a run with the speedups of another, the same in every block and process.

    What is known beforehand of how far processes differ becomes the calibration's. Cases without a
    speedup in the other are left as they are.
    """
    cases = {
        case: _without_noise(records, times) if (times := _times(before, case)) else records
        for case, records in run.cases.items()
    }
    return replace(run, cases=cases)


def _times(run: Stored, case: str) -> dict[str, float]:
    """Return the median seconds of eager's calls, and what follows for arms with a speedup."""
    entries = run.entries(case) if case in run.cases else []
    speedups = {
        each.arm: each.quantities[SPEEDUP.name].value
        for each in entries
        if SPEEDUP.name in each.quantities
    }
    if not speedups:
        return {}
    found = latencies(run.cases[case], BASELINE)
    eager_s = statistics.median(sample for each in found for sample in each.samples)
    return {BASELINE: eager_s, **{arm: eager_s / each for arm, each in speedups.items()}}


def _without_noise(records: Sequence[Record], times: Mapping[str, float]) -> list[Record]:
    def steady(found: Measurement) -> Measurement:
        if found.metric not in _TIMES or found.arm not in times:
            return found
        samples = (times[found.arm],) * len(found.samples)
        return msgspec.structs.replace(found, samples=samples)

    return [
        msgspec.structs.replace(
            with_between_sd(each, KNOWN), measurements=tuple(map(steady, each.measurements))
        )
        for each in records
    ]


def with_noise(records: Sequence[Record], rng: np.random.Generator, slower: float) -> list[Record]:
    """Return the records of a case whose arms are slower, with noise in blocks and processes."""
    return [_with_noise(each, rng, slower) for each in records]


def _with_noise(record: Record, rng: np.random.Generator, slower: float) -> Record:
    factors = {
        arm: slower * math.exp(rng.normal(0.0, CALIBRATED.between))
        for arm in record.case.arms
        if arm != BASELINE
    }
    return msgspec.structs.replace(
        record,
        measurements=tuple(
            _scaled(each, rng, factors[each.arm])
            if each.metric in _TIMES and each.arm in factors
            else each
            for each in record.measurements
        ),
    )


def _scaled(found: Measurement, rng: np.random.Generator, factor: float) -> Measurement:
    numbers = found.blocks or tuple(range(len(found.samples)))
    blocks = sorted(set(numbers))
    noise = block_noise(replace(CALIBRATED, blocks=len(blocks)), rng)
    factors = dict(zip(blocks, (factor * np.exp(noise)).tolist(), strict=True))
    samples = zip(found.samples, numbers, strict=True)
    scaled = tuple(sample * factors[number] for sample, number in samples)
    return msgspec.structs.replace(found, samples=scaled)


def failed(records: Sequence[Record]) -> list[Record]:
    """Return a case whose results are wrong."""
    first = records[0]
    arms = tuple(
        each if each.arm == BASELINE else msgspec.structs.replace(each, outcome=_FAILED)
        for each in first.arms
    )
    return [msgspec.structs.replace(first, outcome=_FAILED, arms=arms, measurements=())]


def planted(run: Stored, chosen: Sequence[str], rng: np.random.Generator) -> tuple[Cases, Named]:
    """Plant changes into a run, and return its records with what is to be named.

    Args:
        run: which is left as it is.
        chosen: as many cases as there are changes.
        rng: of the noise.
    """
    slower, failing = chosen[:SLOWER], chosen[SLOWER : SLOWER + FAILING]
    missing = chosen[SLOWER + FAILING :]
    cases = {
        case: failed(records)
        if case in failing
        else with_noise(records, rng, FACTOR if case in slower else 1.0)
        for case, records in run.cases.items()
        if case not in missing
    }
    changes = ((Change.SLOWER, slower), (Change.NEWLY_FAILING, failing), (Change.GONE, missing))
    return cases, Counter(
        (str(change), each.identity["model"], each.arm)
        for change, own in changes
        for case in own
        for each in run.entries(case)
    )


def named(found: Comparison) -> Named:
    """Return what a comparison names, but for what is unclear."""
    return Counter(
        (str(each.change), each.model, each.arm)
        for each in found.findings
        if each.change not in {Change.UNCLEAR, Change.NOT_COMPARED}
    )


def page(before: Stored, after: Stored, seeds: int) -> str:
    """Compare what is to be compared, and return what came of it.

    Raises:
        ValueError: the runs have too few models in common.
    """
    cases = usable(before, after)
    if len(cases) < CHANGES:
        msg = f"{len(cases)} models passed in both runs; {CHANGES} are to be changed"
        raise ValueError(msg)
    steady = without_noise(before, before), without_noise(after, before)
    rows = [
        ("a run and itself", _listed(_differing_anyway(before, before))),
        ("both runs as they are", _listed(_differing_anyway(before, after))),
    ]
    lines: list[str] = []
    for where, pair in (("in place of", steady), ("on top of", (before, after))):
        found = trials(*pair, cases, seeds)
        own, exactly = f"noise {where} their own", "exactly what was planted in"
        rows += [
            (f"{own}: a run and itself", f"nothing in {found.nothing} of {seeds}"),
            (f"{own}: planted", f"{exactly} {found.exact} of {seeds}"),
            ("the same, besides what differs anyway", f"{exactly} {found.besides} of {seeds}"),
        ]
        lines += [f"- {own}, {each}" for each in found.differing]
    return "\n".join([*_head(before, after, len(cases), seeds), *_table(rows), "", *lines, ""])


def _differing_anyway(before: Stored, after: Stored) -> Named:
    return named(compare(before.side(before.cases), after.side(after.cases)))


@dataclass(frozen=True)
class Trials:
    """What a number of seeds came to.

    Attributes:
        nothing: in how many nothing is named of a run and itself with noise.
        exact: in how many exactly what was planted is.
        besides: the same, without what the two runs differ in by themselves.
        differing: of each other seed, what is named too many or not at all.
    """

    nothing: int
    exact: int
    besides: int
    differing: Sequence[str]


def trials(before: Stored, after: Stored, usable_cases: Sequence[str], seeds: int) -> Trials:
    """Plant changes into the second run, each seed others, and count what a comparison names."""
    anyway = _differing_anyway(before, after)
    nothing, exact, besides = 0, 0, 0
    differing = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        first, again = (
            {case: with_noise(own, rng, 1.0) for case, own in before.cases.items()}
            for _ in range(2)
        )
        nothing += not named(compare(before.side(first), before.side(again)))
        chosen = [usable_cases[each] for each in rng.permutation(len(usable_cases))[:CHANGES]]
        changed, truth = planted(after, chosen, rng)
        found = named(compare(before.side(first), after.side(changed)))
        exact += found == truth
        besides += found - anyway == truth - anyway
        differing += _differing(seed, found, truth)
    return Trials(nothing, exact, besides, differing)


def _head(before: Stored, after: Stored, usable_cases: int, seeds: int) -> list[str]:
    machine = after.manifest.environment
    torch = machine.packages.get("torch", "not known")
    text = (
        f"Two runs of {len(after.cases)} models (`{_portable(before.manifest.command)}`), on"
        f" {machine.cpu}, {machine.cpus} CPUs, torch {torch}, begun at"
        f" {before.manifest.created_at} and {after.manifest.created_at}. Into the second changes"
        f" are planted: of the {usable_cases} models that passed in both beyond doubt {SLOWER}"
        f" become slower by {FACTOR - 1:.0%}, {FAILING} fail and {MISSING} is missing, drawn anew"
        f" by each of {seeds} seeds. The arms' times of both get noise as wide as that of the"
        " calibration: in place of their own, where both runs have the speedups of the first, or"
        " on top of their own. Made by `bench/planted_comparisons.py`."
    )
    return ["# Changes planted into a real run", "", *textwrap.wrap(text, 90), ""]


def _portable(command: str) -> str:
    """Return a command line without what is of one machine: interpreter and directories."""
    words = shlex.split(command)
    script = next((at for at, word in enumerate(words) if word.endswith(".py")), 0)
    words = [f"./{Path(words[script]).name}", *words[script + 1 :]]
    if "--output-dir" in words:
        at = words.index("--output-dir")
        del words[at : at + 2]
    return shlex.join(words)


def _table(rows: Iterable[tuple[str, str]]) -> list[str]:
    return ["| compared | named |", "|---|---|", *(f"| {each} | {text} |" for each, text in rows)]


def _listed(found: Named) -> str:
    return "; ".join(f"{' '.join(each)}" for each in sorted(found)) or "nothing"


def _differing(seed: int, found: Named, truth: Named) -> list[str]:
    """Say what was named that was not planted, and what was planted and is not named."""
    beyond, missed = found - truth, truth - found
    said = [
        f"{kind}: {_listed(each)}"
        for kind, each in (("named as well", beyond), ("not named", missed))
        if each
    ]
    return [f"seed {seed}: {'. '.join(said)}"] if said else []


def main() -> int:
    """Compare, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    try:
        text = page(read(asked.before), read(asked.after), asked.seeds)
    except ValueError as error:
        parser.error(str(error))
    print(text)
    if asked.output:
        asked.output.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
