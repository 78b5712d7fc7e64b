"""What converters refuse, and how."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from wirebook.bindings.wire import AnyMessage, shown
from wirebook.problems import Problem, WirebookError


def library(module: str, extra: str) -> ModuleType:
    """The library, or what to install. Raises: WirebookError (``missing-extra``)."""
    try:
        return import_module(module)
    except ImportError as error:
        text = f"the package '{module.partition('.')[0]}' is not installed"
        problem = Problem("missing-extra", text, actual=module, hint=f"pip install 'wirebook[{extra}]'")
        raise WirebookError(problem) from error


def refuse(library: str, slot: str, expected: str, actual: Any) -> WirebookError:
    """Something that the library has no way to say."""
    text = f"{library} cannot say this: {slot} has to be {expected}"
    return WirebookError(Problem("not-expressible", text, slot=slot, expected=expected, actual=shown(actual)))


def require(wire: AnyMessage, library: str, *classes: type[AnyMessage]) -> None:
    """Raises: WirebookError (``not-expressible``) for a message of another protocol."""
    if not isinstance(wire, classes):
        expected = " or ".join(cls.protocol for cls in classes)
        raise refuse(library, "protocol", expected, wire.protocol)


def needed(library: str, slot: str, value: str | None) -> str:
    """A value without which nothing can be sent. Raises: WirebookError (``missing-required``)."""
    if value is None:
        raise WirebookError(Problem("missing-required", f"{library} needs {slot}, and nothing gives it", slot=slot))
    return value
