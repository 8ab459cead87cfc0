"""An option of the command line, declared beside what understands it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    Decorator = Callable[[Any], Any]


class GroupedOption(click.Option):
    """An option that belongs to a group of the help."""

    def __init__(self, *args: Any, group: str, **kwargs: Any) -> None:
        """Take a group beside what `click.Option` takes."""
        super().__init__(*args, **kwargs)
        self.group = group


def option(*args: Any, **kwargs: Any) -> Decorator:
    """Declare an option; takes what `click.option` takes, and its `group`."""
    return click.option(*args, cls=GroupedOption, **kwargs)


def flag_of(name: str) -> str:
    """Write an option as it is typed, where that is how it is named."""
    return f"--{name.replace('_', '-')}"


OVERRIDE_OPTIONS = frozenset({"allow_in_graph", "disable_frame", "model_overrides", "substitute"})
"""Those that tell Dynamo how to treat functions."""

MEASURING_OPTIONS = OVERRIDE_OPTIONS | {
    "backends", "batch_size", "caches", "calls", "case_budget_s", "compiled_optimizer", "dynamic",
    "dynamic_batch", "expect", "nopython", "replicates", "rigorous", "speedup_ts",
}  # fmt: skip
"""Those that say what is measured and how, which not every study understands."""


@dataclass(frozen=True)
class Exclusion:
    """What an option can't go with.

    Attributes:
        name: of the option, as its value is known by.
        why: what it does that contradicts the others, as the beginning of a sentence.
        others: names of the options it excludes.
    """

    name: str
    why: str
    others: frozenset[str]
