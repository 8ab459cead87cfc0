"""Text of any kind as Markdown for GitHub, which shows it and does not obey it. Pure; no torch."""

from __future__ import annotations

import re

from dynamometer.results.reports.texts import printable

_SPECIAL = re.compile(r"([\\`*_{}\[\]<#|~&])")


def longest_ticks(text: str) -> int:
    """Return how many backticks follow each other at most."""
    return max((len(found) for found in re.findall("`+", text)), default=0)


def markdown_code(text: str) -> str:
    """Return text of one line as code; in a table `|` must be escaped besides."""
    line = printable(" ".join(text.split()))
    fence = "`" * (longest_ticks(line) + 1)
    pad = " " if len(fence) > 1 else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def markdown_text(text: str) -> str:
    """Return text of one line with no markup, no HTML, and no mention of anybody."""
    return _SPECIAL.sub(r"\\\1", printable(" ".join(text.split()))).replace("@", "@\u200b")
