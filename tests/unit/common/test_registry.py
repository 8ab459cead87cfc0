from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Literal, get_args

import pytest

from dynamometer.common import registry
from dynamometer.common.errors import DynamometerError, UnknownNameError, UsageError
from dynamometer.results.reports.console import Console
from dynamometer.results.store.graphs.corpus import Corpus


def test_built_in_names_are_found() -> None:
    """A registered name is a lazy `module:attribute`."""
    assert registry.target("sinks", "console") == "dynamometer.results.reports.console:Console"
    assert registry.resolve("sinks", "console") is Console


def test_a_name_with_a_colon_is_a_target_already() -> None:
    """A user's own callable needs no registration."""
    assert registry.target("backends", "json.decoder:fast") == "json.decoder:fast"
    assert registry.resolve("backends", "json:dumps") is importlib.import_module("json").dumps


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("backends", "inducter", "unknown backend 'inducter'; did you mean inductor"),
        ("backends", "zzz", "module:attribute"),
        ("suites", "torchbnech", "unknown suite 'torchbnech'; did you mean torchbench"),
        ("sinks", "zzz", "unknown sink 'zzz'; known: console, csv"),
    ],
)
def test_unknown_names_get_suggestions(kind: registry.Kind, name: str, text: str) -> None:
    """What is not registered is answered with what comes near."""
    with pytest.raises(UnknownNameError, match=text):
        registry.resolve(kind, name)


def test_the_baseline_is_not_suggested() -> None:
    """The baseline can't be asked for, so it isn't offered."""
    with pytest.raises(UnknownNameError) as caught:
        registry.target("backends", "zzz")
    assert "baseline" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["no_such_module:x", "json:no_such_thing", "json.no_such_module:x"]
)
def test_targets_that_cannot_be_loaded(name: str) -> None:
    """A module or attribute that there is not is a usage error which names it."""
    with pytest.raises(UsageError, match=f"backend {name!r} can't be loaded: .*no_such"):
        registry.resolve("backends", name)


def test_a_missing_package_is_noticed_without_an_import() -> None:
    """A misspelt module is refused while a run is planned, before anything is imported."""
    with pytest.raises(UsageError, match="can't be loaded: no module named 'no_such_package'"):
        registry.target("backends", "no_such_package.compiler:fast")
    assert registry.target("backends", "__main__:fast") == "__main__:fast"


def test_a_plugin_that_cannot_be_loaded_says_where_it_is(plugin: Path) -> None:
    """A name that stands for something else is named with it."""
    plugin.write_text("[dynamometer.backends]\nbroken = no_such_module:x\n")
    says = r"backend 'broken' can't be loaded from no_such_module:x \(package some-plugin\)"
    with pytest.raises(UsageError, match=says):
        registry.resolve("backends", "broken")


@pytest.mark.parametrize(
    ("kind", "says"), [("suites", "SUITE = JSONDecoder"), ("studies", "STUDY = JSONDecoder")]
)
def test_a_class_where_an_instance_is_needed(kind: registry.Kind, says: str, plugin: Path) -> None:
    """It is refused with what to register, before anything is asked of it."""
    plugin.write_text(f"[dynamometer.{kind}]\nmine = json:JSONDecoder\n")
    with pytest.raises(UsageError, match=rf"from json:JSONDecoder .*: .*register an .*{says}\(\)"):
        registry.resolve(kind, "mine")


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("suites", "its type is str, which lacks options, target, opening, open"),
        ("studies", "its type is str, which lacks asked_by, options, experiments, experiment"),
        ("sinks", "its type is str, which can't be called"),
        ("executors", "its type is str, which can't be called"),
        ("exports", "its type is str, which can't be called"),
        ("backends", "its type is str, which lacks compile, available, captures"),
    ],
)
def test_what_is_nothing_of_its_kind(kind: registry.Kind, says: str, plugin: Path) -> None:
    """It is refused by name, before anything is asked of it."""
    plugin.write_text(f"[dynamometer.{kind}]\nmine = string:digits\n")
    with pytest.raises(
        UsageError, match=rf" 'mine' can't be loaded from string:digits \(.*\): {says}"
    ):
        registry.resolve(kind, "mine")


