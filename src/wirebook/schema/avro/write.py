"""Write values in both encodings of Avro.

Rule: a value may have the form that `read` returns (times, decimals, bytes, ``{branch: value}`` for a union of several
types), the form of Avro's JSON encoding (bytes as characters, ``{branch: value}`` in every union), or be plain JSON
(times as RFC 3339 text, decimals as numbers or text). The branch of a union may be omitted if the value belongs to only
one. A field may be omitted if it has a default or is nullable.

Spec: Avro 1.11 "Data Serialization and Deserialization", "Logical Types".
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

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
from wirebook.schema.avro.declarations import NOT_FINITE, is_default
from wirebook.schema.avro.logical import encoded_value, from_plain
from wirebook.schema.avro.types import AvroType, is_text
from wirebook.text.pointers import child

MAX_DEFAULTS: Final = 1_000_000
"""Maximum parts that the defaults of omitted fields add to a value: a default may contain others, several times."""
ChosenBranch = tuple[int, AvroType, Any]
"""A normalised value of a union: the index of its branch, the type of the branch, and the value."""


def normalise(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> Any:
    """Return a value with its scalars and branches as encoded. Parts that do not match are added to `mismatches`."""
    return NORMALISERS[type_.kind](type_, encoded_value(type_, from_plain(type_, value)), pointer, mismatches)


_reject = mismatch(lambda type_: type_.logical or type_.branch_name)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and is_text(value)


def _floating(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or MAX_FLOAT[type_.kind] < abs(value) != float("inf"):
        return _reject(type_, value, pointer, mismatches)
    return float(value)


def _octets_of(value: Any) -> bytes | None:
    return bytes(value) if isinstance(value, (bytes, bytearray, memoryview)) else bytes_of_characters(value)


def _record(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> Any:
    if not isinstance(value, dict):
        return _reject(type_, value, pointer, mismatches)
    check_field_names(type_, value, pointer, mismatches)
    fields = {}
    for name, field in type_.fields:
        if name not in value and name in type_.defaults:
            fields[name] = default_value(field, type_.defaults[name], child(pointer, name), mismatches)
        elif name in value or field.is_nullable:
            fields[name] = normalise(field, value.get(name), child(pointer, name), mismatches)
        else:
            mismatches.add(pointer, {"required": name}, None)
    return fields


def _union(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> Any:
    """Return the value in the branch that it names, else in the only branch that it can belong to.

    Cost: linear, because candidates are found without descending into the value.
    """
    named = _named(type_, value)
    candidates = [named] if named else _candidates(type_, value, _may_be) or _candidates(type_, value, _may_mean)
    if len(candidates) > 1:
        names = [branch.branch_name for _, branch in candidates]
        mismatches.add(pointer, {"one of, by name": names}, value)
    elif candidates:
        index, branch = candidates[0]
        inner = value[branch.branch_name] if named else value
        return index, branch, normalise(branch, inner, pointer, mismatches)
    else:
        mismatches.add(pointer, {"union": [branch.branch_name for branch in type_.branches]}, value)
    return None


def _candidates(type_: AvroType, value: Any, fits: Callable[[AvroType, Any], bool]) -> list[tuple[int, AvroType]]:
    return [(index, branch) for index, branch in enumerate(type_.branches) if fits(branch, value)]


def _may_mean(branch: AvroType, value: Any) -> bool:
    """Return whether a value can belong to a branch as plain JSON: a time, a decimal or bytes."""
    meant = encoded_value(branch, from_plain(branch, value))
    if meant is value and branch.kind in ("bytes", "fixed"):
        meant = bytes_of_characters(value)
    return _may_be(branch, meant)


def _named(type_: AvroType, value: Any) -> tuple[int, AvroType] | None:
    """Return the branch that {branch: value} names; in values from columns, {branch: value, other: None}."""
    names = [branch.branch_name for branch in type_.branches]
    if not isinstance(value, dict) or not value or not value.keys() <= set(names):
        return None
    present = [name for name, inner in value.items() if inner is not None] or list(value)
    return (names.index(present[0]), type_.branches[names.index(present[0])]) if len(present) == 1 else None


def _may_be(branch: AvroType, value: Any) -> bool:
    """Return whether a value can belong to a branch, judging without descending into the value."""
    value = encoded_value(branch, value)
    if branch.kind == "record":
        names = dict(branch.fields)
        required = {name for name, field in branch.fields if not field.is_nullable} - branch.defaults.keys()
        return isinstance(value, dict) and required <= value.keys() <= names.keys()
    return LOOKS_LIKE[branch.kind](branch, value)


LOOKS_LIKE: dict[str, Callable[[AvroType, Any], bool]] = {
    "null": lambda _, value: value is None,
    "boolean": lambda _, value: isinstance(value, bool),
    "int": lambda _, value: is_integer(32)(value),
    "long": lambda _, value: is_integer(64)(value),
    "float": lambda _, value: isinstance(value, int | float) and not isinstance(value, bool),
    "double": lambda _, value: isinstance(value, int | float) and not isinstance(value, bool),
    "bytes": lambda _, value: isinstance(value, bytes),
    "fixed": lambda type_, value: isinstance(value, bytes) and len(value) == type_.size,
    "string": lambda _, value: isinstance(value, str),
    "enum": lambda type_, value: value in type_.symbols,
    "array": lambda _, value: isinstance(value, list | tuple),
    "map": lambda _, value: isinstance(value, dict),
}


_octets = check_bytes(_octets_of, _reject)
NORMALISERS: dict[str, Check] = {
    "null": checked(lambda value: value is None, _reject),
    "boolean": checked(lambda value: isinstance(value, bool), _reject),
    "int": checked(is_integer(32), _reject),
    "long": checked(is_integer(64), _reject),
    "float": _floating,
    "double": _floating,
    "bytes": _octets,
    "string": checked(_is_text, _reject),
    "fixed": _octets,
    "enum": check_enum,
    "record": _record,
    "array": check_array((list, tuple), normalise, _reject),
    "map": check_map(normalise, _reject, _is_text),
    "union": _union,
}


# -- defaults ---------------------------------------------------------------------------------------------------------


def default_value(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> Any:
    """Return the normalised value of a default, which is JSON: bytes are characters, and unions name no branch.

    The default of a union is a value of the first branch that it fits.
    """
    mismatches.defaults += 1
    if mismatches.defaults > MAX_DEFAULTS:
        if mismatches.defaults == MAX_DEFAULTS + 1:
            mismatches.add(pointer, {"defaults": MAX_DEFAULTS}, value)
        return None
    return DEFAULTS[type_.kind](type_, value, pointer, mismatches)


def _default_number(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> Any:
    number = value
    if type_.kind in MAX_FLOAT and value in NOT_FINITE:
        number = float(value)
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    return NORMALISERS[type_.kind](type_, number, pointer, mismatches)


def _default_record(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> Any:
    if not isinstance(value, dict):
        return _reject(type_, value, pointer, mismatches)
    fields = {}
    for name, field in type_.fields:
        if name in value or name in type_.defaults:
            default = value[name] if name in value else type_.defaults[name]
            fields[name] = default_value(field, default, child(pointer, name), mismatches)
        else:
            mismatches.add(pointer, {"required": name}, None)
    return fields


def _default_union(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> Any:
    for index, branch in enumerate(type_.branches):
        if is_default(branch, value):
            return index, branch, default_value(branch, value, pointer, mismatches)
    mismatches.add(pointer, {"union": [branch.branch_name for branch in type_.branches]}, value)
    return None


DEFAULTS: dict[str, Check] = NORMALISERS | {
    "int": _default_number,
    "long": _default_number,
    "float": _default_number,
    "double": _default_number,
    "record": _default_record,
    "array": check_array(list, default_value, _reject),
    "map": check_map(default_value, _reject, _is_text),
    "union": _default_union,
}


# -- the JSON encoding ------------------------------------------------------------------------------------------------


def to_json(type_: AvroType, normalised: Any) -> Any:
    """Return a normalised value in Avro's JSON encoding. NaN and Infinity stay floats, which JSON cannot represent."""
    if type_.kind == "union":
        _, branch, inner = normalised
        return None if branch.kind == "null" else {branch.branch_name: to_json(branch, inner)}
    if type_.kind == "record":
        return {name: to_json(field, normalised[name]) for name, field in type_.fields}
    if type_.items is not None and isinstance(normalised, list):
        return [to_json(type_.items, item) for item in normalised]
    if type_.items is not None:
        return {name: to_json(type_.items, item) for name, item in normalised.items()}
    return normalised.decode("latin-1") if isinstance(normalised, bytes) else normalised


