"""Checks and conversions for rows that are added to a table that another program made.

Spec: docs/how-to/table-settings.md#existing-tables; docs/decisions/0213
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from wirebook.landing.stores.locations import Location, parquet_source
from wirebook.landing.tables.evolution import conform
from wirebook.landing.tables.formats import CommitFailed, TableTraits
from wirebook.landing.tables.partitions import DayPartition, day_values

__all__ = ["check_columns", "check_values", "rows_in"]


def check_columns(columns: Mapping[str, bool], schema: pa.Schema, traits: TableTraits) -> None:
    """Check that rows with the columns `schema` can be added to a table. `columns` maps the columns of the table to
    whether they are required (not nullable).

    Raises: CommitFailed
    """
    names = {name.lower(): name for name in columns}
    for field in schema:
        name = names.get(field.name.lower(), field.name)
        if name != field.name:
            raise CommitFailed(f"its column '{name}' differs from '{field.name}' of the rows only in case: rename it")
    required = [name for name, is_required in columns.items() if is_required and name not in schema.names]
    if required:
        message = f"its column '{required[0]}' is required, but the rows have no value for it: make it nullable"
        raise CommitFailed(message)
    lacking = [f"{field.name} ({field.type})" for field in schema if field.name not in columns]
    if lacking and not traits.adds_columns:
        message = (
            f"it lacks the columns {', '.join(lacking)}: add them, or remove 'add_columns: false' from its settings"
        )
        raise CommitFailed(message)


def rows_in(files: Sequence[Location], schema: pa.Schema, day: DayPartition | None = None) -> Iterator[pa.Table]:
    """Read the rows of staged files, one file at a time, and convert them to the columns `schema` of a table, whose
    types may be wider. `day` adds the day of each row, which is not a column of staged files."""
    for file in files:
        rows = pq.read_table(parquet_source(file), partitioning=None).replace_schema_metadata()
        if day is not None:
            rows = rows.append_column(day.column, day_values(rows, day))
        yield conform(rows, schema)


def check_values(files: Sequence[Location], required: Sequence[str]) -> None:
    """Check that the `required` columns contain no nulls in staged files.

    Raises: CommitFailed
    """
    for file in files if required else ():
        rows = pq.read_table(parquet_source(file), columns=[*required], partitioning=None)
        for name in required:
            if rows[name].null_count:
                raise CommitFailed(f"its column '{name}' must have a value, which some rows lack: let it be null")
