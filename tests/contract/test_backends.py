"""Every registered backend, on a module that takes no time."""

from __future__ import annotations

import pytest
import torch
from protocols import deviations
from torch import nn

from dynamometer.common import registry
from dynamometer.dynamo.backends.backends import Backend, as_backend
from dynamometer.dynamo.backends.compilers import ThroughDynamo
from dynamometer.dynamo.runtime_packages import RUNTIME_PACKAGES

NAMES = sorted(registry.targets("backends"))
SLOW = {
    *("aot_eager", "aot_inductor", "cudagraphs", "inductor", "onnx", "onnxrt", "openvino", "ov"),
    *("tensorrt", "trt", "tvm"),
}
"""Those that compile for long, not on a CPU, or by an extra; they have tests of their own."""
QUICK = sorted(set(NAMES) - SLOW)

# torch.jit, which warns of its own retirement, is a backend all the same.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")


class Scaled(nn.Module):
    """Takes inputs by position and by name."""

    def __init__(self) -> None:
        """Draw weights."""
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """Compute something."""
        return torch.relu(self.linear(x)) * scale


@pytest.fixture(params=NAMES)
def backend(request: pytest.FixtureRequest) -> Backend:
    """The backend of a name."""
    return as_backend(registry.resolve("backends", request.param))


def test_it_has_the_protocols_members(backend: Backend) -> None:
    """Methods and their arguments are those of the interface, and `captures` says yes or no."""
    assert deviations(Backend, backend) == []
    assert isinstance(backend.captures, bool)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_available_gives_none_or_a_reason(backend: Backend, device: str) -> None:
    """It can be used, or a sentence says why not."""
    reason = backend.available(device)
    assert reason is None or len(reason.split()) >= 3


def test_it_is_available_somewhere(backend: Backend) -> None:
    """A backend that works nowhere has no place in the registry, but for a missing package."""
    reasons = [backend.available(device) for device in ("cpu", "cuda")]
    assert None in reasons or any("needs the package" in (reason or "") for reason in reasons)


def test_its_version_is_part_of_what_is_recorded(backend: Backend) -> None:
    """Records and decisions hold the versions of torch and of `RUNTIME_PACKAGES` alone."""
    known = {name.replace("_", "-") for name in ("torch", *RUNTIME_PACKAGES)}
    distribution = getattr(backend, "distribution", "torch")
    assert distribution.replace("_", "-") in known


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("by_name", [(), ("scale",), ("x", "scale")], ids=len)
def test_what_it_compiles_computes_the_same(name: str, by_name: tuple[str, ...]) -> None:
    """The callable has the module's signature and result, however the inputs are passed."""
    module = Scaled().eval()
    inputs = {"x": torch.ones(4, 3), "scale": torch.tensor(2.0)}
    kwargs = {key: inputs[key] for key in by_name}
    args = tuple(value for key, value in inputs.items() if key not in by_name)
    backend = as_backend(registry.resolve("backends", name))
    with torch.no_grad():
        expected = module(**inputs)
        compiled = backend.compile(module, args, kwargs)
        torch.testing.assert_close(compiled(*args, **kwargs), expected)
        torch.testing.assert_close(compiled(*args, **kwargs), expected)


def test_any_callable_is_a_compiler() -> None:
    """A user's callable becomes a backend of Dynamo."""

    def compiler(graph: object, inputs: object) -> object:
        return graph

    assert as_backend(compiler) == ThroughDynamo(name="compiler", compiler=compiler, trains=True)


def test_what_is_no_backend_is_refused() -> None:
    """Neither a backend nor a callable is said to be so."""
    with pytest.raises(TypeError, match="42 is neither a backend nor a callable"):
        as_backend(42)


def test_a_missing_package_says_how_to_get_it() -> None:
    """The reason names the package and the command that installs it."""
    reason = ThroughDynamo(name="fast", compiler="fast", packages=("no_such_package",)).available(
        "cpu"
    )
    assert reason is not None
    assert "pip install no_such_package" in reason


def test_torchscript_may_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where torch has no `torch.jit.trace` any more, that is the reason, and no failure."""
    monkeypatch.delattr(torch.jit, "trace")
    reason = as_backend(registry.resolve("backends", "ts")).available("cpu")
    assert reason == f"torch {torch.__version__} has no torch.jit.trace any more"


def test_a_limited_backend_names_its_devices() -> None:
    """The reason says where it does run."""
    assert ThroughDynamo(name="fast", compiler="fast", devices=("cuda", "xpu")).available(
        "cpu"
    ) == ("fast runs on cuda, xpu only")
