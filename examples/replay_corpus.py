"""Replay a corpus of captured graphs with any backend of `torch.compile`. Needs nothing but torch.

    python replay_corpus.py CORPUS --backend inductor

prints for each graph whether the backend computes what eager does, and how long both take. It also
shows how a file is read: a zip archive with `description.json` (what the graph is called with),
`graph.json` (its nodes) and `constants/`.

Functions are looked up by the names in a file, without a list of those that are harmless: replay
what you trust. `dynamometer run CORPUS --backend NAME` has such a list, checks more thoroughly and
times with error bars, each graph in a process of its own.
"""

from __future__ import annotations

import argparse
import builtins
import importlib
import json
import math
import operator
import statistics
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Json = Any
NO_FIGURES = f"{'':9}  {'':10}  {'':7}  "
ROOTS = {"torch": torch, "_operator": operator, "math": math}


def main() -> int:
    """Replay every graph of a corpus; return 1 if not all are right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="a corpus' folder, or the file of one graph")
    parser.add_argument("--backend", default="inductor", help="a name, or module:callable")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs")
    parser.add_argument("--calls", type=int, default=10, help="timed calls; the median is shown")
    parser.add_argument("--most", type=int, default=None, help="replay so many graphs only")
    options = parser.parse_args()
    folder = options.corpus
    files = sorted((folder / "graphs").glob("*.graph")) if folder.is_dir() else [folder]
    if not folder.exists():
        parser.error(f"there is no {folder}")
    files, right = files[: options.most], 0
    print(
        f"{'key':12}  {'ops':>5}  {'eager ms':>9}  {'backend ms':>10}  {'speedup':>7}  result, of"
    )
    for path in files:
        graph, description = load(path)
        values = draw(description["inputs"], options.seed)
        torch.compiler.reset()
        with torch.no_grad():
            line, is_right = replay(graph, values, backend_of(options.backend), options.calls)
        right += is_right
        origin = description["origin"]
        ops = sum(description["ops"].values())
        print(f"{path.stem[:12]}  {ops:5}  {line}, {origin['suite']}/{origin['model']}", flush=True)
    print(f"{right} of {len(files)} graphs are right")
    return 0 if right == len(files) else 1


def replay(
    graph: fx.GraphModule, values: Sequence[Any], backend: Any, calls: int
) -> tuple[str, bool]:
    """Return a line on one graph, and whether the backend computes what eager does."""
    try:
        wanted = graph(*copied(values))
    except Exception as error:  # noqa: BLE001  of inputs that are drawn, each by itself
        return f"{NO_FIGURES}EAGER FAILS on drawn inputs: {first_line(error)}", False
    try:
        compiled = torch.compile(graph, backend=backend)
        found = compiled(*copied(values))
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3, equal_nan=True)
    except AssertionError as error:
        return f"{NO_FIGURES}WRONG {first_line(error)}", False
    except Exception as error:  # noqa: BLE001  whatever a backend raises
        return f"{NO_FIGURES}FAILED {type(error).__name__}: {first_line(error)}", False
    eager_s, backend_s = (seconds(each, values, calls) for each in (graph, compiled))
    times = f"{eager_s * 1e3:9.3f}  {backend_s * 1e3:10.3f}  {eager_s / backend_s:6.2f}x"
    return f"{times}  right", True


def seconds(function: Callable[..., Any], values: Sequence[Any], calls: int) -> float:
    """Return the median time of a call. One process and no error bar: a first look."""
    times = []
    for _ in range(calls):
        given = copied(values)
        synchronize()
        started = time.perf_counter()
        function(*given)
        synchronize()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def synchronize() -> None:
    """Wait for the device."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def copied(values: Sequence[Any]) -> list[Any]:
    """Copy inputs, strides and all: graphs may change what they are called with."""
    return [copy_of(each) if isinstance(each, torch.Tensor) else each for each in values]


def copy_of(given: torch.Tensor) -> torch.Tensor:
    """Copy a tensor with the memory between its elements, which a graph can reach too."""
    shape, stride = given.shape, given.stride()
    needed = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    count = 0 if 0 in shape else needed
    return given.detach().as_strided((count,), (1,)).clone().as_strided(shape, stride)


def first_line(error: Exception) -> str:
    """Return how a message begins."""
    return (str(error).strip().splitlines() or [""])[0][:80]


def backend_of(name: str) -> Any:
    """Return a backend's name, or import `module:callable`."""
    module, colon, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute) if colon else name


def load(path: Path) -> tuple[fx.GraphModule, Json]:
    """Read the file of a graph: the graph, and what is said of it."""
    with zipfile.ZipFile(path) as archive:
        description = json.loads(archive.read("description.json"))
        stored = json.loads(archive.read("graph.json"))
        constants = [constant(each, archive.read(each["file"])) for each in stored["constants"]]
    return built(stored["nodes"], constants), description


