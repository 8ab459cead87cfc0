from __future__ import annotations

import tempfile
from pathlib import Path

from dynamometer.common.machine.temporary import temporary_files_in


def test_files_that_are_left_lie_in_the_folder(tmp_path: Path) -> None:
    """And those of whoever comes later where they did before."""
    before = tempfile.gettempdir()
    with temporary_files_in(tmp_path / "own"):
        left = Path(tempfile.mkdtemp())
    assert left.parent == tmp_path / "own"
    assert tempfile.gettempdir() == before
