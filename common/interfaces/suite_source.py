"""What a suite is registered as. Light, as every command imports it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dynamometer.common.interfaces.option import Option, Request
    from dynamometer.common.interfaces.suite import Suite
    from dynamometer.results.values.cases import Case, ModelSpec


class SuiteSource(Protocol):
    """What a suite is registered as: its options, and how it is opened.

    A suite that differs from what is said here says so; `open` is all it must say. Importing the
    module that holds it takes no time: the help of every command does.

    Attributes:
        options: what it adds to the command line.
        refuses: what `opening` refuses, and the help of its script leaves out.
        help: what that help says besides.
        batch_size_argument: how a model's author lets its batch size be varied; `None` where every
            model can be given one.
        is_foreign: whether its code is that of people nobody here knows, so that workers give up
            what it must not have before they load it.
        takes_target: whether the suite's own script is told what it holds the models of.
        usual_study: what is asked of its models unless something else is; `None` for what a run
            usually asks.
    """

    options: ClassVar[Sequence[Option[Any]]] = ()
    refuses: ClassVar[Sequence[Option[Any]]] = ()
    help: ClassVar[str] = ""
    batch_size_argument: ClassVar[str | None] = None
    is_foreign: ClassVar[bool] = False
    takes_target: ClassVar[bool] = False
    usual_study: ClassVar[str | None] = None

    def target(self, text: str) -> str | None:
        """Return what names models of this suite, such as a file, as it is said from anywhere.

        `None` where the text names none of them.
        """
        del text
        return None

    def opening(self, request: Request) -> dict[str, str]:
        """Return what the suite is opened with, in this process and in workers.

        Raises:
            UsageError: options contradict each other.
        """
        del request
        return {}

    def import_folders(self, opening: Mapping[str, str]) -> tuple[str, ...] | None:
        """Return the folders that workers import from besides the path of every process.

        `None` where only loading a model tells.
        """
        del opening
        return ()

    def measured_files(self, opening: Mapping[str, str]) -> tuple[Path, ...]:
        """Return the user's files that are measured; no run goes on with others.

        A folder stands for the Python files in it. What is installed is not looked at.
        """
        del opening
        return ()

    def notes(self, opening: Mapping[str, str]) -> tuple[str, ...]:
        """Return what whoever runs or lists the models is told of them beforehand."""
        del opening
        return ()

    def script(self, opening: Mapping[str, str], case: Case, seed: int) -> str | None:
        """Return a program that does without us what a case's first backend is asked to do.

        `None` where a model can't be had apart from its suite.

        Args:
            opening: what the suite was opened with.
            case: of one of its models.
            seed: of random numbers.

        Raises:
            ValueError: what the suite was opened with is no longer there, or there is no such
                program for that backend.
        """
        del opening, case, seed
        return None

    def read_ahead(self, opening: Mapping[str, str], spec: ModelSpec) -> None:
        """Read what other models need as well, such as the file they are in; nothing of it is run.

        Workers that are forked afterwards need not. What can't be read is left for them to report.

        Args:
            opening: what the suite was opened with.
            spec: of the model that is loaded next.
        """
        del opening, spec

    def open(self, opening: Mapping[str, str]) -> Suite:
        """Open the suite.

        Raises:
            ValueError: there is nothing of the kind; says what to do.
        """
        ...
