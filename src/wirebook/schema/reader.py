"""The interface of compiled schemas: their options, input and results.

`read` decodes and validates one payload and reports its problems. It is the reference. `read_column` decodes and
validates a whole Arrow column at once, and leaves rows that it does not certainly accept to `read`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from wirebook.problems import Problem
from wirebook.schema.layout import REST, VALUE, ColumnLayout, Field, Struct, fields_of, row_of, scalars_of
from wirebook.schema.payload import Payload
from wirebook.schema.scalar_columns import JSON, value_of
from wirebook.text.json import MAX_DEPTH

Failure = Literal["undecodable", "invalid-payload", "unsupported", "oversized"]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PayloadLimits:
    """A payload that exceeds a limit is `oversized`. Units: bytes, levels of nesting."""

    size: int = 16 * 1024 * 1024
    depth: int = MAX_DEPTH


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Options of compilation; part of the identity of a compiled schema.

    Shape: `assert_formats` is whether the keyword `format` is validated; None: as the JSON Schema draft defines (D52).
    """

    assert_formats: bool | None = None
    limits: PayloadLimits = PayloadLimits()


@dataclass(frozen=True)
class DecodedPayload:
    """The result of reading one payload.

    Shape: `make_row` converts the value to a row. If there is no valid value, it is None, and `outcome` is the reason.
    """

    value: Any
    make_row: Callable[[], Row] | None = field(repr=False, compare=False)
    problems: tuple[Problem, ...] = ()
    outcome: Failure | None = None

    @cached_property
    def row(self) -> Row | None:
        """A Python value for each field and for ``_rest``, as Arrow arrays accept it. Computed on first use."""
        return self.make_row and self.make_row()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: the row replaces `make_row`, which refers to the schema."""
        return self.__dict__ | {"row": self.row, "make_row": None}


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """The result of reading a column of payloads.

    Rows: one for each payload. A settled row is valid, and its columns have the values that `read` returns. Any other
    row is null: `read` decides whether it is valid and reports its problems.
    """

    columns: dict[str, pa.Array]
    settled: np.ndarray[Any, np.dtype[np.bool_]]


class CompiledSchema(Protocol):
    """A schema that is ready to read payloads. Thread-safe."""

    @property
    def format(self) -> str:
        """The format with its version."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns of a payload except ``_rest``."""

    def read(self, payload: Payload) -> DecodedPayload:
        """Decode and validate one payload."""

    def read_column(self, payloads: pa.BinaryArray, content_type: str | None = None) -> ColumnReading:
        """Decode and validate a column of payloads."""


@dataclass(frozen=True, eq=False)
class SchemaReader:
    """The base of the compiled schemas of all formats. Derives columns and rows from the column layout."""

    format: str
    layout: ColumnLayout
    limits: PayloadLimits

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The columns of a payload except ``_rest``."""
        return fields_of(self.layout)

    def decoded(self, value: Any) -> DecodedPayload:
        """Return the result for a valid value.

        Shape: if everything fits its column, the cells (such as a `datetime`) replace the encoded scalars in the value
        of the result. Otherwise, the value is unchanged.
        """
        row = row_of(self.layout, value)
        cells = {name: cell for name, cell in row.items() if name != REST}
        whole = cells if isinstance(self.layout, Struct) else cells[VALUE]
        if self._has_json_text:
            whole = value_of(self.layout, value)
        return DecodedPayload(value if row[REST] else whole, lambda: row)

    @cached_property
    def _has_json_text(self) -> bool:
        return JSON in scalars_of(self.layout)


@dataclass(frozen=True, slots=True)
class Encoded:
    """The result of writing a value: the payload, or None and the problems of the value."""

    payload: Payload | None
    problems: tuple[Problem, ...] = ()


@runtime_checkable
class Encoder(Protocol):
    """A compiled schema that can also write payloads.

    `encode` accepts values that `read` returns, and plain JSON values. `content_type` selects an encoding of the
    format; None selects the usual one. `read` accepts every payload that `encode` returns.
    """

    def encode(self, value: Any, content_type: str | None = None) -> Encoded: ...


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The result for a schema that cannot be compiled. Every payload is `unsupported`, with the same problems."""

    format: str
    problems: tuple[Problem, ...]
    fields: tuple[Field, ...] = ()

    def read(self, payload: Payload) -> DecodedPayload:  # noqa: ARG002
        return DecodedPayload(None, None, self.problems, "unsupported")

    def read_column(self, payloads: pa.BinaryArray, content_type: str | None = None) -> ColumnReading:  # noqa: ARG002
        return ColumnReading({}, np.zeros(len(payloads), dtype=bool))


Rows = Sequence[Row | None]


def columns_of_rows(fields: tuple[Field, ...], rows: Rows) -> dict[str, pa.Array]:
    """Return rows as columns. A row that is None is null in all columns."""
    types = {field.name: field.arrow_type for field in fields} | {REST: pa.string()}
    return {name: pa.array([row and row[name] for row in rows], type_) for name, type_ in types.items()}


def read_each(schema: CompiledSchema, payloads: pa.BinaryArray, content_type: str | None = None) -> ColumnReading:
    """Read a column row by row, for short columns and for payloads that cannot be read as a column."""
    raws = payloads.to_pylist()
    rows = [None if raw is None else schema.read(Payload(raw, content_type=content_type)).row for raw in raws]
    settled = np.fromiter((row is not None for row in rows), dtype=bool, count=len(rows))
    return ColumnReading(columns_of_rows(schema.fields, rows), settled)


def with_others(
    read: Callable[[pa.BinaryArray], ColumnReading], payloads: pa.BinaryArray, reading: ColumnReading
) -> ColumnReading:
    """Return a reading in which the result of `read` replaces the rows that are not settled."""
    if reading.settled.all():
        return reading
    places = np.flatnonzero(~reading.settled)
    others = read(payloads.take(pa.array(places)))
    settled = reading.settled.copy()
    settled[places] = others.settled
    return ColumnReading(replaced(reading.columns, places, others.columns), settled)


def replaced(columns: dict[str, pa.Array], places: Any, others: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """Return columns in which the values of `others` replace those at the positions `places`."""
    count = len(next(iter(columns.values())))
    order = np.arange(count)
    order[places] = np.arange(count, count + len(places))
    return {name: pa.concat_arrays([column, others[name]]).take(pa.array(order)) for name, column in columns.items()}


def joined(parts: Sequence[ColumnReading]) -> ColumnReading:
    """Return one reading from the readings of consecutive parts of a column."""
    if len(parts) == 1:
        return parts[0]
    columns = {name: pa.concat_arrays([part.columns[name] for part in parts]) for name in parts[0].columns}
    return ColumnReading(columns, np.concatenate([part.settled for part in parts]))
