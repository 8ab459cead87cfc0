"""What a plugin's suite raises, or gives that is none of its kind, is said with its package."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import factories
import pytest

from dynamometer.common import registry
from dynamometer.common.command_line import cli
from dynamometer.common.errors import DynamometerError
from dynamometer.common.interfaces.suite import TellingSuite

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
from types import SimpleNamespace
from dynamometer.common.interfaces.suite_source import SuiteSource
from dynamometer.results.values.cases import ModelSpec

def fail(error):
    raise error

SPEC = ModelSpec(suite="odd", name="m", task="t", origin="o", build="b")
MODULE = SimpleNamespace(forward=None, named_parameters=None)

class Suite:
    def specs(self): return [SPEC]
    def preload(self, specs): ...
    def load(self, spec, case): return SimpleNamespace(module=MODULE, args=(), kwargs={{}})

class Source(SuiteSource):
    size = 4
    def open(self, opening): return Suite()

{changed}
SUITE = Source()
"""
ORIGIN = "the suite 'odd' of odd_suite:SUITE (package some-plugin) failed"


def install(plugin: Path, changed: str) -> None:
    """Bring a suite, a method of which is another one."""
    plugin.write_text("[dynamometer.suites]\nodd = odd_suite:SUITE\n")
    (plugin.parents[1] / "odd_suite.py").write_text(MODULE.format(changed=changed))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ("Suite.specs = lambda self: fail(SystemExit(0))", "with SystemExit: 0 ("),
        ("Suite.specs = lambda self: None", ": specs gives NoneType, and no list of ModelSpec"),
        ("Suite.specs = lambda self: [{}]", ": specs gives dict, and no ModelSpec"),
        ("Source.open = lambda *_: None", ": what open gives is no Suite: its type is NoneType"),
        ("Source.open = lambda *_: fail(RuntimeError('no'))", "with RuntimeError: no ("),
    ],
)
def test_what_can_not_be_listed(
    changed: str, says: str, plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ends the command with a sentence."""
    install(plugin, changed)
    assert cli.main(None, ["run", "odd", "--list"]) == 3
    said = capsys.readouterr().err
    assert f"error: {ORIGIN}{says if says[0] == ':' else f' {says}'}" in said
    assert "Traceback" not in said


def test_what_the_user_is_to_know_is_said_as_it_is(
    plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the errors that the interface names."""
    install(plugin, "Source.open = lambda *_: fail(ValueError('there is no such folder'))")
    assert cli.main(None, ["run", "odd", "--list"]) == 2
    assert "error: there is no such folder" in capsys.readouterr().err


@pytest.mark.parametrize("error", ["RuntimeError('no')", "SystemExit('no')", "ValueError('no')"])
def test_what_fails_before_workers_start(error: str, plugin: Path) -> None:
    """Whatever it raises."""
    install(plugin, f"Suite.preload = lambda self, specs: fail({error})")
    suite = registry.suite("odd").open({})
    with pytest.raises(DynamometerError) as caught:
        suite.preload([])
    assert str(caught.value).startswith(f"{ORIGIN} with {error.partition('(')[0]}: no (")


@pytest.mark.parametrize(
    ("gives", "says"),
    [
        ("None", "what load gives is no LoadedModel: its type is NoneType, which lacks module"),
        ("(1, 2)", "what load gives is no LoadedModel: its type is tuple, which lacks module"),
        (
            "SimpleNamespace(module=fail, args=(), kwargs={})",
            "the module that load gives is none: its type is function, which lacks forward",
        ),
        ("SimpleNamespace(module=MODULE, args=7, kwargs={})", "load gives args that are int"),
    ],
)
def test_what_is_no_model(gives: str, says: str, plugin: Path) -> None:
    """Is said as the failure of its case."""
    install(plugin, f"Suite.load = lambda *_: {gives}")
    suite = registry.suite("odd").open({})
    (spec,) = suite.specs()
    with pytest.raises(DynamometerError, match=says):
        suite.load(spec, factories.case("m", suite="odd"))


def test_what_is_as_it_must_be_is_handed_on(plugin: Path) -> None:
    """And so is what loading a model raises, which is its outcome."""
    install(plugin, "Suite.telling = lambda self, tell: self")
    source = registry.suite("odd")
    assert source.size == 4  # type: ignore[attr-defined]  # the plugin's own
    suite = source.open({})
    assert isinstance(suite, TellingSuite)
    (spec,) = suite.specs()
    suite.preload([spec])
    case = factories.case("m", suite="odd")
    assert suite.telling(print).load(spec, case).args == ()
    install(plugin, "Suite.load = lambda *_: fail(KeyError('weights'))")
    del sys.modules["odd_suite"]
    with pytest.raises(KeyError, match="weights"):
        registry.suite("odd").open({}).load(spec, case)
