"""Which test cases a corpus holds, read from the text of its files; only workers import them.

A file has, at its end, a list `TESTCASES` of tuples: a class of `nn.Module`, a function that
returns the positional and keyword arguments it is made with, and one that returns those of its
forward. What follows in a tuple is not looked at. The format is that of
jansel/pytorch-jit-paritybench.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.models.parity.roots import provided_by, roots_of
from dynamometer.results.store.bounds import model_name
from dynamometer.results.store.reading import BAD_PYTHON, opened
from dynamometer.results.values.cases import ModelSpec
from dynamometer.results.values.parity import FORM, NO_TEST_CASE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.results.values.cases import Case

NAME = "parity"
_LIST = re.compile(r"^TESTCASES *(?::[^=\n]*)?=(?!=)", re.MULTILINE)
_CHANGES = frozenset(("append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"))
"""Methods after which a list is not what its text says."""
_MOST_STARTS = 10
"""Of a list, from the last, that are tried: each is parsed to the end of its file."""
_NO_CLASS = "TESTCASES"
"""In the place of a class' name, where what stands for it can't be read."""
_PREFIX = "test_"
_LONGEST = 1 << 20
"""Bytes of a file that is read for several workers at once; a larger one each reads itself."""
_FILES = 4
"""Whose lists are kept: cases of one file mostly follow each other."""
_MOST_PROJECT_BYTES = 100
"""Of its name, which what a test case is called begins with however long that is."""
_GENERATED = "generated"
"""Where a checkout of the published corpus keeps its files."""


@dataclass(frozen=True)
class CorpusCase:
    """One test case of a file.

    Attributes:
        file: that it is in.
        index: of it in the file's list.
        class_name: of the module.
        fault: why its file's list can't be read, where it stands for all of that.
        listed: how many entries the text of the list shows.
        line: that its first function begins in, where that is a lambda: by it an entry is known
            that the file has moved by then.
    """

    file: Path
    index: int
    class_name: str
    fault: str | None = None
    listed: int | None = None
    line: int | None = None

    @property
    def project(self) -> str:
        """The file's name, which stands for the project that its modules were taken from."""
        return project_of(self.file)


