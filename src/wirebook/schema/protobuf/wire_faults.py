"""Where bytes stop being a Protobuf message: what the library's parser does not say.

Only run over bytes that the parser refused, to put the place of the first fault into the problem.

Spec: protobuf.dev "Encoding".
"""

from __future__ import annotations

from wirebook.schema.protobuf.columns import Descriptor, FieldDescriptor
from wirebook.schema.protobuf.read import wire_types
from wirebook.schema.varint import WireFault, read_varint

Tag = tuple[int, int, FieldDescriptor | None]  # number, wire type, the field that has the number
MAX_NUMBER = 2**29 - 1
SIZES = {1: 8, 5: 4}


def find_fault(data: bytes, descriptor: Descriptor, depth: int) -> WireFault | None:
    """The first fault of a message; None if nothing is wrong that can be seen here."""
    try:
        _message(data, 0, len(data), descriptor, depth)
    except WireFault as fault:
        return fault
    return None


def _message(data: bytes, at: int, end: int, descriptor: Descriptor | None, depth: int, *, group: int = 0) -> int:
    """The end of a message, or of the group of that number."""
    if depth < 0:
        raise WireFault("nested too deeply", at, [])
    while at < end:
        start = at
        tag, at = read_varint(data, at, end)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number <= MAX_NUMBER:
            raise WireFault(f"{number} is no number of a field", start, [])
        if wire_type == 4:
            if number == group:
                return at
            raise WireFault(f"a group {number} ends that did not begin", start, [])
        field = descriptor.fields_by_number.get(number) if descriptor is not None else None
        try:
            at = _field(data, at, end, (number, wire_type, field), depth)
        except WireFault as fault:
            fault.path.append(field.name if field is not None else str(number))
            raise
    if group:
        raise WireFault(f"the bytes end within group {group}", end, [])
    return at


def _field(data: bytes, at: int, end: int, tag: Tag, depth: int) -> int:
    number, wire_type, field = tag
    known = field if field is not None and wire_type in wire_types(field) else None
    if wire_type == 0:
        return read_varint(data, at, end)[1]
    if wire_type in SIZES:
        if end - at < SIZES[wire_type]:
            raise WireFault(f"the bytes end within the {SIZES[wire_type]} of a number", at, [])
        return at + SIZES[wire_type]
    if wire_type == 3:
        return _message(data, at, end, known and known.message_type, depth - 1, group=number)
    if wire_type != 2:
        raise WireFault(f"there is no wire type {wire_type}", at, [])
    length, begin = read_varint(data, at, end)
    if length > end - begin:
        raise WireFault(f"a length of {length} with {end - begin} bytes left", at, [])
    _content(data, begin, begin + length, known, depth)
    return begin + length


def _content(data: bytes, at: int, end: int, field: FieldDescriptor | None, depth: int) -> None:
    """What a known field with a length holds: a message, text, or packed numbers."""
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
        raise WireFault(f"{end - at} bytes are no whole count of {SIZES[own]}", at, [])
    elif own == 0:
        while at < end:
            at = read_varint(data, at, end)[1]
