from __future__ import annotations

import factories

from dynamometer.common.studies.graphs.report import Found, closing_lines
from dynamometer.results.values.graphs import Origin, Part, RecordedGraph, RecordedModel
from dynamometer.results.values.records import PASSED


def test_what_was_left_out_is_told_line_by_line() -> None:
    """Whoever shows lines may cut or mark each of them."""
    graphs = tuple(
        RecordedGraph(key=key, part=Part.INFERENCE, op_count=1, calls=1, reason=reason)
        for key, reason in (("a", "it calls x"), ("b", "it calls x"), ("c", None))
    )
    model = RecordedModel(origin=Origin(suite="s", model="m"), graphs=graphs)
    lines = closing_lines([Found(factories.case("m"), PASSED, model)])
    assert "graphs: 3, of which 3 differ; 2 are left out" in lines
    assert lines[-1].split(maxsplit=1) == ["2", "it calls x"]
