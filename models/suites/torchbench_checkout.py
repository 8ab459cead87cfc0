"""The models of a checkout of pytorch/benchmark, built by its own `torchbenchmark` package."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.results.values.cases import Mode, ModelSpec, Scale, Skip, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dynamometer.results.values.cases import Case

TABLE = Path(__file__).resolve().with_suffix(".toml")
MODELS = Path("torchbenchmark", "models")
ONE_SCALE = "A checkout has one scale: the model is as published."

_REVISION = "0e83c440"
"""Of pytorch/benchmark, which this suite was tried with: docs/torchbench-checkout.md."""

_FRAMEWORKS = {
    "gnn": "torch_geometric",
    "huggingface": "transformers",
    "timm": "timm",
    "vision": "torchvision",
}
"""What a model needs that derives from a class below the checkout's `util/framework`."""


class Obstacle(Value, frozen=True, kw_only=True):
    """What keeps a model from running, and what would remove it."""

    reason: str
    devices: tuple[str, ...] = ()
    """Device types it is limited to; empty for all."""
    data: str | None = None
    """Path in the checkout that its `install.py` makes."""
    package: str | None = None
    """Importable package that the index has no fitting version of."""
    variable: str | None = None
    """Environment variable."""
    offline: bool = False
    """Holds only where nothing may be downloaded."""

    def holds(self, root: Path, *, offline: bool) -> bool:
        """Return whether it is still in the way."""
        removable = {
            "data": self.data is not None and (root / self.data).exists(),
            "package": self.package is not None and _is_installed(self.package),
            "variable": self.variable is not None and self.variable in os.environ,
            "offline": self.offline and not offline,
        }
        return not any(removable.values())


