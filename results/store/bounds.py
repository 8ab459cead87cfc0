"""How much of what a model says is kept: enough to know it by, whatever it raises."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from dynamometer.results.values.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LONGEST_TEXT = 20_000
"""Characters of any text of a record."""

MOST_FOREIGN_BYTES = 4 * 2**20
"""Of what a process with foreign code finds, whose records take some kilobytes."""

_UNSUSPICIOUS_BYTES = 100_000
"""Of a record, which is looked through only if it takes more."""


def bounded(record: Record) -> Record:
    """Return a record in which no text is longer than can be read; it says where one was cut."""
    data = msgspec.json.encode(record)
    if len(data) <= _UNSUSPICIOUS_BYTES:
        return record
    values = _cut(msgspec.json.decode(data), lambda text: shortened(text, LONGEST_TEXT))
    return msgspec.json.decode(msgspec.json.encode(values), type=Record)


def shortened(text: str, most: int) -> str:
    """Return the beginning and the end of a text that is longer than it may be."""
    if len(text) <= most:
        return text
    kept = most // 2
    left_out = len(text) - 2 * kept
    return f"{text[:kept]} [{left_out} characters left out] {text[-kept:]}"


def encodable(text: str) -> str:
    """Escape what has no place in UTF-8: bytes of a name, or an output, that are no text."""
    return text.encode(errors="backslashreplace").decode()


MOST_NAME_BYTES = 120
"""Of what a file is named after, beside what else is in its name; most systems allow 255 in all."""


MOST_MODEL_NAME_BYTES = 200
"""Of a model: files are named after it as well."""


def name_apart(name: str, whole: str) -> str:
    """Return the beginning of a name and a hash, where the name alone is too long or not enough.

    Args:
        name: as far as a file's may hold it.
        whole: what the name is of, in full.
    """
    begin = name.encode()[:MOST_NAME_BYTES].decode(errors="ignore")
    digest = hashlib.sha256(encodable(whole).encode()).hexdigest()
    return f"{begin}-{digest[: _HASH_BYTES - 1]}"


_HASH_BYTES = 9
"""With what joins it to the name."""


def model_name(name: str, most_bytes: int = MOST_MODEL_NAME_BYTES) -> str:
    """Return a name as one that a model can be run under, whatever file it comes from.

    A hash is at the end of one that is too long, or that no line can hold.

    Args:
        name: of a model, or how it begins.
        most_bytes: of it.
    """
    shown = "".join(each if each.isprintable() else "_" for each in name).strip()
    if shown == name and len(name.encode()) <= most_bytes:
        return name
    begin = shown.encode()[: most_bytes - _HASH_BYTES].decode(errors="ignore")
    return name_apart(begin, name)


def name_in_file(arm: str, arms: Iterable[str] = ()) -> str:
    """Return an arm's name as the name of a file holds it.

    A hash is at the end of a long one, and of one that another arm would have as well.

    Args:
        arm: its name.
        arms: all of its case, which have files of their own.
    """
    name = _letters(arm)
    is_shared = any(_letters(each) == name for each in arms if each != arm)
    return name_apart(name, arm) if is_shared or len(name.encode()) > MOST_NAME_BYTES else name


def _letters(arm: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-" else "-" for letter in arm)


def _cut(value: Any, cut: Callable[[str], str]) -> Any:
    match value:
        case str():
            return cut(value)
        case list():
            return [_cut(each, cut) for each in value]
        case dict():
            return {cut(key): _cut(each, cut) for key, each in value.items()}
    return value
