"""ONNX Runtime: `onnxrt` for each of Dynamo's graphs, `onnx` for a module as a whole.

Programs are translated by `torch.onnx`. Inputs are read where PyTorch keeps them, and outputs
written to memory of PyTorch's. On a CPU so are weights read, but for those that the runtime packs
or folds anew, such as of linear layers and convolutions: these it holds a second time.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
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
    from collections.abc import Iterator, Sequence

    import torch

    from dynamometer.dynamo.backends.programs import Compute, Program

_LEAST_SHARED_BYTES = 1024
"""Of a weight that is handed over as an address; smaller ones, as of shapes, are worth a copy."""

_QUIET = 3
"""The log severity from which the runtime speaks: errors, which are raised as well."""


@dataclass(frozen=True, kw_only=True)
class OnnxRuntime(Runtime):
    """How ONNX Runtime is set.

    Attributes:
        spinning: whether its idle threads wait in a loop, as is its default: faster for itself,
            slower for whoever computes next.
    """

    spinning: bool = True

    def build(self, program: Program) -> Compute:
        """Return a session's call.

        Raises:
            UnsupportedError: a dtype of an input or an output is none of the runtime's.
            Exception: whatever torch.onnx or the runtime raises of what they can't do.
        """
        return _Session(program, self)


class _Graphs(OnnxRuntime, GraphCompiler):
    """For each of Dynamo's graphs."""


class _Modules(OnnxRuntime, ModuleCompiler):
    """For a module as a whole."""


