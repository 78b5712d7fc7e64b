"""Decode Avro's binary encoding strictly, with one decoder per type, created once per schema.

A decoder takes (bytes, position, depth) and returns (value, position). It rejects everything that the specification
does not allow: booleans other than 0 and 1, integers out of range, indexes outside a union or an enum, and missing or
surplus bytes. A value of a union of several types other than null is ``{branch: value}``; a value of a nullable type is
the value itself or None.

Spec: Avro 1.11 "Binary Encoding". fastavro is not used, because it accepts invalid bytes and crashes on deeply nested
values; the tests compare results with those of fastavro.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from wirebook.schema.avro.types import AvroType

Decoder = Callable[[bytes, int, int], tuple[Any, int]]
"""A function (bytes, position, remaining depth) that returns the value at the position and the position of its end."""
MAX_EMPTY = 10_000
"""Maximum items of a type whose values take no bytes: the size of the payload does not limit their number."""
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")


class DecodeError(ValueError):
    """Bytes that do not encode a value of the type.

    Shape: `code` and `message` are those of the problem; `offset` counts bytes; `path` has the enclosing members and
    indexes, innermost first.
    """

    def __init__(self, message: str, offset: int, code: str = "payload-syntax") -> None:
        super().__init__(message)
        self.message, self.offset, self.code = message, offset, code
        self.path: list[str | int] = []


def decode(decoder: Decoder, data: bytes, depth: int) -> Any:
    """Return the value that all bytes of `data` encode. Raises: DecodeError"""
    value, end = decoder(data, 0, depth)
    if end != len(data):
        raise DecodeError(f"{len(data) - end} bytes after the end of the value", end)
    return value


def decoder_of(type_: AvroType, known: dict[int, Decoder] | None = None) -> Decoder:
    """Return the decoder of a type. `known` has the decoders created so far, by the identity of their types."""
    known = {} if known is None else known
    key = id(type_)
    if key not in known:
        known[key] = lambda data, at, depth: known[key](data, at, depth)  # noqa: PLW0108  (for a recursive type)
        known[key] = DECODERS[type_.kind](type_, known)
    return known[key]


# -- primitive types --------------------------------------------------------------------------------------------------


def read_long(data: bytes, at: int, depth: int = 0) -> tuple[int, int]:  # noqa: ARG001
    """Decode a zigzag number of at most 64 bits."""
    number = shift = 0
    try:
        while (byte := data[at]) & 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
            at += 1
            if shift > 63:
                raise DecodeError("an integer has more than 64 bits", at)
    except IndexError:
        raise DecodeError("the payload ends inside an integer", at) from None
    number |= byte << shift
    if number >> 64:
        raise DecodeError("an integer has more than 64 bits", at)
    return (number >> 1) ^ -(number & 1), at + 1


def _int(data: bytes, at: int, depth: int) -> tuple[int, int]:
    number, end = read_long(data, at, depth)
    if not -0x80000000 <= number <= 0x7FFFFFFF:
        raise DecodeError(f"{number} is not an int of 32 bits", at)
    return number, end


def _null(data: bytes, at: int, depth: int) -> tuple[None, int]:  # noqa: ARG001
    return None, at


def _boolean(data: bytes, at: int, depth: int) -> tuple[bool, int]:  # noqa: ARG001
    if at >= len(data):
        raise DecodeError("the payload ends before a boolean", at)
    if data[at] > 1:
        raise DecodeError(f"the byte {data[at]} is not a boolean; expected 0 or 1", at)
    return data[at] == 1, at + 1


def _floating(layout: struct.Struct) -> Decoder:
    def read(data: bytes, at: int, depth: int) -> tuple[float, int]:  # noqa: ARG001
        try:
            return layout.unpack_from(data, at)[0], at + layout.size
        except struct.error:
            raise DecodeError("the payload ends inside a floating-point number", at) from None

    return read


def _bytes(data: bytes, at: int, depth: int) -> tuple[bytes, int]:
    length, begin = read_long(data, at, depth)
    if not 0 <= length <= len(data) - begin:
        raise DecodeError(f"a length of {length}, but {len(data) - begin} bytes are left", at)
    return data[begin : begin + length], begin + length


def _string(data: bytes, at: int, depth: int) -> tuple[str, int]:
    octets, end = _bytes(data, at, depth)
    try:
        return octets.decode(), end
    except UnicodeDecodeError:
        raise DecodeError("a string is not valid UTF-8", at) from None


# -- complex types ----------------------------------------------------------------------------------------------------


def _deeper(depth: int, at: int) -> int:
    if depth <= 0:
        raise DecodeError("the value is nested too deeply", at, "payload-too-deep")
    return depth - 1


def _record(type_: AvroType, known: dict[int, Decoder]) -> Decoder:
    fields = [(name, decoder_of(field, known)) for name, field in type_.fields]

    def read(data: bytes, at: int, depth: int) -> tuple[dict[str, Any], int]:
        inner, value, name = _deeper(depth, at), dict[str, Any](), ""
        try:
            for name, decoder in fields:
                value[name], at = decoder(data, at, inner)
        except DecodeError as error:
            error.path.append(name)
            raise
        return value, at

    return read


def _enum(type_: AvroType, known: dict[int, Decoder]) -> Decoder:  # noqa: ARG001
    symbols = type_.symbols

    def read(data: bytes, at: int, depth: int) -> tuple[str, int]:
        index, end = read_long(data, at, depth)
        if not 0 <= index < len(symbols):
            raise DecodeError(f"the enum '{type_.name}' has no symbol with the index {index}", at)
        return symbols[index], end

    return read


def _fixed(type_: AvroType, known: dict[int, Decoder]) -> Decoder:  # noqa: ARG001
    size = type_.size

    def read(data: bytes, at: int, depth: int) -> tuple[bytes, int]:  # noqa: ARG001
        if len(data) - at < size:
            raise DecodeError(f"the payload ends inside the {size} bytes of '{type_.name}'", at)
        return data[at : at + size], at + size

    return read


def _union(type_: AvroType, known: dict[int, Decoder]) -> Decoder:
    is_wrapped = sum(branch.kind != "null" for branch in type_.branches) > 1
    branches = [(branch.branch_name, decoder_of(branch, known)) for branch in type_.branches]

    def read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
        index, begin = read_long(data, at, depth)
        if not 0 <= index < len(branches):
            raise DecodeError(f"the union has no branch with the index {index}", at)
        name, decoder = branches[index]
        value, end = decoder(data, begin, depth)
        return (value, end) if not is_wrapped or name == "null" else ({name: value}, end)

    return read


def _blocks(type_: AvroType, add: Callable[[Any, bytes, int, int], int], make: Callable[[], Any]) -> Decoder:
    """Return the decoder of an array or a map: blocks of items, each after its count, up to a count of 0.

    After a negative count, the size of the block in bytes precedes the items.
    """
    assert type_.items is not None
    min_size = min_bytes(type_.items) + (1 if type_.kind == "map" else 0)

    def read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
        inner, value, total = _deeper(depth, at), make(), 0
        while True:
            start = at
            count, at = read_long(data, at, depth)
            if count == 0:
                return value, at
            if count < 0:
                _, at = read_long(data, at, depth)
                count = -count
            total += count
            if count * min_size > len(data) - at or (min_size == 0 and total > MAX_EMPTY):
                raise DecodeError(f"a block of {count} items, but {len(data) - at} bytes are left", start)
            for _ in range(count):
                at = add(value, data, at, inner)

    return read


def _array(type_: AvroType, known: dict[int, Decoder]) -> Decoder:
    assert type_.items is not None
    item = decoder_of(type_.items, known)

    def add(value: list[Any], data: bytes, at: int, depth: int) -> int:
        try:
            element, at = item(data, at, depth)
        except DecodeError as error:
            error.path.append(len(value))
            raise
        value.append(element)
        return at

    return _blocks(type_, add, list)


def _map(type_: AvroType, known: dict[int, Decoder]) -> Decoder:
    assert type_.items is not None
    item = decoder_of(type_.items, known)

    def add(value: dict[str, Any], data: bytes, at: int, depth: int) -> int:
        key, at = _string(data, at, depth)
        try:
            value[key], at = item(data, at, depth)
        except DecodeError as error:
            error.path.append(key)
            raise
        return at

    return _blocks(type_, add, dict)


def min_bytes(type_: AvroType, ancestors: tuple[AvroType, ...] = ()) -> int:
    """Return the minimum size of an encoded value. A record directly inside itself, which has no finite value, adds 0.

    Units: bytes
    """
    if type_.kind == "record":
        return 0 if type_ in ancestors else sum(min_bytes(field, (*ancestors, type_)) for _, field in type_.fields)
    if type_.kind == "union":
        return 1
    return {"null": 0, "float": 4, "double": 8, "fixed": type_.size}.get(type_.kind, 1)


def _plain(decoder: Decoder) -> Callable[[AvroType, dict[int, Decoder]], Decoder]:
    return lambda type_, known: decoder  # noqa: ARG005


DECODERS: dict[str, Callable[[AvroType, dict[int, Decoder]], Decoder]] = {
    "null": _plain(_null),
    "boolean": _plain(_boolean),
    "int": _plain(_int),
    "long": _plain(read_long),
    "float": _plain(_floating(_FLOAT)),
    "double": _plain(_floating(_DOUBLE)),
    "bytes": _plain(_bytes),
    "string": _plain(_string),
    "record": _record,
    "enum": _enum,
    "fixed": _fixed,
    "union": _union,
    "array": _array,
    "map": _map,
}
