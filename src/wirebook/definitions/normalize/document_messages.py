"""The messages of a document as they are written: each with the attributes of its default Version.

Spec: core/spec.md#default-version; docs/semantics.md D46.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from wirebook.definitions.normalize.log import Log
from wirebook.definitions.normalize.preview import preview
from wirebook.text.pointers import child, escape

# What a resource itself has, whichever Version is its default.
RESOURCE_ONLY: Final = ("meta", "metaurl", "versions", "versionsurl", "versionscount")


@dataclass(slots=True)
class DocumentMessage:
    """A message as its document has it: the attributes of its default Version.

    Shape: `pointer` is where those attributes stand, `resource` the message with its `meta` and Versions.
    """

    xid: str
    pointer: str
    container: str
    group: dict[str, Any]
    attributes: dict[str, Any]
    xref: str | None = None
    resource: dict[str, Any] = field(default_factory=dict)


def document_messages(document: dict[str, Any], log: Log) -> Iterator[DocumentMessage]:
    """The messages of all groups and endpoints."""
    for collection in ("messagegroups", "endpoints"):
        for group_id, group in document.get(collection, {}).items():
            for message_id, resource in (group.get("messages") or {}).items():
                container = f"/{collection}/{group_id}"
                yield _definition(f"{container}/messages/{message_id}", container, group, resource, log)


def _definition(xid: str, container: str, group: dict[str, Any], resource: dict[str, Any], log: Log) -> DocumentMessage:
    """A resource's attributes are its default Version's (D46)."""
    pointer, attributes, versions = xid.replace("~", "~0"), resource, resource.get("versions")
    xref = (resource.get("meta") or {}).get("xref")
    if versions and xref is None:
        default = default_version(resource, versions, pointer, xid, log)
        # Reading: where a document gives both, the default Version's attributes go before the resource's.
        own = {name: value for name, value in resource.items() if name not in RESOURCE_ONLY}
        pointer, attributes = child(f"{pointer}/versions", default), own | dict(versions[default])
    return DocumentMessage(xid, pointer, container, group, attributes, None if xref is None else str(xref), resource)


def place_of_attribute(definition: DocumentMessage, definitions: Mapping[str, DocumentMessage], *names: str) -> str:
    """The pointer of the attribute at `names` where it is written: in the definition, its target, a base or its group.

    Where it is written nowhere, that of the definition.
    """
    seen: set[str] = set()
    current: DocumentMessage | None = definition
    while current is not None and current.xid not in seen:
        seen.add(current.xid)
        if current.xref is not None:
            current = definitions.get(current.xref)
            continue
        value: Any = current.attributes
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None:
            return "".join((current.pointer, *(f"/{escape(name)}" for name in names)))
        current = definitions.get(str(current.attributes.get("basemessage")).partition("/versions/")[0])
    if len(names) == 1 and names[0] in definition.group:
        return child(definition.container.replace("~", "~0"), names[0])
    return definition.xid.replace("~", "~0")


def default_version(resource: dict[str, Any], versions: dict[str, Any], pointer: str, xid: str, log: Log) -> str:
    """The one `meta` names, the one that says so itself, the only one; else the newest, with a remark."""
    named = (resource.get("meta") or {}).get("defaultversionid")
    if isinstance(named, str) and named in versions:
        return named
    if named is not None:
        message, at = f"'meta.defaultversionid' names '{preview(named)}', which is not there", f"{pointer}/meta"
        log.report(
            "unknown-default-version",
            f"{at}/defaultversionid",
            message,
            xid,
            expected=list(versions)[:10],
            actual=named,
        )
    marked = [key for key, version in versions.items() if version.get("isdefault") is True]
    if len(marked) == 1:
        return marked[0]
    own = resource.get("versionid")
    if isinstance(own, str) and own in versions:
        return own
    newest = max(versions, key=version_order)
    if len(versions) > 1:
        message = f"no Version is named as the default; '{preview(newest)}', the newest by its id, is used"
        log.report("guessed-default-version", pointer, message, xid, actual=list(versions)[:10])
    return newest


def version_order(version_id: str) -> tuple[tuple[int, str], ...]:
    """Version ids in the order of their numbers: ``v9`` before ``v10``."""
    return tuple((len(part), part) if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", version_id))
