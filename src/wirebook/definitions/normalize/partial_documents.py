"""What kind of document this is: a registry, a collection of groups, or one group; all become a registry.

Spec: core/spec.md#doc-flag (the views a server gives of its parts).
"""

from __future__ import annotations

from typing import Any, Final

from wirebook.core.names import GROUP_TYPES, SINGULARS, collection_of
from wirebook.core.xid import parse_xid
from wirebook.definitions.normalize.foreign_documents import OLD_COLLECTIONS, document_kind
from wirebook.definitions.normalize.log import Log

REGISTRY_MARKS: Final = ("specversion", "registryid", *GROUP_TYPES, *OLD_COLLECTIONS)


def as_registry(value: Any, log: Log) -> dict[str, Any] | None:
    """`value` as a registry document, or None when it is nothing of a registry."""
    if not isinstance(value, dict):
        return None
    if (place := _group_place(value)) is not None:
        collection, key = place
        log.origins[f"/{collection}/{key}"] = ""
        return {collection: {key: value}}
    if (found := collection_of(value)) is not None:
        log.origins[f"/{found}"] = ""
        return {found: value}
    return value if _is_registry(value) else None


def _is_registry(value: dict[str, Any]) -> bool:
    if any(f"{collection}url" in value for collection in GROUP_TYPES):
        return True
    return any(mark in value for mark in REGISTRY_MARKS) and document_kind(value) is None


def _group_place(value: dict[str, Any]) -> tuple[str, str] | None:
    """(collection, id) of a document that is one group."""
    xid = parse_xid(value.get("xid"))
    if xid is not None and xid.resource is None:
        return xid.groups, xid.group
    for collection in GROUP_TYPES:
        key = value.get(f"{SINGULARS[collection]}id")
        if isinstance(key, str) and not any(name in value for name in GROUP_TYPES if name != "messagegroups"):
            return collection, key
    return None
