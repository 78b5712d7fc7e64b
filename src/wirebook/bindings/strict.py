"""What a writer refuses: one check for each kind of place on the wire.

A check yields a problem with the slot, what is allowed there, and what was given.

Spec: docs/semantics.md D21, D28-D34
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from wirebook.bindings.wire import shown
from wirebook.problems import Problem

SURROGATE: Final = re.compile("[\ud800-\udfff]")
MQTT_STRING: Final = 65_535  # bytes of UTF-8; mqtt-v5.0#1.5.4

Check = Callable[[str, Any], Iterator[Problem]]


def refused(code: str, slot: str, expected: str, actual: Any) -> Problem:
    text = f"{slot}: expected {expected}, got {shown(actual)!r}"
    return Problem(code, text, slot=slot, expected=expected, actual=_plain(actual))


def _plain(value: Any) -> Any:
    """A value as any writer of JSON takes it: without halves of characters."""
    if isinstance(value, str):
        return SURROGATE.sub("?", shown(value))
    return shown(value) if isinstance(value, (str, bytes, int, float, bool, type(None))) else type(value).__name__


def text(forbidden: re.Pattern[str] | None = None, expected: str = "a text", most: int | None = None) -> Check:
    """A text without what `forbidden` finds, of at most so many bytes of UTF-8."""

    def check(slot: str, value: Any) -> Iterator[Problem]:
        if not isinstance(value, str):
            yield refused("wrong-type", slot, expected, value)
        elif SURROGATE.search(value) or (forbidden and forbidden.search(value)):
            yield refused("illegal-character", slot, expected, value)
        elif most is not None and len(value.encode()) > most:
            yield refused("too-large", slot, f"at most {most:,} bytes of UTF-8", f"{len(value.encode()):,} bytes")

    return check


def integer(low: int, high: int) -> Check:
    def check(slot: str, value: Any) -> Iterator[Problem]:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            yield refused("wrong-type", slot, f"an integer from {low} to {high}", value)

    return check


def boolean(slot: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, bool):
        yield refused("wrong-type", slot, "true or false", value)


def octets(most: int | None = None) -> Check:
    """Bytes, or a text, which stands for its UTF-8."""

    def check(slot: str, value: Any) -> Iterator[Problem]:
        size = _size(value)
        if size is None:
            yield refused("wrong-type", slot, "bytes or a text", value)
        elif most is not None and size > most:
            yield refused("too-large", slot, f"at most {most:,} bytes", f"{size:,} bytes")

    return check


def _size(value: Any) -> int | None:
    if isinstance(value, str):
        return None if SURROGATE.search(value) else len(value.encode())
    return len(value) if isinstance(value, bytes) else None


def check_slots(checks: dict[str, Check], options: dict[str, Any]) -> Iterator[Problem]:
    """The bare slots that are given; None is absent."""
    for name, check in checks.items():
        if options.get(name) is not None:
            yield from check(f"protocoloptions.{name}", options[name])


def check_pairs(section: str, name: Check, value: Check, options: dict[str, Any]) -> Iterator[Problem]:
    """The entries of a section: names and values."""
    for key, item in options.get(section) or ():
        slot = f"protocoloptions.{section}[{shown(str(key))}]"
        yield from name(slot, key)
        yield from value(slot, item)
