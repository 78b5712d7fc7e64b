"""Avro's JSON encoding: one function per type, from a JSON value to the value that the binary encoding would give.

Rule: a value of a union other than null is wrapped: {"string": "a"}; plain JSON without the wrapping is refused, and so
is a record with a field too few or too many. Bytes are strings whose characters are the bytes (U+0000 to U+00FF).

Spec: Avro 1.11 "JSON Encoding".
"""

from __future__ import annotations

import struct
from operator import attrgetter
from typing import Any

from wirebook.schema.avro.checks import (
    MAX_FLOAT,
    Check,
    ValueFault,
    characters,
    check_enum,
    checked,
    incompatibility,
    integer,
)
from wirebook.schema.avro.types import AvroType
from wirebook.text.pointers import child

SINGLE = struct.Struct("<f")  # a float is the number that its binary encoding has


def from_json(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
    """The value that `value` encodes; what does not fit goes to `found`."""
    return READERS[type_.kind](type_, value, pointer, found)


_wrong = incompatibility(attrgetter("branch_name"))


def _floating(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > MAX_FLOAT[type_.kind]:
        _wrong(type_, value, pointer, found)
        return None
    return SINGLE.unpack(SINGLE.pack(value))[0] if type_.kind == "float" else float(value)


def _bytes(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
    octets = characters(value)
    if octets is None or (type_.kind == "fixed" and len(octets) != type_.size):
        _wrong(type_, value, pointer, found)
    return octets


def _record(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
    if not isinstance(value, dict):
        return _wrong(type_, value, pointer, found)
    names = dict(type_.fields)
    for name in value.keys() - names.keys():
        found.add(child(pointer, name), {"fields": list(names)}, value[name])
    for name in names.keys() - value.keys():
        found.add(pointer, {"required": name}, None)
    return {name: from_json(field, value[name], child(pointer, name), found)
            for name, field in type_.fields if name in value}  # fmt: skip


def _array(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
    if not isinstance(value, list):
        return _wrong(type_, value, pointer, found)
    assert type_.items is not None
    return [from_json(type_.items, each, child(pointer, index), found) for index, each in enumerate(value)]


def _map(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
    if not isinstance(value, dict):
        return _wrong(type_, value, pointer, found)
    assert type_.items is not None
    return {key: from_json(type_.items, each, child(pointer, key), found) for key, each in value.items()}


def _union(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
    branches = {branch.branch_name: branch for branch in type_.branches}
    if value is None and "null" in branches:
        return None
    name = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else "null"
    if name == "null" or name not in branches:
        found.add(pointer, {"union": list(branches)}, value)
        return None
    chosen = from_json(branches[name], value[name], child(pointer, name), found)
    several = len(branches.keys() - {"null"}) > 1
    return {name: chosen} if several else chosen


READERS: dict[str, Check] = {
    "null": checked(lambda value: value is None, _wrong),
    "boolean": checked(lambda value: isinstance(value, bool), _wrong),
    "int": checked(integer(32), _wrong),
    "long": checked(integer(64), _wrong),
    "float": _floating,
    "double": _floating,
    "bytes": _bytes,
    "string": checked(lambda value: isinstance(value, str), _wrong),
    "fixed": _bytes,
    "enum": check_enum,
    "record": _record,
    "array": _array,
    "map": _map,
    "union": _union,
}
