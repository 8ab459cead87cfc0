"""What is refused before anything runs says for which models, and how to do without them."""

from __future__ import annotations

import re
import shlex

import factories
import pytest

from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.workload import Workload
from dynamometer.common.planning.refusals import check_batch_size
from dynamometer.common.planning.selection import Selection, select


def test_all_that_take_no_batch_size_are_named() -> None:
    """What is advised leaves the others."""
    sizes: dict[str, dict[str, int]] = {"a": {"cpu": 2}, "b": {}, "c (d)": {}}
    specs = [factories.model_spec(name, batch_size=size) for name, size in sizes.items()]
    workload = Workload(arms=("eager",), batch_size=4)
    with pytest.raises(UsageError) as caught:
        check_batch_size("user", specs, workload)
    says, _, advice = str(caught.value).partition(", or leave them out: ")
    assert says.startswith("b, c (d) take no batch_size=NUMBER as an argument")
    left_out = tuple(shlex.split(advice)[1::2])
    assert left_out == ("^b$", f"^{re.escape('c (d)')}$")
    assert [each.name for each in select(specs, Selection(exclude=left_out))] == ["a"]
    with pytest.raises(UsageError, match=r"^b takes no .*; give it no batch size$"):
        check_batch_size("user", specs[1:2], workload)
