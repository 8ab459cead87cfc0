"""Batch sizes of models in a file, as PyTorch's `torchbench_models_list.txt` has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.workload_options import BATCH_SIZE_FILE
from dynamometer.results.listing import first_of
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.reading import file_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.values.cases import ModelSpec

_MOST_DIGITS = 19
"""Of a number that torch can hold."""
_MOST_NAMED = 5
"""Of the models that a suite lacks; a file may be of all suites."""


def asked_batch_sizes(
    request: Request, specs: Iterable[ModelSpec]
) -> tuple[dict[str, int], list[str]]:
    """Return the batch sizes of a file, if one is named, and what is to be said of it.

    Args:
        request: what was asked for.
        specs: all models of the suite.

    Raises:
        UsageError: it can't be read, or a line is no model and size; says which.
    """
    path = request[BATCH_SIZE_FILE]
    if path is None:
        return {}, []
    found = read_batch_sizes(path)
    known = {name for spec in specs for name in (spec.name, *spec.aliases)}
    unknown = [name for name in found if name not in known]
    if not unknown:
        return found, []
    told = f"--batch-size-file {path} names models that the suite does not have"
    return found, [f"{told}: {first_of(unknown, _MOST_NAMED)}"]


def read_batch_sizes(path: Path) -> dict[str, int]:
    """Return the batch size of each model that a file names, in lines of `model,size`.

    Empty lines and those that begin with `#` are passed over.

    Raises:
        UsageError: it can't be read, or a line is no model and size; says which.
    """
    try:
        lines = file_text(path, may_be_pipe=True).splitlines()
    except StoreError as error:
        msg = f"--batch-size-file {error}"
        raise UsageError(msg) from error
    found = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text and not text.startswith("#"):
            model, _, size = (part.strip() for part in text.partition(","))
            is_size = size.isdecimal() and len(size) < _MOST_DIGITS and int(size)
            if not model or not is_size:
                msg = f"{path}, line {number}: {text!r} is no `model,size`, such as resnet18,64"
                raise UsageError(msg)
            found[model] = int(size)
    return found
