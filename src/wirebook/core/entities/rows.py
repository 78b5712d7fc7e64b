"""Entities as rows: their members as JSON text, split where responses insert attributes that depend on the view.

    Group     ids | text | collections            Version   ids | head | isdefault | tail | document
    meta      ids | text | default Version

A text is a JSON object without its braces, "" if empty. It never contains the entity's ids, its URLs or `isdefault`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import msgspec

from wirebook.core.entities.state import Members
from wirebook.core.model.compiled import GroupType, ResourceType

HEAD: Final = frozenset({"epoch", "name"})
"""The members in the head of a Version."""


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A Group. `counts` has the number of its Resources by the plural name of their type."""

    key: int
    id: str
    text: str
    counts: Mapping[str, int] = field(default_factory=dict)
    parent: int = 0


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A Version. `document` is None unless the query selects it."""

    key: int
    parent: int
    id: str
    head: str
    tail: str
    contenttype: str | None = None
    document: bytes | None = None


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """A Resource with its default Version. For a cross-reference, `xref` is set and the content is its target's.

    `version` is None if the target does not exist. `revisions` are the numbers of the last writes to the Resource and
    to its target, if the query selects them.
    """

    key: int
    parent: int
    id: str
    text: str
    default: str
    sticky: bool
    count: int
    version: VersionRow | None
    xref: str | None = None
    revisions: tuple[int, ...] = ()


def format_members(members: Mapping[str, Any]) -> str:
    """Return the text of members. Numbers must be finite."""
    return msgspec.json.encode(members)[1:-1].decode()


def parse_members(text: str) -> Members:
    """Return the members of a text."""
    members: Members = msgspec.json.decode(f"{{{text}}}")
    return members


def group_text(members: Members, id_name: str) -> str:
    """Return the text of a Group."""
    return format_members({name: value for name, value in members.items() if name != id_name})


def meta_text(members: Members, id_name: str) -> str:
    """Return the text of a meta, without ids, cross-reference and default Version, which have their own columns."""
    apart = (id_name, "xref", "defaultversionid", "defaultversionsticky")
    return format_members({name: value for name, value in members.items() if name not in apart})


def version_texts(members: Members, id_name: str) -> tuple[str, str]:
    """Return the head of a Version, with the members in `HEAD`, and its tail, with the others."""
    first: Members = {name: members[name] for name in sorted(HEAD) if name in members}
    apart = (id_name, "versionid", *HEAD)
    return format_members(first), format_members({name: value for name, value in members.items() if name not in apart})


# -- rows as entities ---------------------------------------------------------------------------------------------


def group_entity(row: GroupRow, type_: GroupType) -> Members:
    """Return the members of a Group, including its ids."""
    return {type_.id_name: row.id, "xid": f"/{type_.plural}/{row.id}", **parse_members(row.text)}


def resource_entity(row: ResourceRow, type_: ResourceType, xid: str) -> Members:
    """Return the members of a Resource: those of its default Version, with the Resource's ids."""
    entity: Members = {type_.id_name: row.id, "xid": xid}
    if row.version is not None:
        entity |= {"versionid": row.version.id, "isdefault": True}
        entity |= parse_members(row.version.head) | parse_members(row.version.tail)
    return entity


def meta_entity(row: ResourceRow, type_: ResourceType, xid: str) -> Members:
    """Return the members of the meta of the Resource `xid`."""
    meta: Members = {type_.id_name: row.id, "xid": f"{xid}/meta", "xref": row.xref}
    if row.version is not None:
        meta |= parse_members(row.text)
        meta |= {"defaultversionid": row.default, "defaultversionsticky": row.sticky}
    return meta


def version_entity(row: VersionRow, type_: ResourceType, owner: ResourceRow, xid: str) -> Members:
    """Return the members of a Version of the Resource `owner`; `xid` is that of the Version."""
    ids = {type_.id_name: owner.id, "versionid": row.id, "xid": xid, "isdefault": row.id == owner.default}
    return ids | parse_members(row.head) | parse_members(row.tail)


@lru_cache(maxsize=256)
def reader(names: frozenset[str]) -> Callable[[str], Members]:
    """Return a parser that reads only the members `names` from a text. It is much faster than `parse_members`."""
    known = [name for name in sorted(names) if name.isprintable() and not set(name) & {'"', "\\"}]
    fields = [(f"member{i}", Any, msgspec.UNSET) for i in range(len(known))]
    rename = {f"member{i}": name for i, name in enumerate(known)}
    decode = msgspec.json.Decoder(msgspec.defstruct("Part", fields, rename=rename)).decode
    pairs = [(name, field_name) for field_name, name in rename.items()]

    def read(text: str) -> Members:
        part = decode(f"{{{text}}}")
        values = ((name, getattr(part, field_name)) for name, field_name in pairs)
        return {name: value for name, value in values if value is not msgspec.UNSET}

    return read
