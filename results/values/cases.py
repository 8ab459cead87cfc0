"""The vocabulary of what is asked for: models, cases, how they are measured, the plan of a run.

Frozen values with a JSON round trip and no torch objects. Units are SI and in the names: seconds,
bytes. Absent is `None` with a reason beside it, never 0.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import Any

import msgspec

from dynamometer.results.values.choices import Tuning  # noqa: TC001  msgspec reads annotations
from dynamometer.results.values.workers import Allocator, Caches, StartMethod

NO_BACKEND = "eager"
"""The arm in which Dynamo captures and runs graphs as they are."""

TORCHSCRIPT = "ts"
"""The arm in which the module is traced and frozen, without Dynamo."""

BASELINE = "baseline"
"""Name of the arm that runs the module as it is; every other arm is compared with it."""

IDENTITY = (
    "suite", "model", "mode", "device", "dtype", "shapes", "scale", "settings", "batch_size",
)  # fmt: skip
"""What a case is known by, apart from its arms. A CSV file may not say all of it."""

MATMUL_SETTING = "matmul_"
"""Begins the first of a case's settings, where matrices are multiplied otherwise than usual."""


class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen value; equality and JSON go by its fields."""


class Scale(StrEnum):
    """How far a published configuration is shrunk; runs of different scales are never compared."""

    TINY = "tiny"
    SMALL = "small"
    FULL = "full"


class Mode(StrEnum):
    """What is run: a forward pass, or a training step."""

    INFERENCE = "inference"
    TRAINING = "training"


class Dtype(StrEnum):
    """What weights and inputs are, and with `amp` what autocast makes of float32."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    AMP = "amp"


class DynamicDims(StrEnum):
    """Which sizes are dynamic for Dynamo from the start, where they differ from call to call."""

    ALL = "all"
    BATCH = "batch"
    """Those that do differ, and no other."""
    NONE = "none"
    """Those of a dimension once it has been seen to differ, as `torch.compile` does untold."""


class Skip(Value, frozen=True, kw_only=True):
    """Why a model is not run, and where that holds."""

    reason: str
    devices: tuple[str, ...] = ()
    """Device types the skip is limited to; empty for all."""
    modes: tuple[Mode, ...] = ()
    """Modes it is limited to; empty for both."""


