"""Property types: check that a value has a type, and convert it to the canonical form in which values are compared.

Integers are compared as numbers, timestamps as instants, binary as bytes, and everything else character by character
(D5). Text on the wire must have the form of its type: ``5``, not ``05``, for an integer. A native value (structured
JSON, AMQP) must have the right type or be such text.

Spec: message/spec.md#property-definitions; cloudevents-spec.md#type-system; docs/semantics.md D5-D11.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from wirebook.bindings.attributes import FORBIDDEN, INT32, URI_PATTERN, URI_REFERENCE_PATTERN
from wirebook.bindings.json_event import canonical_text

UINT32: Final = (0, 2**32 - 1)
ULONG: Final = (0, 2**64 - 1)


class NotOfType(ValueError):
    """The value does not have the type. The message of the error describes the allowed values."""


class Canonical(NamedTuple):
    """A value in its canonical form. `kind` distinguishes 1 from true, and text from bytes."""

    kind: str
    value: Any


# -- texts ----------------------------------------------------------------------------------------------------------

SYMBOL = re.compile(r"[A-Za-z0-9_]+\Z")
INTEGER = re.compile(r"(?:0|-?[1-9][0-9]*)\Z")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z")
# RFC 3339 appendix A, plus fractions of a second as in ISO 8601. No sign; weeks only without other units (D8).
DURATION = re.compile(
    r"P(?:[0-9]+W|(?=[0-9T])(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?"
    r"(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:[.,][0-9]+)?S)?)?)\Z"
)
URI = re.compile(rf"{URI_PATTERN}\Z")
URI_REFERENCE = re.compile(rf"{URI_REFERENCE_PATTERN}\Z")
MAX_INTEGER_DIGITS: Final = 40


def text_of(value: Any) -> str:
    if not isinstance(value, str):
        raise NotOfType("a string")
    if value.isascii() and value.isprintable():
        return value
    if character := FORBIDDEN.search(value):
        raise NotOfType(f"a string without the control character or noncharacter U+{ord(character[0]):04X}")
    return value


def _text(value: Any) -> Canonical:
    return Canonical("text", text_of(value))


def _matching(pattern: re.Pattern[str], allowed: str) -> Callable[[Any], Canonical]:
    def check(value: Any) -> Canonical:
        if not pattern.match(text_of(value)):
            raise NotOfType(allowed)
        return Canonical("text", value)

    return check


def _ascii(value: Any) -> Canonical:
    if not text_of(value).isascii():
        raise NotOfType("a string of ASCII characters")
    return Canonical("text", value)


def _duration(value: Any) -> Canonical:
    if not DURATION.match(text_of(value)) or value.endswith("T"):
        raise NotOfType("a duration as in RFC 3339 appendix A, e.g. 'PT0.5S'")
    return Canonical("duration", value.replace(",", "."))


def _uuid(value: Any) -> Canonical:
    if not UUID.match(text_of(value)):
        raise NotOfType("a UUID")
    return Canonical("uuid", value.lower())


# -- numbers and booleans -------------------------------------------------------------------------------------------


def integer_in(low: int, high: int) -> Callable[[Any], Canonical]:
    """Return the check for an integer from `low` to `high`, which may be native or canonical decimal text."""
    allowed = f"an integer from {low} to {high}"

    def check(value: Any) -> Canonical:
        number = _integer_value(value, allowed)
        if not low <= number <= high:
            raise NotOfType(allowed)
        return Canonical("number", number)

    return check


def _integer_value(value: Any, allowed: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise NotOfType(allowed)
    if isinstance(value, int):
        return value
    if len(value) > MAX_INTEGER_DIGITS or not INTEGER.match(value):
        raise NotOfType(f"{allowed}, as its canonical decimal text")
    return int(value)


def _number(value: Any) -> Canonical:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise NotOfType("a number")
    if isinstance(value, str) and (len(value) > 400 or not NUMBER.match(value)):
        raise NotOfType("a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise NotOfType("a number of IEEE 754 double precision")
    return Canonical("number", number)


def _boolean(value: Any) -> Canonical:
    if isinstance(value, bool):
        return Canonical("boolean", value)
    if value not in ("true", "false"):
        raise NotOfType("'true' or 'false'")
    return Canonical("boolean", value == "true")


def _stringified_integer(value: Any) -> Canonical:
    if not INTEGER.match(text_of(value)):
        raise NotOfType("a string that is an integer")
    return Canonical("text", value)


def _binary(value: Any) -> Canonical:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Canonical("bytes", bytes(value))
    try:
        return Canonical("bytes", base64.b64decode(text_of(value), validate=True))
    except (binascii.Error, ValueError) as error:
        raise NotOfType("bytes, or their base64 text with padding (RFC 4648 section 4)") from error


def is_text_of(literal: Canonical, text: str) -> bool:
    """Whether `text` is the canonical text of `literal`, if that is a number or a boolean of the type ``any``."""
    if literal.kind not in ("number", "boolean"):
        return False
    try:
        return text == canonical_text(literal.value) or canonical(literal.kind, text) == literal
    except NotOfType:
        return False


def _any(value: Any) -> Canonical:
    """Accept any value, null included. Values are equal if they are the same JSON value, text or bytes."""
    if isinstance(value, bool):
        return Canonical("boolean", value)
    if isinstance(value, (int, float)):
        return Canonical("number", value)
    if isinstance(value, (bytes, bytearray)):
        return Canonical("bytes", bytes(value))
    return Canonical("text" if isinstance(value, str) else "json", value)


# -- timestamps -----------------------------------------------------------------------------------------------------

RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII)
SENTINEL = re.compile(r"0000-01-01[Tt]00:00:00(?:\.0+)?(?:[Zz]|[+-]00:00)\Z")
LEGACY_SENTINEL = re.compile(r"(?:01-01-0000[Tt]00:00:00(?:\.0+)?(?:[Zz]|[+-]00:00)|0001-01-01T00:00:00\+00:00)\Z")
MAX_FRACTION_DIGITS: Final = 100


def is_current_time(value: Any) -> bool:
    """Whether `value` stands for the time of building (R11, D10)."""
    return isinstance(value, str) and bool(SENTINEL.match(value) or LEGACY_SENTINEL.match(value))


def _timestamp(value: Any) -> Canonical:
    return Canonical("instant", instant_of(text_of(value)))


def instant_of(text: str) -> tuple[int, str]:
    """Convert an RFC 3339 time to seconds since 1970 and the digits of the fraction, without trailing zeros.

    ``:60`` is a leap second. At most 100 digits are kept. Raises: NotOfType.
    """
    parts = RFC3339.match(text)
    if not parts:
        raise NotOfType("a time as in RFC 3339, with an offset")
    year, month, day, hour, minute, second = (int(part) for part in parts.groups()[:6])
    offset = _offset_seconds(parts[8])
    valid = 1 <= month <= 12 and 1 <= day <= _days_in(year, month) and hour <= 23 and minute <= 59 and second <= 60
    if not valid or offset is None:
        raise NotOfType("a time that exists, as in RFC 3339")
    seconds = _days_since_1970(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset
    return seconds, (parts[7] or "").rstrip("0")[:MAX_FRACTION_DIGITS]


def _offset_seconds(text: str) -> int | None:
    if text in "Zz":
        return 0
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 23 or minutes > 59:
        return None
    return (1 if text[0] == "+" else -1) * (hours * 3600 + minutes * 60)


def _days_in(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days_since_1970(year: int, month: int, day: int) -> int:
    """Days since 1970 in the proleptic Gregorian calendar. Unlike in `datetime`, the year 0 is valid."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


