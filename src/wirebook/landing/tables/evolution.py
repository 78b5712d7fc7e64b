"""Schema evolution: tables follow their definitions. Files are rewritten only if the settings allow it.

New columns and struct members are added. Removed ones stay, and are null in new rows. A type is widened if no value
changes and the table format supports it. For any other change, the messages become dead letters that report the
conflict.

Spec: docs/land.md#when-a-definition-changes; docs/decisions/0061, 0221
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from wirebook.landing.chunks import BlockTables, Chunk, Engine, Landed, TableBlock, TableInfo
from wirebook.landing.columns.record_lines import record_lines
from wirebook.landing.tables.layout import DEAD_LETTER_SCHEMA
from wirebook.landing.tables.names import readable_name
from wirebook.schema.arrays import cast

__all__ = ["ColumnConflict", "EvolvingEngine", "conform", "evolve", "raw_records", "widens"]

Widens = Callable[[pa.DataType, pa.DataType], bool]
"""Whether a column of the first type can be changed to the second without changing a value."""


@dataclass(frozen=True, slots=True)
class ColumnConflict:
    """A column of a definition that conflicts with the table. `before` is its type in the table (None: the names
    differ only in case), and `now` is its new type."""

    column: str
    before: pa.DataType | None
    now: pa.DataType


def widens(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether `new` can hold every value of `old`: both are integers, floats or decimals, and `new` is not narrower."""
    kinds = pa.types
    if any(is_kind(old) and is_kind(new) for is_kind in (kinds.is_integer, kinds.is_floating)):
        return bool(old.bit_width <= new.bit_width)
    if kinds.is_decimal(old) and kinds.is_decimal(new):
        return bool(old.scale <= new.scale and old.precision - old.scale <= new.precision - new.scale)
    return False


def evolve(old: pa.Schema, new: pa.Schema, can_widen: Widens) -> tuple[pa.Schema, list[ColumnConflict]]:
    """The columns of a table after rows with the columns `new` are added, and the columns that conflict. Pure."""
    merged, conflicts = {field.name: field.type for field in old}, []
    known = {name.lower(): name for name in merged}
    for field in new:
        name = known.get(field.name.lower())
        if name is None:
            merged[field.name] = field.type
        elif name != field.name:
            conflicts.append(ColumnConflict(field.name, None, field.type))
        elif (type_ := _unify(merged[name], field.type, can_widen)) is None:
            conflicts.append(ColumnConflict(name, merged[name], field.type))
        else:
            merged[name] = type_
    return pa.schema(list(merged.items())), conflicts