# -- the binary encoding ----------------------------------------------------------------------------------------------


def to_binary(type_: AvroType, normalised: Any) -> bytes:
    """Return a normalised value in Avro's binary encoding."""
    out = bytearray()
    _write(type_, normalised, out)
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


def _write_union(type_: AvroType, value: ChosenBranch, out: bytearray) -> None:  # noqa: ARG001
    index, branch, inner = value
    _write_long(index, out)
    _write(branch, inner, out)


def _write_array(type_: AvroType, value: list[Any], out: bytearray) -> None:
    assert type_.items is not None
    if value:
        _write_long(len(value), out)
    for item in value:
        _write(type_.items, item, out)
    out.append(0)


def _write_map(type_: AvroType, value: dict[str, Any], out: bytearray) -> None:
    assert type_.items is not None
    if value:
        _write_long(len(value), out)
    for key, item in value.items():
        _write_octets(key.encode(), out)
        _write(type_.items, item, out)
    out.append(0)


def _plain(write: Callable[[Any, bytearray], Any]) -> Callable[[AvroType, Any, bytearray], Any]:
    return lambda _, value, out: write(value, out)


def _put(encode: Callable[[Any], bytes]) -> Callable[[AvroType, Any, bytearray], Any]:
    return lambda _, value, out: out.extend(encode(value))


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
