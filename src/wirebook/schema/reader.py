"""What goes into a compiled schema and what comes out: one payload, or a whole column of them.

`read` is the reference: it decodes and validates one payload and says what is wrong. `read_column` does the same for a
whole Arrow column at once and leaves every row that it is not sure of to `read`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from wirebook.problems import Problem
from wirebook.schema.layout import REST, VALUE, Field, Layout, Struct, fields_of, leaves_of, row_of
from wirebook.schema.payload import Payload
from wirebook.schema.scalar_columns import JSON, value_of
from wirebook.text.json import MAX_DEPTH

Failure = Literal["undecodable", "invalid-payload", "unsupported", "oversized"]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PayloadLimits:
    """Beyond these a payload is `oversized`. Units: bytes, levels of nesting."""

    size: int = 16 * 1024 * 1024
    depth: int = MAX_DEPTH


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How schemas are compiled; part of what identifies a compiled schema.

    Shape: `assert_formats` None means as the JSON Schema draft says (D52), True or False overrides.
    """

    assert_formats: bool | None = None
    limits: PayloadLimits = PayloadLimits()


@dataclass(frozen=True)
class DecodedPayload:
    """What one payload turned out to be.

    Shape: `make_row` lays the value out in columns; None when there is nothing to lay out, which `outcome` explains.
    """

    value: Any
    make_row: Callable[[], Row] | None = field(repr=False, compare=False)
    problems: tuple[Problem, ...] = ()
    outcome: Failure | None = None

    @cached_property
    def row(self) -> Row | None:
        """A Python value for each field and for ``_rest``, ready for an Arrow array; made when first asked for."""
        return self.make_row and self.make_row()

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle keeps: the row itself, as what makes it belongs to the schema."""
        return self.__dict__ | {"row": self.row, "make_row": None}


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """What a column of payloads turned out to be.

    Rows: as many as payloads. A settled row is valid, and its columns hold what `read` would give; any other row has
    nulls here and is to be read again, by `read`, which says what is wrong.
    """

    columns: dict[str, pa.Array]
    settled: np.ndarray[Any, np.dtype[np.bool_]]


class CompiledSchema(Protocol):
    """A schema ready to read payloads. Compiled once, used from any thread."""

    @property
    def format(self) -> str: ...

    @property
    def fields(self) -> tuple[Field, ...]: ...

    def read(self, payload: Payload) -> DecodedPayload: ...

    def read_column(self, payloads: pa.BinaryArray, content_type: str | None = None) -> ColumnReading: ...


@dataclass(frozen=True, eq=False)
class ShapedSchema:
    """What the compiled schemas of all formats have: the shape of their values, which gives the columns."""

    format: str
    shape: Layout
    limits: PayloadLimits

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return fields_of(self.shape)

    def laid_out(self, value: Any) -> DecodedPayload:
        """The reading of a valid value as it was decoded; where nothing is left over the cells are the value, but for
        what is JSON text in its column."""
        row = row_of(self.shape, value)
        cells = {name: cell for name, cell in row.items() if name != REST}
        whole = cells if isinstance(self.shape, Struct) else cells[VALUE]
        if self._has_json_text:
            whole = value_of(self.shape, value)
        return DecodedPayload(value if row[REST] else whole, lambda: row)

    @cached_property
    def _has_json_text(self) -> bool:
        return JSON in leaves_of(self.shape)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A value as a payload of its format: bytes and content type, or None and what is wrong with the value."""

    payload: Payload | None
    problems: tuple[Problem, ...] = ()


@runtime_checkable
class Encoder(Protocol):
    """A compiled schema that can also write: the way back of `read`.

    `encode` takes a value as `read` gives it (and as people write it in JSON); `content_type` chooses among the
    encodings of the format, None takes the usual one. What it gives, `read` accepts.
    """

    def encode(self, value: Any, content_type: str | None = None) -> Encoded: ...


@dataclass(frozen=True, slots=True)
class Unsupported:
    """In place of a compiled schema: why there is none. Every payload is `unsupported`, for these reasons."""

    format: str
    problems: tuple[Problem, ...]
    fields: tuple[Field, ...] = ()

    def read(self, payload: Payload) -> DecodedPayload:  # noqa: ARG002  (the payload does not matter)
        return DecodedPayload(None, None, self.problems, "unsupported")

    def read_column(self, payloads: pa.BinaryArray, content_type: str | None = None) -> ColumnReading:  # noqa: ARG002
        return ColumnReading({}, np.zeros(len(payloads), dtype=bool))


Rows = Sequence[Row | None]


def columns_of_rows(fields: tuple[Field, ...], rows: Rows) -> dict[str, pa.Array]:
    """Rows of the reference as columns; null where there is no row."""
    types = {field.name: field.arrow_type for field in fields} | {REST: pa.string()}
    return {name: pa.array([row and row[name] for row in rows], type_) for name, type_ in types.items()}


def read_each(schema: CompiledSchema, payloads: pa.BinaryArray, content_type: str | None) -> ColumnReading:
    """A column read row by row: what is short, or has no other way. Every valid row is settled."""
    raws = payloads.to_pylist()
    rows = [None if raw is None else schema.read(Payload(raw, content_type=content_type)).row for raw in raws]
    settled = np.fromiter((row is not None for row in rows), dtype=bool, count=len(rows))
    return ColumnReading(columns_of_rows(schema.fields, rows), settled)


def with_others(schema: CompiledSchema, payloads: pa.BinaryArray, reading: ColumnReading) -> ColumnReading:
    """A reading with the rows that were given up read by the reference: damaged ones, and what is only rare."""
    if reading.settled.all():
        return reading
    places = np.flatnonzero(~reading.settled)
    others = read_each(schema, payloads.take(pa.array(places)), None)
    reading.settled[places] = others.settled
    return ColumnReading(replaced(reading.columns, places, others.columns), reading.settled)


def replaced(columns: dict[str, pa.Array], places: Any, others: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """Columns with the values of other, shorter ones in some places."""
    count = len(next(iter(columns.values())))
    order = np.arange(count)
    order[places] = np.arange(count, count + len(places))
    return {name: pa.concat_arrays([column, others[name]]).take(pa.array(order)) for name, column in columns.items()}


def joined(parts: Sequence[ColumnReading]) -> ColumnReading:
    """The readings of the pieces of a column as one."""
    if len(parts) == 1:
        return parts[0]
    columns = {name: pa.concat_arrays([part.columns[name] for part in parts]) for name in parts[0].columns}
    return ColumnReading(columns, np.concatenate([part.settled for part in parts]))
