"""Two modules alone write torch's global state: one restores what it found, one what others did."""

from __future__ import annotations

import ast
import operator
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch._inductor import config as inductor_config

from dynamometer.dynamo import state
from dynamometer.results.values.cases import MatmulPrecision, Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[3]
OWNERS = [ROOT / "dynamo" / name for name in ("state.py", "process_settings.py")]
SOURCES = sorted(
    path
    for path in (*(ROOT / "common").rglob("*.py"), *(ROOT / "dynamo").rglob("*.py"),
                 *(ROOT / "results").rglob("*.py"), ROOT / "torchbench.py")
    if path not in OWNERS
)  # fmt: skip
WRITERS = {
    "cudnn_sdp_kernel", "enable_grad", "manual_seed", "manual_seed_all", "no_grad",
    "reset", "seed", "seed_all", "set_default_device", "set_default_dtype",
    "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal",
    "set_grad_enabled", "set_num_interop_threads", "set_num_threads", "set_rng_state",
    "set_stance", "use_deterministic_algorithms",
}  # fmt: skip


def dotted(node: ast.expr, names: dict[str, str]) -> str:
    """Write an attribute chain with the full name of what was imported; empty if it isn't one."""
    match node:
        case ast.Name(name):
            return names.get(name, name)
        case ast.Attribute(value, attribute):
            owner = dotted(value, names)
            return f"{owner}.{attribute}" if owner else ""
        case ast.Subscript(value, _):
            return dotted(value, names)
        case _:
            return ""


def writes(source: str) -> list[str]:  # noqa: C901  a case for each way of writing
    """Find assignments to, deletions of and setter calls on anything that belongs to torch."""
    tree = ast.parse(source)
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(aliases):
                for alias in aliases:
                    if alias.asname:
                        names[alias.asname] = alias.name
            case ast.ImportFrom(module, aliases, 0):
                for alias in aliases:
                    names[alias.asname or alias.name] = f"{module}.{alias.name}"
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets) | ast.Delete(targets):
                written = [
                    dotted(each, names) for each in targets if not isinstance(each, ast.Name)
                ]
            case ast.AugAssign(target) | ast.AnnAssign(target):
                written = [] if isinstance(target, ast.Name) else [dotted(target, names)]
            case ast.Call(ast.Name("setattr" | "delattr"), [owner, *_]):
                written = [dotted(owner, names)]
            case ast.Call(called):
                path = dotted(called, names)
                owner_path, _, last = path.rpartition(".")
                is_write = last in WRITERS or (last == "patch" and "config" in owner_path)
                written = [path] if is_write else []
            case _:
                written = []
        found += [f"{node.lineno}: {path}" for path in written if path.startswith("torch.")]
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_other_module_writes_torch_state(path: Path) -> None:
    """No module but those two assigns to torch or calls one of its setters."""
    assert writes(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.backends.cudnn.benchmark = True",
        "import torch._dynamo as d\nd.config.cache_size_limit += 1",
        "from torch._inductor import config\nconfig.freezing = True",
        "from torch import backends as b\nb.cuda.matmul.allow_tf32: bool = True",
        "import torch\ntorch.set_num_threads(1)",
        "from torch import manual_seed\nmanual_seed(0)",
        "import torch\ntorch.cuda.manual_seed_all(0)",
        "import torch\nwith torch._inductor.config.patch(freezing=True): pass",
        "import torch\nsetattr(torch.backends.mkldnn, 'enabled', False)",
        "import torch\ndel torch._dynamo.config.verbose",
        "from torch._dynamo.utils import counters\ncounters['frames']['ok'] = 0",
        "import torch\nwith torch.no_grad(): pass",
    ],
)
def test_the_search_finds_what_it_looks_for(source: str) -> None:
    """Each way of writing torch's state is recognised."""
    assert writes(source)


@pytest.mark.parametrize("path", OWNERS, ids=lambda path: str(path.name))
def test_the_search_knows_the_owners_write(path: Path) -> None:
    """Modules that may write are seen to do so."""
    assert writes(path.read_text())


SETTERS: dict[str, Callable[[], object]] = {
    "dtype of autocast": lambda: torch.set_autocast_dtype("cpu", torch.float16),
    "autocast": lambda: torch.autocast("cpu").__enter__(),
    "cache of autocast": lambda: torch.set_autocast_cache_enabled(False),
    "determinism": lambda: torch.use_deterministic_algorithms(mode=True),
    "warnings": lambda: torch.use_deterministic_algorithms(mode=False, warn_only=True),
}


def left() -> tuple[object, ...]:
    """Return what these set."""
    return (
        torch.get_autocast_dtype("cpu"),
        torch.is_autocast_enabled("cpu"),
        torch.is_autocast_cache_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )


@pytest.mark.parametrize("change", SETTERS.values(), ids=SETTERS)
def test_what_a_call_leaves_otherwise_is_put_back(change: Callable[[], object]) -> None:
    """Whatever is run next has it as it was."""
    before = left()
    with state.keeping_settings():
        change()
        assert left() != before
    assert left() == before


