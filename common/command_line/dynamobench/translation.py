"""Command lines of PyTorch's `benchmarks/dynamo`, read as ours.

What each of its options comes to is in `dynamobench.toml`, from which
`docs/coming-from-dynamobench.md` is made as well.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_TABLE = Path(__file__).with_name("dynamobench.toml")


class TheirOption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one option of theirs comes to; one of `same`, `becomes`, `needless`, `refused` is set.

    Attributes:
        also: its other spellings.
        value: whether a word follows it.
        same: it is an option of ours too; how that differs, if it does.
        becomes: arguments that are taken in its place; `{}` is its value.
        not_with: an option of ours beside which it would mean something else.
        needless: why nothing has to be asked for.
        refused: what is done instead of what it asks for, and what to type.
    """

    also: tuple[str, ...] = ()
    value: bool = False
    same: str | None = None
    becomes: tuple[str, ...] = ()
    not_with: str | None = None
    needless: str | None = None
    refused: str | None = None


def their_options() -> dict[str, TheirOption]:
    """Return all options of theirs, each under its first spelling."""
    import rtoml  # which no other command line needs

    return msgspec.convert(rtoml.loads(_TABLE.read_text("utf-8")), dict[str, TheirOption])


class Translation(msgspec.Struct, frozen=True):
    """A command line of theirs as one of ours.

    Attributes:
        arguments: what our parser reads.
        notes: options that ask for what is done in any case, each with why.
    """

    arguments: tuple[str, ...]
    notes: tuple[str, ...] = ()


def translated(arguments: Sequence[str], ours: Collection[str]) -> Translation:
    """Replace options of theirs by ours; what is no option of either is left to the parser.

    `-x=NAME` is `-x NAME`, as argparse reads it; click would take the sign for part of the name.

    Args:
        arguments: as typed.
        ours: every spelling of an option of the command.

    Raises:
        UsageError: one asks for what isn't done, or says nothing after its sign; says what to type.
    """
    typed = [*arguments]
    end = typed.index("--") if "--" in typed else len(typed)
    arguments = [*map(_without_sign, typed[:end]), *typed[end:]]
    if not any(_flag(each) not in ours for each in arguments if each.startswith("-")):
        return Translation(tuple(arguments))
    theirs = {
        flag: (name, option)
        for name, option in their_options().items()
        for flag in (name, *option.also)
        if flag not in ours
    }
    taken, notes = [], []
    words = iter(arguments)
    for word in words:
        name, option = theirs.get(_flag(word), ("", None))
        if option is None or not (option.value or word in {name, *option.also}):
            taken.append(word)
            if word == "--":
                taken += words
        elif option.needless is not None:
            notes.append(f"{name}: {option.needless}")
        else:
            value = _value(word, option, words)
            if option.refused is not None:
                msg = f"{name} is not done here: {option.refused.format(value)}"
                raise UsageError(msg)
            if option.not_with and option.not_with in map(_flag, arguments):
                msg = f"{name} goes into {option.not_with}: give {option.not_with} all of the path"
                raise UsageError(msg)
            taken += [each.format(value) for each in option.becomes]
    return Translation(tuple(taken), tuple(notes))


def _without_sign(word: str) -> str:
    """Return `-x=NAME` as `-xNAME`.

    Raises:
        UsageError: there is no name, so that the next word would be taken for it.
    """
    if not re.match("-[^-]=", word):
        return word
    if len(word) == len("-x="):
        msg = f"{word} names nothing: leave it out, or say what after the sign"
        raise UsageError(msg)
    return word[:2] + word[3:]


def _flag(word: str) -> str:
    """Return the option of a word such as `--output=FILE`, `-n50` or `--only`."""
    return word.partition("=")[0] if word.startswith("--") else word[:2]


def _value(word: str, option: TheirOption, words: Iterator[str]) -> str:
    """Return an option's value, which is part of its word or the next one."""
    if not option.value:
        return ""
    if word.startswith("--"):
        _, has_value, value = word.partition("=")
    else:
        has_value, value = word[2:], word[2:]
    if has_value:
        return value
    try:
        return next(words)
    except StopIteration:
        msg = f"{word} needs a value"
        raise UsageError(msg) from None
