"""AMQP values of types that JSON lacks: objects with one member named after the type, such as ``{"ulong": 5}``.

`native` returns the Python value: bool, int, float, str, bytes or None. Timestamps and UUIDs are subclasses of `str`,
so that a native value differs from a string with the same text (D5, D31).

Any other object or array is an AMQP map or list, and is not converted.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any, Final

from wirebook.bindings.wire import TIME_PATTERN


class Timestamp(str):
    """A native timestamp as RFC 3339 text."""

    __slots__ = ()


class Uuid(str):
    """A native UUID as text."""

    __slots__ = ()


NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")
"""Floating-point numbers that JSON does not have."""

_TIME = re.compile(TIME_PATTERN)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z")


def _integer(low: int, high: int) -> Callable[[Any], Any]:
    def read(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"an integer from {low} to {high}")
        return value

    return read


def _of(kind: type | tuple[type, ...], expected: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(expected)
        return value

    return read


def _number(value: Any) -> int | float | str:
    if value in NOT_FINITE:
        return str(value)
    return _of((int, float), "a number, 'NaN', 'Infinity' or '-Infinity'")(value)  # type: ignore[no-any-return]


def _timestamp(value: Any) -> Timestamp:
    if not isinstance(value, str) or not _TIME.match(value):
        raise ValueError("an RFC 3339 time")
    return Timestamp(value)


def _uuid(value: Any) -> Uuid:
    if not isinstance(value, str) or not _UUID.match(value):
        raise ValueError("a UUID")
    return Uuid(value)


def _symbol(value: Any) -> str:
    if not isinstance(value, str) or not value.isascii():
        raise ValueError("a text of ASCII characters")
    return value


def _binary(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise ValueError("base64 with padding") from None


TYPES: Final[dict[str, Callable[[Any], Any]]] = {  # type -> converter to the Python value
    "null": _of(type(None), "null"),
    "boolean": _of(bool, "true or false"),
    "ubyte": _integer(0, 2**8 - 1),
    "ushort": _integer(0, 2**16 - 1),
    "uint": _integer(0, 2**32 - 1),
    "ulong": _integer(0, 2**64 - 1),
    "byte": _integer(-(2**7), 2**7 - 1),
    "short": _integer(-(2**15), 2**15 - 1),
    "int": _integer(-(2**31), 2**31 - 1),
    "long": _integer(-(2**63), 2**63 - 1),
    "float": _number,
    "double": _number,
    "decimal32": _of((int, float, str), "a number, or a number in a string"),
    "decimal64": _of((int, float, str), "a number, or a number in a string"),
    "decimal128": _of((int, float, str), "a number, or a number in a string"),
    "char": _of((int, str), "a character, or its code point"),
    "timestamp": _timestamp,
    "uuid": _uuid,
    "binary": _binary,
    "string": _of(str, "a string"),
    "symbol": _symbol,
    "list": _of(list, "an array"),
    "array": _of(list, "an array"),
    "map": _of((dict, list), "an object, or an array of [key, value]"),
}


def type_of(value: Any) -> str | None:
    """Return the AMQP type if the value is an object with one member named after a type, else None."""
    if type(value) is dict and len(value) == 1:
        (name,) = value
        return name if name in TYPES else None
    return None


def native(value: Any) -> Any:
    """Return the Python value of a value in a section. Raises: ValueError; its text is the expected value."""
    name = type_of(value)
    return value if name is None else TYPES[name](value[name])


def natives(section: dict[str, Any] | None) -> dict[str, Any]:
    """Return a section with Python values."""
    if not section:
        return {}
    return {name: native(value) if type(value) is dict else value for name, value in section.items()}


def captured(value: Any) -> Any:
    """Return a value in the capture format: the inverse of `native` for the types that CloudEvents and bindings use."""
    if isinstance(value, bytes):
        return {"binary": base64.b64encode(value).decode()}
    if isinstance(value, Timestamp):
        return {"timestamp": str(value)}
    if isinstance(value, Uuid):
        return {"uuid": str(value)}
    return value
