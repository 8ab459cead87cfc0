"""A test case as a script that needs torch alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dynamometer.models.parity.corpus import cases_of
from dynamometer.models.parity.standalone import script_of

EXAMPLES = Path(__file__).resolve().parents[4] / "examples" / "parity"
TEXT = '''
from _paritybench_helpers import _mock_config, _mock_layer, patch_functional
import no_such_package, math, torch
from no_such_package import thing
from torch import nn as neural
import torch.nn.functional as F
patch_functional()
raise_if_run = no_such_package.call()
FACTOR = 2
UNUSED = thing()

def scaled(x):
    return x * FACTOR * math.pi

class Base(neural.Module):
    """Of the project."""

class Other(Base):
    def forward(self, x):
        return thing(x)

class Net(Base):
    def __init__(self, config):
        super().__init__()
        self.layer = _mock_layer(config.size, config.size)
    def forward(self, x):
        return F.relu(self.layer(scaled(x)))

TESTCASES = [
    (Other, lambda: ([], {}), lambda: ([torch.rand([2])], {}), True),
    (Net, lambda: ([_mock_config(size=3)], {}), lambda: ([torch.rand([2, 3])], {}), True),
]
'''


def test_it_holds_what_is_needed_and_nothing_else(tmp_path: Path) -> None:
    """Definitions are followed; what the corpus imports for others is left out."""
    file = tmp_path / "test_project.py"
    file.write_text(TEXT)
    script = script_of(file, 1, "Net", "eager", full_graph=True)
    for needed in ("def scaled", "FACTOR = 2", "class Base", "import math", "def _mock_layer",
                   "class _mock_config", "fullgraph=True"):  # fmt: skip
        assert needed in script, needed
    for other in ("no_such_package", "class Other", "UNUSED", "_paritybench_helpers", "TESTCASES"):
        assert other not in script, other


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    """With the file."""
    file = tmp_path / "test_project.py"
    file.write_text("TESTCASES = []\n")
    with pytest.raises(ValueError, match=r"test_project\.py holds no test case 0"):
        script_of(file, 0, "Net", "eager")
    file.write_text("(")
    with pytest.raises(ValueError, match="can't be read as Python"):
        script_of(file, 0, "Net", "eager")


def test_scripts_of_our_own_corpus_compile() -> None:
    """Each is Python, and defines its class."""
    corpus = cases_of(str(EXAMPLES))
    assert len(corpus) > 50
    for case in corpus.values():
        script = script_of(case.file, case.index, case.class_name, "inductor")
        compile(script, case.class_name, "exec")
        assert f"class {case.class_name}" in script


def test_a_script_runs_by_itself(tmp_path: Path) -> None:
    """Where no package but torch and what it needs is on the path."""
    file = tmp_path / "test_project.py"
    file.write_text(TEXT)
    script = tmp_path / "script.py"
    script.write_text(script_of(file, 1, "Net", "eager"))
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "compiled and eager agree\n"


@pytest.mark.parametrize("kind", ["TESTCASES: list = [", "TESTCASES = ("])
def test_lists_are_those_that_runs_read(tmp_path: Path, kind: str) -> None:
    """With a byte order mark, an annotation or as a tuple; where to import from is kept."""
    end = ")" if "(" in kind else "]"
    file = tmp_path / "test_project.py"
    file.write_text(
        f"\ufeffimport sys\nfrom torch import nn\nsys.path.insert(0, 'here')\nprint('unneeded')\n"
        f"class Net(nn.Identity): ...\n{kind}(Net, lambda: ([], {{}}), lambda: ([1], {{}})),{end}\n"
    )
    script = script_of(file, 0, "Net", "eager", training=True)
    assert "sys.path.insert(0, 'here')" in script
    assert "import sys" in script
    assert "unneeded" not in script
    assert ".train()" in script
