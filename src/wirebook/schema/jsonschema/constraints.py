"""Derives from a JSON Schema the constraints that can be checked column by column, without an object for each row.

A schema whose keywords are all known here constrains each column independently: which members an object must have,
whether null is allowed, and which values a scalar column may hold. jsonschema-rs validates only the values that decide:
the smallest and the largest number for bounds, the shortest and the longest text for lengths, else each distinct value
once. Members with any other schema have no constraint: objects that have such a member are validated one by one.
`constraints_of` returns None if all objects would be.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote, urldefrag, urljoin

import pyarrow as pa
from referencing.exceptions import Unresolvable

from wirebook.schema.layout import ColumnLayout, List, ScalarColumn, Struct
from wirebook.schema.scalar_columns import DATE, NUMBER, TIMESTAMP

ANNOTATIONS: Final = frozenset((
    "$anchor", "$comment", "$defs", "$id", "$schema", "id", "definitions", "title", "description", "default",
    "deprecated", "example", "examples", "readOnly", "writeOnly",
))  # fmt: skip
REFERENCES: Final = frozenset(("$ref", "allOf"))
OF_OBJECTS: Final = frozenset(("type", "properties", "required", "additionalProperties"))
OF_ARRAYS: Final = frozenset(("type", "items", "minItems", "maxItems"))
BOUNDS: Final = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))
LENGTHS: Final = frozenset(("minLength", "maxLength"))
FORMATS: Final = {TIMESTAMP: "date-time", DATE: "date"}
"""The format of every text that fits the column."""
MAX_LEVELS: Final = 32  # of references to references

Resolver = Any  # of `referencing`, which does not export the type
Decided = Literal["by type", "by extremes", "by lengths", "by values"]


@dataclass(frozen=True)
class ScalarConstraint:
    """The constraint on a scalar column.

    Shape: `schemas` are the URIs of the schemas that the values must satisfy. `decided` tells which values must be
    validated: none, the smallest and the largest, the shortest and the longest, or each distinct one.
    """

    column: ScalarColumn
    nullable: bool
    schemas: tuple[str, ...]
    decided: Decided

    @property
    def decoded_type(self) -> pa.DataType:
        return self.column.decoded_type


@dataclass(frozen=True)
class ArrayConstraint:
    """The constraint on an array: the number of its items, and the constraint on each."""

    item: Constraint
    nullable: bool
    least: int
    most: int | None

    @property
    def decoded_type(self) -> pa.DataType:
        return pa.list_(self.item.decoded_type)


@dataclass(frozen=True)
class ObjectConstraint:
    """The constraint on an object: its required members, and the constraint on each member that it may have."""

    members: dict[str, Constraint]
    required: frozenset[str]
    nullable: bool

    @property
    def decoded_type(self) -> pa.DataType:
        """The type of a column of such objects, before the cast to the type in tables."""
        return pa.struct([(name, member.decoded_type) for name, member in self.members.items()])


Constraint = ScalarConstraint | ArrayConstraint | ObjectConstraint


class _Place(NamedTuple):
    """A schema with its URI, the resolver of its references, and whether keywords beside `$ref` have an effect."""

    uri: str
    schema: dict[str, Any]
    resolver: Resolver
    combines: bool

    def at(self, *steps: str) -> _Place | None:
        """Return the subschema at `steps`; None if it is a boolean, or if extending this URI would not refer to it."""
        below: Any = self.schema
        for step in steps:
            below = below[int(step)] if isinstance(below, list) else below[step]
        document, fragment = urldefrag(self.uri)
        has_pointer = not fragment or fragment.startswith("/")
        if not isinstance(below, dict) or not has_pointer or {"id", "$id"} & below.keys():
            return None
        pointer = "/".join(quote(step.replace("~", "~0").replace("/", "~1"), safe="~") for step in steps)
        return _Place(f"{document}#{fragment}/{pointer}", below, self.resolver, self.combines)

    def referred(self) -> _Place | None:
        """Return the target of `$ref`; None if it is a boolean or no URI identifies it. Raises: Unresolvable"""
        document, reference = urldefrag(self.uri).url, self.schema["$ref"]
        uri = document + reference if reference.startswith("#") else urljoin(self.uri, reference)
        resolved = self.resolver.lookup(reference)
        if not isinstance(resolved.contents, dict) or self.resolver.lookup(uri).contents is not resolved.contents:
            return None
        draft = resolved.contents.get("$schema", "")
        combines = self.combines if urldefrag(uri).url == document else "/draft/20" in draft
        return _Place(uri, resolved.contents, resolved.resolver, combines)


class _UnknownError(Exception):
    """Columns cannot decide whether a value is valid."""


def constraints_of(root: str, resolver: Resolver, layout: ColumnLayout, *, combines: bool) -> ObjectConstraint | None:
    """Return what the schema at the URI `root` requires of the columns of `layout`; None if columns cannot decide.

    `combines`: keywords beside `$ref` have an effect, as they do since draft 2019-09.
    """
    try:
        resolved = resolver.lookup(root)
        if not isinstance(resolved.contents, dict):
            return None
        constraint = _constraint([_Place(root, resolved.contents, resolved.resolver, combines)], layout)
    except (_UnknownError, Unresolvable):
        return None
    return constraint if isinstance(constraint, ObjectConstraint) else None


def deciding_schemas(constraint: Constraint) -> set[tuple[str, ...]]:
    """Return the groups of schemas (URIs) against which scalar columns are validated; none if the type decides."""
    if isinstance(constraint, ScalarConstraint):
        return {constraint.schemas} if constraint.schemas else set()
    parts = [constraint.item] if isinstance(constraint, ArrayConstraint) else constraint.members.values()
    return set().union(*map(deciding_schemas, parts))


def _constraint(places: list[_Place], layout: ColumnLayout) -> Constraint:
    """Return what several schemas require of the same value. Raises: _UnknownError"""
    places = [part for place in places for part in _expanded(place, MAX_LEVELS)]
    if isinstance(layout, Struct):
        return _object(places, layout)
    if isinstance(layout, List):
        return _array(places, layout)
    if isinstance(layout, ScalarColumn):
        return _scalar(places, layout, _types(layout))
    raise _UnknownError


def _types(column: ScalarColumn) -> tuple[str, ...]:
    """Return the JSON Schema types of the values that Arrow's reader puts into a column. Raises: _UnknownError"""
    kinds, decoded = pa.types, column.decoded_type
    if column.native and column.accepts:
        if kinds.is_string(decoded):
            return ("string",)
        if kinds.is_boolean(decoded):
            return ("boolean",)
        if kinds.is_integer(decoded):
            return ("integer", "number")
        if column is NUMBER:
            return ("number",)
    raise _UnknownError


