"""Which arms a command line asks for, and which backends can be used here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dynamometer.common import registry
from dynamometer.common.errors import UnfitEnvironmentError, UsageError
from dynamometer.common.interfaces import arm_names
from dynamometer.common.interfaces.workload_options import (
    BACKENDS,
    CONFIG,
    DEVICE,
    DTYPE,
    EVERY_BACKEND,
    TRAINING,
    WHOLE_MODEL,
)
from dynamometer.results.values.cases import BASELINE, TORCHSCRIPT, Dtype, Mode
from dynamometer.results.values.choices import ASSEMBLED, ENSEMBLE

if TYPE_CHECKING:
    from collections.abc import Collection

    from dynamometer.common.interfaces.option import Request
    from dynamometer.dynamo.backends.declared import Declared


class Usable(msgspec.Struct, frozen=True):
    """Which of our backends can be used on a device and in a mode.

    Attributes:
        names: of those that can; through Dynamo first.
        reasons: why others can't, by name.
    """

    names: tuple[str, ...]
    reasons: dict[str, str]


def usable(device: str, mode: Mode) -> Usable:
    """Look at every backend that says of itself what it needs."""
    found: dict[str, Declared] = {}
    reasons: dict[str, str] = {}
    # Those that are made of others are none by themselves.
    for name in sorted({*registry.choices("backends")} - {ENSEMBLE, ASSEMBLED}):
        try:
            if (each := arm_names.declared(name)) is None:
                continue
            reason = each.available(device) or each.refusal(mode)
        except Exception as error:  # noqa: BLE001  a plugin may raise anything
            reason = registry.why_not("backends", name, error)
        else:
            found[name] = each
        if reason:
            reasons[name] = reason
    names = sorted(found.keys() - reasons.keys(), key=lambda name: (not found[name].captures, name))
    return Usable(tuple(names), reasons)


def with_every_backend(request: Request) -> tuple[Request, dict[str, str]]:
    """Replace `--backend all` by what can be used here; give also why others can't.

    Raises:
        UsageError: backends are named beside it.
    """
    named: tuple[str, ...] = request[BACKENDS]
    if EVERY_BACKEND not in named:
        return request, {}
    if set(named) - {EVERY_BACKEND, ENSEMBLE}:
        msg = "--backend all is every backend that can be used here; name no other but ensemble"
        raise UsageError(msg)
    found = usable(request[DEVICE], Mode.TRAINING if request[TRAINING] else Mode.INFERENCE)
    names, reasons = found.names, found.reasons
    if request[DTYPE] is Dtype.AMP and TORCHSCRIPT in names:
        names = tuple(name for name in names if name != TORCHSCRIPT)
        why = f"{TORCHSCRIPT} traces the model, and a trace can't hold autocast"
        reasons = {**reasons, TORCHSCRIPT: why}
    chosen = (ENSEMBLE,) if ENSEMBLE in named else ()
    return request.but(BACKENDS, (*names, *chosen)), reasons


def unusable(request: Request, arms: Collection[str]) -> dict[str, str]:
    """Return why backends that were named can't be used here, by name.

    Only a worker imports a plugin's or a user's own.

    Args:
        request: what was asked for.
        arms: of a case of the plan.

    Raises:
        UnfitEnvironmentError: none of them can be used.
    """
    named = {arm_names.read(arm).backend for arm in asked_arms(request) if arm in arms}
    ours = sorted(
        name for name in named if registry.target("backends", name).startswith("dynamometer.")
    )
    found = {name: arm_names.declared(name) for name in ours}
    reasons = {
        name: reason
        for name, each in found.items()
        if each and (reason := each.available(request[DEVICE]))
    }
    if reasons and named == reasons.keys():
        raise UnfitEnvironmentError("; ".join(reasons.values()))
    return reasons


def asked_arms(request: Request) -> tuple[str, ...]:
    """Return what is compared with the baseline, unless the study has it otherwise.

    Raises:
        UnknownNameError: there is no such backend, or it has no such option.
        UsageError: the baseline was named, options contradict each other, or can't be trained with.
    """
    whole = [arm for flag, arms in WHOLE_MODEL if request[flag] for arm in arms]
    named: tuple[str, ...] = request[BACKENDS]
    arms = [arm_names.read(text) for text in (*named, *whole) or ("inductor",)]
    for arm in arms:
        registry.target("backends", arm.backend)
        if arm.backend == BASELINE:
            msg = "the baseline is always measured; --backend names what is compared with it"
            raise UsageError(msg)
    config: tuple[str, ...] = request[CONFIG]
    arms = [arm_names.canonical(arm) for arm in arm_names.with_config(arms, config)]
    for arm in arms:
        refusal = arm_names.training_refusal(arm) if request[TRAINING] else None
        if refusal:
            raise UsageError(refusal)
    return tuple(dict.fromkeys(map(str, arms)))