def test_a_plugin_that_fails_is_named(plugin: Path) -> None:
    """What says itself what is wrong stays as it is, and so does an error of ours."""
    plugin.write_text("[dynamometer.exports]\nmine = string:digits\n")
    says = r"^the export 'mine' of string:digits \(package some-plugin\) failed with ValueError: n"
    no = ValueError("no")
    with pytest.raises(DynamometerError, match=says), registry.named("exports", "mine"):
        raise no
    with pytest.raises(ValueError, match=r"^no$"), registry.named("exports", "junit"):
        raise no
    full = OSError("full")
    with pytest.raises(OSError, match=r"^full$"), registry.named("exports", "mine"):
        raise full


@pytest.mark.parametrize("folder", ["", "./", "models/", "../"])
@pytest.mark.parametrize("on_path", [[], ["."]])
def test_a_file_in_place_of_a_module_is_told(
    folder: str, on_path: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its module is no package, so it can't hold one that is called `py`."""
    (tmp_path / "here" / "models").mkdir(parents=True)
    (tmp_path / "here" / "never_imported.py").touch()
    monkeypatch.chdir(tmp_path / "here")
    for each in on_path:
        monkeypatch.syspath_prepend(tmp_path / "here" / each)
    file = f"{folder}never_imported.py"
    with pytest.raises(UsageError, match=re.escape(f"did you mean {file}::net?")):
        registry.target("suites", f"{file}:net")
    for colon in (":", "::"):
        with pytest.raises(UsageError, match="is a file: name its module, never_imported:compile"):
            registry.target("backends", f"{file}{colon}compile")


@pytest.mark.parametrize("name", ["", "::net"])
@pytest.mark.parametrize("folder", ["", "./", "models/"])
def test_a_file_without_its_ending_is_told(
    name: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is no suite's."""
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    Path(folder, "never_imported.py").touch()
    said = f"is no suite; did you mean the file {folder}never_imported.py{name}?"
    with pytest.raises(UsageError, match=re.escape(said)):
        registry.suite_named(f"{folder}never_imported{name}")


def test_a_module_may_be_called_py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one of a package."""
    (tmp_path / "holds_py").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert registry.target("backends", "holds_py.py:compile") == "holds_py.py:compile"


def test_the_baseline_is_no_choice() -> None:
    """It is always measured, so it is listed nowhere."""
    choices = registry.choices("backends")
    assert {"inductor", "ts"} <= set(choices)
    assert "baseline" not in choices
    assert choices == sorted(choices)


def test_the_current_folder_is_searched_if_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that is there is no module that was meant, but the way to mean it is named."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    (tmp_path / "a_compiler_of_mine.py").touch()
    with pytest.raises(UsageError, match=r"in the current folder: set PYTHONPATH=\.$"):
        registry.target("backends", "a_compiler_of_mine:compile")
    with pytest.raises(UsageError, match="install it, or put its folder on PYTHONPATH"):
        registry.target("backends", "another_of_mine:compile")


@pytest.mark.parametrize("name", ["json:", ":dumps", ".json:dumps", "json.:dumps", ":"])
def test_half_a_target_is_an_unknown_name(name: str) -> None:
    """What lacks its module or attribute, or is relative, is no target but a name nobody has."""
    with pytest.raises(UnknownNameError, match=f"unknown backend {name!r}.* module:attribute"):
        registry.resolve("backends", name)
    with pytest.raises(UnknownNameError, match=f"unknown backend {name!r}"):
        registry.target("backends", name)


def test_plugins_are_found(plugin: Path) -> None:
    """An entry point of an installed distribution is a name like any other."""
    plugin.write_text("[dynamometer.backends]\nmine = json:dumps\n")
    assert registry.targets("backends")["mine"] == "json:dumps"
    assert registry.resolve("backends", "mine") is importlib.import_module("json").dumps


def test_listing_imports_no_plugin(plugin: Path) -> None:
    """A plugin that can't be imported is still listed."""
    plugin.write_text("[dynamometer.backends]\nbroken = no_such_module:x\n")
    assert "broken" in registry.targets("backends")


def test_a_name_of_ours_stays_ours(plugin: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a plugin calls so is left out, which is said where names are listed."""
    plugin.write_text("[dynamometer.sinks]\nconsole = json:dumps\n")
    assert registry.resolve("sinks", "console") is Console
    assert "console" in registry.choices("sinks")
    assert capsys.readouterr().err == (
        "left out: sink 'console' of json:dumps (package some-plugin): Dynamometer has its own"
        " console\n"
    )


def test_a_name_of_two_plugins_is_refused(plugin: Path) -> None:
    """Where it is asked for: which of two implementations was meant is not guessed."""
    plugin.write_text("[dynamometer.sinks]\nmine = json:dumps\nfine = json:loads\n")
    other = plugin.parents[1] / "other-1.0.dist-info"
    other.mkdir()
    (other / "entry_points.txt").write_text("[dynamometer.sinks]\nmine = json:loads\n")
    assert {"mine", "fine"} <= set(registry.choices("sinks"))
    assert registry.target("sinks", "fine") == "json:loads"
    says = r"'mine' is registered twice: json:\w+ \(package [a-z-]+\) and json:\w+ \(package "
    with pytest.raises(UsageError, match=says):
        registry.resolve("sinks", "mine")


@pytest.mark.parametrize("kind", ["suites", "studies"])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("raise RuntimeError('no')", "importing it raised RuntimeError: no"),
        ("raise BaseException('no')", "importing it raised BaseException: no"),
        ("IT = 7", "its type is int, which lacks "),
        ("", "has no attribute 'IT'"),
        ("class Odd:\n    def __getattr__(self, name): raise OSError('no')\nIT = Odd()", "OSError"),
    ],
)
def test_what_of_a_plugin_is_broken_is_left_out(
    kind: Literal["suites", "studies"], text: str, says: str, plugin: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Ours are there, and why others are not is said once, with the package."""
    plugin.write_text(f"[dynamometer.{kind}]\nbroken = broken_one:IT\n")
    (plugin.parents[1] / "broken_one.py").write_text(text)
    ours = [each for each in registry.targets(kind) if registry.is_built_in(kind, each)]
    for _ in range(2):
        assert list(registry.loadable(kind)) == ours
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("left out: ")
    assert "'broken'" in said
    assert "broken_one:IT (package some-plugin)" in said
    assert says in said


def test_entry_points_that_cannot_be_read(plugin: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cost what their package brings."""
    plugin.write_text("[dynamometer.suites]\nnonsense\n")
    other = plugin.parents[1] / "other-1.0.dist-info"
    other.mkdir()
    (other / "entry_points.txt").write_text("[dynamometer.suites]\nmine = json:loads\n")
    assert "mine" in registry.choices("suites")
    assert "mine" in registry.choices("suites")
    (said,) = capsys.readouterr().err.splitlines()
    assert "the package some_plugin" in said
    assert f"as its files in {plugin.parent} can't be read" in said


@pytest.mark.parametrize(
    ("target", "says"), [("return 7", "gives int"), ("raise OSError('no')", "OSError: no")]
)
def test_a_suite_that_cannot_say_what_it_takes(
    target: str, says: str, plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It takes nothing from the others, and never what is a suite's name."""
    plugin.write_text("[dynamometer.suites]\nodd = odd_suite:SUITE\n")
    (plugin.parents[1] / "odd_suite.py").write_text(
        "from dynamometer.common.interfaces.suite_source import SuiteSource\n"
        "class Odd(SuiteSource):\n"
        f"    def target(self, text): {target}\n"
        "    def open(self, opening): ...\n"
        "SUITE = Odd()\n"
    )
    assert registry.suite_of("torchbench") is None
    assert registry.suite_of("mine.py") == "user"
    assert capsys.readouterr().err == ""
    assert registry.suite_of("nothing") is None
    assert registry.suite_of("nothing") is None
    (said,) = capsys.readouterr().err.splitlines()
    assert "the suite 'odd' of odd_suite:SUITE (package some-plugin) failed" in said
    assert says in said


def test_a_corpus_may_be_called_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `corpus record` calls it; a suite with models of its own is that, whatever lies there."""
    monkeypatch.chdir(tmp_path)
    assert registry.suite_of("corpus") is None
    Corpus.made(tmp_path / "corpus")
    for name in ("torchbench", "parity", "user"):
        Corpus.made(tmp_path / name)
    assert registry.suite_of("corpus") == "corpus"
    assert {registry.suite_of(name) for name in ("torchbench", "parity", "user")} == {None}


@pytest.mark.parametrize("kind", get_args(registry.Kind))
def test_every_kind_has_something(kind: registry.Kind) -> None:
    """Each interface comes with at least one implementation, given as `module:attribute`."""
    found = registry.targets(kind)
    assert found
    for target in found.values():
        module, _, attribute = target.partition(":")
        assert module
        assert attribute.isidentifier()
