"""A user's own models: `dynamometer run FILE.py[::name]`, a saved program, or a model of the hub.

A model is a function that can be called without arguments and returns `(module, inputs)`, or a
plain function in place of the module. Inputs are a tuple of positional ones, a dictionary of
keyword ones, or a single tensor; a list of tuples or dictionaries is as many calls of a step. Where
it has an argument `batch_size` with a number as default, it is called with other batch sizes too if
these are asked for. A dictionary of such functions holds several models. Files are read, not
imported, to list what they hold; only workers import them.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING

from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.suite import Inputs, LoadedModel
from dynamometer.common.interfaces.suite_source import SuiteSource
from dynamometer.common.interfaces.workload_options import SCALE, TARGET
from dynamometer.results.values.cases import ModelSpec

if TYPE_CHECKING:
    from collections.abc import Iterable
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
            return text
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
        name: the only function or dictionary that is wanted; empty for all functions, or for
            the dictionary `MODELS` where there is one.
    """

    path: Path
    name: str

    def specs(self) -> list[ModelSpec]:
        """Describe the models, by the file's text alone.

        Raises:
            ValueError: the file can't be parsed, or doesn't hold what was named.
        """
        return [
            _spec(name, str(self.path), "ModelFile", batch_size)
            for name, batch_size in sorted(_builders(self).items())
        ]

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import nothing: the file may do anything."""

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Import the file and call the function."""
        _let_torchvision_be_imported()
        module = _import(self.path.resolve())
        table = _table_name(self)
        build = getattr(module, table)[spec.name] if table else getattr(module, spec.name)
        if case.batch_size in {None, *spec.batch_size.values()}:
            return as_loaded(build(), spec.name)
        return as_loaded(build(batch_size=case.batch_size), spec.name)


def _import(path: Path) -> ModuleType:
    """Import a file as if it had been run, once: what it registers, it could not register again."""
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    sys.path.insert(0, str(path.parent))  # its neighbours can be imported
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        msg = f"{path} can't be imported"
        raise ImportError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def as_loaded(value: object, name: str) -> LoadedModel:
    """Take what a user's function returned.

    Raises:
        TypeError: it is not a module or function with its inputs; says what it is.
    """
    from torch import nn

    from dynamometer.dynamo.capture.function import FunctionModule

    match value:
        case (nn.Module() | FunctionType() as called, given):
            found = [_inputs(each) for each in _calls(given)]
            if all(found):
                module = called if isinstance(called, nn.Module) else FunctionModule(called)
                first, *others = [each for each in found if each]
                return LoadedModel(
                    module=module, args=first.args, kwargs=first.kwargs, others=tuple(others)
                )
    msg = f"{name} must return (module, inputs), not {_describe(value)}"
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
        del spec, case
        from dynamometer.models.suites.exported import load_program

        return load_program(self.path)


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
        """Load weights, and take the inputs transformers itself tries models with."""
        del spec, case
        _let_torchvision_be_imported()
        transformers = importlib.import_module("transformers")
        module = transformers.AutoModel.from_pretrained(self.name)
        return LoadedModel(module=module, kwargs=dict(module.dummy_inputs))


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


def _builders(file: ModelFile) -> dict[str, int | None]:
    """Return the models that are wanted, with the default of `batch_size` where they take one."""
    functions, tables = _read(file.path)
    if file.name in functions:
        return {file.name: functions[file.name]}
    if file.name in {"", "MODELS", *tables}:
        from dynamometer.models.suites.written_tables import parsed, refuse_unreadable

        refuse_unreadable(file.path, parsed(file.path), file.name or "MODELS")
    table = _table_name(file)
    if table is not None:
        return tables[table]
    if file.name:
        known = ", ".join(sorted([*functions, *tables])) or "none"
        msg = (
            f"{file.path} has no model {file.name!r}, which is a function that needs no arguments"
            f" or a dictionary of them; it has: {known}{_advice(file)}"
        )
        raise ValueError(msg)
    if not functions:
        msg = (
            f"{file.path} has no function without arguments that could build a model;"
            f" {_NOT_WRITTEN.format(name='name')}"
        )
        raise ValueError(msg)
    return functions


_NOT_WRITTEN = (
    "what is not written as `def`, such as a lambda or a partial, is taken from a dictionary:"
    ' MODELS = {{"{name}": {name}}}'
)


def _advice(file: ModelFile) -> str:
    """Return what to do about a name that a file holds, and that builds no model as it stands."""
    from dynamometer.models.suites.written_tables import assigned, parsed

    body = parsed(file.path).body
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == file.name:
            first = next(iter((*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)))
            return (
                f". {file.name} takes arguments ({first.arg}): a function without says with which,"
                f" such as `def example(): return {file.name}, (torch.randn(2, 3),)`"
            )
    if any(file.name == target.id for target, _ in assigned(body)):
        return f"; {_NOT_WRITTEN.format(name=file.name)}"
    return ""


def _table_name(file: ModelFile) -> str | None:
    _, tables = _read(file.path)
    name = file.name or "MODELS"
    return name if name in tables else None


def _read(path: Path) -> tuple[dict[str, int | None], dict[str, dict[str, int | None]]]:
    """Return a file's public functions that need no arguments, and its dictionaries.

    Both with the default of the functions' argument `batch_size`; `None` where there is none.
    """
    from dynamometer.models.suites.written_tables import assigned, parsed

    tree = parsed(path)
    defined = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    sizes = {node.name: _batch_size(node.args) for node in defined}
    functions = {
        node.name: sizes[node.name]
        for node in defined
        if not node.name.startswith("_") and not _required(node.args)
    }
    tables = {
        target.id: _entries(value, sizes)
        for target, value in assigned(tree.body)
        if isinstance(value, ast.Dict)
    }
    return functions, tables


def _entries(table: ast.Dict, sizes: Mapping[str, int | None]) -> dict[str, int | None]:
    return {
        key.value: sizes.get(value.id) if isinstance(value, ast.Name) else None
        for key, value in zip(table.keys, table.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def _batch_size(arguments: ast.arguments) -> int | None:
    """Return the default of an argument `batch_size`, if that is a number."""
    pairs = [
        *zip(arguments.args[::-1], arguments.defaults[::-1], strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    found = {argument.arg: default for argument, default in pairs}.get("batch_size")
    value = found.value if isinstance(found, ast.Constant) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _required(arguments: ast.arguments) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return positional > 0 or any(default is None for default in arguments.kw_defaults)