@pytest.mark.parametrize("mode", list(Mode))
def test_running_restores_what_it_found(mode: Mode) -> None:
    """Afterwards everything is as before, whether the body passed or failed."""
    before = torch.get_num_threads()
    eager_numbers = inductor_config.fallback_random
    training = mode is Mode.TRAINING
    with state.running(mode, before + 1):
        assert torch.get_num_threads() == before + 1
        assert torch.is_grad_enabled() == training
        assert inductor_config.fallback_random
    with pytest.raises(ZeroDivisionError), state.running(mode, before + 1):
        raise ZeroDivisionError
    assert torch.get_num_threads() == before
    assert torch.is_grad_enabled()
    assert inductor_config.fallback_random == eager_numbers


def test_headers_are_shared_but_by_foreign_code() -> None:
    """It may not write where all processes read."""
    before = inductor_config.cpp_cache_precompile_headers
    with state.without_shared_headers():
        assert not inductor_config.cpp_cache_precompile_headers
    assert inductor_config.cpp_cache_precompile_headers == before


@pytest.mark.parametrize("precision", MatmulPrecision)
def test_matrices_are_multiplied_as_asked(precision: MatmulPrecision) -> None:
    """Whatever was set before, as it is again afterwards."""
    for before in ("high", "highest"):
        torch.set_float32_matmul_precision(before)
        with state.running(Mode.INFERENCE, None, precision=precision):
            assert torch.get_float32_matmul_precision() == precision
            assert state.note_on_precision(precision) is None
        assert torch.get_float32_matmul_precision() == before


def test_other_precision_than_was_asked_is_noted() -> None:
    """Also one that torch has no word for, as it holds for some devices."""
    with state.running(Mode.INFERENCE, None, precision=MatmulPrecision.HIGH):
        torch.set_float32_matmul_precision("medium")
        assert "medium was set" in (state.note_on_precision(MatmulPrecision.HIGH) or "")
    with state.running(Mode.INFERENCE, None):
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        assert "other was set" in (state.note_on_precision(MatmulPrecision.HIGHEST) or "")
    assert torch.get_float32_matmul_precision() == "highest"


def test_other_threads_than_were_asked_are_noted() -> None:
    """Where some were asked for."""
    with state.running(Mode.INFERENCE, 2):
        assert state.note_on_threads(2) is None
        torch.set_num_threads(1)
        assert state.note_on_threads(2) == "2 threads were asked for, and 1 were set"
        assert state.note_on_threads(None) is None


PRECISIONS = {
    "by default": {},
    "off": {"allow_tf32": False},
    "of convolutions": {"conv.fp32_precision": "ieee"},
    "of both": {"conv.fp32_precision": "ieee", "rnn.fp32_precision": "ieee"},
    "of all of it": {"allow_tf32": False, "fp32_precision": "tf32"},
}


@pytest.fixture
def cudnn() -> Iterator[Any]:
    """Put back what a test sets of cuDNN."""
    yield torch.backends.cudnn
    torch.backends.cudnn.fp32_precision = "none"
    torch.backends.cudnn.allow_tf32 = True


@pytest.mark.parametrize("settings", PRECISIONS.values(), ids=PRECISIONS)
def test_convolutions_are_in_float32_where_nothing_is_timed(
    cudnn: Any, settings: dict[str, object]
) -> None:
    """As matrices are, whatever was set before, as it is afterwards."""
    for name, value in settings.items():
        owner, _, attribute = f"cudnn.{name}".rpartition(".")
        setattr(operator.attrgetter(owner)(torch.backends), attribute, value)
    before = (cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision, cudnn.fp32_precision)
    uses_tf32 = state.cudnn_uses_tf32()
    assert uses_tf32 == ("tf32" in before[:2])
    with state.running(Mode.INFERENCE, None):
        assert state.cudnn_uses_tf32() == uses_tf32
    with state.running(Mode.INFERENCE, None, exact=True):
        assert not state.cudnn_uses_tf32()
        assert not cudnn.allow_tf32
    with state.running(Mode.INFERENCE, None, precision=MatmulPrecision.HIGH, exact=True):
        assert state.cudnn_uses_tf32() == uses_tf32
    assert before == (cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision, cudnn.fp32_precision)


def test_without_a_number_threads_are_left_alone() -> None:
    """Torch's own choice is kept unless another is asked for."""
    before = torch.get_num_threads()
    with state.running(Mode.INFERENCE, None):
        assert torch.get_num_threads() == before


def test_one_seed_for_every_generator() -> None:
    """Python, NumPy and torch repeat themselves after the same seed, and differ after another."""

    def draw(seed: int) -> tuple[float, float, float]:
        state.seed_everything(seed)
        return random.random(), float(np.random.rand()), float(torch.rand(1))  # noqa: NPY002  it is seeded

    first, again, other = draw(3), draw(3), draw(4)
    assert first == again
    assert all(one != two for one, two in zip(first, other, strict=True))


@pytest.mark.parametrize("accelerator", [None, torch.device("cuda")])
def test_whoever_has_an_accelerator_has_it_seeded(
    accelerator: torch.device | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the CPU's generator the numbers are the same either way."""
    asked: list[int] = []
    seed_all = torch.manual_seed
    seed_all(7)
    expected = torch.rand(3)
    monkeypatch.setattr(torch, "manual_seed", lambda seed: asked.append(seed) or seed_all(seed))
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: accelerator)
    state.seed_everything(7)
    assert torch.equal(torch.rand(3), expected)
    assert asked == ([] if accelerator is None else [7])
