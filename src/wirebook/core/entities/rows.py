"""Entities as storage holds them: the texts of their members, cut where what depends on the view goes between.

    Group     ids | text | collections            Version   ids | head | isdefault | tail | document
    meta      ids | text | default Version

A text is the inside of a JSON object, without braces; "" is none. Ids, URLs and `isdefault` are never in one.
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
    """A Group. `counts` are its Resources by their plural names."""

    key: int
    id: str
    text: str
    counts: Mapping[str, int] = field(default_factory=dict)
    parent: int = 0


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A Version. `document` is given where it was asked for."""

    key: int
    parent: int
    id: str
    head: str
    tail: str
    contenttype: str | None = None
    document: bytes | None = None


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """A Resource with its default Version. A cross-reference has `xref`, and all the rest from its target; `version` is
    None where that is not there. `revisions`: the numbers of the last writes to it and to its target, if asked for."""

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
    """The text of members, of which no number is infinite."""
    return msgspec.json.encode(members)[1:-1].decode()


def parse_members(text: str) -> Members:
    members: Members = msgspec.json.decode(f"{{{text}}}")
    return members


def group_text(members: Members, id_name: str) -> str:
    return format_members({name: value for name, value in members.items() if name != id_name})


def meta_text(members: Members, id_name: str) -> str:
    """Of a meta without its ids, the cross-reference and the default Version, which have their places."""
    apart = (id_name, "xref", "defaultversionid", "defaultversionsticky")
    return format_members({name: value for name, value in members.items() if name not in apart})


def version_texts(members: Members, id_name: str) -> tuple[str, str]:
    """The head, up to the name, and the tail of a Version."""
    first: Members = {name: members[name] for name in sorted(HEAD) if name in members}
    apart = (id_name, "versionid", *HEAD)
    return format_members(first), format_members({name: value for name, value in members.items() if name not in apart})


# -- rows as entities ---------------------------------------------------------------------------------------------


def group_entity(row: GroupRow, type_: GroupType) -> Members:
    return {type_.id_name: row.id, "xid": f"/{type_.plural}/{row.id}", **parse_members(row.text)}


def resource_entity(row: ResourceRow, type_: ResourceType, xid: str) -> Members:
    """A Resource as its default Version, under its own name."""
    entity: Members = {type_.id_name: row.id, "xid": xid}
    if row.version is not None:
        entity |= {"versionid": row.version.id, "isdefault": True}
        entity |= parse_members(row.version.head) | parse_members(row.version.tail)
    return entity


def meta_entity(row: ResourceRow, type_: ResourceType, xid: str) -> Members:
    """The meta of the Resource with that xid."""
    meta: Members = {type_.id_name: row.id, "xid": f"{xid}/meta", "xref": row.xref}
    if row.version is not None:
        meta |= parse_members(row.text)
        meta |= {"defaultversionid": row.default, "defaultversionsticky": row.sticky}
    return meta


def version_entity(row: VersionRow, type_: ResourceType, owner: ResourceRow, xid: str) -> Members:
    """A Version of a Resource; `xid` is its own."""
    ids = {type_.id_name: owner.id, "versionid": row.id, "xid": xid, "isdefault": row.id == owner.default}
    return ids | parse_members(row.head) | parse_members(row.tail)


@lru_cache(maxsize=256)
def reader(names: frozenset[str]) -> Callable[[str], Members]:
    """What reads from the text of members those with `names` alone, in a fraction of the time that all would take."""
    known = [name for name in sorted(names) if name.isprintable() and not set(name) & {'"', "\\"}]
    fields = [(f"member{i}", Any, msgspec.UNSET) for i in range(len(known))]
    rename = {f"member{i}": name for i, name in enumerate(known)}
    decode = msgspec.json.Decoder(msgspec.defstruct("Part", fields, rename=rename)).decode
    pairs = [(name, place) for place, name in rename.items()]

    def read(text: str) -> Members:
        part = decode(f"{{{text}}}")
        values = ((name, getattr(part, place)) for name, place in pairs)
        return {name: value for name, value in values if value is not msgspec.UNSET}

    return read
