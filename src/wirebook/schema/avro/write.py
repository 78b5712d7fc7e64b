"""Values to Avro, in both encodings: the way back of avro_binary.py and avro_json.py.

Rule: a value may be what `read` gives (times, decimals, bytes, {branch: value} for a union of several types) or what
Avro's JSON encoding has (bytes as characters, {branch: value} in every union), or plain JSON: times as RFC 3339 text,
decimals as numbers or their text. In a union the branch may be left out where the value can be of one only; a field
with a default may be left out.

Spec: Avro 1.11 "Data Serialization and Deserialization", "Logical Types".
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from wirebook.schema.avro.checks import MAX_FLOAT, ValueFault, characters, check_enum, checked, incompatibility, integer
from wirebook.schema.avro.logical import encoded_value, from_plain
from wirebook.schema.avro.types import AvroType
from wirebook.text.pointers import child

Chosen = tuple[int, AvroType, Any]  # of a union: the branch's index, its type, the value


def settle(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
    """`value` with numbers, bytes and branches as they are encoded; what does not fit goes to `found`."""
    return SETTLERS[type_.kind](type_, encoded_value(type_, from_plain(type_, value)), pointer, found)


_wrong = incompatibility(lambda type_: type_.logical or type_.branch_name)


def _is_text(value: Any) -> bool:
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _floating(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or MAX_FLOAT[type_.kind] < abs(value) != float("inf"):
        return _wrong(type_, value, pointer, found)
    return float(value)


def _octets(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
    octets = bytes(value) if isinstance(value, (bytes, bytearray, memoryview)) else characters(value)
    if octets is None or (type_.kind == "fixed" and len(octets) != type_.size):
        _wrong(type_, value, pointer, found)
    return octets


def _record(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
    if not isinstance(value, dict):
        return _wrong(type_, value, pointer, found)
    names = dict(type_.fields)
    for name in value.keys() - names.keys():
        found.add(child(pointer, str(name)), {"fields": list(names)}, value[name])
    settled = {}
    for name, field in type_.fields:
        if name not in value and name in type_.defaults:
            settled[name] = _default(field, type_.defaults[name], child(pointer, name), found)
        elif name in value or _takes_null(field):
            settled[name] = settle(field, value.get(name), child(pointer, name), found)
        else:
            found.add(pointer, {"required": name}, None)
    return settled


def _default(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
    """What the schema gives a field that is left out; of a union it is the first branch's."""
    if type_.kind == "union":
        return 0, type_.branches[0], settle(type_.branches[0], value, pointer, found)
    return settle(type_, value, pointer, found)


def _takes_null(type_: AvroType) -> bool:
    return type_.kind == "null" or any(branch.kind == "null" for branch in type_.branches)