class _Session:
    """An inference session that reads and writes PyTorch's memory."""

    def __init__(self, program: Program, runtime: OnnxRuntime) -> None:
        import onnxruntime

        self._inputs = [_form(each) for each in program.examples]
        self._outputs = [_form(each) for each in program.outputs]
        device = next((each.device for each in program.examples), None)
        device = device or program.outputs[0].device
        self._device = device
        self._place = (device.type, device.index or 0)
        model, weights = _translated(program)
        options = _options(runtime)
        values = [onnxruntime.OrtValue.from_dlpack(each) for each in weights.values()]
        options.add_external_initializers(list(weights), values)
        if device.type == "cpu":
            # The first is what optimizations look at and is copied at the end; with the second
            # the copy is left out for whatever kept its name.
            for name, value in zip(weights, values, strict=True):
                options.add_initializer(name, value)
        self._session = onnxruntime.InferenceSession(model, options, providers=_providers(device))
        self._weights = weights, values  # the session reads them where they are
        self._input_names = [each.name for each in self._session.get_inputs()]
        self._output_names = [each.name for each in self._session.get_outputs()]
        assert len(self._input_names) == len(self._inputs)
        assert len(self._output_names) == len(self._outputs)
        self._binding = self._session.io_binding()

    def __call__(self, fed: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Compute new tensors."""
        kept = [self._feed(name, form, each) for name, form, each in self._fed(fed)]
        made = [
            self._provide(*each) for each in zip(self._output_names, self._outputs, strict=True)
        ]
        self._session.run_with_iobinding(self._binding)
        del kept
        if None not in made:
            return made  # type: ignore[return-value]  # there is no None in it
        return self._received(made)

    def _fed(self, fed: Sequence[torch.Tensor]) -> Iterator[tuple[str, _Form, torch.Tensor]]:
        return zip(self._input_names, self._inputs, fed, strict=True)

    def _feed(self, name: str, form: _Form, tensor: torch.Tensor) -> object:
        """Bind an input; return what must live until the run is over."""
        tensor = tensor.detach().contiguous()
        if tensor.numel() == 0:  # has no address
            from onnxruntime import OrtValue

            value = OrtValue.from_dlpack(tensor)
            self._binding.bind_ortvalue_input(name, value)
            return value
        address = tensor.data_ptr()
        self._binding.bind_input(name, *self._place, form.code, tensor.shape, address)
        return tensor

    def _provide(self, name: str, form: _Form) -> torch.Tensor | None:
        """Bind an output to new memory; to the runtime's own where the size is not known."""
        import torch

        if form.shape is None or 0 in form.shape:
            self._binding.bind_output(name, *self._place)
            return None
        made = torch.empty(form.shape, dtype=form.dtype, device=self._device)
        self._binding.bind_output(name, *self._place, form.code, form.shape, made.data_ptr())
        return made

    def _received(self, made: Sequence[torch.Tensor | None]) -> list[torch.Tensor]:
        from torch.utils.dlpack import from_dlpack

        values = self._binding.get_outputs()
        self._binding.clear_binding_outputs()  # what it made is the caller's now
        return [
            from_dlpack(value) if each is None else each
            for each, value in zip(made, values, strict=True)
        ]


@dataclass(frozen=True)
class _Form:
    """What a tensor looks like to both.

    Attributes:
        dtype: PyTorch's.
        code: the same as ONNX numbers it.
        shape: its sizes; `None` where they depend on values.
    """

    dtype: torch.dtype
    code: int
    shape: tuple[int, ...] | None


def _form(tensor: torch.Tensor) -> _Form:
    import torch
    from onnx import TensorProto

    from dynamometer.dynamo.backends.unsupported import UnsupportedError

    codes = {
        torch.bool: TensorProto.BOOL,
        torch.uint8: TensorProto.UINT8,
        torch.int8: TensorProto.INT8,
        torch.int16: TensorProto.INT16,
        torch.int32: TensorProto.INT32,
        torch.int64: TensorProto.INT64,
        torch.float16: TensorProto.FLOAT16,
        torch.bfloat16: TensorProto.BFLOAT16,
        torch.float32: TensorProto.FLOAT,
        torch.float64: TensorProto.DOUBLE,
    }
    if tensor.dtype not in codes or tensor.layout is not torch.strided:
        msg = f"ONNX Runtime takes no tensors of {tensor.dtype}, {tensor.layout}"
        raise UnsupportedError(msg)
    fixed = all(isinstance(size, int) for size in tensor.shape)
    return _Form(tensor.dtype, int(codes[tensor.dtype]), tuple(tensor.shape) if fixed else None)


def _options(runtime: OnnxRuntime) -> Any:
    import onnxruntime
    import torch

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = _QUIET
    spinning = "1" if runtime.spinning else "0"
    options.add_session_config_entry("session.intra_op.allow_spinning", spinning)
    return options


def _providers(device: torch.device) -> list[Any]:
    """Return who computes; on a GPU in PyTorch's own stream, so that neither overtakes."""
    if device.type == "cpu":
        return ["CPUExecutionProvider"]
    import torch

    stream = str(torch.cuda.current_stream(device).cuda_stream)
    cuda = {"device_id": str(device.index or 0), "user_compute_stream": stream}
    return [("CUDAExecutionProvider", cuda), "CPUExecutionProvider"]


def _translated(program: Program) -> tuple[bytes, dict[str, torch.Tensor]]:
    """Return a program in ONNX, and the weights it leaves out, by name."""
    import onnx_ir
    import torch

    from dynamometer.dynamo import state

    assert program.exported is not None
    with _silence(), state.exporting():
        translated = torch.onnx.export(program.exported, dynamo=True, verbose=False)
    assert translated is not None
    weights: dict[str, torch.Tensor] = {}
    for name, value in translated.model.graph.initializers.items():
        held = value.const_value
        raw = getattr(held, "raw", None)
        if held is None or not isinstance(raw, torch.Tensor) or held.nbytes < _LEAST_SHARED_BYTES:
            continue
        # The runtime takes them from the processor's memory, packed one after another.
        weights[name] = raw.detach().cpu().contiguous()
        value.const_value = onnx_ir.ExternalTensor(
            "in memory",
            0,
            held.nbytes,
            held.dtype,
            shape=onnx_ir.Shape(held.shape.numpy()),
            name=name,
        )
    return onnx_ir.to_proto(translated.model).SerializeToString(), weights


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep torch.onnx from telling of its steps and of torchvision's absence."""
    disabled = logging.root.manager.disable
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(disabled)


def _without_provider(name: str, device: str) -> str | None:
    """Return what is missing where the runtime wasn't built for the device."""
    if device == "cpu":
        return None
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        return None
    return f"{name} needs onnxruntime-gpu on {device}: pip install onnxruntime-gpu"


@dataclass(frozen=True, kw_only=True)
class OnnxRuntimeGraphs(ThroughDynamo):
    """ONNX Runtime for each of Dynamo's graphs."""

    def available(self, device: str) -> str | None:
        """Check the packages, and that the runtime was built for the device."""
        return super().available(device) or _without_provider(self.name, device)


@dataclass(frozen=True, kw_only=True)
class OnnxRuntimeModules(WholeModel):
    """ONNX Runtime for a module as a whole."""

    def available(self, device: str) -> str | None:
        """Check the packages, and that the runtime was built for the device."""
        return super().available(device) or _without_provider(self.name, device)


_PACKAGES = ("onnx", "onnxscript", "onnxruntime")
_OPTIONS = (
    BackendOption(
        name="spin",
        does="idle threads wait in a loop; the runtime's default",
        sets={"spinning": True},
        excludes=("no-spin",),
    ),
    BackendOption(
        name="no-spin",
        does="idle threads sleep: slower by itself, but in nobody's way",
        sets={"spinning": False},
        excludes=("spin",),
    ),
)

onnxrt = OnnxRuntimeGraphs(
    name="onnxrt",
    summary="ONNX Runtime, for each graph that Dynamo captures; inference",
    devices=("cpu", "cuda"),
    packages=_PACKAGES,
    extra="onnx",
    distribution="onnxruntime",
    options=_OPTIONS,
    compiler=_Graphs(),
)
onnx = OnnxRuntimeModules(
    name="onnx",
    summary="ONNX Runtime, for the model exported as a whole; inference",
    devices=("cpu", "cuda"),
    packages=_PACKAGES,
    extra="onnx",
    distribution="onnxruntime",
    options=_OPTIONS,
    compiler=_Modules(),
)
