#!/usr/bin/env python3
"""Simulate identical arms on machines that are made up, and count how often they differ.

    python bench/simulated_error_bars.py --output docs/simulated-error-bars.md

Everything that judges is the project's own (tests/simulated.py); only the noise is made up. It
takes some minutes and measures nothing, so it may run beside anything.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import simulated
from simulated import Machine, alarms, called, judged, measured, without_errors

from dynamometer.results.statistics.between_processes import by_others
from dynamometer.results.statistics.significance import LATENCY_FLOOR, SIGNIFICANT_P
from dynamometer.results.values.cases import Protocol
from dynamometer.results.values.records import ASSUMED_SD, FORMERLY_ASSUMED, BetweenProcessSd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dynamometer.results.values.records import Ratio

    Row = tuple[str, Callable[[float], str]]

KNOWN = BetweenProcessSd(sd_log=0.006, df=30.0)
SCREENING = Protocol(replicates=1, most_replicates=1)
WITHIN = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05)
BETWEEN = (0.003, 0.006, 0.009, 0.012)
MODELS = 12


def main() -> int:
    """Simulate, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=2_000)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    text = _page(options.trials)
    print(text)
    if options.output:
        options.output.write_text(text)
    return 0


def _page(trials: int) -> str:
    lines = [
        "# Error bars of simulated machines",
        "",
        f"Identical arms, {trials:,} cases for each figure; 3 to 5 processes until the interval is",
        "within 1 %, each of 24 blocks (but where it says otherwise). The noise is made up, what",
        "judges is the code itself. Between processes arms differ by 0.6 % (but where it says",
        "otherwise); *within* is the standard error of what the blocks of one process say. Made by",
        "`bench/simulated_error_bars.py`; a shorter form is among the tests.",
        "",
        "## Called different, at a nominal 5 %",
        "",
        *_table("error within a process", WITHIN, _alarm_rows(trials)),
        "",
        "*Thrown away*: as it was until now, where several processes speak for themselves. A first",
        f"run assumes {_words(ASSUMED_SD)}; until now",
        f"{_words(FORMERLY_ASSUMED)}.",
        "",
        "## Called faster or slower, by more than 2 %",
        "",
        *_table("error within a process", WITHIN, _called_rows(trials)),
        "",
        "## First runs on other machines",
        "",
        "Where processes differ by more than is assumed, or by less.",
        "",
        *_table("error within a process", WITHIN, _machine_rows(trials)),
        "",
        "A guess can't be right of every machine: on steady ones fewer than 5 % are called",
        "different, and intervals are wider than need be.",
        f"In a run of {MODELS} models each is judged by what the others teach when it ends.",
        "",
        "## Machines that have become less steady since they were known",
        "",
        f"Known are {_words(KNOWN)}.",
        "A run's cases teach each other beside that; a single model has nothing but its own few",
        "processes against it.",
        "",
        *_table("error within a process", WITHIN, _changed_rows(trials)),
        "",
        "## Few blocks, and blocks that resemble their neighbours",
        "",
        "On a machine whose speed drifts successive blocks are off by similar amounts. *Order",
        "forgotten*: the same blocks as if they were independent.",
        "",
        *_table("error within a process", WITHIN[1:], _drift_rows(trials)),
    ]
    return "\n".join(lines) + "\n"


def _words(between_sd: BetweenProcessSd) -> str:
    return (
        f"{between_sd.sd_log:.1%} between processes, worth {between_sd.df:.0f} degrees of freedom"
    )


def _alarm_rows(trials: int) -> list[Row]:
    def of(
        between_sd: BetweenProcessSd, protocol: Protocol = simulated.USUAL
    ) -> Callable[[float], str]:
        return lambda within: _percent(alarms(judged(_cases(within, trials), between_sd, protocol)))

    def without(between_sd: BetweenProcessSd) -> Callable[[float], str]:
        return lambda within: _percent(
            alarms(judged(without_errors(_cases(within, trials)), between_sd))
        )

    def replicates(within: float) -> str:
        found = judged(_cases(within, trials), KNOWN)
        return f"{statistics.fmean(each.n for each in found):.1f}"

    return [
        ("known machine, thrown away", without(KNOWN)),
        ("**known machine**", of(KNOWN)),
        ("first run, thrown away", without(FORMERLY_ASSUMED)),
        ("**first run of one model**", of(ASSUMED_SD)),
        ("known machine, one process", of(KNOWN, SCREENING)),
        ("first run, one process", of(ASSUMED_SD, SCREENING)),
        ("processes, known machine", replicates),
    ]


