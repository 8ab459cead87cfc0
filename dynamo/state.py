"""Changes torch's settings, which it restores, and seeds its generators.

But for `process_settings`, which puts back what others changed, no other module does.
"""

from __future__ import annotations

import inspect
import pickle
import random
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dynamometer.dynamo.private import GoneError, private
from dynamometer.results.values.cases import MatmulPrecision, Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

_DYNAMO, _INDUCTOR = "torch._dynamo.config", "torch._inductor.config"
_TF32 = "tf32"


def seed_everything(seed: int) -> None:
    """Seed Python's, NumPy's and torch's generators, every device's included."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  models draw from the legacy generator
    if torch.accelerator.current_accelerator() is None:
        # In a build without any `torch.manual_seed` would keep, with its stack as text, a call that
        # seeds CUDA once that is there, which it never is.
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def seed_and_draw(seed: int) -> None:
    """Seed every generator, and draw a number from each, so that a second seeding is noticed.

    Whoever seeds them again, as they were seeded, draws other numbers than whoever doesn't.
    """
    seed_everything(seed)
    random.random()  # noqa: S311  nothing is to be kept secret
    np.random.random()  # noqa: NPY002  models draw from the legacy generator
    torch.rand(1)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # not annotated by torch
        torch.rand(1, device="cuda")


@contextmanager
def keeping_settings() -> Iterator[None]:
    """Put back what of torch's settings a call may leave otherwise."""
    gradients, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    deterministic, precision = _deterministic(), matmul_precision()
    autocast, caches = _autocast(), torch.is_autocast_cache_enabled()
    nesting, place = _autocast_nesting(), torch.get_default_device()
    try:
        yield
    finally:
        for device, (is_on, narrow) in autocast.items():
            torch.set_autocast_enabled(device, is_on)
            torch.set_autocast_dtype(device, narrow)
        torch.set_autocast_cache_enabled(caches)
        if _autocast_nesting() > nesting:  # what is cast is kept as long as a context is open
            torch.clear_autocast_cache()
            while _autocast_nesting() > nesting:
                torch.autocast_decrement_nesting()
        if torch.get_default_device() != place:  # where none was set it is the CPU
            torch.set_default_device(None if place.type == "cpu" else place)
        torch.set_grad_enabled(gradients)
        torch.set_default_dtype(dtype)
        if _deterministic() != deterministic:
            is_on, only_warns = deterministic
            torch.use_deterministic_algorithms(is_on, warn_only=only_warns)
        if precision and precision is not matmul_precision():
            torch.set_float32_matmul_precision(precision)


def _autocast() -> dict[str, tuple[bool, torch.dtype]]:
    """Return of each type of device whether autocast is on, and what it casts to."""
    return {
        device: (torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
        for device in ("cpu", "cuda")
    }


def _deterministic() -> tuple[bool, bool]:
    """Return whether algorithms are deterministic, and whether others are only warned of."""
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    return torch.are_deterministic_algorithms_enabled(), warn_only


def _autocast_nesting() -> int:
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def settings() -> frozenset[str]:
    """Say what torch's settings are that decide how, or in what precision, others' code runs."""
    autocast = _autocast()
    found = {
        "gradients are recorded": torch.is_grad_enabled(),
        "inference mode is on": torch.is_inference_mode_enabled(),
        "autocast is on": any(is_on for is_on, _ in autocast.values()),
        "algorithms are deterministic": torch.are_deterministic_algorithms_enabled(),
    }
    others = {
        f"the default dtype is {torch.get_default_dtype()}",
        f"the default device is {torch.get_default_device().type}",
        f"the precision of matrix products is {matmul_precision()}",
        *(f"autocast on {device} casts to {narrow}" for device, (_, narrow) in autocast.items()),
    }
    return frozenset({*others, *(name for name, is_on in found.items() if is_on)})


def generators() -> tuple[object, ...]:
    """Return the states of Python's, NumPy's and torch's generators, of every CUDA device, too."""
    is_used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]  # not annotated by torch
    devices = torch.cuda.get_rng_state_all() if is_used else []
    of_torch = (each.numpy().tobytes() for each in (torch.get_rng_state(), *devices))
    of_numpy = pickle.dumps(np.random.get_state())  # noqa: NPY002  models draw from it
    return (random.getstate(), of_numpy, *of_torch)


@contextmanager
def generators_kept() -> Iterator[None]:
    """Put torch's generators back as they were, of every CUDA device, too."""
    is_used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]  # not annotated by torch
    devices = range(torch.cuda.device_count()) if is_used else ()
    with torch.random.fork_rng(devices):
        yield


@contextmanager
def without_gradients() -> Iterator[None]:
    """Let weights be written in place, with nothing recorded of it."""
    with torch.no_grad():
        yield


@contextmanager
def exporting() -> Iterator[None]:
    """Let a program be exported, without gradients and apart from what Dynamo is tracing.

    Inside a backend Dynamo's own tracing goes on, whose fake tensors are not those of export.

    Raises:
        GoneError: torch can't be told so any more.
    """
    with without_gradients(), private("torch._guards.tracing")(None):
        yield


