"""Writes the values of XML Schema simple types as text."""

from __future__ import annotations

import base64
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from wirebook.schema.xsd.types import SimpleType, builtin_name, item_of

TEXTS = frozenset((
    "string", "normalizedString", "token", "language", "Name", "NCName", "NMTOKEN", "ID", "IDREF", "ENTITY", "anyURI",
    "QName", "NOTATION", "duration", "dayTimeDuration", "yearMonthDuration", "time", "gYear", "gYearMonth", "gMonth",
    "gMonthDay", "gDay",
))  # fmt: skip
FLOATS = frozenset(("float", "double"))


def as_text(type_: SimpleType, value: Any) -> str | None:
    """Return a value as the text of a simple type; None if the type has no text for the class of the value."""
    if type_.is_list():
        items = value if isinstance(value, list | tuple) else [value]
        texts = [as_text(item_of(type_), item) for item in items]
        return None if None in texts else " ".join(text for text in texts if text is not None)
    name = "" if type_.is_union() else builtin_name(type_)
    if isinstance(value, str):
        return value
    return None if name in TEXTS else _written(value, name)


def _written(value: Any, name: str) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _floating(value, name)
    if isinstance(value, int | Decimal):
        return str(value) if isinstance(value, int) else format(value, "f")
    if isinstance(value, bytes):
        return value.hex().upper() if name == "hexBinary" else base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return _moment(value)
    return value.isoformat() if isinstance(value, date) else None


def _floating(value: float, name: str) -> str | None:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"
    if name in FLOATS:
        return repr(value)
    text = format(Decimal(repr(value)), "f")
    return text.removesuffix(".0") if value.is_integer() else text


def _moment(value: datetime) -> str | None:
    if value.tzinfo is None:
        return value.isoformat()
    try:
        return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
    except OverflowError:  # in UTC, before the year 1 or after the year 9999
        return None
