"""All changes by name. Each module of changes adds its own."""

from __future__ import annotations

from collections.abc import Callable

from synthesis.dice import Dice
from synthesis.messages import Record

Change = Callable[[Record, Dice], Record | None]
LineChange = Callable[[bytes, Dice], bytes]
CHANGES: dict[str, Change] = {}
LINE_CHANGES: dict[str, LineChange] = {}


def change(function: Change) -> Change:
    """Adds a change of a record; it gives the changed record, or None where it does not apply."""
    CHANGES[function.__name__.replace("_", "-")] = function
    return function


def line_change(function: LineChange) -> LineChange:
    """Adds a change of the line that a record is written as."""
    LINE_CHANGES[function.__name__.replace("_", "-")] = function
    return function
