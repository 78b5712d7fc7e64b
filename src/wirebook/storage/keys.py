"""Many keys as one parameter: a table made of JSON, so that a query has the same text whatever it looks up."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import BigInteger, BindParameter, Connection, FromClause, Text, bindparam, cast, column, func, select
from sqlalchemy.dialects.postgresql import JSONB


def key_table(connection: Connection, names: Sequence[str], rows: Iterable[Sequence[str | int]]) -> FromClause:
    """A table with the columns `names` (texts; numbers if they end in ``key``) and those rows."""
    data: BindParameter[str] = bindparam(None, json.dumps([dict(zip(names, row, strict=True)) for row in rows]))
    types = {name: BigInteger() if name.endswith("key") else Text() for name in names}
    if connection.dialect.name == "sqlite":
        each = func.json_each(data).table_valued("value")
        columns = [func.json_extract(each.c.value, f"$.{name}").label(name) for name in names]
        return select(*columns).select_from(each).subquery("wanted")
    columns_ = [column(name, types[name]) for name in names]
    records: Any = func.jsonb_to_recordset(cast(data, JSONB)).table_valued(*columns_, name="wanted")
    table: FromClause = records.render_derived(with_types=True)
    return table
