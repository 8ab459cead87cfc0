from __future__ import annotations

import factories
import pytest

from dynamometer.common.interfaces.option import (
    Flag,
    Request,
    Several,
    Switch,
    always,
    defaults,
    never,
)
from dynamometer.common.interfaces.run_options import CACHES, CALLS, SEED, run_options
from dynamometer.common.interfaces.workload_options import BACKENDS, DTYPE, TRAINING
from dynamometer.results.values.cases import Dtype
from dynamometer.results.values.workers import Caches

PLAN = factories.plan()
(CASE,) = PLAN.cases
QUIET = Flag(("-q", "--quiet"), group="Output", again=always)


def test_a_request_gives_values_of_their_types() -> None:
    """An option is asked for by itself."""
    asked = defaults(run_options())
    assert asked[SEED] + 1 == 1
    assert asked[CACHES] is Caches.FIRST_COLD
    assert asked[DTYPE] is Dtype.FLOAT32
    assert asked[BACKENDS] == ()
    assert asked[CALLS] is None


def test_an_option_that_a_command_lacks_is_no_default() -> None:
    """Whoever asks for it has made a mistake, unless they ask whether it is set."""
    asked = defaults([SEED])
    assert QUIET not in asked
    assert not asked.is_set(QUIET)
    with pytest.raises(KeyError):
        asked[QUIET]
    assert not asked.with_defaults([QUIET])[QUIET]


def test_a_request_never_changes() -> None:
    """What differs is another one; and defaults don't replace what was asked for."""
    asked = defaults([SEED])
    other = asked.but(SEED, 3)
    assert (asked[SEED], other[SEED]) == (0, 3)
    assert other.with_defaults([SEED])[SEED] == 3
    assert other.is_set(SEED)
    assert not asked.is_set(SEED)


def test_words_ask_for_the_same() -> None:
    """Of what isn't the default."""
    asked = Request({SEED: 3, BACKENDS: ("a", "b"), QUIET: False})
    assert asked.argv([QUIET, BACKENDS, SEED]) == [
        "--backend",
        "a",
        "--backend",
        "b",
        "--seed",
        "3",
    ]


def test_two_options_are_never_the_same() -> None:
    """Declared alike or not: commands may have options of the same name."""
    assert Flag(("-q", "--quiet"), group="Output", again=always) != QUIET


def test_how_options_are_spelt() -> None:
    """In full; a switch by its yes or its no; a choice by the flag of its value."""
    assert QUIET.argv(value=True) == ["--quiet"]
    assert TRAINING.argv(value=False) == ["--inference"]
    assert Switch[bool | None](("--a", "--b"), default=None, group="Output").argv(None) == []
    assert CACHES.argv(Caches.WARM) == ["--warm"]
    assert CACHES.argv(Caches.FIRST_COLD) == []
    assert CACHES.named == "--cold and --warm"


def test_what_a_case_is_repeated_with() -> None:
    """Nothing where it is the default, but for what is always said."""
    assert QUIET.value_again(PLAN, CASE) is True
    assert SEED.value_again(PLAN, CASE) == 0
    assert CALLS.value_again(PLAN, CASE) is None
    assert never(PLAN, CASE) is None
    assert isinstance(BACKENDS, Several)
    assert BACKENDS.value_again(PLAN, CASE) == ("inductor",)
