"""Pages that take long to make, kept while what they are made of is as it was."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 16
"""Pages that are kept: the history of all models is megabytes."""


class KeptPages:
    """The pages that were made last, all of the same state of what they show."""

    def __init__(self) -> None:
        """Keep none yet."""
        self._lock = Lock()
        self._state: object = None
        self._pages: dict[str, str] = {}

    def page(self, name: str, state: object, make: Callable[[], str | None]) -> str | None:
        """Return the page of a name, which is made unless it is kept; others need not wait.

        Args:
            name: of the page.
            state: of what it shows; what was made in another is forgotten.
            make: makes it, or says that there is none, which is not kept.
        """
        with self._lock:
            if state != self._state:
                self._state, self._pages = state, {}
            if (kept := self._pages.get(name)) is not None:
                return kept
        made = make()
        with self._lock:
            if made is not None and state == self._state:
                self._pages[name] = made
                if len(self._pages) > MOST:
                    del self._pages[next(iter(self._pages))]  # the oldest
        return made
