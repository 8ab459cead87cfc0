from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import factories
import pytest
import torch
from torch import nn

from dynamometer.common.command_line import cli
from dynamometer.common.command_line.project import read_project
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.outcome import SkippedError
from dynamometer.common.interfaces.run_options import run_options
from dynamometer.common.interfaces.workload_options import ONLY
from dynamometer.models.suites.user_models import SUITE, ModelFile, as_loaded
from dynamometer.results.values.cases import Scale

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILE = """
raise RuntimeError("imported")

def first():
    ...

def second(depth=3, *, width=4):
    ...

def needs_something(depth):
    ...

def _private():
    ...

zoo = {"small": first, "large": second}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that must not be imported."""
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def names(target: str) -> list[str]:
    """Open a target and list it."""
    return [spec.name for spec in SUITE.open({"target": target}).specs()]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("", ["first", "second"]),
        ("::first", ["first"]),
        ("::_private", ["_private"]),
        ("::zoo", ["large", "small"]),
    ],
)
def test_a_file_is_read_not_imported(file: Path, name: str, found: list[str]) -> None:
    """Functions that can be called without arguments are models, and so are a dictionary's."""
    assert names(f"{file}{name}") == found


BRANCHES = """
import torch
if hasattr(torch, "no_such_device"):
    def elsewhere(): ...
else:
    def here(): return torch.nn.ReLU(), torch.ones(2)
try:
    import no_such_package
except ImportError:
    with torch.no_grad():
        def instead(batch_size=4): ...
if __name__ == "__main__":
    def scripts(): ...
if "__main__" == __name__:
    def scripts_too(): ...
"""


def test_functions_in_branches_are_models(tmp_path: Path) -> None:
    """But for those of a script alone; one whose condition doesn't hold is skipped."""
    path = tmp_path / f"branches_{tmp_path.name}.py"
    path.write_text(BRANCHES)
    file = ModelFile(path, "")
    specs = {spec.name: spec for spec in file.specs()}
    assert {name: spec.batch_size for name, spec in specs.items()} == {
        "elsewhere": {}, "here": {}, "instead": {"cpu": 4},
    }  # fmt: skip
    assert isinstance(
        file.load(specs["here"], factories.case("here", batch_size=None)).module, nn.ReLU
    )
    with pytest.raises(SkippedError, match=r"has no elsewhere once it is imported: .* condition"):
        file.load(specs["elsewhere"], factories.case("elsewhere", batch_size=None))


def test_a_dictionary_of_models_stands_for_the_file(tmp_path: Path) -> None:
    """Where there is `MODELS`, the functions are its helpers."""
    path = tmp_path / "mine.py"
    path.write_text("def build(): ...\nMODELS = {'a': build}\n")
    assert names(str(path)) == ["a"]


NEEDING = (
    "are no models, as they take arguments or are async: g (a, c), h (async);"
    " one without arguments can return what they make"
)

