"""Convert a model to JSON Schemas (2020-12) of its entities, for requests and responses.

In requests, every member may be null, which removes it. Attributes that only the server sets are `readOnly`. A schema
rejects what the model rejects, except for rules that JSON Schema cannot express: sizes in bytes, target types of
references, and attributes that must agree with each other.

Spec: core/model.md#registry-model; core/spec.md#data-types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from wirebook.core.model.attributes import ATTRIBUTE_NAME, MAX_BYTES
from wirebook.core.model.attributes import KEY_NAME as MAP_KEY
from wirebook.core.model.compiled import is_extended
from wirebook.core.names import IDENTIFIER

Schema = dict[str, Any]
Full = Mapping[str, Any]
REFERENCE: Final = "#/components/schemas/"
TEXT: Final = {"type": "string", "maxLength": MAX_BYTES}
TIMESTAMP: Final[Schema] = {  # not `format: date-time`, which requires an offset
    "type": "string",
    "description": "A timestamp of RFC 3339. A time without an offset is UTC. Responses are in UTC and end with Z.",
    "pattern": r"^[0-9]{4}(?:-[0-9]{2}){2}[Tt][0-9]{2}(?::[0-9]{2}){2}(?:\.[0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})?$",
}
_TYPES: Final[Mapping[str, Schema]] = {
    "any": {},
    "boolean": {"type": "boolean"},
    "decimal": {"type": "number"},
    "integer": {"type": "integer"},
    "string": TEXT,
    "timestamp": TIMESTAMP,
    "uinteger": {"type": "integer", "minimum": 0},
    "uri": TEXT | {"format": "uri-reference", "minLength": 1},
    "uriabsolute": TEXT | {"format": "uri"},
    "urirelative": TEXT | {"format": "uri-reference", "minLength": 1},
    "uritemplate": TEXT | {"format": "uri-template"},
    "url": TEXT | {"format": "uri-reference", "minLength": 1},
    "urlabsolute": TEXT | {"format": "uri"},
    "urlrelative": TEXT | {"format": "uri-reference", "minLength": 1},
    "xid": TEXT | {"pattern": "^/"},
    "xidtype": TEXT | {"pattern": "^/"},
}
EPOCHS: Final[Schema] = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "properties": {
            "epoch": {"type": ["integer", "null"], "minimum": 0},
            "meta": {"type": "object", "properties": {"epoch": {"type": ["integer", "null"], "minimum": 0}}},
        },
    },
}
"""The body of a DELETE of a collection: ids, each with the expected epoch."""


def entity_schemas(full: Full) -> dict[str, Schema]:
    """Return a schema for each kind of entity, by component name.

    Shape: ``registry``, ``GROUPS``, ``GROUPS.RESOURCES``, and for the latter ``.meta`` and ``.versions``. `full` is the
    full model (`wirebook.core.model.full`).
    """
    groups = full.get("groups", {})
    schemas = {"registry": _entity(full["attributes"], {plural: plural for plural in groups})}
    for plural, group in groups.items():
        resources = group.get("resources", {})
        schemas[plural] = _entity(group["attributes"], {name: f"{plural}.{name}" for name in resources})
        for name, resource in resources.items():
            schemas |= _resource(f"{plural}.{name}", resource)
    return schemas


def _resource(name: str, full: Full) -> dict[str, Schema]:
    versions = full["attributes"]
    shown = _entity(versions | full["resourceattributes"], {"versions": f"{name}.versions"})
    shown["properties"]["meta"] = _or_null(reference(f"{name}.meta"))
    meta = _entity(full["metaattributes"], {})
    return {name: shown, f"{name}.meta": meta, f"{name}.versions": _entity(versions, {})}


def required_in_requests(attributes: Full) -> list[str]:
    """Return the attributes that are required to create or replace an entity.

    Ids are not among them, since they are in the path, and neither are attributes that the server fills in.
    """
    ids = [name for name in attributes if name.endswith("id") and attributes[name].get("immutable")]
    return [
        name
        for name, attribute in attributes.items()
        if _is_required_in_requests(attribute) and name not in (*_FILLED_IN, *ids)
    ]


_FILLED_IN: Final = ("createdat", "modifiedat", "ancestorid", "defaultversionid")


def reference(name: str) -> Schema:
    """Return a reference to the schema of a component."""
    return {"$ref": REFERENCE + name}


def map_of(name: str) -> Schema:
    """Return the schema of a collection: an object with an entity per id."""
    keys = {"pattern": ecma(IDENTIFIER)}
    return {"type": "object", "propertyNames": keys, "additionalProperties": reference(name)}


def object_schema(attributes: Full) -> Schema:
    """Return the schema of an object with these members, which are definitions in the model language."""
    return _object(attributes, ATTRIBUTE_NAME)


def ecma(pattern: re.Pattern[str]) -> str:
    """Return a pattern that is matched from the start of a text in the syntax of JSON Schema."""
    return "^" + pattern.pattern.replace(r"\Z", "$")


# -- attributes -----------------------------------------------------------------------------------------------------


def _entity(attributes: Full, collections: Mapping[str, str]) -> Schema:
    """Return the schema of an entity without `required`, which depends on the request (`required_in_requests`)."""
    schema = _object(attributes, ATTRIBUTE_NAME)
    schema.pop("required", None)
    for plural, name in collections.items():
        schema["properties"][plural] = _or_null(map_of(name))
    return schema


def _attribute(full: Full) -> Schema:
    schema = _or_null(_value(full))
    if full.get("description"):
        schema["description"] = full["description"]
    if full.get("readonly"):
        schema["readOnly"] = True
    if "default" in full:
        schema["default"] = full["default"]
    return schema


def _value(full: Full) -> Schema:
    type_ = full["type"]
    if type_ == "array":
        return {"type": "array", "items": _narrowed(_value(full["item"]), full)}
    if type_ == "map":
        keys = {"pattern": ecma(MAP_KEY)}
        return {"type": "object", "propertyNames": keys, "additionalProperties": _or_null(_value(full["item"]))}
    if type_ == "object":
        return _object(full.get("attributes", {}), MAP_KEY if is_extended(full) else ATTRIBUTE_NAME)
    return _narrowed(dict(_TYPES[type_]), full)


def _narrowed(schema: Schema, full: Full) -> Schema:
    """Return the schema restricted to the enum; for strings by a pattern, since they compare case-insensitively."""
    allowed = full.get("enum", ())
    if not allowed:
        return schema
    texts = [value for value in allowed if isinstance(value, str)]
    if not full.get("strict", True):
        return schema | {"examples": list(allowed)}
    if len(texts) < len(allowed):
        return schema | {"enum": list(allowed)}
    return schema | {"examples": texts, "pattern": f"^(?:{'|'.join(map(_caseless, texts))})$"}


def _caseless(text: str) -> str:
    return "".join(_letter(letter) for letter in text)


def _letter(letter: str) -> str:
    if letter.lower() != letter.upper():
        return f"[{letter.upper()}{letter.lower()}]"
    return letter if letter.isalnum() else rf"\{letter}" if letter in ".*+?^$()[]{}|\\/" else letter


def _or_null(schema: Schema) -> Schema:
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    if "type" not in schema:
        return dict(schema)
    changed = schema | {"type": [schema["type"], "null"]}
    return changed | ({"enum": [*schema["enum"], None]} if "enum" in schema else {})


# -- objects --------------------------------------------------------------------------------------------------------


def _object(attributes: Full, names: re.Pattern[str]) -> Schema:
    schema = _members(attributes)
    if schema.get("allOf"):
        schema["unevaluatedProperties"] = schema.pop("additionalProperties", False)
    else:
        schema.setdefault("additionalProperties", False)
    if "*" in attributes:
        schema["propertyNames"] = {"pattern": ecma(names)}
    return {"type": "object"} | schema


def _members(attributes: Full, known: frozenset[str] = frozenset()) -> Schema:
    """Return the schema of an object's members; `allOf` contains those that other values define.

    `known` are the names of other members of the same object.
    """
    names = known | attributes.keys() - {"*"}
    schema: Schema = {
        "properties": {name: _attribute(attribute) for name, attribute in attributes.items() if name != "*"}
    }
    if "*" in attributes:
        schema["additionalProperties"] = _attribute(attributes["*"])
        schema["properties"] = dict.fromkeys(sorted(known), True) | schema["properties"]
    if asked := [name for name, attribute in attributes.items() if name != "*" and _is_required_in_requests(attribute)]:
        schema["required"] = asked
    if siblings := list(_siblings(attributes, names)):
        schema["allOf"] = siblings
    return schema


def _is_required_in_requests(full: Full) -> bool:
    return bool(full.get("required")) and "default" not in full and not full.get("readonly")


def _siblings(attributes: Full, known: frozenset[str]) -> Iterator[Schema]:
    """Yield conditional schemas for `ifvalues`."""
    for name, full in attributes.items():
        for text, section in full.get("ifvalues", {}).items():
            yield {"if": _has(name, full, text), "then": _members(section.get("siblingattributes", {}), known)}


def _has(name: str, full: Full, text: str) -> Schema:
    value: Schema = {"type": "string", "pattern": f"^{_caseless(text)}$"}
    if full["type"] in ("boolean", "integer", "uinteger", "decimal"):
        value = {"enum": [_literal(text.lower())]}
    return {"properties": {name: value}, "required": [name]}


def _literal(text: str) -> Any:
    """Return the number or boolean that a key of `ifvalues` represents, or the text itself, which no value equals."""
    try:
        return json.loads(text)
    except ValueError:
        return text
