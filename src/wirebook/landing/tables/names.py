"""The names of tables, which are readable and never change for a definition in a target.

A name is derived from the XID of a definition. A suffix, which is a hash of the XID, is added only if two definitions
would share a name. Once a table exists, its name stays, so if a definition that is added later would have the same
name, that definition gets the suffix.

A name can have levels, separated by dots: folders of the target, and namespaces in an Iceberg catalogue. No table is
in the folder of another one, because the upkeep of a table deletes files that it does not know.

Spec: docs/how-to/table-settings.md#names; docs/decisions/0201, 0213
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from wirebook.landing.stores.locations import Location
from wirebook.landing.tables.layout import NO_DEFINITION

__all__ = ["TablePlace", "assign_names", "levels_above", "name_parts", "readable_name"]

MAX_NAME_LENGTH: Final = 100
"""The maximum length of each level of a name, without a hash."""
DIGITS: Final = (8, 16, 64)
"""How many digits of the hash to try, in this order, until the name is unique."""


@dataclass(frozen=True, slots=True)
class TablePlace:
    """A table of the target at `root`, by its name."""

    root: Location
    name: str

    @property
    def folder(self) -> Location:
        """The folder of its files. Each level of the name is a folder."""
        return self.root / self.name.replace(".", "/")


def levels_above(name: str) -> Iterator[str]:
    """The levels above a table, as names: those of ``a.b.c`` are ``a`` and ``a.b``."""
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def readable_name(xid: str) -> str:
    """The default name of a definition's table, unless another table has it."""
    group, message = name_parts(xid)
    name = message if message.startswith(f"{group}_") or not group else f"{group}__{message}"
    return name[:MAX_NAME_LENGTH].rstrip("_") or "message"


def name_parts(xid: str) -> tuple[str, str]:
    """The group (or endpoint) and the message of an XID as words: lower-case letters and digits with underscores."""
    _, _, group, _, message = xid.split("/", 4)
    return _words(group), _words(message)


def _words(text: str) -> str:
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text.casefold())
        text = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def assign_names(
    xids: Iterable[str],
    existing: Mapping[str, str],
    fixed: Mapping[str, str] = MappingProxyType({}),
    rule: Callable[[str], str | None] = lambda _: None,
) -> dict[str, str]:
    """The names of definitions that have no table yet, except names that are the same as `readable_name`.

    `existing` maps XIDs to the names of existing tables, and `fixed` to names that are chosen for new ones. All
    others are named by `rule`, or by `readable_name` if it returns None. Names are unique when case is ignored, and
    none is a level of another. If several definitions would have the same name, all of them get a suffix, so that the
    result does not depend on their order.
    """
    new = [xid for xid in xids if xid not in existing]
    taken = {name.lower() for name in (*existing.values(), *fixed.values(), *NO_DEFINITION)}
    readable = {xid: readable_name(xid) for xid in new}
    ruled = {xid: rule(xid) or name for xid, name in readable.items() if xid not in fixed}
    counts = Counter(name.lower() for name in ruled.values())
    above = {level for name in (*taken, *counts) for level in levels_above(name)}
    shared = {}
    for xid, name in ruled.items():
        within = next((level for level in levels_above(name) if level.lower() in taken), None)
        if within or counts[name.lower()] > 1 or name.lower() in taken or name.lower() in above:
            shared[xid] = within or name
    taken |= counts.keys()
    for xid, level in sorted(shared.items()):
        digest = hashlib.sha256(xid.encode(errors="surrogatepass")).hexdigest()
        candidates = (f"{level}_{digest[:digits]}{ruled[xid].removeprefix(level)}" for digits in DIGITS)
        ruled[xid] = next(name for name in candidates if not {name.lower(), *levels_above(name.lower())} & taken)
        taken.add(ruled[xid].lower())
    names = ruled | {xid: fixed[xid] for xid in new if xid in fixed}
    return {xid: name for xid, name in names.items() if name != readable[xid]}
