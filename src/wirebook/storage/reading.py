"""Read rows for responses: one query per level, with the rows in the order of their parents.

A cross-reference is joined with its target and shows the target's meta, count and Versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, FromClause, Select, func, literal, or_, select

from wirebook.core.entities.rows import GroupRow, ResourceRow, VersionRow, parse_members
from wirebook.core.model.target import RequestTarget
from wirebook.core.query.cursor import RowCursor
from wirebook.core.query.evaluation import FilterResult
from wirebook.core.query.filters import Level
from wirebook.storage.keys import has_id, key_table, one_of
from wirebook.storage.streaming import rows
from wirebook.storage.tables import DOCUMENTS, GROUPS, RESOURCES, VERSIONS

TARGET: Final = RESOURCES.alias("target")
SHOWN: Final = func.coalesce(TARGET.c.key, RESOURCES.c.key)
"""The Resource whose Versions are shown: the target of a cross-reference, or the Resource itself."""

DEFAULT: Final = func.coalesce(TARGET.c.defaultid, RESOURCES.c.defaultid)


@cache
def resource_tables() -> FromClause:
    """Return Resources joined with the targets of cross-references and with default Versions."""
    is_target = (TARGET.c.xid == RESOURCES.c.xref) & TARGET.c.xref.is_(None)
    return RESOURCES.outerjoin(TARGET, is_target).outerjoin(VERSIONS, is_default(SHOWN, DEFAULT))


def is_default(resource: ColumnElement[int], defaultid: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that a Version is the default of the Resource with that key."""
    return (VERSIONS.c.parent == resource) & (VERSIONS.c.folded == func.lower(defaultid))


@cache
def version_tables() -> FromClause:
    """Return Versions joined with the Resources that show them."""
    is_target = (TARGET.c.xid == RESOURCES.c.xref) & TARGET.c.xref.is_(None)
    return RESOURCES.outerjoin(TARGET, is_target).join(VERSIONS, VERSIONS.c.parent == SHOWN)


@cache
def resource_query(*, documents: bool = False) -> Select[Any]:
    """Return the query for Resources with their default Versions, in the columns that `resource_row` reads."""
    tables, body = _with_documents(resource_tables(), documents)
    return select(
        RESOURCES.c.key,
        RESOURCES.c.parent,
        RESOURCES.c.id,
        func.coalesce(TARGET.c.meta, RESOURCES.c.meta),
        DEFAULT,
        func.coalesce(TARGET.c.sticky, RESOURCES.c.sticky),
        func.coalesce(TARGET.c.count, RESOURCES.c.count),
        RESOURCES.c.xref,
        VERSIONS.c.key,
        VERSIONS.c.id,
        VERSIONS.c.head,
        VERSIONS.c.tail,
        VERSIONS.c.contenttype,
        body,
    ).select_from(tables)


def resource_row(row: Any, revisions: tuple[int, ...] = ()) -> ResourceRow:
    """Return a row of `resource_query` as a `ResourceRow`."""
    key, parent, id_, meta, default, sticky, count, xref, version, *rest = row
    shown = None if version is None else version_row((version, key, *rest))
    return ResourceRow(key, parent, id_, meta, default, bool(sticky), count, shown, xref, revisions)


@cache
def version_query(*, documents: bool = False) -> Select[Any]:
    """Return the query for Versions with the Resources that show them, in the columns that `version_row` reads."""
    tables, body = _with_documents(version_tables(), documents)
    return select(
        VERSIONS.c.key,
        RESOURCES.c.key.label("owner"),
        VERSIONS.c.id,
        VERSIONS.c.head,
        VERSIONS.c.tail,
        VERSIONS.c.contenttype,
        body,
    ).select_from(tables)


def version_row(row: Any) -> VersionRow:
    """Return a row of `version_query` as a `VersionRow`."""
    key, owner, id_, head, tail, contenttype, body = row
    return VersionRow(key, owner, id_, head, tail, contenttype, None if body is None else bytes(body))


