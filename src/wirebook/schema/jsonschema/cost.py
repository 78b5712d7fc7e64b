"""Limits the cost of a JSON Schema: against how many schemas one value is validated, with all references expanded.

Rule: `allOf`, `anyOf`, `$ref` and other keywords validate the same value against further schemas. In a chain of schemas
that each refer to the next one twice, the number doubles with each link, and validation never ends. Schemas that people
write stay far below the limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from referencing.exceptions import Unresolvable

from wirebook.schema.jsonschema.references import References

LIMIT = 100_000
"""The most schemas against which one value may be validated."""
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
LISTS = ("allOf", "anyOf", "oneOf")
SCHEMAS = ("not", "if", "then", "else")
MAPS = ("dependentSchemas", "dependencies")
BELOW = ("additionalProperties", "unevaluatedProperties", "propertyNames", "contains", "additionalItems",
         "unevaluatedItems", "items")  # fmt: skip
BELOW_MAPS = ("properties", "patternProperties", "$defs", "definitions")
BELOW_LISTS = ("prefixItems", "items")
Place = tuple[dict[str, Any], References]
"""A schema, and the references around it."""


def check_cost(schema: Any, references: References) -> None:
    """Check that no value is validated against more than `LIMIT` schemas at one place. Raises: ValueError"""
    if not isinstance(schema, dict):
        return
    counts: dict[int, int] = {}
    waiting: list[Place] = [(schema, references)]
    seen: set[int] = set()
    while waiting:
        place = waiting.pop()
        if id(place[0]) in seen:
            continue
        seen.add(id(place[0]))
        if _count(place, counts) > LIMIT:
            raise ValueError(
                f"one value would be validated against more than {LIMIT} schemas when references are expanded"
            )
        # schemas of the same value, schemas of its parts, and definitions
        waiting += [*_applied(place), *_schemas(place, BELOW, BELOW_LISTS, BELOW_MAPS)]


def _count(place: Place, counts: dict[int, int]) -> int:
    """Return the number of schemas against which one value is validated; a recursive schema counts once."""
    key = id(place[0])
    if key not in counts:
        counts[key] = 1
        counts[key] = 1 + sum(_count(schema, counts) for schema in _applied(place))
    return counts[key]


def _applied(place: Place) -> Iterator[Place]:
    """Yield the schemas that apply to the same value."""
    schema, references = place[0], place[1].inside(place[0])
    for keyword in REFERENCES:
        if isinstance(schema.get(keyword), str):
            try:
                target = references.lookup(schema[keyword])
            except (Unresolvable, TypeError):  # TypeError: a boolean schema, which draft-04 does not have
                continue
            if isinstance(target[0], dict):
                yield target
    yield from _schemas(place, SCHEMAS, LISTS, MAPS)


def _schemas(place: Place, keywords: tuple[str, ...], lists: tuple[str, ...], maps: tuple[str, ...]) -> Iterator[Place]:
    schema, references = place[0], place[1].inside(place[0])
    schemas = [schema.get(keyword) for keyword in keywords]
    schemas += [
        subschema for keyword in lists if isinstance(schema.get(keyword), list) for subschema in schema[keyword]
    ]
    schemas += [
        subschema for keyword in maps if isinstance(schema.get(keyword), dict) for subschema in schema[keyword].values()
    ]
    return ((subschema, references) for subschema in schemas if isinstance(subschema, dict))
