"""What scripts of test cases come to, each run as a program; all in one process, for its start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import factories
import pytest

from dynamometer.models.parity.corpus import cases_of
from dynamometer.models.parity.standalone import script_of
from dynamometer.results.values.cases import BASELINE, Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.slow

FILE = """
import random
from copy import copy
from dataclasses import dataclass
import torch
from torch import nn
import no_such_package.inner
from no_such_package import decorated, Thing
import torch.utils.no_such_module
import torch.utils.no_such_other as no_such_other
import json.no_such_module
from collections import Iterable
from torch._six import string_classes, container_abcs
from torch.autograd.gradcheck import no_such_gradients
import threading
IS_NEW = no_such_package.__version__ > "1.0"
try:
    from torch.nn.functional import gelu
except ImportError:
    from nowhere import gelu

def _seed(x):
    return x + 1

_main = _TEST = _seed
D = {}
D['a'] = nn.ReLU
REGISTERED = {}
LATER = None

def register(kind):
    REGISTERED[kind.__name__] = kind
    return kind

def start():
    global LATER
    LATER = 2

start()

@register
class Decorated(nn.ReLU):
    pass

class Called(nn.ReLU):
    pass

register(Called)
for name in ('b', 'c'):
    D[name] = nn.Tanh
if __name__ == '__main__':
    D['a'] = None

@dataclass
class Result:
    value: torch.Tensor
    name: str

class Held:
    def __init__(self, value):
        self.value = value

def wrong(x):
    return x * (2 if torch.compiler.is_compiling() else 1)

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * (3 if torch.compiler.is_compiling() else 2)

class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

class KeepsActivation(Linear):
    def forward(self, x):
        self.act = self.l(x)
        return self.act.relu()

class WeightNorm(Linear):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.utils.weight_norm(self.l)
    def forward(self, x):
        return self.l(x)

class Tried(nn.Module):
    def forward(self, x):
        return gelu(x)

class Tables(nn.Module):
    def __init__(self):
        super().__init__()
        self.all = nn.Sequential(
            D['a'](), D['b'](), REGISTERED['Decorated'](), REGISTERED['Called']()
        )
    def forward(self, x):
        return self.all(x) * LATER

class Copies(nn.Module):
    def forward(self, x):
        return copy([x])[0] + 1

class OwnNames(nn.Module):
    def forward(self, x):
        return _seed(_main(_TEST(x)))

class Absent(Thing, nn.Module):
    @decorated(apply_to='x')
    def forward(self, x):
        return x + 1
    def other(self, x):
        return no_such_package.inner.call(x)

class Generates(nn.Module):
    def forward(self, x):
        for i in range(2):
            yield x + i

class GeneratesWrong(nn.Module):
    def forward(self, x):
        def made():
            yield wrong(x)
        return made()

class GivesResult(nn.Module):
    def forward(self, x):
        return Result(x + 1, 'x')

class GivesWrongResult(nn.Module):
    def forward(self, x):
        return {'a': [Result(x + 1, 'compiled' if torch.compiler.is_compiling() else 'x')]}

class GivesObject(nn.Module):
    def forward(self, x):
        return Held(x)

class GivesWrongObject(nn.Module):
    def forward(self, x):
        return Held(wrong(x))

class GivesNumbers(nn.Module):
    def forward(self, x):
        return x, 1.5, 2, None, 'text', {'a': True}

class Writes(nn.Module):
    def forward(self, x):
        x.add_(wrong(torch.ones(4)))
        return 1

