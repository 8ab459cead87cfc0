"""Modules of projects: found in their text, and arguments that are tried for them."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
import torch

from dynamometer.common.interfaces.outcome import SkippedError
from dynamometer.models.parity.source.arguments import (
    Arguments,
    Hints,
    Parameter,
    calls_in,
    combinations,
    examples_of,
    guesses_of,
    inputs_in,
    sizes_in,
    words_in,
)
from dynamometer.models.parity.source.discovery import found_classes
from dynamometer.models.parity.source.suite import ModulesOfProjects
from dynamometer.models.parity.source.trials import load
from dynamometer.results.values.parity import (
    NO_FORWARD,
    NOT_A_MODULE,
    NOT_BUILT,
    NOT_IMPORTED,
    NOT_RUN,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LAYERS = '''
import torch
from torch import nn
from torch.nn import Linear as Dense

class Plain: ...
class Own(nn.Module):
    def __init__(self, width, heads=2):
        super().__init__()
        self.layer = nn.Linear(width, width)
    def forward(self, x):
        return self.layer(x)
class Derived(Own): ...
class Imported(Dense):
    def __init__(self):
        super().__init__(3, 3)
class Empty(nn.Module): ...
class Picky(nn.Module):
    def __init__(self, mode):
        super().__init__()
        if mode not in ("rows", "columns"):
            raise ValueError(f"mode must be 'rows' or 'columns', not {mode}")
    def forward(self, x, y):
        return x + y
class Dictionary(nn.Module):
    def forward(self, features):
        return [value * 2 for value in features.values()]
class Wide(nn.Module):
    def forward(self, x):
        if x.shape[-1] != 37:
            raise RuntimeError(f"expected 37 features, got {x.shape[-1]}")
        return x
class Variadic(nn.Module):
    def forward(self, *inputs):
        return inputs[0] + 1
class Divides(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.GroupNorm(24, width)
    def forward(self, x):
        return self.layer(x)
class Unbuilt(nn.Module):
    def __init__(self, anything):
        raise RuntimeError("no weights here")
    def forward(self, x): ...
class Uncalled(nn.Module):
    def forward(self, x):
        raise RuntimeError("no such input")
class ExitsOnce(nn.Module):
    """Exits where it is not told the truth.

    >>> ExitsOnce(key="wrong")
    >>> ExitsOnce(key="secret")
    """
    def __init__(self, key):
        super().__init__()
        if key != "secret":
            raise SystemExit(2)
    def forward(self, x):
        if x.dim() != 2:
            raise SystemExit("two dimensions, please")
        return x
class Interrupts(nn.Module):
    def __init__(self, key):
        raise KeyboardInterrupt
    def forward(self, x): ...
class SaysMore(nn.Module):
    """Its example's tensor is more than sizes, and doesn't fit.

    >>> SaysMore()(torch.rand([2, 3], requires_grad=True))
    """
    def forward(self, x):
        if x.shape[-1] != 5:
            raise Mute
        return x
class Mute(Exception):
    def __str__(self):
        raise RuntimeError("it says nothing")
class Bare(nn.Linear):
    def __init__(self):
        nn.Module.__init__(self)
    def forward(self, x):
        return x + 1
class Example(nn.Module):
    """Takes what the example says.

    >>> net = Example("secret", size=7)
    >>> net(torch.rand([5, 7]))
    """
    def __init__(self, key, size):
        super().__init__()
        assert key == "secret"
        self.layer = nn.Linear(size, 1)
    def forward(self, x):
        return self.layer(x)
'''


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A package of two files, beside what is no part of it."""
    package = tmp_path / "some_project"
    (package / "tests").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "layers.py").write_text(LAYERS)
    (package / "more.py").write_text(
        "from some_project.layers import Own\nimport nowhere\nclass Further(Own): ...\n"
    )
    (package / "broken.py").write_text("class (")
    (package / "tests" / "test_it.py").write_text("from torch import nn\nclass T(nn.Module): ...")
    path = [*sys.path]
    yield package
    sys.path[:] = path
    for name in [name for name in sys.modules if name.partition(".")[0] == "some_project"]:
        del sys.modules[name]


def test_classes_of_modules_are_found_without_importing(project: Path) -> None:
    """Also those that derive from others, in other files; not those of tests."""
    found = found_classes([str(project)])
    names = {name.rpartition(".")[2] for name in found}
    assert {"Own", "Derived", "Imported", "Empty", "Further"} < names
    assert not {"Plain", "T"} & names
    own = found["some_project.layers.Own"]
    assert (own.module, own.root) == ("some_project.layers", str(project.parent))
    assert "some_project" not in sys.modules
    one_file = found_classes([str(project / "layers.py")])
    assert set(one_file) == {name for name in found if ".layers." in name}


