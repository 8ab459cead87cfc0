"""What Inductor makes ready before anything is compiled."""

from __future__ import annotations

import pytest
from torch._inductor import cpu_vec_isa

from dynamometer.dynamo.backends.inductor import inductor


def test_a_folder_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to set, as no worker could compile."""

    def refuse() -> None:
        raise PermissionError(13, "Permission denied", "/a/torchinductor_me")

    monkeypatch.setattr(cpu_vec_isa, "valid_vec_isa_list", refuse)
    with pytest.raises(OSError, match="'/a/torchinductor_me'; set TMPDIR to another folder"):
        inductor.preload("cpu")
