"""What files of a corpus find: the names that stand for their programs, and absent packages."""

from __future__ import annotations

import builtins
import collections.abc
import copy
import math
import sys
from typing import TYPE_CHECKING

import pytest
import scipy.signal
import torch
from torch import nn

from dynamometer.common.interfaces.outcome import SkippedError
from dynamometer.models.parity import importing, offered
from dynamometer.models.parity.corpus import CorpusCase
from dynamometer.models.parity.corpus import test_cases as read_cases
from dynamometer.models.parity.importing import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = pytest.mark.usefixtures("modules_as_before")


@pytest.fixture(autouse=True)
def _import_as_before() -> Iterator[None]:
    real = builtins.__import__
    yield
    assert builtins.__import__ is real


def case(tmp_path: Path, text: str, *, index: int = 0, class_name: str = "Net") -> CorpusCase:
    """Write a file of test cases."""
    file = tmp_path / "test_project.py"
    file.write_text(text)
    return CorpusCase(file, index, class_name)


HEAD = """
from _paritybench_helpers import _mock_config, _mock_layer, patch_functional
import torch
from torch import nn
import torch.nn.functional as F
patch_functional()
"""
LIST = """
TESTCASES = [
    (Net, lambda: ([3], {'bias': False}), lambda: ([torch.ones(2, 3)], {}), True),
]
"""


def test_a_module_is_made_with_its_inputs(tmp_path: Path) -> None:
    """Constructor and forward have arguments of their own."""
    text = "class Net(nn.Linear):\n    def __init__(self, n, bias): super().__init__(n, n, bias)\n"
    found = load(case(tmp_path, HEAD + text + LIST))
    assert isinstance(found.module, nn.Linear)
    assert found.module.bias is None
    assert found.module(*found.args, **found.kwargs).shape == (2, 3)
    assert found.notes == ()
    assert found.copy().module is not found.module


def test_a_class_without_forward_is_skipped(tmp_path: Path) -> None:
    """Nothing of it could be captured."""
    text = "class Net(nn.Module):\n    def __init__(self, n, bias): super().__init__()\n"
    with pytest.raises(SkippedError, match="Net has no forward"):
        load(case(tmp_path, HEAD + text + LIST))


def test_a_class_may_be_listed_by_another_name(tmp_path: Path) -> None:
    """Which it has in the file."""
    text = "class Real(nn.Linear):\n    def __init__(self, n, bias): super().__init__(n, n)\n"
    found = load(case(tmp_path, HEAD + text + "Net = Real\n" + LIST))
    assert type(found.module).__name__ == "Real"


def test_a_list_that_has_changed_is_noticed(tmp_path: Path) -> None:
    """Names are those of the text that was read first."""
    text = "class Net(nn.Identity): ...\n"
    for wrong in (case(tmp_path, HEAD + text + LIST, index=1),
                  case(tmp_path, HEAD + text + LIST, class_name="Other")):  # fmt: skip
        with pytest.raises(LookupError, match=r"test_project\.py"):
            load(wrong)


ABSENT = """
import no_such_package.layers as layers
from no_such_package import thing, decorated
from no_such_package.deep.er import Base
import no_such_other
REGISTRY = no_such_other.Registry(3)

@no_such_other.jit(nopython=True)
def f(x): return x

@decorated
def g(x): return x + 1

class Derived(Base): ...

class Net(nn.Module):
    def __init__(self, n, bias): super().__init__()
    def forward(self, x):
        return g(x) if x.shape[0] == 2 else thing(x)
"""


def test_absent_packages_fail_where_they_are_used(tmp_path: Path) -> None:
    """And nowhere else: most modules of a file use none of what its head imports."""
    found = load(case(tmp_path, HEAD + ABSENT + LIST))
    assert found.notes == (
        "the package no_such_other is not installed",
        "the package no_such_package is not installed",
        "what no_such_other.jit() decorates is measured without it",
        "what no_such_package.decorated decorates is measured without it",
    )
    assert torch.equal(found.module(*found.args), torch.full((2, 3), 2.0))
    with pytest.raises(ModuleNotFoundError, match=r"no_such_package\.thing is needed"):
        found.module(torch.ones(3))
    module = sys.modules["_corpus_file"]
    with pytest.raises(ModuleNotFoundError, match=r"no_such_package\.deep\.er\.Base is needed"):
        module.Derived()