class WrongLater(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        return wrong(x) if self.calls > 1 else x + 1

class WrongGradient(Linear):
    def forward(self, x):
        return Double.apply(self.l(x))

class SmallWrongGradient(Linear):
    def forward(self, x):
        return Double.apply(self.l(x)) * 1e-3

class Draws(Linear):
    def forward(self, x):
        import numpy
        return self.l(x) * random.random() * numpy.random.rand() * torch.rand(4)

class LossOfItsOwn(Linear):
    def forward(self, x):
        return Held(self.l(x))

class WithoutGradients(Linear):
    def forward(self, x):
        assert not torch.is_grad_enabled()
        return self.l(x)

class Breaks(nn.Module):
    def forward(self, x):
        print('')
        return x + 1

class InBfloat16(Linear):
    def forward(self, x, more):
        assert x.dtype is self.l.weight.dtype is more['y'].dtype is torch.bfloat16
        return self.l(x) + more['y']

class UnderAutocast(Linear):
    def forward(self, x):
        y = self.l(x)
        assert y.dtype is torch.bfloat16
        return y

class Moved(nn.Module):
    def __init__(self):
        super().__init__()
        self.lock = threading.RLock()
    def forward(self, x):
        assert isinstance([x], Iterable) and isinstance('', string_classes) and not IS_NEW
        assert issubclass(dict, container_abcs.Mapping)
        assert json.loads('1')
        return no_such_gradients(x) if x.shape[0] == 9 else x + 1

class Diagonal(nn.Module):
    def forward(self, x):
        y = x.clone().unsqueeze(0).expand(1, 4, 4).contiguous()
        y[0].fill_diagonal_(0)
        return y + 1

class Sizes(nn.Module):
    def forward(self, x):
        return x.view(x.shape[0] * x.shape[1])

class Transposed(nn.Module):
    def forward(self, x):
        return x.t() if torch.compiler.is_compiling() else x.t().contiguous()
"""
FUTURE = """
from __future__ import annotations
from torch import nn
import torch

class Annotated(nn.Module):
    def forward(self, x: Undefined) -> Annotated:
        return x + 1
"""
ONE = "[torch.rand([4, 4])]"
FORWARD = {"InBfloat16": "[torch.rand([4, 4]), {'y': torch.rand([4])}]"}
AGREE = "compiled and eager agree\n"
RUN_ALL = """
import contextlib, io, json, runpy, sys
ends = {}
for path in sys.argv[1:]:
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            runpy.run_path(path, run_name="__main__")
        ends[path] = said.getvalue()
    except Exception as error:
        ends[path] = f"{type(error).__name__}: {error}"
print(json.dumps(ends))
"""
WAYS: Mapping[str, Mapping[str, object]] = {
    "": {},
    "training": {"mode": Mode.TRAINING},
    "one graph": {"nopython": True},
    "bfloat16": {"dtype": Dtype.BFLOAT16},
    "amp": {"dtype": Dtype.AMP},
    "dynamic": {"dynamic": True},
    "aot_eager": {"arms": (BASELINE, "aot_eager")},
    "aot_eager, training": {"arms": (BASELINE, "aot_eager"), "mode": Mode.TRAINING},
}
ENDS = {
    ("KeepsActivation", ""): AGREE,
    ("KeepsActivation", "training"): AGREE,
    ("WeightNorm", "training"): AGREE,
    ("Tried", ""): AGREE,
    ("Annotated", ""): AGREE,
    ("Tables", ""): AGREE,
    ("Copies", ""): AGREE,
    ("OwnNames", ""): AGREE,
    ("Absent", ""): AGREE,
    ("Generates", ""): AGREE,
    ("GeneratesWrong", ""): "AssertionError: first call['output'][0]: ",
    ("GivesResult", ""): AGREE,
    ("GivesWrongResult", ""): (
        "AssertionError: first call['output']['a'][0].name (str): 'compiled', expected 'x'"
    ),
    ("GivesObject", ""): AGREE,
    ("GivesWrongObject", ""): "AssertionError: first call['output'].value: ",
    ("GivesNumbers", ""): AGREE,
    ("Writes", ""): "AssertionError: first call['inputs'][0][0]: ",
    ("WrongLater", ""): "AssertionError: second call['output']: ",
    ("WrongGradient", "aot_eager"): AGREE,
    ("WrongGradient", "aot_eager, training"): (
        "AssertionError: first call['gradients']['model.l.weight']: "
    ),
    ("SmallWrongGradient", "aot_eager, training"): (
        "AssertionError: first call['gradients']['model.l.weight']: "
    ),
    ("Draws", "training"): AGREE,
    ("LossOfItsOwn", "training"): AGREE,
    ("WithoutGradients", ""): AGREE,
    ("WithoutGradients", "training"): "AssertionError: ",
    ("Breaks", ""): f"\n\n\n\n{AGREE}",
    ("Breaks", "one graph"): "Unsupported: ",
    ("InBfloat16", "bfloat16"): AGREE,
    ("UnderAutocast", "amp"): AGREE,
    ("Moved", ""): AGREE,
    ("Diagonal", ""): AGREE,
    ("Diagonal", "aot_eager"): "BackendCompilerFailed: ",
    ("Sizes", "dynamic"): AGREE,
    ("Transposed", ""): "AssertionError: first call['output']: strides [1, 4], expected [4, 1]",
}


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Run all scripts in one process, and give what each prints or raises, by file's name."""
    folder = tmp_path_factory.mktemp("scripts")
    paths = [str(written(folder, *each)) for each in ENDS]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN_ALL, *paths],
        capture_output=True, text=True, cwd=folder, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return {Path(path).stem: end for path, end in found.items()}


def written(folder: Path, name: str, way: str) -> Path:
    """Write the script of a test case."""
    file = folder / f"test_{name}.py"
    inputs = FORWARD.get(name, ONE)
    text = FUTURE if name in FUTURE else FILE
    file.write_text(
        f"{text}\nTESTCASES = [({name}, lambda: ([], {{}}), lambda: ({inputs}, {{}}))]\n"
    )
    (found,) = cases_of(str(file)).values()
    fields = {"arms": (BASELINE, "eager"), "suite": "parity", **WAYS[way]}
    path = folder / f"{name} {way}.py"
    path.write_text(script_of(found, factories.case(name, **fields)))  # type: ignore[arg-type]  # untyped
    return path


@pytest.mark.parametrize(("name", "way"), ENDS)
def test_it_comes_to_what_a_run_does(ends: Mapping[str, str], name: str, way: str) -> None:
    """It runs with torch alone; what is wrong compiled is found, and said where."""
    found, expected = ends[f"{name} {way}"], ENDS[name, way]
    assert found.startswith(expected), found
    assert (found == expected) or expected != AGREE
