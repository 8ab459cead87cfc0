"""Models exported as a whole: run in eager, or compiled to a library, which Python only calls."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dynamometer.dynamo.backends.compilers import WholeModel
from dynamometer.dynamo.backends.inductor import CACHE_DIR, environment, of_inductor
from dynamometer.dynamo.backends.inductor_options import AOT_INDUCTOR

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import nn


def _exported(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return the exported program as a module, on the same weights."""
    import torch

    from dynamometer.dynamo.backends.unsupported import refuse_training

    refuse_training(args, kwargs.values(), module.parameters())
    return torch.export.export(module, args, dict(kwargs), strict=False).module()


export = WholeModel(
    name="export",
    summary="torch.export of the model as a whole, run in eager; inference",
    compiler=_exported,
)


@dataclass(frozen=True, kw_only=True)
class _Compiler:
    """AOTInductor with settings.

    Attributes:
        settings: of Inductor, by their names in `torch._inductor.config`.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)

    def __call__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Return the loaded library's call; the library has weights of its own."""
        import torch

        from dynamometer.dynamo import state
        from dynamometer.dynamo.backends.unsupported import refuse_training
        from dynamometer.dynamo.private import private

        refuse_training(args, kwargs.values(), module.parameters())
        with state.without_gradients():
            exported = torch.export.export(module, args, dict(kwargs), strict=False)
            folder = _folder()
            package = str(folder / "model.pt2")
            private("torch._inductor.aoti_compile_and_package")(
                exported, package_path=package, inductor_configs=of_inductor(self.settings)
            )
            with environment("TMPDIR", str(folder)):  # where the loader puts the library
                loaded: Callable[..., Any] = private("torch._inductor.aoti_load_package")(package)
        return loaded


def _folder() -> Path:
    """Return a new folder, beside what Inductor caches where that is somebody's to remove."""
    caches = os.environ.get(CACHE_DIR)
    parent = Path(caches, "temporary") if caches else None
    if parent:
        parent.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="dynamometer-aoti-", dir=parent)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@dataclass(frozen=True, kw_only=True)
class AotInductor(WholeModel):
    """AOTInductor, whose settings are Inductor's."""

    def set_to(self, settings: Mapping[str, Any]) -> Self:
        """Return it with other settings."""
        return replace(self, compiler=_Compiler(settings=dict(settings)))


aot_inductor = AotInductor(
    name="aot_inductor",
    summary="AOTInductor: the model exported as a whole, compiled to a library; inference",
    compiler=_Compiler(),
    options=AOT_INDUCTOR,
)
