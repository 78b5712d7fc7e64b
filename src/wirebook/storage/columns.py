"""The columns of entities for filters and sorting: which members have columns, and which are in JSON texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from sqlalchemy import ColumnElement, FromClause, literal

from wirebook.core.entities.rows import HEAD, parse_members, reader
from wirebook.core.entities.state import Members
from wirebook.storage.store import GROUP, META, VERSION
from wirebook.storage.tables import GROUPS, RESOURCES, VERSIONS

Kind = Literal["string", "timestamp", "uinteger"]


@dataclass(frozen=True, slots=True)
class EntityColumns:
    """The columns of one kind of entity.

    Shape: `ids` has the members that no text contains, by name; `texts` has the text columns, each with the names of
    its members (None: all others). `keys` has the columns to compare, by attribute name; `xid` has the columns of the
    ids in an xid, by position; `labels` has the kind and key for looking up labels.
    """

    ids: Mapping[str, ColumnElement[Any]]
    texts: tuple[tuple[ColumnElement[str], frozenset[str] | None], ...]
    keys: Mapping[str, tuple[Kind, ColumnElement[Any]]] = field(default_factory=dict)
    xid: Mapping[int, ColumnElement[str]] = field(default_factory=dict)
    labels: tuple[int, ColumnElement[int]] | None = None

    def text_of(self, name: str) -> ColumnElement[str]:
        """Return the text column that contains a member."""
        return next(column for column, names in self.texts if names is None or name in names)


class MemberReader:
    """Reads members from rows: those with `names`, or all (None).

    `columns` are the columns to select; they start at index `first` of a row.
    """

    def __init__(self, entity_columns: EntityColumns, names: Iterable[str] | None, first: int) -> None:
        ids = frozenset(entity_columns.ids)
        requested = ids if names is None else frozenset(names)
        self._ids = [(name, first + i) for i, name in enumerate(sorted(requested & ids))]
        self.columns: list[ColumnElement[Any]] = [entity_columns.ids[name] for name, _ in self._ids]
        self._texts: list[tuple[Callable[[str], Members], int]] = []
        left = requested - ids
        for column, has in entity_columns.texts:
            if names is None:
                self._texts.append((parse_members, first + len(self.columns)))
                self.columns.append(column)
            elif mine := left if has is None else left & has:
                self._texts.append((reader(mine), first + len(self.columns)))
                self.columns.append(column)
                left -= mine

    def entity(self, row: Sequence[Any]) -> Members:
        """Return the members in a row."""
        entity: Members = {name: row[index] for name, index in self._ids}
        for read, index in self._texts:
            if row[index] is not None:
                entity |= read(row[index])
        return entity


@lru_cache(maxsize=256)
def group_columns(plural: str, id_name: str) -> EntityColumns:
    """Return the columns of a Group type."""
    return EntityColumns(
        {id_name: GROUPS.c.id, "xid": literal(f"/{plural}/") + GROUPS.c.id},
        ((GROUPS.c.members, None),),
        {
            id_name: ("string", GROUPS.c.folded),
            "epoch": ("uinteger", GROUPS.c.epoch),
            "name": ("string", GROUPS.c.name),
            "createdat": ("timestamp", GROUPS.c.createdat),
            "modifiedat": ("timestamp", GROUPS.c.modifiedat),
        },
        {2: GROUPS.c.folded},
        (GROUP, GROUPS.c.key),
    )


@lru_cache(maxsize=256)
def version_columns(id_name: str) -> EntityColumns:
    """Return the columns of Versions."""
    xid = RESOURCES.c.xid + literal("/versions/") + VERSIONS.c.id
    return EntityColumns(
        {id_name: RESOURCES.c.id, "versionid": VERSIONS.c.id, "isdefault": VERSIONS.c.isdefault, "xid": xid},
        ((VERSIONS.c.head, HEAD), (VERSIONS.c.tail, None)),
        {
            id_name: ("string", RESOURCES.c.folded),
            "versionid": ("string", VERSIONS.c.folded),
            "epoch": ("uinteger", VERSIONS.c.epoch),
            "name": ("string", VERSIONS.c.name),
            "format": ("string", VERSIONS.c.format),
            "createdat": ("timestamp", VERSIONS.c.createdat),
            "modifiedat": ("timestamp", VERSIONS.c.modifiedat),
        },
        {4: RESOURCES.c.folded, 6: VERSIONS.c.folded},
        (VERSION, VERSIONS.c.key),
    )


@lru_cache(maxsize=256)
def resource_columns(id_name: str) -> EntityColumns:
    """Return the columns of a Resource as its default Version."""
    entity_columns = version_columns(id_name)
    return replace(entity_columns, ids={**entity_columns.ids, "xid": RESOURCES.c.xid}, xid={4: RESOURCES.c.folded})


def meta_columns(id_name: str, shown: FromClause) -> EntityColumns:
    """Return the columns of the meta of a Resource.

    `shown` is the table of the Resource, or of the target of its cross-reference.
    """
    ids = {
        id_name: RESOURCES.c.id,
        "xid": RESOURCES.c.xid + literal("/meta"),
        "xref": RESOURCES.c.xref,
        "defaultversionid": shown.c.defaultid,
        "defaultversionsticky": shown.c.sticky,
    }
    keys: dict[str, tuple[Kind, ColumnElement[Any]]] = {
        id_name: ("string", RESOURCES.c.folded),
        "epoch": ("uinteger", shown.c.epoch),
        "createdat": ("timestamp", shown.c.createdat),
    }
    return EntityColumns(ids, ((shown.c.meta, None),), keys, {4: RESOURCES.c.folded}, (META, shown.c.key))
