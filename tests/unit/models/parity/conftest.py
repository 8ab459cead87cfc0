"""What importing a project's files leaves behind in a process that is no worker."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def modules_as_before(tmp_path: Path) -> Iterator[None]:
    """Forget what a test wrote and imported; a second copy of a real module would be another."""

    def is_made_up(module: Any) -> bool:
        file = vars(module).get("__file__")
        return not isinstance(file, str) or Path(file).is_relative_to(tmp_path)

    before = dict(sys.modules)
    yield
    for name in sys.modules.keys() - before.keys():
        if is_made_up(sys.modules[name]):
            del sys.modules[name]
    sys.modules.update(before)