def _with_documents(tables: FromClause, documents: bool) -> tuple[FromClause, ColumnElement[Any]]:
    if not documents:
        return tables, literal(None).label("body")
    return tables.outerjoin(DOCUMENTS, DOCUMENTS.c.key == VERSIONS.c.key), DOCUMENTS.c.body.label("body")


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a collection: lower-case ids above `after`, up to `last`."""

    after: str = ""
    last: str | None = None

    def holds(self, column: Any) -> list[ColumnElement[bool]]:
        """Return the conditions on a column of lower-case ids."""
        return [column > self.after, *([] if self.last is None else [column <= self.last])]


@dataclass(frozen=True, slots=True)
class ReadScope:
    """The rows of a response: those below `target` that `filter_result` leaves.

    `key` is the row key of the Group or Resource of the target. A collection may be limited to a `page`, to `ids`, or
    to the keys in `order`, in this order. `documents`: with the documents of Versions.
    """

    target: RequestTarget
    key: int = 0
    page: Page | None = None
    ids: tuple[str, ...] | None = None
    order: tuple[int, ...] | None = None
    documents: bool = False
    filter_result: FilterResult | None = None

    def holds(self, connection: Connection, kind: str, table: FromClause) -> list[ColumnElement[bool]]:
        """Return the conditions of page and ids if the target is a collection of that kind, else none."""
        if self.target.kind != kind:
            return []
        conditions = self.page.holds(table.c.folded) if self.page else []
        if self.ids is not None:
            conditions.append(has_id(connection, table.c.folded, self.ids))
        return conditions


class SqlRowSource:
    """The rows below a target. Implements `wirebook.core.query.cursor.RowSource`."""

    def __init__(self, connection: Connection, scope: ReadScope) -> None:
        self._connection, self._scope = connection, scope

    def groups(self, level: Level) -> RowCursor[GroupRow]:
        query = self._in_scope(select(GROUPS.c.key, GROUPS.c.id, GROUPS.c.members, GROUPS.c.counts), level)
        rows_ = self._rows(self._ordered(query, "groups", GROUPS.c.key).order_by(GROUPS.c.folded))
        return RowCursor(GroupRow(key, id_, text, parse_members(counts)) for key, id_, text, counts in rows_)

    def resources(self, level: Level) -> RowCursor[ResourceRow]:
        query = self._below(resource_query(documents=self._scope.documents), level)
        return RowCursor(resource_row(row) for row in self._rows(query))

    def versions(self, level: Level) -> RowCursor[VersionRow]:
        query = self._below(version_query(documents=self._scope.documents), level)
        query = query.where(*self._scope.holds(self._connection, "versions", VERSIONS))
        query = self._ordered(query, "versions", VERSIONS.c.key)
        return RowCursor(version_row(row) for row in self._rows(query.order_by(VERSIONS.c.folded)))

    def _ordered(self, query: Select[Any], kind: str, key: Any) -> Select[Any]:
        """Apply the order of the scope if it has one and the target is a collection of that kind."""
        if self._scope.target.kind != kind or self._scope.order is None:
            return query
        positions = [(position, key_) for position, key_ in enumerate(self._scope.order)]
        order = key_table(self._connection, ("placekey", "key"), positions)
        return query.join(order, order.c.key == key).order_by(order.c.placekey)

    def _in_scope(self, query: Select[Any], level: Level) -> Select[Any]:
        """Restrict a query to the Groups of a level that are in the response."""
        conditions = [GROUPS.c.type == level[0], *self._scope.holds(self._connection, "groups", GROUPS)]
        filter_result = self._scope.filter_result
        if filter_result is not None and 0 not in filter_result.whole.get((), ()):
            left = filter_result.left.get(level[:1], {}).get(0, set())
            conditions.append(one_of(self._connection, GROUPS.c.key, left))
        return query.where(*conditions)

    def _below(self, query: Select[Any], level: Level) -> Select[Any]:
        """Restrict a query to the Resources of a level below the target, in the order of their Groups and ids."""
        kind = self._scope.target.kind
        if kind in ("resource", "versions", "version", "meta"):
            return query.where(RESOURCES.c.key == self._scope.key)
        query = query.where(RESOURCES.c.type == level[1], *self._left(level))
        if kind in ("group", "resources"):
            here = RESOURCES.c.parent == self._scope.key
            query = query.where(here, *self._scope.holds(self._connection, "resources", RESOURCES))
            return self._ordered(query, "resources", RESOURCES.c.key).order_by(RESOURCES.c.folded)
        query = self._in_scope(query.join(GROUPS, GROUPS.c.key == RESOURCES.c.parent), level)
        return self._ordered(query, "groups", GROUPS.c.key).order_by(GROUPS.c.folded, RESOURCES.c.folded)

    def _left(self, level: Level) -> list[ColumnElement[bool]]:
        """Return the conditions for the Resources that a filter leaves: single ones, and all of some Groups."""
        filter_result = self._scope.filter_result
        if (
            filter_result is None
            or 0 in filter_result.whole.get((), ())
            or self._scope.key in filter_result.whole.get(level[:1], ())
        ):
            return []
        keys = {key for below in filter_result.left.get(level[:2], {}).values() for key in below}
        own = one_of(self._connection, RESOURCES.c.key, keys)
        whole = filter_result.whole.get(level[:1])
        return [or_(one_of(self._connection, RESOURCES.c.parent, whole), own) if whole else own]

    def _rows(self, query: Select[Any]) -> Iterator[Any]:
        return rows(self._connection, query)
