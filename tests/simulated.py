"""Identical arms on machines that are made up, judged by the project's own functions."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynamometer.results.statistics.scatter import Scatter
from dynamometer.results.statistics.significance import SIGNIFICANT_P, Replicate, Verdict, verdict
from dynamometer.results.statistics.statistics import speedup, trimmed_mean
from dynamometer.results.statistics.stopping import is_precise
from dynamometer.results.values.cases import Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.values.records import BetweenProcessSd, Ratio

USUAL = Protocol()
EFFICIENCY = 0.84
"""Of the mean of the middle half: the variance of a plain mean of normal values over its own."""

Case = tuple[Replicate, ...]


@dataclass(frozen=True)
class Machine:
    """How a machine's processes differ, and their blocks.

    Attributes:
        between: standard deviation of the log speedup between processes.
        within: standard error of what the blocks of a process say.
        blocks: of a process.
        correlation: of successive blocks, which falls geometrically with distance.
        df: degrees of freedom of the spread between, which differs from case to case.
    """

    between: float = 0.006
    within: float = 0.0
    blocks: int = 24
    correlation: float = 0.0
    df: float = math.inf


def measured(machine: Machine, trials: int, seed: int = 0, *, shuffled: bool = False) -> list[Case]:
    """Draw the blocks of identical arms; of each case as many replicates as it may have.

    Args:
        machine: they are made up for.
        trials: how many cases.
        seed: of what is drawn.
        shuffled: whether the blocks' order is lost, so that none seems like its neighbours.
    """
    rng = np.random.default_rng(seed)
    shape = (trials, USUAL.most_replicates, machine.blocks)
    noise = rng.standard_normal(shape)
    rho = machine.correlation
    for block in range(1, machine.blocks):
        noise[..., block] *= math.sqrt(1 - rho**2)
        noise[..., block] += rho * noise[..., block - 1]
    block_sd = machine.within * math.sqrt(EFFICIENCY * machine.blocks * (1 - rho) / (1 + rho))
    scales = np.full(trials, machine.between)
    if math.isfinite(machine.df):
        scales *= np.sqrt(machine.df / rng.chisquare(machine.df, trials))
    offsets = scales[:, None, None] * rng.standard_normal(shape[:2])[..., None]
    if shuffled:
        noise = rng.permuted(noise, axis=-1)
    drawn = (offsets + block_sd * noise).tolist()
    return [tuple(trimmed_mean(blocks) for blocks in case) for case in drawn]


def without_errors(cases: Iterable[Case]) -> list[Case]:
    """Throw away what is known of the error within each process."""
    return [tuple(Replicate(each.value) for each in case) for case in cases]


def taken(case: Case, between_sd: BetweenProcessSd, protocol: Protocol = USUAL) -> Case:
    """Return the replicates a case is given: until its interval is as narrow as was asked."""
    for n in range(protocol.replicates, protocol.most_replicates):
        if is_precise(speedup(case[:n], between_sd), protocol.target):
            return case[:n]
    return case[: protocol.most_replicates]


def judged(
    cases: Iterable[Case], between_sd: BetweenProcessSd, protocol: Protocol = USUAL
) -> list[Ratio]:
    """Return the speedups a run would report."""
    return [speedup(taken(case, between_sd, protocol), between_sd) for case in cases]


def scatter(case: Case) -> Scatter:
    """Return how far the replicates of a case differ."""
    return Scatter(
        variance=statistics.variance(each.value for each in case),
        within=statistics.fmean(each.error**2 for each in case),
        df=len(case) - 1.0,
    )


def alarms(found: Sequence[Ratio]) -> float:
    """Return the share that is called different at the usual 5 %."""
    return statistics.fmean(each.p_value <= SIGNIFICANT_P for each in found)


def called(found: Sequence[Ratio]) -> float:
    """Return the share that is called faster or slower, each the only case of its run."""
    verdicts = [verdict(each, each.p_value) for each in found]
    return statistics.fmean(each in {Verdict.FASTER, Verdict.SLOWER} for each in verdicts)
