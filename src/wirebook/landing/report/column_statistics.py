"""What files of a table say of their columns: how full fields are and from where to where they go, by the footers
alone; how many values placeholders take, by reading their columns a piece at a time.

Spec: docs/land.md#the-report; docs/decisions/0063
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirebook.landing.tables.staged import read_staged

__all__ = ["FieldFacts", "PlaceholderFacts", "TableFacts", "add_staged", "table_facts"]

MAX_FIELDS = 200
MAX_VALUES = 100_000
MAX_ROWS = 2_000_000
PIECE = 1 << 16
TOP = 5
REPEATED = {"list": "", "element": "[]", "key_value": "", "key": "[key]", "value": "[]"}


@dataclass(slots=True)
class FieldFacts:
    """A field of the payload: the path of its leaf in the files.

    Shape: `filled` counts values that are not null; None where a file does not say. `lowest` and `highest` as the
    footers give them; None where there is no value, or a file gives none. `repeated`: it is in a list or map, and may
    have more values than there are rows.
    """

    path: str
    type: str
    filled: int | None = 0
    lowest: Any = None
    highest: Any = None
    bounded: bool = True
    repeated: bool = False

    def add(self, column: Any) -> None:
        """What the footer says of one piece of the column."""
        statistics = column.statistics
        if statistics is None or not statistics.has_null_count:
            self.filled = None
        elif self.filled is not None:
            self.filled += _filled(column, statistics)
        if statistics is not None and statistics.has_min_max:
            self._widen(statistics.min, statistics.max)
        elif statistics is None or _filled(column, statistics):
            self.bounded = False

    def _widen(self, lowest: Any, highest: Any) -> None:
        try:
            self.lowest = lowest if self.lowest is None else min(self.lowest, lowest)
            self.highest = highest if self.highest is None else max(self.highest, highest)
        except TypeError:  # the type of the column has changed between the files
            self.bounded = False


@dataclass(slots=True)
class PlaceholderFacts:
    """A placeholder: its values with their counts, of the first `rows` rows; `many` when there are more of them than
    are told apart."""

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
        return len(self.values)

    def top(self) -> list[tuple[str, int]]:
        return self.values.most_common(TOP)


@dataclass(slots=True)
class TableFacts:
    """A table of a run. Units: `size` in bytes, of the files of its own; `staged` of the rows are in none. `fields` at
    most 200, `more_fields` has the paths beyond."""

    name: str
    definition: str | None
    rows: int = 0
    staged: int = 0
    size: int = 0
    gone: int = 0
    fields: dict[str, FieldFacts] = field(default_factory=dict)
    more_fields: set[str] = field(default_factory=set)
    placeholders: dict[str, PlaceholderFacts] = field(default_factory=dict)
    first: Any = None
    last: Any = None


def table_facts(name: str, definition: str | None, files: Sequence[Path]) -> TableFacts:
    """The facts of one table's files of a run; files that are gone are counted, nothing else.

    Cost: every footer, and of at most two million rows the columns of placeholders.
    """
    facts = TableFacts(name, definition)
    for file in files:
        try:
            with pq.ParquetFile(file) as parquet:
                _add_footer(facts, parquet.metadata, parquet.schema_arrow)
                _add_placeholders(facts, parquet)
        except (OSError, pa.ArrowException):
            facts.gone += 1
            continue
        facts.size += file.stat().st_size
    return facts


def add_staged(facts: TableFacts, files: Sequence[Path], schema: pa.Schema) -> None:
    """Adds what staged rows of a table say; they are few. `files` are those of the staging table, `schema` the table's.

    Cost: the rows are read, and written to memory as they would be to a file.
    """
    for file in files:
        try:
            for rows in read_staged([file], facts.name, schema):
                written = pa.BufferOutputStream()
                pq.write_table(rows, written)
                with pq.ParquetFile(pa.BufferReader(written.getvalue())) as parquet:
                    _add_footer(facts, parquet.metadata, parquet.schema_arrow)
                    _add_placeholders(facts, parquet)
                facts.staged += rows.num_rows
        except (OSError, pa.ArrowException):
            facts.gone += 1


def _add_footer(facts: TableFacts, metadata: pq.FileMetaData, schema: pa.Schema) -> None:
    facts.rows += metadata.num_rows
    payload = set(payload_columns(schema.names))
    columns = [each.name for each in schema for _ in range(_leaves(each.type))]
    for number, name in enumerate(columns):
        pieces = (metadata.row_group(group).column(number) for group in range(metadata.num_row_groups))
        if name == "_received":
            _add_time(facts, pieces)
        elif name in payload:
            _add_field(facts, pieces, metadata.schema.column(number))


def _leaves(type_: pa.DataType) -> int:
    """How many columns of a file a column of a table is."""
    if pa.types.is_struct(type_):
        return sum(_leaves(each.type) for each in type_)
    if pa.types.is_map(type_):
        return _leaves(type_.key_type) + _leaves(type_.item_type)
    return _leaves(type_.value_type) if hasattr(type_, "value_type") and pa.types.is_nested(type_) else 1


def _add_field(facts: TableFacts, pieces: Iterable[Any], leaf: Any) -> None:
    if leaf.path not in facts.fields:
        if len(facts.fields) >= MAX_FIELDS:
            facts.more_fields.add(leaf.path)
            return
        kind = leaf.logical_type.type
        shown = leaf.physical_type if kind == "NONE" else kind
        repeated = leaf.max_repetition_level > 0
        facts.fields[leaf.path] = FieldFacts(_readable(leaf.path), shown.lower(), repeated=repeated)
    for piece in pieces:
        facts.fields[leaf.path].add(piece)


def _add_time(facts: TableFacts, pieces: Iterable[Any]) -> None:
    for statistics in (piece.statistics for piece in pieces):
        if statistics is None or not statistics.has_min_max:
            continue
        facts.first = statistics.min if facts.first is None else min(facts.first, statistics.min)
        facts.last = statistics.max if facts.last is None else max(facts.last, statistics.max)


def _filled(column: Any, statistics: Any) -> int:
    """Values that are not null. `num_values` of the column counts nulls, too; that of the statistics does not."""
    return int(column.num_values - statistics.null_count) if statistics.has_null_count else int(column.num_values)


def _readable(path: str) -> str:
    """`tags.list.element` is `tags[]`, the keys of a map are `map[key]`."""
    first, *rest = path.split(".")
    return first + "".join(REPEATED.get(part, f".{part}") for part in rest)


def _add_placeholders(facts: TableFacts, parquet: pq.ParquetFile) -> None:
    names = placeholder_columns(parquet.schema_arrow.names)
    for name in names:
        facts.placeholders.setdefault(name, PlaceholderFacts(name.removeprefix("ctx_")))
    read = max((facts.placeholders[name].rows for name in names), default=MAX_ROWS)
    if not names or read >= MAX_ROWS:
        return
    for batch in parquet.iter_batches(PIECE, columns=names):
        for name in names:
            facts.placeholders[name].add(batch.column(name))
        read += batch.num_rows
        if read >= MAX_ROWS:
            return


def placeholder_columns(names: Sequence[str]) -> list[str]:
    """Of a table's columns, in their order, those of placeholders (`spark.layout` says the order)."""
    return [name for name, section in _sections(names) if section == "placeholder"]


def payload_columns(names: Sequence[str]) -> list[str]:
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
