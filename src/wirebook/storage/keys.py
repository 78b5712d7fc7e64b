"""Pass many keys to a query as one JSON parameter, so that the text of the query does not depend on their number."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    FromClause,
    Text,
    bindparam,
    cast,
    column,
    func,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB

LONGEST: Final = 400
"""Maximum length of a text key in a column; PostgreSQL cannot index longer ones."""

MANY: Final = 2000
"""Number of keys above which it is faster to scan all rows in order than to fetch and sort single rows."""


def text_key(folded: str) -> str:
    """Return a folded text as key columns store it: truncated, and with U+0001 for U+0000, which PostgreSQL rejects."""
    return folded[:LONGEST].replace("\0", "\1")


def one_of(connection: Connection, column: ColumnElement[int], keys: Collection[int]) -> ColumnElement[bool]:
    """Return the condition that a column has one of `keys`."""
    data: BindParameter[str] = bindparam(None, msgspec.json.encode(sorted(keys)).decode())
    if connection.dialect.name == "sqlite":
        values: Any = select(func.json_each(data).table_valued("value").c.value)
    else:
        values = select(cast(func.jsonb_array_elements_text(cast(data, JSONB)), BigInteger))
    return (column if len(keys) <= MANY else column + 0).in_(values)


def has_id(connection: Connection, folded: ColumnElement[str], ids: Iterable[str]) -> ColumnElement[bool]:
    """Return the condition that a column of lower-case ids has one of `ids`."""
    table = key_table(connection, ("folded",), [(id_.lower(),) for id_ in ids])
    return folded.in_(select(table.c.folded))


def key_table(connection: Connection, names: Sequence[str], rows: Iterable[Sequence[str | int]]) -> FromClause:
    """Return a table of `rows` with the columns `names`: numbers if the name ends in ``key``, else texts."""
    return _table(connection.dialect.name, names, bindparam(None, key_rows(names, rows)))


def key_parameter(dialect: str, *names: str) -> FromClause:
    """Return a `key_table` for a statement that is compiled once.

    Its rows are the parameter `keys`, a result of `key_rows`.
    """
    return _table(dialect, names, bindparam("keys", type_=Text()))


def key_rows(names: Sequence[str], rows: Iterable[Sequence[str | int]]) -> str:
    """Return rows of keys as JSON."""
    return msgspec.json.encode([dict(zip(names, row, strict=True)) for row in rows]).decode()


def _table(dialect: str, names: Sequence[str], data: BindParameter[str]) -> FromClause:
    types = {name: BigInteger() if name.endswith("key") else Text() for name in names}
    if dialect == "sqlite":
        row = func.json_each(data).table_valued("value")
        columns = [func.json_extract(row.c.value, f"$.{name}").label(name) for name in names]
        return select(*columns).select_from(row).subquery("requested")
    columns_ = [column(name, types[name]) for name in names]
    records: Any = func.jsonb_to_recordset(cast(data, JSONB)).table_valued(*columns_, name="requested")
    table: FromClause = records.render_derived(with_types=True)
    return table
