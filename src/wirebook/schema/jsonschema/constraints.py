"""What a JSON Schema requires of the columns of its values, if columns can tell.

A schema whose keywords are all known here constrains each column on its own: which members an object must have, whether
null is allowed, and which values a scalar column may hold. Those values are validated by jsonschema-rs, but not all of
them: the least and the greatest number decide about bounds, the shortest and the longest text about lengths, and each
distinct value counts once. Members with any other schema have no constraint: an object with such a member is validated
on its own. `constraints_of` returns None if that holds for every object.
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
"""The format that every text has that fits the column."""
MAX_LEVELS: Final = 32  # of references to references

Resolver = Any  # of `referencing`, whose interface does not export the type
Decided = Literal["by type", "by extremes", "by lengths", "by values"]


@dataclass(frozen=True)
class ScalarConstraint:
    """What a scalar must be.

    Shape: `schemas` are the URIs of the schemas that the values must satisfy. `decided` tells which values decide:
    none, the least and the greatest, the shortest and the longest, or each distinct one.
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
    """What an array must be: how many items it has, and what each must be."""

    item: Constraint
    nullable: bool
    least: int
    most: int | None

    @property
    def decoded_type(self) -> pa.DataType:
        return pa.list_(self.item.decoded_type)


@dataclass(frozen=True)
class ObjectConstraint:
    """What an object must be: the members that it must and may have, and what each must be."""

    members: dict[str, Constraint]
    required: frozenset[str]
    nullable: bool

    @property
    def decoded_type(self) -> pa.DataType:
        """The type of a column of such objects, before it is cast to that of tables."""
        return pa.struct([(name, member.decoded_type) for name, member in self.members.items()])


Constraint = ScalarConstraint | ArrayConstraint | ObjectConstraint


class _Place(NamedTuple):
    """A schema, the URI that refers to it, the resolver of its references, and whether keywords beside them count."""

    uri: str
    schema: dict[str, Any]
    resolver: Resolver
    combines: bool

    def at(self, *steps: str) -> _Place | None:
        """The schema below this one. None if it is a boolean or has a URI of its own."""
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
        """The schema that `$ref` names. None if it is a boolean or cannot be named by a URI."""
        document, reference = urldefrag(self.uri).url, self.schema["$ref"]
        uri = document + reference if reference.startswith("#") else urljoin(self.uri, reference)
        resolved = self.resolver.lookup(reference)
        if not isinstance(resolved.contents, dict) or self.resolver.lookup(uri).contents is not resolved.contents:
            return None
        draft = resolved.contents.get("$schema", "")
        combines = self.combines if urldefrag(uri).url == document else "/draft/20" in draft
        return _Place(uri, resolved.contents, resolved.resolver, combines)


class _UnknownError(Exception):
    """Columns cannot tell whether a value is valid."""


def constraints_of(root: str, resolver: Resolver, layout: ColumnLayout, *, combines: bool) -> ObjectConstraint | None:
    """What the schema at the URI `root` requires of the columns of `layout`; None if columns cannot tell. `combines`:
    keywords beside `$ref` count, as they do since draft 2019-09."""
    try:
        resolved = resolver.lookup(root)
        if not isinstance(resolved.contents, dict):
            return None
        constraint = _constraint([_Place(root, resolved.contents, resolved.resolver, combines)], layout)
    except (_UnknownError, Unresolvable):
        return None
    return constraint if isinstance(constraint, ObjectConstraint) else None


def deciding_schemas(constraint: Constraint) -> set[tuple[str, ...]]:
    """The URIs of the schemas that the values of scalar columns must satisfy; none for columns whose type decides."""
    if isinstance(constraint, ScalarConstraint):
        return {constraint.schemas} if constraint.schemas else set()
    parts = [constraint.item] if isinstance(constraint, ArrayConstraint) else constraint.members.values()
    return set().union(*map(deciding_schemas, parts))


def _constraint(places: list[_Place], layout: ColumnLayout) -> Constraint:
    """What schemas require of the same value. Raises: _UnknownError"""
    places = [part for place in places for part in _expanded(place, MAX_LEVELS)]
    if isinstance(layout, Struct):
        return _object(places, layout)
    if isinstance(layout, List):
        return _array(places, layout)
    if isinstance(layout, ScalarColumn):
        return _scalar(places, layout, _types(layout))
    raise _UnknownError


def _types(column: ScalarColumn) -> tuple[str, ...]:
    """The types in a schema of the values that Arrow's reader makes of a column. Raises: _UnknownError"""
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
    """The schemas that a value must satisfy: this one, and those that it refers to. Raises: _UnknownError"""
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
    """The keywords of a schema that decide."""
    return {keyword for keyword in place.schema.keys() - ANNOTATIONS if not keyword.startswith("x-")}


def _nullable(places: list[_Place], type_: tuple[str, ...]) -> bool:
    """Whether all schemas, which allow one of these types, allow null too. Raises: _UnknownError"""
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
    if column is NUMBER and decided == "by values":  # 5 is 5.0 in such a column
        raise _UnknownError
    return ScalarConstraint(column, nullable, deciding, decided)


def _decided(place: _Place, column: ScalarColumn, types: tuple[str, ...]) -> Decided:
    """Which values of a column decide whether a schema holds."""
    keywords = _keywords(place) - {"type"} - REFERENCES
    if place.schema.get("format") == FORMATS.get(column) or types != ("string",):  # formats are about texts
        keywords -= {"format"}
    if place.schema.get("pattern") == column.accepts.get("pattern"):  # the column holds no other text
        keywords -= {"pattern"}
    if not keywords:
        return "by type"
    if "number" in types and keywords <= BOUNDS:
        return "by extremes"
    return "by lengths" if types == ("string",) and keywords <= LENGTHS else "by values"
