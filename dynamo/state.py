"""The only module that writes torch's global state; it restores what it found."""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator


def seed_everything(seed: int) -> None:
    """Seed Python's, NumPy's and torch's generators, every device's included."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  models draw from the legacy generator
    torch.manual_seed(seed)


@contextmanager
def inference(threads: int | None) -> Iterator[None]:
    """Run without gradients, on a number of intra-op threads if one is given."""
    before = torch.get_num_threads()
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        with torch.no_grad():
            yield
    finally:
        if threads is not None:
            torch.set_num_threads(before)