def _called_rows(trials: int) -> list[Row]:
    return [
        ("known machine, thrown away",
         lambda within: _percent(_beyond(judged(without_errors(_cases(within, trials)), KNOWN)))),
        ("first run, thrown away", lambda within: _percent(
            _beyond(judged(without_errors(_cases(within, trials)), FORMERLY_ASSUMED)))),
        ("known machine, value beyond 2 %",
         lambda within: _percent(_beyond(judged(_cases(within, trials), KNOWN)))),
        ("**known machine, interval beyond 2 %**",
         lambda within: _percent(called(judged(_cases(within, trials), KNOWN)))),
        ("**first run, interval beyond 2 %**",
         lambda within: _percent(called(judged(_cases(within, trials), ASSUMED_SD)))),
    ]  # fmt: skip


def _beyond(found: Iterable[Ratio]) -> float:
    """Return the share that was called faster or slower by the former rule, of the value alone."""
    least = math.log1p(LATENCY_FLOOR)
    return statistics.fmean(
        each.p_value <= SIGNIFICANT_P and abs(math.log(each.value)) > least for each in found
    )


def _machine_rows(trials: int) -> list[Row]:
    def of(between: float) -> Callable[[float], str]:
        return lambda within: _percent(
            alarms(judged(measured(Machine(between, within), trials), ASSUMED_SD))
        )

    def many(between: float) -> Callable[[float], str]:
        return lambda within: _percent(alarms(_of_many(Machine(between, within), trials // MODELS)))

    return [
        *((f"{between:.1%} between, one model", of(between)) for between in BETWEEN),
        *((f"{between:.1%} between, {MODELS} models", many(between)) for between in BETWEEN),
    ]


def _changed_rows(trials: int) -> list[Row]:
    def of(between: float, models: int) -> Callable[[float], str]:
        def share(within: float) -> str:
            machine = Machine(between, within)
            return _percent(alarms(_of_many(machine, trials // models, KNOWN, models)))

        return share

    return [
        (f"{between:.1%} between, {models} model{'s' * (models > 1)}", of(between, models))
        for between in (KNOWN.sd_log, 0.012, 0.018)
        for models in (1, 3, MODELS)
    ]


def _of_many(
    machine: Machine, runs: int, known: BetweenProcessSd = ASSUMED_SD, models: int = MODELS
) -> list[Ratio]:
    """Judge each case by what all others of its run teach."""
    found = []
    for seed in range(runs):
        cases = [simulated.taken(each, known) for each in measured(machine, models, seed)]
        told = by_others(known, [simulated.scatter(each) for each in cases])
        for case, between_sd in zip(cases, told, strict=True):
            found += judged([case], between_sd, Protocol(replicates=len(case)))
    return found


def _drift_rows(trials: int) -> list[Row]:
    def of(
        blocks: int,
        correlation: float,
        known: BetweenProcessSd = KNOWN,
        protocol: Protocol = simulated.USUAL,
        *,
        shuffled: bool = False,
    ) -> Callable[[float], str]:
        def share(within: float) -> str:
            machine = Machine(within=within, blocks=blocks, correlation=correlation)
            cases = measured(machine, trials, shuffled=shuffled)
            return _percent(alarms(judged(cases, known, protocol)))

        return share

    return [
        ("8 blocks", of(8, 0.0)),
        ("90 blocks", of(90, 0.0)),
        ("24 blocks, correlation 0.5, order forgotten", of(24, 0.5, shuffled=True)),
        ("24 blocks, correlation 0.5", of(24, 0.5)),
        ("24 blocks, correlation 0.8, order forgotten", of(24, 0.8, shuffled=True)),
        ("24 blocks, correlation 0.8", of(24, 0.8)),
        ("8 blocks, correlation 0.8", of(8, 0.8)),
        ("90 blocks, correlation 0.95", of(90, 0.95)),
        *(
            (
                f"{whose}, one process, {blocks} blocks, correlation 0.8",
                of(blocks, 0.8, known, SCREENING),
            )
            for whose, known in (("known machine", KNOWN), ("first run", ASSUMED_SD))
            for blocks in (8, 24)
        ),
    ]


def _cases(within: float, trials: int) -> list[simulated.Case]:
    return measured(Machine(within=within), trials)


def _table(title: str, columns: Iterable[float], rows: Iterable[Row]) -> list[str]:
    columns = tuple(columns)
    head = [title, *(f"{each:.1%}" for each in columns)]
    found = [[name, *(figure(each) for each in columns)] for name, figure in rows]
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *found)]


def _percent(share: float) -> str:
    return f"{share:.1%}"


if __name__ == "__main__":
    raise SystemExit(main())
