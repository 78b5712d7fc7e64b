"""Checks of the values that writers put on the wire, one for each type of slot.

A check yields a problem with the slot, the allowed values and the actual value. Writers are strict, readers tolerant.

Spec: docs/semantics.md D21, D28-D34
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from wirebook.bindings.wire import preview
from wirebook.problems import Problem

SURROGATE: Final = re.compile("[\ud800-\udfff]")
MQTT_STRING: Final = 65_535  # bytes of UTF-8; mqtt-v5.0#1.5.4

Check = Callable[[str, Any], Iterator[Problem]]
"""Yields the problems of a value; the arguments are the slot and the value."""


def rejected(code: str, slot: str, expected: str, actual: Any) -> Problem:
    """Return the problem of a value that cannot be written."""
    text = f"{slot}: expected {expected}, got {preview(actual)!r}"
    return Problem(code, text, slot=slot, expected=expected, actual=_printable(actual))


def _printable(value: Any) -> Any:
    """Return a preview of a value that can be written as JSON: without lone surrogates."""
    if isinstance(value, str):
        return SURROGATE.sub("?", preview(value))
    return preview(value) if isinstance(value, (str, bytes, int, float, bool, type(None))) else type(value).__name__


def text(forbidden: re.Pattern[str] | None = None, expected: str = "a string", max_bytes: int | None = None) -> Check:
    """Return a check for a string without matches of `forbidden`, of at most `max_bytes` bytes of UTF-8."""

    def check(slot: str, value: Any) -> Iterator[Problem]:
        if not isinstance(value, str):
            yield rejected("wrong-type", slot, expected, value)
        elif SURROGATE.search(value) or (forbidden and forbidden.search(value)):
            yield rejected("illegal-character", slot, expected, value)
        elif max_bytes is not None and len(value.encode()) > max_bytes:
            yield rejected("too-large", slot, f"at most {max_bytes:,} bytes of UTF-8", f"{len(value.encode()):,} bytes")

    return check


def integer(low: int, high: int) -> Check:
    """Return a check for an integer in this range."""

    def check(slot: str, value: Any) -> Iterator[Problem]:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            yield rejected("wrong-type", slot, f"an integer from {low} to {high}", value)

    return check


def boolean(slot: str, value: Any) -> Iterator[Problem]:
    """Check that the value is true or false."""
    if not isinstance(value, bool):
        yield rejected("wrong-type", slot, "true or false", value)


def octets(max_bytes: int | None = None) -> Check:
    """Return a check for bytes, or a string, which is sent as UTF-8, of at most `max_bytes` bytes."""

    def check(slot: str, value: Any) -> Iterator[Problem]:
        size = _size(value)
        if size is None:
            yield rejected("wrong-type", slot, "bytes or a string", value)
        elif max_bytes is not None and size > max_bytes:
            yield rejected("too-large", slot, f"at most {max_bytes:,} bytes", f"{size:,} bytes")

    return check


def _size(value: Any) -> int | None:
    if isinstance(value, str):
        return None if SURROGATE.search(value) else len(value.encode())
    return len(value) if isinstance(value, bytes) else None


def check_slots(checks: dict[str, Check], options: dict[str, Any]) -> Iterator[Problem]:
    """Check the slots in `options` that have a single value. None counts as absent."""
    for name, check in checks.items():
        if options.get(name) is not None:
            yield from check(f"protocoloptions.{name}", options[name])


def check_pairs(section: str, name: Check, value: Check, options: dict[str, Any]) -> Iterator[Problem]:
    """Check the names and values of a section of pairs, such as headers."""
    for key, item in options.get(section) or ():
        slot = f"protocoloptions.{section}[{preview(str(key))}]"
        yield from name(slot, key)
        yield from value(slot, item)
