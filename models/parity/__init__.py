"""The suite of a corpus of modules: files with test cases, as pytorch-jit-paritybench has them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import click

from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Several
from dynamometer.common.interfaces.suite_source import SuiteSource
from dynamometer.common.interfaces.workload_options import QUICK, SCALE, TARGET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.interfaces.suite import Suite
    from dynamometer.results.values.cases import Case, ModelSpec

_SIZED_BY_ITSELF = "modules of a corpus are what its files make them"


_HELP = """
TARGET is a folder of Python files with TESTCASES, or one such file (docs/parity.md); --from-source
takes its place.
"""

_HIDDEN = Path("/dev/shm")  # noqa: S108  nothing is written there
_SOURCES = "sources"
FROM_SOURCE = Several(
    ("--from-source",), reads=click.STRING, metavar="PATH|PACKAGE", group="Selection",
    help="Instead of a corpus: the classes of nn.Module in a folder, a file or an installed"
    " package, with arguments that are found for them and written as a corpus; may be repeated.",
    again=lambda plan, _: tuple(
        filter(None, plan.suite_options.get(_SOURCES, "").split("\n"))
    ),
)  # fmt: skip


def _from_anywhere(text: str) -> str:
    """Return a path from the root; the name of a package stays."""
    return str(Path(text).resolve()) if Path(text).exists() else text


class ParityCorpus(SuiteSource):
    """The test cases of a folder of Python files, or of one such file."""

    options: ClassVar = (FROM_SOURCE,)
    refuses: ClassVar = (SCALE, QUICK)
    help: ClassVar[str] = _HELP
    is_foreign: ClassVar[bool] = True
    usual_study: ClassVar[str | None] = "parity"
    takes_target: ClassVar[bool] = True

    def target(self, text: str) -> str | None:
        """Return the folder or file from the root, where it holds test cases.

        What can't be read of a folder holds none: it is a case, should others hold some.
        """
        from dynamometer.models.parity.corpus import files_of, holds_test_cases

        path = Path(text)
        for file in [path] if path.is_file() else files_of(path):
            with suppress(ValueError):
                if holds_test_cases(file):
                    return str(path.resolve())
        return None

    def opening(self, request: Request) -> dict[str, str]:
        """Name the target.

        Raises:
            UsageError: its modules were to be shrunk, or a handful of them taken.
        """
        for option in self.refuses:
            if request.is_set(option):
                flag = " ".join(request.argv((option,)))
                msg = f"{_SIZED_BY_ITSELF}: leave out {flag}; -k and -x choose among them"
                raise UsageError(msg)
        typed = request.with_defaults((TARGET,))[TARGET]
        sources = request[FROM_SOURCE]
        if sources and typed:
            msg = f"--from-source says what is looked through: leave out {typed}"
            raise UsageError(msg)
        if "" in sources:
            msg = '--from-source "" names nothing: name a folder, a file or a package (here: .)'
            raise UsageError(msg)
        paths = [each for each in sources if Path(each).exists()]
        for each in (*paths, *([typed] if typed else [])):
            if Path(each).resolve().is_relative_to(_HIDDEN):
                msg = f"{each}: workers that run it have a {_HIDDEN} of their own; put it elsewhere"
                raise UsageError(msg)
        if sources:
            return {_SOURCES: "\n".join(map(_from_anywhere, sources))}
        return {"target": str(Path(typed).resolve())} if typed else {}

    def import_folders(self, opening: Mapping[str, str]) -> tuple[str, ...] | None:
        """Return that only importing a file tells."""
        del opening
        return None

    def measured_files(self, opening: Mapping[str, str]) -> tuple[Path, ...]:
        """Return the files with test cases, or those of projects that classes are looked for in."""
        from dynamometer.models.parity.corpus import files_of
        from dynamometer.models.parity.source import files

        if _SOURCES in opening:
            projects = [each for each in opening[_SOURCES].split("\n") if Path(each).exists()]
            return tuple(found.path for each in projects for found in files.files_of(each))
        return tuple(files_of(Path(opening["target"])))

    def script(self, opening: Mapping[str, str], case: Case, seed: int) -> str | None:
        """Return the class of a test case with what it needs, in eager and compiled."""
        from dynamometer.models.parity.corpus import case_of
        from dynamometer.models.parity.standalone import script_of

        if _SOURCES in opening:
            msg = (
                "the run wrote this module as a test case to its folder corpus: run that, as"
                " `./parity.py RUN/corpus`, and take --script of that run"
            )
            raise ValueError(msg)
        found = case_of(opening["target"], case.model)
        if found is None:
            msg = f"{opening['target']} holds no test case {case.model} any more"
            raise ValueError(msg)
        return script_of(found, case, seed)

    def read_ahead(self, opening: Mapping[str, str], spec: ModelSpec) -> None:
        """Read the list of the file that a test case is in, and compile the file."""
        from dynamometer.models.parity.compiling import compile_ahead
        from dynamometer.models.parity.corpus import file_to_read_ahead

        if "target" in opening and (file := file_to_read_ahead(opening["target"], spec.name)):
            compile_ahead(file)

    def open(self, opening: Mapping[str, str]) -> Suite:
        """Return the test cases; nothing is read yet, and nothing of them imported."""
        from dynamometer.models.parity.corpus import Corpus
        from dynamometer.models.parity.source.suite import ModulesOfProjects

        if _SOURCES in opening:
            return ModulesOfProjects(opening[_SOURCES].split("\n"))
        return Corpus(opening.get("target", ""))


SUITE = ParityCorpus()
