from __future__ import annotations

import json
import zipfile
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import torch
from captured import ORIGIN, Net, captured, net_inputs
from torch import fx

from dynamometer.dynamo.graphs.inputs import draw
from dynamometer.dynamo.graphs.key import graph_key
from dynamometer.dynamo.graphs.saved import Captured, load
from dynamometer.dynamo.graphs.targets import UnsaveableError, function_of, saveable_name
from dynamometer.dynamo.placeholders import is_weight, placeholders
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.graphs.contents import Contents, key_of
from dynamometer.results.values.graphs import SavedGraph

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def saved(path: Path, graph: fx.GraphModule, inputs: list[Any]) -> SavedGraph:
    """Write a graph."""
    return Captured.of(graph, inputs).save(path, inputs, ORIGIN)


def branches(x: torch.Tensor) -> torch.Tensor:
    """Hold a graph in a graph, slices, dtypes, and a number that is not finite."""
    y = torch.cond(x.sum() > 0, lambda each: each * 2, lambda each: each - 1, (x,))
    mask = torch.full((3,), float("-inf"), dtype=torch.float64, device=torch.device("cpu"))
    return (y[..., ::2, None].to(torch.float64).transpose(0, -1) + mask[:1, None, None]).clamp(
        max=1.0
    )


def amplified(x: torch.Tensor) -> torch.Tensor:
    """Compute under autocast."""
    with torch.autocast("cpu"):
        return torch.einsum("ij,kj->ik", x, x) + torch.nn.functional.gelu(x).T.shape[0]


def constants(x: torch.Tensor) -> torch.Tensor:
    """Hold a tensor of its own."""
    return x + torch.tensor([1.5, 2.5, 3.5])


CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (Net().eval(), net_inputs()),
    (branches, (torch.randn(4, 5),)),
    (amplified, (torch.randn(4, 4),)),
    (constants, (torch.randn(3),)),
]


@pytest.mark.parametrize(("function", "inputs"), CASES)
def test_a_graph_comes_back_as_it_was(
    function: Callable[..., Any], inputs: tuple[Any, ...], tmp_path: Path
) -> None:
    """Its results, its key and its weights are the same, and so are what its file says of it."""
    graph, given = captured(function, *inputs)
    path = tmp_path / "one.graph"
    said = saved(path, graph, given)
    again, description = load(path)
    assert description == said
    assert description.key == graph_key(graph, given) == graph_key(again, given)
    weights = [list(map(is_weight, placeholders(each))) for each in (graph, again)]
    assert weights[0] == weights[1]
    with torch.no_grad():
        torch.testing.assert_close(again(*given), graph(*given), rtol=0, atol=0, equal_nan=True)
        again(*draw(description.inputs, 7))
    assert description.op_count > 0


def sizes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Compute with sizes."""
    return (x.sum(0) * x.shape[0] + y).reshape(-1, y.shape[0] // 3)


def test_a_graph_for_sizes_that_vary_is_run_at_those_it_had(tmp_path: Path) -> None:
    """Its sizes are inputs like any other, with the values that they had."""
    graph, given = captured(sizes, torch.randn(4, 12), torch.randn(12), dynamic=True)
    path = tmp_path / "one.graph"
    assert saved(path, graph, given).is_dynamic
    again, description = load(path)
    (found,) = again(*draw(description.inputs, 0))
    assert found.shape == (3, 4)


def test_the_same_graph_is_the_same_file(tmp_path: Path) -> None:
    """Nothing of when and where it was written is in it."""
    graph, given = captured(constants, torch.ones(3))
    paths = [tmp_path / "one.graph", tmp_path / "two.graph"]
    for path in paths:
        saved(path, graph, given)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["one.graph", "two.graph"]


def test_weights_are_not_in_it(tmp_path: Path) -> None:
    """A large model is a small file."""
    graph, given = captured(torch.nn.Linear(1000, 1000).eval(), torch.ones(2, 1000))
    path = tmp_path / "one.graph"
    saved(path, graph, given)
    assert path.stat().st_size < 4000


def foreign(x: torch.Tensor) -> torch.Tensor:
    """Stand for a function of a user's."""
    return x


def test_a_function_of_somebody_elses_is_refused(tmp_path: Path) -> None:
    """A file can't name it, and the reason does."""
    graph = fx.Graph()
    graph.output(graph.call_function(foreign, (graph.placeholder("x"),)))
    with pytest.raises(UnsaveableError, match=r"it calls .*foreign"):
        saved(tmp_path / "one.graph", fx.GraphModule({}, graph), [torch.ones(3)])
    assert list(tmp_path.iterdir()) == []


