"""Reading for views: rows of each level in the order of their parents, in one query a level.

A cross-reference is joined with its target, so that it comes with the target's meta, count and Versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, func, literal, select

from wirebook.core.filters import Level
from wirebook.core.rows import GroupRow, ResourceRow, VersionRow
from wirebook.core.streams import Stream
from wirebook.core.target import Target
from wirebook.storage.keys import key_table
from wirebook.storage.tables import COUNTS, DOCUMENTS, GROUPS, RESOURCES, VERSIONS

TARGET: Final = RESOURCES.alias("target")
SHOWN: Final = func.coalesce(TARGET.c.key, RESOURCES.c.key)
"""The Resource whose Versions are shown: the target of a cross-reference, or itself."""

BATCH: Final = 500
"""Rows that are fetched at once."""


def resource_query(*, documents: bool = False) -> Select[Any]:
    """Resources with their default Versions. The columns are those that `resource_row` reads."""
    is_target = (TARGET.c.xid == RESOURCES.c.xref) & TARGET.c.xref.is_(None)
    is_default = (VERSIONS.c.parent == SHOWN) & VERSIONS.c.isdefault
    tables = RESOURCES.outerjoin(TARGET, is_target).outerjoin(VERSIONS, is_default)
    body: Any = literal(None)
    if documents:
        tables = tables.outerjoin(DOCUMENTS, DOCUMENTS.c.key == VERSIONS.c.key)
        body = DOCUMENTS.c.body
    return select(
        RESOURCES.c.key,
        RESOURCES.c.parent,
        RESOURCES.c.id,
        func.coalesce(TARGET.c.meta, RESOURCES.c.meta),
        func.coalesce(TARGET.c.defaultid, RESOURCES.c.defaultid),
        func.coalesce(TARGET.c.sticky, RESOURCES.c.sticky),
        func.coalesce(TARGET.c.count, RESOURCES.c.count),
        RESOURCES.c.xref,
        VERSIONS.c.key,
        VERSIONS.c.id,
        VERSIONS.c.head,
        VERSIONS.c.tail,
        VERSIONS.c.contenttype,
        body.label("body"),
    ).select_from(tables)


def resource_row(row: Any) -> ResourceRow:
    key, parent, id_, meta, default, sticky, count, xref, version, *rest = row
    shown = None if version is None else version_row((version, key, *rest))
    return ResourceRow(key, parent, id_, meta, default, bool(sticky), count, shown, xref)


def version_query(*, documents: bool = False) -> Select[Any]:
    """Versions below the Resources that show them."""
    is_target = (TARGET.c.xid == RESOURCES.c.xref) & TARGET.c.xref.is_(None)
    tables = RESOURCES.outerjoin(TARGET, is_target).join(VERSIONS, VERSIONS.c.parent == SHOWN)
    body: Any = literal(None)
    if documents:
        tables = tables.outerjoin(DOCUMENTS, DOCUMENTS.c.key == VERSIONS.c.key)
        body = DOCUMENTS.c.body
    return select(
        VERSIONS.c.key,
        RESOURCES.c.key.label("owner"),
        VERSIONS.c.id,
        VERSIONS.c.head,
        VERSIONS.c.tail,
        VERSIONS.c.contenttype,
        body.label("body"),
    ).select_from(tables)


def version_row(row: Any) -> VersionRow:
    key, owner, id_, head, tail, contenttype, body = row
    return VersionRow(key, owner, id_, head, tail, contenttype, _bytes(body))


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a collection: ids in lower case above `after`, up to `last`."""

    after: str = ""
    last: str | None = None

    def holds(self, column: Any) -> list[ColumnElement[bool]]:
        return [column > self.after, *([] if self.last is None else [column <= self.last])]


