"""Avro's JSON encoding: one function per type, from a JSON value to the value that the binary encoding would give.

Rule: a value of a union other than null is wrapped: {"string": "a"}; plain JSON without the wrapping is refused, and so
is a record with a field too few or too many. Bytes are strings whose characters are the bytes (U+0000 to U+00FF).

Spec: Avro 1.11 "JSON Encoding".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wirebook.core.pointers import child
from wirebook.schema.avro_types import Type


class Found:
    """What is wrong, while a value is read: (pointer, what was expected, what is there)."""

    def __init__(self, limit: int) -> None:
        self.errors: list[tuple[str, Any, Any]] = []
        self.limit = limit

    def add(self, pointer: str, expected: Any, actual: Any) -> None:
        if len(self.errors) < self.limit:
            self.errors.append((pointer, expected, actual))


Reader = Callable[[Type, Any, str, Found], Any]


def from_json(type_: Type, value: Any, pointer: str, found: Found) -> Any:
    """The value that `value` encodes; what does not fit goes to `found`."""
    return READERS[type_.kind](type_, value, pointer, found)


def _wrong(type_: Type, value: Any, pointer: str, found: Found) -> None:
    found.add(pointer, {"type": type_.branch_name}, value)


def _checked(test: Callable[[Any], bool]) -> Reader:
    def read(type_: Type, value: Any, pointer: str, found: Found) -> Any:
        if not test(value):
            _wrong(type_, value, pointer, found)
        return value

    return read


def _integer(bits: int) -> Callable[[Any], bool]:
    limit = 1 << (bits - 1)
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit


def _floating(type_: Type, value: Any, pointer: str, found: Found) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > MAX_FLOAT[type_.kind]:
        _wrong(type_, value, pointer, found)
        return None
    return float(value)


MAX_FLOAT = {"float": 3.4028235677973366e38, "double": 1.7976931348623157e308}


def _bytes(type_: Type, value: Any, pointer: str, found: Found) -> Any:
    try:
        octets = value.encode("latin-1") if isinstance(value, str) else None
    except UnicodeEncodeError:
        octets = None
    if octets is None or (type_.kind == "fixed" and len(octets) != type_.size):
        _wrong(type_, value, pointer, found)
    return octets


def _enum(type_: Type, value: Any, pointer: str, found: Found) -> Any:
    if value not in type_.symbols:
        found.add(pointer, {"enum": list(type_.symbols)}, value)
    return value


def _record(type_: Type, value: Any, pointer: str, found: Found) -> Any:
    if not isinstance(value, dict):
        return _wrong(type_, value, pointer, found)
    names = dict(type_.fields)
    for name in value.keys() - names.keys():
        found.add(child(pointer, name), {"fields": list(names)}, value[name])
    for name in names.keys() - value.keys():
        found.add(pointer, {"required": name}, None)
    return {name: from_json(each, value[name], child(pointer, name), found)
            for name, each in type_.fields if name in value}  # fmt: skip


def _array(type_: Type, value: Any, pointer: str, found: Found) -> Any:
    if not isinstance(value, list):
        return _wrong(type_, value, pointer, found)
    assert type_.items is not None
    return [from_json(type_.items, each, child(pointer, index), found) for index, each in enumerate(value)]


def _map(type_: Type, value: Any, pointer: str, found: Found) -> Any:
    if not isinstance(value, dict):
        return _wrong(type_, value, pointer, found)
    assert type_.items is not None
    return {key: from_json(type_.items, each, child(pointer, key), found) for key, each in value.items()}


def _union(type_: Type, value: Any, pointer: str, found: Found) -> Any:
    branches = {each.branch_name: each for each in type_.branches}
    if value is None and "null" in branches:
        return None
    name = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else "null"
    if name == "null" or name not in branches:
        found.add(pointer, {"union": list(branches)}, value)
        return None
    chosen = from_json(branches[name], value[name], child(pointer, name), found)
    several = len(branches.keys() - {"null"}) > 1
    return {name: chosen} if several else chosen


READERS: dict[str, Reader] = {
    "null": _checked(lambda value: value is None),
    "boolean": _checked(lambda value: isinstance(value, bool)),
    "int": _checked(_integer(32)),
    "long": _checked(_integer(64)),
    "float": _floating,
    "double": _floating,
    "bytes": _bytes,
    "string": _checked(lambda value: isinstance(value, str)),
    "fixed": _bytes,
    "enum": _enum,
    "record": _record,
    "array": _array,
    "map": _map,
    "union": _union,
}
