"""What is known of a captured graph beside its operations: where it is from, and its inputs."""

from __future__ import annotations

from enum import StrEnum

from dynamometer.results.values.cases import Dtype, Mode, Scale, Value


class Part(StrEnum):
    """Which of a model's computations a graph is of."""

    INFERENCE = "inference"
    """A graph of Dynamo."""
    FORWARD = "forward"
    """What AOTAutograd makes of one in training, and below what it makes for the backward."""
    BACKWARD = "backward"


def short_key(key: str) -> str:
    """Return the digits of a graph's key that are in the name of what replays it."""
    return key[:12]


class Origin(Value, frozen=True, kw_only=True):
    """What a graph was captured of."""

    suite: str
    model: str
    scale: Scale = Scale.FULL
    mode: Mode = Mode.INFERENCE
    device: str = "cpu"
    dtype: Dtype = Dtype.FLOAT32
    batch_size: int | None = None
    part: Part = Part.INFERENCE

    @property
    def name(self) -> str:
        """Suite, model and part, as they are shown."""
        part = "" if self.part is Part.INFERENCE else f" {self.part}"
        return f"{self.suite}/{self.model}{part}"


class Frequent(Value, frozen=True, kw_only=True):
    """A value that a tensor holds, and how much of the tensor it is."""

    value: float | int | bool
    share: float


class Spread(Value, frozen=True, kw_only=True):
    """How the values of a tensor are distributed.

    Values that are not finite are never counted but in the shares that name them.
    """

    low: float | int | None = None
    """The least; `None` where there is none."""
    high: float | int | None = None
    mean: float | None = None
    """Of those that are not zero; so is the standard deviation. `None` of whole numbers."""
    std: float | None = None
    zeros: float = 0.0
    """Share of the elements; so are those below."""
    infinite: float = 0.0
    negative_infinite: float = 0.0
    nan: float = 0.0
    values: tuple[Frequent, ...] = ()
    """Every value there is, where these are few; they say all then."""
    is_sorted: bool = False
    """Whether whole numbers rise along the last dimension, as offsets into a list do."""


class TensorInput(Value, tag="tensor", frozen=True, kw_only=True):
    """A tensor that a graph is called with."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    """Such as `float32`."""
    device: str
    requires_grad: bool
    is_weight: bool
    """Whether it is a parameter or buffer of the model: the same tensor at each call."""
    spread: Spread


class ScalarInput(Value, tag="scalar", frozen=True, kw_only=True):
    """A number that a graph is called with, or nothing."""

    value: float | int | bool | str | None


InputDescription = TensorInput | ScalarInput


class SavedGraph(Value, frozen=True, kw_only=True):
    """What the file of a captured graph says of it."""

    key: str
    origin: Origin
    """The first model it was captured of."""
    ops: dict[str, int]
    """How often each operation is called."""
    inputs: tuple[InputDescription, ...]
    is_dynamic: bool = False
    """Whether it was captured for sizes that vary; its inputs are of those it was called with."""
    torch: str
    """The version it was captured by."""
    format: int = 1

    @property
    def op_count(self) -> int:
        """How many operations it has."""
        return sum(self.ops.values())


class RecordedGraph(Value, frozen=True, kw_only=True):
    """A graph of one model, as it was recorded."""

    key: str
    part: Part
    op_count: int
    calls: int
    """How often it was called while it was recorded."""
    reason: str | None = None
    """Why it is not in the corpus; `None` where it is."""


class RecordedModel(Value, frozen=True, kw_only=True):
    """The graphs of one model, in the order in which they were captured."""

    origin: Origin
    graphs: tuple[RecordedGraph, ...]