CALLED = """
def f(): ...
def set_up(): ...
def main(): ...
def test_f(): ...
def ready(): ...
set_up()
if ready():
    x = lambda: f()
"""
HELPERS = (
    "are taken for no models, as the file calls them itself, or by their names:"
    " set_up, main, test_f, and 1 more; to run one, name it: mine.py::set_up"
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "def f(): ...\ndef g(): ...\nMODELS = {'a': lambda: 1}",
            ["leaves out 2: f, g; to run one, name it: mine.py::f"],
        ),
        ("def f(): ...\nMODELS = {'a': f}", []),
        ("def f(): ...\ndef g(): return f()\nMODELS = {'a': g}", []),
        ("def f(): ...\ndef _g(): ...\nzoo = {'a': _g}", []),
        (
            "def f(): ...\ndef g(a, *, b=1, c): ...\nasync def h(): ...\ndef _i(a): ...\nx = _i(1)",
            [NEEDING],
        ),
        ("def f(a): ...\ndef f(): ...", []),
        ("def f(): ...\n@with_size(4)\ndef g(a): ...", []),
        ("def f(): ...\ndef g(a): ...\nMODELS = {'a': f}", []),
        (CALLED, [HELPERS]),
    ],
    ids=[
        "left out", "of the table", "helper", "other table", "needing arguments",
        "without at last", "decorated", "in need beside a table", "called",
    ],
)  # fmt: skip
def test_functions_that_are_not_run_are_told(
    tmp_path: Path,
    text: str,
    says: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether the models are listed or run, or one is asked for."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(text)
    for words, code in ((["--list"], 0), (["--only", "unknown"], 2)):
        assert cli.main(None, ["run", "mine.py", *words]) == code
        notes = capsys.readouterr().err.splitlines()
        said = [
            re.split("which it |functions that ", each)[-1]
            for each in notes
            if each.startswith("note")
        ]
        assert [each.replace(f"{tmp_path}/", "") for each in said] == says


def test_a_model_of_a_dictionary_is_named(tmp_path: Path) -> None:
    """As a function is. It comes first: one name is one model, however it is asked for."""
    path = tmp_path / f"named_{tmp_path.name}.py"
    path.write_text(
        "import torch\n"
        "def build(): return torch.nn.ReLU(), torch.ones(2)\n"
        "def two(): return torch.nn.Tanh(), torch.ones(2)\n"
        "MODELS = {'one': build, 'two': build, 'in words': build}\nzoo = {'other': build}\n"
    )
    assert names(f"{path}::in words") == ["in words"]
    assert names(f"{path}::MODELS") == ["in words", "one", "two"]
    for name, kind in (("one", nn.ReLU), ("two", nn.ReLU), ("build", nn.ReLU)):
        file = ModelFile(path, name)
        (spec,) = file.specs()
        assert spec.name == name
        assert isinstance(file.load(spec, factories.case(name, batch_size=None)).module, kind)
    with pytest.raises(ValueError, match=r"it has: build, in words, one, two, zoo$"):
        names(f"{path}::other")


def test_an_entry_that_is_no_function_is_described(tmp_path: Path) -> None:
    """A module could be called, but not without its inputs."""
    path = tmp_path / f"entries_{tmp_path.name}.py"
    path.write_text("import torch\nMODELS = {'net': torch.nn.Linear(2, 2), 'three': 3}\n")
    file = ModelFile(path, "")
    for spec, kind in zip(file.specs(), ("Linear", "int"), strict=True):
        says = rf"{spec.name} is of type {kind}: write a function that returns \(module, inputs\)"
        with pytest.raises(TypeError, match=says):
            file.load(spec, factories.case(spec.name, batch_size=None))


def test_batch_sizes_are_read(tmp_path: Path) -> None:
    """The default of `batch_size` is what a model runs at; other arguments are its own."""
    path = tmp_path / "mine.py"
    path.write_text(
        "def a(batch_size=4): ...\n"
        "def b(depth=2, *, batch_size=8): ...\n"
        "def c(batch_size=None): ...\n"
        "def d(depth=3): ...\n"
        "def _e(batch_size=5): ...\n"
        "zoo = {'e': _e, 'f': lambda: 1}\n"
    )

    def sizes(target: str) -> dict[str, dict[str, int]]:
        return {each.name: each.batch_size for each in SUITE.open({"target": target}).specs()}

    assert sizes(str(path)) == {"a": {"cpu": 4}, "b": {"cpu": 8}, "c": {}, "d": {}}
    assert sizes(f"{path}::zoo") == {"e": {"cpu": 5}, "f": {}}


@pytest.mark.parametrize(
    ("builder", "size"),
    [
        ("lambda batch_size=4: ...", 4),
        ("lambda depth, /, *, batch_size=4: ...", 4),
        ("lambda batch_size=None: ...", None),
        ("partial(build, depth=3)", 6),
        ("functools.partial(build, 3)", 6),
        ("partial(build, batch_size=8)", 8),
        ("partial(build, 3, 4)", None),
        ("partial(build, **{})", None),
        ("partial(build, *[3])", None),
        ("partial(lambda batch_size=4: ...)", 4),
        ("short", 6),
        ("other(build)", None),
        ("build()", None),
    ],
)
def test_batch_sizes_of_what_is_not_written_as_a_function(
    builder: str, size: int | None, tmp_path: Path
) -> None:
    """An entry's argument `batch_size` is found where it can still be given by name."""
    path = tmp_path / "mine.py"
    path.write_text(
        "def build(depth=2, batch_size=6): ...\n"
        "short = partial(build, depth=1)\n"
        f"MODELS = {{'a': {builder}}}\n"
    )
    (spec,) = ModelFile(path, "").specs()
    assert spec.batch_size == ({} if size is None else {"cpu": size})


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        (FILE, "third", "has no model 'third', .* it has: first, second, zoo"),
        ("def f(x): ...", "", r"no function without arguments .*\. f takes arguments \(x\)"),
        ("def f(x): ...", "f", r"f takes arguments \(x\): .*def example\(\): return f, "),
        ("def f(): ...\ndef f(x): ...", "f", r"f takes arguments \(x\)"),
        ("def f(a, /, x, z=1, *, y, w=2): ...", "f", r"f takes arguments \(a, x, y\)"),
        ("f = lambda: 1", "", "not written as `def`, .* taken from a dictionary: MODELS = "),
        ("f = lambda: 1", "f", r"not written as `def`, .* MODELS = \{\"f\": f\}, which takes"),
        ("class Net: ...", "Net", r"Net is a class: .*def example\(\): return Net\(\), "),
        ("class Net: ...\nclass _N: ...", "", r"no function .*\. Net is a class: a function makes"),
        ("async def f(): ...", "f", "f is async, so that calling it builds nothing"),
        ("def main(): ...", "", r"no function .* but main, as .*name it: .*mine\.py::main$"),
        ("def f(:", "", r"mine\.py can't be read: .* \(mine\.py, line 1\)"),
    ],
)
def test_what_is_not_there_is_a_value_error(
    tmp_path: Path, text: str, name: str, says: str
) -> None:
    """What is wrong is named, before anything runs."""
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(ValueError, match=says):
        SUITE.open({"target": f"{path}::{name}"})