class ModelEntry(Value, frozen=True, kw_only=True):
    """What the table knows of one model."""

    requires: tuple[str, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()


class Table(Value, frozen=True, kw_only=True):
    """`torchbench_checkout.toml`."""

    configurations: dict[str, dict[str, Any]]
    """Hub configurations the models ask for, by the hub's name."""
    models: dict[str, ModelEntry]


class TorchBenchCheckout:
    """The models of a checkout, with the skips that hold for it."""

    def __init__(self, root: Path, *, offline_weights: bool) -> None:
        """Look at a checkout without importing it.

        Args:
            root: where it is.
            offline_weights: whether random weights replace those the models would download.

        Raises:
            ValueError: there is no checkout at `root`.
        """
        self._root = root.resolve()
        self._offline = offline_weights
        if not (self._root / MODELS).is_dir():
            msg = (
                f"{root} is no checkout of pytorch/benchmark: it has no {MODELS}. "
                "Get one with: git clone https://github.com/pytorch/benchmark"
            )
            raise ValueError(msg)

    def specs(self) -> Iterable[ModelSpec]:
        """Describe every model folder, sorted by name; reads files and imports nothing."""
        table = _read_table()
        return [
            self._spec(path, table.models.get(path.parent.name, ModelEntry()))
            for path in sorted((self._root / MODELS).glob("*/__init__.py"))
        ]

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import the packages these models need, as far as they are installed.

        The checkout itself is left to `load`: what its models do when imported is their own.
        """
        from dynamometer.models.builders.torchvision_schemas import define_missing_schemas

        define_missing_schemas()
        packages = {package for spec in specs if not spec.is_never_run for package in spec.requires}
        for name in sorted(packages):
            with suppress(Exception, SystemExit):  # its models say so when they are built
                importlib.import_module(name)

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Build one model by its own class, and take the module and inputs that it offers.

        Raises:
            NotImplementedError: the model says that it doesn't support the device, the mode or
                the batch size.
            TypeError: its inputs are neither a mapping nor a sequence.
        """
        from dynamometer.models.builders.torchvision_schemas import define_missing_schemas
        from dynamometer.models.suites.offline_weights import Substitutions, offline_weights

        define_missing_schemas()
        notes = [] if case.scale is Scale.FULL else [ONE_SCALE]
        with ExitStack() as stack:
            stack.enter_context(_importable(self._root))
            stack.enter_context(_seeding_kept())
            module = _import_model(self._root, spec.name)
            stack.enter_context(_with_jittable(notes))
            substitutions = Substitutions()
            if self._offline:
                configurations = _read_table().configurations
                substitutions = stack.enter_context(offline_weights(configurations))
            built, inputs = _build(module, case)
        args, kwargs = _split(inputs)
        return LoadedModel(
            module=built, args=args, kwargs=kwargs, notes=(*notes, *substitutions.notes)
        )

    def _spec(self, path: Path, known: ModelEntry) -> ModelSpec:
        name = path.parent.name
        source = path.read_text(encoding="utf-8", errors="replace")
        frameworks = re.findall(r"torchbenchmark\.util\.framework\.(\w+)", source)
        packages = [_FRAMEWORKS[key] for key in frameworks if key in _FRAMEWORKS]
        return ModelSpec(
            suite="torchbench-checkout",
            name=name,
            task=_task(source),
            origin=f"pytorch/benchmark, {MODELS.as_posix()}/{name}",
            build="torchbench_checkout:TorchBenchCheckout.load",
            requires=tuple(dict.fromkeys((*packages, *known.requires))),
            skips=tuple(
                Skip(reason=obstacle.reason, devices=obstacle.devices)
                for obstacle in known.obstacles
                if obstacle.holds(self._root, offline=self._offline)
            ),
        )


def _read_table() -> Table:
    return msgspec.toml.decode(TABLE.read_bytes(), type=Table)


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _task(source: str) -> str:
    """Read `task = NLP.LANGUAGE_MODELING` as "language modeling"."""
    match = re.search(r"\btask = [A-Z_]+\.([A-Z_]+)", source)
    return match[1].lower().replace("_", " ") if match else "other tasks"


@contextmanager
def _importable(root: Path) -> Iterator[None]:
    """Put the checkout first on the import path, and take it off again."""
    sys.path.insert(0, str(root))
    try:
        yield
    finally:
        sys.path.remove(str(root))


@contextmanager
def _seeding_kept() -> Iterator[None]:
    """Undo what the checkout does to `torch.manual_seed`: make it ignore the seed it is given."""
    import torch

    manual_seed = torch.manual_seed
    try:
        yield
    finally:
        torch.manual_seed = manual_seed


def _import_model(root: Path, name: str) -> Any:
    """Import one model of the checkout, and make sure that it is the one meant.

    Raises:
        RuntimeError: another `torchbenchmark` was imported before.
    """
    module = importlib.import_module(f"torchbenchmark.models.{name}")
    if module.__file__ is None or not Path(module.__file__).is_relative_to(root):
        msg = f"torchbenchmark was imported from {module.__file__}, not from {root}"
        raise RuntimeError(msg)
    return module


def _build(module: Any, case: Case) -> tuple[Any, object]:
    """Construct the checkout's model, and ask it for its module and example inputs.

    Raises:
        TypeError: it is none that can be constructed so.
    """
    kind: Any = getattr(module, "Model", None)
    parameters = inspect.signature(kind.__init__).parameters if kind else {}
    if "test" not in parameters and all(
        each.kind is not each.VAR_KEYWORD for each in parameters.values()
    ):
        msg = (
            f"{module.__file__} has no class Model with an argument `test`, as models of"
            f" pytorch/benchmark have: check out {_REVISION}, or a later one"
        )
        raise TypeError(msg)
    model = module.Model(
        test="train" if case.mode is Mode.TRAINING else "eval",
        device=case.device,
        batch_size=case.batch_size or None,
        # On CUDA a model's default is often float16; the precision is the case's business.
        extra_args=["--precision", "fp32"],
    )
    built, inputs = model.get_module()
    return built, inputs


@contextmanager
def _with_jittable(notes: list[str]) -> Iterator[None]:
    """Stand in for a module of torch_geometric that 2.5 removed and the checkout looks up.

    What it is wanted for, `to_jittable`, had become a no-op by then: every layer is jittable.
    """
    name = "torch_geometric.compile"
    if "torch_geometric" not in sys.modules or name in sys.modules:
        yield
        return
    module = ModuleType(name)
    vars(module)["to_jittable"] = lambda model: model
    sys.modules[name] = module
    notes.append(
        "torch_geometric has no to_jittable any more: the layers are taken as they are, "
        "which are jittable."
    )
    try:
        yield
    finally:
        del sys.modules[name]


def _split(inputs: object) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Sort a model's example inputs into positional and keyword ones."""
    match inputs:
        case Mapping():
            return (), dict(inputs)
        case tuple() | list():
            return tuple(inputs), {}
        case _:
            msg = f"get_module gave inputs of type {type(inputs).__name__}, not a tuple or a dict"
            raise TypeError(msg)
