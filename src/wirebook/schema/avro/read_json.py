"""Decode Avro's JSON encoding to the values that the binary encoding decodes to: one function per kind of type.

Rule: a value of a union, unless it is null, is wrapped: ``{"string": "a"}``. Plain JSON without the wrapper is
rejected, and so is a record with a missing or an unknown field. Bytes are strings with one character per byte (U+0000
to U+00FF).

Spec: Avro 1.11 "JSON Encoding".
"""

from __future__ import annotations

import struct
from operator import attrgetter
from typing import Any

from wirebook.schema.avro.checks import (
    MAX_FLOAT,
    Check,
    Mismatches,
    bytes_of_characters,
    check_array,
    check_bytes,
    check_enum,
    check_field_names,
    check_map,
    checked,
    is_integer,
    mismatch,
)
from wirebook.schema.avro.types import AvroType
from wirebook.text.pointers import child

SINGLE = struct.Struct("<f")  # rounds a number to 32 bits, as the binary encoding does


def from_json(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> Any:
    """Return the value that a JSON value encodes. Parts that do not match the type are added to `mismatches`."""
    return READERS[type_.kind](type_, value, pointer, mismatches)


_reject = mismatch(attrgetter("branch_name"))


def _floating(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > MAX_FLOAT[type_.kind]:
        return _reject(type_, value, pointer, mismatches)
    return SINGLE.unpack(SINGLE.pack(value))[0] if type_.kind == "float" else float(value)


def _record(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> Any:
    if not isinstance(value, dict):
        return _reject(type_, value, pointer, mismatches)
    check_field_names(type_, value, pointer, mismatches)
    for name in [name for name, _ in type_.fields if name not in value]:
        mismatches.add(pointer, {"required": name}, None)
    return {name: from_json(field, value[name], child(pointer, name), mismatches)
            for name, field in type_.fields if name in value}  # fmt: skip


def _union(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> Any:
    branches = {branch.branch_name: branch for branch in type_.branches}
    if value is None and "null" in branches:
        return None
    name = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else "null"
    if name == "null" or name not in branches:
        mismatches.add(pointer, {"union": list(branches)}, value)
        return None
    decoded = from_json(branches[name], value[name], child(pointer, name), mismatches)
    several = len(branches.keys() - {"null"}) > 1
    return {name: decoded} if several else decoded


_bytes = check_bytes(bytes_of_characters, _reject)
READERS: dict[str, Check] = {
    "null": checked(lambda value: value is None, _reject),
    "boolean": checked(lambda value: isinstance(value, bool), _reject),
    "int": checked(is_integer(32), _reject),
    "long": checked(is_integer(64), _reject),
    "float": _floating,
    "double": _floating,
    "bytes": _bytes,
    "string": checked(lambda value: isinstance(value, str), _reject),
    "fixed": _bytes,
    "enum": check_enum,
    "record": _record,
    "array": check_array(list, from_json, _reject),
    "map": check_map(from_json, _reject),
    "union": _union,
}
