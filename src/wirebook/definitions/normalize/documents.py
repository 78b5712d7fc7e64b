"""Normalise a whole document to 1.0-rc4: the attributes of the registry, and its groups.

The rules for schema groups are in this file.

    normalise_document(source.value, log)

Spec: docs/catalogues.md#dialects; core/spec.md; schema/spec.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from wirebook.definitions.normalize.document_messages import document_messages
from wirebook.definitions.normalize.endpoints import normalise_endpoint
from wirebook.definitions.normalize.log import Log
from wirebook.definitions.normalize.message_options import normalise_options
from wirebook.definitions.normalize.messages import (
    SERVER_ATTRIBUTE,
    Roots,
    drop_server_attributes,
    normalise_group,
    normalise_identity,
    normalise_meta,
    normalise_origin,
    normalise_text,
)
from wirebook.definitions.normalize.names import COLLECTIONS, canonical_format
from wirebook.definitions.normalize.preview import preview
from wirebook.definitions.normalize.rewriting import RewrittenEntity
from wirebook.text.pointers import resolve

SPECVERSION: Final = "1.0-rc4"
OLD_SPECVERSION: Final = re.compile(r"(?i)(?:0\.[0-9]+(?:-.*)?|1\.0-rc[1-3])\Z")
BEFORE_1: Final = re.compile(r"0\.")


def normalise_document(document: dict[str, Any], log: Log, roots: Roots = ()) -> dict[str, Any]:
    """Return `document` as a document of 1.0-rc4, and record the changes in `log`. The argument is not modified.

    `roots`: the URLs that references into this registry may begin with.
    """
    registry = RewrittenEntity("", "", dict(document), log)
    version = registry.values.get("specversion")
    registry.old = isinstance(version, str) and BEFORE_1.match(version) is not None
    _normalise_registry(registry)
    for collection, normalise in GROUPS.items():
        registry.rewrite_each(collection, lambda entity, key, rewrite=normalise: rewrite(entity, key, roots))  # type: ignore[misc]
    _normalise_inherited_options(registry.values, log)
    return registry.values


def _normalise_inherited_options(document: dict[str, Any], log: Log) -> None:
    """Normalise the options of messages without a protocol, if their base message has one."""
    pending: list[tuple[dict[str, Any], RewrittenEntity, str]] = []
    for definition in document_messages(document, Log()):
        own, options = definition.attributes, definition.attributes.get("protocoloptions")
        if isinstance(options, dict) and not own.get("protocol") and not definition.group.get("protocol"):
            protocol = _protocol_of_base(own.get("basemessage"), document)
            holder = resolve(document, definition.pointer)
            if protocol is not None and "protocoloptions" in holder:
                pending.append((holder, RewrittenEntity(definition.xid, definition.pointer, own, log), protocol))
    for holder, entity, protocol in pending:
        holder["protocoloptions"] = normalise_options(entity, protocol, holder["protocoloptions"])


def _protocol_of_base(reference: Any, document: dict[str, Any]) -> str | None:
    """Return the protocol of the first base message in the chain that has one. Other documents are not searched."""
    visited: set[str] = set()
    while isinstance(reference, str) and reference not in visited:
        visited.add(reference)
        base = resolve(document, reference.replace("~", "~0"))
        if not isinstance(base, dict):
            return None
        group = resolve(document, "/".join(reference.split("/")[:3]).replace("~", "~0"), {})
        protocol = base.get("protocol") or group.get("protocol")
        if protocol is not None:
            return str(protocol)
        reference = base.get("basemessage")
    return None


def _normalise_registry(registry: RewrittenEntity) -> None:
    for old, new in COLLECTIONS.items():
        if new in GROUPS:
            registry.rename(old, new, "old-collection-name")
    if isinstance(registry.values.get("id"), str):
        registry.rename("id", "registryid", "old-id-name")
    if registry.old:
        registry.drop("epoch", SERVER_ATTRIBUTE, "server-attribute")
    drop_server_attributes(registry)
    documentation = registry.values.get("documentation")
    if isinstance(documentation, dict) and isinstance(url := documentation.get("url"), str):  # in some catalogues
        message = f"'documentation' must be a URL, not an object; '{preview(url)}' is used"
        registry.report("old-shape", "/documentation", message, expected=url, actual=documentation)
        registry.values["documentation"] = url
        registry.log.origins["/documentation"] = "/documentation/url"
    version = registry.values.get("specversion")
    if isinstance(version, str) and OLD_SPECVERSION.match(version):
        message = f"the document follows version '{version}' of the specification; it is read as {SPECVERSION}"
        registry.report("old-specversion", "/specversion", message, expected=SPECVERSION, actual=version)
        registry.values["specversion"] = SPECVERSION


# -- schema groups --------------------------------------------------------------------------------------------------


def normalise_schema_group(entity: RewrittenEntity, key: str, roots: Roots) -> None:
    """Normalise a schema group with its schemas and their Versions."""
    normalise_identity(entity, "schemagroupid", key)
    normalise_origin(entity)
    drop_server_attributes(entity)
    normalise_text(entity, "format", canonical_format, "old-format-name")
    entity.rewrite_each("schemas", lambda schema, name: _normalise_schema(schema, name, roots))


def _normalise_schema(entity: RewrittenEntity, key: str, roots: Roots) -> None:
    normalise_identity(entity, "schemaid", key)
    normalise_meta(entity, roots)
    _normalise_schema_document(entity)
    entity.rewrite_each("versions", _normalise_schema_version)


def _normalise_schema_version(entity: RewrittenEntity, key: str) -> None:
    if entity.values.get("id") == entity.xid.split("/")[4]:
        entity.rename("id", "schemaid", "old-id-name")
        entity.values.setdefault("versionid", key)
    normalise_identity(entity, "versionid", key)
    _normalise_schema_document(entity)


def _normalise_schema_document(entity: RewrittenEntity) -> None:
    normalise_origin(entity)
    entity.rename("ancestor", "ancestorid")
    entity.rename("schemaobject", "schema")
    entity.rename("schemaformat", "format", canonical=canonical_format)
    normalise_text(entity, "format", canonical_format, "old-format-name")


GROUPS: Final[dict[str, Callable[[RewrittenEntity, str, Roots], None]]] = {
    "messagegroups": normalise_group,
    "endpoints": normalise_endpoint,
    "schemagroups": normalise_schema_group,
}
