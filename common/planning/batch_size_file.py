"""Batch sizes of models in a file, as PyTorch's `torchbench_models_list.txt` has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.common.errors import UsageError
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.reading import file_text

if TYPE_CHECKING:
    from pathlib import Path


_MOST_DIGITS = 19
"""Of a number that torch can hold."""


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
