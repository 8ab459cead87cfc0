"""Files of graphs that are whole, made without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from dynamometer.results.store.graphs.contents import Contents, key_of
from dynamometer.results.store.graphs.corpus import DESCRIPTION, GRAPH, write_archive
from dynamometer.results.values.graphs import InputDescription, Origin, SavedGraph

if TYPE_CHECKING:
    from pathlib import Path

_ORIGIN = Origin(suite="mine", model="net")


def contents(number: int, inputs: tuple[InputDescription, ...] = ()) -> Contents:
    """Return a graph that returns a number, whatever it takes."""
    taken = [["placeholder"] for _ in inputs]
    return Contents([*taken, ["output", None, [number], {}]], ())


def key(number: int, inputs: tuple[InputDescription, ...] = ()) -> str:
    """Return the key of such a graph."""
    return key_of(inputs, contents(number, inputs))


def write_graph(
    path: Path, number: int = 1, taken: tuple[InputDescription, ...] = (), **fields: Any
) -> None:
    """Write the file of such a graph, of which the description may say something else."""
    description = SavedGraph(
        **{
            "key": key(number, taken), "origin": _ORIGIN, "ops": {"torch.add": 2},
            "inputs": taken, "torch": "2.13", **fields,
        }
    )  # fmt: skip
    members = {
        DESCRIPTION: msgspec.json.encode(description),
        GRAPH: msgspec.json.encode(contents(number, taken)),
    }
    write_archive(path, members)
