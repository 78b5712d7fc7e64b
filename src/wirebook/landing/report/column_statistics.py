"""Statistics of the columns of a table.

The number of values and the range of each field are from Parquet footers alone. The distinct values of placeholders are
from their columns.

Spec: docs/land.md#the-report; docs/decisions/0063
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirebook.landing.report.timeline import GroupTimes, group_times
from wirebook.landing.stores.locations import Location, parquet_source, size_and_time
from wirebook.landing.tables.staged import read_staged_tables

__all__ = ["FieldStatistics", "PlaceholderStatistics", "TableStatistics", "add_staged", "table_statistics"]

MAX_FIELDS = 200
MAX_VALUES = 100_000
MAX_ROWS = 2_000_000
PIECE = 1 << 16
TOP = 5
REPEATED = {"list": "", "element": "[]", "key_value": "", "key": "[key]", "value": "[]"}


@dataclass(slots=True)
class FieldStatistics:
    """A field of the payload: the path of one Parquet column.

    Shape: `filled` counts values that are not null; None if a file has no null counts. `lowest` and `highest` are the
    bounds in the footers; None if no footer has bounds. `bounded` is False if some values may be outside them.
    `repeated`: the field is in a list or map, and can have more values than there are rows.
    """

    path: str
    type: str
    filled: int | None = 0
    lowest: Any = None
    highest: Any = None
    bounded: bool = True
    repeated: bool = False

    def add(self, column: Any) -> None:
        """Add the footer statistics of one column chunk."""
        statistics = column.statistics
        if statistics is None or not statistics.has_null_count:
            self.filled = None
        elif self.filled is not None:
            self.filled += _filled(column, statistics)
        if statistics is not None and statistics.has_min_max:
            try:
                self.lowest = statistics.min if self.lowest is None else min(self.lowest, statistics.min)
                self.highest = statistics.max if self.highest is None else max(self.highest, statistics.max)
            except TypeError:  # the type of the column has changed between the files
                self.bounded = False
        elif statistics is None or _filled(column, statistics):
            self.bounded = False


@dataclass(slots=True)
class PlaceholderStatistics:
    """A placeholder: its values with their counts in the first `rows` rows. `many`: it has more than `MAX_VALUES`
    distinct values, so counting stopped."""

    name: str
    rows: int = 0
    values: Counter[str] = field(default_factory=Counter)
    many: bool = False

    def add(self, column: pa.ChunkedArray | pa.Array) -> None:
        self.rows += len(column)
        if self.many:
            return
        for pair in pc.value_counts(column.drop_null()):
            self.values[pair["values"].as_py()] += pair["counts"].as_py()
        self.many = len(self.values) > MAX_VALUES

    @property
    def distinct(self) -> int:
        """The number of distinct values."""
        return len(self.values)

    def top(self) -> list[tuple[str, int]]:
        """The most frequent values with their counts."""
        return self.values.most_common(TOP)


@dataclass(slots=True)
class TableStatistics:
    """A table of a run.

    Units: `size` is the size of its own files in bytes; `staged` is the number of its rows in the staging table, which
    `rows` includes.
    Shape: `gone` counts files that are missing or unreadable. `fields` holds at most 200 fields; `more_fields` are the
    paths of the others. `first` and `last` are receive times; `times` has those of the row groups.
    """

    name: str
    definition: str | None
    rows: int = 0
    staged: int = 0
    size: int = 0
    gone: int = 0
    fields: dict[str, FieldStatistics] = field(default_factory=dict)
    more_fields: set[str] = field(default_factory=set)
    placeholders: dict[str, PlaceholderStatistics] = field(default_factory=dict)
    first: Any = None
    last: Any = None
    times: list[GroupTimes] = field(default_factory=list, compare=False)


def table_statistics(name: str, definition: str | None, files: Sequence[Location]) -> TableStatistics:
    """The statistics of the files of one table.

    Cost: reads every footer, and the placeholder columns of about two million rows.
    """
    statistics = TableStatistics(name, definition)
    for file in files:
        try:
            size = size_and_time(file)[0]
            with pq.ParquetFile(parquet_source(file)) as parquet:
                _add_footer(statistics, parquet.metadata, parquet.schema_arrow)
                _add_placeholders(statistics, parquet)
                statistics.times += group_times(parquet.metadata, file, "_received")
        except (OSError, pa.ArrowException):
            statistics.gone += 1
            continue
        statistics.size += size
    return statistics


def add_staged(
    tables: Mapping[str, TableStatistics], files: Sequence[Location], schemas: Mapping[str, pa.Schema]
) -> None:
    """Add the staged rows of tables. `files` are those of the staging table, `schemas` the columns of the tables.

    Cost: reads some columns of the files once, and writes the (few) rows of each table to a Parquet file in memory.
    """
    columns = {"_received", *chain.from_iterable(payload_columns(schema.names) for schema in schemas.values())}
    for file in files if schemas else ():
        try:
            staged = read_staged_tables(file, schemas, columns)
        except (OSError, pa.ArrowException):
            for statistics in tables.values():
                statistics.gone += 1
            continue
        for name, rows in staged.items():
            _add_rows(tables[name], rows)


def _add_rows(statistics: TableStatistics, rows: pa.Table) -> None:
    """Add staged rows of a table."""
    written = pa.BufferOutputStream()
    pq.write_table(rows, written)
    with pq.ParquetFile(pa.BufferReader(written.getvalue())) as parquet:
        _add_footer(statistics, parquet.metadata, parquet.schema_arrow)
        _add_placeholders(statistics, parquet)
        statistics.times += group_times(parquet.metadata, rows, "_received")
    statistics.staged += rows.num_rows


def _add_footer(statistics: TableStatistics, metadata: pq.FileMetaData, schema: pa.Schema) -> None:
    statistics.rows += metadata.num_rows
    payload = set(payload_columns(schema.names))
    columns = [member.name for member in schema for _ in range(_scalar_columns(member.type))]
    for number, name in enumerate(columns):
        pieces = (metadata.row_group(group).column(number) for group in range(metadata.num_row_groups))
        if name == "_received":
            _add_time(statistics, pieces)
        elif name in payload:
            _add_field(statistics, pieces, metadata.schema.column(number))


def _scalar_columns(type_: pa.DataType) -> int:
    """The number of Parquet columns of a table column."""
    if pa.types.is_struct(type_):
        return sum(_scalar_columns(member.type) for member in type_)
    if pa.types.is_map(type_):
        return _scalar_columns(type_.key_type) + _scalar_columns(type_.item_type)
    return _scalar_columns(type_.value_type) if hasattr(type_, "value_type") and pa.types.is_nested(type_) else 1


def _add_field(statistics: TableStatistics, pieces: Iterable[Any], column: Any) -> None:
    if column.path not in statistics.fields:
        if len(statistics.fields) >= MAX_FIELDS:
            statistics.more_fields.add(column.path)
            return
        kind = column.logical_type.type
        type_name = column.physical_type if kind == "NONE" else kind
        repeated = column.max_repetition_level > 0
        # `tags.list.element` becomes `tags[]`; the keys of a map become `map[key]`.
        first, *rest = column.path.split(".")
        path = first + "".join(REPEATED.get(part, f".{part}") for part in rest)
        statistics.fields[column.path] = FieldStatistics(path, type_name.lower(), repeated=repeated)
    for piece in pieces:
        statistics.fields[column.path].add(piece)


def _add_time(table: TableStatistics, pieces: Iterable[Any]) -> None:
    for bounds in (piece.statistics for piece in pieces):
        if bounds is None or not bounds.has_min_max:
            continue
        table.first = bounds.min if table.first is None else min(table.first, bounds.min)
        table.last = bounds.max if table.last is None else max(table.last, bounds.max)


def _filled(column: Any, statistics: Any) -> int:
    """The number of values that are not null. `num_values` of the column counts nulls; that of its statistics does
    not."""
    return int(column.num_values - statistics.null_count) if statistics.has_null_count else int(column.num_values)


def _add_placeholders(statistics: TableStatistics, parquet: pq.ParquetFile) -> None:
    names = placeholder_columns(parquet.schema_arrow.names)
    for name in names:
        statistics.placeholders.setdefault(name, PlaceholderStatistics(name.removeprefix("ctx_")))
    read = max((statistics.placeholders[name].rows for name in names), default=MAX_ROWS)
    if not names or read >= MAX_ROWS:
        return
    for batch in parquet.iter_batches(PIECE, columns=names):
        for name in names:
            statistics.placeholders[name].add(batch.column(name))
        read += batch.num_rows
        if read >= MAX_ROWS:
            return


def placeholder_columns(names: Sequence[str]) -> list[str]:
    """The placeholder columns of a table, in order (see `tables.layout`)."""
    return [name for name, section in _sections(names) if section == "placeholder"]


def payload_columns(names: Sequence[str]) -> list[str]:
    """The payload columns of a table, in order."""
    return [name for name, section in _sections(names) if section == "payload"]


def _sections(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The section of each column: provenance, then attributes up to `ce_rest`, then placeholders, then the payload."""
    attributes = {*names[: names.index("ce_rest") + 1]} if "ce_rest" in names else set()
    placeholders = True
    for name in names:
        if name in attributes or (name.startswith("_") and name != "_rest"):
            yield name, "other"
        elif placeholders and name.startswith("ctx_"):
            yield name, "placeholder"
        else:
            placeholders = False
            yield name, "payload"
