"""How things are written wherever results are shown as text. Pure; no torch."""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePath
from typing import TYPE_CHECKING

from dynamometer.results.store.reading import FORMULA

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Estimate

_NAME_WIDTH = 30
_RESUMED = re.compile(r"torch_dynamo_resume_in_(\w+)_at_(\d+)")


def name_columns(case: Case) -> str:
    """Begin a case's line: device and name."""
    return f"{case.device:4} {case.label:<{_NAME_WIDTH}}"


def speedup_text(found: Estimate | None) -> str:
    """Write a speedup with its interval."""
    return f"{found.value:.3f}x [{found.low:.3f}, {found.high:.3f}]" if found else "-"


def rounded_to_3_digits(value: float) -> str:
    """Write a rate or a count with three digits that count, such as `15,200` or `1.25`."""
    return f"{float(f'{value:.3g}'):,}".removesuffix(".0")


def number_text(value: float | None, form: str) -> str:
    """Write a number; `-` of none.

    Args:
        value: the number.
        form: a format string, such as `{:.2f}`.
    """
    return "-" if value is None else form.format(value)


def count_text(count: int, noun: str) -> str:
    """Write how many there are of something, whose plural ends in `s`."""
    return f"{count} {noun if count == 1 else noun + 's'}"


def share(part: float, whole: float, decimals: int = 0) -> str:
    """Write a share as a percentage, of which 100 % is all and 0 % none, however many there are."""
    text = f"{part / whole:.{decimals}%}"
    if not 0 < part < whole or text not in {f"{all_:.{decimals}%}" for all_ in (0.0, 1.0)}:
        return text
    decimals = max(decimals, 1)
    least = 10.0 ** -(decimals + 2)
    return f"{min(max(part / whole, least), 1 - least):.{decimals}%}"


def share_text(part: float | None, decimals: int = 0) -> str:
    """Write a share of one as `share` does; `-` of none that is known."""
    return "-" if part is None else share(part, 1, decimals)


def pass_rate(passed: int, counted: int) -> str:
    """Write the share of models that passed, and how many they are; `-` of none."""
    return f"{share(passed, counted)}, {passed}/{counted}" if counted else "-"


def place(file: str, line: int) -> str:
    """Name a line of source briefly."""
    return f"{PurePath(file).name}:{line}"


def in_source(text: str) -> str:
    """Say of functions Dynamo has made what they are."""
    return _RESUMED.sub(r"the rest of \1, from line \2", text)


def is_shown(character: str) -> bool:
    """Say whether a terminal shows a character, as it does all kinds of spaces, or obeys it."""
    return character.isprintable() or unicodedata.category(character) == "Zs"


def printable(text: str, instead: str = " ", kept: str = "") -> str:
    """Return text without what a terminal would obey rather than show.

    Args:
        text: of one line.
        instead: what stands for each character that is left out.
        kept: characters that stay besides, such as ends of lines where text may have several.
    """
    if text.isprintable():
        return text
    return "".join(each if is_shown(each) or each in kept else instead for each in text)


def cell(text: str) -> str:
    """Return text as a table's cell holds it: on one line, and no formula of a spreadsheet's.

    `unquoted` of `results/store/reading.py` takes off what this puts before it.
    """
    shown = printable(text)
    return f"'{shown}" if FORMULA.match(shown) else shown


def printable_lines(lines: Iterable[str]) -> list[str]:
    """Return lines, of which some may be several, without what a terminal would obey."""
    return [printable(each) for line in lines for each in line.split("\n")]


def fitted_line(line: str, width: int | None) -> str:
    """Cut a line where a terminal ends, and show that it was."""
    return line if width is None or len(line) <= width else f"{line[: max(width - 1, 0)]}…"


def fitted_table(
    rows: Sequence[Sequence[str]], headers: Sequence[str], width: int | None
) -> list[str]:
    """Return a table whose widest columns are cut until it fits.

    Args:
        rows: their cells.
        headers: of the columns.
        width: of the terminal; `None` leaves all as long as it is.
    """
    cells = [list(headers), *map(list, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    gaps = len(_GAP) * (len(headers) - 1)
    while width is not None and sum(widths) + gaps > width and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    rule = ["-" * each for each in widths]
    lines = [
        _GAP.join(
            fitted_line(cell, most).ljust(most) for cell, most in zip(row, widths, strict=True)
        )
        for row in (cells[0], rule, *cells[1:])
    ]
    return [line.rstrip() for line in lines]


_GAP = "  "
_NARROWEST = 8
"""Characters of a column, below which it says nothing."""
