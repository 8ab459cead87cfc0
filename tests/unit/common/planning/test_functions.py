from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from dynamometer.common.errors import UsageError
from dynamometer.common.planning.functions import refuse_unknown_functions

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "name",
    [
        "math:sin",
        "json:JSONDecoder.decode",
        "json.decoder:JSONDecoder.decode",
        "os.path:join",
        "torch:relu",
        "torch.ops:aten",
        "torch.nn:Linear.forward",
        "torch.nn.functional:relu",
        "torch.nn.functional:max_pool2d",
        "transformers.models.bert.modeling_bert:BertModel.forward",
        "mine:build",
    ],
)
def test_what_there_may_be_is_let_pass(name: str, tmp_path: Path) -> None:
    """Of extensions, and of modules that bind names as they run, nothing is certain."""
    (tmp_path / "mine.py").write_text("def build(): ...\n")
    refuse_unknown_functions([name], [str(tmp_path)])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nosuch.module:fn", "no module named 'nosuch.module'"),
        ("json.decodr:JSONDecoder", "no module named 'json.decodr'"),
        ("torch.nn.functionl:relu", "no module named 'torch.nn.functionl'"),
        ("json:nosuch", "module 'json' has no 'nosuch'"),
        ("json.decoder:JSONDecoder.nosuch", "class 'JSONDecoder' of module 'json.decoder' has no"),
        ("mine:biuld", "module 'mine' has no 'biuld'"),
    ],
)
def test_what_there_is_not_is_refused(name: str, says: str, tmp_path: Path) -> None:
    """The message names module, class or function."""
    (tmp_path / "mine.py").write_text("if True:\n    def build(): ...\n")
    with pytest.raises(UsageError, match=f"there is no function {name}: {says}"):
        refuse_unknown_functions([name], [str(tmp_path)])


def test_nothing_is_imported() -> None:
    """The parent process does without torch."""
    code = (
        "import sys; from dynamometer.common.planning import functions;"
        "functions.refuse_unknown_functions(['torch.nn.functional:relu'], []);"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
