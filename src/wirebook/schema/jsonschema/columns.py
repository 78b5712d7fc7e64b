"""The column layout of a JSON Schema.

The layout need not be exact: a value that does not fit its column goes to ``_rest`` (layout.py). Objects with
`properties` become structs, objects with only `additionalProperties` become maps, and arrays become lists. The layouts
of `allOf`, `$ref` and the keywords beside them are combined; those of `anyOf` and `oneOf` are joined if they have a
type in common. A schema whose type is unknown or not unique (apart from null), or that refers to itself, becomes JSON
text.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from referencing.exceptions import Unresolvable

from wirebook.schema.jsonschema.references import References
from wirebook.schema.layout import ColumnLayout, List, Map, Struct
from wirebook.schema.merging import join, meet
from wirebook.schema.scalar_columns import BOOLEAN, DATE, INT64, JSON, NUMBER, TEXT, TIMESTAMP, WIDE_INTEGER

MAX_LEVELS = 32
"""The deepest nesting of schemas that get columns; deeper schemas become JSON text."""
MAX_COLUMNS = 4000
"""The most schemas that get columns; all others become JSON text."""
MAX_INT64 = 2**63 - 1
FORMATS = {"date-time": TIMESTAMP, "date": DATE}
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", list: "array"}
"""The JSON type by the Python class of a value; any other class is an object."""


class _Walk:
    """The state of a walk over a schema: how many columns may still be added, and the references being followed."""

    def __init__(self) -> None:
        self.remaining = MAX_COLUMNS
        self.ancestors: list[str] = []


def layout_of(schema: Any, references: References) -> ColumnLayout:
    """Return the column layout of the values of `schema`."""
    return _layout(schema, references, _Walk())


def _layout(schema: Any, references: References, walk: _Walk) -> ColumnLayout:
    walk.remaining -= 1
    if not isinstance(schema, dict) or walk.remaining < 0 or len(walk.ancestors) > MAX_LEVELS:
        return JSON
    references = references.inside(schema)
    parts = [_own(schema, references, walk)]
    if isinstance(schema.get("$ref"), str):
        parts.append(_referred(schema["$ref"], references, walk))
    parts += [_nested(subschema, references, walk) for subschema in _list(schema.get("allOf"))]
    for keyword in [keyword for keyword in ("anyOf", "oneOf") if keyword in schema]:
        layouts = [
            _nested(alternative, references, walk)
            for alternative in _list(schema[keyword])
            if not (isinstance(alternative, dict) and alternative.get("type") in ("null", ["null"]))
        ]
        parts.append(reduce(join, layouts) if layouts else JSON)
    return reduce(meet, parts)


def _referred(reference: str, references: References, walk: _Walk) -> ColumnLayout:
    try:
        target, around = references.lookup(reference)
    except Unresolvable:
        return JSON
    key = str(id(target))
    return JSON if key in walk.ancestors else _nested(target, around, walk, key)


def _nested(schema: Any, references: References, walk: _Walk, key: str = "") -> ColumnLayout:
    """Return the layout of a subschema, one level deeper. `key` identifies the target of a reference."""
    walk.ancestors.append(key)
    layout = _layout(schema, references, walk)
    walk.ancestors.pop()
    return layout


def _own(schema: dict[str, Any], references: References, walk: _Walk) -> ColumnLayout:
    """Return the layout from the keywords that are neither references nor combinations."""
    types = [type_ for type_ in _types(schema) if type_ != "null"]
    if set(types) == {"integer", "number"}:
        types = ["number"]
    if len(types) != 1:
        return JSON
    type_ = types[0]
    if type_ == "object":
        return _object(schema, references, walk)
    if type_ == "array":
        items = schema.get("items")
        is_list = isinstance(items, dict) and "prefixItems" not in schema
        return List(_nested(items, references, walk)) if is_list else JSON
    if type_ == "integer":
        bounds = [schema.get(keyword) for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")]
        is_wide = any(isinstance(bound, int | float) and abs(bound) > MAX_INT64 + 1 for bound in bounds)
        return WIDE_INTEGER if is_wide else INT64
    if type_ == "string":
        format_ = schema.get("format")
        return FORMATS.get(format_, TEXT) if isinstance(format_, str) else TEXT
    return {"number": NUMBER, "boolean": BOOLEAN}.get(type_, JSON)


def _types(schema: dict[str, Any]) -> list[str]:
    """Return the types of the values of a schema: as declared, else inferred from other keywords; empty if unknown."""
    type_ = schema.get("type")
    if isinstance(type_, str):
        return [type_]
    if isinstance(type_, list):
        return [name for name in type_ if isinstance(name, str)]
    if "enum" in schema or "const" in schema:
        values = _list(schema.get("enum")) if "enum" in schema else [schema["const"]]
        return sorted({TYPES.get(type(value), "object") for value in values})
    if isinstance(schema.get("properties"), dict):
        return ["object"]
    return ["array"] if isinstance(schema.get("items"), dict) else []


def _object(schema: dict[str, Any], references: References, walk: _Walk) -> ColumnLayout:
    properties, extra = schema.get("properties"), schema.get("additionalProperties")
    if isinstance(properties, dict) and properties:
        members = {name: _nested(property_, references, walk) for name, property_ in properties.items()}
        required = {name for name in _list(schema.get("required")) if isinstance(name, str)} & properties.keys()
        types = {name: _types(properties[name]) for name in required if isinstance(properties[name], dict)}
        never_null = frozenset(name for name, allowed in types.items() if allowed and "null" not in allowed)
        return Struct(members, never_null, descriptions_of(properties))
    if isinstance(extra, dict) and extra and "patternProperties" not in schema:
        return Map(_nested(extra, references, walk))
    return JSON


def descriptions_of(properties: dict[str, Any]) -> dict[str, str]:
    """Return the descriptions of the members of an object, for the documentation of its columns."""
    described = {name: node.get("description") for name, node in properties.items() if isinstance(node, dict)}
    return {name: text for name, text in described.items() if isinstance(text, str)}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
