"""Which statements of a file its names need."""

from __future__ import annotations

import ast
import sys

import pytest

from dynamometer.models.parity.needed import guarded, names_used, needed


def kept(text: str, *wanted: str) -> list[str]:
    """Return the lines of a file, of one statement each, that names need."""
    return [ast.unparse(each) for each in needed(ast.parse(text).body, wanted)]


@pytest.mark.parametrize(
    "line",
    [
        "x = 2",
        "x: int = 2",
        "x += 1",
        "x['a'] = 1",
        "x['a']['b'] += 1",
        "x.a.b = 1",
        "del x['a']",
        "(x, other) = (1, 2)",
        "x.append(1)",
        "x.a['b'].update(c=1)",
        "put(1, x)",
        "put(*x)",
        "put(into=x.a)",
        "setattr(x, 'a', 1)",
        "(x := 2)",
        "import a.b as x",
        "from a import b as x",
        "from a import *",
        "import x.y",
        "if other:\n    x = 1",
        "for x in other:\n    pass",
        "for each in other:\n    x[each] = 1",
        "while other:\n    x.append(1)",
        "with other as x:\n    pass",
        "with other:\n    x.append(1)",
        "try:\n    from a import x\nexcept ImportError:\n    from b import x",
        "try:\n    pass\nfinally:\n    x.append(1)",
        "match other:\n    case [x]:\n        pass",
        "def x():\n    pass",
        "async def x():\n    pass",
        "class x:\n    pass",
        "@x.register()\nclass Other:\n    pass",
        "@x\ndef other():\n    pass",
        "import sys\nsys.path.insert(0, 'here')",
        "import torch\ntorch.backends.cudnn.benchmark = True",
        "from torch import nn\nnn.Module.extra = 1",
        "import torch.nn as nn\nnn.manual_seed(0)",
        "last = x.pop()",
        "if x.a.setdefault(1, 2):\n    pass",
        "_ = setattr(x, 'a', 1)",
        "assert setattr(x.a, 'b', 1) is None",
        "import torch\nbefore = torch.set_default_dtype(torch.float64)",
        "import torch.nn.functional as F\n_ = setattr(F, 'relu', abs)",
        "def put():\n    global x\n    x = 1\n_ = put()",
    ],
)
def test_what_defines_or_changes_a_name_is_needed(line: str) -> None:
    """Wherever it stands in a statement that runs when a file is imported."""
    assert kept(f"x = []\n{line}", "x", "nn", "torch") == ["x = []", *_one_each(line)]


def _one_each(text: str) -> list[str]:
    return [ast.unparse(each) for each in ast.parse(text).body]


@pytest.mark.parametrize(
    "line",
    [
        "other['a'] = x",
        "other = x",
        "print(x)",
        "put(other, 1)",
        "put(make(x))",
        "x.a",
        "assert x",
        "def other():\n    x = 1\n    x.append(1)",
        "class Other:\n    x = 1",
        "[x for x in other]",
        "other = lambda: x.append(1)",
        "if __name__ == '__main__':\n    x = 1",
        "from __future__ import annotations",
        "import other",
    ],
)
def test_what_only_speaks_of_a_name_is_not(line: str) -> None:
    """Nor what does so in a function, which nobody needs, or in a program alone."""
    assert kept(f"x = []\n{line}", "x") == ["x = []"]


def test_needs_are_followed() -> None:
    """Names of functions, of their defaults and decorators; not those that are their own."""
    text = """
import used, unused, decorating
CONFIG = {}
CONFIG['a'] = used.value
local = unused.value
def helper(local, default=CONFIG):
    own = local
    return own
own = unused.other
@decorating.this(SETTING)
class Net:
    def forward(self, x):
        return helper(x)
SETTING = 1
"""
    assert kept(text, "Net") == _one_each("""
import used
import decorating
CONFIG = {}
CONFIG['a'] = used.value
def helper(local, default=CONFIG):
    own = local
    return own
@decorating.this(SETTING)
class Net:
    def forward(self, x):
        return helper(x)
SETTING = 1
""")


TABLE = """
TABLE = {}
NUMBER = 1
def register(kind):
    TABLE[kind.__name__] = kind
    return kind
@register
class One:
    number = NUMBER
class Two: ...
register(Two)
class Three: ...
def start():
    global later
    later = Three
start()
def look_up(name):
    return TABLE[name]
"""


def test_tables_hold_what_registers() -> None:
    """Where they are looked into; who is put into one does not need the others."""
    looking = kept(TABLE, "look_up")
    assert len(looking) == 7
    assert "register(Two)" in looking
    assert "start()" not in looking
    assert kept(TABLE, "One") == _one_each("\n".join(TABLE.splitlines()[:9]))
    assert [each.split("(")[0] for each in kept(TABLE, "Two")] == [
        "TABLE = {}",
        "def register",
        "class Two:\n    ...",
        "register",
    ]
    assert kept(TABLE, "later")[-1] == "start()"


def test_what_is_no_program_s_is_run_otherwise() -> None:
    """The other branch of what asks for the name of a file."""
    text = "if __name__ == '__main__':\n    x = 1\nelse:\n    x = 2"
    assert kept(text, "x") == ["x = 2"]


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("import a as b", "b = Absent('b')"),
        ("from a import b as c", "c = Absent('c')"),
        ("from .a import b", "b = Absent('b')"),
        ("from torch._six import PY3", "PY3 = Absent('PY3')"),
        ("from torch.autograd.gradcheck import gone", "gone = Absent('gone')"),
        ("from a import *", "pass"),
        ("import math", None),
        ("import torch", None),
        ("from torch.nn import functional", None),
        ("x = 1", None),
    ],
)
def test_what_may_not_be_there_is_stood_in_for(line: str, instead: str | None) -> None:
    """But for what Python or torch always has."""
    text = ast.unparse(guarded(ast.parse(line).body[0], "Absent"))
    if instead is not None:
        line = f"try:\n    {line}\nexcept ImportError:\n    {instead}"
    assert text == line


def test_what_has_moved_is_found_where_it_is() -> None:
    """As in a run."""
    found = [
        ast.unparse(guarded(each, "Absent"))
        for each in ast.parse("from collections import Mapping\nfrom torch._six import inf").body
    ]
    assert found == ["from collections.abc import Mapping", "inf = float('inf')"]


def test_a_package_may_be_there_without_a_module() -> None:
    """What stands in for the module must not take the package's place."""
    text = ast.unparse(guarded(ast.parse("import json.gone").body[0], "Absent"))
    made: dict[str, object] = {"Absent": lambda name: name}
    exec(text, made)
    assert made["json"] is sys.modules["json"]
    exec(ast.unparse(guarded(ast.parse("import no_such.gone").body[0], "Absent")), made)
    assert made["no_such"] == "no_such"


def test_names_are_those_that_python_looks_up() -> None:
    """In the file; not those of a function's own."""
    found = ast.parse("lambda a: [a + b for c in d] + [e := 1]", mode="eval").body
    assert names_used(found) == {"b", "d"}
