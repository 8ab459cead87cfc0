"""AOTInductor: a model exported as a whole and compiled to a library, which Python only calls."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamometer.dynamo.backends.declared import WholeModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import nn


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
        from dynamometer.dynamo.backends.programs import refuse_training
        from dynamometer.dynamo.private import private

        refuse_training(args, kwargs.values(), module.parameters())
        with state.without_gradients():
            exported = torch.export.export(module, args, dict(kwargs), strict=False)
            folder = tempfile.mkdtemp(prefix="dynamometer-aoti-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            package = str(Path(folder) / "model.pt2")
            private("torch._inductor.aoti_compile_and_package")(
                exported, package_path=package, inductor_configs=dict(self.settings)
            )
            loaded: Callable[..., Any] = private("torch._inductor.aoti_load_package")(package)
        return loaded


aot_inductor = WholeModel(
    name="aot_inductor",
    summary="AOTInductor: the model exported as a whole, compiled to a library; inference",
    compiler=_Compiler(),
)
