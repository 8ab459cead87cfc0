"""OpenVINO: `openvino` for each of Dynamo's graphs, `ov` for a module as a whole.

Inputs are read where PyTorch keeps them. Outputs are copied, as the runtime writes every call's to
the same memory, and the caller may keep what it got.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynamometer.dynamo.backends.compilers import (
    GraphCompiler,
    ModuleCompiler,
    Runtime,
    ThroughDynamo,
    WholeModel,
)
from dynamometer.dynamo.backends.declared import BackendOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from dynamometer.dynamo.backends.programs import Compute, Program


@dataclass(frozen=True, kw_only=True)
class OpenVino(Runtime):
    """How OpenVINO is set.

    Attributes:
        precision: floating point numbers are computed in; by itself it takes bfloat16 where the
            processor is faster in it, which is no comparison.
        hint: what it is to be good at.
    """

    precision: str = "f32"
    hint: str = "latency"

    def build(self, program: Program) -> Compute:
        """Return an inference request's call.

        Raises:
            UnsupportedError: a dtype of an input or an output is none it shares with PyTorch.
            Exception: whatever the runtime raises of what it can't do.
        """
        return _Request(program, self)


class _Graphs(OpenVino, GraphCompiler):
    """For each of Dynamo's graphs."""


class _Modules(OpenVino, ModuleCompiler):
    """For a module as a whole."""


class _Request:
    """An inference request that reads PyTorch's memory."""

    def __init__(self, program: Program, runtime: OpenVino) -> None:
        import openvino
        import torch

        from dynamometer.dynamo import state
        from dynamometer.dynamo.backends.unsupported import in_words_of_openvino

        for each in (*program.examples, *program.outputs):
            _refuse_unshared(each)
        assert program.exported is not None
        with state.exporting():
            model = openvino.convert_model(in_words_of_openvino(program.exported))
        for port, example in zip(model.inputs, program.examples, strict=True):
            port.get_node().set_partial_shape(openvino.PartialShape(list(example.shape)))
        model.validate_nodes_and_infer_types()
        settings = {
            "INFERENCE_PRECISION_HINT": runtime.precision,
            "PERFORMANCE_HINT": runtime.hint.upper(),
            "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        }
        compiled = _core().compile_model(model, "CPU", settings)
        self._dtypes = [each.dtype for each in program.outputs]
        self._request = compiled.create_infer_request()
        assert len(compiled.outputs) == len(self._dtypes)

    def __call__(self, fed: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Compute new tensors."""
        import torch

        arrays = [each.detach().contiguous().numpy() for each in fed]
        found = self._request.infer(arrays, share_inputs=True, share_outputs=True)
        return [
            # OpenVINO may hand back an integer in 32 bits, or a truth value in 8.
            torch.from_numpy(found[index]).to(dtype, copy=True)
            for index, dtype in enumerate(self._dtypes)
        ]


@functools.cache
def _core() -> Any:
    """Return the process's only core.

    The CPU plugin of each core takes over the thread's alternate signal stack, and gives back what
    it found when it goes. With several, one may give back another's that is gone by then, and the
    next signal that is handled kills the process, without a stack in its log.
    """
    import openvino

    return openvino.Core()


def _refuse_unshared(tensor: torch.Tensor) -> None:
    """Raise where numpy, through which tensors are shared, has no such tensors."""
    import torch

    from dynamometer.dynamo.backends.unsupported import UnsupportedError

    is_plain = tensor.layout is torch.strided and tensor.device.type == "cpu"
    if is_plain and not (tensor.is_complex() or tensor.dtype is torch.bfloat16):
        return
    msg = f"OpenVINO takes no tensors of {tensor.dtype}, {tensor.layout}, on {tensor.device}"
    raise UnsupportedError(msg)


_OPTIONS = (
    BackendOption(
        name="precision",
        does="what it computes in; f32 unless another is asked for",
        key="precision",
        values=("f32", "bf16", "f16"),
    ),
    BackendOption(
        name="hint",
        does="what it is to be good at; latency unless asked otherwise",
        key="hint",
        values=("latency", "throughput"),
    ),
)

openvino = ThroughDynamo(
    name="openvino",
    summary="OpenVINO in float32, for each graph that Dynamo captures; inference",
    devices=("cpu",),
    packages=("openvino",),
    extra="openvino",
    distribution="openvino",
    options=_OPTIONS,
    compiler=_Graphs(),
)
ov = WholeModel(
    name="ov",
    summary="OpenVINO in float32, for the model exported as a whole; inference",
    devices=("cpu",),
    packages=("openvino",),
    extra="openvino",
    distribution="openvino",
    options=_OPTIONS,
    compiler=_Modules(),
)