DROPPED = """
from collections import Iterable, OrderedDict
from torch._six import container_abcs, inf
from scipy.signal import convolve, no_such_window
from torch.utils import data, no_such_writer
import torch.no_such_legacy.nn as legacy
import torch._six
import torch._six.deeper
from .layers import Beside
from . import settings

WINDOWS = [no_such_window["hann"], *no_such_window]

class Net(nn.Module):
    def __init__(self, n, bias): super().__init__()
    def forward(self, x):
        assert isinstance(x, Iterable) and x.sum() < inf
        assert issubclass(dict, container_abcs.Mapping)
        return no_such_window(x) if x.shape[0] == 2 else Beside(x)
"""


def test_what_packages_have_dropped_fails_where_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is gone, or a module, costs those that use it; what has moved costs nobody."""
    for each in ("_six", "no_such_legacy"):
        monkeypatch.setattr(torch, each, None, raising=False)  # so that it is removed at the end
        delattr(torch, each)
    found = load(case(tmp_path, HEAD + DROPPED + LIST))
    assert found.notes == (
        "a file of a corpus has no modules beside it",
        "scipy.signal has no no_such_window",
        "torch._six can't be imported: No module named 'torch._six'",
        "torch._six.deeper can't be imported: No module named 'torch._six'",
        "torch.no_such_legacy.nn can't be imported: No module named 'torch.no_such_legacy'",
        "torch.utils has no no_such_writer",
    )
    module = sys.modules["_corpus_file"]
    assert module.torch is torch
    assert module.Iterable is collections.abc.Iterable
    assert module.container_abcs is collections.abc
    assert module.inf == math.inf
    assert module.data is torch.utils.data
    assert module.convolve is scipy.signal.convolve
    with pytest.raises(ModuleNotFoundError, match=r"needed, and scipy\.signal has no"):
        module.no_such_window(8)
    with pytest.raises(ModuleNotFoundError, match=r"torch\.no_such_legacy\.nn\.Linear is needed"):
        module.legacy.Linear(2)
    for use in (iter, lambda kind: kind["a"]):
        with pytest.raises(ModuleNotFoundError, match="no_such_window is needed"):
            use(module.no_such_window)
    with pytest.raises(ModuleNotFoundError, match="no modules beside it"):
        found.module(torch.ones(3))


TRIED = """
import abc, contextlib
try:
    from no_such_apex.normalization import FusedLayerNorm as LayerNorm
except ImportError:
    from torch.nn import LayerNorm
try:
    if True:
        import no_such_flash
    HAS_FLASH = True
except AttributeError:
    HAS_FLASH = None
except (ImportError, ValueError):
    HAS_FLASH = False
try:  # it is there, or not
    import no_such_comment
except ImportError:
    no_such_comment = None
try: import no_such_line
except ImportError: no_such_line = None
no_such_held = None
with contextlib.suppress(ImportError):
    import no_such_held
try:
    import no_such_other
except AttributeError:
    pass
IS_NEW = no_such_other.__version__ >= "1.0"

class Mixed(no_such_other.Mixin, abc.ABC): ...

@no_such_other.REGISTRY.register()
class Registered: ...

@no_such_other.REGISTRY.register
class RegisteredPlainly: ...

HAS_OTHER = bool(no_such_other.HAS_CUDA)
from no_such_star import *
import no_such_names
from no_such_names import why, held, imports

@no_such_other.script
def f(x): return x

class Net(nn.Module):
    def __init__(self, n, bias):
        super().__init__()
        self.kept = 3
        try:
            import no_such_flash
        except ImportError:
            self.kept = 4
    def forward(self, x):
        return x
"""


def test_what_a_file_does_without_is_done_without(tmp_path: Path) -> None:
    """An import that it can go on without fails, as elsewhere; names are the file's own."""
    found = load(case(tmp_path, HEAD + TRIED + LIST))
    module = sys.modules["_corpus_file"]
    assert module.LayerNorm is nn.LayerNorm
    assert (module.HAS_FLASH, module.HAS_OTHER, module.IS_NEW) == (False, False, False)
    assert module.no_such_comment is module.no_such_line is module.no_such_held is None
    assert found.module.kept == 4
    assert all(name not in vars(module) for name in ("__absent__", "AbsentModule"))
    for name in ("why", "held", "imports"):
        with pytest.raises(ModuleNotFoundError, match=rf"no_such_names\.{name} is needed"):
            getattr(module, name)()
    assert "what no_such_other.script decorates is measured without it" in found.notes
    assert not any("apex" in note or "flash" in note for note in found.notes)


