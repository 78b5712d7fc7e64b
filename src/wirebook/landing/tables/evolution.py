"""Evolution: tables follow their definitions as far as no row has to be written again.

An added column or member is added, a column that is gone stays and is null, a type is widened where every value keeps
its meaning and the table's format can do it. Anything else is a misfit: the messages become dead letters that say so.

Spec: docs/land.md#when-a-definition-changes; docs/decisions/0061
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from wirebook.bindings import read_parquet_batch, to_line
from wirebook.landing.sources.batches import Chunk, Engine, Landed, TableBlock
from wirebook.landing.tables.layout import DEAD_LETTER_SCHEMA
from wirebook.schema.arrays import cast

__all__ = ["EvolvingEngine", "Misfit", "conform", "evolve", "widens"]

Widens = Callable[[pa.DataType, pa.DataType], bool]
"""Whether a column of the first type can become one of the second, every value unchanged."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A column that cannot follow its definition: its type (None: it is not there under this name), and the new one."""

    column: str
    before: pa.DataType | None
    now: pa.DataType


def widens(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether every value of `old` is one of `new`: the same kind of number, with more room."""
    kinds = pa.types
    if any(is_kind(old) and is_kind(new) for is_kind in (kinds.is_integer, kinds.is_floating)):
        return bool(old.bit_width <= new.bit_width)
    if kinds.is_decimal(old) and kinds.is_decimal(new):
        return bool(old.scale <= new.scale and old.precision - old.scale <= new.precision - new.scale)
    return False


def evolve(old: pa.Schema, new: pa.Schema, can_widen: Widens) -> tuple[pa.Schema, list[Misfit]]:
    """The columns of a table once rows of `new` are in it, and the columns for which there is no way. Pure."""
    merged, misfits = {field.name: field.type for field in old}, []
    known = {name.lower(): name for name in merged}
    for field in new:
        name = known.get(field.name.lower())
        if name is None:
            merged[field.name] = field.type
        elif name != field.name:
            misfits.append(Misfit(field.name, None, field.type))
        elif (type_ := _unify(merged[name], field.type, can_widen)) is None:
            misfits.append(Misfit(name, merged[name], field.type))
        else:
            merged[name] = type_
    return pa.schema(list(merged.items())), misfits


def _unify(old: pa.DataType, new: pa.DataType, can_widen: Widens) -> pa.DataType | None:
    """The type that holds values of both, or None."""
    kinds = pa.types
    if old.equals(new):
        return old
    if kinds.is_struct(old) and kinds.is_struct(new):
        return _unify_structs(old, new, can_widen)
    if kinds.is_list(old) and kinds.is_list(new):
        item = _unify(old.value_type, new.value_type, can_widen)
        return item and pa.list_(item)
    if kinds.is_map(old) and kinds.is_map(new) and old.key_type == new.key_type:
        item = _unify(old.item_type, new.item_type, can_widen)
        return item and pa.map_(old.key_type, item)
    if can_widen(old, new):
        return new
    return old if widens(new, old) else None


def _unify_structs(old: pa.DataType, new: pa.DataType, can_widen: Widens) -> pa.DataType | None:
    merged, misfits = evolve(pa.schema(list(old)), pa.schema(list(new)), can_widen)
    return None if misfits else pa.struct(list(merged))


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the columns of a table: those they lack are null, those of narrower types are widened."""
    if rows.schema.equals(schema):
        return rows
    have = set(rows.column_names)
    columns = [_column(rows[field.name], field.type) if field.name in have else _nulls(rows, field) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _nulls(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(len(rows), field.type)])


def _column(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    return (
        column
        if column.type.equals(type_)
        else pa.chunked_array([cast(chunk, type_) for chunk in column.chunks], type_)
    )


class FormatCapabilities(Protocol):
    """What of a format of tables counts here."""

    def column(self, name: str) -> str: ...
    def fit(self, schema: pa.Schema) -> pa.Schema: ...
    def can_widen(self, old: pa.DataType, new: pa.DataType) -> bool: ...


class Fate(NamedTuple):
    """What becomes of the rows of a table: the columns they get (None: they have them), or why they are refused."""

    schema: pa.Schema | None
    misfits: list[Misfit]


AS_IT_IS = Fate(None, [])


class EvolvingEngine:
    """An engine whose rows have the columns of the tables that are there, or are dead letters because they cannot.

    `existing` gives the columns of a table that is there, as `form` has them.
    """

    def __init__(self, engine: Engine, existing: Callable[[str], pa.Schema | None], form: FormatCapabilities) -> None:
        self._engine, self._existing, self._form = engine, existing, form
        self._fates: dict[str, Fate] = {}

    def land(self, chunk: Chunk) -> Landed:
        landed = self._engine.land(chunk)
        for block in landed.blocks:
            self._decide(block)
        fates = self._fates
        if any(fates[name] != AS_IT_IS for block in landed.blocks for name in block.names):
            landed = self._followed(chunk, landed)
        return replace(landed, dead_letters=self._named(landed.dead_letters))

    def _followed(self, chunk: Chunk, landed: Landed) -> Landed:
        """The rows with the columns of their tables; those that cannot have them as dead letters."""
        tables: dict[str, pa.Table] = {}
        for name, rows in landed.tables.items():
            schema, misfits = self._fates[name]
            tables[name] = rows if schema is None or misfits else conform(self._named(rows), schema)
        landed = replace(landed, tables=tables)
        for name in list(tables):
            if misfits := self._fates[name].misfits:
                landed = _refuse(chunk, landed, name, misfits)
        return landed

    def _decide(self, block: TableBlock) -> None:
        """What becomes of the rows of tables: once, for an engine gives a table the same columns in every chunk."""
        new = [name for name in block.names if name not in self._fates]
        if not new:
            return
        schema = block.rows.schema
        fitting = self._form.fit(pa.schema([field.with_name(self._form.column(field.name)) for field in schema]))
        fresh = AS_IT_IS if fitting.equals(schema) else Fate(fitting, [])
        for name in new:
            old = self._existing(name)
            self._fates[name] = fresh if old is None else self._fate(old, schema, fitting)

    def _fate(self, old: pa.Schema, schema: pa.Schema, fitting: pa.Schema) -> Fate:
        evolved, misfits = evolve(old, fitting, self._form.can_widen)
        return Fate(None if evolved.equals(schema) else evolved, misfits)

    def _named(self, rows: pa.Table) -> pa.Table:
        names = [self._form.column(name) for name in rows.column_names]
        return rows if names == rows.column_names else rows.rename_columns(names)


def _refuse(chunk: Chunk, landed: Landed, name: str, misfits: list[Misfit]) -> Landed:
    """The rows of one table as dead letters."""
    tables = dict(landed.tables)
    rows = tables.pop(name)
    letters = _letters(chunk, rows, landed.definitions[name], misfits)
    outcomes, reasons = dict(landed.outcomes), dict(landed.reasons)
    outcomes["matched"] -= len(rows)
    outcomes["unsupported"] = outcomes.get("unsupported", 0) + len(rows)
    reasons["columns-changed"] = reasons.get("columns-changed", 0) + len(rows)
    dead = pa.concat_tables([landed.dead_letters, conform(letters, landed.dead_letters.schema)])
    definitions = {table: xid for table, xid in landed.definitions.items() if table != name}
    changed = {"tables": tables, "dead_letters": dead, "definitions": definitions}
    return replace(landed, outcomes=outcomes, reasons=reasons, **changed)


def _letters(chunk: Chunk, rows: pa.Table, definition: str, misfits: list[Misfit]) -> pa.Table:
    problems = [_problem(misfit) for misfit in misfits]
    renamed = {"received": "_received", "protocol": "_protocol", "endpoint": "_endpoint"}
    columns: dict[str, Any] = {name: rows[renamed.get(name, name)] for name in _present(rows, renamed)}
    columns["raw"] = _raw(chunk, rows["_line"].to_numpy())
    same = {"outcome": "unsupported", "definition": definition, "problems": problems, "near": []}
    columns |= {
        name: pa.array([value] * len(rows), DEAD_LETTER_SCHEMA.field(name).type) for name, value in same.items()
    }
    return conform(pa.table(columns), DEAD_LETTER_SCHEMA)


def _present(rows: pa.Table, renamed: Mapping[str, str]) -> Iterator[str]:
    return (name for name in DEAD_LETTER_SCHEMA.names if renamed.get(name, name) in rows.column_names)


def _problem(misfit: Misfit) -> dict[str, str | None]:
    before = str(misfit.before) if misfit.before is not None else "a name that differs in more than case"
    return {"code": "columns-changed", "slot": misfit.column, "expected": before, "actual": str(misfit.now)}


def _raw(chunk: Chunk, lines: Any) -> pa.Array:
    """The records of these lines: as captured, or of a Parquet capture as a line of JSON."""
    assert chunk.numbers is not None
    places = pa.array(np.searchsorted(chunk.numbers, lines))
    if chunk.lines is not None:
        return chunk.lines.take(places).cast(pa.binary())
    assert chunk.batch is not None
    parsed = read_parquet_batch(chunk.batch.take(places))
    return pa.array([to_line(each.wire) for each in parsed if each.wire is not None], pa.binary())