def freezing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compiled function that freezes weights at whichever of its calls compiles.

    Dynamo asks the setting when it captures, long before Inductor is handed its own options.
    Without gradients weights are constants then; others that are called meanwhile are not touched.

    Raises:
        GoneError: torch can't be told so any more.
    """
    private(f"{_INDUCTOR}.freezing")
    config = private(_INDUCTOR)

    def call(*args: Any, **kwargs: Any) -> Any:
        before, config.freezing = config.freezing, True  # 2 us, where `patch` takes 14
        try:
            return function(*args, **kwargs)
        finally:
            config.freezing = before

    return call


def forget_compiled() -> None:
    """Have Dynamo forget everything it compiled."""
    torch.compiler.reset()


@contextmanager
def uncompiled() -> Iterator[None]:
    """Let nothing be compiled, of what a model compiles in its own forward either.

    Under a mode that watches operators Dynamo would give such code up, then and ever after.
    """
    with torch.compiler.set_stance("force_eager"):
        yield


@contextmanager
def context_managers() -> Iterator[None]:
    """Let Dynamo be entered by `with`, which it refuses unless told."""
    with _setting(_DYNAMO, "raise_on_ctx_manager_usage", value=False):
        yield


@contextmanager
def running(
    mode: Mode,
    threads: int | None,
    *,
    precision: MatmulPrecision = MatmulPrecision.HIGHEST,
    exact: bool = False,
    dynamic: bool = False,
    arms: int = 1,
) -> Iterator[None]:
    """Run with gradients or without, on a number of intra-op threads if one is given.

    Args:
        mode: training needs gradients.
        threads: intra-op threads; `None` leaves torch's own choice.
        precision: of float32 matrix products, in whatever computes them.
        exact: convolve in float32, too, where matrices are multiplied in it. cuDNN's default is
            TF32, which users have, and which is timed; PyTorch's harness also checks accuracy
            without (`--accuracy` in benchmarks/dynamo/common.py).
        dynamic: take no size of an input for fixed, not even at first sight, which is what
            `torch.compile(dynamic=True)` does.
        arms: how many copies of one model are compiled.

    Inductor draws random numbers as eager does: with its own generator a dropout, or noise that a
    model adds, would be another one than eager's, and no two results could be compared.

    Raises:
        GoneError: torch can't be told that every size is dynamic.
    """
    if dynamic:
        private(f"{_DYNAMO}.assume_static_by_default")
    before = torch.get_num_threads()
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        with (
            torch.set_grad_enabled(mode is Mode.TRAINING),
            _multiplying(precision),
            _convolving(exactly=exact and precision is MatmulPrecision.HIGHEST),
            _setting(_INDUCTOR, "fallback_random", value=True),
            _setting(_DYNAMO, "assume_static_by_default", value=not dynamic),
            _limit_for(arms),
        ):
            yield
    finally:
        if threads is not None:
            torch.set_num_threads(before)


def without_shared_headers() -> AbstractContextManager[None]:
    """Have Inductor make no header in the folder that all its processes read.

    Torch 2.11 doesn't know the variable by which that is asked of others.
    """
    return _setting(_INDUCTOR, "cpp_cache_precompile_headers", value=False)


@contextmanager
def _multiplying(precision: MatmulPrecision) -> Iterator[None]:
    """Multiply float32 matrices so, whatever variables or packages have set."""
    before = matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before or MatmulPrecision.HIGHEST)


@contextmanager
def _convolving(*, exactly: bool) -> Iterator[None]:
    """Keep cuDNN from TF32, or leave it what it has."""
    if not exactly:
        yield
        return
    before = _cudnn_precisions()
    cudnn: Any = torch.backends.cudnn  # declares some of what it has
    # Without the first, torch refuses to answer Inductor, which asks what it sets; with it alone
    # what is set for all of torch holds.
    cudnn.allow_tf32 = False
    cudnn.conv.fp32_precision = cudnn.rnn.fp32_precision = "ieee"
    try:
        yield
    finally:
        cudnn.allow_tf32 = _TF32 in before
        cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision = before


def cudnn_uses_tf32() -> bool:
    """Return whether cuDNN may compute float32 in TF32."""
    return _TF32 in _cudnn_precisions()


def _cudnn_precisions() -> tuple[str, str]:
    """Return those of convolutions and of recurrent networks."""
    cudnn: Any = torch.backends.cudnn
    return cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision


def matmul_precision() -> str | None:
    """Ask torch; `None` where it differs between devices, which torch has no word for."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return None


def note_on_precision(asked: MatmulPrecision) -> str | None:
    """Say for the record that something, such as the model, multiplies otherwise than asked."""
    now = matmul_precision()
    if now == asked:
        return None
    return f"precision of float32 matrix products: {asked} was asked, and {now or 'other'} was set"


def note_on_threads(asked: int | None) -> str | None:
    """Say for the record that something, such as the model, set other intra-op threads than asked.

    Args:
        asked: how many; `None` where torch was left its own choice.
    """
    now = torch.get_num_threads()
    return None if asked in {None, now} else f"{asked} threads were asked for, and {now} were set"


def has_limit_per_arm() -> bool:
    """Return whether each call of `torch.compile` can count its recompiles apart."""
    return "isolate_recompiles" in inspect.signature(torch.compile).parameters


def _limit_for(arms: int) -> AbstractContextManager[None]:
    """Let copies of a model be recompiled as often together as each could be alone.

    Before torch 2.13 they share one limit, as they share their code: of ten arms the last ones
    would not be compiled at all.
    """
    name = "recompile_limit"
    if has_limit_per_arm():
        return nullcontext()
    with suppress(GoneError):
        return _setting(_DYNAMO, name, value=private(f"{_DYNAMO}.{name}") * arms)
    return nullcontext()


def _setting(config: str, name: str, *, value: bool | int) -> AbstractContextManager[None]:
    """Set what torch has a setting for; where that is gone nothing is done."""
    try:
        private(f"{config}.{name}")
    except GoneError:
        return nullcontext()
    patched: AbstractContextManager[None] = private(config).patch(**{name: value})
    return patched