def test_installed_packages_are_found_by_name() -> None:
    """As a whole, or a part of one."""
    found = found_classes(["torchvision.ops"])
    assert found["torchvision.ops.misc.SqueezeExcitation"].root is None
    assert all(name.startswith("torchvision.ops.") for name in found)
    assert list(found_classes(["torchvision.ops.misc"])) == [
        name for name in found if name.startswith("torchvision.ops.misc.")
    ]


@pytest.mark.parametrize(
    ("target", "said"),
    [("no_such_thing", "neither a path nor an installed package"), ("json", "holds no class")],
)
def test_what_holds_no_modules_is_named(target: str, said: str) -> None:
    """Before anything is started."""
    with pytest.raises(ValueError, match=said):
        ModulesOfProjects([target]).specs()


@pytest.mark.parametrize(
    ("class_name", "init_args", "forward_args"),
    [
        ("Own", "([], {'width': 16})", "([], {'x': torch.rand([4, 8, 16])})"),
        ("Derived", "([], {'width': 16})", "([], {'x': torch.rand([4, 8, 16])})"),
        ("Imported", "([], {})", "([], {'input': torch.rand([4, 8, 3])})"),
        ("Picky", "([], {'mode': 'rows'})", None),
        ("Dictionary", "([], {})", None),
        ("Wide", "([], {})", None),
        ("Variadic", "([], {})", "([torch.rand([4, 16, 16, 16])], {})"),
        ("Divides", "([], {'width': 24})", None),
        ("ExitsOnce", "([], {'key': 'secret'})", "([], {'x': torch.rand([16, 16])})"),
        ("Bare", "([], {})", None),
        ("Example", "(['secret'], {'size': 7})", "([], {'x': torch.rand([5, 7])})"),
    ],
)
def test_arguments_are_found(
    project: Path, class_name: str, init_args: str, forward_args: str | None
) -> None:
    """What was found is what a corpus makes the same module of."""
    found = found_classes([str(project)])[f"some_project.layers.{class_name}"]
    torch.manual_seed(0)
    loaded = load(found)
    case = loaded.entry
    assert case is not None
    assert case.init_args == init_args
    assert forward_args in {None, case.forward_args}
    loaded.module(*loaded.args, **loaded.kwargs)
    torch.manual_seed(0)
    args, kwargs = eval(case.init_args)
    again = getattr(sys.modules[found.module], class_name)(*args, **kwargs)
    for mine, own in zip(again.parameters(), loaded.module.parameters(), strict=True):
        assert torch.equal(mine, own)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("layers.Empty", f"^{NO_FORWARD}$"),
        ("layers.Unbuilt", f"^{NOT_BUILT}: RuntimeError: no weights here$"),
        ("layers.SaysMore", f"^{NOT_RUN}: Mute: its text can't be had"),
        ("layers.Uncalled", f"^{NOT_RUN}: RuntimeError: no such input$"),
        ("more.Further", f"^{NOT_IMPORTED}: ModuleNotFoundError: No module named 'nowhere'$"),
    ],
)
def test_how_far_the_rest_came_is_said(project: Path, name: str, reason: str) -> None:
    """With the first error of that stage."""
    found = found_classes([str(project)])[f"some_project.{name}"]
    with pytest.raises(SkippedError, match=reason):
        load(found)


def test_a_class_that_is_none_is_said(project: Path) -> None:
    """Only importing it tells."""
    (project / "odd.py").write_text("def made(): return object\nclass Seems(made()): ...\n")
    found = found_classes([str(project)])["some_project.odd.Seems"]
    with pytest.raises(SkippedError, match=f"^{NOT_A_MODULE}$"):
        load(found)


def test_how_far_a_class_came_is_told_before_each_stage(project: Path) -> None:
    """So that it is known where the process ends; an interruption is no error to search on with."""
    found = found_classes([str(project)])
    for name, ended, stages in (
        ("more.Further", SkippedError, [NOT_IMPORTED]),
        ("layers.Unbuilt", SkippedError, [NOT_IMPORTED, NOT_BUILT]),
        ("layers.Interrupts", KeyboardInterrupt, [NOT_IMPORTED, NOT_BUILT]),
        ("layers.Uncalled", SkippedError, [NOT_IMPORTED, NOT_BUILT, NOT_RUN]),
        ("layers.Wide", None, [NOT_IMPORTED, NOT_BUILT, NOT_RUN, ""]),
        ("broken.CLASSES", SkippedError, []),
    ):
        told: list[str] = []
        with pytest.raises(ended) if ended else nullcontext():
            load(found[f"some_project.{name}"], told.append)
        assert list(dict.fromkeys(told)) == stages


