from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import factories
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dynamometer.common.checking.shapes import (
    SIZES,
    describe,
    sizes_from,
    variants,
    with_other_sizes,
)
from dynamometer.common.interfaces.outcome import SkippedError
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.results.values.cases import Scale

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dynamometer.results.values.cases import Case, ModelSpec


class Vectors:
    """A suite of one model over vectors, which takes batches up to four."""

    def specs(self) -> Iterable[ModelSpec]:
        """Describe nothing."""
        return ()

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import nothing."""

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Build it, if the batch is small enough."""
        assert case.batch_size is not None
        if case.batch_size > 6:
            msg = "seven are too many"
            raise ValueError(msg)
        return LoadedModel(module=nn.Identity(), args=(torch.zeros(case.batch_size),))


@given(published=st.integers(1, 10_000), multiple=st.sampled_from([1, 2, 32]))
def test_sizes(published: int, multiple: int) -> None:
    """There are as many different ones as asked for, the published first, by equal steps."""
    sizes = sizes_from(published * multiple, multiple)
    assert sizes[0] == published * multiple
    assert len(set(sizes)) == SIZES
    assert all(size > 0 and size % multiple == 0 for size in sizes)
    assert len({later - earlier for earlier, later in itertools.pairwise(sizes)}) == 1


def test_large_sizes_shrink_and_small_ones_grow() -> None:
    """What is published is the most that a large model is given."""
    assert sizes_from(64) == (64, 56, 48, 40, 32)
    assert sizes_from(2) == (2, 3, 4, 5, 6)
    assert sizes_from(384, 32) == (384, 352, 320, 288, 256)


def test_the_batch_size_varies_unless_the_table_says_what_does() -> None:
    """A graph has more or fewer nodes; a picture is one of a batch."""
    case = factories.case(batch_size=8, scale=Scale.TINY)
    spec = factories.model_spec(options={"nodes": 80, "channels": 3}, tiny={"nodes": 16})
    assert [each.batch_size for _, each in variants(spec, case)] == [8, 7, 6, 5, 4]
    assert describe(spec, case) == "Batch sizes of a step: 8, 7, 6, 5, 4."
    spec = factories.model_spec(
        options={"nodes": 80, "channels": 3}, tiny={"nodes": 16}, varies={"nodes": 1}
    )
    found = [each.options_at(Scale.TINY, "cpu") for each, _ in variants(spec, case)]
    assert found == [{"nodes": nodes, "channels": 3} for nodes in (16, 14, 12, 10, 8)]
    assert {each.batch_size for _, each in variants(spec, case)} == {8}
    assert describe(spec, case) == "Sizes of a step: nodes 16, 14, 12, 10, 8."


def test_the_inputs_of_other_sizes_are_added() -> None:
    """They come from the suite, which knows what an input is."""
    spec, case = factories.model_spec(), factories.case(batch_size=2)
    loaded = with_other_sizes(Vectors().load(spec, case), Vectors(), spec, case)
    assert [len(each.args[0]) for each in loaded.calls] == [2, 3, 4, 5, 6]
    assert loaded.notes == ("Batch sizes of a step: 2, 3, 4, 5, 6.",)


def test_a_model_of_one_size_is_skipped() -> None:
    """That it can't be built otherwise is no fault; the reason says what it said."""
    spec, case = factories.model_spec(), factories.case(batch_size=4)
    with pytest.raises(SkippedError, match="seven are too many"):
        with_other_sizes(Vectors().load(spec, case), Vectors(), spec, case)
