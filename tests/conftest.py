"""What all tests share: golden files, how long Hypothesis searches, and a machine at rest."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from dynamometer.common import registry
from dynamometer.common.machine import doctor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Networks of tests are small, and there is a process for each processor: threads that wait for
# each other take most of the time. Read when torch is imported, which is later.
os.environ.setdefault("OMP_NUM_THREADS", "1")

GOLDEN = Path(__file__).resolve().parent / "golden" / "expected"

# No verdict on how long an example takes, or to draw.
hypothesis.settings.register_profile(
    "dynamometer",
    deadline=None,
    max_examples=40,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("dynamometer")
# Of make test-fast; else as the one that is loaded.
hypothesis.settings.register_profile("fast", max_examples=10)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what the tests produce over tests/golden/expected, to be read with git diff",
    )


def pytest_configure() -> None:
    """Have what tests start hear Ctrl-C, though whoever started them ignores it, as `&` does."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _machine_at_rest() -> Iterator[None]:
    """Look at the machine before a run without a clock: no time passes, nobody else is busy."""
    examine = partial(doctor.examine, read=lambda: None, pause=lambda _: None, piece_s=lambda: 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doctor, "examine", examine)
        yield


@pytest.fixture(autouse=True)
def _command_line_and_path_as_before() -> Iterator[None]:
    """Undo what importing users' models and projects changes, which is meant for workers."""
    argv, path = [*sys.argv], [*sys.path]
    yield
    sys.argv[:], sys.path[:] = argv, path


@pytest.fixture(autouse=True)
def _no_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a checkout that some tests look into, named in the environment, from all others."""
    monkeypatch.delenv("TORCHBENCH_ROOT", raising=False)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed distribution whose entry points a test writes; gives the file for them.

    Its modules are in the folder above.
    """
    home = tmp_path / "installed"
    folder = home / "some_plugin-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: some-plugin\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(home))
    monkeypatch.setattr(registry, "_left_out", set())
    monkeypatch.setattr(registry, "_told", set())
    known = set(sys.modules)
    yield folder / "entry_points.txt"
    for name in set(sys.modules) - known:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(home)):
            del sys.modules[name]
    importlib.invalidate_caches()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the golden file of a name, exactly; or write it, where asked to."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        assert text == path.read_bytes().decode(), f"{path} differs: pytest --update-golden"

    return check
