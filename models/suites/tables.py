"""A suite whose models are the tables of TOML files, built offline with random weights."""

from __future__ import annotations

import importlib
import importlib.util
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import rtoml

from dynamometer.common.errors import DynamometerError
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.reading import file_text
from dynamometer.results.values.cases import ModelSpec, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.results.values.cases import Case

_HERE = Path(__file__).resolve().parent.parent
_Table = dict[str, object]


class TableSuite(Value, frozen=True):
    """The models of `models/<name>/*.toml`, one table each."""

    name: str

    @property
    def tables(self) -> tuple[Path, ...]:
        """The suite's files, sorted."""
        return tuple(sorted((_HERE / self.name).glob("*.toml")))

    def specs(self) -> Iterable[ModelSpec]:
        """Read one spec per table, sorted by name.

        Raises:
            DynamometerError: a file is no TOML, or a table no model; says which, and where.
        """
        found = [spec for path in self.tables for spec in self._read(path)]
        return sorted(found, key=lambda spec: spec.name)

    def _read(self, path: Path) -> Iterator[ModelSpec]:
        try:
            tables = rtoml.loads(file_text(path))
        except (rtoml.TomlParsingError, StoreError) as error:
            msg = f"{path} is not TOML: {error}"
            raise DynamometerError(msg) from error
        for name, table in tables.items():
            try:
                row = {"suite": self.name, "name": name, **msgspec.convert(table, _Table)}
                yield msgspec.convert(row, ModelSpec)
            except msgspec.ValidationError as error:
                msg = f"{path}: {name!r} is not the table of a model: {error}"
                raise DynamometerError(msg) from error

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import the builders and packages of these models, as far as they are installed."""
        from dynamometer.models.builders.torchvision_schemas import define_missing_schemas

        wanted = [spec for spec in specs if not spec.is_never_run]
        packages = {package for spec in wanted for package in spec.requires}
        if packages & {"timm", "torchvision", "transformers"}:
            define_missing_schemas()
        if "transformers" in packages:
            packages.add("transformers.modeling_utils")
        builders = {_module_of(spec) for spec in wanted}
        for name in sorted(packages | builders):
            with suppress(Exception, SystemExit):  # its models say so when they are built
                importlib.import_module(name)

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Call the spec's builder with the options of the case's scale.

        Raises:
            SkippedError: a package the model needs is not installed.
        """
        from dynamometer.common.interfaces.outcome import SkippedError
        from dynamometer.models.builders.awakening import awake  # imports torch

        for package in spec.requires:
            if importlib.util.find_spec(package) is None:
                msg = f"needs the package {package}: pip install '.[models]' in a clone"
                raise SkippedError(msg)
        module = importlib.import_module(_module_of(spec))
        build = cast("Callable[..., LoadedModel]", getattr(module, spec.build.partition(":")[2]))
        return awake(build(batch_size=case.batch_size, **spec.options_at(case.scale, case.device)))


def _module_of(spec: ModelSpec) -> str:
    """Name the module of a spec's builder."""
    return f"dynamometer.models.builders.{spec.build.partition(':')[0]}"