class Foreign:
    """What no graph holds but by accident."""

    def __repr__(self) -> str:
        return "0"  # which is put into a graph's source


def test_an_argument_that_is_no_data_is_refused(tmp_path: Path) -> None:
    """The reason says what it is."""
    graph = fx.Graph()
    graph.output(graph.call_function(torch.add, (graph.placeholder("x"), Foreign())))  # type: ignore[arg-type]
    with pytest.raises(UnsaveableError, match=r"it holds a .*\.Foreign"):
        saved(tmp_path / "one.graph", fx.GraphModule({}, graph), [torch.ones(3)])


# What a hostile file may try. Each of these would write a file, if it got that far.


def call(target: str, *args: Any, **kwargs: Any) -> list[Any]:
    """Return a node that calls a function."""
    return ["call_function", target, list(args), kwargs]


PAYLOAD = "__import__('pathlib').Path('hit').touch()"
HOSTILE = {
    "a module's function": [call("os.system", "touch hit")],
    "through torch": [call("torch.os.system", "touch hit")],
    "an import of torch.nn.functional": [call("torch.nn.functional.importlib.import_module", "os")],
    "a file of torch": [call("torch.from_file", "hit", 1, 4)],
    "an operator on files": [call("torch.ops.aten.from_file.default", "hit", 1, 4)],
    "a library": [call("torch.ops.load_library", "hit.so")],
    "a method of the registry": [call("torch.ops.aten.__class__")],
    "eval": [call("eval", PAYLOAD)],
    "a builtin": [call("builtins.exec", PAYLOAD)],
    "loading": [call("torch.load", "hit")],
    "hub": [call("torch.hub.load", "a/b", "c")],
    "an attribute": [call("getattr", {"node": 0}, "__class__")],
    "an attribute by a name that is computed": [call("getattr", {"node": 0}, {"node": 0})],
    "operator.attrgetter": [call("_operator.attrgetter", "__class__")],
    "operator.call": [call("_operator.call", {"node": 0})],
    "a private method": [["call_method", "__reduce_ex__", [{"node": 0}, 2], {}]],
    "no method": [["call_method", f"add({PAYLOAD})", [{"node": 0}], {}]],
    "a callback": [["call_method", "register_hook", [{"node": 0}, 1], {}]],
    "memory of others": [["call_method", "data_ptr", [{"node": 0}], {}]],
    "a name of an argument": [call("torch.add", {"node": 0}, **{f"x={PAYLOAD}, y": 1})],
    "an op for an argument": [call("torch.add", {"node": 0}, {"function": "os.system"})],
    "a function for an argument": [
        call("torch.ops.higher_order.wrap", {"function": "getattr"}, {"node": 0}, "__class__")
    ],
    "what calls what it is given": [
        call("torch.nn.functional.boolean_dispatch", "x", 0, 1, {"node": 0}, {"node": 0}, "", "")
    ],
    "memory of others, read": [["call_method", "const_data_ptr", [{"node": 0}], {}]],
    "a module of its own": [["call_module", "os", [], {}]],
    "an attribute that is code": [["get_attr", {"code": PAYLOAD}, [], {}]],
    "a dtype": [call("torch.ones", 3, dtype={"dtype": "load"})],
    "a kind of argument": [call("torch.add", {"node": 0}, {"pickle": "gASVIQ"})],
}


