#!/usr/bin/env python3
"""Write the page of runs that have every backend and the ensemble beside eager.

    ./torchbench.py --backend all --backend ensemble --decisions D --output-dir RUNS ...
    python bench/ensemble_figures.py RUNS/* --output docs/ensemble-figures.md

A model that several runs have counts once, as the last of them has it. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
from dynamometer.common.errors import UsageError
from dynamometer.dynamo.runtime_packages import RUNTIME_PACKAGES
from dynamometer.results.reports.arms.ensemble import Use, uses
from dynamometer.results.statistics.replicates import speedup_over
from dynamometer.results.statistics.significance import LATENCY_FLOOR, geometric_mean
from dynamometer.results.statistics.summary import CaseSummary, summarize_cases, summarize_suite
from dynamometer.results.store import store
from dynamometer.results.values.cases import Scale
from dynamometer.results.values.choices import ENSEMBLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.statistics.summary import ArmSummary, SuiteSummary
    from dynamometer.results.values.records import Environment, Estimate, Ratio

MARKS = {Scale.TINY: "**", Scale.SMALL: "*", Scale.FULL: ""}
"""By the scale of a model."""

PILOTS = (
    *("lennard_jones", "resnet18", "squeezenet1_1", "mobilenet_v3_large", "dcgan", "hf_DistilBert"),
    *("GPT2ForSequenceClassification", "vit_small_patch16_224", "efficientnet_b0", "regnety_002"),
)
"""Ten kinds of model: an MLP, convolutional networks old and new, transformers."""

OF_2022 = (1.71, 0.96)
"""Geomean and pass rate of the ensemble of 2022 on a CPU, in inference (its authors' posts)."""


@dataclass(frozen=True)
class Model:
    """What was measured of one.

    Attributes:
        case: over its replicates.
        best: of the arms that passed and chose nothing, the fastest; `None` if none is timed.
        ensemble: the arm that is made of decisions.
        over_best: how much faster than the best it is, of the same blocks.
    """

    case: CaseSummary
    best: ArmSummary | None
    ensemble: ArmSummary
    over_best: Ratio | None

    @property
    def name(self) -> str:
        """As it is called in its suite."""
        return self.case.case.model


def model_of(case: CaseSummary) -> Model | None:
    """Return what a case says of the ensemble; `None` if that is no arm of it."""
    ensemble = next((each for each in case.arms if each.name == ENSEMBLE), None)
    if ensemble is None:
        return None
    singles = [each for each in case.arms if each.name != ENSEMBLE and each.speedup]
    best = max(singles, key=lambda each: each.speedup.value if each.speedup else 0.0, default=None)
    over = speedup_over(best.name, ENSEMBLE, case.records) if best and ensemble.speedup else None
    return Model(case, best, ensemble, over)


def main() -> int:
    """Write the page of the runs that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    runs = [run for run in options.runs if (run / store.MANIFEST).is_file()]
    try:
        text = page(runs)
    except UsageError as error:
        parser.exit(error.exit_code, f"{error}\n")
    print(text)
    if options.output:
        options.output.write_text(text)
    return 0


def page(runs: Sequence[Path]) -> str:
    """Return the page of some runs, in order of time.

    Raises:
        UsageError: no model of them was run with the ensemble.
    """
    found: dict[str, Model] = {}
    environment = None
    for run in sorted(runs):
        for case in summarize_cases(store.read_records(run)):
            if model := model_of(case):
                found[model.name] = model
                environment = store.read_manifest(run).environment
    if environment is None:
        msg = "no run has the arm `ensemble`: run with --backend all --backend ensemble"
        raise UsageError(msg)
    models = sorted(found.values(), key=lambda each: (each.name not in PILOTS, each.name))
    return "\n".join(
        [
            _head(environment, models),
            *_arms(models),
            *("", "## By model", ""),
            *_ensembles(models),
            *("", "## Speedups over eager", ""),
            *_speedups(models),
            *("", "## What did not pass", ""),
            *_failures(models),
            "",
        ]
    )


def _head(environment: Environment, models: Sequence[Model]) -> str:
    names = [name for name in ("torch", *RUNTIME_PACKAGES) if name in environment.packages]
    versions = ", ".join(f"{name} {environment.packages[name]}" for name in names)
    geomean, passing = OF_2022
    return f"""# Every backend, and the ensemble

Made by `bench/ensemble_figures.py` of {len(models)} models: inference in float32 on
{environment.cpus} cores ({environment.cpu}), {versions}. Models marked * are at small scale,
those marked ** at tiny scale; the others are as they were published. Each arm was held to eager and
timed in the same blocks.
[ensemble.md](ensemble.md) says how the ensemble decides.

For context: the ensemble of 2022 came to {geomean}x on a CPU, with {passing:.0%} of models passing,
on another machine, with other models.

## By backend

Geomeans are of the models that passed and that nothing disturbed, with 95 % intervals. *The ten*
are the first ten below: an MLP, convolutional networks and transformers. *Fastest of each
model* takes the fastest backend of each model after the fact, so that what is best by luck counts,
too. *Slower*: by more than {LATENCY_FLOOR:.0%}, and by more than the interval.
"""


def _arms(models: Sequence[Model]) -> list[str]:
    def geomean(ratios: Iterable[Ratio | None]) -> str:
        known = [each for each in ratios if each]
        return f"{_estimate(geometric_mean(known))} of {len(known)}"

    ten = [each for each in models if each.name in PILOTS]
    over_all = {each.name: each for each in summarize_suite([each.case for each in models])}
    over_ten = {each.name: each for each in summarize_suite([each.case for each in ten])}
    rows = [
        [
            f"`{arm.name}`",
            f"{arm.passed}/{arm.counted}",
            geomean(arm.speedups),
            geomean(over_ten[arm.name].speedups) if arm.name in over_ten else "-",
            str(sum(_is_slower(each) for each in arm.speedups)),
        ]
        for arm in sorted(over_all.values(), key=_by_geomean)
    ]
    rows.insert(0, ["fastest of each model", "", geomean(_bests(models)), geomean(_bests(ten)), ""])
    headers = ["arm", "passed", "geomean", "of the ten", "slower"]
    return _table(rows, headers)


def _by_geomean(arm: SuiteSummary) -> float:
    return -arm.geomean.value if arm.geomean else math.inf


def _bests(models: Sequence[Model]) -> list[Ratio | None]:
    return [each.best.speedup for each in models if each.best and each.case.is_conclusive]


def _is_slower(found: Ratio) -> bool:
    return found.high < 1 - LATENCY_FLOOR


def _ensembles(models: Sequence[Model]) -> list[str]:
    made = {each.case.case.id: each for each in uses([each.case for each in models])}
    rows = [_ensemble_row(each, made.get(each.case.case.id)) for each in models]
    headers = ["model", "fastest single", "", "ensemble", "made of", "over the best", "predicted",
               "tuning", "pays after calls"]  # fmt: skip
    note = "\n*Over the best*: of the same blocks, so what is common to both cancels out."
    return [*_table(rows, headers), note]


def _ensemble_row(model: Model, use: Use | None) -> list[str]:
    best = model.best
    pays = use.pays_after_calls if use else None
    return [
        _label(model.case),
        f"`{best.name}`" if best else "-",
        _estimate(best.speedup) if best else "-",
        _speedup(model.case, model.ensemble),
        ", ".join(f"{n} {arm}" for arm, n in use.made_of.most_common()) if use else "-",
        _estimate(model.over_best),
        f"{use.predicted:.2f}x" if use and use.predicted else "-",
        f"{use.tuning_s:.0f} s" if use else "-",
        f"{pays:,.0f}" if pays is not None and math.isfinite(pays) else "-",
    ]


def _speedups(models: Sequence[Model]) -> list[str]:
    arms = dict.fromkeys(arm.name for model in models for arm in model.case.arms)
    rows = [
        [_label(model.case), *(_speedup_of(name, model.case) for name in arms)] for model in models
    ]
    return _table(rows, ["model", *(f"`{name}`" for name in arms)])


def _speedup_of(name: str, case: CaseSummary) -> str:
    return next((_speedup(case, arm) for arm in case.arms if arm.name == name), "-")


def _speedup(case: CaseSummary, arm: ArmSummary) -> str:
    """Return a speedup, or in a word why there is none."""
    if not arm.passed:
        return str(arm.outcome.status)
    return _estimate(arm.speedup) + (f" ({case.doubt})" if case.doubt else "")


def _failures(models: Sequence[Model]) -> list[str]:
    rows = sorted(
        [f"`{arm.name}`", str(arm.outcome.status), model.name, _reason(arm)]
        for model in models
        for arm in model.case.arms
        if not arm.passed
    )
    return _table(rows, ["arm", "status", "model", "why"]) if rows else ["Nothing."]


def _reason(arm: ArmSummary) -> str:
    return (arm.outcome.reason or "-").strip().splitlines()[0][:150].replace("|", "\\|")


def _label(case: CaseSummary) -> str:
    return case.case.model + MARKS[case.case.scale]


def _estimate(found: Estimate | None) -> str:
    return f"{found.value:.2f}x [{found.low:.2f}, {found.high:.2f}]" if found else "-"


def _table(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> list[str]:
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True).splitlines()


if __name__ == "__main__":
    raise SystemExit(main())
