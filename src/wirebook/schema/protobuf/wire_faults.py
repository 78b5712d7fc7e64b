"""Finds where bytes stop being a valid Protobuf message, because the library's parser does not report the place.

It runs only on bytes that the parser rejected, to add the place of the first fault to the problem.

Spec: protobuf.dev "Encoding".
"""

from __future__ import annotations

from wirebook.schema.protobuf.columns import Descriptor, FieldDescriptor
from wirebook.schema.protobuf.read import wire_types
from wirebook.schema.varint import WireFault, read_varint

Tag = tuple[int, int, FieldDescriptor | None]
"""The number and wire type of a field in the bytes, and the field with that number in the schema (None if unknown)."""
MAX_NUMBER = 2**29 - 1
SIZES = {1: 8, 5: 4}


def find_fault(data: bytes, descriptor: Descriptor, depth: int) -> WireFault | None:
    """Return the first fault of a message; None if no fault is found."""
    try:
        _message(data, 0, len(data), descriptor, depth)
    except WireFault as fault:
        return fault
    return None


def _message(data: bytes, at: int, end: int, descriptor: Descriptor | None, depth: int, *, group: int = 0) -> int:
    """Return the offset where a message ends, or the group with the number `group`. Raises: WireFault"""
    if depth < 0:
        raise WireFault("the message is nested too deeply", at, [])
    while at < end:
        start = at
        tag, at = read_varint(data, at, end)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number <= MAX_NUMBER:
            raise WireFault(f"{number} is not a valid field number", start, [])
        if wire_type == 4:
            if number == group:
                return at
            raise WireFault(f"group {number} ends but did not begin", start, [])
        field = descriptor.fields_by_number.get(number) if descriptor is not None else None
        try:
            at = _field(data, at, end, (number, wire_type, field), depth)
        except WireFault as fault:
            fault.path.append(field.name if field is not None else str(number))
            raise
    if group:
        raise WireFault(f"the payload ends inside group {group}", end, [])
    return at


def _field(data: bytes, at: int, end: int, tag: Tag, depth: int) -> int:
    number, wire_type, field = tag
    known = field if field is not None and wire_type in wire_types(field) else None
    if wire_type == 0:
        return read_varint(data, at, end)[1]
    if wire_type in SIZES:
        if end - at < SIZES[wire_type]:
            raise WireFault(f"the payload ends inside the {SIZES[wire_type]} bytes of a number", at, [])
        return at + SIZES[wire_type]
    if wire_type == 3:
        return _message(data, at, end, known and known.message_type, depth - 1, group=number)
    if wire_type != 2:
        raise WireFault(f"invalid wire type {wire_type}", at, [])
    length, begin = read_varint(data, at, end)
    if length > end - begin:
        raise WireFault(f"a length of {length}, but {end - begin} bytes are left", at, [])
    _content(data, begin, begin + length, known, depth)
    return begin + length


def _content(data: bytes, at: int, end: int, field: FieldDescriptor | None, depth: int) -> None:
    """Check the content of a length-delimited field: a message, a string, or packed numbers. Raises: WireFault"""
    if field is None:
        return
    own = wire_types(field)[0]
    if field.type == 9:
        try:
            data[at:end].decode()
        except UnicodeDecodeError as error:
            raise WireFault("a string is not valid UTF-8", at + error.start, []) from None
    elif field.message_type is not None:
        _message(data, at, end, field.message_type, depth - 1)
    elif own in SIZES and (end - at) % SIZES[own]:
        raise WireFault(f"{end - at} bytes are not a multiple of {SIZES[own]}", at, [])
    elif own == 0:
        while at < end:
            at = read_varint(data, at, end)[1]
