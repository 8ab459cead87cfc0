"""The page as HTML: one file that asks nobody for anything. Pure; no torch."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
import msgspec

import dynamometer
from dynamometer.results.reports.page.earlier import shown_earlier
from dynamometer.results.reports.page.run import shown
from dynamometer.results.reports.page.values import PageData

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.reports.page.run import RunToShow
    from dynamometer.results.reports.page.values import ShownComparison, ShownHistory
    from dynamometer.results.values.cases import Value

_ASSETS = Path(__file__).parent / "assets"
_STYLE = ("page.css",)
_SCRIPTS = (
    "elements.js", "texts.js", "charts.js", "tables.js", "overview.js", "run.js", "model.js",
    "comparison.js", "history_charts.js", "history.js", "earlier.js", "start.js",
)  # fmt: skip
"""In the order in which they are read; the last begins."""


def page(
    runs: Sequence[RunToShow],
    comparison: ShownComparison | None = None,
    history: ShownHistory | None = None,
    *,
    home: str | None = None,
) -> str:
    """Write runs, or a history of runs, as an HTML page that needs nothing else.

    Args:
        runs: to show.
        comparison: of two of them; `None` where there are not two.
        history: of models over many runs.
        home: the address of a list of runs, where there is a server; runs are below it.
    """
    found = [shown(each) for each in runs]
    data = PageData(
        version=dynamometer.__version__,
        runs=tuple(run for run, _ in found),
        comparison=comparison,
        history=history,
        home=home,
    )
    style, script = style_text(), _text(_SCRIPTS)
    return template("page.html.j2").render(
        title=" and ".join(run.title for run in data.runs) or "History",
        policy=policy_of(style, script),
        style=style,
        script=script,
        data=_as_json(data),
        details={
            f"details-{number}-{index}": _as_json(each)
            for number, (_, details) in enumerate(found)
            for index, each in enumerate(details)
        }
        | _earlier(runs),
        runs=data.runs,
        home=home,
    )


def _earlier(runs: Sequence[RunToShow]) -> dict[str, str]:
    """Return what is known of earlier runs, beside each run of which it is."""
    found = [
        each.earlier and shown_earlier(each.earlier, each.cases, each.manifest.created_at)
        for each in runs
    ]
    return {f"earlier-{number}": _as_json(each) for number, each in enumerate(found) if each}


def template(name: str) -> jinja2.Template:
    """Return one of the templates, which escapes what it is given."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_ASSETS),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(name)


def style_text() -> str:
    """Return the style that all pages have."""
    return _text(_STYLE)


def _text(names: Iterable[str]) -> str:
    return "".join((_ASSETS / name).read_text(encoding="utf-8") for name in names)


def policy_of(style: str, script: str = "", *, form: str = "'none'") -> str:
    """Return a content security policy: nothing but our own style and script, no request at all.

    Args:
        style: the page's.
        script: likewise; empty where it has none.
        form: where its forms may lead.
    """
    allowed = [
        f"{name} 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for name, text in (("style-src", style), ("script-src", script))
        if text
    ]
    return "; ".join(["default-src 'none'", *allowed, "base-uri 'none'", f"form-action {form}"])


def _as_json(value: Value) -> str:
    """Return JSON that can't end the element it stands in, whatever a model is called."""
    return msgspec.json.encode(value).decode().replace("<", "\\u003c")
