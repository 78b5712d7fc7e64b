"""XIDs: the path of an entity from the root of its registry.

    xid = "/" [ GROUPS "/" id [ "/" RESOURCES "/" id [ "/meta" / "/versions/" id ] ] ]

Spec: core/spec.md#xid-attribute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wirebook.core.names import GROUP_TYPES, is_identifier


@dataclass(frozen=True, slots=True)
class Xid:
    """The parts of an XID; absent parts are None.

    Shape: `tail` is ``meta``, ``versions`` or None; `version` is set with ``versions`` only.
    """

    groups: str
    group: str
    resources: str | None = None
    resource: str | None = None
    tail: str | None = None
    version: str | None = None

    def __str__(self) -> str:
        parts = (self.groups, self.group, self.resources, self.resource, self.tail, self.version)
        return "".join(f"/{part}" for part in parts if part is not None)

    @property
    def container(self) -> str:
        """The XID of the group."""
        return f"/{self.groups}/{self.group}"

    @property
    def entity(self) -> str:
        """The XID of the resource, or of the group if there is no resource; without Version or ``meta``."""
        return self.container if self.resource is None else f"{self.container}/{self.resources}/{self.resource}"


LENGTHS: Final = frozenset({2, 4, 5, 6})


def parse_xid(text: object) -> Xid | None:
    """Return the parts of `text`, or None if it is not an XID of a built-in group and resource type."""
    if not isinstance(text, str) or not text.startswith("/"):
        return None
    parts = text[1:].split("/")
    if len(parts) not in LENGTHS or parts[0] not in GROUP_TYPES or not all(map(is_identifier, parts)):
        return None
    if len(parts) > 2 and parts[2] != GROUP_TYPES[parts[0]][1]:
        return None
    if len(parts) > 4 and parts[4] != ("meta" if len(parts) == 5 else "versions"):
        return None
    return Xid(*parts)


def is_message(xid: Xid | None) -> bool:
    """Return whether `xid` names a message or a Version of one."""
    return xid is not None and xid.resources == "messages" and xid.tail != "meta"
