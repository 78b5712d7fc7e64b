"""Convert values of Avro's logical types to the numbers and bytes that encode them.

A value that does not belong to the logical type is returned unchanged, because it may already be encoded.

Spec: Avro 1.11 "Logical Types"; docs/types.md
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any
from uuid import UUID

from wirebook.schema.avro.columns import DAY, DURATION, EPOCH, EPOCH_UTC
from wirebook.schema.avro.types import AvroType
from wirebook.schema.layout import NOTHING, ScalarColumn
from wirebook.schema.scalar_columns import DATE, TIMESTAMP

_EXACT = Context(prec=1000, traps=[Inexact, InvalidOperation])
_DECIMAL_TEXT = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?\Z")


def encoded_value(type_: AvroType, value: Any) -> Any:
    """Return the number, bytes or string that encodes `value`."""
    if not type_.logical:
        return value
    encode = ENCODED.get(type_.logical)
    try:
        return value if encode is None else encode(type_, value)
    except (InvalidOperation, Inexact, OverflowError, ValueError, struct.error):
        return value


def from_plain(type_: AvroType, value: Any) -> Any:
    """Return the value of a logical type from plain JSON: a time (RFC 3339), a date (ISO 8601) or a decimal.

    For a decimal, a string of digits is the number itself, not the bytes that encode it.
    """
    read = PLAIN.get(type_.logical or "")
    return value if read is None or isinstance(value, bool) else read(value)


def _read(column: ScalarColumn) -> Callable[[Any], Any]:
    """Return a function that converts strings to cells of a column, and returns any other value unchanged."""

    def read(value: Any) -> Any:
        cell, left = column.cell(value) if isinstance(value, str) else (None, value)
        return value if cell is None or left is not NOTHING else cell

    return read


_instant = _read(TIMESTAMP)


def _local(value: Any) -> Any:
    moment = _instant(f"{value}Z") if isinstance(value, str) else value
    return moment.replace(tzinfo=None) if isinstance(moment, datetime) and moment is not value else value


def _number(value: Any) -> Any:
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return Decimal(str(value))
    return Decimal(value) if isinstance(value, str) and _DECIMAL_TEXT.match(value) else value


PLAIN: dict[str, Callable[[Any], Any]] = {
    "decimal": _number,
    "date": _read(DATE),
    "timestamp-millis": _instant,
    "timestamp-micros": _instant,
    "local-timestamp-millis": _local,
    "local-timestamp-micros": _local,
}


def _moment(unit: timedelta) -> Callable[[AvroType, Any], Any]:
    def encoded(type_: AvroType, value: Any) -> Any:
        if not isinstance(value, datetime):
            return value
        local = str(type_.logical).startswith("local")
        if local is not (value.tzinfo is None):
            return value
        count, rest = divmod(value - (EPOCH if local else EPOCH_UTC), unit)
        return value if rest else count

    return encoded


def _days(type_: AvroType, value: Any) -> Any:  # noqa: ARG001
    return (value - DAY).days if isinstance(value, date) and not isinstance(value, datetime) else value


def _uuid(type_: AvroType, value: Any) -> Any:
    if type_.kind == "string":
        return str(value) if isinstance(value, UUID) else value
    if isinstance(value, str) and len(value) == 36:
        try:
            value = UUID(value)
        except ValueError:
            return value
    return value.bytes if isinstance(value, UUID) else value


def _decimal(type_: AvroType, value: Any) -> Any:
    if not isinstance(value, Decimal):
        return value
    number = int(value.scaleb(type_.attributes["scale"], _EXACT).to_integral_exact(context=_EXACT))
    if abs(number) >= 10 ** min(type_.attributes["precision"], 1000):
        return value
    size = type_.size if type_.kind == "fixed" else (number.bit_length() // 8) + 1
    return number.to_bytes(size, "big", signed=True)


def _duration(type_: AvroType, value: Any) -> Any:  # noqa: ARG001
    if isinstance(value, dict) and value.keys() == set(DURATION.names):
        return struct.pack("<III", *(value[part] for part in DURATION.names))
    return value


ENCODED: dict[str, Callable[[AvroType, Any], Any]] = {
    "decimal": _decimal,
    "uuid": _uuid,
    "date": _days,
    "timestamp-millis": _moment(timedelta(milliseconds=1)),
    "timestamp-micros": _moment(timedelta(microseconds=1)),
    "local-timestamp-millis": _moment(timedelta(milliseconds=1)),
    "local-timestamp-micros": _moment(timedelta(microseconds=1)),
    "duration": _duration,
}
