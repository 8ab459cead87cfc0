"""How often identical arms are called different, on machines that are made up.

Whatever is judged is judged by the project's own functions; seeds are fixed, so nothing depends on
luck. `bench/simulated_error_bars.py` prints the tables.
"""

from __future__ import annotations

import random
import statistics

import pytest
import simulated
from simulated import Machine, alarms, called, judged, measured, without_errors

from dynamometer.results.statistics.scatter import updated
from dynamometer.results.statistics.significance import replicates_needed
from dynamometer.results.statistics.statistics import moderated, trimmed_mean
from dynamometer.results.values.cases import Protocol
from dynamometer.results.values.records import ASSUMED_SD, FORMERLY_ASSUMED, BetweenProcessSd

KNOWN = BetweenProcessSd(sd_log=0.006, df=30.0)
PLAUSIBLE = (0.003, 0.006, 0.009, 0.012)
"""Spreads between processes of machines we know."""


@pytest.mark.slow
@pytest.mark.parametrize("within", [0.0, 0.005, 0.01, 0.02, 0.03, 0.05])
def test_identical_arms_on_a_machine_that_is_known(within: float) -> None:
    """However noisy its blocks, 2 to 6 % are called different, and none faster or slower."""
    found = judged(measured(Machine(within=within), 1_000), KNOWN)
    assert 0.02 <= alarms(found) <= 0.06
    assert 0.94 <= statistics.fmean(each.low <= 1.0 <= each.high for each in found) <= 0.98
    assert called(found) <= 0.005


@pytest.mark.slow
@pytest.mark.parametrize("within", [0.0, 0.005, 0.01, 0.02, 0.03, 0.05])
def test_identical_arms_in_a_first_run_of_one_model(within: float) -> None:
    """A guess can't be right of every machine: it is so over all that are plausible."""
    rates = []
    for between in PLAUSIBLE:
        found = judged(measured(Machine(between, within), 500), ASSUMED_SD)
        rates.append(alarms(found))
        assert called(found) <= 0.01
    assert 0.02 <= statistics.fmean(rates) <= 0.06
    assert max(rates) <= 0.10


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.5, 0.8])
@pytest.mark.parametrize("within", [0.01, 0.03])
def test_blocks_that_resemble_their_neighbours(within: float, correlation: float) -> None:
    """As on a machine whose speed drifts: that is seen in them, and counted."""
    machine = Machine(within=within, correlation=correlation)
    assert 0.02 <= alarms(judged(measured(machine, 1_000), KNOWN)) <= 0.065


@pytest.mark.slow
def test_few_blocks() -> None:
    """Their standard error is an estimate, too; calls of half a second have eight."""
    for within in (0.005, 0.03):
        found = judged(measured(Machine(within=within, blocks=8), 1_000), KNOWN)
        assert 0.02 <= alarms(found) <= 0.06


@pytest.mark.slow
@pytest.mark.parametrize(("within", "least"), [(0.01, 0.14), (0.03, 0.25)])
def test_without_the_part_within_identical_arms_differ(within: float, least: float) -> None:
    """What was thrown away made the difference, so these tests can fail."""
    cases = measured(Machine(within=within), 1_000)
    assert alarms(judged(without_errors(cases), FORMERLY_ASSUMED)) > least
    assert alarms(judged(without_errors(cases), KNOWN)) > least


def test_without_the_order_of_blocks_drift_is_not_seen() -> None:
    """That of blocks in random order is the error of as many independent ones."""
    drawn = random.Random(0)
    rises = [[0.001 * block + drawn.gauss(0.0, 0.001) for block in range(24)] for _ in range(50)]
    seen = statistics.fmean(trimmed_mean(each).error for each in rises)
    unseen = statistics.fmean(trimmed_mean(drawn.sample(each, len(each))).error for each in rises)
    assert seen > 2 * unseen


@pytest.mark.slow
@pytest.mark.parametrize("within", [0.002, 0.01, 0.03])
@pytest.mark.parametrize("between", [0.003, 0.012])
def test_a_first_run_of_many_models_learns(between: float, within: float) -> None:
    """Each is judged by what all others teach of the machine, of which only a part is between."""
    found = []
    for seed in range(20):
        cases = [
            simulated.taken(case, ASSUMED_SD)
            for case in measured(Machine(between, within), 12, seed)
        ]
        scatters = [simulated.scatter(case) for case in cases]
        for index, case in enumerate(cases):
            between_sd = updated(ASSUMED_SD, scatters[:index] + scatters[index + 1 :])
            found += judged([case], between_sd, Protocol(replicates=len(case)))
    assert 0.01 <= alarms(found) <= 0.075


def test_as_many_replicates_as_are_said_to_be_needed_mostly_are_enough() -> None:
    """On a noisy machine five are not; how many are is known from five to within a third."""
    protocol = Protocol()
    cases = measured(Machine(within=0.02), 300)
    needed = [
        replicates_needed(moderated(case, KNOWN), protocol.target)
        for case in (case[: protocol.most_replicates] for case in cases)
    ]
    true = (1.96 / 0.00995) ** 2 * (0.006**2 + 0.02**2)
    assert statistics.median(needed) == pytest.approx(true, rel=0.33)
    assert min(needed) > protocol.most_replicates