def test_a_program_is_imported_as_if_it_were_run_alone(project: Path) -> None:
    """What parses arguments finds none; what wants some ends, and that is told."""
    head = "import argparse\nfrom torch import nn\nparser = argparse.ArgumentParser()\n"
    for name, wants in (("free", "--n"), ("wants", "n")):
        (project / f"{name}.py").write_text(
            f"{head}parser.add_argument({wants!r})\nargs = parser.parse_args()\n"
            "class Net(nn.Module):\n    def forward(self, x): return x\n"
        )
    sys.argv[:] = ["server", "--what-is-this"]
    found = found_classes([str(project)])
    load(found["some_project.free.Net"])
    assert sys.argv == [str(project / "free.py")]
    with pytest.raises(SkippedError, match=f"^{NOT_IMPORTED}: SystemExit: 2$"):
        load(found["some_project.wants.Net"])


def test_a_project_is_imported_from_its_own_folders(tmp_path: Path) -> None:
    """Its package's, and the project's or the file's own; never from what is loaded of its name."""
    package = tmp_path / "src" / "some_project"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    head = "from torch import nn\nclass Net(nn.Module):\n    def forward(self, x): return x\n"
    (package / "net.py").write_text(f"import beside_it\nfrom some_project import __path__\n{head}")
    (tmp_path / "beside_it.py").touch()
    (tmp_path / "random.py").write_text(head)
    sys.modules["some_project"] = ModuleType("some_project")
    found = {each.name_with(""): each for each in found_classes([str(tmp_path)]).values()}
    try:
        entry = load(found["some_project.net.Net"]).entry
    finally:
        for name in ("some_project", "some_project.net", "beside_it"):
            sys.modules.pop(name, None)
    assert entry is not None
    assert (entry.root, entry.beside) == (str(tmp_path / "src"), str(tmp_path))
    with pytest.raises(SkippedError, match=r"random is another one here, not that of .*: rename"):
        load(found["random.Net"])


@pytest.mark.parametrize(
    ("name", "annotation", "first"),
    [
        ("num_heads", "int", "4"),
        ("kernel_size", "", "3"),
        ("dropout", "float", "0.1"),
        ("bias", "bool", "False"),
        ("norm_layer", "Callable[..., nn.Module]", "nn.ReLU"),
        ("dims", "List[int]", "[16, 16]"),
        ("shape", "Tuple[int, int]", "(16, 16)"),
        ("kind", "Literal['a', 'b']", "'a'"),
        ("config", "", "_mock_config()"),
        ("anything", "", "16"),
    ],
)
def test_a_parameter_is_guessed_by_type_and_name(name: str, annotation: str, first: str) -> None:
    """Then by what else its name may mean."""
    assert guesses_of(Parameter(name, annotation))[0] == first


def test_words_of_errors_are_tried_first_where_words_go() -> None:
    """And nowhere else."""
    hints = Hints(["batch"], [31])
    assert guesses_of(Parameter("mode", "str"), hints)[0] == "'batch'"
    assert "'batch'" not in guesses_of(Parameter("width", "int"), hints)
    assert guesses_of(Parameter("width", "int"), hints)[:2] == ["16", "31"]


def test_calls_are_found_in_code() -> None:
    """Those whose arguments mean something by themselves."""
    text = "a = lib.Net(1, k=[2, 3])\nb = Net(x)\nc = Net(*y)\nd = Net(**z)\ne = Net(torch.float)\n"
    assert list(calls_in(text, "Net")) == [
        Arguments(("1",), {"k": "[2, 3]"}),
        Arguments(("torch.float",), {}),
    ]
    assert list(calls_in("Net(", "Net")) == []
    assert inputs_in("x = torch.randn(2, 3)\ny = torch.rand(n)") == ["torch.randn(2, 3)"]
    assert examples_of("Text.\n>>> a = f(\n...     1)\nmore") == "a = f(\n    1)"


def test_what_errors_speak_of() -> None:
    """Sizes that a dimension may have, and words."""
    assert sizes_in("expected 37 channels, got 16 (1e-05, 3.5, 99999)") == [37, 16]
    assert sizes_in("mat1 and mat2 can't be multiplied (64x12 and 48x9).") == [64, 12, 48, 9]
    assert words_in("must be 'batch' or \"row\", not `mean`") == ["batch", "row", "mean"]


def test_the_likeliest_combinations_come_first() -> None:
    """All first choices, then one changed, then two; each once."""
    found = list(combinations([["a", "b"], ["c", "d", "e"]]))
    assert found[0] == (0, 0)
    assert set(found[1:4]) == {(1, 0), (0, 1), (0, 2)}
    assert set(found[4:]) == {(1, 1), (1, 2)}
    assert len(found) == len(set(found))
    assert list(combinations([])) == [()]


def test_a_file_that_cant_be_imported_is_named(tmp_path: Path) -> None:
    """Its name is no name of a module."""
    (tmp_path / "my-net.py").write_text("from torch import nn\nclass Net(nn.Module): ...\n")
    with pytest.raises(ValueError, match=r"my-net is no name of a module; rename my-net\.py"):
        found_classes([str(tmp_path / "my-net.py")])
