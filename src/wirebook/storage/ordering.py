"""Sort collections by id, or by an attribute and then by id, starting at any position.

The database sorts by attributes that have columns. Other values are read one by one and sorted in memory, where at most
`limit` positions are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from heapq import nlargest, nsmallest
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, FromClause, Select, and_, bindparam, or_, select

from wirebook.core.dotpath import PathMember, values_at
from wirebook.core.model.compiled import Model
from wirebook.core.model.target import RequestTarget
from wirebook.core.query.comparison import comparable
from wirebook.core.query.filters import attributes_of, level_of, type_at
from wirebook.core.query.flags import Sort
from wirebook.storage.columns import EntityColumns, MemberReader, group_columns, resource_columns, version_columns
from wirebook.storage.conditions import LARGEST
from wirebook.storage.keys import has_id, one_of, text_key
from wirebook.storage.reading import resource_tables, version_tables
from wirebook.storage.statements import Statement
from wirebook.storage.streaming import rows
from wirebook.storage.tables import GROUPS, LABELS, RESOURCES, VERSIONS

BY_ID: Final = Sort(())
"""The order by id."""


class SortPosition(NamedTuple):
    """The position of an entity in its collection.

    Shape: its row key, the value that it is sorted by (see `comparable`), and its lower-case id.
    """

    key: int
    value: tuple[int, Any] | None
    id: str


@dataclass(frozen=True, slots=True)
class _Column:
    """A column to sort by, with its kind (see `comparable`). `join` adds its table."""

    kind: int
    value: ColumnElement[Any]
    join: Callable[[FromClause], FromClause] = lambda tables: tables

    def position(self, row: Any) -> SortPosition:
        key, value, id_ = row
        return SortPosition(key, None if value is None else (self.kind, value), id_)


class Ordering:
    """The entities of a collection, or those with `ids`, in an order.

    `owner` is the row key of the entity that contains the collection; `keys` are the entities that a filter leaves.
    """

    def __init__(
        self,
        connection: Connection,
        model: Model,
        target: RequestTarget,
        owner: int,
        keys: set[int] | None = None,
        *,
        ids: Collection[str] | None = None,
    ) -> None:
        self._connection, self._model, self._target, self._keys, self._ids = connection, model, target, keys, ids
        self._owner = owner
        self._table, self._tables, self._entity_columns, self._where = _collection(target, owner)

    def positions(
        self, sort: Sort = BY_ID, after: SortPosition | None = None, limit: int | None = None
    ) -> list[SortPosition]:
        """Return at most `limit` positions after `after` (None: from the start)."""
        if sort is BY_ID:
            return self._by_id(after, limit)
        column = self._column(sort)
        return self._by_value(sort, after, limit) if column is None else self._by_column(sort, column, after, limit)

    def _column(self, sort: Sort) -> _Column | None:
        """Return the column to sort by; None if the attribute has no column."""
        first, *rest = sort.path
        name = first.name if isinstance(first, PathMember) else ""
        type_ = self._type(sort)
        if not rest and name in self._entity_columns.keys and self._entity_columns.keys[name][0] == type_:
            return _Column(1 if type_ == "uinteger" else 2, self._entity_columns.keys[name][1])
        if name == "labels" and len(rest) == 1 and isinstance(rest[0], PathMember) and type_ == "string":
            return self._label(rest[0].name)
        return None

    def _label(self, name: str) -> _Column:
        assert self._entity_columns.labels
        kind, owner = self._entity_columns.labels
        labels = LABELS.alias("label")
        is_one = and_(labels.c.kind == kind, labels.c.owner == owner, labels.c.name == name)
        return _Column(2, labels.c.value, lambda tables: tables.outerjoin(labels, is_one))

    def _type(self, sort: Sort) -> str | None:
        return type_at(attributes_of(level_of(self._target), self._model), sort.path)

    # -- sorted by the database-----------------------------------------------------------------------------------------

    def _by_id(self, after: SortPosition | None, limit: int | None) -> list[SortPosition]:
        if self._keys is None and self._ids is None and limit is not None:
            asked = {"after": after.id if after else "", "most": limit, **_page_parameters(self._target, self._owner)}
            return [
                SortPosition(key, None, id_) for key, id_ in PAGES[self._target.kind].run(self._connection, **asked)
            ]
        id_ = self._table.c.folded
        tables: FromClause = self._tables if self._table is VERSIONS else self._table
        query = select(self._table.c.key, id_).select_from(tables).where(*self._conditions()).order_by(id_).limit(limit)
        rows = self._connection.execute(query.where(id_ > after.id) if after else query)
        return [SortPosition(key, None, row) for key, row in rows]

    def _by_column(
        self, sort: Sort, column: _Column, after: SortPosition | None, limit: int | None
    ) -> list[SortPosition]:
        value, id_ = column.value, self._table.c.folded
        query = select(self._table.c.key, value, id_).select_from(column.join(self._tables)).where(*self._conditions())
        if after is not None and (after.value is None or after.value[0] == column.kind):
            query = query.where(_is_after(value, id_, after, sort))
        if sort.descending:
            query = query.order_by(value.desc().nulls_last(), id_.desc())
        else:
            query = query.order_by(value.asc().nulls_first(), id_.asc())
        return [column.position(row) for row in self._connection.execute(query.limit(limit))]

    def _conditions(self) -> list[ColumnElement[bool]]:
        left = [] if self._keys is None else [one_of(self._connection, self._table.c.key, self._keys)]
        named = [] if self._ids is None else [has_id(self._connection, self._table.c.folded, self._ids)]
        return [*self._where, *left, *named]

    # -- sorted in memory----------------------------------------------------------------------------------------------

    def _by_value(self, sort: Sort, after: SortPosition | None, limit: int | None) -> list[SortPosition]:
        positions = self._read_positions(sort)
        if after is not None:
            border = _rank(after)
            positions = (
                position
                for position in positions
                if (_rank(position) < border if sort.descending else _rank(position) > border)
            )
        if limit is None:
            return sorted(positions, key=_rank, reverse=sort.descending)
        return (nlargest if sort.descending else nsmallest)(limit, positions, key=_rank)

    def _read_positions(self, sort: Sort) -> Iterator[SortPosition]:
        """Yield all positions, unordered, with the values to compare."""
        type_ = self._type(sort)
        member_reader = MemberReader(
            self._entity_columns, (step.name for step in sort.path[:1] if isinstance(step, PathMember)), 2
        )
        query: Select[Any] = select(self._table.c.key, self._table.c.folded, *member_reader.columns).select_from(
            self._tables
        )
        for row in rows(self._connection, query.where(*self._conditions())):
            value = next(values_at(member_reader.entity(row), sort.path), None)
            yield SortPosition(row[0], comparable(value, type_), row[1])


def _rank(position: SortPosition) -> tuple[Any, ...]:
    """Return the sort key; entities without a value come first."""
    return (() if position.value is None else position.value, position.id)


def _is_after(
    value: ColumnElement[Any], id_: ColumnElement[str], after: SortPosition, sort: Sort
) -> ColumnElement[bool]:
    below = id_ < after.id if sort.descending else id_ > after.id
    if after.value is None:
        same = and_(value.is_(None), below)
        return same if sort.descending else or_(value.is_not(None), same)
    border = _parameter(after.value[1])
    same = and_(value == border, below)
    return or_(value < border, value.is_(None), same) if sort.descending else or_(value > border, same)


def _parameter(value: Any) -> str | int:
    """Return the value of a position as a parameter, within the limits of columns: the client may have forged it."""
    return text_key(value) if isinstance(value, str) else int(max(-LARGEST, min(value, LARGEST - 1)))


def _page_parameters(target: RequestTarget, owner: int) -> dict[str, Any]:
    """Return the parameters of `PAGES` that select the collection."""
    if target.kind == "groups":
        return {"type": target.group_type and target.group_type.plural}
    return {"owner": owner} | ({"type": target.type and target.type.plural} if target.kind == "resources" else {})


def _page(table: Any, tables: FromClause, *where: ColumnElement[bool]) -> Statement:
    id_ = table.c.folded
    return Statement(
        lambda _: (
            select(table.c.key, id_)
            .select_from(tables)
            .where(*where, id_ > bindparam("after"))
            .order_by(id_)
            .limit(bindparam("most"))
        )
    )


PAGES: Final = {
    "groups": _page(GROUPS, GROUPS, GROUPS.c.type == bindparam("type")),
    "resources": _page(
        RESOURCES, RESOURCES, RESOURCES.c.parent == bindparam("owner"), RESOURCES.c.type == bindparam("type")
    ),
    "versions": _page(VERSIONS, version_tables(), RESOURCES.c.key == bindparam("owner")),
}
"""Statements that select the next page of a collection in the order of ids, by kind of collection."""


def _collection(target: RequestTarget, owner: int) -> tuple[Any, FromClause, EntityColumns, list[ColumnElement[bool]]]:
    """Return the table of a collection's entities, the tables joined for display, its columns, and its conditions."""
    assert target.group_type
    if target.kind == "groups":
        type_ = target.group_type
        return GROUPS, GROUPS, group_columns(type_.plural, type_.id_name), [GROUPS.c.type == type_.plural]
    assert target.type
    if target.kind == "resources":
        where = [RESOURCES.c.parent == owner, RESOURCES.c.type == target.type.plural]
        return RESOURCES, resource_tables(), resource_columns(target.type.id_name), where
    return VERSIONS, version_tables(), version_columns(target.type.id_name), [RESOURCES.c.key == owner]
