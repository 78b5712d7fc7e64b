"""The columns of an Avro type.

Rule: a union with null is nullable. A union of several types other than null is a struct with one member per branch. A
recursive use of a type is JSON text. Times of day and nanosecond timestamps are the integers that encode them, because
Spark has no such types.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal

import pyarrow as pa

from wirebook.schema.avro.types import AvroType
from wirebook.schema.layout import NOTHING, Cell, ColumnLayout, List, Map, ScalarColumn, Struct
from wirebook.schema.scalar_columns import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT32,
    INT64,
    JSON,
    LOCAL_TIME,
    TEXT,
)

MAX_LEVELS = 32
"""Maximum nesting of named types in columns. Deeper types are JSON text."""
MAX_COLUMNS = 4000
"""Maximum number of types in a layout. Further types are JSON text."""
EPOCH, EPOCH_UTC, DAY = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC), date(1970, 1, 1)
_MILLISECOND, _MICROSECOND = timedelta(milliseconds=1), timedelta(microseconds=1)
_WIDE = Context(prec=1000)


def layout_of(type_: AvroType) -> ColumnLayout:
    """Return the column layout of a type."""
    return _AvroColumns().layout(type_, ())


class _AvroColumns:
    """Builds layouts in which each use of a type has its own columns, or is JSON text beyond the two limits."""

    def __init__(self) -> None:
        self.left = MAX_COLUMNS

    def layout(self, type_: AvroType, ancestors: tuple[AvroType, ...]) -> ColumnLayout:
        self.left -= 1
        if type_ in ancestors or self.left < 0 or len(ancestors) > MAX_LEVELS:
            return JSON
        inner = (*ancestors, type_) if type_.name else ancestors
        if type_.kind == "record":
            members = {name: self.layout(field, inner) for name, field in type_.fields}
            required = frozenset(name for name, field in type_.fields if not field.is_nullable)
            return Struct(members, required, type_.docs) if members else JSON
        if type_.items is not None:
            items = self.layout(type_.items, inner)
            return List(items) if type_.kind == "array" else Map(items)
        if type_.kind == "union":
            branches = [branch for branch in type_.branches if branch.kind != "null"]
            if len(branches) == 1:
                return self.layout(branches[0], inner)
            return Struct({branch.branch_name: self.layout(branch, inner) for branch in branches}) if branches else TEXT
        return LOGICAL[type_.logical](type_) if type_.logical else PLAIN[type_.kind]


PLAIN: dict[str, ScalarColumn] = {
    "null": TEXT,
    "boolean": BOOLEAN,
    "int": INT32,
    "long": INT64,
    "float": FLOAT,
    "double": DOUBLE,
    "bytes": BYTES,
    "fixed": BYTES,
    "string": TEXT,
    "enum": TEXT,
}


# -- logical types: the cell of an encoded value -----------------------------------------------------------------------


def _moment(
    name: str, arrow: pa.DataType, encoded: pa.DataType, base: date, unit: timedelta
) -> Callable[[AvroType], ScalarColumn]:
    def cell(value: int) -> Cell:
        try:
            return base + value * unit, NOTHING
        except OverflowError:
            return None, value

    column = ScalarColumn(name, arrow, encoded, {}, cell)
    return lambda _: column


UUID = ScalarColumn("uuid", pa.string(), pa.string(), {}, lambda value: (str(uuid.UUID(bytes=value)), NOTHING))


def _decimal(type_: AvroType) -> ScalarColumn:
    precision, scale = type_.attributes["precision"], type_.attributes["scale"]
    limit = 10 ** min(precision, 1000)

    def cell(value: bytes) -> Cell:
        if len(value) > 400:
            return None, value
        number = int.from_bytes(value, "big", signed=True)
        exact = Decimal(number).scaleb(-scale, context=_WIDE)
        if abs(number) >= limit:
            return None, format(exact, "f")
        return (exact if precision <= 38 else format(exact, "f")), NOTHING

    arrow = pa.decimal128(precision, scale) if precision <= 38 else pa.string()
    return ScalarColumn("decimal", arrow, arrow, {}, cell)


DURATION = pa.struct([("months", pa.int64()), ("days", pa.int64()), ("milliseconds", pa.int64())])


def _duration(value: bytes) -> Cell:
    return dict(zip(DURATION.names, struct.unpack("<III", value), strict=True)), NOTHING


_DURATION = ScalarColumn("duration", DURATION, DURATION, {}, _duration)
LOGICAL: dict[str, Callable[[AvroType], ScalarColumn]] = {
    "decimal": _decimal,
    "uuid": lambda type_: UUID if type_.kind == "fixed" else TEXT,
    "date": _moment("date", pa.date32(), pa.int32(), DAY, timedelta(days=1)),
    "time-millis": lambda _: INT32,
    "time-micros": lambda _: INT64,
    "timestamp-millis": _moment("timestamp-millis", INSTANT, pa.int64(), EPOCH_UTC, _MILLISECOND),
    "timestamp-micros": _moment("timestamp-micros", INSTANT, pa.int64(), EPOCH_UTC, _MICROSECOND),
    "timestamp-nanos": lambda _: INT64,
    "local-timestamp-millis": _moment("local-timestamp-millis", LOCAL_TIME, pa.int64(), EPOCH, _MILLISECOND),
    "local-timestamp-micros": _moment("local-timestamp-micros", LOCAL_TIME, pa.int64(), EPOCH, _MICROSECOND),
    "local-timestamp-nanos": lambda _: INT64,
    "duration": lambda _: _DURATION,
}
