"""The staging table: rows of any table encoded as rows of one table, and decoded again without loss.

Definitions with few rows share it, because a file of their own for each would cost too much. (Staged *files* are
something else: files of any table that are not committed yet; see `StagedFile`.)

A column that the staging table also has, with the same type, is copied. All others are members of the JSON text
`row`, without nulls. Spark and DuckDB read the text with the type of the column: decimals are strings, binary is
base64, timestamps and dates are RFC 3339, and non-finite floats are ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``.

Spec: docs/staging.md#the-staging-table; docs/decisions/0074
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirebook.landing.stores.locations import Location, parquet_source
from wirebook.landing.tables.json_text import json_objects

__all__ = [
    "StagingPolicy",
    "decode_rows",
    "encode_rows",
    "own_columns",
    "read_staged",
    "read_staged_tables",
    "rows_by_table",
]

ROW = "row"
AUTOMATIC_ROWS = 100
AUTOMATIC_FILES = 1000


@dataclass(frozen=True, slots=True)
class StagingPolicy:
    """Selects the tables whose rows are staged instead of written to files of their own.

    Units: rows. A table with fewer than `below` rows in a task is staged, unless it is one of the tables `apart`,
    which have files of their own or that many staged rows already. 0 turns staging off. None is 100, but only if a
    task would otherwise write more than 1,000 files for such tables.
    """

    below: int | None = 0
    apart: frozenset[str] = frozenset()

    @property
    def limit(self) -> int:
        """The number of rows at which a table gets a file of its own."""
        return AUTOMATIC_ROWS if self.below is None else self.below

    def choose(self, rows: Mapping[str, int]) -> list[str]:
        """The tables to stage, from the number of rows of each table in a task."""
        few = sorted(name for name, count in rows.items() if count < self.limit and name not in self.apart)
        return few if self.below is not None or len(few) > AUTOMATIC_FILES else []


def own_columns(schema: pa.Schema, staged: pa.Schema) -> list[pa.Field]:
    """The columns of a table that are members of `row`."""
    return [field for field in schema if not _is_shared(field, staged)]


def _is_shared(field: pa.Field, staged: pa.Schema) -> bool:
    at = staged.get_field_index(field.name)
    return at >= 0 and field.name not in (ROW, "definition", "table") and staged.field(at).type == field.type


# -- rows to staged rows -------------------------------------------------------------------------------------------


def encode_rows(rows: pa.Table, tables: pa.StringArray, definitions: pa.StringArray, staged: pa.Schema) -> pa.Table:
    """Encode rows of tables that share their columns as rows of the staging table with the columns `staged`. `tables`
    and `definitions` name the table and the definition of each row."""
    count = len(rows)
    owners = {"table": tables, "definition": definitions}
    columns = []
    for field in staged:
        at = rows.schema.get_field_index(field.name)
        if field.name in owners:
            columns.append(owners[field.name])
        elif field.name == ROW:
            columns.append(
                json_objects(rows.select([own_column.name for own_column in own_columns(rows.schema, staged)]))
            )
        else:
            is_shared = at >= 0 and _is_shared(rows.schema.field(at), staged)
            columns.append(rows.column(at) if is_shared else pa.nulls(count, field.type))
    return pa.Table.from_arrays(columns, schema=staged)


# -- files of staged rows ------------------------------------------------------------------------------------------


def rows_by_table(files: Iterable[Location]) -> dict[str, int]:
    """The number of rows of each table in files of the staging table.

    Cost: reads one column of few distinct values.
    """
    counts: Counter[str] = Counter()
    for file in files:
        with pq.ParquetFile(parquet_source(file), read_dictionary=["table"]) as parquet:
            for batch in parquet.iter_batches(1 << 16, columns=["table"]):
                for pair in pc.value_counts(batch.column("table").cast(pa.string())).to_pylist():
                    counts[pair["values"]] += pair["counts"]
    return dict(counts)


def read_staged(files: Iterable[Location], table: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """The staged rows of a table, decoded to its columns `schema`, one file at a time.

    Cost: row groups without rows of the table are skipped.
    """
    for file in files:
        matching = pq.read_table(parquet_source(file), filters=[("table", "==", table)], partitioning=None)
        if matching.num_rows:
            yield decode_rows(matching.replace_schema_metadata(), schema)


def read_staged_tables(
    file: Location, schemas: Mapping[str, pa.Schema], columns: Collection[str]
) -> dict[str, pa.Table]:
    """The staged rows of some tables in a file, by table. Columns that the staging table also has are null unless
    they are in `columns`; the members of `row` are always read.

    Cost: one pass over the columns of the file, without row groups that have no row of the tables.
    """
    tables, found = pa.array(list(schemas), pa.string()), []
    with pq.ParquetFile(parquet_source(file), read_dictionary=["table"]) as parquet:
        shared = [name for name in parquet.schema_arrow.names if name in columns and name not in ("table", ROW)]
        for group in range(parquet.num_row_groups):
            owners = parquet.read_row_group(group, ["table"]).column("table").cast(pa.string())
            wanted = pc.is_in(owners, tables)
            if pc.any(wanted).as_py():
                found.append(parquet.read_row_group(group, ["table", ROW, *shared]).filter(wanted))
    if not found:
        return {}
    rows = pa.concat_tables(found).combine_chunks().replace_schema_metadata()
    owners = rows.column("table").cast(pa.string())
    return {
        table: decode_rows(rows.filter(pc.equal(owners, table)), schemas[table])
        for table in pc.unique(owners).to_pylist()
    }


# -- staged rows to rows -------------------------------------------------------------------------------------------


def decode_rows(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Decode staged rows of one table to its current columns `schema`. Members that a row lacks are null."""
    parsed = [orjson.loads(text) for text in rows[ROW].to_pylist()]
    columns = []
    for field in schema:
        if _is_shared(field, rows.schema):
            columns.append(rows[field.name])
        else:
            read = _reader(field.type)
            columns.append(pa.array([_maybe(read, row.get(field.name)) for row in parsed], field.type))
    return pa.Table.from_arrays(columns, schema=schema)


Read = Callable[[Any], Any]


def _reader(type_: pa.DataType) -> Read:
    """The function that decodes a value of a type."""
    kinds = pa.types
    if kinds.is_struct(type_):
        return partial(_struct, {item.name: _reader(item.type) for item in type_})
    if kinds.is_map(type_):
        return partial(_map, _reader(type_.item_type))
    if kinds.is_list(type_):
        return partial(_list, _reader(type_.value_type))
    scalars: tuple[tuple[Callable[[pa.DataType], bool], Read], ...] = (
        (kinds.is_decimal, Decimal),
        (kinds.is_timestamp, datetime.fromisoformat),
        (kinds.is_date, date.fromisoformat),
        (kinds.is_floating, float),
        (kinds.is_binary, base64.b64decode),
        (kinds.is_large_binary, base64.b64decode),
    )
    return next((read for is_kind, read in scalars if is_kind(type_)), _same)


def _same(value: Any) -> Any:
    return value


def _struct(readers: Mapping[str, Read], value: dict[str, Any]) -> dict[str, Any]:
    return {name: _maybe(read, value.get(name)) for name, read in readers.items()}


def _map(read: Read, value: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(key, _maybe(read, item)) for key, item in value.items()]


def _list(read: Read, value: list[Any]) -> list[Any]:
    return [_maybe(read, item) for item in value]


def _maybe(read: Read, value: Any) -> Any:
    return None if value is None else read(value)
