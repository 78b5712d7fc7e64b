"""The messages of a normalised document, each with the attributes of its default Version.

Spec: core/spec.md#default-version; docs/semantics.md D46.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from wirebook.core.names import version_order
from wirebook.definitions.normalize.log import Log
from wirebook.definitions.normalize.preview import preview
from wirebook.text.pointers import child, escape, format_pointer

# Attributes of a Resource itself, not of its default Version.
RESOURCE_ONLY: Final = ("meta", "metaurl", "versions", "versionsurl", "versionscount")


@dataclass(slots=True)
class DocumentMessage:
    """A message as it is in its document, before base messages and aliases are resolved.

    Shape: `attributes` are those of the default Version, and `pointer` is their place; `resource` is the message with
    its `meta` and Versions; `group` is the message group or endpoint with the XID `container`; `xref` is the target if
    the message is an alias.
    """

    xid: str
    pointer: str
    container: str
    group: dict[str, Any]
    attributes: dict[str, Any]
    xref: str | None = None
    resource: dict[str, Any] = field(default_factory=dict)

    @property
    def group_pointer(self) -> str:
        """The pointer of the message group or endpoint."""
        return "/".join(self.pointer.split("/")[:3])

    @property
    def resource_pointer(self) -> str:
        """The pointer of the message itself, not of its default Version."""
        return "/".join(self.pointer.split("/")[:5])


def document_messages(document: dict[str, Any], log: Log) -> Iterator[DocumentMessage]:
    """Yield the messages of all groups and endpoints, in the order of the document."""
    for collection in ("messagegroups", "endpoints"):
        for group_id, group in document.get(collection, {}).items():
            for message_id, resource in (group.get("messages") or {}).items():
                container = f"/{collection}/{group_id}"
                message = DocumentMessage(
                    xid=f"{container}/messages/{message_id}",
                    pointer=format_pointer((collection, group_id, "messages", message_id)),
                    container=container,
                    group=group,
                    attributes=resource,
                    resource=resource,
                )
                yield _with_default_version(message, log)


def _with_default_version(message: DocumentMessage, log: Log) -> DocumentMessage:
    """Return a message with the attributes of its default Version (D46)."""
    resource, versions = message.resource, message.resource.get("versions")
    xref = (resource.get("meta") or {}).get("xref")
    if xref is not None:
        return replace(message, xref=str(xref))
    if not versions:
        return message
    default = default_version(resource, versions, message.pointer, message.xid, log)
    # Reading: an attribute of the default Version overrides the same attribute of its Resource, if both exist.
    own = {name: value for name, value in resource.items() if name not in RESOURCE_ONLY}
    pointer = child(f"{message.pointer}/versions", default)
    return replace(message, pointer=pointer, attributes=own | dict(versions[default]))


def place_of_attribute(definition: DocumentMessage, definitions: Mapping[str, DocumentMessage], *names: str) -> str:
    """Return the pointer of the attribute at path `names`: in the definition, its alias target, a base or its group.

    If none of them has the attribute, return the pointer of the definition.
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
        return child(definition.group_pointer, names[0])
    return definition.resource_pointer


def default_version(resource: dict[str, Any], versions: dict[str, Any], pointer: str, xid: str, log: Log) -> str:
    """Return the id of the default Version.

    It is the first of these that exists: the Version that `meta.defaultversionid` names; the only one with `isdefault`;
    the one that `versionid` of the Resource names; the newest by its id. A guess among several Versions is reported.
    """
    default = (resource.get("meta") or {}).get("defaultversionid")
    if isinstance(default, str) and default in versions:
        return default
    if default is not None:
        known = list(versions)[:10]
        message = f"'meta.defaultversionid' is '{preview(default)}', but there is no such Version"
        place = f"{pointer}/meta/defaultversionid"
        log.report("unknown-default-version", place, message, xid, expected=known, actual=default)
    marked = [key for key, version in versions.items() if version.get("isdefault") is True]
    if len(marked) == 1:
        return marked[0]
    own = resource.get("versionid")
    if isinstance(own, str) and own in versions:
        return own
    newest = max(versions, key=version_order)
    if len(versions) > 1:
        marking = f"{len(marked)} Versions are marked" if marked else "no Version is marked"
        message = f"{marking} as the default, so the newest by its id, '{preview(newest)}', is used; "
        message += "set 'meta.defaultversionid'"
        log.report("guessed-default-version", pointer, message, xid, actual=list(versions)[:10])
    return newest
