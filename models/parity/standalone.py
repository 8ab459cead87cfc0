"""One test case of a corpus as a script that needs torch alone. Pure: from text to text."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.models.parity.main_of_script import MAIN, TEST, docstring_of, main_of
from dynamometer.models.parity.needed import guarded, names_bound, names_used, needed
from dynamometer.results.store.reading import BAD_PYTHON, file_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dynamometer.models.parity.corpus import CorpusCase
    from dynamometer.results.values.cases import Case

_HELPERS = "_paritybench_helpers"
_OFFERED = Path(__file__).with_name("offered.py")
"""What stands for that module."""
_OWN = Path(__file__).with_name("beside_eager.py")
_LIST = "TESTCASES"
_NOTE = re.compile(r"  # (noqa|type:).*")
"""To those who check this program, not to who reads a script."""
_ABSENT = "_Absent"
"""What of `beside_eager.py` stands for what can't be imported."""


def script_of(found: CorpusCase, case: Case, seed: int = 0) -> str:
    """Return a script that runs a test case in eager and compiled, and compares.

    It holds the class, and of the file's statements those that it needs.

    Args:
        found: the test case.
        case: how it is run; its first arm beside the baseline is what it is compiled with.
        seed: of random numbers.

    Raises:
        ValueError: the file can't be parsed, or has no such test case; or `torch.compile` can't be
            told to do what the arm does.
    """
    main = main_of(case, seed)
    try:
        tree = ast.parse(file_bytes(found.file))
        functions = _functions(tree, found.index)
        wanted = {"torch", found.class_name}.union(*map(names_used, functions))
        body = (*ast.parse(_OFFERED.read_text()).body, *tree.body)
        statements = needed(body, wanted, apart=(_HELPERS,))
        test = ", ".join((found.class_name, *map(ast.unparse, functions)))
        own = _own_part(main, f"{test}\n{_text(statements)}")
        definitions = _text(guarded(each, own.absent) for each in statements)
    except (OSError, *BAD_PYTHON) as error:
        msg = f"{found.file} can't be read as Python: {error}"
        raise ValueError(msg) from error
    if not functions:
        msg = f"{found.file} holds no test case {found.index}"
        raise ValueError(msg)
    parts = (
        docstring_of(case, found.class_name, found.file.stem),
        _text(each for each in tree.body if _is_future(each)),
        own.imports,
        own.stand_in if own.absent in definitions else "",
        definitions,
        f"{own.test} = ({test})",
        own.functions,
        f"if __name__ == '__main__':\n    {own.main}()",
    )
    return "\n\n\n".join(filter(None, parts)) + "\n"


@dataclass(frozen=True)
class _OwnPart:
    """What a script has beside its test case, by names that this doesn't have.

    Attributes:
        imports: what goes before the test case.
        stand_in: the class of what stands for what can't be imported; goes there, too.
        functions: what goes after it.
        absent: the name of that class.
        test: the name that the test case is to have.
        main: the name of the function that runs it.
    """

    imports: str
    stand_in: str
    functions: str
    absent: str
    test: str
    main: str


def _own_part(main: str, of_test: str) -> _OwnPart:
    """Return what a script has beside its test case.

    Args:
        main: the text of the function that runs it.
        of_test: the text of the test case.
    """
    source = _OWN.read_text()
    tree = ast.parse(source)
    names = names_bound(tree.body) | {TEST, MAIN}
    taken = set(re.findall(r"\w+", of_test))
    sign = ""
    while {f"{each}{sign}" for each in names} & taken:
        sign += "_"
    own = re.compile(rf"\b({'|'.join(names)})\b")

    def renamed(text: str) -> str:
        return own.sub(rf"\1{sign}", text)

    def written(statements: Iterable[ast.stmt]) -> str:
        parts = (ast.get_source_segment(source, each) or "" for each in statements)
        return renamed(_NOTE.sub("", "\n\n\n".join(parts)))

    chosen = needed(tree.body, {_ABSENT, *names_used(ast.parse(main))})
    imports = [each for each in chosen if isinstance(each, ast.Import | ast.ImportFrom)]
    stand_in = [each for each in chosen if getattr(each, "name", None) == _ABSENT]
    rest = [each for each in chosen if each not in (*imports, *stand_in)]
    return _OwnPart(
        imports=renamed(_text(imports)),
        stand_in=written(stand_in),
        functions=f"{written(rest)}\n\n\n{renamed(main)}",
        absent=renamed(_ABSENT),
        test=renamed(TEST),
        main=renamed(MAIN),
    )


def _functions(tree: ast.Module, index: int) -> tuple[ast.expr, ...]:
    """Return the functions of a test case: the constructor's arguments, and those of forward.

    None where there is no such test case.
    """
    for statement in reversed(tree.body):
        match statement:
            case (
                ast.Assign(
                    targets=[ast.Name(id=name)],
                    value=ast.List(elts=entries) | ast.Tuple(elts=entries),
                )
                | ast.AnnAssign(
                    target=ast.Name(id=name),
                    value=ast.List(elts=entries) | ast.Tuple(elts=entries),
                )
            ) if name == _LIST and index < len(entries):
                match entries[index]:
                    case ast.Tuple(elts=[_, init_args, forward_args, *_]):
                        return init_args, forward_args
    return ()


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _text(statements: Iterable[ast.stmt]) -> str:
    """Write statements, imports one below the other."""
    lines: list[str] = []
    was_import = False
    for each in statements:
        is_import = isinstance(each, ast.Import | ast.ImportFrom)
        lines += [""] * (bool(lines) and not (is_import and was_import))
        lines.append(ast.unparse(each))
        was_import = is_import
    return "\n".join(lines)
