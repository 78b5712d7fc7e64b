"""What a JSON Schema asks of one value: how many schemas it holds it against, when references are written out.

Rule: `allOf`, `anyOf`, `$ref` and the like hold the same value against further schemas. Schemas that refer to the next
one twice double with each, and no validator ends. Nothing that people write comes near the limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

LIMIT = 100_000
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


def check_cost(schema: Any, resolver: Resolver) -> None:
    """Raises: ValueError where some value would be held against more than 100,000 schemas at one place."""
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
            raise ValueError(f"one value would be held against more than {LIMIT} schemas, references written out")
        waiting += [*_here(place), *_below(place)]


def _count(place: Place, counts: dict[int, int]) -> int:
    """The schemas that one value is held against; one that is in itself counts once."""
    key = id(place[0])
    if key not in counts:
        counts[key] = 1
        counts[key] = 1 + sum(_count(each, counts) for each in _here(place))
    return counts[key]


def _here(place: Place) -> Iterator[Place]:
    """The schemas that the same value is held against."""
    schema, resolver = _based(place)
    for word in REFERENCES:
        if isinstance(schema.get(word), str):
            yield from _referred(schema[word], resolver)
    yield from _schemas(schema, resolver, SCHEMAS, LISTS, MAPS)


def _below(place: Place) -> Iterator[Place]:
    """The schemas of parts of the value, and those that are only defined here."""
    schema, resolver = _based(place)
    return _schemas(schema, resolver, BELOW, BELOW_LISTS, BELOW_MAPS)


def _based(place: Place) -> Place:
    """The place with references relative to the `$id` that stands there."""
    schema, resolver = place
    inside = isinstance(schema.get("$id"), str)
    return schema, resolver.in_subresource(DRAFT202012.create_resource(schema)) if inside else resolver


def _schemas(
    schema: dict[str, Any], resolver: Resolver, words: tuple[str, ...], lists: tuple[str, ...], maps: tuple[str, ...]
) -> Iterator[Place]:
    found = [schema.get(word) for word in words]
    found += [each for word in lists if isinstance(schema.get(word), list) for each in schema[word]]
    found += [each for word in maps if isinstance(schema.get(word), dict) for each in schema[word].values()]
    return ((each, resolver) for each in found if isinstance(each, dict))


def _referred(reference: str, resolver: Resolver) -> Iterator[Place]:
    try:
        found = resolver.lookup(reference)
    except Unresolvable:
        return
    if isinstance(found.contents, dict):
        yield found.contents, found.resolver
