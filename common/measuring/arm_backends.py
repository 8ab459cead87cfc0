"""From an arm's name to the backend that compiles it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dynamometer.common import registry
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces import arm_names
from dynamometer.common.interfaces.outcome import SkippedError
from dynamometer.dynamo.backends.backends import FunctionBackend, as_backend
from dynamometer.dynamo.backends.compilers import ThroughDynamo
from dynamometer.dynamo.backends.declared import Declared
from dynamometer.dynamo.ensemble.ensemble import Ensemble
from dynamometer.dynamo.interface import Fallback

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynamometer.common.interfaces.messages import Job
    from dynamometer.dynamo.backends.backends import Backend


def load_backend(name: str) -> Backend:
    """Return the backend of an arm, set as its name says.

    Raises:
        UsageError: it can't be imported, is no backend, or can't be set so.
    """
    arm = arm_names.read(name)
    backend = as_backend(registry.resolve("backends", arm.backend))
    settings = arm_names.settings_of(arm)
    return backend.set_to(settings) if isinstance(backend, Declared) else backend


def available_backend(name: str, job: Job) -> Backend:
    """Return the backend of an arm as a job asks for it.

    Raises:
        SkippedError: it is not available here, or can't do what is asked; says why.
        UsageError: it can't be imported, is no backend, or can't be set so.
    """
    backend = load_backend(name)
    if isinstance(backend, ThroughDynamo):
        backend = replace(backend, full_graph=backend.full_graph or job.case.nopython)
        if callable(backend.compiler) and not job.raise_backend_errors:  # a user's own
            backend = replace(backend, compiler=Fallback(backend.compiler))
    if isinstance(backend, Ensemble):
        case = job.case
        # What is decided for a model as a whole is for inputs of one size.
        backend = replace(backend, delegates=backend.delegates and not case.dynamic)
        backend = backend.reading(job.tuning, case, load_backend, job.protocol.allocator)
    reason = backend.available(job.case.device)
    if reason is None and isinstance(backend, Declared):
        reason = backend.refusal(job.case.mode)
    if reason:
        raise SkippedError(reason)
    return backend


def compiler_of_functions(backend: Backend) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what compiles the optimizer's step.

    Raises:
        UsageError: the backend compiles modules alone.
    """
    if isinstance(backend, FunctionBackend):
        return backend.compile_function
    msg = f"{type(backend).__name__} compiles modules alone; leave out --compile-optimizer"
    raise UsageError(msg)
