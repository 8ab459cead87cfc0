"""What the pages name is there."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import pytest

from dynamometer.common import registry
from dynamometer.common.planning.selection import Selection, select

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted(
    each for each in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")) if each.name != "CHANGELOG.md"
)
CONSTANT = re.compile(
    r"\| (?P<names>(?:in )?`[^|]+`) \| `(?P<module>[\w/]+\.py)` \|$", re.MULTILINE
)
PATH = re.compile(r"`((?:common|dynamo|results|models|tests|bench|docs)/[\w/.-]+?)`")
SOURCES = {".py", ".toml", ".yml"}
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_files_that_pages_name_are_there(page: Path) -> None:
    """Neither a link nor a path leads to nothing."""
    text = page.read_text()
    named = [ROOT / each for each in PATH.findall(text)]
    named += [page.parent / each for each in LINK.findall(text)]
    assert [str(each) for each in named if not each.exists()] == []


def test_nobody_is_told_to_install_it_from_an_index() -> None:
    """No package index has it, and whoever registers the name could give anything."""
    rooms = ("common", "dynamo", "models", "results", "dynamometer", "examples")
    sources = [
        each for room in rooms for each in (ROOT / room).rglob("*") if each.suffix in SOURCES
    ]
    assert len(sources) > 300
    told = re.compile(r"""pip install ["']*dynamometer\b""")
    assert [str(each) for each in (*PAGES, *sources) if told.search(each.read_text())] == []


def test_constants_are_where_the_page_of_measuring_says() -> None:
    """Each row of its table names a constant, and the module that holds it."""
    rows = list(CONSTANT.finditer((ROOT / "docs" / "measuring.md").read_text()))
    assert len(rows) > 30
    for row in rows:
        source = (ROOT / row["module"]).read_text()
        for name in re.findall(r"`(?:Protocol\.)?(\w+)`", row["names"]):
            assert re.search(rf"\b{name}\b", source), f"{row['module']} has no {name}"


def test_every_export_is_on_its_page() -> None:
    """And the page names no other."""
    text = (ROOT / "docs" / "exports.md").read_text()
    rows = re.findall(r"^\| `([\w-]+)` \| [^|]+ \| [^|]+ \|$", text, re.MULTILINE)
    built_in = [
        name for name in registry.targets("exports") if registry.is_built_in("exports", name)
    ]
    assert sorted(rows) == sorted(built_in)


def test_faults_of_models_have_a_hostile_model_each() -> None:
    """The page of faults names models that are run, and all of them."""
    text = (ROOT / "docs" / "reliability.md").read_text()
    (table,) = re.findall(r"### A model\n(.*?)\n###", text, re.DOTALL)
    named = re.findall(
        r"`([a-z_]+)`",
        " ".join(row.split("|")[-2] for row in re.findall(r"^\|.*\|$", table, re.MULTILINE)),
    )
    suite = (ROOT / "tests" / "integration" / "hostile_suite.py").read_text()
    (misdeeds,) = re.findall(r"^MISDEEDS.*?^}", suite, re.DOTALL | re.MULTILINE)
    run = (ROOT / "tests" / "integration" / "test_hostile_models.py").read_text()
    assert set(re.findall(r'^    "(\w+)":', misdeeds, re.MULTILINE)) <= set(named)
    assert [name for name in named if f'"{name}"' not in run] == []


SCRIPT = re.compile(r"^ +\./(?P<suite>\w+)\.py(?P<words>[^#\n]*)", re.MULTILINE)
SELECTS = {"-k": "include", "-x": "exclude", "--only": "only"}
SELECTIONS = sorted(
    {
        (found["suite"], tuple(itertools.pairwise(words)))
        for found in SCRIPT.finditer((ROOT / "README.md").read_text())
        if not SELECTS.keys().isdisjoint(words := tuple(shlex.split(found["words"])))
    }
)


@pytest.mark.parametrize(("suite", "pairs"), SELECTIONS)
def test_selections_of_the_readme_hold_models(
    suite: str, pairs: tuple[tuple[str, str], ...]
) -> None:
    """An example that ends with "the selection holds none" is none."""
    source = registry.suite(suite)
    asked = {
        name: tuple(value for option, value in pairs if SELECTS.get(option) == name)
        for name in SELECTS.values()
    }
    assert select(source.open({}).specs(), Selection(**asked))


def test_the_readme_selects_models() -> None:
    """Its selections are found."""
    assert len(SELECTIONS) > 5
    assert ("timm_models", "resnext") in {
        (suite, value) for suite, pairs in SELECTIONS for option, value in pairs if option == "-k"
    }
