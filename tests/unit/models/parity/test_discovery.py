"""Which classes of a project are modules, as its text says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from dynamometer.common.planning.selection import Selection, select
from dynamometer.models.parity import SUITE
from dynamometer.models.parity.source.discovery import FoundClass, found_classes
from dynamometer.models.parity.source.files import files_of
from dynamometer.results.values.cases import ModelSpec
from dynamometer.results.values.parity import NOT_IMPORTED, NOT_READ

if TYPE_CHECKING:
    from pathlib import Path

NET = "from torch import nn\nclass Net(nn.Module): ...\n"


def written(folder: Path, texts: dict[str, str]) -> str:
    """Write the files of a project."""
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return str(folder)


def classes(folder: Path, texts: dict[str, str]) -> set[str]:
    """Write a project, and name its modules without it."""
    found = found_classes([written(folder, texts)])
    return {name.removeprefix(f"{each.project}.") for name, each in found.items()}


@pytest.mark.parametrize(
    "text",
    [
        "import torch.nn as own\nclass A(own.Module): ...",
        "import torch.nn\nclass A(torch.nn.modules.conv.Conv2d): ...",
        "import torch\nclass A(torch.jit.ScriptModule): ...",
        "from torch.nn import Module as M\nclass A(M): ...",
        "from torch.nn.modules import *\nclass A(Conv2d): ...",
        "from torch import nn\nBase = nn.Module\nclass A(Base): ...",
        "from torch import nn\nBase = nn.Module if nn else object\nclass A(Base): ...",
        "from torch import nn\nBase = object or nn.Module\nclass A(Base): ...",
        "from torch import nn\nif nn:\n  class A(nn.Module): ...",
        "from torch import nn\nif not nn: ...\nelse:\n  class A(nn.Module): ...",
        "try:\n  from torch import nn\n  class A(nn.Module): ...\nexcept ImportError: ...",
        "try:\n  import no\nexcept ImportError:\n  from torch import nn\nclass A(nn.Module): ...",
        "from torch import nn\nclass B(nn.Module, Generic[T]): ...\nclass A(B[int]): ...",
        "from torchvision.models import ResNet\nclass A(ResNet): ...",
        "import torchvision\nclass A(torchvision.models.ResNet): ...",
        "from torch.optim.swa_utils import AveragedModel\nclass A(AveragedModel): ...",
    ],
)
def test_a_base_is_what_its_name_stands_for(tmp_path: Path, text: str) -> None:
    """However it is imported, and wherever in the file; nothing is imported for it."""
    assert "p.A" in classes(tmp_path, {"p.py": text})


@pytest.mark.parametrize(
    "text",
    [
        "from torch import nn\nclass A(nn.Parameter): ...",
        "import torch\nclass A(torch.Tensor): ...",
        "from torch.utils.data import Dataset\nclass A(Dataset): ...",
        "from torch.autograd import Function\nclass A(Function): ...",
        "import enum\nclass A(enum.Enum): ...",
        "from collections import namedtuple\nclass A(namedtuple('B', 'c')): ...",
        "from typing_extensions import TypedDict\nclass A(TypedDict): ...",
        "from torch.nn import *\nclass A(Exception): ...",
        "class A: ...",
        "class A(A): ...",
    ],
)
def test_what_is_no_module_is_not_taken_for_one(tmp_path: Path, text: str) -> None:
    """Also where torch has it beside its modules."""
    assert classes(tmp_path, {"p.py": text, "net.py": NET}) == {"net.Net"}


@pytest.mark.parametrize(
    "text",
    [
        "import no_such as pl\nclass A(pl.LightningModule): ...",
        "from no_such import Base\nclass A(Base[int]): ...",
        "from no_such import *\nclass A(Base): ...",
        "from net import absent\nclass A(absent): ...",
        "from net import made\nclass A(made()): ...",
        "class A(getattr(nn, 'Module')): ...",
    ],
)
def test_what_only_importing_tells_is_taken_for_one(tmp_path: Path, text: str) -> None:
    """A worker tells; until then nothing is left out."""
    texts = {"p.py": text, "net.py": f"{NET}def made(): ...\n"}
    assert classes(tmp_path, texts) == {"net.Net", "p.A"}


def test_a_name_means_what_its_file_says(tmp_path: Path) -> None:
    """Not what another file calls so; what is beside a file that is looked at is known, too."""
    texts = {
        "a.py": "from torch import nn\nclass Base(nn.Module): ...\nclass _Own(Base): ...\n",
        "b.py": "class Base: ...\nclass None_(Base): ...\n",
        "c.py": "from a import Base\nfrom b import Base as Other\n"
        "class One(Base): ...\nclass No(Other): ...\n",
        "pkg/__init__.py": "from .inner import *\n",
        "pkg/inner.py": "from .. import nothing\nfrom ..a import Base as Up\nclass E(Up): ...\n",
        "d.py": "import pkg.inner\nclass Dotted(pkg.inner.E): ...\nclass Star(pkg.E): ...\n",
    }
    assert classes(tmp_path, texts) == {
        "a.Base", "a._Own", "c.One", "pkg.inner.E", "d.Dotted", "d.Star",
    }  # fmt: skip
    assert set(found_classes([str(tmp_path / "c.py")])) == {"c.One"}


def test_a_file_is_imported_from_where_its_package_is(tmp_path: Path) -> None:
    """Else from the project; below a folder that is no name of a module from that folder."""
    texts = {
        "src/mypkg/__init__.py": "", "src/mypkg/net.py": NET, "src/mypkg/scripts/run.py": NET,
        "inner/kinds.py": NET, "my-model/vit.py": NET, "my-model/pkg/__init__.py": NET,
        "flat.py": NET, "build/__init__.py": NET, "docs/conf.py": NET, "tests/net.py": NET,
    }  # fmt: skip
    found = found_classes([written(tmp_path, texts)])
    own, src, model = str(tmp_path), str(tmp_path / "src"), str(tmp_path / "my-model")
    assert {each.name_with(""): (each.root, each.beside) for each in found.values()} == {
        "build.Net": (own, None),
        "flat.Net": (own, None),
        "inner.kinds.Net": (own, str(tmp_path / "inner")),
        "mypkg.net.Net": (src, own),
        "mypkg.scripts.run.Net": (src, str(tmp_path / "src/mypkg/scripts")),
        "pkg.Net": (model, own),
        "vit.Net": (model, own),
    }


def test_classes_of_one_name_are_named_apart(tmp_path: Path) -> None:
    """By the folder that each is imported from; what is found twice is there once."""
    texts = {"a/one/model.py": NET, "b/one/model.py": NET, "b/two/model.py": NET}
    written(tmp_path, texts)
    folders = [str(tmp_path / each) for each in ("a/one", "b/two")]
    found = found_classes([*folders, folders[0], f"{folders[0]}/model.py"])
    assert {name: each.root for name, each in found.items()} == {
        "one.model.Net": folders[0], "two.model.Net": folders[1],
    }  # fmt: skip
    found = found_classes([*folders, str(tmp_path / "b/one")])
    assert set(found) == {"a_one.model.Net", "b_one.model.Net", "two.model.Net"}
    written(tmp_path / "c", {"one/1st/model.py": NET, "one/2nd/model.py": NET})
    assert set(found_classes([str(tmp_path / "c/one")])) == {
        "one.1st.model.Net", "one.2nd.model.Net",
    }  # fmt: skip


def test_a_name_begins_with_its_project(tmp_path: Path) -> None:
    """The package, else the folder or file that was named, wherever a class lies in there."""
    texts = {
        "loose/models/net.py": NET, "loose/utils/net.py": NET, "loose/src/pkg/__init__.py": NET,
        "other/models/net.py": NET, "other/my-code/net.py": NET, "other/my_code/net.py": NET,
        "alone.py": NET, "torch_vision/net.py": NET, "in/torch_vision/net.py": NET,
    }  # fmt: skip
    written(tmp_path, texts)
    places = ["loose", "other", "loose/src/pkg", "alone.py", "torch_vision", "in/torch_vision"]
    found = found_classes([str(tmp_path / each) for each in places])
    names = [
        "alone.Net", "in_torch_vision.net.Net", "loose.models.net.Net", "loose.pkg.Net",
        "loose.utils.net.Net", "other.models.net.Net", "other.my_code.net.Net", "other.net.Net",
        f"{tmp_path.name.replace('-', '_')}_torch_vision.net.Net",
    ]  # fmt: skip
    assert sorted(found) == sorted(names)
    assert {name: name.split(".")[0] for name in names} == {
        name: each.project for name, each in found.items()
    }


def test_no_two_projects_have_one_name(tmp_path: Path) -> None:
    """Whatever of their names is no letter, and however many folders stand before others."""
    places = ["net-1.0", "net-1.1", "my-code", "my_code", "in_tv", "in/tv", "tv", "a b", "a_b"]
    for each in places:
        written(tmp_path / each, {"net.py": NET})
    found = found_classes([str(tmp_path / each) for each in places])
    assert len({each.project for each in found.values()}) == len(places)
    assert all(name.startswith(f"{each.project}.") for name, each in found.items())
    assert {"net_1_0.net.Net", "net_1_1.net.Net"} <= set(found)


def test_what_was_stored_without_a_project_is_of_its_package() -> None:
    """As by a run that an earlier version began."""
    assert FoundClass("pkg.net", "Net", None).name == "pkg.net.Net"


def test_an_installed_package_is_told_from_a_checkout_of_it(tmp_path: Path) -> None:
    """Each is a project of its own."""
    written(tmp_path / "mine", {"torchvision/__init__.py": NET})
    found = found_classes([str(tmp_path / "mine/torchvision"), "torchvision.ops.misc"])
    assert {each.project for each in found.values()} == {"mine_torchvision", "torchvision"}
    assert "mine_torchvision.torchvision.Net" in found


def test_a_class_in_a_function_hides_none_of_a_module(tmp_path: Path) -> None:
    """Both have one name: `f` is a function of the package and a module of it."""
    inner = "from torch import nn\ndef f():\n  class Net(nn.Module): ...\n"
    found = found_classes([written(tmp_path / "pkg", {"__init__.py": inner, "f.py": NET})])
    assert {(each.module, each.class_name, each.fault is None) for each in found.values()} == {
        ("pkg", "f.Net", False), ("pkg.f", "Net", True),
    }  # fmt: skip


def test_names_of_functions_are_their_own(tmp_path: Path) -> None:
    """What is imported or defined in one counts there, before what the file says."""
    text = (
        "def one():\n  import torch.nn as nn\n  class A(nn.Module): ...\n  class B(A): ...\n"
        "  def two():\n    class C(B): ...\n    class D(D): ...\n"
        "from torch import nn\nBase = nn.Module\n"
        "def three():\n  Base = object\n  class E(Base): ...\n"
        "class Outer:\n  class F(Base): ...\n"
        "def four(Base):\n  class G(Base): ...\n"
        "class Other:\n  Base = object\n  class H(Base): ...\n"
        "  def f(self):\n    class I(Base): ...\n"
    )
    found = found_classes([written(tmp_path, {"p.py": text})])
    assert {each.class_name for each in found.values()} == {
        "one.A", "one.B", "one.two.C", "Outer.F", "Other.f.I",
    }  # fmt: skip


def test_what_a_run_writes_is_no_part_of_a_project(tmp_path: Path) -> None:
    """Its corpus would be new, and the run could not be resumed."""
    run = {f"runs/1/{name}": "" for name in ("manifest.json", "events.jsonl")}
    target = written(tmp_path, {"net.py": NET, "runs/1/corpus/test_p.py": NET, **run})
    assert [each.path.name for each in files_of(target)] == ["net.py"]


def test_what_cant_be_looked_at_is_named(tmp_path: Path) -> None:
    """A file that is no Python, one whose name is no module's, a class within something."""
    inner = "class Out(nn.Module):\n  class In(nn.Module): ...\ndef f():\n  class G(Out): ...\n"
    texts = {"bad.py": "class (", "1st.py": NET, "net.py": f"{NET}{inner}", "class.py": NET}
    found = found_classes([written(tmp_path, texts)])
    faults = {each.name_with(""): each.fault or "" for each in found.values()}
    assert {name: fault.partition(": ")[::2] for name, fault in faults.items()} == {
        "1st.Net": (NOT_IMPORTED, "1st is no name of a module; rename 1st.py"),
        "bad.CLASSES": (NOT_READ, "SyntaxError: invalid syntax (<unknown>, line 1)"),
        "class.Net": (NOT_IMPORTED, "class is no name of a module; rename class.py"),
        "net.Net": ("", ""),
        "net.Out": ("", ""),
        "net.Out.In": (NOT_IMPORTED, "it is defined within Out"),
        "net.f.G": (NOT_IMPORTED, "it is defined within f"),
    }
    with pytest.raises(ValueError, match=r"no class of nn\.Module.*bad\.py: its file can't be"):
        found_classes([str(tmp_path / "bad.py")])