def _expanded(place: _Place, levels: int) -> Iterator[_Place]:
    """Yield the schemas that a value must satisfy: this one, and those that it refers to. Raises: _UnknownError"""
    keywords = _keywords(place)
    if not levels or ("$ref" in keywords and len(keywords) > 1 and not place.combines):
        raise _UnknownError
    if "$ref" in keywords:
        yield from _expanded(_known(place.referred()), levels - 1)
    for index in range(len(place.schema.get("allOf", ()))):
        yield from _expanded(_known(place.at("allOf", str(index))), levels - 1)
    if keywords - REFERENCES:
        yield place


def _known(place: _Place | None) -> _Place:
    if place is None:
        raise _UnknownError
    return place


def _keywords(place: _Place) -> set[str]:
    """Return the keywords of a schema that can reject a value."""
    return {keyword for keyword in place.schema.keys() - ANNOTATIONS if not keyword.startswith("x-")}


def _nullable(places: list[_Place], type_: tuple[str, ...]) -> bool:
    """Whether all schemas allow null. Raises: _UnknownError if one of them allows none of the types `type_`"""
    nullable = True
    for place in places:
        types = place.schema.get("type", (*type_, "null"))
        types = [types] if isinstance(types, str) else types
        if not set(types) & set(type_):
            raise _UnknownError
        nullable &= "null" in types
    return nullable


def _object(places: list[_Place], layout: Struct) -> ObjectConstraint:
    for place in places:
        own = place.schema.get("properties", {})
        is_open = place.schema.get("additionalProperties", True) is True
        if not _keywords(place) <= OF_OBJECTS | REFERENCES or not (is_open or layout.members.keys() <= own.keys()):
            raise _UnknownError
    members = {}
    for name, member in layout.members.items():
        with suppress(_UnknownError):
            named = [place for place in places if name in place.schema.get("properties", {})]
            members[name] = _constraint([_known(place.at("properties", name)) for place in named], member)
    required = frozenset[str]().union(*(place.schema.get("required", ()) for place in places))
    if not members or not required <= members.keys():
        raise _UnknownError
    return ObjectConstraint(members, required, _nullable(places, ("object",)))


def _array(places: list[_Place], layout: List) -> ArrayConstraint:
    if any(not _keywords(place) <= OF_ARRAYS | REFERENCES for place in places):
        raise _UnknownError
    item = _constraint([_known(place.at("items")) for place in places if "items" in place.schema], layout.item)
    most = [place.schema["maxItems"] for place in places if "maxItems" in place.schema]
    least = max((place.schema.get("minItems", 0) for place in places), default=0)
    return ArrayConstraint(item, _nullable(places, ("array",)), least, min(most, default=None))


def _scalar(places: list[_Place], column: ScalarColumn, types: tuple[str, ...]) -> ScalarConstraint:
    kinds = [_decided(place, column, types) for place in places]
    nullable = _nullable(places, types) and "by values" not in kinds
    deciding = tuple(place.uri for place, kind in zip(places, kinds, strict=True) if kind != "by type")
    different = {kind for kind in kinds if kind != "by type"}
    decided = "by type" if not different else different.pop() if len(different) == 1 else "by values"
    if column is NUMBER and decided == "by values":  # the column does not tell 5 from 5.0
        raise _UnknownError
    return ScalarConstraint(column, nullable, deciding, decided)


def _decided(place: _Place, column: ScalarColumn, types: tuple[str, ...]) -> Decided:
    """Return which values of a column decide whether all of them satisfy a schema."""
    keywords = _keywords(place) - {"type"} - REFERENCES
    if place.schema.get("format") == FORMATS.get(column) or types != ("string",):  # formats apply to strings only
        keywords -= {"format"}
    if place.schema.get("pattern") == column.accepts.get("pattern"):  # all texts in the column match it
        keywords -= {"pattern"}
    if not keywords:
        return "by type"
    if "number" in types and keywords <= BOUNDS:
        return "by extremes"
    return "by lengths" if types == ("string",) and keywords <= LENGTHS else "by values"
