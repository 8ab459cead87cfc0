"""Names of torch that it doesn't promise, looked up where they are used.

A release may rename any of them. That costs what rests on it: whatever is timed is timed all the
same, and each record says what can't be known. A study of what is captured fails with the name
where it can't do without.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

RESTS_ON: Mapping[str, str] = {
    "torch._dynamo.utils.counters": "what Dynamo captured, what caches gave, what compiled late",
    "torch._dynamo.convert_frame.FRAME_COMPILE_COUNTER": "recompiles, and what compiled late",
    "torch._dynamo.utils.calculate_time_spent": "the phases of compiling",
    "torch._dynamo.utils.graph_break_reasons": "what Dynamo captured",
    "torch._dynamo.utils.get_compilation_metrics": "what Dynamo captured",
    "torch._dynamo.utils.set_compilation_metrics_limit": "more than the last 64 compilations",
    "torch._dynamo.convert_frame.register_bytecode_hook": "guards in `explain` and --sweep-sizes",
    "torch._dynamo.eval_frame._debug_get_cache_entry_list": "guards in `explain` and --sweep-sizes",
    "torch._C._dynamo.guards.DictGuardManager": "guards in `explain` and --sweep-sizes",
    "torch._C._dynamo.guards.RootGuardManager": "guards in `explain` and --sweep-sizes",
    "torch._dynamo.symbolic_convert.InstructionTranslatorBase": "causes of breaks in --coverage",
    "torch._guards.TracingContext": "specialized sizes, and causes of breaks in --coverage",
    "torch._dynamo.optimize": "what --coverage, --sweep-sizes and `explain` show",
    "torch._dynamo.disable": "what --coverage shows",
    "torch._C._autograd._get_sequence_nr": "--coverage of backward passes",
    "torch._C._current_autograd_node": "--coverage of backward passes",
    "torch._dynamo.lookup_backend": "what `dynamometer.dynamo.interface` compiles",
    "torch._dynamo.run": "what `dynamometer.dynamo.interface` runs without compiling",
    "torch._dynamo.maybe_mark_dynamic": "--dynamic-batch-only, and what --sweep-sizes shows",
    "torch._dynamo.config.recompile_limit": "the last ones of many arms, before torch 2.13",
    "torch._dynamo.config.assume_static_by_default": "--dynamic-shapes of every dimension",
    "torch._inductor.config.fallback_random": "whether Inductor draws what eager does",
    "torch._inductor.compile_fx": "compile time apart from importing Inductor",
    "torch._inductor.cpu_vec_isa.valid_vec_isa_list": "compile time apart from Inductor's probe",
    "torch._inductor.cpp_builder.get_cpp_compiler": "whether Inductor's header is made already",
    "torch._inductor.cpp_builder.get_compiler_version_info":
        "whether Inductor's header is made already",
    "torch._inductor.runtime.cache_dir_utils.default_cache_dir":
        "whether Inductor's header is made already",
    "torch._guards.tracing": "backends that export what they compile",
    "torch._ops.OpOverload": "backends that export what they compile",
    "torch._inductor.aoti_compile_and_package": "`--backend aot_inductor`",
    "torch._inductor.aoti_load_package": "`--backend aot_inductor`",
    "torch._inductor.list_mode_options": "Inductor's modes, such as `inductor:max-autotune`",
    "torch._inductor.config.freezing": "`inductor:freezing`",
    "torch._TorchCompileInductorWrapper": "graphs for which `ensemble` chose settings of Inductor",
    "torch._TorchCompileWrapper": "graphs for which `ensemble` chose settings of a backend",
    "torch._C._VariableFunctions": "reading captured graphs",
    "torch.fx.node._get_qualified_name": "names of functions in captured graphs",
    "torch._dynamo.backends.common.aot_autograd": "captured graphs of training",
    "torch._functorch._aot_autograd.utils.make_boxed_func": "captured graphs of training",
    "torch._functorch.partitioners.min_cut_rematerialization_partition":
        "captured graphs of training",
    "torch.utils._pytree.tree_flatten": "runtimes that compute models as a whole",
    "torch.utils._pytree.tree_unflatten": "runtimes that compute models as a whole",
    "torch.utils._pytree.tree_leaves": "what is in other containers than Python's own",
    "torch.utils._pytree.tree_map_only": "what is in other containers than Python's own",
    "torch.utils._python_dispatch.TorchDispatchMode":
        "how other kernels round, what float64 draws, and --coverage",
}  # fmt: skip
"""What isn't measured where a name is gone."""


class GoneError(Exception):
    """Torch has no longer a name that something rests on; says which."""


def private(name: str) -> Any:
    """Look up a name of torch.

    Args:
        name: in full, such as `torch._dynamo.utils.counters`.

    Raises:
        GoneError: this torch has none such.
    """
    found: Any = torch
    path = torch.__name__
    for part in name.split(".")[1:]:
        path = f"{path}.{part}"
        try:
            found = getattr(found, part) if hasattr(found, part) else importlib.import_module(path)
        except ImportError as error:
            msg = f"torch {torch.__version__} has no {name}"
            raise GoneError(msg) from error
    return found


def offered(name: str) -> Callable[..., Any]:
    """Return a function of torch that is given on, or one that raises a `GoneError`."""
    try:
        found: Callable[..., Any] = private(name)
    except GoneError as error:
        gone = error

        def found(*_: object, **__: object) -> Any:
            raise gone

    return found


def offered_class(name: str) -> Any:
    """Return a class of torch to derive from, or one whose objects raise a `GoneError`."""
    try:
        return private(name)
    except GoneError as error:
        gone = error

        class Gone:
            def __init__(self) -> None:
                raise gone

        return Gone


def gone() -> list[str]:
    """Return of each name that this torch lacks what isn't measured for want of it.

    Nothing of modules that are there and were not imported: none was asked for then.
    """
    return [] if "torch._dynamo" not in sys.modules else list(_gone())


def _gone() -> list[str]:
    found = []
    for name, what in RESTS_ON.items():
        try:
            if not any(map(_is_unused, (name.rpartition(".")[0], name))):
                private(name)
        except GoneError as error:
            found.append(f"{error}: {what} can't be known")
    return found


def _is_unused(module: str) -> bool:
    """Return whether a module can be imported, and nobody has."""
    if module in sys.modules:
        return False
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
