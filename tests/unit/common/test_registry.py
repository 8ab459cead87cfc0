from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest

from dynamometer.common import registry
from dynamometer.common.errors import DynamometerError, UnknownNameError, UsageError
from dynamometer.results.reports.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed distribution whose entry points a test writes; gives the file for them."""
    folder = tmp_path / "some_plugin-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: some-plugin\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder / "entry_points.txt"
    importlib.invalidate_caches()


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
    with pytest.raises(UsageError, match="backend 'broken' can't be loaded from no_such_module:x"):
        registry.resolve("backends", "broken")


@pytest.mark.parametrize(
    ("kind", "says"), [("suites", "SUITE = JSONDecoder"), ("studies", "STUDY = JSONDecoder")]
)
def test_a_class_where_an_instance_is_needed(kind: registry.Kind, says: str, plugin: Path) -> None:
    """It is refused with what to register, before anything is asked of it."""
    plugin.write_text(f"[dynamometer.{kind}]\nmine = json:JSONDecoder\n")
    with pytest.raises(UsageError, match=rf"from json:JSONDecoder: .*register an .*{says}\(\)"):
        registry.resolve(kind, "mine")


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("suites", "its type is str, which lacks options, target, opening, open"),
        ("studies", "its type is str, which lacks asked_by, options, experiments, experiment"),
        ("sinks", "its type is str, which can't be called"),
        ("executors", "its type is str, which can't be called"),
        ("exports", "its type is str, which can't be called"),
    ],
)
def test_what_is_nothing_of_its_kind(kind: registry.Kind, says: str, plugin: Path) -> None:
    """It is refused by name, before anything is asked of it."""
    plugin.write_text(f"[dynamometer.{kind}]\nmine = string:digits\n")
    with pytest.raises(UsageError, match=rf" 'mine' can't be loaded from string:digits: {says}"):
        registry.resolve(kind, "mine")


def test_a_plugin_that_fails_is_named(plugin: Path) -> None:
    """What says itself what is wrong stays as it is, and so does an error of ours."""
    plugin.write_text("[dynamometer.exports]\nmine = string:digits\n")
    says = r"^the export 'mine' of string:digits failed with ValueError: no \(.*\.py:\d+\)$"
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


def test_a_name_registered_twice_is_refused(plugin: Path) -> None:
    """Which of two implementations was meant is not guessed."""
    plugin.write_text("[dynamometer.sinks]\nconsole = json:dumps\n")
    with pytest.raises(UsageError, match=r"sinks 'console' is registered twice: .*json:dumps"):
        registry.targets("sinks")


@pytest.mark.parametrize("kind", get_args(registry.Kind))
def test_every_kind_has_something(kind: registry.Kind) -> None:
    """Each interface comes with at least one implementation, given as `module:attribute`."""
    found = registry.targets(kind)
    assert found
    for target in found.values():
        module, _, attribute = target.partition(":")
        assert module
        assert attribute.isidentifier()