def test_a_function_that_returns_no_model_need_not_be_one(tmp_path: Path) -> None:
    """Which is said where its name would tell; a dictionary's entry is none by accident."""
    path = tmp_path / f"helpers_{tmp_path.name}.py"
    path.write_text("def helper(): ...\nzoo = {'entry': helper}\n")
    for name, says in (("helper", r"NoneType; name it _helper if it is no model$"),
                       ("zoo", "NoneType$")):  # fmt: skip
        file = ModelFile(path, name)
        (spec,) = file.specs()
        with pytest.raises(TypeError, match=says):
            file.load(spec, factories.case(spec.name, batch_size=None))


def test_a_relative_import_is_advised_on(tmp_path: Path) -> None:
    """A file is run by itself, and is no part of a package."""
    path = tmp_path / f"relative_{tmp_path.name}.py"
    path.write_text("from .helper import x\ndef net(): ...\n")
    file = ModelFile(path, "")
    (spec,) = file.specs()
    with pytest.raises(ImportError, match=r"no known parent package: .* import `helper`"):
        file.load(spec, factories.case("net", batch_size=None))


@pytest.mark.parametrize(("rows", "count"), [("batch_size", 0), ("7", 1)])
def test_a_batch_size_that_no_input_has_is_noted(rows: str, count: int, tmp_path: Path) -> None:
    """Where one was asked for, and the function may take no heed of it."""
    path = tmp_path / f"sizes_{tmp_path.name}.py"
    path.write_text(
        "import torch\ndef net(batch_size=4):\n"
        f"    return torch.nn.ReLU(), {{'input': [torch.ones({rows}, 3)], 'flag': True}}\n"
    )
    file = ModelFile(path, "")
    (spec,) = file.specs()
    notes = file.load(spec, factories.case("net", batch_size=8)).notes
    assert len(notes) == count
    assert all("is the batch size, 8" in each for each in notes)
    assert file.load(spec, factories.case("net", batch_size=4)).notes == ()


def test_a_missing_file_is_a_value_error() -> None:
    """It is named."""
    with pytest.raises(ValueError, match=r"there is no file nowhere\.py"):
        SUITE.open({"target": "nowhere.py"})


X = torch.rand(2)


@pytest.mark.parametrize(
    ("inputs", "args", "kwargs"),
    [(X, (X,), {}), ((X, 3), (X, 3), {}), ([X], (X,), {}), ({"x": X}, (), {"x": X})],
)
def test_inputs_come_in_several_forms(
    inputs: object, args: tuple[object, ...], kwargs: dict[str, object]
) -> None:
    """One tensor, several by position, or some by name."""
    loaded = as_loaded((nn.ReLU(), inputs), "mine")
    assert (loaded.args, loaded.kwargs) == (args, kwargs)


