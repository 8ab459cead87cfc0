"""A user's own models: `dynamometer run FILE.py[::name]`, a saved program, or a model of the hub.

A model is a function that can be called without arguments and returns `(module, inputs)`, or a
plain function in place of the module. Inputs are a tuple of positional ones, a dictionary of
keyword ones, or a single tensor; a list of tuples or dictionaries is as many calls of a step. Where
it has an argument `batch_size` with a number as default, it is called with other batch sizes too if
these are asked for. A dictionary of such functions holds several models. Files are read, not
imported, to list what they hold; only workers import them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING

from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.suite import Inputs, LoadedModel
from dynamometer.common.interfaces.suite_source import SuiteSource
from dynamometer.common.interfaces.workload_options import SCALE, TARGET
from dynamometer.results.values.cases import ModelSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.interfaces.suite import Suite
    from dynamometer.results.values.cases import Case

NAME = "user"
_FILE_SUFFIX = ".py"
_PROGRAM_SUFFIX = ".pt2"
_HUB_PREFIX = "hub:"


class UserModels(SuiteSource):
    """The models of a target of `dynamometer run`."""

    batch_size_argument = "batch_size=NUMBER"

    def target(self, text: str) -> str | None:
        """Return a file's name from the root, with the model that is wanted; or one of the hub."""
        if text.startswith(_HUB_PREFIX):
            folder = text.removeprefix(_HUB_PREFIX)
            is_here = folder and Path(folder).is_dir()
            return f"{_HUB_PREFIX}{Path(folder).resolve()}" if is_here else text
        path, colons, name = text.partition("::")
        if path.endswith((_FILE_SUFFIX, _PROGRAM_SUFFIX)):
            return str(Path(path).resolve()) + colons + name
        return None

    def opening(self, request: Request) -> dict[str, str]:
        """Name the target.

        Raises:
            UsageError: its models were to be shrunk.
        """
        if request.is_set(SCALE):
            msg = "models of your own are what your code makes them: leave out --scale"
            raise UsageError(msg)
        typed = request.with_defaults((TARGET,))[TARGET]
        target = self.target(typed or "")
        return {} if target is None else {"target": target}

    def import_folders(self, opening: Mapping[str, str]) -> tuple[str, ...] | None:
        """Return the folder of the file, whose neighbours can be imported."""
        path = opening["target"].partition("::")[0]
        return None if path.startswith(_HUB_PREFIX) else (str(Path(path).parent),)

    def measured_files(self, opening: Mapping[str, str]) -> tuple[Path, ...]:
        """Return the file, with what it imports; or the files of the folder of a hub's model."""
        from dynamometer.models.suites.imported_files import with_imported_files

        path = opening["target"].partition("::")[0]
        if path.startswith(_HUB_PREFIX):
            folder = Path(path.removeprefix(_HUB_PREFIX))
            return tuple(sorted(filter(Path.is_file, folder.iterdir()))) if folder.is_dir() else ()
        return with_imported_files(Path(path)) if path.endswith(_FILE_SUFFIX) else (Path(path),)

    def notes(self, opening: Mapping[str, str]) -> tuple[str, ...]:
        """Say which functions of a file aren't run: not in its `MODELS`, or needing arguments."""
        from dynamometer.models.suites.written_models import left_out

        path, _, name = opening["target"].partition("::")
        return () if name or not path.endswith(_FILE_SUFFIX) else left_out(Path(path))

    def open(self, opening: Mapping[str, str]) -> Suite:
        """Open what a target names.

        Args:
            opening: `target`: a file, `FILE.py::name`, a program `torch.export.save` wrote, or
                `hub:` with the name or folder of a model that transformers can load.

        Raises:
            ValueError: there is no such file, or no such model in it; says what there is.
        """
        target = opening.get("target", "")
        if not target:
            msg = "the suite user is run by naming a file: dynamometer run FILE.py"
            raise ValueError(msg)
        if target.startswith(_HUB_PREFIX):
            return HubModel(target.removeprefix(_HUB_PREFIX))
        path, _, name = target.partition("::")
        if not Path(path).is_file():
            msg = f"there is no file {path}"
            raise ValueError(msg)
        if path.endswith(_PROGRAM_SUFFIX):
            if name:
                msg = f"{path} holds one program: leave out ::{name}"
                raise ValueError(msg)
            return SavedProgram(Path(path))
        file = ModelFile(Path(path), name)
        file.specs()
        return file


SUITE = UserModels()


@dataclass(frozen=True)
class ModelFile:
    """The functions of a Python file that build models.

    Attributes:
        path: of the file.
        name: the only function, dictionary or model of `MODELS` that is wanted; empty for all
            functions but helpers, as those that begin with an underscore, or for the dictionary
            `MODELS` where there is one.
    """

    path: Path
    name: str

    def specs(self) -> list[ModelSpec]:
        """Describe the models, by the file's text alone.

        Raises:
            ValueError: the file can't be parsed, or doesn't hold what was named.
        """
        from dynamometer.models.suites.written_models import builders

        return [
            _spec(name, str(self.path), "ModelFile", batch_size)
            for name, batch_size in sorted(builders(self.path, self.name).items())
        ]

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import nothing: the file may do anything."""

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Import the file and call the function.

        Raises:
            SkippedError: the file defines it where some condition holds, which it does not here.
            TypeError: it is no function, or returns no model.
        """
        from dynamometer.models.suites.imported_files import import_file
        from dynamometer.models.suites.written_models import table_of

        _let_torchvision_be_imported()
        module = import_file(self.path.resolve())
        table = table_of(self.path, self.name)
        build = getattr(module, table)[spec.name] if table else _defined(module, spec.name)
        _refuse_no_function(build, spec.name)
        advice = "" if table else f"; name it _{spec.name} if it is no model"
        if case.batch_size in {None, *spec.batch_size.values()}:
            return as_loaded(build(), spec.name, advice)
        loaded = as_loaded(build(batch_size=case.batch_size), spec.name, advice)
        return _with_note_on_size(loaded, case.batch_size)


