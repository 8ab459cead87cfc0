"""What importing a project's files leaves behind in a process that is no worker."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _command_line_and_path_as_before() -> Iterator[None]:
    argv, path = [*sys.argv], [*sys.path]
    yield
    sys.argv[:], sys.path[:] = argv, path