# -- types ----------------------------------------------------------------------------------------------------------

CHECKS: dict[str, Callable[[Any], Canonical]] = {
    "any": _any,
    "ascii": _ascii,
    "binary": _binary,
    "boolean": _boolean,
    "duration": _duration,
    "integer": integer_in(*INT32),
    "number": _number,
    "string": _text,
    "stringified integer": _stringified_integer,
    "symbol": _matching(SYMBOL, "letters, digits and underscores"),
    "timestamp": _timestamp,
    "uint32": integer_in(*UINT32),
    "ulong": integer_in(*ULONG),
    "uri": _matching(URI, "an absolute URI (RFC 3986)"),
    "urireference": _matching(URI_REFERENCE, "a URI reference (RFC 3986)"),
    "uritemplate": _text,
    "uuid": _uuid,
}
ALIASES = {
    "var": "any",
    "datetime": "timestamp",
    "date-time": "timestamp",
    "float": "number",
    "double": "number",
    "uri-reference": "urireference",
    "uri-template": "uritemplate",
}
DECLARABLE = frozenset(CHECKS) - {"ascii", "uint32"}


def type_name(declared: Any) -> str | None:
    """The type that `declared` names, or None if it is unknown (D9)."""
    name = ALIASES.get(declared, declared) if isinstance(declared, str) else None
    return name if name in DECLARABLE else None


def canonical(type_: str, value: Any) -> Canonical:
    """Convert `value` to its canonical form. Raises: NotOfType, with a description of what `type_` allows."""
    return CHECKS[type_](value)
