"""Reasons why one schema is not compatible with another, and the limit on the steps of a comparison.

Spec: core/spec.md#compatibility-attribute (`backward`, `forward`, `full`); docs/compatibility.md describes every rule.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wirebook.schema.source import SchemaSource
from wirebook.text.preview import shortened

MAX_INCOMPATIBILITIES: Final = 20
"""Maximum incompatibilities that a comparison of JSON Schemas lists."""
MAX_STEPS: Final = 50_000
"""Default limit on the steps of a comparison. One step compares two parts of the schemas."""
MAX_PREVIEW: Final = 120
"""Maximum characters of a value in the text of an incompatibility."""
TOO_COMPLEX: Final = "too-complex"
UNPROVEN: Final = "cannot-be-shown"


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """A difference because of which a reader with the new schema cannot read all documents of the old one.

    Shape: `path` is a place in the new schema (a JSON Pointer, or a dotted name in Protobuf), or in the old schema if
    something was removed; `rule` is an id of docs/compatibility.md; `old` and `new` are the values, None if absent.
    """

    path: str
    rule: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.path or '/'}: {self.rule} (old: {_preview(self.old)}, new: {_preview(self.new)})"


def _preview(value: Any) -> str:
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return shortened(text, MAX_PREVIEW, "...")


HINTS: Final[Mapping[str, str]] = {
    "required-added": "make the property optional in the {reader} schema",
    "property-added-to-open-content": "the {writer} schema allows other values for the property: accept them in the "
    '{reader} schema, or set "additionalProperties": false in the {writer} schema',
    "property-removed-from-closed-content": "declare the property in the {reader} schema, or remove "
    '"additionalProperties": false from it',
    "additional-properties-closed": "allow additional properties in the {reader} schema, as the {writer} schema does",
    "type-narrowed": "in the {reader} schema, accept every type that the {writer} schema allows",
    "enum-narrowed": "in the {reader} schema, accept every value that the {writer} schema allows",
}
"""How to fix an incompatibility, by rule: the `reader` schema must accept what the `writer` schema allows."""

Backward = Callable[[SchemaSource, SchemaSource], list[Incompatibility]]
"""A function (old, new) that returns why a reader with `new` cannot read all documents of `old`."""


class TooComplexError(Exception):
    """A comparison exceeded its limit of steps."""


class Steps:
    """Counts the steps that remain before a comparison reaches its limit."""

    def __init__(self, limit: int = MAX_STEPS) -> None:
        self._limit = self.remaining = limit

    def take(self, count: int = 1) -> None:
        """Count steps. Raises: TooComplexError if they exceed the limit"""
        self.remaining -= count
        if self.remaining < 0:
            raise TooComplexError(f"the comparison needs more than {self._limit} steps")
