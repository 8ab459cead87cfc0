"""What a script says of its case, and the function that runs it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.common.interfaces import arm_names
from dynamometer.dynamo.backends.compilers import ThroughDynamo
from dynamometer.results.values.cases import (
    NO_BACKEND,
    NO_OVERRIDES,
    Dtype,
    DynamicDims,
    MatmulPrecision,
    Mode,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dynamometer.results.values.cases import Case

TEST, MAIN = "_TEST", "_main"
"""The names of the test case in a script, and of the function that runs it."""

_TOLERANCES = {Mode.INFERENCE: 1e-4, Mode.TRAINING: 1e-3}
_OF_HALF = 2e-2


def docstring_of(case: Case, class_name: str, origin: str) -> str:
    """Return what a script is, and what of the case it does not do."""
    kind = " as one graph" if case.nopython else ""
    lines = [
        f"{class_name} of {origin} in {case.mode}, in eager and compiled with {_arm(case)}{kind}.",
        "",
        "It is called twice from the same seed, and both must come to the same but for rounding.",
        "What a run does besides is left out here:",
        *(f"- {each}" for each in _left_out(case)),
    ]
    text = "\n".join(lines).replace("\\", "\\\\").replace('"', "'")
    return f'"""{text}\n"""'


def _left_out(case: Case) -> Iterator[str]:
    """Yield what of a case a script does not do."""
    yield "calls on other inputs"
    yield "asking runs of eager how far rounding goes: allowed is a share of each value"
    if case.mode is Mode.TRAINING:
        yield "the optimizer's step, and adding gradients to those of another call"
    if arm_names.read(_arm(case)).options:
        yield f"options of the backend: {_arm(case)}"
    if case.channels_last:
        yield "channels last"
    if case.dynamic and case.dynamic_dims is not DynamicDims.ALL:
        yield f"sizes that vary: {case.shapes}"
    if case.overrides != NO_OVERRIDES:
        yield f"how Dynamo is to treat functions: {' '.join(case.overrides.argv)}"


def main_of(case: Case, seed: int) -> str:
    """Return the text of the function that runs a test case either way, and compares.

    Args:
        case: how it is run.
        seed: of random numbers.

    Raises:
        ValueError: `torch.compile` can't be told to do what the arm does.
    """
    decorator = "" if case.mode is Mode.TRAINING else "@_torch.no_grad()\n"
    head = (
        f'{decorator}def {MAIN}() -> None:\n    """Run it in eager and compiled, and compare."""\n'
    )
    return head + "\n".join(f"    {line}" for line in _lines(case, seed))


def _lines(case: Case, seed: int) -> Iterator[str]:
    importing, backend = _backend(case)
    if importing:
        yield importing
    if case.matmul_precision is not MatmulPrecision.HIGHEST:
        yield f"_torch.set_float32_matmul_precision({str(case.matmul_precision)!r})"
    if backend == "'inductor'":
        yield "from torch._inductor import config"
        yield "config.fallback_random = True  # it draws the numbers that eager does"
    yield f"_seed({seed})"
    yield f"kind, init_args, forward_args = {TEST}"
    yield "args, kwargs = init_args()"
    yield "model = kind(*args, **kwargs)"
    yield "inputs = forward_args()"
    yield from _configuring(case)
    step = "_in_training" if case.mode is Mode.TRAINING else "_in_inference"
    options = f"backend={backend}, fullgraph={case.nopython}"
    if case.has_dynamic_dims(DynamicDims.ALL):
        options += ", dynamic=True"
    tolerance = _OF_HALF if case.dtype is not Dtype.FLOAT32 else _TOLERANCES[case.mode]
    yield "own, own_inputs = _copied(model, inputs)"
    yield f"compiled = _torch.compile(own, {options})"
    yield f"expected = _calls({step}, model, model, inputs, {seed})"
    yield f"found = _calls({step}, compiled, own, own_inputs, {seed})"
    yield f"_compare(found, expected, {tolerance})"
    yield "print('compiled and eager agree')"


def _configuring(case: Case) -> Iterator[str]:
    """Yield what puts model and inputs into the state that a case asks for."""
    half = None if case.dtype in {Dtype.FLOAT32, Dtype.AMP} else f"_torch.{case.dtype}"
    if case.device != "cpu":
        yield f"model = model.to({case.device!r})"
    if half:
        yield f"model = model.to({half})"
    if half or case.device != "cpu":
        yield f"inputs = _moved(inputs, {case.device!r}, {half})"
    if case.mode is Mode.TRAINING:
        yield "model = _WithLoss(model)"
    if case.dtype is Dtype.AMP:
        yield f"model = _Autocast(model, {case.device.partition(':')[0]!r})"
    yield f"model.{'train' if case.mode is Mode.TRAINING else 'eval'}()"


def _backend(case: Case) -> tuple[str, str]:
    """Return what imports a backend, if it is a user's own, and what `torch.compile` is given.

    Raises:
        ValueError: the arm is no backend of `torch.compile`.
    """
    backend = arm_names.read(_arm(case)).backend
    module, colon, attribute = backend.partition(":")
    if colon:
        return f"from {module} import {attribute} as backend", "backend"
    declared = arm_names.declared(backend)
    if isinstance(declared, ThroughDynamo) and isinstance(declared.compiler, str):
        return "", repr(declared.compiler)
    msg = f"{_arm(case)} is no backend that torch.compile knows by itself: leave out --script"
    raise ValueError(msg)


def _arm(case: Case) -> str:
    return (*case.arms[1:], NO_BACKEND)[0]
