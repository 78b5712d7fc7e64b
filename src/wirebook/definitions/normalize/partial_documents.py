"""Read a document that is a part of a registry (one group, or a collection of groups) as a registry.

Spec: core/spec.md#doc-flag (the documents that a server returns for parts of its registry).
"""

from __future__ import annotations

from typing import Any, Final

from wirebook.core.names import GROUP_TYPES, SINGULARS, collection_of
from wirebook.core.xid import parse_xid
from wirebook.definitions.normalize.foreign_documents import OLD_COLLECTIONS, document_kind
from wirebook.definitions.normalize.log import Log
from wirebook.text.pointers import child

REGISTRY_MARKS: Final = ("specversion", "registryid", *GROUP_TYPES, *OLD_COLLECTIONS)


def as_registry(value: Any, log: Log) -> dict[str, Any] | None:
    """Return `value` as a registry document, or None if it is neither a registry nor a part of one."""
    if not isinstance(value, dict):
        return None
    if (group := _collection_and_id(value)) is not None:
        groups, key = group
        log.origins[child(f"/{groups}", key)] = ""
        return {groups: {key: value}}
    if (collection := collection_of(value)) is not None:
        log.origins[f"/{collection}"] = ""
        return {collection: value}
    if any(f"{collection}url" in value for collection in GROUP_TYPES):
        return value
    return value if any(mark in value for mark in REGISTRY_MARKS) and document_kind(value) is None else None


def _collection_and_id(value: dict[str, Any]) -> tuple[str, str] | None:
    """Return (collection, id) of a document that is one group, or None."""
    xid = parse_xid(value.get("xid"))
    if xid is not None and xid.resource is None:
        return xid.groups, xid.group
    for collection in GROUP_TYPES:
        key = value.get(f"{SINGULARS[collection]}id")
        if isinstance(key, str) and not any(name in value for name in GROUP_TYPES if name != "messagegroups"):
            return collection, key
    return None
