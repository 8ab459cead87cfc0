"""Backends that are set in several ways, side by side in real workers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import hostile_manifest, run_manifest
from torch._inductor.runtime.cache_dir_utils import default_cache_dir

from dynamometer.results.values.records import Status

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="there is no C++ compiler")


def test_variants_of_a_backend_are_arms_of_one_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each compiles in its own way, is checked, and is called by its whole name.

    A worker ends without exit handlers, and leaves none of AOTInductor's libraries behind.
    """
    pytest.importorskip("onnxruntime")
    temporary = tmp_path / "temporary"
    _share_headers(temporary)
    monkeypatch.setenv("TMPDIR", str(temporary))
    whole = ["aot_inductor", "onnx:no-spin"]
    arms = ["inductor", "inductor:freezing", "inductor:config.cpp.simdlen=1", *whole]
    manifest = hostile_manifest(["behaves"], arms, experiments=("accuracy",))
    record = run_manifest(manifest, tmp_path / "run")["behaves"]
    assert [result.arm for result in record.arms] == ["baseline", *arms]
    assert {result.outcome.status for result in record.arms} == {Status.PASS}
    graphs = {result.arm: result.capture and result.capture.graphs for result in record.arms}
    assert graphs == {**dict.fromkeys(arms[:3], 1), **dict.fromkeys(["baseline", *whole])}
    assert not list(tmp_path.rglob("*aot*"))


def _share_headers(temporary: Path) -> None:
    """Have Inductor find, below another temporary folder, the headers it has compiled before.

    It looks for them below the default of its caches alone, and takes seconds for each.
    """
    usual = Path(default_cache_dir())
    headers = usual / "precompiled_headers"
    headers.mkdir(parents=True, exist_ok=True)
    own = temporary / usual.name
    own.mkdir(parents=True)
    (own / headers.name).symlink_to(headers)


def test_a_setting_of_a_wrong_type_is_the_arms_failure(tmp_path: Path) -> None:
    """Where torch's file doesn't show the type, torch says it, and the other arm goes on."""
    arms = ["inductor:config.prologue_fusion=often", "eager"]
    manifest = hostile_manifest(["behaves"], arms, experiments=("accuracy",))
    record = run_manifest(manifest, tmp_path / "run")["behaves"]
    outcomes = {result.arm: result.outcome for result in record.arms}
    assert outcomes[arms[0]].status is Status.FAIL
    assert "prologue_fusion" in (outcomes[arms[0]].reason or "")
    assert outcomes["eager"].status is Status.PASS
