"""What the pages name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dynamometer.common import registry

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted(
    each for each in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")) if each.name != "CHANGELOG.md"
)
CONSTANT = re.compile(
    r"\| (?P<names>(?:in )?`[^|]+`) \| `(?P<module>[\w/]+\.py)` \|$", re.MULTILINE
)
PATH = re.compile(r"`((?:common|dynamo|results|models|tests|bench|docs)/[\w/.-]+?)`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_files_that_pages_name_are_there(page: Path) -> None:
    """Neither a link nor a path leads to nothing."""
    text = page.read_text()
    named = [ROOT / each for each in PATH.findall(text)]
    named += [page.parent / each for each in LINK.findall(text)]
    assert [str(each) for each in named if not each.exists()] == []


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
