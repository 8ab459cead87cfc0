"""One fault of a plugin costs what was asked of it, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dynamometer.common.command_line import cli
from dynamometer.common.interfaces import arm_names
from dynamometer.common.planning import arms
from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from pathlib import Path

OPTION = "Flag(('--of-a-plugin',), group='Output', help='Nothing.')"
VALUED = "Valued(('--size',), default='x', reads=click.INT, group='Output')"
ARGUMENT = "Argument(('MINE',), default='x', reads=click.STRING, is_required=True)"
MODULE = """
import click
from dynamometer.common.interfaces.option import Argument, Flag, Valued
from dynamometer.common.interfaces.suite_source import SuiteSource
from dynamometer.common.studies.study import StudyOfCases

class Source(SuiteSource):
    options = {options}
    def open(self, opening):
        return 7

class Study(StudyOfCases):
    modules = {{}}
    options = {options}

SUITE, STUDY = Source(), Study()
"""


def install(plugin: Path, options: str, *kinds: str) -> None:
    """Bring a suite or a study with options."""
    places = {"suites": "SUITE", "studies": "STUDY"}
    lines = [f"[dynamometer.{kind}]\nodd = odd_plugin:{places[kind]}\n" for kind in kinds]
    plugin.write_text("".join(lines))
    (plugin.parents[1] / "odd_plugin.py").write_text(MODULE.format(options=options))


@pytest.mark.parametrize("kind", ["suites", "studies"])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("7", "failed with TypeError"),
        ("(7,)", "failed with AttributeError"),
        (f"({OPTION.replace('--of-a-plugin', '--backend')},)", "its option --backend is called"),
        (f"({OPTION.replace('--of-a-plugin', '--help')},)", "its option --help is called"),
        (f"({OPTION.replace('Output', 'Nope')},)", "failed with KeyError: 'Nope'"),
        (f"({VALUED},)", "failed with BadParameter: 'x' is not a valid integer"),
        (f"({ARGUMENT},)", "its option MINE is typed without a flag"),
    ],
)
def test_options_that_cannot_be_offered(
    kind: str, options: str, says: str, plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are left out with what brings them; everything else can be asked for."""
    install(plugin, options, kind)
    assert cli.main(None, ["run", "--help"]) == 0
    shown = capsys.readouterr()
    assert "--backend" in shown.out
    (said,) = shown.err.splitlines()
    assert said.startswith("left out: the ")
    assert "(package some-plugin)" in said
    assert says in said
    assert cli.main(None, ["run", "torchbench", "--list"]) == 0
    assert cli.main("torchbench", ["--list"]) == 0
    assert "resnet18" in capsys.readouterr().out


def test_of_two_of_a_name_the_first_is_offered(
    plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A study comes before a suite."""
    install(plugin, f"({OPTION},)", "studies", "suites")
    (plugin.parents[1] / "odd_plugin.py").write_text(
        MODULE.format(options=f"({OPTION},)").replace("SUITE, STUDY = Source(), Study()", "")
        + "SUITE, STUDY = Source(), Study()\nSource.options = (" + OPTION + ",)\n"
    )  # fmt: skip
    assert cli.main(None, ["run", "--help"]) == 0
    shown = capsys.readouterr()
    assert "--of-a-plugin" in shown.out
    assert "the suite 'odd'" in shown.err
    assert "the study 'odd'" not in shown.err


def test_help_and_lists_need_no_plugin(plugin: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever it does when it is imported."""
    plugin.write_text(
        "[dynamometer.suites]\nodd = odd_plugin:IT\n[dynamometer.studies]\nodd = odd_plugin:IT\n"
        "[dynamometer.backends]\nodd = odd_plugin:IT\n"
    )
    (plugin.parents[1] / "odd_plugin.py").write_text("raise SystemExit(7)")
    for words in (["--help"], ["run", "--help"], ["ls", "backends"], ["ls", "suites"]):
        assert cli.main(None, words) == 0
    assert capsys.readouterr().err.count("left out") == 2
    for words in (
        ["ls", "backends", "--long"],
        ["run", "torchbench", "--only", "alexnet", "--list"],
    ):
        assert cli.main(None, words) == 0
    assert "backend 'odd' can't be loaded from odd_plugin:IT (package some-plugin)" in (
        capsys.readouterr().out
    )


def test_of_every_backend_a_broken_one_is_left_out(plugin: Path) -> None:
    """By `--backend all`, with the reason; the others are compared, and may be given options."""
    plugin.write_text(
        "[dynamometer.backends]\nodd = odd_plugin:NOT\nodder = odd_plugin:LACKS\ngone = nope:IT\n"
    )
    (plugin.parents[1] / "odd_plugin.py").write_text(
        "from dynamometer.dynamo.backends.compilers import ThroughDynamo\n"
        "NOT = 7\nLACKS = ThroughDynamo(name='odder', packages=('nope.here',))\n"
    )
    found = arms.usable("cpu", Mode.INFERENCE)
    assert "inductor" in found.names
    for name in ("odd", "odder", "gone"):
        assert name not in found.names
        assert f"backend '{name}'" in found.reasons[name]
        assert "(package some-plugin)" in found.reasons[name]
    assert arm_names.with_config([arm_names.read("eager")], ["no-cudagraphs"])