def constant(said: Json, data: bytes) -> torch.Tensor:
    """Return a tensor that is an attribute of a graph."""
    dtype = getattr(torch, said["dtype"])
    if not data:
        return torch.empty(said["shape"], dtype=dtype, device=said["device"])
    flat = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(dtype)
    return flat.reshape(said["shape"]).to(said["device"])


def built(data: Json, constants: Sequence[torch.Tensor]) -> fx.GraphModule:
    """Build a graph of its nodes."""
    root, graph = torch.nn.Module(), fx.Graph()
    nodes: list[fx.Node] = []
    for kind, *rest in data:
        if kind == "placeholder":
            nodes.append(graph.placeholder(f"input_{len(nodes)}"))
            continue
        target, args, kwargs = rest
        if kind == "get_attr":
            name, ((of, value),) = f"attribute_{len(nodes)}", target.items()
            setattr(root, name, constants[value] if of == "constant" else built(value, constants))
            target = name
        elif kind == "call_function":
            target = function(target)
        args = tuple(argument(each, nodes) for each in args)
        kwargs = {key: argument(each, nodes) for key, each in kwargs.items()}
        nodes.append(graph.create_node(kind, target or "output", args, kwargs))
    return fx.GraphModule(root, graph)


def function(name: str) -> Any:
    """Return a function of torch or of Python by its name."""
    first, *rest = name.split(".")
    found: Any = getattr(builtins, first) if not rest else ROOTS[first]
    for each in rest:
        found = getattr(found, each)
    return found


def argument(data: Json, nodes: Sequence[fx.Node]) -> Any:
    """Return an argument of a call; what JSON has no word for is an object of one name."""
    if isinstance(data, list):
        return [argument(each, nodes) for each in data]
    if not isinstance(data, dict):
        return data
    ((kind, value),) = data.items()
    if kind == "node":
        return nodes[value]
    if kind == "dict":
        return {key: argument(each, nodes) for key, each in value.items()}
    if kind in OF_PARTS:
        return OF_PARTS[kind]([argument(each, nodes) for each in value])
    return OF_TEXT.get(kind, of_torch)(value)


def of_torch(name: str) -> Any:
    """Return a dtype, a layout or a memory format."""
    return getattr(torch, name)


OF_PARTS: dict[str, Callable[[list[Any]], Any]] = {
    "complex": lambda parts: complex(*parts),
    "size": tuple,
    "slice": lambda parts: slice(*parts),
    "tuple": tuple,
}
OF_TEXT: dict[str, Callable[[str], Any]] = {
    "device": torch.device,
    "ellipsis": lambda _: ...,
    "float": float,
    "function": function,
}


def draw(inputs: Json, seed: int) -> list[Any]:
    """Draw fresh inputs of the kinds and distributions that a description says."""
    generator = torch.Generator().manual_seed(seed)
    return [
        tensor(each, generator) if each["type"] == "tensor" else each["value"] for each in inputs
    ]


def tensor(said: Json, generator: torch.Generator) -> torch.Tensor:
    """Draw a tensor: its memory is filled, so that strides are those of the example."""
    shape, stride, spread = said["shape"], said["stride"], said["spread"]
    dtype = getattr(torch, said["dtype"])
    needed = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    count = 0 if 0 in shape else needed
    if dtype.is_complex:
        parts = drawn(spread, 2 * count, torch.float64, generator).reshape(count, 2)
        flat = torch.view_as_complex(parts)
    else:
        flat = drawn(spread, count, dtype, generator)
    found = flat.to(said["device"], dtype).as_strided(shape, stride)
    if spread["is_sorted"] and 0 not in stride and count:
        found.copy_(found.sort(dim=-1).values)
        found[..., 0], found[..., -1] = spread["low"], spread["high"]
    return found.requires_grad_(said["requires_grad"])


def drawn(spread: Json, count: int, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Draw values of a distribution, never less or more than those that were seen."""
    at = torch.rand(count, generator=generator, dtype=torch.float64)
    if spread["values"]:
        values = [each["value"] for each in spread["values"]]
        shares = torch.tensor([each["share"] for each in spread["values"]], dtype=torch.float64)
        places = torch.bucketize(at, shares.cumsum(0)).clamp_(max=len(values) - 1)
        return torch.tensor(values, dtype=dtype)[places]
    if not (dtype.is_floating_point or dtype.is_complex):
        low, high = spread["low"] or 0, spread["high"] or 0
        return torch.randint(low, min(high, 2**63 - 2) + 1, (count,), generator=generator)
    found = torch.empty(count, dtype=torch.float64).normal_(generator=generator)
    if spread["low"] is not None:
        found.mul_(spread["std"]).add_(spread["mean"]).clamp_(spread["low"], spread["high"])
    until = 0.0
    for share, value in (
        (spread["zeros"], 0.0),
        (spread["infinite"], math.inf),
        (spread["negative_infinite"], -math.inf),
        (spread["nan"], math.nan),
    ):
        found[(at >= until) & (at < until + share)] = value
        until += share
    return found.to(dtype)


if __name__ == "__main__":
    raise SystemExit(main())
