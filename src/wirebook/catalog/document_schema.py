"""A JSON Schema (draft-07) of catalogue documents, for editors: completion, hover texts and checks while typing.

The schema is generated from the built-in model, so it has every attribute and protocol option of the model. It
differs from the schemas of the HTTP API (`wirebook.core.model.json_schema`) in three ways. It uses draft-07, which
every editor supports. It accepts the spellings that loading corrects, marked as deprecated. It rejects names that are
one typing error away from a CloudEvents attribute, which the model allows as extensions.

Spec: core/model.md#registry-model; message/spec.md#message-definitions; endpoint/spec.md#endpoint-registry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from wirebook.core.model.builtin import compiled_builtin_model
from wirebook.core.model.json_schema import REFERENCE, Schema, entity_schemas
from wirebook.definitions.normalize.message_options import OPTION_LAYOUTS, fold
from wirebook.definitions.normalize.names import BASE_NAMES, PROTOCOL_FAMILIES, PROTOCOL_NAMES, TYPES

DRAFT: Final = "http://json-schema.org/draft-07/schema#"
TITLE: Final = "xRegistry 1.0-rc4 catalogue of messages, endpoints and schemas"
MESSAGES: Final = ("messagegroups.messages", "messagegroups.messages.versions")
MIN_LENGTH: Final = 5  # of names checked for typing errors; most words similar to a shorter name are other names
_DOCUMENTATION: Final[Schema] = {
    "description": "The URL of the documentation.",
    "anyOf": [
        {"type": ["string", "null"]},
        {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"], "deprecated": True},
    ],
}
_PROPERTY: Final[Schema] = {
    "type": {"type": "string", "examples": list(TYPES)},
    "required": {"type": "boolean", "default": False},
    "description": {"type": "string"},
    "specurl": {"type": "string"},
}
_CLOUDEVENTS: Final = r"^[Cc][Ll][Oo][Uu][Dd][Ee][Vv][Ee][Nn][Tt][Ss](?:/1(?:\.0(?:\.[0-9]+)?)?)?$"


def document_schema() -> Schema:
    """Return the schema of a catalogue document: a registry with its message groups, endpoints and schema groups."""
    schemas = entity_schemas(compiled_builtin_model().full)
    definitions = {name: _draft_07(schema) for name, schema in schemas.items()}
    registry = definitions.pop("registry")
    registry["properties"]["$schema"] = {"type": "string", "description": "The JSON Schema that an editor uses."}
    registry["properties"]["documentation"] = _DOCUMENTATION
    for name in MESSAGES:
        _accept_spellings(definitions[name])
    embedded = definitions["endpoints"]["properties"]
    embedded["messages"] = {"type": "object", "additionalProperties": {"$ref": f"#/definitions/{MESSAGES[0]}"}}
    return {"$schema": DRAFT, "title": TITLE, **registry, "definitions": definitions}


# -- draft-07 -------------------------------------------------------------------------------------------------------


def _draft_07(schema: Any) -> Any:
    """Convert a schema from 2020-12 to draft-07: no `unevaluatedProperties`, and references below `definitions`.

    Members that depend on the value of another one become known members of the object itself. The condition then only
    constrains their values.
    """
    if isinstance(schema, list):
        return [_draft_07(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: _draft_07(value) for key, value in schema.items()}
    if isinstance(reference := changed.get("$ref"), str):
        changed["$ref"] = reference.replace(REFERENCE, "#/definitions/")
    if "unevaluatedProperties" in changed:
        dependent = {name for branch in changed["allOf"] for name in branch["then"].get("properties", ())}
        changed["properties"] = dict.fromkeys(sorted(dependent), True) | changed["properties"]
        changed.setdefault("additionalProperties", changed.pop("unevaluatedProperties"))
    return changed


# -- spellings that loading corrects ----------------------------------------------------------------------------------


def _accept_spellings(message: Schema) -> None:
    """Accept what loading a message definition accepts: `basemessage`, names of protocols and options."""
    properties = message["properties"]
    for name in BASE_NAMES:
        properties[name] = properties["basemessageuri"] | ({} if name == BASE_NAMES[0] else {"deprecated": True})
    properties["protocol"]["examples"] = list(OPTION_LAYOUTS)
    properties["envelope"]["examples"] = ["CloudEvents/1.0"]
    for branch in message["allOf"]:
        (selector, condition), *_ = branch["if"]["properties"].items()
        if selector == "envelope":
            condition["pattern"] = _CLOUDEVENTS
            _reject_typos(branch["then"]["properties"]["envelopemetadata"])
        elif selector == "protocol":
            protocol = next(name for name in OPTION_LAYOUTS if re.match(condition["pattern"], name))
            condition["pattern"] = _protocol_pattern(protocol)
            options = branch["then"]["properties"]["protocoloptions"]
            options["properties"] = {name: _option(schema) for name, schema in options["properties"].items()}
            _accept_option_names(options, protocol)


def _protocol_pattern(protocol: str) -> str:
    """Return a pattern of all spellings of a protocol: any version of HTTP, Kafka and NATS, and those of the table."""
    spellings = [re.escape(name) for name, canonical in PROTOCOL_NAMES.items() if canonical == protocol]
    spellings += [f"{family}(?:/.*)?" for family, canonical in PROTOCOL_FAMILIES.items() if canonical == protocol]
    return f"^(?:{'|'.join(map(_caseless, spellings))})$"


def _caseless(pattern: str) -> str:
    return re.sub(r"[a-z]", lambda letter: f"[{letter[0].upper()}{letter[0]}]", pattern)


def _option(schema: Schema) -> Schema:
    """Return the schema of an option: the value itself, or a property definition with the value."""
    if isinstance(schema.get("items"), dict):
        return schema | {"items": _property_definition(schema["items"])}
    if "value" in schema.get("properties", ()):
        return _property_definition(schema)
    if "properties" in schema or isinstance(schema.get("additionalProperties"), dict):
        changed = schema | {
            "properties": {name: _option(value) for name, value in schema.get("properties", {}).items()}
        }
        if isinstance(values := schema.get("additionalProperties"), dict):
            changed["additionalProperties"] = {"anyOf": [_property_definition(values), {"type": "string"}]}
        return changed
    wrapped = {"type": "object", "properties": _PROPERTY | {"value": schema}, "required": ["value"]}
    return {"anyOf": [schema, wrapped | {"additionalProperties": False, "deprecated": True}]}


def _property_definition(schema: Schema) -> Schema:
    """Return the schema of a property definition with all of its members, including those that the model omits."""
    return schema | {"properties": _PROPERTY | schema.get("properties", {})}


def _accept_option_names(options: Schema, protocol: str) -> None:
    """Accept options by each name that loading accepts. Spellings that are not canonical are deprecated.

    Options that the specification's text has and its model lacks, such as the HTTP `status`, accept any value. Options
    of MQTT 5.0 are deprecated in MQTT 3.1.1.
    """
    layout, properties = OPTION_LAYOUTS[protocol], options["properties"]
    for name, schema in list(properties.items()):
        canonical = layout.aliases.get(name, name)
        spellings = {alias for alias, target in layout.aliases.items() if target == canonical} | {canonical}
        for old, new in ("-_", "_-"):
            spellings |= {spelling.replace(old, new) for spelling in spellings | {name}}
        for spelling in spellings - properties.keys():
            properties[spelling] = schema | {"deprecated": True}
    missing = [name for name in layout.names if fold(name) not in {fold(known) for known in properties}]
    properties |= {name: {"deprecated": True} if protocol == "MQTT/3.1.1" else {} for name in missing}


# -- typing errors ----------------------------------------------------------------------------------------------------


def _reject_typos(metadata: Schema) -> None:
    """Reject extension attributes whose name is one edit away from the name of a CloudEvents attribute."""
    names = [name for name in metadata["properties"] if len(name) >= MIN_LENGTH]
    typos = sorted({typo for name in names for typo in _one_edit_away(name)})
    known = "|".join(sorted(metadata["properties"]))
    metadata["propertyNames"] = {
        "allOf": [metadata.get("propertyNames", {}), {"not": {"pattern": f"^(?!(?:{known})$)(?:{'|'.join(typos)})$"}}]
    }


def _one_edit_away(name: str) -> Iterator[str]:
    """Yield patterns of the names that are one insertion, deletion, substitution or transposition away from `name`."""
    for at in range(len(name) + 1):
        yield f"{name[:at]}[a-z0-9]{name[at:]}"
    for at in range(len(name)):
        yield name[:at] + name[at + 1 :]
        yield f"{name[:at]}[a-z0-9]{name[at + 1 :]}"
    for at in range(len(name) - 1):
        yield name[:at] + name[at + 1] + name[at] + name[at + 2 :]
