"""Why a schema is not compatible with another: records with place, rule, old and new.

Spec: core/spec.md#compatibility-attribute (`backward`, `forward`, `full`); docs/compatibility.md has every rule.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wirebook.schema.source import SchemaSource

MAX_REFUSALS = 20  # that one comparison lists
MAX_STEPS = 50_000  # comparisons of two parts, before it is given up
SHOWN = 120  # characters of a value
TOO_COMPLEX = "too-complex"
UNPROVEN = "cannot-be-shown"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Shape: `path` a place in the new schema (JSON Pointer; a dotted name of Protobuf), or in the old one where the
    new one lost it; `rule` a word of docs/compatibility.md; `old` and `new` what stood and stands there, or None."""

    path: str
    rule: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.path or '/'}: {self.rule} (old: {_shown(self.old)}, new: {_shown(self.new)})"


HINTS: Mapping[str, str] = {
    "required-added": "make the property optional in the {reader} schema",
    "property-added-to-open-content": "the {writer} schema allows other values for the property: accept them in the "
    '{reader} schema, or set "additionalProperties": false in the {writer} one',
    "property-removed-from-closed-content": 'name the property in the {reader} schema, or remove "additionalProperties"'
    ": false from it",
    "additional-properties-closed": "allow further properties in the {reader} schema, as the {writer} one does",
    "type-narrowed": "accept in the {reader} schema every type that the {writer} one allows",
    "enum-narrowed": "accept in the {reader} schema every value that the {writer} one allows",
}
"""What to change, by rule: the `reader` must accept what the `writer` allows."""


Backward = Callable[[SchemaSource, SchemaSource], list[Refusal]]


class TooComplexError(Exception):
    """A comparison took more steps than it may."""


class Steps:
    """The steps that a comparison has left."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.left = steps

    def take(self, count: int = 1) -> None:
        """Raises: TooComplexError"""
        self.left -= count
        if self.left < 0:
            raise TooComplexError


def too_complex() -> Refusal:
    return Refusal("", TOO_COMPLEX, "schemas that can be compared", f"more than {MAX_STEPS} comparisons of parts")


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
