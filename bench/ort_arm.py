"""ONNX Runtime as an arm, with its own thread pool, which spins; for `bench/interference.py`."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import nn


@dataclass(frozen=True)
class OnnxRuntime:
    """The whole module, exported by `torch.onnx`; positional tensors in, one tensor out."""

    captures: bool = False

    def available(self, device: str) -> str | None:
        """Check the device type."""
        return None if device == "cpu" else "this arm runs on a CPU only"

    def compile(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Export and load."""
        del kwargs
        import onnxruntime

        buffer = io.BytesIO()
        torch.onnx.export(module, args, buffer, dynamo=True, verbose=False)
        session = onnxruntime.InferenceSession(
            buffer.getvalue(), providers=["CPUExecutionProvider"]
        )
        names = [each.name for each in session.get_inputs()]

        def call(*tensors: torch.Tensor) -> torch.Tensor:
            inputs = {name: each.numpy() for name, each in zip(names, tensors, strict=True)}
            (output,) = session.run(None, inputs)
            return torch.from_numpy(output)

        return call


onnx_runtime = OnnxRuntime()