def _with_note_on_size(loaded: LoadedModel, batch_size: int | None) -> LoadedModel:
    """Add a note if no input is as large as the batch that was asked for."""
    from dynamometer.dynamo.accuracy.leaves import by_path

    given = by_path((loaded.args, dict(loaded.kwargs)), "", is_result=False)
    if any([*getattr(each, "shape", ())][:1] == [batch_size] for each in given.values()):
        return loaded
    note = f"Of no input the first size is the batch size, {batch_size}: it may be ignored."
    return replace(loaded, notes=(*loaded.notes, note))


def _defined(module: ModuleType, name: str) -> Callable[..., object]:
    from dynamometer.common.interfaces.outcome import SkippedError

    found: Callable[..., object] | None = getattr(module, name, None)
    if found is None:
        msg = (
            f"{module.__file__} has no {name} once it is imported: it is defined under a condition"
            " that does not hold here, or removed"
        )
        raise SkippedError(msg)
    return found


def _refuse_no_function(build: object, name: str) -> None:
    """Refuse what a dictionary may hold in place of functions, such as a module.

    Raises:
        TypeError: it is no function; says what it is.
    """
    from torch import nn

    if isinstance(build, nn.Module) or not callable(build):
        kind = type(build).__name__
        msg = f"{name} is of type {kind}: write a function that returns (module, inputs)"
        raise TypeError(msg)


def as_loaded(value: object, name: str, advice: str = "") -> LoadedModel:
    """Take what a user's function returned.

    Args:
        value: what it returned.
        name: of the function.
        advice: what ends the message where that is no model.

    Raises:
        TypeError: it is not a module or function with its inputs, or is compiled already; says what
            it is.
    """
    from torch import nn

    from dynamometer.dynamo.capture.function import FunctionModule
    from dynamometer.models.suites.compiled_already import refuse_compiled

    match value:
        case (nn.Module() | FunctionType() as called, given):
            refuse_compiled(called, name)
            found = [_inputs(each) for each in _calls(given)]
            if all(found):
                module = called if isinstance(called, nn.Module) else FunctionModule(called)
                first, *others = [each for each in found if each]
                return LoadedModel(
                    module=module, args=first.args, kwargs=first.kwargs, others=tuple(others)
                )
    msg = f"{name} must return (module, inputs), not {_describe(value)}{advice}"
    raise TypeError(msg)


def _calls(given: object) -> list[object]:
    """Return the inputs of each call: several where they are a list of tuples or dictionaries."""
    if isinstance(given, list) and given:
        return given if all(isinstance(each, tuple | Mapping) for each in given) else [given]
    return [given]


def _inputs(given: object) -> Inputs | None:
    from torch import Tensor

    match given:
        case Tensor() as single:
            return Inputs(args=(single,))
        case Mapping() as named:
            return Inputs(kwargs=dict(named))
        case (tuple() | list()) as positional:
            return Inputs(args=tuple(positional))
    return None


def _describe(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(type(each).__name__ for each in value)})"
    return type(value).__name__


@dataclass(frozen=True)
class SavedProgram:
    """A program that `torch.export.save` wrote, with the example inputs it was exported with."""

    path: Path

    def specs(self) -> Iterable[ModelSpec]:
        """Describe the one model there is."""
        return [_spec(self.path.stem, str(self.path), "SavedProgram")]

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import nothing beyond torch."""

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Read the program."""
        del spec
        from dynamometer.models.suites.exported import load_program

        return load_program(self.path, case.mode)


@dataclass(frozen=True)
class HubModel:
    """A model transformers can load by its name on the hub, or from a folder."""

    name: str

    def specs(self) -> Iterable[ModelSpec]:
        """Describe the one model there is."""
        return [_spec(_short(self.name.rstrip("/").replace("/", "--")), self.name, "HubModel")]

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import nothing: models that are not used take a while."""

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Load weights, and make up inputs of the kind that the model takes."""
        del spec, case
        from dynamometer.models.suites.hub import load_from_hub

        _let_torchvision_be_imported()
        return load_from_hub(self.name)


def _short(name: str) -> str:
    """Return a name that a file can be named after: of a long path its end, and what tells it."""
    text = name.encode(errors="replace")
    if len(text) <= _MOST_NAME_BYTES:
        return name
    from hashlib import sha256

    return (
        f"{sha256(text).hexdigest()[:12]}-{text[-_MOST_NAME_BYTES // 2 :].decode(errors='ignore')}"
    )


_MOST_NAME_BYTES = 160


def _let_torchvision_be_imported() -> None:
    from dynamometer.models.builders.torchvision_schemas import (
        define_missing_schemas,  # imports torch
    )

    define_missing_schemas()


def _spec(name: str, origin: str, kind: str, batch_size: int | None = None) -> ModelSpec:
    return ModelSpec(
        suite=NAME,
        name=name,
        task="the user's own",
        origin=origin,
        build=f"user_models:{kind}",
        batch_size={} if batch_size is None else {"cpu": batch_size},
    )