def test_a_function_is_a_model() -> None:
    """It is called with the inputs, by position or by name."""

    def twice(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    loaded = as_loaded((twice, {"x": torch.ones(2)}), "mine")
    assert loaded.module(**loaded.kwargs).tolist() == [2.0, 2.0]


def test_a_list_of_inputs_is_as_many_calls() -> None:
    """One of tensors is the inputs of a single call."""
    one, two = torch.ones(1), torch.ones(2)
    assert len(as_loaded((nn.ReLU(), [(one,), (two,)]), "mine").calls) == 2
    assert len(as_loaded((nn.ReLU(), [{"input": one}, (two,)]), "mine").calls) == 2
    (call,) = as_loaded((nn.ReLU(), [one, two]), "mine").calls
    assert call.args == (one, two)


@pytest.mark.slow
def test_a_second_call_that_fails_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No size was to vary, so there is nothing to skip it for."""
    path = tmp_path / "mine.py"
    path.write_text(
        "import torch\ndef net():\n"
        "    return torch.nn.Linear(3, 3), [(torch.ones(2, 3),), (torch.ones(2, 4),)]\n"
    )
    words = ["run", str(path), "--accuracy", "--backend", "eager"]
    assert cli.main(None, [*words, "--output-dir", str(tmp_path / "runs")]) == 0
    assert "FAIL (eager) RuntimeError" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "says"),
    [(nn.ReLU(), "not ReLU"), ((nn.ReLU(), 3), r"not \(ReLU, int\)"), (None, "not NoneType")],
)
def test_what_is_no_model_is_described(value: object, says: str) -> None:
    """The message says what was returned instead."""
    with pytest.raises(TypeError, match=f"mine must return .module, inputs., {says}"):
        as_loaded(value, "mine")


def compiled(model: Any) -> Any:
    """Compile without Inductor."""
    return torch.compile(model, backend="eager")


def in_place(module: nn.Module) -> nn.Module:
    """Compile the calls of a module."""
    module.compile(backend="eager")
    return module


def its_forward(module: nn.Module) -> nn.Module:
    """Compile the method alone."""
    module.forward = compiled(module.forward)
    return module


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: compiled(torch.sin), "a model that is compiled already"),
        (lambda: compiled(lambda x: x), "a model that is compiled already"),
        (lambda: compiled(nn.ReLU()), "a model that is compiled already"),
        (lambda: in_place(nn.ReLU()), "a model that is compiled already"),
        (lambda: its_forward(nn.ReLU()), "a model that is compiled already"),
        (
            lambda: nn.Sequential(nn.ReLU(), compiled(nn.ReLU())),
            "a model whose module 1 is compiled already",
        ),
        (lambda: nn.Sequential(in_place(nn.ReLU())), "a model whose module 0 is compiled already"),
    ],
)
def test_what_is_compiled_already_is_no_eager(make: Callable[[], object], says: str) -> None:
    """It would be compared with itself."""
    with pytest.raises(TypeError, match=f"mine returns {says}.*return it without torch.compile"):
        as_loaded((make(), X), "mine")


@pytest.mark.parametrize("model", [nn.ReLU(), lambda x: x])
def test_what_is_not_to_be_compiled_is_eager(model: object) -> None:
    """What Dynamo leaves alone is wrapped by the same names as what it compiles."""
    assert as_loaded((torch.compiler.disable(model), X), "mine").args == (X,)


def test_a_folder_of_the_hub_is_said_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a run may be resumed from elsewhere; what is no folder is a name."""
    (tmp_path / "bert").mkdir()
    monkeypatch.chdir(tmp_path)
    assert SUITE.target("hub:bert") == f"hub:{tmp_path}/bert"
    assert SUITE.target("hub:some/model") == "hub:some/model"
    assert SUITE.target("hub:") == "hub:"


def test_a_project_says_what_to_run(tmp_path: Path) -> None:
    """Models and options come from the table, as one would type them."""
    path = tmp_path / "pyproject.toml"
    path.write_text(
        '[tool.dynamometer]\nmodels = "mine.py"\nbackend = ["eager", "inductor"]\n'
        "bfloat16 = true\nspawn = false\nreplicates = 5\n"
    )
    words = "mine.py --backend eager --backend inductor --bfloat16 --replicates 5"
    assert read_project(path, run_options()) == words.split()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_project(path, run_options()) == words.split()


@pytest.mark.parametrize("text", ["", "[tool]\n", "[tool.dynamometer]\n"])
def test_a_project_that_does_not_say_gets_an_example(tmp_path: Path, text: str) -> None:
    """The error shows what to write."""
    path = tmp_path / "pyproject.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match="say what to run"):
        read_project(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tool = 5\n", "tool is 5, where a table belongs"),
        ('[tool]\ndynamometer = "x"\n', "dynamometer is 'x', where a table belongs"),
        ("[tool.dynamometer]\nmodels = 3\n", "models of .* is 3: name one file or suite"),
        ('[tool.dynamometer]\nmodels = ["ok.py"]\n', r"models of .* is \['ok.py'\]: name one file"),
        ('[tool.dynamometer]\nmodels = "--help"\n', "models of .* is '--help': name one file"),
        ('[tool.dynamometer]\nmodels = ""\n', "models of .* is '': name one file"),
        ('[tool.dynamometer]\nmodels = "x"\n[tool.dynamometer.only]\na=1', "only of .* is a table"),
        ("\n[tool.\udcff]\n", "line 2 can't be read: byte 0xff is not UTF-8"),
    ],
)
def test_a_project_of_other_values_is_told_which(tmp_path: Path, text: str, says: str) -> None:
    """The error names the file, what stands there and what belongs there."""
    path = tmp_path / "pyproject.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UsageError, match=rf"pyproject\.toml.*{says}"):
        read_project(path)


