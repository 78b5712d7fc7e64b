"""The columns of scalar values: a constant or a constructor for each type.

Rule: a cell is exact or null, and a value that does not fit exactly goes to ``_rest``. Only two kinds of timestamps
have both an approximate cell and the full text in ``_rest``: one finer than microseconds (truncated), and a leap second
(stored as the second after it).
"""

from __future__ import annotations

import binascii
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Context, Decimal
from typing import Any

import msgspec
import pyarrow as pa

from wirebook.schema.digits import integers_between
from wirebook.schema.layout import NOTHING, Cell, ColumnLayout, List, Map, ScalarColumn, Struct, json_text

_CONTEXT = Context(prec=60)
EXACT = 2**53
"""A 64-bit float represents every integer up to this one exactly."""
INSTANT = pa.timestamp("us", tz="UTC")
LOCAL_TIME = pa.timestamp("us")
_INT_TEXT = re.compile(r"-?(?:0|[1-9][0-9]*)\Z")
_DECIMAL_TEXT = re.compile(r"-?(0|[1-9][0-9]*)(?:\.([0-9]+))?\Z")
_INSTANT_TEXT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:)([0-9]{2})(?:\.([0-9]+))?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))\Z"
)
# The instants that Arrow's cast accepts and Python's datetime can represent, a subset of `_INSTANT_TEXT`.
_INSTANT_FITS = "^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$"


def unchanged(value: Any) -> Cell:
    """Return the value as its own cell."""
    return value, NOTHING


def _text(value: Any) -> Cell:
    return (value, NOTHING) if isinstance(value, str) else (None, value)


def _boolean(value: Any) -> Cell:
    return (value, NOTHING) if isinstance(value, bool) else (None, value)


def _number(value: Any) -> Cell:
    if isinstance(value, float):
        return value, NOTHING
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**1023 and int(float(value)) == value:
        return float(value), NOTHING
    return None, value


TEXT = ScalarColumn("text", pa.string(), pa.string(), {"type": ["string", "null"]}, _text, direct=str)
BOOLEAN = ScalarColumn("boolean", pa.bool_(), pa.bool_(), {"type": ["boolean", "null"]}, _boolean, direct=bool)
NUMBER = ScalarColumn(
    "number",
    pa.float64(),
    pa.float64(),
    {"type": ["number", "null"], "minimum": -EXACT, "maximum": EXACT},
    _number,
    direct=float,
)


FLOAT = ScalarColumn("float", pa.float32(), pa.float32(), {}, unchanged, direct=float)
DOUBLE = ScalarColumn("double", pa.float64(), pa.float64(), {}, unchanged, direct=float)
BYTES = ScalarColumn("bytes", pa.binary(), pa.binary(), {}, unchanged, direct=bytes)


def integer(low: int, high: int, arrow: pa.DataType) -> ScalarColumn:
    """Return the column, of type `arrow`, of JSON numbers without a fraction (such as ``1.0``) from `low` to `high`."""

    def cell(value: Any) -> Cell:
        if isinstance(value, float) and value.is_integer() and low <= value <= high:
            return int(value), NOTHING
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value, NOTHING
        return None, value

    return ScalarColumn("integer", arrow, arrow, {"type": ["integer", "null"], "minimum": low, "maximum": high}, cell)


INT8 = integer(-(2**7), 2**7 - 1, pa.int8())
INT16 = integer(-(2**15), 2**15 - 1, pa.int16())
INT32 = integer(-(2**31), 2**31 - 1, pa.int32())
INT64 = integer(-(2**63), 2**63 - 1, pa.int64())
WIDE = 10**38 - 1


def _wide(value: Any) -> Cell:
    if isinstance(value, float) and value.is_integer() and abs(value) <= WIDE:
        return Decimal(int(value)), NOTHING
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= WIDE:
        return Decimal(value), NOTHING
    return None, value


# Arrow rounds numbers beyond 2**53 when it converts them, so `fit` converts those.
WIDE_INTEGER = ScalarColumn(
    "wide integer",
    pa.decimal128(38, 0),
    pa.decimal128(38, 0),
    {"type": ["integer", "null"], "minimum": -EXACT, "maximum": EXACT},
    _wide,
)


