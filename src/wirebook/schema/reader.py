"""The interface of compiled schemas: what they are compiled with, what they read and what they return.

`read` decodes and validates one payload and reports every problem: it is the reference. `read_column` does the same for
a whole Arrow column at once and leaves the rows that it is not sure about to `read`.
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

    Shape: `assert_formats` decides whether `format` is asserted: None as the JSON Schema draft says (D52).
    """

    assert_formats: bool | None = None
    limits: PayloadLimits = PayloadLimits()


@dataclass(frozen=True)
class DecodedPayload:
    """The result of reading one payload.

    Shape: `make_row` converts the value to a row; None if there is no valid value, for the reason in `outcome`.
    """

    value: Any
    make_row: Callable[[], Row] | None = field(repr=False, compare=False)
    problems: tuple[Problem, ...] = ()
    outcome: Failure | None = None

    @cached_property
    def row(self) -> Row | None:
        """A Python value for each field and for ``_rest``, ready for an Arrow array. Computed on first use."""
        return self.make_row and self.make_row()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the row instead of `make_row`, which refers to the schema."""
        return self.__dict__ | {"row": self.row, "make_row": None}


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """The result of reading a column of payloads.

    Rows: one for each payload. A settled row is valid, and its columns hold what `read` returns. Any other row is null
    here: `read` decides and reports what is wrong.
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
        """The columns of a payload, without ``_rest``."""

    def read(self, payload: Payload) -> DecodedPayload:
        """Decode and validate one payload."""

    def read_column(self, payloads: pa.BinaryArray, content_type: str | None = None) -> ColumnReading:
        """Decode and validate a column of payloads."""


@dataclass(frozen=True, eq=False)
class SchemaReader:
    """The base of the compiled schemas of all formats: the column layout of their values."""

    format: str
    layout: ColumnLayout
    limits: PayloadLimits

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The columns of a payload."""
        return fields_of(self.layout)

    def decoded(self, value: Any) -> DecodedPayload:
        """Return the result for a valid value.

        Shape: the value has its cells in place of encoded scalars if everything fits its column, else it is as it was
        decoded.
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
    """The result of writing a value: the payload, or None and why the value cannot be written."""

    payload: Payload | None
    problems: tuple[Problem, ...] = ()


@runtime_checkable
class Encoder(Protocol):
    """A compiled schema that can also write payloads.

    `encode` accepts values as `read` returns them, and as people write them in JSON. `content_type` selects an encoding
    of the format; None selects the usual one. `read` accepts every payload that `encode` returns.
    """

    def encode(self, value: Any, content_type: str | None = None) -> Encoded: ...


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A schema that cannot be used, in place of a compiled one. Every payload is `unsupported`, for the same
    reasons.
    """

    format: str
    problems: tuple[Problem, ...]
    fields: tuple[Field, ...] = ()

    def read(self, payload: Payload) -> DecodedPayload:  # noqa: ARG002
        return DecodedPayload(None, None, self.problems, "unsupported")

    def read_column(self, payloads: pa.BinaryArray, content_type: str | None = None) -> ColumnReading:  # noqa: ARG002
        return ColumnReading({}, np.zeros(len(payloads), dtype=bool))


Rows = Sequence[Row | None]


def columns_of_rows(fields: tuple[Field, ...], rows: Rows) -> dict[str, pa.Array]:
    """Return rows as columns: null where there is no row."""
    types = {field.name: field.arrow_type for field in fields} | {REST: pa.string()}
    return {name: pa.array([row and row[name] for row in rows], type_) for name, type_ in types.items()}


def read_each(schema: CompiledSchema, payloads: pa.BinaryArray, content_type: str | None = None) -> ColumnReading:
    """Read a column row by row: for short columns, and for payloads that cannot be read at once."""
    raws = payloads.to_pylist()
    rows = [None if raw is None else schema.read(Payload(raw, content_type=content_type)).row for raw in raws]
    settled = np.fromiter((row is not None for row in rows), dtype=bool, count=len(rows))
    return ColumnReading(columns_of_rows(schema.fields, rows), settled)


def with_others(
    read: Callable[[pa.BinaryArray], ColumnReading], payloads: pa.BinaryArray, reading: ColumnReading
) -> ColumnReading:
    """Return a reading in which `read` has decided the rows that were not settled."""
    if reading.settled.all():
        return reading
    places = np.flatnonzero(~reading.settled)
    others = read(payloads.take(pa.array(places)))
    settled = reading.settled.copy()
    settled[places] = others.settled
    return ColumnReading(replaced(reading.columns, places, others.columns), settled)


def replaced(columns: dict[str, pa.Array], places: Any, others: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """Return columns with the values of shorter columns at some positions."""
    count = len(next(iter(columns.values())))
    order = np.arange(count)
    order[places] = np.arange(count, count + len(places))
    return {name: pa.concat_arrays([column, others[name]]).take(pa.array(order)) for name, column in columns.items()}


def joined(parts: Sequence[ColumnReading]) -> ColumnReading:
    """Return the readings of consecutive parts of a column as one."""
    if len(parts) == 1:
        return parts[0]
    columns = {name: pa.concat_arrays([part.columns[name] for part in parts]) for name in parts[0].columns}
    return ColumnReading(columns, np.concatenate([part.settled for part in parts]))
