"""A test case as a script that needs torch alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import factories
import pytest

from dynamometer.common.command_line import cli
from dynamometer.models.parity import SUITE
from dynamometer.models.parity.corpus import cases_of
from dynamometer.models.parity.standalone import script_of
from dynamometer.results.store import store
from dynamometer.results.values.cases import (
    BASELINE,
    Case,
    Dtype,
    DynamicDims,
    MatmulPrecision,
    Mode,
    ModelSpec,
    Overrides,
)
from dynamometer.results.values.records import PASSED, ArmResult, Status

EXAMPLES = Path(__file__).resolve().parents[4] / "examples" / "parity"
TEXT = '''
from _paritybench_helpers import _mock_config, _mock_layer, patch_functional
patch_functional()
import no_such_package, math, torch
from no_such_package import thing
from torch import nn as neural
import torch.nn.functional as F
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


def script(file: Path, name: str, arm: str = "eager", **fields: object) -> str:
    """Return the script of a test case of a file, run in some way."""
    found = next(each for each in cases_of(str(file)).values() if each.class_name == name)
    return script_of(found, case(name, arm, **fields))


def case(name: str, *arms: str, **fields: object) -> Case:
    """Make a case of a corpus."""
    return factories.case(name, (BASELINE, *arms), suite="parity", batch_size=None, **fields)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write a file of a corpus."""
    file = tmp_path / "test_project.py"
    file.write_text(TEXT)
    return file


def test_it_holds_what_is_needed_and_nothing_else(file: Path) -> None:
    """Definitions are followed; what the corpus imports for others is left out."""
    found = script(file, "Net", nopython=True)
    for needed in ("def scaled", "FACTOR = 2", "class Base", "import math", "def _mock_layer",
                   "class _mock_config", "fullgraph=True"):  # fmt: skip
        assert needed in found, needed
    for other in ("no_such_package", "class Other", "UNUSED", "_paritybench_helpers", "TESTCASES",
                  "class _Absent", "noqa"):  # fmt: skip
        assert other not in found, other


def test_what_is_not_there_is_named(tmp_path: Path, file: Path) -> None:
    """With the file."""
    (found,) = (each for each in cases_of(str(file)).values() if each.class_name == "Net")
    file.write_text("TESTCASES = []\n")
    with pytest.raises(ValueError, match=r"test_project\.py holds no test case 1"):
        script_of(found, case("Net", "eager"))
    file.write_text("(")
    with pytest.raises(ValueError, match="can't be read as Python"):
        script_of(found, case("Net", "eager"))
    file.unlink()
    with pytest.raises(ValueError, match="can't be read as Python"):
        script_of(found, case("Net", "eager"))


@pytest.mark.slow
def test_scripts_of_our_own_corpus_compile() -> None:
    """Each is Python, and defines its class."""
    corpus = cases_of(str(EXAMPLES))
    assert len(corpus) > 50
    for each in corpus.values():
        found = script_of(each, case(each.class_name, "inductor"))
        compile(found, each.class_name, "exec")
        assert f"class {each.class_name}" in found
        assert "fallback_random = True" in found


@pytest.mark.slow
def test_a_script_runs_by_itself(tmp_path: Path, file: Path) -> None:
    """Where no package but torch and what it needs is on the path."""
    path = tmp_path / "script.py"
    path.write_text(script(file, "Net"))
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, cwd=tmp_path, check=False
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
    found = script(file, "Net", mode=Mode.TRAINING)
    assert "sys.path.insert(0, 'here')" in found
    assert "import sys" in found
    assert "unneeded" not in found
    assert ".train()" in found
    assert "no_grad" not in found


def test_a_case_is_run_as_it_was(file: Path) -> None:
    """Backend, seed, sizes and precision; what isn't done is said."""
    found = script_of(
        next(iter(cases_of(str(file)).values())),
        case(
            "Other", "mine.backends:compiler", dynamic=True, matmul_precision=MatmulPrecision.HIGH,
            device="cuda:0", dtype=Dtype.AMP, channels_last=True,
            overrides=Overrides(disable=("torch:sin",)),
        ),
        seed=3,
    )  # fmt: skip
    for part in (
        "from mine.backends import compiler as backend", "backend=backend, fullgraph=False",
        "dynamic=True", "set_float32_matmul_precision('high')", "model.to('cuda:0')",
        "_Autocast(model, 'cuda')", "_moved(inputs, 'cuda:0', None)", "_seed(3)",
        "- calls on other inputs", "- channels last", "--disable-frame torch:sin",
    ):  # fmt: skip
        assert part in found, part
    varying = script(file, "Net", "inductor:freezing", dynamic=True, dynamic_dims=DynamicDims.NONE)
    assert "dynamic=True" not in varying
    assert "- sizes that vary: varying" in varying
    assert "- options of the backend: inductor:freezing" in varying
    assert "backend='inductor'" in varying


def test_a_file_is_read_in_its_own_encoding(tmp_path: Path) -> None:
    """As Python reads it, which runs it."""
    text = (
        "# -*- coding: latin-1 -*-\nimport torch\nclass Net(torch.nn.ReLU):\n    size = 'größe'\n"
        "TESTCASES = [(Net, lambda: ([], {}), lambda: ([torch.ones(2)], {}))]\n"
    )
    file = tmp_path / "test_project.py"
    file.write_bytes(text.encode("latin-1"))
    assert "size = 'größe'" in script(file, "Net", "eager")


def test_what_torch_can_t_be_told_is_refused(file: Path) -> None:
    """An arm that is not a compiler of Dynamo's graphs."""
    with pytest.raises(ValueError, match="ts is no backend"):
        script(file, "Net", "ts")


def test_the_arm_that_failed_is_chosen(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the case that failed; `repro --script` prints it."""
    arms = ("eager", "aot_eager")
    cases = [case("project.Net", *arms), case("project.Net", *arms, mode=Mode.TRAINING)]
    spec = ModelSpec(suite="parity", name="project.Net", task="", origin="", build="corpus:Corpus")
    plan = factories.plan(
        spec, cases=cases, suite="parity", suite_options={"target": str(file)}, seed=5,
        experiments=("parity",),
    )  # fmt: skip
    store.create(tmp_path / "run", factories.manifest(plan))
    asked = ["repro", str(tmp_path / "run"), "project.Net", "--script"]
    assert cli.main(None, asked) == 0
    assert "backend='eager', fullgraph=False" in capsys.readouterr().out
    failed = factories.failure(Status.FAIL, reason="BackendCompilerFailed")
    ends = {BASELINE: PASSED, "eager": PASSED, "aot_eager": failed}
    results = tuple(ArmResult(arm=arm, outcome=end) for arm, end in ends.items())
    with store.RunStore(tmp_path / "run") as run:
        run.append(factories.record(cases[0]))
        run.append(factories.record(cases[1], arms=results))
    assert cli.main(None, asked) == 0
    found = capsys.readouterr().out
    assert "backend='aot_eager', fullgraph=False" in found
    assert "_in_training" in found
    assert "_seed(5)" in found


def test_of_a_module_that_was_found_its_test_case_has_the_script() -> None:
    """The run wrote it."""
    with pytest.raises(ValueError, match=r"`\./parity\.py RUN/corpus`"):
        SUITE.script({"sources": "."}, case("project.Net", "eager"), 0)