class Corpus:
    """The test cases of some files; a worker, which loads one of them, reads the one file it is in.

    Attributes:
        target: the folder, or one file.
    """

    def __init__(self, target: str) -> None:
        """Read nothing yet."""
        self.target = target

    def specs(self) -> list[ModelSpec]:
        """Describe each test case, by its file's text alone."""
        return [
            ModelSpec(
                suite=NAME,
                name=name,
                task="module of a project",
                origin=case.project,
                build="corpus:Corpus",
            )
            for name, case in cases_of(self.target).items()
        ]

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import what nearly every file imports, but for what a file's own root holds."""
        if specs:
            from dynamometer.models.parity.importing import preload

            preload(self._provided())

    def _provided(self) -> set[str]:
        roots: set[Path] = set()
        for file in files_of(Path(self.target)):
            with suppress(OSError):  # whoever loads a case of it says so
                roots.update(roots_of(file))
        return {name for root in roots for name in provided_by(root)}

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Import the file of a test case, and make the module with its inputs.

        Raises:
            LookupError: the file holds no such test case any more.
            SkippedError: the file's list, or the entry, can't be read; or the class has no forward.
        """
        from dynamometer.common.interfaces.outcome import SkippedError
        from dynamometer.models.parity.importing import load

        del case
        found = case_of(self.target, spec.name)
        if found is None:
            msg = f"the corpus holds no test case {spec.name} any more"
            raise LookupError(msg)
        if found.fault is not None:
            msg = f"{NO_TEST_CASE}: {found.fault}"
            raise SkippedError(msg)
        return load(found)


def cases_of(target: str) -> dict[str, CorpusCase]:
    """Read the test cases of a folder, or of one file, by the names they are selected by.

    Of a folder, a file whose list can't be read costs the others nothing: one case stands for it.

    Raises:
        ValueError: there are none that can be read; says what to do.
    """
    if not target:
        msg = (
            "name a folder of files with test cases, such as examples/parity: ./parity.py DIR, or"
            " dynamometer run parity DIR"
        )
        raise ValueError(msg)
    if not Path(target).exists():
        msg = f"there is no folder or file {target}"
        raise ValueError(msg)
    found = [case for file in files_of(Path(target)) for case in _readable(file)]
    faults = [case.fault for case in found if case.fault is not None]
    if faults and len(faults) == len(found):
        raise ValueError(faults[0])
    if not found:
        msg = (
            f"{target} holds no test cases: no file of it has a list TESTCASES (a checkout of"
            " jansel/pytorch-jit-paritybench has such files in its folder generated)"
        )
        raise ValueError(msg)
    return dict(_named(found))


def case_of(target: str, name: str) -> CorpusCase | None:
    """Read the test case of a name, from the files alone that may hold it."""
    return _case_in(_files(target, name), name)


def file_to_read_ahead(target: str, name: str) -> Path | None:
    """Return the file of a test case, if its list may be read without a worker's limits.

    Its list is read for that, and kept for whoever asks for a test case of it.
    """
    files = _files(target, name)
    if any(not each.is_file() or each.stat().st_size > _LONGEST for each in files):
        return None
    found = _case_in(files, name)
    return found.file if found and found.fault is None else None


def _files(target: str, name: str) -> list[Path]:
    """Look through the folder, which takes a while where it holds thousands."""
    return [file for file in files_of(Path(target)) if name.startswith(f"{project_of(file)}.")]


def _case_in(files: Iterable[Path], name: str) -> CorpusCase | None:
    return dict(_named(case for file in files for case in _readable(file))).get(name)


def project_of(file: Path) -> str:
    """Return the name of the project that a file's modules were taken from.

    It has no dots, which end it in the name of a test case.
    """
    name = (file.stem.removeprefix(_PREFIX) or file.stem).replace(".", "_")
    return model_name(name, _MOST_PROJECT_BYTES)


def files_of(path: Path) -> list[Path]:
    """Return the Python files of a folder, sorted; a file stands for itself."""
    if not path.is_dir():
        return [path] if path.is_file() else []
    pattern = f"{_PREFIX}*.py"
    return sorted(path.glob(pattern)) or sorted((path / _GENERATED).glob(pattern))


def holds_test_cases(file: Path) -> bool:
    """Return whether a file has a list of test cases."""
    return file.suffix == ".py" and _LIST.search(_text(file)) is not None


def test_cases(file: Path) -> list[CorpusCase]:
    """Read the list of a file; nothing of it is run.

    Raises:
        ValueError: it is no list of tuples that begin with the name of a class; says where.
    """
    text = _text(file)
    starts = [each.start() for each in _LIST.finditer(text)]
    if not starts:
        return []
    start, (assigned, *rest) = _last_list(file, text, starts)
    line = _line_of(text, start)
    if change := _change_in(rest):
        msg = (
            f"{file}, line {line + change.lineno - 1}: TESTCASES is added to, or changed; only what"
            " the list itself holds is read"
        )
        raise ValueError(msg)
    entries = assigned.value if isinstance(assigned, (ast.Assign, ast.AnnAssign)) else None
    if not isinstance(entries, (ast.List, ast.Tuple)):
        msg = f"{file}, line {line}: TESTCASES is no list: give (Class, init_args, forward_args)"
        raise ValueError(msg)  # noqa: TRY004  of the file, not of a type that a caller gave
    listed = len(entries.elts)
    found = (_case(file, line, index, entry) for index, entry in enumerate(entries.elts))
    return [replace(each, listed=listed) for each in found]


def _last_list(file: Path, text: str, starts: Sequence[int]) -> tuple[int, list[ast.stmt]]:
    """Return where the last list begins that is one, not a part of a text, and parse from there."""
    faults = []
    for start in starts[: -_MOST_STARTS - 1 : -1]:
        try:
            # What stands before is a project's code, a hundred times as long, and need not be
            # parsed.
            return start, ast.parse(text[start:]).body
        except BAD_PYTHON as error:
            faults.append(error)
    line = _line_of(text, starts[-1])
    msg = f"{file}, from line {line}: the list of test cases is no Python: {faults[0]}"
    raise ValueError(msg) from faults[0]


def _change_in(statements: Iterable[ast.stmt]) -> ast.expr | None:
    """Return what changes the list, wherever it stands and whether or not it is ever run."""
    for each in chain.from_iterable(map(ast.walk, statements)):
        match each:
            case (
                ast.Name(id="TESTCASES", ctx=ast.Store() | ast.Del())
                | ast.Subscript(value=ast.Name(id="TESTCASES"), ctx=ast.Store() | ast.Del())
            ):
                return each
            case ast.Attribute(value=ast.Name(id="TESTCASES"), attr=name) if name in _CHANGES:
                return each
    return None


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


@lru_cache(maxsize=_FILES)
def _test_cases(file: Path, *version: int) -> tuple[CorpusCase, ...]:
    del version
    return tuple(test_cases(file))


def _readable(file: Path) -> Sequence[CorpusCase]:
    try:
        found = file.stat()
        return _test_cases(file, found.st_mtime_ns, found.st_size)
    except OSError as error:
        return [CorpusCase(file, 0, _NO_CLASS, fault=f"{file} can't be read: {error.strerror}")]
    except ValueError as error:
        return [CorpusCase(file, 0, _NO_CLASS, fault=str(error))]


def _case(file: Path, first_line: int, index: int, entry: ast.expr) -> CorpusCase:
    """Read one entry; one that can't be read costs the others nothing."""
    match entry:
        case ast.Tuple(elts=[ast.Name(id=name), ast.Lambda(lineno=number), _, *_]):
            return CorpusCase(file, index, name, line=first_line + number - 1)
        case ast.Tuple(elts=[ast.Name(id=name), _, _, *_]):
            return CorpusCase(file, index, name)
    line = first_line + entry.lineno - 1
    return CorpusCase(file, index, _NO_CLASS, f"{file}, line {line}: {FORM}")


def _named(cases: Iterable[CorpusCase]) -> Iterator[tuple[str, CorpusCase]]:
    """Name each test case by its project and class; a class' further ones are numbered."""
    seen: Counter[str] = Counter()
    for case in cases:
        name = f"{case.project}.{case.class_name}"
        seen[name] += 1
        yield model_name(f"{name}.{seen[name]}" if seen[name] > 1 else name), case


def _text(file: Path) -> str:
    """Return a file's text; what is not UTF-8 in it is replaced.

    Raises:
        ValueError: it can't be read.
    """
    try:
        with TextIOWrapper(opened(file), encoding="utf-8-sig", errors="replace") as text:
            return text.read()
    except OSError as error:
        msg = f"{file} can't be read: {error.strerror}"
        raise ValueError(msg) from error
