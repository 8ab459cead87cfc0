"""TensorRT by way of Torch-TensorRT: `tensorrt` per graph of Dynamo, `trt` for a whole module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamometer.dynamo.backends.compilers import ThroughDynamo, WholeModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import fx, nn


def _graph(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """Hand a graph to the backend that Torch-TensorRT registers with Dynamo."""
    import torch_tensorrt  # noqa: F401  registers it

    from dynamometer.dynamo.private import private

    lookup = private("torch._dynamo.lookup_backend")
    compiled: Callable[..., Any] = lookup("torch_tensorrt")(graph, list(inputs))
    return compiled


def _module(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Callable[..., Any]:
    """Let Torch-TensorRT export and compile a module; what TensorRT can't do is left to PyTorch."""
    import torch_tensorrt

    from dynamometer.dynamo.backends.unsupported import refuse_training

    refuse_training(args, kwargs.values(), module.parameters())
    compiled: Callable[..., Any] = torch_tensorrt.compile(
        module, ir="dynamo", arg_inputs=list(args), kwarg_inputs=dict(kwargs)
    )
    return compiled


tensorrt = ThroughDynamo(
    name="tensorrt",
    summary="TensorRT, for each graph that Dynamo captures; inference",
    devices=("cuda",),
    packages=("torch_tensorrt",),
    extra="tensorrt",
    distribution="torch-tensorrt",
    compiler=_graph,
)
trt = WholeModel(
    name="trt",
    summary="TensorRT, for the model exported as a whole; inference",
    devices=("cuda",),
    packages=("torch_tensorrt",),
    extra="tensorrt",
    distribution="torch-tensorrt",
    compiler=_module,
)