TRIED_ELSEWHERE = """
try:
# what is commented out:
    from no_such_margin import thing
# is not looked at
except ImportError:
    thing = None
try:
    try:
        import no_such_nested
    finally:
        HAS_NESTED = False
except ImportError:
    no_such_nested = None
try:
    try:
        import no_such_caught
    except AttributeError:
        pass
finally:
    no_such_held = None
# try:
import no_such_plain
class Net(nn.Linear):
    def __init__(self, n, bias): super().__init__(n, n)
"""


def test_a_try_is_found_beyond_comments_and_other_ones(tmp_path: Path) -> None:
    """The nearest that goes on after an ImportError counts; where none does there is a stand-in."""
    found = load(case(tmp_path, HEAD + TRIED_ELSEWHERE + LIST))
    module = sys.modules["_corpus_file"]
    assert module.thing is module.no_such_nested is None
    assert [note.split()[2] for note in found.notes] == ["no_such_caught", "no_such_plain"]


def test_what_is_there_is_not_replaced(tmp_path: Path) -> None:
    """A function that is imported as a module stays what it is."""
    text = "import torch.nn.functional.relu\nclass Net(nn.Identity): ...\n"
    before = torch.nn.functional.relu
    with pytest.raises(ImportError, match=r"torch\.nn\.functional\.relu can't be imported"):
        load(case(tmp_path, HEAD + text + LIST))
    assert torch.nn.functional.relu is before


def test_libraries_are_told_the_truth(tmp_path: Path) -> None:
    """A package that looks for another one must not find a stand-in."""
    (tmp_path / "a_library.py").write_text(
        "try:\n    import no_such_backend\nexcept ImportError:\n    no_such_backend = None\n"
    )
    text = (
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport a_library\n"
        "del sys.path[0]\nassert a_library.no_such_backend is None\n"
        "class Net(nn.Linear):\n    def __init__(self, n, bias): super().__init__(n, n)\n"
    )
    assert load(case(tmp_path, HEAD + text + LIST)).notes == ()


def test_a_configuration_has_its_entries_as_attributes() -> None:
    """And can be copied, as modules that keep it are."""
    config = offered._mock_config(size=3)
    assert copy.deepcopy(config).size == 3
    assert not hasattr(config, "other")
    config.clear()


def test_layers_in_place_of_others() -> None:
    """With sizes a linear one, else one that keeps the size."""
    assert offered._mock_layer(2, 3)(torch.ones(1, 2)).shape == (1, 3)
    assert offered._mock_layer()(torch.ones(1, 2)).shape == (1, 2)
    assert offered._mock_layer(2).expansion == 1


SIZED = """
from torch import nn

class Net(nn.Linear):
    def __init__(self, n): super().__init__(n, n)

More = []
TESTCASES = [
    {first}(Net, lambda: ([1], {{}}), lambda: ([], {{}})),
    (Net,
     lambda: ([2], {{}}), lambda: ([], {{}})),
]
{change}
"""


@pytest.mark.parametrize(
    ("first", "change"),
    [("", ""), ("*More, ", ""), ("", "TESTCASES.__init__(TESTCASES[::-1])")],
    ids=["as it stands", "behind what is none", "turned round"],
)
def test_a_test_case_is_the_one_that_was_read(tmp_path: Path, first: str, change: str) -> None:
    """Wherever the file puts it: several of one class differ by nothing but their functions."""
    file = tmp_path / "test_project.py"
    file.write_text(SIZED.format(first=first, change=change))
    found = [each for each in read_cases(file) if each.fault is None]
    sizes = [load(each).module.in_features for each in found]
    assert sizes == [1, 2]


def test_of_several_that_may_be_meant_none_is_taken(tmp_path: Path) -> None:
    """Two on one line are told by their places alone."""
    line = "TESTCASES = [*(), " + "(Net, lambda: ([1], {}), lambda: ([], {})), " * 2 + "]"
    file = tmp_path / "test_project.py"
    file.write_text(SIZED.partition("TESTCASES")[0].replace("{{", "{") + line)
    *_, last = read_cases(file)
    with pytest.raises(LookupError, match="holds no test case 2 of Net"):
        load(last)


def test_a_package_that_is_broken_is_left_to_whoever_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever importing it raises."""
    for name, text in (("first", "raise ValueError('no')"), ("second", "raise SystemExit")):
        (tmp_path / f"broken_{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(importing, "_USUAL", ("broken_first", "broken_second"))
    importing.preload()