@pytest.mark.parametrize(
    ("text", "line", "shown"),
    [
        ("MORE = {'b': build}\nMODELS = {'a': build, **MORE}", 3, "MORE"),
        ("KEY = 'b'\nMODELS = {'a': build, KEY: build}", 3, "KEY"),
        ("MODELS = {'a': build}\nMODELS['b'] = build", 3, "MODELS['b']"),
        ("MODELS = {'a': build}\nMODELS.update(b=build)", 3, "MODELS.update(b=build)"),
        ("MODELS = {'a': build}\nMODELS |= {'b': build}", 3, "MODELS |= {'b': build}"),
        ("MODELS = dict(a=build)", 2, "MODELS = dict(a=build)"),
        ("MODELS: dict = {f.__name__: f for f in (build,)}", 2, "MODELS: dict = "),
        ("if build:\n    MODELS = {'a': build}", 3, "MODELS = {'a': build}"),
        ("from others import MODELS", 2, "from others import MODELS"),
        ("MODELS = {}\ndef add(f):\n    MODELS[f.__name__] = f", 4, "MODELS[f.__name__]"),
        ("MODELS, N = {'a': build}, 2", 2, "MODELS, N = ({'a': build}, 2)"),
        ("M = MODELS = {'a': build}\nM['b'] = build", 3, "M['b']"),
        ("MODELS = {'a': build}\nM = MODELS\nM |= {'b': build}", 4, "M |= {'b': build}"),
        ("for MODELS in ({'a': build},): ...", 2, "MODELS"),
        ("with build() as MODELS: ...", 2, "MODELS"),
        ("from others import MODELS\nMODELS = {}", 2, "from others import MODELS"),
        ("from beside import *", 2, "from beside import *"),
        ("def fill():\n    global MODELS\n    MODELS = build()", 4, "MODELS = build()"),
        ("MODELS = {}\nif (MODELS := build()): ...", 3, "MODELS"),
    ],
)
def test_no_model_of_a_table_is_lost_silently(
    tmp_path: Path, text: str, line: int, shown: str
) -> None:
    """A table that its text doesn't show whole is refused, with the line that makes it so."""
    path = tmp_path / "mine.py"
    path.write_text(f"def build(): ...\n{text}\n")
    (tmp_path / "beside.py").write_text("MODELS = {}\n")
    with pytest.raises(ValueError, match=rf"mine\.py, line {line}: `{re.escape(shown)}"):
        ModelFile(path, "").specs()