class Overrides(Value, frozen=True, kw_only=True):
    """How Dynamo is to treat functions, each named `module:function` or `module:Class.name`."""

    allow_in_graph: tuple[str, ...] = ()
    """Put into graphs as they are, unseen."""
    disable: tuple[str, ...] = ()
    """Left to Python with all they call, so that a graph ends before them."""
    substitute: tuple[tuple[str, str], ...] = ()
    """What is captured in place of each."""

    @property
    def argv(self) -> tuple[str, ...]:
        """The arguments of a command line that ask for them."""
        return tuple(
            word
            for option, names in (
                ("--allow-in-graph", self.allow_in_graph),
                ("--disable-frame", self.disable),
                ("--substitute", tuple("=".join(pair) for pair in self.substitute)),
            )
            for name in names
            for word in (option, name)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All functions that are named."""
        return (*self.allow_in_graph, *self.disable, *chain.from_iterable(self.substitute))

    @property
    def escaped(self) -> Overrides:
        """The same with names as they stand in a case's id."""
        return Overrides(
            allow_in_graph=tuple(map(_escaped, self.allow_in_graph)),
            disable=tuple(map(_escaped, self.disable)),
            substitute=tuple((_escaped(one), _escaped(other)) for one, other in self.substitute),
        )

    def and_(self, other: Overrides) -> Overrides:
        """Add others to these."""
        return Overrides(
            allow_in_graph=(*self.allow_in_graph, *other.allow_in_graph),
            disable=(*self.disable, *other.disable),
            substitute=(*self.substitute, *other.substitute),
        )


NO_OVERRIDES = Overrides()

OVERRIDDEN = " +overrides"
"""Ends the label of a case in which Dynamo is told how to treat parts of the model."""


class ModelSpec(Value, frozen=True, kw_only=True):
    """One model of a suite, as its TOML table describes it."""

    suite: str
    name: str
    task: str
    origin: str
    """Where architecture and configuration come from: a package, or the publication."""
    build: str
    """`module:function` below `dynamometer.models.builders` that returns a `LoadedModel`."""
    aliases: tuple[str, ...] = ()
    """Further names it can be selected by, such as those its package gave it earlier."""
    batch_size: dict[str, int] = {}
    """Batch size by device type, where one is published."""
    options: dict[str, Any] = {}
    """Arguments of the builder at full scale."""
    cpu: dict[str, Any] = {}
    """What replaces them on a CPU at full scale, where TorchBench shortens some sequences."""
    small: dict[str, Any] = {}
    """What replaces them at small scale; may hold `batch_size`."""
    tiny: dict[str, Any] = {}
    varies: dict[str, int] = {}
    """Arguments of the builder that differ from call to call where such a model is used, as the
    nodes of a graph do, each with the number it must be a multiple of. Empty where only the batch
    size may vary."""
    requires: tuple[str, ...] = ()
    """Importable packages the builder needs beyond torch."""
    tolerance: float | None = None
    """What share of itself a result may be off by, where the one for dtype and mode is wrong."""
    tolerance_reason: str | None = None
    skips: tuple[Skip, ...] = ()
    quick: bool = False
    """Belongs to the `--quick` selection."""
    overrides: Overrides = NO_OVERRIDES
    """What `--overrides` runs it with as well."""

    def options_at(self, scale: Scale, device: str) -> dict[str, Any]:
        """Merge the builder's arguments for a scale and a device type over the published ones."""
        merged = {**self.options, **self._overrides(scale, device)}
        merged.pop("batch_size", None)
        return merged

    def batch_size_at(
        self, scale: Scale, device: str, mode: Mode = Mode.INFERENCE, *, dynamic: bool = False
    ) -> int | None:
        """Return the batch size of a case; `None` if the model sets its own.

        In training a batch is not shrunk to one sample: of one, batch normalisation can't take
        statistics. Where one is what is published, it stays one. Nor does a batch that varies
        start at one: Dynamo compiles sizes of one apart.
        """
        like = "cpu" if device == "cpu" else "cuda"  # which other accelerators are taken for
        published = self.batch_size.get(like, self.batch_size.get("cpu"))
        size = self._overrides(scale, device).get("batch_size", published)
        if size is None or published is None:
            return size
        if dynamic and not self.varies:
            return max(int(size), 2)
        return max(int(size), min(2, published)) if mode is Mode.TRAINING else int(size)

    @property
    def is_never_run(self) -> bool:
        """Whether it is skipped on every device type and in every mode."""
        return any(not skip.devices and not skip.modes for skip in self.skips)

    def skip_reason(self, device: str, mode: Mode = Mode.INFERENCE) -> str | None:
        """Return why the model is not run on a device type and in a mode, or `None` if it is."""
        for skip in self.skips:
            if device in (skip.devices or {device}) and mode in (skip.modes or {mode}):
                return skip.reason
        return None

    def _overrides(self, scale: Scale, device: str) -> dict[str, Any]:
        match scale:
            case Scale.FULL:
                return self.cpu if device == "cpu" else {}
            case Scale.SMALL:
                return self.small
            case Scale.TINY:
                return self.tiny


class MatmulPrecision(StrEnum):
    """How float32 matrices are multiplied (`torch.set_float32_matmul_precision`)."""

    HIGHEST = "highest"
    HIGH = "high"
    MEDIUM = "medium"


class Case(Value, frozen=True, kw_only=True):
    """One model under one configuration, with the arms that are compared on it."""

    suite: str
    model: str
    arms: tuple[str, ...]
    """`BASELINE` first, then one name per backend configuration."""
    mode: Mode = Mode.INFERENCE
    device: str = "cpu"
    dtype: Dtype = Dtype.FLOAT32
    matmul_precision: MatmulPrecision = MatmulPrecision.HIGHEST
    channels_last: bool = False
    compiled_optimizer: bool = False
    """Whether in training the optimizer's step is compiled too."""
    dynamic: bool = False
    """Whether a step is a sequence of calls with inputs of different sizes."""
    dynamic_dims: DynamicDims = DynamicDims.ALL
    """Which of them are dynamic from the start, where they are different."""
    nopython: bool = False
    """Whether Dynamo must capture the whole model in one graph, or fail."""
    scale: Scale = Scale.FULL
    batch_size: int | None = None
    """`None` where the model sets its own."""
    overrides: Overrides = NO_OVERRIDES

    @property
    def label(self) -> str:
        """The model's name, marked where Dynamo is told how to treat parts of it."""
        return self.model if self.overrides == NO_OVERRIDES else f"{self.model}{OVERRIDDEN}"

    def has_dynamic_dims(self, dims: DynamicDims) -> bool:
        """Return whether sizes vary, and these are dynamic from the start."""
        return self.dynamic and self.dynamic_dims is dims

    @property
    def shapes(self) -> str:
        """Return in a word how sizes vary, and what Dynamo is told of it."""
        if not self.dynamic:
            return "static"
        return {DynamicDims.ALL: "dynamic", DynamicDims.BATCH: "dynamic_batch"}.get(
            self.dynamic_dims, "varying"
        )

    @property
    def matmul_setting(self) -> tuple[str, ...]:
        """Say how matrices are multiplied; nothing where that is as torch does by itself."""
        is_usual = self.matmul_precision is MatmulPrecision.HIGHEST
        return () if is_usual else (f"{MATMUL_SETTING}{self.matmul_precision}",)

    @property
    def id(self) -> str:
        """Stable text that is equal exactly when two cases are."""
        arms = "+".join(_escaped(arm) for arm in self.arms)
        return "/".join((*self._settings, arms, *self._override_argv))

    @property
    def id_without_arms(self) -> str:
        """Stable text that is equal exactly when two cases differ in nothing but their arms."""
        return "/".join((*self._settings, *self._override_argv))

    @property
    def _settings(self) -> tuple[str, ...]:
        """The parts of the id before the arms; what may be any text has no `/` left in it."""
        dims = "" if self.dynamic_dims is DynamicDims.ALL else f"-{self.dynamic_dims}"
        batch = "own" if self.batch_size is None else str(self.batch_size)
        return (
            *map(_escaped, (self.suite, self.model)),
            self.mode,
            _escaped(self.device),
            self.dtype,
            *self.matmul_setting,
            *self.flags,
            ("dynamic" if self.dynamic else "static") + dims,
            self.scale,
            f"b{batch}",
        )

    @property
    def flags(self) -> tuple[str, ...]:
        """Which settings are on that are either on or off."""
        known = ("channels_last", "compiled_optimizer", "nopython")
        return tuple(name for name in known if getattr(self, name))

    @property
    def _override_argv(self) -> tuple[str, ...]:
        """The parts after them: each option and its functions, as on a command line."""
        return self.overrides.escaped.argv


_ESCAPES = str.maketrans({sign: f"%{ord(sign):02X}" for sign in "%/+="})
"""What separates the parts of an id; in URLs such signs are written so, too (RFC 3986)."""


def _escaped(text: str) -> str:
    """Write a part of an id so that it can't be taken for several."""
    return text.translate(_ESCAPES)


DEFAULT_REPLICATES, RIGOROUS_REPLICATES = (3, 5), (5, 10)
"""The least and the most of a case, where no number is asked for."""


class Protocol(Value, frozen=True, kw_only=True):
    """How a case is measured. Two results are comparable only if theirs are equal."""

    replicates: int = DEFAULT_REPLICATES[0]
    """Worker processes a case is measured in, at least."""
    most_replicates: int = DEFAULT_REPLICATES[1]
    """At most; more than the least are taken while the interval is wider than the target."""
    target: float = 0.01
    """Half-width of the 95 % interval, relative, at which a speedup is known well enough."""
    case_budget_s: float | None = None
    """Seconds after which a case is given no further replicate."""
    arm_budget_s: float = 1.0
    """Seconds of timed bursts per arm and replicate; exceeded only to reach `min_blocks`."""
    min_blocks: int = 8
    max_blocks: int = 400
    calls: int | None = None
    """Counted calls of each arm and replicate that are enough, in place of the time budget."""
    discarded_s: float = 0.003
    discarded_calls: int = 1
    burst_s: float = 0.008
    """Counted seconds of one burst, at least."""
    burst_calls: int = 1
    """Counted calls of one burst, at least."""
    sample_s: float = 0.001
    """A sample is the mean over as many calls as last this long."""
    allocator: Allocator = Allocator.KEEP
    caches: Caches = Caches.FIRST_COLD
    start_method: StartMethod = StartMethod.FORK


class RunPlan(Value, frozen=True, kw_only=True, dict=True):
    """Everything a run will do, fixed before the first case starts."""

    suite: str
    suite_options: dict[str, str] = {}
    models: tuple[ModelSpec, ...]
    cases: tuple[Case, ...]
    experiments: tuple[str, ...] = ("speedup", "isolated", "memory")
    protocol: Protocol = Protocol()
    timeout_s: float = 1200.0
    memory_limit_bytes: int | None = None
    seed: int = 0
    threads: int | None = None
    """Intra-op threads; `None` leaves torch's own choice."""
    executor: str = "local"
    jobs: int = 1
    """Cases that run at the same time."""
    retries_for: tuple[str, ...] = ()
    """Statuses (`Status`) for which a replicate is attempted again."""
    no_skip: bool = False
    raise_backend_errors: bool = False
    """Whether an arm fails with its backend, where else the graph would run in eager."""
    tuning: Tuning | None = None
    """`None` where no arm is made of decisions."""
    corpus: str | None = None
    """The folder that captured graphs are put into, by a study that records them."""
    busy: bool = False
    """Whether a process of ours comes and goes meanwhile, to calibrate on a busy machine."""

    @property
    def study(self) -> str:
        """The name of what it asks: that of its first experiment."""
        return self.experiments[0]

    def spec_of(self, case: Case) -> ModelSpec:
        """Find the spec of a case's model."""
        return self._specs[case.model]

    @cached_property
    def _specs(self) -> dict[str, ModelSpec]:
        return {spec.name: spec for spec in reversed(self.models)}
