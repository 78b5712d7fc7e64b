"""The attributes that the specifications define for each kind of entity, and the data type of each.

Types are those of the core specification and a few more: ``text+`` is a non-empty string, ``url+`` a non-empty URL;
``schema`` and ``any`` allow any value.

Spec: core/spec.md#common-attributes, #meta-entity, #version-entity; message/model.json, endpoint/model.json,
schema/model.json.
"""

from __future__ import annotations

import re
from typing import Final

from wirebook.core.names import GROUP_TYPES, SINGULARS

ATTRIBUTE_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")
KEY_NAME: Final = re.compile(r"[a-z0-9][a-z0-9:_.-]{0,62}\Z")
MAX_BYTES: Final = 4096  # name and value of a scalar attribute together
RESERVED_VERSIONS: Final = ("null", "request")
COMPATIBILITIES: Final = (
    "backward", "backward_transitive", "forward", "forward_transitive", "full", "full_transitive",
)  # fmt: skip

Types = dict[str, str]

IDENTITY: Final[Types] = {
    "self": "url+",
    "shortself": "shortself",
    "xid": "xid",
    "epoch": "uinteger",
    "createdat": "timestamp",
    "modifiedat": "timestamp",
}
COMMON: Final[Types] = IDENTITY | {
    "name": "text+",
    "description": "string",
    "documentation": "url+",
    "icon": "url+",
    "labels": "labels",
    "deprecated": "deprecated",
}
VERSION: Final[Types] = COMMON | {
    "versionid": "id",
    "isdefault": "boolean",
    "ancestorid": "string",
    "contenttype": "string",
    "format": "text+",
    "formatvalidated": "boolean",
    "formatvalidatedreason": "text+",
    "compatibilityvalidated": "boolean",
    "compatibilityvalidatedreason": "text+",
}
META: Final[Types] = IDENTITY | {
    "readonly": "boolean",
    "xref": "any",
    "compatibility": "text+",
    "compatibilityauthority": "text+",
    "defaultversionid": "id",
    "defaultversionurl": "url+",
    "defaultversionsticky": "boolean",
    "deprecated": "deprecated",
}
RESOURCE: Final[Types] = VERSION | {"metaurl": "url+", "meta": "object", "versions": "map"}

REGISTRY: Final[Types] = COMMON | {
    "specversion": "text+",
    "registryid": "id",
    "capabilities": "object",
    "model": "object",
    "modelsource": "object",
} | dict.fromkeys(GROUP_TYPES, "map")  # fmt: skip
GROUP: Final[Types] = COMMON | {"constraints": "map"}
GROUPS: Final[dict[str, Types]] = {
    "messagegroups": GROUP | {"envelope": "text+", "protocol": "text+", "messages": "map"},
    "endpoints": GROUP | {
        "usage": "any",  # checked by rules of its own
        "channel": "any",
        "envelope": "text+",
        "envelopeoptions": "object",
        "protocol": "text+",
        "protocoloptions": "any",
        "messagegroups": "any",
        "messages": "map",
    },
    "schemagroups": GROUP | {"format": "text+", "schemas": "map"},
}  # fmt: skip
CONTENT: Final[dict[str, Types]] = {
    "messages": {
        "basemessage": "any",
        "envelope": "text+",
        "envelopemetadata": "object",
        "envelopeoptions": "object",
        "protocol": "text+",
        "protocoloptions": "object",
        "dataschemaformat": "text+",
        "dataschema": "any",
        "dataschemauri": "string",
        "dataschemaxid": "any",
        "datacontenttype": "string",
        "examples": "any",
    },
    "schemas": {"schema": "document", "schemabase64": "base64", "schemaurl": "url+"},
}


def types_of_group(collection: str) -> Types:
    """Return the attributes of a group in that collection."""
    return GROUPS[collection] | {f"{SINGULARS[collection]}id": "id"}


def types_of_resource(collection: str) -> Types:
    """Return the attributes of a resource in that collection."""
    return RESOURCE | types_of_version(collection)


def types_of_version(collection: str) -> Types:
    """Return the attributes of a Version of a resource in that collection."""
    return VERSION | CONTENT[collection] | {f"{SINGULARS[collection]}id": "id"}


def types_of_meta(collection: str) -> Types:
    """Return the attributes of the meta of a resource in that collection."""
    return META | {f"{SINGULARS[collection]}id": "id"}
