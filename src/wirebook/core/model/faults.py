"""Faults of values: which rule of its definition a value breaks, and where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from wirebook.core.dotpath import below

MAX_FAULTS: Final = 100
"""After that many faults the check ends, so that a long list of invalid items costs little."""

Rule = Literal["type", "value", "enum", "reference", "size", "key", "name", "twice", "missing", "unknown"]


class ValueFault(NamedTuple):
    """A fault of a value: the `rule` that it breaks, and where.

    `path` leads to the value: names of members, keys and positions of items. `why` completes "the value at this path:".
    `allowed` describes the values that the rule allows.
    """

    path: tuple[str | int, ...]
    rule: Rule
    why: str
    value: Any = None
    allowed: Any = None

    @property
    def name(self) -> str:
        """The path as text: members and keys after a dot, items in brackets (``labels.a``, ``list[1]``)."""
        name = ""
        for step in self.path:
            name = f"{name}[{step}]" if isinstance(step, int) else below(name, step) if name else step
        return name

    @property
    def code(self) -> str:
        """The error type of xRegistry."""
        return _ERROR_TYPES.get(self.rule, "invalid_attribute")


_ERROR_TYPES: Final[Mapping[Rule, str]] = {"missing": "required_attribute_missing", "unknown": "unknown_attribute"}


class InvalidValue(ValueError):
    """A value that its definition does not allow: `first` is the first of its `faults`."""

    def __init__(self, *faults: ValueFault) -> None:
        self.faults, self.first = faults, faults[0]
        super().__init__(f"{self.first.name}: {self.first.why}")

    def inside(self, step: str | int) -> list[ValueFault]:
        """Return the faults with their paths from the outer value, in which `step` leads to this one."""
        return [fault._replace(path=(step, *fault.path)) for fault in self.faults]


def add_faults(faults: list[ValueFault], step: str | int, error: InvalidValue) -> None:
    """Add the faults of a member or an item. Raises: InvalidValue, after `MAX_FAULTS`"""
    faults += error.inside(step)
    if len(faults) >= MAX_FAULTS:
        raise InvalidValue(*faults[:MAX_FAULTS])
