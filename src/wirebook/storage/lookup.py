"""Look up entities that a write is checked against but does not change, each kind in one query, row by row.

Spec: core/model.md#groupsstringconstraints; core/spec.md#readonly-attribute.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Connection, select

from wirebook.core.entities.rows import parse_members
from wirebook.core.entities.state import Members, ShownVersions
from wirebook.core.model.compiled import Model
from wirebook.storage.reading import version_query
from wirebook.storage.streaming import rows
from wirebook.storage.tables import RESOURCES


def read_shown(connection: Connection, model: Model, where: ColumnElement[bool]) -> Generator[ShownVersions]:
    """Yield the Resources that have Versions to show, with these Versions.

    A cross-reference shows the Versions of its target.
    """
    query = version_query().add_columns(RESOURCES.c.xid, RESOURCES.c.type, RESOURCES.c.xref)
    query = query.where(where).order_by(RESOURCES.c.key)
    with closing(rows(connection, query)) as found_in_order:
        for _, versions in groupby(found_in_order, lambda row: row.owner):
            rows_ = list(versions)
            first = rows_[0]
            yield ShownVersions(first.xid, first.type, first.xref, {row.id: _members(row, model) for row in rows_})


def _members(row: Any, model: Model) -> Members:
    _, groups, _, plural, id_ = row.xid.split("/")
    ids = {model.groups[groups].resources[plural].id_name: id_, "versionid": row.id}
    return ids | parse_members(row.head) | parse_members(row.tail)


def read_locked(connection: Connection, where: ColumnElement[bool]) -> dict[str, str]:
    """Return the xid of a read-only Resource of each Group that has one, by the xid of the Group."""
    is_candidate = RESOURCES.c.meta.contains('"readonly":true')  # may also match a nested member of an extension
    rows = connection.execute(select(RESOURCES.c.xid, RESOURCES.c.meta).where(where, is_candidate))
    locked = (row.xid for row in rows if parse_members(row.meta).get("readonly"))
    return {xid.rsplit("/", 2)[0]: xid for xid in locked}
