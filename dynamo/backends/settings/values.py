"""Which values a setting takes, and how they are typed."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Values:
    """Which values a setting takes, as far as that is known.

    Attributes:
        types: that a value may be of; empty where any may.
        choices: the values themselves, where there are few.
        default: the one that it has unless it is set; empty where that isn't known.
    """

    types: tuple[type, ...] = ()
    choices: tuple[Any, ...] = ()
    default: tuple[Any, ...] = ()

    def read(self, text: str) -> Any:
        """Read a value as it is typed.

        Raises:
            ValueError: it is none of those; says which may be.
        """
        found = _literal(text)
        if self.choices:
            for each in (found, text):
                if any(type(each) is type(one) and each == one for one in self.choices):
                    return each
            raise ValueError(_listed([f"{each}" for each in self.choices]))
        if not self.types:
            return found
        for each in self.types:
            is_word = each is bool and int not in self.types and text in _BOOLS
            if each is float and type(found) is int:
                return float(found)
            if type(found) is each or is_word:
                return _BOOLS[text] if is_word else found
        if str in self.types:
            return text
        raise ValueError(_listed([_TYPE_WORDS[each] for each in self.types]))


_BOOLS = {"True": True, "true": True, "1": True, "False": False, "false": False, "0": False}
_TYPE_WORDS = {
    bool: "True or False", int: "a whole number", float: "a number", str: "text",
    type(None): "None",
}  # fmt: skip


def _listed(words: list[str]) -> str:
    return " or ".join(words) if len(words) < 3 else f"one of {', '.join(words)}"  # noqa: PLR2004


def _literal(text: str) -> Any:
    """Read a value as Python, or as it is: `True`, `4`, and `CPP` for the word."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return {"true": True, "false": False}.get(text, text)
