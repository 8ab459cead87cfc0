"""Faults of the harness or of how it was called; faults of a model are data, not exceptions.

DynamometerError                exit code 3
├── UsageError                  exit code 2: the command line asks for what can't be
│   └── UnknownNameError        a name that no registry holds, with the nearest ones
├── UnfitEnvironmentError       exit code 4: the machine lacks what was asked for
└── NothingSelectedError        exit code 5: the selection holds no case
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class DynamometerError(Exception):
    """Anything that stops the harness; its text says what, where and what to do next."""

    exit_code = 3


class UsageError(DynamometerError):
    """What the command line asks for can't be done."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name that is not registered."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        """Name what was looked for, and what comes nearest to it."""
        self.kind, self.name = kind, name
        import difflib  # which nothing else needs

        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        advice = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}."
        super().__init__(f"unknown {kind} {name!r}; {advice}{' ' + hint if hint else ''}")


class UnfitEnvironmentError(DynamometerError):
    """The machine lacks what was asked for."""

    exit_code = 4


class NothingSelectedError(DynamometerError):
    """The selection holds no case."""

    exit_code = 5