def _unify(old: pa.DataType, new: pa.DataType, can_widen: Widens) -> pa.DataType | None:
    """The type that can hold the values of both types, or None."""
    kinds = pa.types
    if old.equals(new):
        return old
    if kinds.is_struct(old) and kinds.is_struct(new):
        merged, conflicts = evolve(pa.schema(list(old)), pa.schema(list(new)), can_widen)
        return None if conflicts else pa.struct(list(merged))
    if kinds.is_list(old) and kinds.is_list(new):
        item = _unify(old.value_type, new.value_type, can_widen)
        return item and pa.list_(item)
    if kinds.is_map(old) and kinds.is_map(new) and old.key_type == new.key_type:
        item = _unify(old.item_type, new.item_type, can_widen)
        return item and pa.map_(old.key_type, item)
    if can_widen(old, new):
        return new
    return old if widens(new, old) else None


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the columns `schema`: missing columns are null, and narrower types are widened."""
    if rows.schema.equals(schema):
        return rows
    columns = []
    for field in schema:
        if field.name not in rows.column_names:
            column = pa.chunked_array([pa.nulls(len(rows), field.type)])
        elif not (column := rows[field.name]).type.equals(field.type):
            column = pa.chunked_array([cast(chunk, field.type) for chunk in column.chunks], field.type)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema)


class FormatCapabilities(Protocol):
    """The part of a table format that schema evolution needs."""

    def column(self, name: str) -> str: ...
    def fit(self, schema: pa.Schema) -> pa.Schema: ...
    def can_widen(self, old: pa.DataType, new: pa.DataType, *, may_rewrite: bool = False) -> bool: ...


class TableChange(NamedTuple):
    """How to adapt new rows to a table: the columns to convert them to (None: no conversion), or the conflicts for
    which they are rejected."""

    schema: pa.Schema | None
    conflicts: list[ColumnConflict]


UNCHANGED = TableChange(None, [])


class EvolvingEngine:
    """Wraps an engine so that its rows have the columns of the existing tables. Rows that conflict become dead
    letters.

    `existing` returns the columns of a table in the types of `table_format`, or None if the table does not exist.
    `names` maps XIDs to table names that differ from `readable_name`; None keeps the table names of the engine.
    `partitions` maps tables to the names of their partitions, which no column can have. `may_rewrite` returns whether
    an existing table may be rewritten to widen its columns.
    """

    def __init__(
        self,
        engine: Engine,
        existing: Callable[[str], pa.Schema | None],
        table_format: FormatCapabilities,
        names: Mapping[str, str] | None = None,
        partitions: Mapping[str, str] = MappingProxyType({}),
        *,
        may_rewrite: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._engine, self._existing, self._format, self._names = engine, existing, table_format, names
        self._partitions, self._may_rewrite = partitions, may_rewrite
        self._changes: dict[str, TableChange] = {}
        self._changing: set[str] = set()
        self._table_of: dict[str, str] = {}  # names of tables in the target, by name in the engine
        self._info: dict[str, TableInfo] = {}

    def land(self, chunk: Chunk, *, may_defer: bool = False) -> Landed:
        landed = self._engine.land(chunk, may_defer=may_defer)
        if self._names is not None:
            landed = self._renamed(landed, self._names)
        for block in landed.blocks:
            self._decide(block)
        if any(not self._changing.isdisjoint(block.names) for block in landed.blocks):
            landed = self._followed(chunk, landed)
        return replace(landed, dead_letters=self._named(landed.dead_letters))

    def _renamed(self, landed: Landed, names: Mapping[str, str]) -> Landed:
        """Replace the table names of the engine with those of the target."""
        blocks = []
        for block in landed.blocks:
            for name in set(block.names).difference(self._table_of):
                info = landed.info[name]
                xid = info.definition or name
                table = self._table_of[name] = names.get(xid) or readable_name(xid)
                self._info[table] = info
            blocks.append(replace(block, names=tuple(map(self._table_of.__getitem__, block.names))))
        return replace(landed, tables=BlockTables(blocks), info=self._info)

    def _followed(self, chunk: Chunk, landed: Landed) -> Landed:
        """Convert the rows to the columns of their tables. Rows that conflict become dead letters."""
        tables: dict[str, pa.Table] = {}
        for name, rows in landed.tables.items():
            schema, conflicts = self._changes[name]
            tables[name] = rows if schema is None or conflicts else conform(self._named(rows), schema)
        conflicting = {name: conflicts for name in tables if (conflicts := self._changes[name].conflicts)}
        return _refuse(chunk, replace(landed, tables=tables), conflicting)

    def _decide(self, block: TableBlock) -> None:
        """Decide how to adapt the rows of each table. Once per table, because an engine returns the same columns in
        each chunk."""
        new = set(block.names).difference(self._changes)
        if not new:
            return
        schema = block.rows.schema
        fitting = self._format.fit(pa.schema([field.with_name(self._format.column(field.name)) for field in schema]))
        fresh = UNCHANGED if fitting.equals(schema) else TableChange(fitting, [])
        evolutions: dict[tuple[int, bool], tuple[pa.Schema, pa.Schema, list[ColumnConflict]]] = {}
        for name in new:
            old = self._existing(name)
            if old is None:
                self._note(name, fresh)
                continue
            key = id(old), self._may_rewrite(name)
            if key not in evolutions:  # many tables have the same columns
                can_widen = partial(self._format.can_widen, may_rewrite=key[1])
                evolutions[key] = old, *evolve(old, fitting, can_widen)
            _, evolved, conflicts = evolutions[key]
            partition = self._partitions.get(name)
            same = (field for field in fitting if field.name.lower() == partition)
            conflicts = [*conflicts, *(ColumnConflict(field.name, pa.date32(), field.type) for field in same)]
            self._note(name, TableChange(None if evolved.equals(schema) else evolved, conflicts))

    def _note(self, table: str, change: TableChange) -> None:
        self._changes[table] = change
        if change != UNCHANGED:
            self._changing.add(table)

    def _named(self, rows: pa.Table) -> pa.Table:
        names = [self._format.column(name) for name in rows.column_names]
        return rows if names == rows.column_names else rows.rename_columns(names)


def _refuse(chunk: Chunk, landed: Landed, conflicting: Mapping[str, list[ColumnConflict]]) -> Landed:
    """Turn the rows of the `conflicting` tables into dead letters."""
    if not conflicting:
        return landed
    tables = dict(landed.tables)
    rejected = [
        _as_dead_letters(chunk, tables.pop(name), landed.info[name].definition, conflicts)
        for name, conflicts in conflicting.items()
    ]
    count = sum(map(len, rejected))
    outcomes, reasons = dict(landed.outcomes), dict(landed.reasons)
    outcomes["matched"] -= count
    outcomes["unsupported"] = outcomes.get("unsupported", 0) + count
    reasons["columns-changed"] = reasons.get("columns-changed", 0) + count
    schema = landed.dead_letters.schema
    dead = pa.concat_tables([landed.dead_letters, *(conform(rows, schema) for rows in rejected)])
    return replace(landed, tables=tables, dead_letters=dead, outcomes=outcomes, reasons=reasons)


def _as_dead_letters(chunk: Chunk, rows: pa.Table, definition: str | None, conflicts: list[ColumnConflict]) -> pa.Table:
    problems = [_problem(conflict) for conflict in conflicts]
    renamed = {"received": "_received", "protocol": "_protocol", "endpoint": "_endpoint"}
    sources = {name: renamed.get(name, name) for name in DEAD_LETTER_SCHEMA.names}
    columns: dict[str, Any] = {name: rows[source] for name, source in sources.items() if source in rows.column_names}
    columns["raw"] = raw_records(chunk, rows["_line"].to_numpy())
    same = {"outcome": "unsupported", "definition": definition, "problems": problems, "near": []}
    columns |= {
        name: pa.array([value] * len(rows), DEAD_LETTER_SCHEMA.field(name).type) for name, value in same.items()
    }
    return conform(pa.table(columns), DEAD_LETTER_SCHEMA)


def _problem(conflict: ColumnConflict) -> dict[str, str | None]:
    before = str(conflict.before) if conflict.before is not None else "a name that differs in more than case"
    return {"code": "columns-changed", "slot": conflict.column, "expected": before, "actual": str(conflict.now)}


def raw_records(chunk: Chunk, lines: Any) -> pa.Array:
    """The records of messages with these line numbers, which matched a definition, as lines that a replay can read."""
    assert chunk.numbers is not None
    return record_lines(chunk, np.searchsorted(chunk.numbers, lines))
