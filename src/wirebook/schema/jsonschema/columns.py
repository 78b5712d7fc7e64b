"""The columns of a JSON Schema: what its keywords say about layout.

Only layout: a value that does not lie as expected is left over in ``_rest`` (shapes.py), so this may guess well instead
of proving. Objects with `properties` become structs, objects with only `additionalProperties` maps, arrays lists;
`allOf`, `$ref` and siblings are combined, `anyOf`/`oneOf` joined where all alternatives have one type in common; what
has no type, or refers to itself, is JSON text.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from wirebook.schema.layout import ColumnLayout, List, Map, Struct
from wirebook.schema.merging import join, meet
from wirebook.schema.scalar_columns import BOOLEAN, DATE, INT64, JSON, NUMBER, TEXT, TIMESTAMP, WIDE_INTEGER

MAX_LEVELS = 32
MAX_COLUMNS = 4000  # nodes in all; beyond, JSON text
MAX_INT64 = 2**63 - 1
FORMATS = {"date-time": TIMESTAMP, "date": DATE}
Resolver = Any  # of `referencing`, which does not name the type in its interface


class _Walk:
    """One walk over a schema: how many columns are left, and which references are being followed."""

    def __init__(self) -> None:
        self.left = MAX_COLUMNS
        self.open: list[str] = []


def layout_of(schema: Any, resolver: Resolver) -> ColumnLayout:
    """The shape of the values of `schema`, whose references `resolver` follows."""
    return _layout(schema, resolver, _Walk())


def _layout(schema: Any, resolver: Resolver, walk: _Walk) -> ColumnLayout:
    walk.left -= 1
    if not isinstance(schema, dict) or walk.left < 0 or len(walk.open) > MAX_LEVELS:
        return JSON
    if isinstance(schema.get("$id"), str):
        resolver = resolver.in_subresource(DRAFT202012.create_resource(schema))
    parts = [_own(schema, resolver, walk)]
    if isinstance(schema.get("$ref"), str):
        parts.append(_referred(schema["$ref"], resolver, walk))
    parts += [_nested(each, resolver, walk) for each in _list(schema.get("allOf"))]
    parts += [_alternatives(_list(schema.get(word)), resolver, walk) for word in ("anyOf", "oneOf") if word in schema]
    return reduce(meet, parts)


def _referred(reference: str, resolver: Resolver, walk: _Walk) -> ColumnLayout:
    try:
        found = resolver.lookup(reference)
    except Unresolvable:
        return JSON
    key = str(id(found.contents))
    if key in walk.open:
        return JSON
    walk.open.append(key)
    try:
        return _layout(found.contents, found.resolver, walk)
    finally:
        walk.open.pop()


def _nested(schema: Any, resolver: Resolver, walk: _Walk) -> ColumnLayout:
    """The shape of a subschema, one level further in."""
    walk.open.append("")
    try:
        return _layout(schema, resolver, walk)
    finally:
        walk.open.pop()


def _alternatives(schemas: list[Any], resolver: Resolver, walk: _Walk) -> ColumnLayout:
    layouts = [_nested(each, resolver, walk) for each in schemas if not _only_null(each)]
    return reduce(join, layouts) if layouts else JSON


def _only_null(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") in ("null", ["null"])


def _own(schema: dict[str, Any], resolver: Resolver, walk: _Walk) -> ColumnLayout:
    """The shape that the keywords beside references and combinations give."""
    types = [type_ for type_ in _types(schema) if type_ != "null"]
    if set(types) == {"integer", "number"}:
        types = ["number"]
    if len(types) != 1:
        return JSON
    if types[0] == "object":
        return _object(schema, resolver, walk)
    if types[0] == "array":
        items = schema.get("items")
        lists = isinstance(items, dict) and "prefixItems" not in schema
        return List(_nested(items, resolver, walk)) if lists else JSON
    return _scalar(types[0], schema)


def _scalar(type_: str, schema: dict[str, Any]) -> ColumnLayout:
    if type_ == "integer":
        bounds = [schema.get(word) for word in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")]
        wide = any(isinstance(bound, int | float) and abs(bound) > MAX_INT64 + 1 for bound in bounds)
        return WIDE_INTEGER if wide else INT64
    if type_ == "string":
        declared = schema.get("format")
        return FORMATS.get(declared, TEXT) if isinstance(declared, str) else TEXT
    return {"number": NUMBER, "boolean": BOOLEAN}.get(type_, JSON)


def _types(schema: dict[str, Any]) -> list[str]:
    """The types that a schema's own keywords allow, as far as they tell."""
    declared = schema.get("type")
    if isinstance(declared, str):
        return [declared]
    if isinstance(declared, list):
        return [each for each in declared if isinstance(each, str)]
    if "enum" in schema or "const" in schema:
        values = _list(schema.get("enum")) if "enum" in schema else [schema["const"]]
        return sorted({_type_of(value) for value in values})
    if isinstance(schema.get("properties"), dict):
        return ["object"]
    return ["array"] if isinstance(schema.get("items"), dict) else []


def _type_of(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", list: "array"}
    return names.get(type(value), "object")


def _object(schema: dict[str, Any], resolver: Resolver, walk: _Walk) -> ColumnLayout:
    properties, extra = schema.get("properties"), schema.get("additionalProperties")
    if isinstance(properties, dict) and properties:
        members = {name: _nested(property_, resolver, walk) for name, property_ in properties.items()}
        docs = {name: property_["description"] for name, property_ in properties.items() if _described(property_)}
        return Struct(members, frozenset(_never_null(schema, properties)), docs)
    if isinstance(extra, dict) and extra and "patternProperties" not in schema:
        return Map(_nested(extra, resolver, walk))
    return JSON


def _described(schema: Any) -> bool:
    return isinstance(schema, dict) and isinstance(schema.get("description"), str)


def _never_null(schema: dict[str, Any], properties: dict[str, Any]) -> Iterable[str]:
    """The members that are always there with a value."""
    required = {name for name in _list(schema.get("required")) if isinstance(name, str)}
    return (name for name in required & properties.keys() if _excludes_null(properties[name]))


def _excludes_null(schema: Any) -> bool:
    return isinstance(schema, dict) and "null" not in _types(schema) and bool(_types(schema))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
