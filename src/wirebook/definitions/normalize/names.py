"""All known spellings of names, in specifications and samples, and the canonical name of each.

Spec: docs/catalogues.md#dialects; message/spec.md; message-0.5-wip.md.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from wirebook.text.pointers import parse_pointer

# -- collections ----------------------------------------------------------------------------------------------------

COLLECTIONS: Final = {
    "definitionGroups": "messagegroups",
    "definitiongroups": "messagegroups",
    "messageGroups": "messagegroups",
    "definitions": "messages",
    "schemaGroups": "schemagroups",
}

# -- attributes: from the old name to the name in 1.0-rc4 -------------------------------------------------------------

SELECTOR_NAMES: Final = {"binding": "protocol"}
MESSAGE_NAMES: Final = SELECTOR_NAMES | {
    "metadata": "envelopemetadata",
    "message": "protocoloptions",
    "protocolmetadata": "protocoloptions",
    "schemaformat": "dataschemaformat",
    "schema": "dataschema",
    "schemaobject": "dataschema",
    "schemaurl": "dataschemauri",
    "dataschemaurl": "dataschemauri",
}
# Names that occur only in documents before 1.0.
BEFORE_1_NAMES: Final = frozenset({"id", "binding", "metadata", "message", "schemaformat", "schema", "schemaurl"})
VERSION_NAMES: Final = {"ancestor": "ancestorid"}
# The spellings of `basemessage`. The name in 1.0-rc4 comes first (D35).
BASE_NAMES: Final = ("basemessage", "basemessageuri", "basemessageurl")
# Attributes that are in the Resource in 0.5, and in its `meta` in 1.0.
META_NAMES: Final = ("xref", "defaultversionid", "defaultversionsticky")
SERVER_META_NAMES: Final = ("readonly", "defaultversionurl")
# ``messagesurl``, ``messagescount`` and so on, including the old names of collections.
COLLECTION_SUMMARY: Final = re.compile(
    r"(?i:messagegroups|definitiongroups|schemagroups|endpoints|messages|definitions|schemas|versions)(?:url|count)\Z"
)

# -- protocols, envelopes, types, formats ---------------------------------------------------------------------------

NO_SELECTOR: Final = "none"
PROTOCOLS: Final = ("HTTP", "KAFKA", "MQTT/3.1.1", "MQTT/5.0", "AMQP/1.0", "NATS")
PROTOCOL_NAMES: Final = {name.casefold(): name for name in PROTOCOLS} | {
    "amqp": "AMQP/1.0",
    "amqp/1": "AMQP/1.0",
    "mqtt": "MQTT/5.0",
    "mqtt/5": "MQTT/5.0",
}
# Protocols whose version is ignored.
PROTOCOL_FAMILIES: Final = {"http": "HTTP", "kafka": "KAFKA", "nats": "NATS"}
CLOUDEVENTS: Final = "CloudEvents/1.0"

TYPES: Final = (
    "any", "binary", "boolean", "duration", "integer", "number", "string", "symbol", "timestamp", "uri",
    "urireference", "uritemplate", "stringified integer", "ulong", "uuid",
)  # fmt: skip
TYPE_NAMES: Final = {name: name for name in TYPES} | {
    "var": "any",
    "datetime": "timestamp",
    "date-time": "timestamp",
    "float": "number",
    "double": "number",
    "int": "integer",
    "bool": "boolean",
    "uri-reference": "urireference",
    "uri_reference": "urireference",
    "uri-template": "uritemplate",
    "uri_template": "uritemplate",
}

FORMAT_FAMILIES: Final = {
    "jsonschema": "JsonSchema",
    "protobuf": "Protobuf",
    "proto": "Protobuf",
    "xsd": "XSD",
    "xmlschema": "XSD",
    "avro": "Avro",
    "jsonstructure": "JsonStructure",
}
FORMAT_VERSIONS: Final = {
    ("Protobuf", "3.0"): "3",
    ("Protobuf", "2.0"): "2",
    ("JsonSchema", "draft-2019-09"): "draft/2019-09",
    ("JsonSchema", "draft-2020-12"): "draft/2020-12",
    ("JsonSchema", "2019-09"): "draft/2019-09",
    ("JsonSchema", "2020-12"): "draft/2020-12",
    ("JsonSchema", "draft7"): "draft-07",
    ("JsonSchema", "draft-7"): "draft-07",
    ("JsonSchema", "draft6"): "draft-06",
    ("JsonSchema", "draft-6"): "draft-06",
    ("JsonSchema", "draft4"): "draft-04",
    ("JsonSchema", "draft-4"): "draft-04",
}

CURRENT_TIME: Final = "0000-01-01T00:00:00Z"
# The current-time value as it is written in 0.5 and in one published sample (D10).
OLD_CURRENT_TIMES: Final = re.compile(
    r"(?:01-01-0000[Tt]00:00:00(?:\.0+)?(?:[Zz]|[+-]00:00)|0001-01-01[Tt]00:00:00(?:\.0+)?\+00:00)\Z"
)


def canonical_protocol(text: str) -> str:
    """Return the canonical name of a protocol. An unknown protocol is returned unchanged."""
    folded = text.strip().casefold()
    family = PROTOCOL_FAMILIES.get(folded.partition("/")[0])
    return family or PROTOCOL_NAMES.get(folded, text)


def is_known_protocol(text: object) -> bool:
    """Return whether Wirebook supports a protocol, in any spelling."""
    return isinstance(text, str) and canonical_protocol(text) in PROTOCOLS


def protocol_family(protocol: object) -> str:
    """Return the name of a protocol or envelope without its version, in lower case; a family shares options (D38)."""
    return str(protocol).partition("/")[0].casefold()


def names_cloudevents(text: object) -> bool:
    """Return whether an envelope is CloudEvents in any version."""
    return isinstance(text, str) and text.partition("/")[0].casefold() == "cloudevents"


def is_cloudevents(text: object) -> bool:
    """Return whether an envelope is CloudEvents/1.0, the only one that Wirebook supports (R3)."""
    return isinstance(text, str) and canonical_envelope(text) == CLOUDEVENTS


def canonical_envelope(text: str) -> str:
    """Return the canonical name of an envelope. CloudEvents without a version, or 1.0.x, becomes CloudEvents/1.0."""
    name, _, version = text.strip().partition("/")
    if name.casefold() == "cloudevents" and re.fullmatch(r"(?:1|1\.0|1\.0\.\d+)?", version):
        return CLOUDEVENTS
    return text


def canonical_type(text: str) -> str:
    """Return the canonical name of a property type. An unknown type is returned unchanged (lint reports it)."""
    return TYPE_NAMES.get(text.strip().casefold(), text)


def canonical_format(text: str) -> str:
    """Return the canonical name of a schema format: ``JSONSchema/Draft-07`` becomes ``JsonSchema/draft-07``."""
    name, slash, version = text.strip().partition("/")
    family = FORMAT_FAMILIES.get(name.casefold())
    if family is None:
        return text
    folded = version.casefold()
    return f"{family}{slash}{FORMAT_VERSIONS.get((family, folded), folded)}"


# -- references -----------------------------------------------------------------------------------------------------


def canonical_reference(text: str, roots: tuple[str, ...] = ()) -> str:
    """Return a reference into this registry as an XID. Any other reference is returned unchanged.

    ``#/definitionGroups/g/definitions/m`` becomes ``/messagegroups/g/messages/m``, and so does the same path with or
    without a leading slash. A URL below one of `roots`, the URLs of the registry, becomes its path without
    ``$details``. A suffix of an id (a fragment, ``:Name``) is kept.
    """
    if lacks_slash(text):
        text = f"/{text}"
    # Reading: the schema specification still has `#/schemagroups/...`, which becomes a path like any other reference.
    if text.startswith("#/"):
        pointer = unquote(text) if "%" in text else text
        return "/" + "/".join(_with_new_names(list(parse_pointer(pointer))))
    for root in roots:
        if text.startswith(f"{root}/"):
            text = text[len(root) :].split("$details", 1)[0]
            break
    if text.startswith("/"):
        return "/" + "/".join(_with_new_names(text[1:].split("/")))
    return text


WITHOUT_SLASH: Final = re.compile(
    r"(?:messagegroups|endpoints|schemagroups|definitionGroups|definitiongroups|messageGroups|schemaGroups)/[^/]+(?:/|\Z)"
)


def lacks_slash(text: str) -> bool:
    """Return whether `text` is the XID of an entity without its leading slash."""
    return WITHOUT_SLASH.match(text) is not None


def _with_new_names(parts: list[str]) -> list[str]:
    """Rename the collections in a path, which are its first and third parts."""
    return [COLLECTIONS.get(part, part) if index in (0, 2) else part for index, part in enumerate(parts)]
