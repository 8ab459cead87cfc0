"""How runs of earlier formats are read: they are brought up to the present one.

Each step takes and returns what JSON decodes to, and goes from one format to the next.
"""

from __future__ import annotations

from typing import Any

OLDEST = 2


def upgraded_record(record: Any) -> Any:
    """Return a record of an earlier format as one of the present."""
    if isinstance(record, dict) and record.get("schema") == OLDEST:
        coverage, sizes = record.pop("coverage", None), record.pop("sizes", None)
        record = {**record, "schema": 3, "found": coverage or sizes}
    return _in_words_of_4(record)


def upgraded_manifest(manifest: Any) -> Any:
    """Return a manifest of an earlier format as one of the present."""
    if isinstance(manifest, dict) and manifest.get("schema") == OLDEST:
        _forget_cosine(manifest)
        manifest = {**manifest, "schema": 3}
    return _in_words_of_4(manifest)


def _forget_cosine(manifest: dict[str, Any]) -> None:
    """Leave out what no model asks for any more, and was never true."""
    match manifest:
        case {"plan": {"models": [*models]}}:
            for model in models:
                if isinstance(model, dict):
                    model.pop("cosine", None)


_NAMES_IN_4 = {
    "apart": "isolated",
    "controls": "overrides",
    "disturbed_turns": "disturbed_isolated_runs",
    "in_turns": "in_isolation",
    "kernel_time": "system_time",
    "latency_apart": "latency_isolated",
    "lead_in_calls": "discarded_calls",
    "lead_in_s": "discarded_s",
    "rested": "waited",
    "spread": "between_sd",
    "symbols": "dynamic_dims",
    "visit_calls": "burst_calls",
    "visit_s": "burst_s",
}
"""Names of fields, metrics, experiments and stages that format 4 changed."""

_OF_OTHERS = frozenset(
    {"cpu", "cuda", "found", "options", "packages", "small", "suite_options", "tiny", "variables",
     "varies"}
)  # fmt: skip
"""Fields whose contents are named by others."""


def _in_words_of_4(value: Any) -> Any:
    if not isinstance(value, dict) or value.get("schema") != 3:  # noqa: PLR2004  the format before
        return value
    return {**_renamed(value), "schema": 4}


def _renamed(value: Any) -> Any:
    """Return a value with the names of format 4."""
    if isinstance(value, list):
        return [_renamed(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {_NAMES_IN_4.get(key, key): _content(key, each) for key, each in value.items()}


def _content(key: str, value: Any) -> Any:
    """Return the value of a field, as it is where others have named what is in it."""
    match value:
        case str() if key == "metric":
            return _NAMES_IN_4.get(value, value)
        case list() if key == "experiments":
            return [_NAMES_IN_4.get(each, each) for each in value]
        case _:
            return value if key in _OF_OTHERS else _renamed(value)
