"""Which experiment a name stands for: one of a study, or one that prepares for any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.common import loading, registry

if TYPE_CHECKING:
    from dynamometer.common.studies.experiment import Experiment

TOOLCHAIN, FILL = "toolchain", "fill"

_MODULES = {
    TOOLCHAIN: "dynamometer.common.execution.preparation.toolchain:Toolchain",
    FILL: "dynamometer.common.execution.preparation.fill:Fill",
}


def experiment_of(study: str, name: str) -> Experiment:
    """Return an experiment of a study, or one that prepares for any.

    Raises:
        UnknownNameError: there is no such study.
        UsageError: the experiment can't be imported.
    """
    if name in _MODULES:
        experiment: Experiment = loading.load("experiments", name, _MODULES[name])()
        return experiment
    return registry.study(study).experiment(name)