def test_a_long_path_on_this_machine_is_a_name_as_well(tmp_path: Path) -> None:
    """Files are named after models; what two paths differ in is kept."""
    inside = "/".join(["deep"] * 60)
    found = [names(f"hub:{tmp_path}/{each}/{inside}")[0] for each in ("a", "b")]
    assert found[0] != found[1]
    assert all(len(each.encode()) < 200 and each.endswith("--deep") for each in found)
    assert names("hub:some/model") == ["some--model"]


@pytest.mark.parametrize(
    "text",
    [
        "MODELS = ['a']",
        "MODELS = None",
        "MODELS = ['a']\nMODELS += ['b']",
        "MODELS = ['a']\nMODELS[0] = 'b'",
        "def helper(MODELS): MODELS.pop('x')",
        "def helper(x):\n    MODELS = {x: 1}\n    MODELS.pop('x')",
        "NAMES = [MODELS for MODELS in 'ab']",
        "class Zoo:\n    MODELS = dict(a=1)",
        "from torch.nn import *",
    ],
)
def test_a_name_of_something_else_hides_no_function(tmp_path: Path, text: str) -> None:
    """`MODELS` is a table of models where it is a dictionary of the file itself."""
    path = tmp_path / "mine.py"
    path.write_text(f"def build(): ...\n{text}\n")
    assert [spec.name for spec in ModelFile(path, "").specs()] == ["build"]


def test_a_table_of_ones_own_stands_beside_what_is_imported(tmp_path: Path) -> None:
    """It comes after, so it is what the name is of."""
    path = tmp_path / "mine.py"
    path.write_text("from beside import *\ndef build(): ...\nMODELS = {'a': build}\n")
    (tmp_path / "beside.py").write_text("MODELS = {}\n")
    assert [spec.name for spec in ModelFile(path, "").specs()] == ["a"]


def test_a_table_may_have_a_type_and_be_read(tmp_path: Path) -> None:
    """Its functions aren't models beside it; what only reads it is no change."""
    path = tmp_path / "mine.py"
    path.write_text("def build(): ...\nMODELS: dict = {'a': build}\nNAMES = [*MODELS.keys()]\n")
    assert [spec.name for spec in ModelFile(path, "").specs()] == ["a"]


@pytest.mark.parametrize(
    ("entry", "takes"),
    [
        ("only = true", ONLY.metavar),
        ("only = ['net', true]", ONLY.metavar),
        ("scale = true", " or ".join(Scale)),
        ("output-directory = true", "a value"),  # an option of PyTorch's harness
    ],
)
def test_an_option_that_takes_a_value_is_given_one(entry: str, takes: str, tmp_path: Path) -> None:
    """Else it would take the next entry's flag for it."""
    path = tmp_path / "pyproject.toml"
    path.write_text(f"[tool.dynamometer]\nmodels = 'mine.py'\n{entry}\nspawn = true\n")
    key = entry.partition(" ")[0]
    with pytest.raises(UsageError, match=rf"{key} of .* is true, and --{key} takes {takes}: give"):
        read_project(path, run_options())


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("list = 1", "list of .* is 1, and --list takes no value: give true or false"),
        ("list = 'false'", "list of .* is 'false', and --list takes no value"),
        ("training = [true, 'x']", "training of .* is 'x', and --training takes no value"),
        ("cold-start-latency = 1", "is 1, and --cold-start-latency takes no value"),  # PyTorch's
        ("'' = 1", "'' of .* is no option"),
        ("help = true", "'help' of .* is no option"),
        ("'list=' = true", "'list=' of .* is no option"),
    ],
)
def test_an_entry_that_cannot_be_typed_is_named(entry: str, says: str, tmp_path: Path) -> None:
    """With the file, as nobody has typed it."""
    path = tmp_path / "pyproject.toml"
    path.write_text(f"[tool.dynamometer]\nmodels = 'mine.py'\n{entry}\n")
    with pytest.raises(UsageError, match=rf"pyproject\.toml: .*{says}"):
        read_project(path, run_options())


def test_a_damaged_project_is_named(tmp_path: Path) -> None:
    """So that it is found."""
    path = tmp_path / "pyproject.toml"
    path.write_text("[tool")
    with pytest.raises(UsageError, match=r"pyproject\.toml can't be read"):
        read_project(path)
