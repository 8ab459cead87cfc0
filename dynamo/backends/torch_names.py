"""Names that `torch.compile` knows, read from files: those of torch, and entry points of others.

Torch is not imported, nor is what a name stands for.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_REGISTERED = re.compile(
    r"""^register_\w*backend\(\s*name="(\w+)"|"""
    r"""^@register_\w*backend(?:\(name="(\w+)")?.*\n(?:@.*\n)*def[ ](\w+)""",
    re.MULTILINE,
)
"""A call with a name, or a decorator with one, or else the decorated function's name."""

_FOR_TESTS = re.compile(r"_TESTING_ONLY$|_minifier_backend$|_crossref$")
"""What torch tests its own debugging with: it fails on purpose, or looks for a failure. Its tag
`debug` says less, as `eager` and `aot_eager` have it, too."""

_GROUP = "torch_dynamo_backends"


@cache
def names_of_torch() -> frozenset[str]:
    """Return the names that torch registers itself; none where its files are elsewhere."""
    spec = find_spec("torch")
    folders = (spec and spec.submodule_search_locations) or ()
    files = [
        *(path for folder in folders for path in Path(folder, "_dynamo/backends").glob("*.py")),
        *(path for folder in folders for path in Path(folder, "_dynamo/repro").glob("after_d*.py")),
    ]
    found = (_REGISTERED.findall(path.read_text(encoding="utf-8")) for path in files)
    return frozenset(next(filter(None, names)) for matches in found for names in matches)


@cache
def entry_points() -> dict[str, str]:
    """Return the `module:attribute` of each name that an installed distribution registers."""
    from importlib import metadata

    return {point.name: point.value for point in metadata.entry_points(group=_GROUP)}


def tests_torch(name: str) -> bool:
    """Return whether a backend is for tests of torch itself, and for no model."""
    return bool(_FOR_TESTS.search(name)) and name in names_of_torch()


def is_known(name: str) -> bool:
    """Return whether `torch.compile` knows a backend of a name."""
    return name in names_of_torch() or name in entry_points()