def _array(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
    if not isinstance(value, list | tuple):
        return _wrong(type_, value, pointer, found)
    assert type_.items is not None
    return [settle(type_.items, each, child(pointer, index), found) for index, each in enumerate(value)]


def _map(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
    if not isinstance(value, dict) or not all(map(_is_text, value)):
        return _wrong(type_, value, pointer, found)
    assert type_.items is not None
    return {key: settle(type_.items, each, child(pointer, key), found) for key, each in value.items()}


def _union(type_: AvroType, value: Any, pointer: str, found: ValueFault) -> Any:
    """The named branch, else the only one that the value may be; null is never named. Cost: linear."""
    named = _named(type_, value)
    candidates = [named] if named else _candidates(type_, value, _may_be) or _candidates(type_, value, _may_mean)
    if len(candidates) > 1:
        names = [branch.branch_name for _, branch in candidates]
        found.add(pointer, {"one of, by name": names}, value)
    elif candidates:
        index, branch = candidates[0]
        inner = value[branch.branch_name] if named else value
        return index, branch, settle(branch, inner, pointer, found)
    else:
        found.add(pointer, {"union": [each.branch_name for each in type_.branches]}, value)
    return None


def _candidates(type_: AvroType, value: Any, fits: Callable[[AvroType, Any], bool]) -> list[tuple[int, AvroType]]:
    return [(index, branch) for index, branch in enumerate(type_.branches) if fits(branch, value)]


def _may_mean(branch: AvroType, value: Any) -> bool:
    """Is a value of this branch as JSON has it: a text of a time, a decimal, or of bytes?"""
    plain = encoded_value(branch, from_plain(branch, value))
    return _may_be(branch, characters(value) if branch.kind in ("bytes", "fixed") and plain is value else plain)


def _named(type_: AvroType, value: Any) -> tuple[int, AvroType] | None:
    """What {branch: value} names, also {branch: value, other: None} as columns have it."""
    names = [branch.branch_name for branch in type_.branches]
    if not isinstance(value, dict) or not value or not value.keys() <= set(names):
        return None
    given = [name for name, inner in value.items() if inner is not None] or list(value)
    return (names.index(given[0]), type_.branches[names.index(given[0])]) if len(given) == 1 else None


def _may_be(branch: AvroType, value: Any) -> bool:
    """Is a value of this branch, as far as it can be seen without looking into it?"""
    value = encoded_value(branch, value)
    if branch.kind == "record":
        names = dict(branch.fields)
        needed = {name for name, field in branch.fields if not _takes_null(field)} - branch.defaults.keys()
        return isinstance(value, dict) and needed <= value.keys() <= names.keys()
    return LOOKS[branch.kind](branch, value)


LOOKS: dict[str, Callable[[AvroType, Any], bool]] = {
    "null": lambda _, value: value is None,
    "boolean": lambda _, value: isinstance(value, bool),
    "int": lambda _, value: integer(32)(value),
    "long": lambda _, value: integer(64)(value),
    "float": lambda _, value: isinstance(value, int | float) and not isinstance(value, bool),
    "double": lambda _, value: isinstance(value, int | float) and not isinstance(value, bool),
    "bytes": lambda _, value: isinstance(value, bytes),
    "fixed": lambda type_, value: isinstance(value, bytes) and len(value) == type_.size,
    "string": lambda _, value: isinstance(value, str),
    "enum": lambda type_, value: value in type_.symbols,
    "array": lambda _, value: isinstance(value, list | tuple),
    "map": lambda _, value: isinstance(value, dict),
}


SETTLERS: dict[str, Callable[[AvroType, Any, str, ValueFault], Any]] = {
    "null": checked(lambda value: value is None, _wrong),
    "boolean": checked(lambda value: isinstance(value, bool), _wrong),
    "int": checked(integer(32), _wrong),
    "long": checked(integer(64), _wrong),
    "float": _floating,
    "double": _floating,
    "bytes": _octets,
    "string": checked(_is_text, _wrong),
    "fixed": _octets,
    "enum": check_enum,
    "record": _record,
    "array": _array,
    "map": _map,
    "union": _union,
}


# -- the JSON encoding ------------------------------------------------------------------------------------------------


def to_json(type_: AvroType, settled: Any) -> Any:
    """A settled value in Avro's JSON encoding. Raises: ValueError for NaN and Infinity, which JSON has not."""
    if type_.kind == "union":
        _, branch, inner = settled
        return None if branch.kind == "null" else {branch.branch_name: to_json(branch, inner)}
    if type_.kind == "record":
        return {name: to_json(field, settled[name]) for name, field in type_.fields}
    if type_.items is not None and isinstance(settled, list):
        return [to_json(type_.items, each) for each in settled]
    if type_.items is not None:
        return {name: to_json(type_.items, each) for name, each in settled.items()}
    return settled.decode("latin-1") if isinstance(settled, bytes) else settled


# -- the binary encoding ----------------------------------------------------------------------------------------------


def to_binary(type_: AvroType, settled: Any) -> bytes:
    """A settled value in Avro's binary encoding."""
    out = bytearray()
    _write(type_, settled, out)
    return bytes(out)


def _write(type_: AvroType, value: Any, out: bytearray) -> None:
    WRITERS[type_.kind](type_, value, out)


def _write_long(value: int, out: bytearray) -> None:
    number = (value << 1) ^ (value >> 63)
    while number > 0x7F:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    out.append(number)


def _write_octets(octets: bytes, out: bytearray) -> None:
    _write_long(len(octets), out)
    out += octets


def _write_record(type_: AvroType, value: Any, out: bytearray) -> None:
    for name, field in type_.fields:
        _write(field, value[name], out)


def _write_union(type_: AvroType, value: Chosen, out: bytearray) -> None:  # noqa: ARG001
    index, branch, inner = value
    _write_long(index, out)
    _write(branch, inner, out)


def _write_array(type_: AvroType, value: list[Any], out: bytearray) -> None:
    assert type_.items is not None
    if value:
        _write_long(len(value), out)
    for each in value:
        _write(type_.items, each, out)
    out.append(0)


def _write_map(type_: AvroType, value: dict[str, Any], out: bytearray) -> None:
    assert type_.items is not None
    if value:
        _write_long(len(value), out)
    for key, each in value.items():
        _write_octets(key.encode(), out)
        _write(type_.items, each, out)
    out.append(0)


def _plain(write: Callable[[Any, bytearray], Any]) -> Callable[[AvroType, Any, bytearray], Any]:
    return lambda _, value, out: write(value, out)


def _put(made: Callable[[Any], bytes]) -> Callable[[AvroType, Any, bytearray], Any]:
    return lambda _, value, out: out.extend(made(value))


WRITERS: dict[str, Callable[[AvroType, Any, bytearray], Any]] = {
    "null": _put(lambda _: b""),
    "boolean": _put(lambda value: b"\1" if value else b"\0"),
    "int": _plain(_write_long),
    "long": _plain(_write_long),
    "float": _put(struct.Struct("<f").pack),
    "double": _put(struct.Struct("<d").pack),
    "bytes": _plain(_write_octets),
    "string": _plain(lambda value, out: _write_octets(value.encode(), out)),
    "fixed": _put(bytes),
    "enum": lambda type_, value, out: _write_long(type_.symbols.index(value), out),
    "record": _write_record,
    "union": _write_union,
    "array": _write_array,
    "map": _write_map,
}
