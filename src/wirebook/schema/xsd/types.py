"""The columns of XML Schema simple types: they convert the text of a value, with white space normalised, to a cell.

Rule: a cell is exact or null, and a value without an exact cell goes to ``_rest`` as text. There are two exceptions,
whose cell is not null although the text also goes to ``_rest``: a dateTime without an offset is read as UTC, and a date
with an offset is stored without it.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from wirebook.schema.layout import NOTHING, Cell, ColumnLayout, List, ScalarColumn
from wirebook.schema.scalar_columns import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT8,
    INT16,
    INT32,
    INT64,
    LOCAL_TIME,
    TEXT,
    TIMESTAMP,
    WIDE,
)
from wirebook.schema.xsd.source import XS

SimpleType = Any  # of xmlschema
_SPACES = re.compile(r"[ \t\n\r]+")
_OFFSET = re.compile(r"(?:Z|[+-][0-9]{2}:[0-9]{2})\Z")
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}\Z")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\Z")
INT_LIMITS = (-(2**63), 2**63 - 1)


def whitespace_normalizer(type_: SimpleType) -> Callable[[str], str]:
    """Return the function that normalises white space as a type requires."""
    rule = type_.white_space
    if rule == "preserve" or type_.name == f"{XS}anySimpleType":
        return str
    if rule == "replace":
        return lambda text: text.translate({9: " ", 10: " ", 13: " "})
    return lambda text: _SPACES.sub(" ", text).strip(" ")


def _scalar(name: str, arrow: pa.DataType, cell: Callable[[str], Cell]) -> ScalarColumn:
    def checked(value: Any) -> Cell:
        return cell(value) if isinstance(value, str) else (None, value)

    return ScalarColumn(name, arrow, arrow, {}, checked)


def _boolean(text: str) -> Cell:
    return {"true": True, "1": True, "false": False, "0": False}.get(text), NOTHING


def _integer(name: str, leaf: ScalarColumn) -> ScalarColumn:
    def cell(text: str) -> Cell:
        number, left = leaf.cell(int(text)) if _INTEGER.match(text) else (None, text)
        return number, NOTHING if left is NOTHING else text

    return _scalar(name, leaf.arrow, cell)


def _whole(precision: int) -> ScalarColumn:
    limit = min(10**precision - 1, WIDE)

    def cell(text: str) -> Cell:
        number = int(text) if _INTEGER.match(text) else limit + 1
        return (Decimal(number), NOTHING) if abs(number) <= limit else (None, text)

    return _scalar("wide integer", pa.decimal128(precision, 0), cell)


def _decimal(precision: int, scale: int) -> ScalarColumn:
    step = Decimal(1).scaleb(-scale)

    def cell(text: str) -> Cell:
        if len(text) > 400 or not _DECIMAL.match(text):
            return None, text
        number = Decimal(text)
        try:
            exact = number.quantize(step, context=_CONTEXT)
        except InvalidOperation:
            return None, text
        fits = exact == number and len(exact.as_tuple().digits) <= precision
        return (exact, NOTHING) if fits else (None, text)

    return _scalar("decimal", pa.decimal128(precision, scale), cell)


_CONTEXT = Context(prec=38)


def _floating(text: str) -> Cell:
    return float(text.replace("INF", "inf").replace("NaN", "nan")), NOTHING


def _moment(text: str) -> Cell:
    if _OFFSET.search(text):
        return TIMESTAMP.cell(text)
    cell, _ = TIMESTAMP.cell(f"{text}Z")
    return cell, text


def _local_moment(text: str) -> Cell:
    cell, left = TIMESTAMP.cell(f"{text}Z")
    naive = cell.replace(tzinfo=None) if isinstance(cell, datetime) else None
    return naive, NOTHING if left is NOTHING else text


def _day(text: str) -> Cell:
    bare = _OFFSET.sub("", text)
    cell, left = DATE.cell(bare)
    return cell, NOTHING if left is NOTHING and bare == text else text


def _base64(text: str) -> Cell:
    try:
        return binascii.a2b_base64(text.replace(" ", ""), strict_mode=True) if text else b"", NOTHING
    except ValueError:
        return None, text


def _hexadecimal(text: str) -> Cell:
    try:
        return bytes.fromhex(text), NOTHING
    except ValueError:
        return None, text


DATE_TIME = _scalar("dateTime", INSTANT, _moment)
LOCAL_DATE_TIME = _scalar("local dateTime", LOCAL_TIME, _local_moment)
BUILTIN: dict[str, ScalarColumn] = {
    "boolean": _scalar("boolean", BOOLEAN.arrow, _boolean),
    "float": _scalar("float", FLOAT.arrow, _floating),
    "double": _scalar("double", DOUBLE.arrow, _floating),
    "byte": _integer("byte", INT8),
    "unsignedByte": _integer("unsigned byte", INT16),
    "short": _integer("short", INT16),
    "unsignedShort": _integer("unsigned short", INT32),
    "int": _integer("int", INT32),
    "unsignedInt": _integer("unsigned int", INT64),
    "long": _integer("long", INT64),
    "unsignedLong": _whole(20),
    "dateTime": DATE_TIME,
    "dateTimeStamp": DATE_TIME,
    "date": _scalar("date", DATE.arrow, _day),
    "base64Binary": _scalar("base64", BYTES.arrow, _base64),
    "hexBinary": _scalar("hexadecimal", BYTES.arrow, _hexadecimal),
}


def scalar_column(type_: SimpleType) -> ColumnLayout:
    """Return the column layout of a simple type."""
    if type_.is_union():
        layouts = [scalar_column(member_type) for member_type in members_of(type_)]
        return layouts[0] if layouts and all(layout is layouts[0] for layout in layouts) else TEXT
    if type_.is_list():
        return List(scalar_column(item_of(type_)))
    name = builtin_name(type_)
    if name == "decimal":
        return _sized_decimal(type_)
    if name == "integer" or name.endswith("Integer"):
        return _sized_integer(type_)
    if name == "dateTime" and _facet(type_, "explicitTimezone") == "prohibited":
        return LOCAL_DATE_TIME
    return BUILTIN.get(name, TEXT)


def members_of(type_: SimpleType) -> list[SimpleType]:
    """Return the member types of a union type."""
    while not hasattr(type_, "member_types"):
        type_ = type_.base_type
    return list(type_.member_types)


def item_of(type_: SimpleType) -> SimpleType:
    """Return the item type of a list type."""
    while not hasattr(type_, "item_type"):
        type_ = type_.base_type
    return type_.item_type


def builtin_name(type_: SimpleType) -> str:
    """Return the name of the nearest built-in type that a type is derived from, without its namespace."""
    while type_ is not None and not str(type_.name or "").startswith(XS):
        type_ = type_.base_type
    return "" if type_ is None else str(type_.name).removeprefix(XS)


def _facet(type_: SimpleType, name: str) -> Any:
    return getattr(type_.get_facet(f"{XS}{name}"), "value", None)


def _sized_decimal(type_: SimpleType) -> ScalarColumn:
    total, fraction = _facet(type_, "totalDigits"), _facet(type_, "fractionDigits")
    if fraction is None or fraction > 37:
        return _DECIMAL_COLUMN
    if fraction == 0:
        return _whole(min(total or 38, 38))
    return _decimal(min(total or 38, 38), min(fraction, total or 38, 38))


_DECIMAL_COLUMN = _decimal(38, 18)


def _sized_integer(type_: SimpleType) -> ScalarColumn:
    total, low, high = _facet(type_, "totalDigits"), type_.min_value, type_.max_value
    bounded = isinstance(low, int) and isinstance(high, int) and INT_LIMITS[0] <= low <= high <= INT_LIMITS[1]
    return BUILTIN["long"] if bounded or (total is not None and total <= 18) else _whole(38)
