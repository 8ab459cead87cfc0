"""Who is to blame for a wrong result: the arm, one that was there before it, or the model."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from dynamometer.common.checking.repeats import DIFFER
from dynamometer.common.interfaces.outcome import NondeterministicError, WrongResultError
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dynamometer.common.checking.reference import Reference
    from dynamometer.common.studies.experiment import Context


@contextmanager
def blaming(context: Context, name: str, reference: Reference) -> Iterator[None]:
    """Have an arm answer for what eager has become by then, and eager for itself.

    Raises:
        NondeterministicError: eager as an arm is wrong, which no arm before it has brought about.
        WrongResultError: eager computes something else since the arm is there. Only the first
            process asks; that costs a call or two of eager.
    """
    try:
        yield
    except WrongResultError as error:
        if name == BASELINE:
            raise NondeterministicError(DIFFER.format(error)) from error
        raise
    if name != BASELINE and not context.job.replicate:
        with context.stages.at(Stage.COMPARE, name):
            reference.constancy.require()
