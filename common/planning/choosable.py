"""Which arms a decision may name, in `--candidate` or in an imported file."""

from __future__ import annotations

from dynamometer.common import registry
from dynamometer.common.errors import UnknownNameError, UsageError
from dynamometer.common.interfaces import arm_names
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.choices import ASSEMBLED, ENSEMBLE


def unchoosable(text: str, *, of_models: bool) -> str | None:
    """Say why an arm can't be chosen; `None` if it can.

    Args:
        text: the arm's name.
        of_models: whether for a model as a whole, which may be assembled of its graphs' choices.
    """
    try:
        arm = arm_names.read(text)
        registry.target("backends", arm.backend)
        arm_names.settings_of(arm)
    except UsageError as error:
        return str(error)
    made_of_choices = {ENSEMBLE, BASELINE} | (set() if of_models else {ASSEMBLED})
    if arm.backend in made_of_choices:
        return f"{arm.backend} is nothing that can be chosen"
    return None


def is_known(text: str) -> bool:
    """Return whether an arm's backend is one here; what is named by its place always is."""
    try:
        registry.target("backends", text.partition(":")[0] if not is_foreign(text) else text)
    except UnknownNameError:
        # Its options can't be read either: they look like the attribute of a module.
        return False
    return True


def is_foreign(text: str) -> bool:
    """Return whether an arm is code that is named by its place, and is imported and called."""
    backend, colon, _ = text.partition(":")
    return bool(colon) and not registry.is_backend(backend)


def free_text(text: str) -> str | None:
    """Return the first setting of a known arm that may name a program or a file, if there is one.

    That is any but a number or a truth value: Inductor has settings for its compiler and its flags.
    """
    for name, value in arm_names.of_families(arm_names.read(text)).items():
        if not (value is None or isinstance(value, bool | int | float)):
            return name
    return None
