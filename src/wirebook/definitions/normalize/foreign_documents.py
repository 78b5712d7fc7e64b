"""Recognise documents that are not catalogues, for a helpful error message.

If users pass an AsyncAPI document, a schema or a capture to `lint`, the error tells what the file is and how to use it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from wirebook.core.names import GROUP_TYPES, SINGULARS
from wirebook.definitions.explain.similar_names import is_typo
from wirebook.definitions.normalize.message_options import fold
from wirebook.definitions.normalize.names import COLLECTIONS
from wirebook.definitions.normalize.preview import preview

OLD_COLLECTIONS: Final = tuple(old for old, new in COLLECTIONS.items() if new in GROUP_TYPES)
EVENT_VERSION: Final = re.compile(r"[01]\.[0-9]+\Z")  # of CloudEvents; registries have versions such as 1.0-rc4
CAPTURE_PROTOCOL: Final = re.compile(r"(?i)(?:HTTP|KAFKA|NATS|AMQP|MQTT)(?:/|\Z)")
AVRO_NAMED: Final = {"record": "fields", "error": "fields", "enum": "symbols", "fixed": "size"}
JSON_TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
SCHEMA_WORDS: Final = frozenset({"properties", "$defs", "items", "allOf", "anyOf", "oneOf", "additionalProperties"})
CAPTURE: Final = "match it against a catalogue: wirebook match FILE --catalog CATALOGUE"
SCHEMA: Final = "put it into a catalogue, as 'schema' of a schema in 'schemagroups'"


def refusal_of(value: Any) -> str:
    """Return the error message for a document that is not a catalogue: what it is instead, or what it lacks."""
    kind = document_kind(value) or (_kind_of_part(value) if isinstance(value, Mapping) else None)
    if kind is not None:
        name, hint = kind
        return f"this is {name}, not an xRegistry catalogue; {hint}"
    collections = ", ".join(GROUP_TYPES)
    if not isinstance(value, Mapping):
        actual = {list: "an array", str: "a string", type(None): "null"}.get(type(value), "a scalar")
        return f"expected an object with {collections}, found {actual}"
    if (misspelt := misspelt_collection(value)) is not None:
        return f"the document has none of {collections}; write '{misspelt[1]}' instead of '{preview(misspelt[0])}'"
    return f"the document has none of {collections}; a catalogue has at least one of them"


def document_kind(value: Any) -> tuple[str, str] | None:
    """Return (what a document is, how to use it) if it is a known kind of document other than a catalogue."""
    if isinstance(value, str):
        if re.search(r"(?m)^\s*(?:syntax\s*=|message\s+\w+\s*\{|package\s+[\w.]+;)", value):
            return "a Protobuf schema", SCHEMA
        return ("an XML document", "a catalogue is JSON or YAML") if value.lstrip().startswith("<") else None
    if isinstance(value, list):
        kind = document_kind(value[0]) if value and isinstance(value[0], Mapping) else None
        if kind is None:
            return None
        name = kind[0].partition(" ")[2]
        return (f"an array of {name}s" if kind[1] == CAPTURE else "an Avro schema, a union", kind[1])
    if not isinstance(value, Mapping) or any(name in value for name in (*GROUP_TYPES, *OLD_COLLECTIONS)):
        return None
    return _kind_of_api(value) or _kind_of_message(value) or _kind_of_schema(value)


def _kind_of_api(value: Mapping[str, Any]) -> tuple[str, str] | None:
    for member, name in (("asyncapi", "an AsyncAPI"), ("openapi", "an OpenAPI"), ("swagger", "an OpenAPI")):
        if isinstance(version := value.get(member), (str, int, float)) and not isinstance(version, bool):
            hint = "describe its messages in 'messagegroups' and its servers in 'endpoints'"
            return f"{name} {preview(version)} document", hint
    return None


def _kind_of_message(value: Mapping[str, Any]) -> tuple[str, str] | None:
    version, type_ = value.get("specversion"), value.get("type")
    is_event = isinstance(version, str) and EVENT_VERSION.match(version) is not None and isinstance(type_, str)
    if is_event and ("source" in value or "id" in value):
        return f"a CloudEvents {preview(version)} event", CAPTURE
    protocol = value.get("protocol")
    definition = {"protocoloptions", "envelopemetadata", "usage", "messageid", "endpointid"}
    if isinstance(protocol, str) and CAPTURE_PROTOCOL.match(protocol) and definition.isdisjoint(value):
        return f"a captured {preview(protocol)} message", CAPTURE
    return None


def _kind_of_schema(value: Mapping[str, Any]) -> tuple[str, str] | None:
    schema, type_ = str(value.get("$schema", "")), value.get("type")
    if "json-structure.org" in schema:
        return "a JSON Structure schema", SCHEMA
    if isinstance(type_, str) and AVRO_NAMED.get(type_, "") in value and "name" in value:
        return "an Avro schema", SCHEMA
    if "json-schema.org" in schema or (SCHEMA_WORDS & value.keys() and (type_ in JSON_TYPES or "$id" in value)):
        return "a JSON Schema", SCHEMA
    return None


def _kind_of_part(value: Mapping[str, Any]) -> tuple[str, str] | None:
    """Recognise a single message or endpoint, or an xRegistry model."""
    if not {"envelopemetadata", "protocoloptions"}.isdisjoint(value):
        if "usage" in value:
            return "a single endpoint", 'put it into a catalogue: {"endpoints": {"ID": ...}}'
        hint = 'put it into a catalogue: {"messagegroups": {"GROUP": {"messages": {"ID": ...}}}}'
        return "a single message definition", hint
    groups = value.get("groups")
    if isinstance(groups, Mapping) and any(
        isinstance(group, Mapping) and "singular" in group for group in groups.values()
    ):
        return "an xRegistry model", "send it to a registry: PUT /modelsource"
    return None


def misspelt_collection(value: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return (the name in the document, the name to write) of a member that looks like a misspelt collection."""
    for name, member in value.items():
        if not isinstance(name, str) or not isinstance(member, (dict, list)):
            continue
        for collection in GROUP_TYPES:
            folded = fold(name)
            if folded in (collection, SINGULARS[collection]) or is_typo(folded, collection):
                return name, collection
            if folded in (SINGULARS[GROUP_TYPES[collection][1]], GROUP_TYPES[collection][1]):
                return name, f"{collection}.<ID>.{GROUP_TYPES[collection][1]}"
    return None
