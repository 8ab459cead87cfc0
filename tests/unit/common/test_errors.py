from __future__ import annotations

import pytest

from dynamometer.common.errors import (
    DynamometerError,
    NothingSelectedError,
    UnfitEnvironmentError,
    UnknownNameError,
    UsageError,
)

KNOWN = ("resnet18", "resnet50", "vgg16", "alexnet")


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (DynamometerError, 3),
        (UsageError, 2),
        (UnknownNameError, 2),
        (UnfitEnvironmentError, 4),
        (NothingSelectedError, 5),
    ],
)
def test_exit_codes(kind: type[DynamometerError], code: int) -> None:
    """Every fault ends with the exit code the documentation gives it."""
    assert issubclass(kind, DynamometerError)
    assert kind.exit_code == code


def test_every_error_has_its_exit_code_tested() -> None:
    """The table above misses no class."""

    def below(kind: type[DynamometerError]) -> set[type[DynamometerError]]:
        return {kind}.union(*(below(each) for each in kind.__subclasses__()))

    ours = {each for each in below(DynamometerError) if each.__module__.startswith("dynamometer.")}
    assert ours == {
        DynamometerError, UsageError, UnknownNameError, UnfitEnvironmentError,
        NothingSelectedError,
    }  # fmt: skip


def test_an_unknown_name_suggests_near_ones() -> None:
    """A slip of the finger is answered with what was meant, nearest first."""
    error = UnknownNameError("model", "resnet51", KNOWN)
    assert str(error).startswith("unknown model 'resnet51'; did you mean resnet50 or resnet18")


def test_an_unknown_name_far_from_all_lists_them() -> None:
    """Where nothing comes near, all there is is named, and the hint added."""
    error = UnknownNameError("model", "zzz", KNOWN, "Try --list.")
    text = "unknown model 'zzz'; known: alexnet, resnet18, resnet50, vgg16. Try --list."
    assert str(error) == text