@dataclass(frozen=True, slots=True)
class Scope:
    """What an answer is about, as rows: the `target`, the key of its Group or Resource, the page of a collection, the
    `ids` of it that are shown, or the keys of those that are, in their `order`."""

    target: Target
    key: int = 0
    page: Page | None = None
    ids: tuple[str, ...] | None = None
    order: tuple[int, ...] | None = None
    documents: bool = False

    def holds(self, connection: Connection, kind: str, column: Any) -> list[ColumnElement[bool]]:
        """The conditions of the page and of the ids that were asked for, where the collection is of that kind."""
        if self.target.kind != kind:
            return []
        conditions = self.page.holds(column) if self.page else []
        if self.ids is not None:
            wanted = key_table(connection, ("folded",), [(id_.lower(),) for id_ in self.ids])
            conditions.append(column.in_(select(wanted.c.folded)))
        return conditions


class SqlStreams:
    """The rows below a target. Implements `wirebook.core.views.Streams`."""

    def __init__(self, connection: Connection, scope: Scope) -> None:
        self._connection, self._scope = connection, scope

    def groups(self, level: Level) -> Stream[GroupRow]:
        """Groups of a type with the counts of what is in them."""
        counts = self._counts(level[0])
        query = select(GROUPS.c.key, GROUPS.c.id, GROUPS.c.members).where(
            GROUPS.c.type == level[0], *self._scope.holds(self._connection, "groups", GROUPS.c.folded)
        )
        rows = self._rows(self._ordered(query, "groups", GROUPS.c.key).order_by(GROUPS.c.folded))
        return Stream(GroupRow(key, id_, text, counts.get(key, {})) for key, id_, text in rows)

    def resources(self, level: Level) -> Stream[ResourceRow]:
        query = self._below(resource_query(documents=self._scope.documents), level)
        return Stream(resource_row(row) for row in self._rows(query))

    def versions(self, level: Level) -> Stream[VersionRow]:
        query = self._below(version_query(documents=self._scope.documents), level[:2])
        if self._scope.target.kind == "versions":
            query = query.where(*self._scope.holds(self._connection, "versions", VERSIONS.c.folded))
        query = self._ordered(query, "versions", VERSIONS.c.key)
        return Stream(version_row(row) for row in self._rows(query.order_by(VERSIONS.c.folded)))

    def _ordered(self, query: Select[Any], kind: str, key: Any) -> Select[Any]:
        """In the order of the scope, if the target is the collection of that kind and has one."""
        if self._scope.target.kind != kind or self._scope.order is None:
            return query
        places = [(place, each) for place, each in enumerate(self._scope.order)]
        wanted = key_table(self._connection, ("placekey", "key"), places)
        return query.join(wanted, wanted.c.key == key).order_by(wanted.c.placekey)

    def _counts(self, plural: str) -> dict[int, dict[str, int]]:
        """The counts of all Groups of a type, by their keys."""
        query = select(COUNTS).join(GROUPS, GROUPS.c.key == COUNTS.c.parent).where(GROUPS.c.type == plural)
        found: dict[int, dict[str, int]] = {}
        for parent, type_, count in self._connection.execute(query):
            found.setdefault(parent, {})[type_] = count
        return found

    def _below(self, query: Select[Any], level: Level) -> Select[Any]:
        """Rows of Resources of a level below the target, in the order of their Groups and ids."""
        kind = self._scope.target.kind
        if kind in ("resource", "versions", "version", "meta"):
            return query.where(RESOURCES.c.key == self._scope.key)
        query = query.where(RESOURCES.c.type == level[1])
        if kind in ("group", "resources"):
            here = RESOURCES.c.parent == self._scope.key
            query = query.where(here, *self._scope.holds(self._connection, "resources", RESOURCES.c.folded))
            return self._ordered(query, "resources", RESOURCES.c.key).order_by(RESOURCES.c.folded)
        query = query.join(GROUPS, GROUPS.c.key == RESOURCES.c.parent).where(
            GROUPS.c.type == level[0], *self._scope.holds(self._connection, "groups", GROUPS.c.folded)
        )
        return self._ordered(query, "groups", GROUPS.c.key).order_by(GROUPS.c.folded, RESOURCES.c.folded)

    def _rows(self, query: Select[Any]) -> Iterator[Any]:
        return iter(self._connection.execution_options(yield_per=BATCH).execute(query))