def integer_text(low: int, high: int, arrow: pa.DataType) -> ScalarColumn:
    """Return the column of integers from `low` to `high` that are written as JSON strings.

    `arrow` is a decimal type for integers of more than 64 bits; integers with more digits than it has do not fit.
    """
    if pa.types.is_decimal(arrow):
        most = 10**arrow.precision - 1
        low, high = max(low, -most), min(high, most)

    def cell(value: Any) -> Cell:
        if not isinstance(value, str) or len(value) > 40 or not _INT_TEXT.match(value):
            return None, value
        number = int(value)
        if not low <= number <= high:
            return None, value
        return Decimal(number) if pa.types.is_decimal(arrow) else number, NOTHING

    fits = {"type": ["string", "null"], "pattern": f"^{integers_between(low, high)}$"}
    return ScalarColumn("integer text", arrow, pa.string(), fits, cell)


def decimal_text(precision: int, scale: int) -> ScalarColumn:
    """Return the column of decimals written as JSON strings: `TEXT` if no decimal type has this precision and scale."""
    if not (0 < precision <= 38 and 0 <= scale <= precision):
        return TEXT
    whole = precision - scale

    def cell(value: Any) -> Cell:
        match = _DECIMAL_TEXT.match(value) if isinstance(value, str) else None
        if match is None or len(match[1].lstrip("0")) > whole or len((match[2] or "").rstrip("0")) > scale:
            return None, value
        return Decimal(value).quantize(Decimal(1).scaleb(-scale), context=_CONTEXT), NOTHING

    digits = f"(0|[1-9][0-9]{{0,{whole - 1}}})" if whole else "0"
    fraction = f"(\\.[0-9]{{1,{scale}}})?" if scale else ""
    fits = {"type": ["string", "null"], "pattern": f"^-?{digits}{fraction}$"}
    return ScalarColumn("decimal text", pa.decimal128(precision, scale), pa.string(), fits, cell)


def _instant(value: Any) -> Cell:
    match = _INSTANT_TEXT.match(value) if isinstance(value, str) else None
    if match is None:
        return None, value
    day, clock, second, fraction, sign, hours, minutes = match.groups()
    leap = second == "60"
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{'59' if leap else second}")
        offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (-1 if sign == "-" else 1)
        moment = moment.replace(microsecond=int((fraction or "")[:6].ljust(6, "0")), tzinfo=timezone(offset))
        moment = moment.astimezone(UTC) + timedelta(seconds=int(leap))
    except (ValueError, OverflowError):
        return None, value
    exact = not leap and not (fraction or "")[6:].strip("0")
    return moment, NOTHING if exact else value


TIMESTAMP = ScalarColumn(
    "timestamp",
    INSTANT,
    pa.string(),
    {"type": ["string", "null"], "format": "date-time", "pattern": _INSTANT_FITS},
    _instant,
)


def _date(value: Any) -> Cell:
    try:
        return (date.fromisoformat(value), NOTHING) if len(value) == 10 else (None, value)
    except (ValueError, TypeError):
        return None, value


DATE = ScalarColumn(
    "date",
    pa.date32(),
    pa.string(),
    {"type": ["string", "null"], "format": "date", "pattern": "^[12][0-9]{3}-[0-9]{2}-[0-9]{2}$"},
    _date,
)


def _base64(value: Any) -> Cell:
    try:
        data = binascii.a2b_base64(value, strict_mode=True) if value else b""
    except (ValueError, TypeError):
        return None, value
    return (data, NOTHING) if binascii.b2a_base64(data, newline=False).decode() == value else (None, value)


def _load_base64(values: list[Any]) -> pa.Array:
    return pa.array(map(binascii.a2b_base64, values), pa.binary())


BASE64_PATTERN = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"
BASE64 = ScalarColumn(
    "base64",
    pa.binary(),
    pa.string(),
    {"type": ["string", "null"], "pattern": BASE64_PATTERN},
    _base64,
    load=_load_base64,
)


def _json(value: Any) -> Cell:
    return json_text(value), NOTHING


def _load_json(values: list[Any]) -> pa.Array:
    lines = msgspec.json.Encoder().encode_lines(values)  # no raw newline occurs inside a JSON text
    return pa.array(bytes(lines).split(b"\n")[:-1], pa.binary()).cast(pa.string())


JSON = ScalarColumn("json", pa.string(), pa.string(), {}, _json, load=_load_json)


def value_of(layout: ColumnLayout, value: Any) -> Any:
    """Return a value that fits a layout, with its scalars, except those of JSON columns, replaced by their cells."""
    if layout is JSON or value is None:
        return value
    if isinstance(layout, Struct):
        return {name: value_of(member, value[name]) for name, member in layout.members.items() if name in value}
    if isinstance(layout, List):
        return [value_of(layout.item, item) for item in value]
    if isinstance(layout, Map):
        return {name: value_of(layout.values, item) for name, item in value.items()}
    return layout.fit(value)[0]
