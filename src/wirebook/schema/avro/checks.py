"""What reading Avro's JSON encoding and writing Avro check alike: one function per kind of type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wirebook.schema.avro.types import AvroType

MAX_FLOAT = {"float": 3.4028235677973362e38, "double": 1.7976931348623157e308}
"""The largest numbers that are rounded to a finite one."""


class ValueFault:
    """What is wrong, while a value is read: (pointer, what was expected, what is there)."""

    def __init__(self, limit: int) -> None:
        self.errors: list[tuple[str, Any, Any]] = []
        self.limit = limit

    def add(self, pointer: str, expected: Any, actual: Any) -> None:
        if len(self.errors) < self.limit:
            self.errors.append((pointer, expected, actual))


Check = Callable[[AvroType, Any, str, ValueFault], Any]


def incompatibility(name: Callable[[AvroType], str]) -> Check:
    """What says that a value is not of the type, under the `name` of the type."""

    def wrong(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> None:
        found.add(pointer, {"type": name(type_)}, value)

    return wrong


def checked(test: Callable[[Any], bool], wrong: Check) -> Check:
    """Takes a value as it is where it passes."""

    def check(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
        if not test(value):
            wrong(type_, value, pointer, found)
        return value

    return check


def integer(bits: int) -> Callable[[Any], bool]:
    limit = 1 << (bits - 1)
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit


def characters(value: Any) -> bytes | None:
    """The bytes that a text of Avro's JSON encoding stands for."""
    try:
        return value.encode("latin-1") if isinstance(value, str) else None
    except UnicodeEncodeError:
        return None


def check_enum(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
    if value not in type_.symbols:
        found.add(pointer, {"enum": list(type_.symbols)}, value)
    return value
