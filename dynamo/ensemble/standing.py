"""Which decisions count for a run: those of its file, but for what it is to decide anew."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.results.store.decisions import Decisions

if TYPE_CHECKING:
    from dynamometer.results.values.choices import Subject, Tuning
    from dynamometer.results.values.decisions import Decision, Setting


def standing(tuning: Tuning, subject: Subject, key: str, setting: Setting) -> Decision | None:
    """Return the decision on a graph or model that counts by now; `None` if there is none.

    Raises:
        StoreError: the file can't be read, or is none of decisions.
    """
    found = Decisions(Path(tuning.decisions)).find(subject, key, setting)
    if found is None or not tuning.counts(found.decided_at, datetime.now(UTC)):
        return None
    return found
