"""The cost of a JSON Schema: against how many schemas a single value is validated when all references are expanded.

Rule: `allOf`, `anyOf`, `$ref` and others validate the same value against further schemas. Schemas that each refer to
the next one twice double the number every time, and no validator finishes. No schema that people write comes near the
limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

LIMIT = 100_000
"""The most schemas that one value is validated against."""
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
LISTS = ("allOf", "anyOf", "oneOf")
SCHEMAS = ("not", "if", "then", "else")
MAPS = ("dependentSchemas", "dependencies")
BELOW = ("additionalProperties", "unevaluatedProperties", "propertyNames", "contains", "additionalItems",
         "unevaluatedItems", "items")  # fmt: skip
BELOW_MAPS = ("properties", "patternProperties", "$defs", "definitions")
BELOW_LISTS = ("prefixItems", "items")
Resolver = Any
Place = tuple[dict[str, Any], Resolver]
"""A schema, and the resolver of its references."""


def check_cost(schema: Any, resolver: Resolver) -> None:
    """Raises: ValueError if a value would be validated against more than 100,000 schemas at one place"""
    if not isinstance(schema, dict):
        return
    counts: dict[int, int] = {}
    waiting: list[Place] = [(schema, resolver)]
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
        # the schemas of the same value, those of its parts, and those that are only defined here
        waiting += [*_applied(place), *_schemas(*_with_base(place), BELOW, BELOW_LISTS, BELOW_MAPS)]


def _count(place: Place, counts: dict[int, int]) -> int:
    """Return the number of schemas that one value is validated against; a schema inside itself counts once."""
    key = id(place[0])
    if key not in counts:
        counts[key] = 1
        counts[key] = 1 + sum(_count(schema, counts) for schema in _applied(place))
    return counts[key]


def _applied(place: Place) -> Iterator[Place]:
    """Yield the schemas that apply to the same value."""
    schema, resolver = _with_base(place)
    for keyword in REFERENCES:
        if isinstance(schema.get(keyword), str):
            try:
                resolved = resolver.lookup(schema[keyword])
            except (Unresolvable, TypeError):  # TypeError: `true` as a schema of draft 4, which has none
                continue
            if isinstance(resolved.contents, dict):
                yield resolved.contents, resolved.resolver
    yield from _schemas(schema, resolver, SCHEMAS, LISTS, MAPS)


def _with_base(place: Place) -> Place:
    """Return the place with references relative to the `$id` of its schema."""
    schema, resolver = place
    has_base = isinstance(schema.get("$id"), str)
    return schema, resolver.in_subresource(DRAFT202012.create_resource(schema)) if has_base else resolver


def _schemas(
    schema: dict[str, Any], resolver: Resolver, keywords: tuple[str, ...], lists: tuple[str, ...], maps: tuple[str, ...]
) -> Iterator[Place]:
    schemas = [schema.get(keyword) for keyword in keywords]
    schemas += [
        subschema for keyword in lists if isinstance(schema.get(keyword), list) for subschema in schema[keyword]
    ]
    schemas += [
        subschema for keyword in maps if isinstance(schema.get(keyword), dict) for subschema in schema[keyword].values()
    ]
    return ((subschema, resolver) for subschema in schemas if isinstance(subschema, dict))
