"""What the checker does otherwise on CUDA: generators, settings, and memory of inputs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import torch
from judging import judge
from torch import nn

from dynamometer.common.checking.checking import Checks
from dynamometer.results.values.cases import Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Forward = Callable[..., Any]

pytestmark = pytest.mark.gpu

DEVICE = "cuda"
on_device = partial(judge, device=DEVICE)


@pytest.fixture(autouse=True)
def settings_are_put_back() -> Iterator[None]:
    """Give models and inputs the same numbers, and put back what an arm here leaves on."""
    torch.manual_seed(0)
    precision = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(precision)
    torch.use_deterministic_algorithms(mode=False)


class Noisy(nn.Module):
    """Draws from the device's generator, and keeps statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 16)
        )
        for each in self.layers[1].parameters():  # ones and zeros could be left out
            nn.init.uniform_(each, 0.5, 1.5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Add noise to what a small network gives."""
        found: torch.Tensor = self.layers(images)
        return found + torch.randn_like(found)


def images() -> torch.Tensor:
    """Return inputs as a suite makes them, on the CPU."""
    return torch.randn(16, 3, 8, 8)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("dtype", [Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.AMP])
def test_eager_is_right_without_a_reservation(mode: Mode, dtype: Dtype) -> None:
    """Draws, statistics, and further runs of eager are the same there."""
    found = on_device(Noisy(), images(), mode=mode, dtype=dtype)
    assert isinstance(found, Checks), found
    assert not found.unchecked


# Inductor advises TF32, which torch 2.11 does by a warning while it compiles.
@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores")
@pytest.mark.parametrize("mode", Mode)
def test_inductor_is_right(mode: Mode) -> None:
    """It draws other numbers unless told not to, as runs tell it."""
    import torch._inductor.config as inductor

    def compiled(module: nn.Module) -> Forward:
        torch._dynamo.reset()
        found: Forward = torch.compile(module)
        return found

    with inductor.patch(fallback_random=True):
        found = on_device(Noisy(), images(), mode=mode, arm=compiled)
    assert isinstance(found, Checks), found


@pytest.mark.parametrize("mode", Mode)
def test_whoever_seeds_the_devices_generator_again_is_found(mode: Mode) -> None:
    """Every step would have the same dropout."""

    def again(module: nn.Module) -> Forward:
        def call(*args: Any) -> Any:
            torch.manual_seed(torch.initial_seed())
            return module(*args)

        return call

    found = on_device(Noisy(), images(), mode=mode, arm=again)
    assert "wrong" in str(found) or "always the same" in str(found)


def test_whoever_reads_the_memory_of_the_first_call_is_found() -> None:
    """A graph that is replayed without copying its inputs does."""

    def replayed(module: nn.Module) -> Forward:
        kept: list[Any] = []

        def call(*args: Any) -> Any:
            kept.append(args)
            return module(*kept[0])

        return call

    found = on_device(Noisy(), images(), arm=replayed)
    assert "call on other inputs" in str(found)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: torch.set_float32_matmul_precision("medium"), "precision of matrix products"),
        (lambda: torch.use_deterministic_algorithms(mode=True), "algorithms are deterministic"),
    ],
)
def test_settings_that_an_arm_leaves_on_are_found(act: Callable[[], None], words: str) -> None:
    """Whatever runs after it would run otherwise."""

    def arm(module: nn.Module) -> Forward:
        def call(*args: Any) -> Any:
            found = module(*args)
            act()
            return found

        return call

    assert words in str(on_device(Noisy(), images(), arm=arm))


def test_an_input_that_an_arm_writes_to_is_found() -> None:
    """Copies of inputs are on the device, too."""

    def arm(module: nn.Module) -> Forward:
        return lambda pixels: (module(pixels), pixels.add_(1.0))[0]

    assert "inputs" in str(on_device(Noisy(), images(), arm=arm))
