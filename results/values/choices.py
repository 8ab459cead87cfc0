"""Arms that are made of decisions: what they use, and how that is decided, as runs record it."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum

import msgspec

ENSEMBLE = "ensemble"
"""The arm of what was decided for each model or graph."""

ASSEMBLED = "assembled"
"""The arm of what was decided for each graph, whatever was decided for the model."""


class Subject(StrEnum):
    """What is decided about."""

    GRAPH = "graph"
    MODEL = "model"


class Choice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an arm of decisions used for one graph, or for the whole model."""

    subject: Subject
    key: str
    arm: str
    is_decided: bool = True
    """Whether there was a decision; without one it is eager."""
    count: int = 1
    """How many graphs of the model it is."""
    eager_s: float | None = None
    chosen_s: float | None = None
    tuning_s: float = 0.0


class Tuning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the backend `ensemble` comes to its decisions."""

    decisions: str
    """The file they are kept in."""
    candidates: tuple[str, ...] = ()
    """Backends it may choose; none for all that work here."""
    since: str | None = None
    """What was decided before this time, UTC in ISO 8601, is decided anew."""
    budget_s: float = 120.0
    """Seconds after which a graph is given no further replicate."""

    def counts(self, decided_at: str, now: datetime) -> bool:
        """Return whether a decision of a time stands.

        What is to be decided anew is, though it be dated ahead, as nobody has decided that since.
        """
        if self.since is None:
            return True
        since, at = moment(self.since), moment(decided_at)
        return since is not None and at is not None and since <= at <= now


def moment(text: str) -> datetime | None:
    """Read a time in ISO 8601, UTC where it doesn't say otherwise; `None` if it is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
