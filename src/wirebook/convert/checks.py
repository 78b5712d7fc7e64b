"""Shared by the converters: checks, the error for an inexpressible message, and times in milliseconds since 1970."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from wirebook.bindings.headers import CONTROL, NOT_IN_NAME
from wirebook.bindings.wire import AnyMessage, Base64, Pair, WireMessage, preview
from wirebook.problems import Problem, WirebookError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
Message = TypeVar("Message", bound=WireMessage)


def not_expressible(library: str, slot: str, expected: str, actual: Any) -> WirebookError:
    """Return the error for a value that the library cannot express."""
    text = f"{library} cannot express this message: {slot} must be {expected}"
    return WirebookError(Problem("not-expressible", text, slot=slot, expected=expected, actual=preview(actual)))


def of_protocol(wire: AnyMessage, library: str, *classes: type[Message]) -> Message:
    """Return the message if it is of one of the classes. Raises: WirebookError (``not-expressible``)"""
    if isinstance(wire, classes):
        return wire
    raise not_expressible(library, "protocol", " or ".join(cls.protocol for cls in classes), wire.protocol)


def check_headers(lines: Iterable[Pair] | None, library: str) -> None:
    """Reject headers that could inject other headers. Raises: WirebookError (``not-expressible``)"""
    for name, value in lines or ():
        slot = f"protocoloptions.headers.{name}"
        if NOT_IN_NAME.search(name):
            raise not_expressible(library, slot, "a name of letters, digits and !#$%&'*+.^_`|~-", name)
        if CONTROL.search(value.base64.decode("latin-1") if isinstance(value, Base64) else value):
            raise not_expressible(
                library, slot, "without control characters", value if isinstance(value, str) else "bytes"
            )


def required(library: str, slot: str, value: str | None) -> str:
    """Return a value that the library requires. Raises: WirebookError (``missing-required``)"""
    if value is None:
        raise WirebookError(
            Problem("missing-required", f"{library} requires {slot}, and the message has none", slot=slot)
        )
    return value


def time_of(milliseconds: int) -> str:
    """Return a time in milliseconds as RFC 3339 text. Raises: OverflowError outside the years 1 to 9999"""
    return (EPOCH + milliseconds * MILLISECOND).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds_of(time: str) -> int:
    """Return a time in milliseconds. Raises: ValueError for a year other than 1 to 9999, and for a leap second"""
    return (datetime.fromisoformat(time.upper()) - EPOCH) // MILLISECOND