@pytest.mark.parametrize("nodes", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_runs_nothing(
    nodes: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading it is refused before there is anything that could be called."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "one.graph"
    rewritten(path, [["placeholder"], *nodes, ["output", None, [{"node": 0}], {}]])
    with pytest.raises((UnsaveableError, StoreError)):
        load(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["one.graph"]


def test_only_operations_are_handed_on(tmp_path: Path) -> None:
    """What calls its arguments would call anything else, whatever that one is given."""
    path = tmp_path / "one.graph"
    for name in ("getattr", "torch.relu", "_operator.getitem"):
        node = call("torch.ops.higher_order.wrap", {"function": name}, {"node": 0}, 0)
        rewritten(path, [["placeholder"], node, ["output", None, [{"node": 1}], {}]])
        with pytest.raises(UnsaveableError, match="no operation of torch"):
            load(path)


@pytest.mark.parametrize(
    ("shape", "times", "says"),
    [
        pytest.param([2**50], 1, "shape", id="memory that no byte is for"),
        pytest.param([2**25], 3, "larger than 64 MiB", id="the same bytes again and again"),
    ],
)
def test_constants_take_no_more_than_they_may(
    shape: list[int], times: int, says: str, tmp_path: Path
) -> None:
    """A small file doesn't become a large graph."""
    path = tmp_path / "one.graph"
    data = b"" if times == 1 else bytes(2**25)
    constant = {"shape": shape, "dtype": "uint8", "device": "cpu", "file": "constants/0"}
    stored = {
        "nodes": [["placeholder"], ["output", None, [{"node": 0}], {}]],
        "constants": [constant] * times,
    }
    more = {"constants/0": data, "graph.json": json.dumps(stored).encode()}
    rewritten(path, [], **more)
    with pytest.raises(StoreError, match=says):
        load(path)


def rewritten(path: Path, nodes: list[Any], **more: bytes) -> None:
    """Write a graph of one input, and put other nodes into its file."""
    graph, given = captured(torch.relu, torch.ones(3))
    saved(path, graph, given)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members = {
        **members,
        "graph.json": json.dumps({"nodes": nodes, "constants": []}).encode(),
        **more,
    }
    said = msgspec.json.decode(members["description.json"], type=SavedGraph)
    with suppress(Exception):  # where it is no graph
        key = key_of(said.inputs, msgspec.json.decode(members["graph.json"], type=Contents))
        said = msgspec.structs.replace(said, key=key)
    members["description.json"] = msgspec.json.encode(said)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def test_what_else_is_in_a_file_is_not_looked_at(tmp_path: Path) -> None:
    """A pickle that is added to a file is never opened."""
    path = tmp_path / "one.graph"
    nodes = [["placeholder"], ["output", None, [{"node": 0}], {}]]
    payload = b"cposix\nsystem\n(S'touch hit'\ntR."
    rewritten(path, nodes, **{"data.pkl": payload, "data/constants/model.pt": payload})
    load(path)
    assert [each.name for each in tmp_path.iterdir()] == ["one.graph"]


@pytest.mark.parametrize(
    "constant",
    [torch.arange(6.0).reshape(2, 3).T, torch.ones(1).expand(4, 3), torch.arange(8.0)[::2]],
    ids=["transposed", "expanded", "with gaps"],
)
def test_constants_keep_their_strides(constant: torch.Tensor, tmp_path: Path) -> None:
    """They are in the key, which the file is held to."""
    graph = fx.Graph()
    found = graph.create_node("get_attr", "held")
    graph.output(graph.call_function(torch.relu, (found,)))
    module = torch.nn.Module()
    module.register_buffer("held", constant)
    said = saved(tmp_path / "one.graph", fx.GraphModule(module, graph), [])
    again, description = load(tmp_path / "one.graph")
    (held,) = again.buffers()
    assert held.stride() == constant.stride()
    assert torch.equal(held, constant)
    assert graph_key(again, []) == description.key == said.key


def test_a_graph_that_isnt_its_keys_is_refused(tmp_path: Path) -> None:
    """What was decided for the key would be measured on another graph."""
    paths = [tmp_path / "one.graph", tmp_path / "two.graph"]
    for path, function in zip(paths, (torch.relu, torch.sigmoid), strict=True):
        saved(path, *captured(function, torch.ones(3)))
    members = []
    for path in paths:
        with zipfile.ZipFile(path) as archive:
            members.append({name: archive.read(name) for name in archive.namelist()})
    with zipfile.ZipFile(paths[0], "w") as archive:
        archive.writestr("description.json", members[0]["description.json"])
        archive.writestr("graph.json", members[1]["graph.json"])
    with pytest.raises(StoreError, match=r"one\.graph is damaged: it holds another graph than"):
        load(paths[0])


def test_a_damaged_file_is_said_to_be(tmp_path: Path) -> None:
    """So is one that isn't there, with its name."""
    path = tmp_path / "one.graph"
    with pytest.raises(StoreError, match=r"one\.graph can't be read"):
        load(path)
    path.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(StoreError, match=r"one\.graph is damaged"):
        load(path)
    rewritten(path, [["output", None, [{"node": 5}], {}]])
    with pytest.raises(StoreError, match=r"one\.graph is damaged"):
        load(path)


@pytest.mark.parametrize(
    "function",
    [
        *(torch.conv2d, torch.relu, torch.einsum, torch.nn.functional.gelu, torch.tensor),
        *(torch.nn.functional.max_pool2d, torch.nn.functional.scaled_dot_product_attention),
        *(torch.fft.fft, torch.linalg.norm, torch.special.expit, torch.ops.aten.add.Tensor),
        *(torch.ops.aten.add, torch.ops.higher_order.cond, torch._C._set_grad_enabled, getattr),
    ],
)
def test_a_function_of_torch_is_found_by_its_name(function: Callable[..., Any]) -> None:
    """What graphs call has a name, which leads back to it."""
    assert function_of(saveable_name(function)) == function
