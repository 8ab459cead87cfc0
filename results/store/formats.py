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
        return {**record, "schema": OLDEST + 1, "found": coverage or sizes}
    return record


def upgraded_manifest(manifest: Any) -> Any:
    """Return a manifest of an earlier format as one of the present."""
    if isinstance(manifest, dict) and manifest.get("schema") == OLDEST:
        _forget_cosine(manifest)
        return {**manifest, "schema": OLDEST + 1}
    return manifest


def _forget_cosine(manifest: dict[str, Any]) -> None:
    """Leave out what no model asks for any more, and was never true."""
    match manifest:
        case {"plan": {"models": [*models]}}:
            for model in models:
                if isinstance(model, dict):
                    model.pop("cosine", None)
