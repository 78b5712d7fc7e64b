"""What converters refuse, and how."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wirebook.bindings.headers import CONTROL, NOT_IN_NAME
from wirebook.bindings.wire import AnyMessage, Base64, Pair, shown
from wirebook.problems import Problem, WirebookError


def refuse(library: str, slot: str, expected: str, actual: Any) -> WirebookError:
    """Something that the library has no way to say."""
    text = f"{library} cannot say this: {slot} has to be {expected}"
    return WirebookError(Problem("not-expressible", text, slot=slot, expected=expected, actual=shown(actual)))


def require(wire: AnyMessage, library: str, *classes: type[AnyMessage]) -> None:
    """Raises: WirebookError (``not-expressible``) for a message of another protocol."""
    if not isinstance(wire, classes):
        expected = " or ".join(cls.protocol for cls in classes)
        raise refuse(library, "protocol", expected, wire.protocol)


def require_lines(lines: Iterable[Pair] | None, library: str) -> None:
    """Raises: WirebookError (``not-expressible``) for header lines that would end somewhere else than they should."""
    for name, value in lines or ():
        slot = f"protocoloptions.headers.{name}"
        if NOT_IN_NAME.search(name):
            raise refuse(library, slot, "named with letters, digits and !#$%&'*+.^_`|~-", name)
        if CONTROL.search(value.base64.decode("latin-1") if isinstance(value, Base64) else value):
            raise refuse(library, slot, "without control characters", value if isinstance(value, str) else "bytes")


def needed(library: str, slot: str, value: str | None) -> str:
    """A value without which nothing can be sent. Raises: WirebookError (``missing-required``)."""
    if value is None:
        raise WirebookError(Problem("missing-required", f"{library} needs {slot}, and nothing gives it", slot=slot))
    return value
