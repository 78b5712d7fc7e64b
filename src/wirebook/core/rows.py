"""Entities as storage holds them: the texts of their members, cut where what depends on the view goes between.

    Group     ids | text | collections            Version   ids | head | isdefault | tail | document
    meta      ids | text | default Version

A text is the inside of a JSON object, without braces; "" is none. Ids, URLs and `isdefault` are never in one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wirebook.core.state import Members


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
    None where that is not there."""

    key: int
    parent: int
    id: str
    text: str
    default: str
    sticky: bool
    count: int
    version: VersionRow | None
    xref: str | None = None


def format_members(members: Mapping[str, Any]) -> str:
    """The text of members."""
    return json.dumps(members, ensure_ascii=False, separators=(",", ":"), allow_nan=False)[1:-1]


def parse_members(text: str) -> Members:
    members: Members = json.loads(f"{{{text}}}")
    return members


def group_text(members: Members, id_name: str) -> str:
    return format_members({name: value for name, value in members.items() if name != id_name})


def meta_text(members: Members, id_name: str) -> str:
    """Of a meta without its ids, the cross-reference and the default Version, which have their places."""
    apart = (id_name, "xref", "defaultversionid", "defaultversionsticky")
    return format_members({name: value for name, value in members.items() if name not in apart})


def version_texts(members: Members, id_name: str) -> tuple[str, str]:
    """The head, up to the name, and the tail of a Version."""
    first: Members = {name: members[name] for name in ("epoch", "name") if name in members}
    apart = (id_name, "versionid", "epoch", "name")
    return format_members(first), format_members({name: value for name, value in members.items() if name not in apart})
