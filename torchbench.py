#!/usr/bin/env python3
"""The TorchBench suite: models with TorchBench's own names and configurations."""

from __future__ import annotations

import importlib
import importlib.util
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dynamometer.common.suite import LoadedModel, Suite
    from dynamometer.results.schema import Case, ModelSpec

TABLES = Path(__file__).resolve().parent / "models" / "torchbench"


class TorchBench:
    """The embedded models, built offline with random weights."""

    def specs(self) -> Iterable[ModelSpec]:
        """Read one spec per table of `models/torchbench/*.toml`, sorted by name."""
        import msgspec

        from dynamometer.results.schema import ModelSpec

        found = []
        for path in sorted(TABLES.glob("*.toml")):
            tables = msgspec.toml.decode(path.read_bytes(), type=dict[str, dict[str, object]])
            for name, table in tables.items():
                row = {"suite": "torchbench", "name": name, **table}
                found.append(msgspec.convert(row, ModelSpec))
        return sorted(found, key=lambda spec: spec.name)

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import the builders and packages of these models, as far as they are installed."""
        from dynamometer.models.torchvision_schemas import define_missing_schemas

        wanted = [spec for spec in specs if not spec.skips]
        packages = {package for spec in wanted for package in spec.requires}
        if packages & {"timm", "torchvision", "transformers"}:
            define_missing_schemas()
        if "transformers" in packages:
            packages.add("transformers.modeling_utils")
        builders = {f"dynamometer.models.{spec.build.partition(':')[0]}" for spec in wanted}
        for name in sorted(packages | builders):
            with suppress(ImportError):
                importlib.import_module(name)

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Call the spec's builder with the options of the case's scale.

        Raises:
            SkippedError: a package the model needs is not installed.
        """
        from dynamometer.common.outcome import SkippedError

        for package in spec.requires:
            if importlib.util.find_spec(package) is None:
                msg = f"needs the package {package}: pip install 'dynamometer[models]'"
                raise SkippedError(msg)
        module_name, function_name = spec.build.split(":")
        module = importlib.import_module(f"dynamometer.models.{module_name}")
        build = cast("Callable[..., LoadedModel]", getattr(module, function_name))
        return build(batch_size=case.batch_size, **spec.options_at(case.scale, case.device))


def open_suite(options: Mapping[str, str]) -> Suite:
    """Give the embedded suite, or the one of a checkout of pytorch/benchmark.

    Args:
        options: `torchbench_root`, the checkout's folder, and with it `offline_weights`, `yes` or
            `no`; empty for the embedded suite.

    Raises:
        ValueError: there is no checkout at `torchbench_root`.
    """
    return open_checkout(options) if "torchbench_root" in options else TorchBench()


def open_checkout(options: Mapping[str, str]) -> Suite:
    """Give the suite of a checkout of pytorch/benchmark.

    Args:
        options: `torchbench_root` and `offline_weights`, as above.

    Raises:
        ValueError: there is no checkout at `torchbench_root`, or none is named.
    """
    from dynamometer.models.torchbench_checkout import TorchBenchCheckout

    if "torchbench_root" not in options:
        msg = "the suite torchbench-checkout needs --torchbench-root DIR"
        raise ValueError(msg)
    return TorchBenchCheckout(Path(options["torchbench_root"]), options["offline_weights"] == "yes")


if __name__ == "__main__":
    import sys

    from dynamometer.__main__ import main

    del sys.path[0]  # a benchmarked model's own `import common` must not meet ours
    raise SystemExit(main("torchbench"))
