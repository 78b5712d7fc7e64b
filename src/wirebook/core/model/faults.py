"""Faults of values: the rule of its definition that a value violates, and the path of the value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from wirebook.core.dotpath import below

MAX_FAULTS: Final = 100
"""Number of faults after which a check stops, so that a long list of invalid items costs little."""

Rule = Literal["type", "value", "enum", "reference", "size", "key", "name", "twice", "missing", "unknown"]


class ValueFault(NamedTuple):
    """A violation of a `rule` by the value at `path`.

    Shape: `path` consists of names of members, map keys and indexes of items. `why` is the reason, without the path.
    `allowed` contains or describes the values that the rule allows.
    """

    path: tuple[str | int, ...]
    rule: Rule
    why: str
    value: Any = None
    allowed: Any = None

    @property
    def name(self) -> str:
        """The path as text: members and keys follow a dot, indexes are in brackets (``labels.a``, ``list[1]``)."""
        name = ""
        for step in self.path:
            name = f"{name}[{step}]" if isinstance(step, int) else below(name, step) if name else step
        return name

    @property
    def code(self) -> str:
        """The xRegistry error type."""
        return _ERROR_TYPES.get(self.rule, "invalid_attribute")


_ERROR_TYPES: Final[Mapping[Rule, str]] = {"missing": "required_attribute_missing", "unknown": "unknown_attribute"}


class InvalidValue(ValueError):
    """A value violates its definition. `first` is the first of its `faults`."""

    def __init__(self, *faults: ValueFault) -> None:
        self.faults, self.first = faults, faults[0]
        super().__init__(f"{self.first.name}: {self.first.why}")

    def inside(self, step: str | int) -> list[ValueFault]:
        """Return the faults with paths relative to the outer value, which contains this value at `step`."""
        return [fault._replace(path=(step, *fault.path)) for fault in self.faults]


def add_faults(faults: list[ValueFault], step: str | int, error: InvalidValue) -> None:
    """Add the faults of the member or item at `step`. Raises: InvalidValue, if there are `MAX_FAULTS`"""
    faults += error.inside(step)
    if len(faults) >= MAX_FAULTS:
        raise InvalidValue(*faults[:MAX_FAULTS])
