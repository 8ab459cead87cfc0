"""Batch sizes of models in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import pytest

from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import defaults
from dynamometer.common.interfaces.run_options import run_options
from dynamometer.common.interfaces.workload import Workload
from dynamometer.common.interfaces.workload_options import BATCH_SIZE_FILE
from dynamometer.common.planning.batch_size_file import asked_batch_sizes, read_batch_sizes
from dynamometer.common.planning.cases import build_cases

if TYPE_CHECKING:
    from pathlib import Path


def test_lines_are_read_as_pytorchs_are(tmp_path: Path) -> None:
    """Spaces, comments and empty lines don't matter."""
    path = tmp_path / "sizes.txt"
    path.write_text("BERT_pytorch,128\n\n# of an A100\nBackground_Matting, 16\n")
    assert read_batch_sizes(path) == {"BERT_pytorch": 128, "Background_Matting": 16}


@pytest.mark.parametrize("line", ["resnet18", "resnet18,", "resnet18,x", "resnet18,0", ",4"])
def test_another_line_is_refused(tmp_path: Path, line: str) -> None:
    """The line is named."""
    path = tmp_path / "sizes.txt"
    path.write_text(f"dcgan,4\n{line}\n")
    with pytest.raises(UsageError, match=r"line 2: .* is no `model,size`"):
        read_batch_sizes(path)


def test_no_file_is_refused(tmp_path: Path) -> None:
    """The file is named."""
    with pytest.raises(UsageError, match=r"none\.txt can't be read"):
        read_batch_sizes(tmp_path / "none.txt")


def test_a_model_is_found_by_its_name_or_an_alias() -> None:
    """Whoever isn't named gets the size of all, or its own."""
    specs = [
        factories.model_spec("hf_Bert", aliases=("BertForMaskedLM",)),
        factories.model_spec("resnet18"),
    ]
    sizes = {"BertForMaskedLM": 3}
    of_all = build_cases(specs, Workload(arms=(), batch_sizes=sizes, batch_size=7))
    assert [case.batch_size for case in of_all] == [3, 7]
    own = build_cases(specs, Workload(arms=(), batch_sizes=sizes))
    assert own[1].batch_size == build_cases(specs, Workload(arms=()))[1].batch_size


def test_models_that_the_suite_has_not_are_named(tmp_path: Path) -> None:
    """A file may be of several suites, so that is no error; those chosen by alias are known."""
    specs = [factories.model_spec("hf_Bert", aliases=("BertForMaskedLM",))]
    path = tmp_path / "sizes.txt"
    request = defaults(run_options()).but(BATCH_SIZE_FILE, path)
    path.write_text("BertForMaskedLM,3\nhf_Bert,4\n")
    assert asked_batch_sizes(request, specs) == ({"BertForMaskedLM": 3, "hf_Bert": 4}, [])
    path.write_text("hf_Bret,3\n")
    sizes, (note,) = asked_batch_sizes(request, specs)
    assert sizes == {"hf_Bret": 3}
    assert note == f"--batch-size-file {path} names models that the suite does not have: hf_Bret"
    path.write_text("".join(f"{name},1\n" for name in "abcdefg"))
    assert asked_batch_sizes(request, specs)[1][0].endswith(": a, b, c, d, e, and 2 more")
    assert asked_batch_sizes(defaults(run_options()), specs) == ({}, [])