@pytest.mark.parametrize("target", ["__main__", "sys", "no_such", "a.b", "class"])
def test_what_is_no_package_is_said(target: str) -> None:
    """Also of what Python has without a file."""
    with pytest.raises(ValueError, match=f"^{target} is neither a path nor an installed package"):
        found_classes([target])


def test_a_file_must_be_of_python(tmp_path: Path) -> None:
    """Whatever it holds."""
    (tmp_path / "net.txt").write_text(NET)
    with pytest.raises(ValueError, match=r"net\.txt is no Python file"):
        found_classes([str(tmp_path / "net.txt")])


def test_any_nesting_is_read(tmp_path: Path) -> None:
    """As long as Python's parser takes it."""
    chain = "".join(f"B{each + 1} = B{each}\n" for each in range(3000))
    cases = "".join(f"elif nn == {each}: ...\n" for each in range(500))
    text = f"from torch import nn\nif not nn: ...\n{cases}else:\n  class Last(nn.Module): ...\n"
    text += f"B0 = nn.Module\n{chain}class Far(B3000): ...\n"
    assert classes(tmp_path, {"p.py": text}) == {"p.Last", "p.Far"}


def test_files_of_any_name_cost_the_others_nothing(tmp_path: Path) -> None:
    """Names that are too long are shortened; what can't be imported under its own says so."""
    deep = "/".join(f"a_rather_long_folder_name_{number}" for number in range(8))
    texts = {f"{deep}/model.py": NET, "good.py": NET, "bad\udcff.py": NET, "two\nlines.py": NET}
    specs = SUITE.open({"sources": written(tmp_path, texts)}).specs()
    assert len(select(specs, Selection())) == len(texts)
    faults = {each.name: each.options["fault"] for each in msgspec.json.decode(
        msgspec.json.encode(specs), type=list[ModelSpec])}  # fmt: skip
    assert sum(fault is None for fault in faults.values()) == 2
    assert [fault for name, fault in faults.items() if name.endswith("good.Net")] == [None]
