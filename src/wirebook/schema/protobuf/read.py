"""Converts Protobuf messages to plain values: dicts, lists, numbers, strings, bytes.

Rule: an unset field has its default if it has no presence, and is absent if it has presence. Names are those of the
schema. An enum value is its name, or its number if it has no name. Map keys are strings. A timestamp is RFC 3339 text.
Unknown fields are kept under their number, as ``{"7": [{"varint": 5}]}``, and extensions under ``[full.name]``. Inside
JSON text, where there is no column layout, unset fields are omitted, and NaN and the infinities are strings, as in
Protobuf's JSON mapping.

Spec: protobuf.dev "Encoding", "Field Presence", "ProtoJSON Format".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import repeat
from operator import itemgetter
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet

from wirebook.schema.layout import ColumnLayout, List, Map, Struct
from wirebook.schema.protobuf.columns import TIMESTAMP_NAME, WELL_KNOWN, WRAPPERS, Descriptor, FieldDescriptor, is_map

BASE: Any = next(class_ for class_ in Timestamp.__mro__ if "HasField" in vars(class_))
"""The base class of all messages. Its functions are called on the class, as a field or nested type may hide them."""
Message = Any
Convert = Callable[[Any, int], Any]
"""Return the plain value of a message or a field value. The second argument is the levels of nesting that are left."""
WIRE_TYPES = {0: "varint", 1: "fixed64", 2: "bytes", 3: "group", 5: "fixed32"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS = (-62135596800, 253402300799)  # the years 1 to 9999
_BY_TYPE = {1: 1, 2: 5, 6: 1, 7: 5, 9: 2, 10: 3, 11: 2, 12: 2, 15: 5, 16: 1}
"""The wire type by field type; all other field types are varints."""


class MessageError(ValueError):
    """A message is not valid against its schema.

    Shape: `code`, `message`, `expected` and `actual` of the problem; `path` are the members, innermost first.
    """

    def __init__(self, message: str, expected: Any = None, actual: Any = None, code: str = "payload-invalid") -> None:
        super().__init__(message)
        self.message, self.expected, self.actual, self.code = message, expected, actual, code
        self.path: list[str | int] = []


class MessageReaders:
    """The readers of the message types of one schema, each created once."""

    def __init__(self) -> None:
        self._readers: dict[tuple[str, int], Convert] = {}

    def reader(self, descriptor: Descriptor, layout: ColumnLayout | None) -> Convert:
        """Return the reader of a message type. `layout` is its column layout; None inside JSON text."""
        name = descriptor.full_name
        if name == TIMESTAMP_NAME:
            return _timestamp
        if name in WRAPPERS:
            return self._wrapper(descriptor, layout)
        if name in PLAIN_READERS:
            return PLAIN_READERS[name]
        key = (name, id(layout) if isinstance(layout, Struct) else 0)
        if key not in self._readers:
            self._readers[key] = lambda message, depth: self._readers[key](message, depth)  # noqa: PLW0108  (a message inside itself)
            self._readers[key] = self._message(descriptor, layout)
        return self._readers[key]

    def _message(self, descriptor: Descriptor, layout: ColumnLayout | None) -> Convert:
        members = layout.members if isinstance(layout, Struct) else {}
        readers = {
            declared.number: (declared.name, self.field(declared, members.get(declared.name)))
            for declared in descriptor.fields
        }
        defaults: Callable[[], dict[str, Any]] = _defaults(descriptor) if isinstance(layout, Struct) else dict

        def read(message: Message, depth: int) -> dict[str, Any]:
            if depth <= 0:
                raise MessageError("the message is nested too deeply", code="payload-too-deep")
            value, name = defaults(), ""
            try:
                for field, listfield in BASE.ListFields(message):
                    if field.is_extension:
                        name, convert = f"[{field.full_name}]", self.field(field, None)
                    else:
                        name, convert = readers[field.number]
                    value[name] = convert(listfield, depth - 1)
            except MessageError as error:
                error.path.append(name)
                raise
            unknown = UnknownFieldSet(message)
            return value | unknown_fields(unknown, descriptor, depth) if len(unknown) else value

        return read

    def field(self, field: FieldDescriptor, layout: ColumnLayout | None) -> Convert:
        """Return the reader of the value of a field; `layout` is None for a field without a column."""
        if is_map(field):
            return self._map(field, layout)
        inner = layout.item if isinstance(layout, List) else layout
        single = self.single(field, inner)
        return _list(single) if field.is_repeated else single

    def single(self, field: FieldDescriptor, layout: ColumnLayout | None) -> Convert:
        """Return the reader of a single value of a field; of one item if the field is repeated."""
        if field.message_type is not None:
            return self.reader(field.message_type, layout)
        if field.enum_type is not None:
            return _enum(field)
        if field.type in (1, 2) and layout is None:
            return json_float
        return _text if field.type == 9 else _same

    def _wrapper(self, descriptor: Descriptor, layout: ColumnLayout | None) -> Convert:
        inner = self.single(descriptor.fields[0], layout)

        def read(message: Message, depth: int) -> Any:
            unknown = UnknownFieldSet(message)
            value = inner(message.value, depth)
            return {"value": value} | unknown_fields(unknown, descriptor, depth) if len(unknown) else value

        return read

    def _map(self, field: FieldDescriptor, layout: ColumnLayout | None) -> Convert:
        entry = field.message_type.fields_by_name
        inner = self.single(entry["value"], layout.values if isinstance(layout, Map) else None)
        key_of = KEYS.get(entry["key"].type, str)

        def read(value: Any, depth: int) -> dict[str, Any]:
            entries: dict[str, Any] = {}
            for key in sorted(map(_text, value, repeat(0))):
                try:
                    entries[key_of(key)] = inner(value[key], depth)
                except MessageError as error:
                    error.path.append(key_of(key))
                    raise
            return entries

        return read


def _defaults(descriptor: Descriptor) -> Callable[[], dict[str, Any]]:
    """Return a function that returns the value of an empty message: the defaults of all fields without presence."""
    fields = [field for field in descriptor.fields if not field.has_presence]
    maps = [field.name for field in fields if is_map(field)]
    lists = [field.name for field in fields if field.is_repeated and field.name not in maps]
    scalars = {
        field.name: field.default_value if field.enum_type is None else _enum(field)(field.default_value, 0)
        for field in fields
        if not field.is_repeated
    }
    return lambda: scalars | {name: [] for name in lists} | {name: {} for name in maps}


# -- single values ----------------------------------------------------------------------------------------------------


def _same(value: Any, depth: int) -> Any:  # noqa: ARG001
    return value


def _text(value: Any, depth: int) -> Any:  # noqa: ARG001
    if isinstance(value, bytes):  # proto2 returns the bytes of a string that is not valid UTF-8
        raise MessageError("a string is not valid UTF-8", code="payload-syntax")
    return value


def json_float(value: float, depth: int = 0) -> Any:  # noqa: ARG001
    """Return a number as Protobuf's JSON mapping writes it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _enum(field: FieldDescriptor) -> Convert:
    names = names_of(field)
    return lambda value, depth: names.get(value, value)  # noqa: ARG005


def names_of(field: FieldDescriptor) -> dict[int, str]:
    """Return the names of an enum by number: the first name if several have the same number."""
    return {value.number: value.name for value in reversed(field.enum_type.values)}


def _list(single: Convert) -> Convert:
    def read(values: Iterable[Any], depth: int) -> list[Any]:
        items: list[Any] = []
        try:
            for value in values:
                items.append(single(value, depth))
        except MessageError as error:
            error.path.append(len(items))
            raise
        return items

    return read


KEYS: dict[int, Callable[[Any], str]] = {8: lambda key: "true" if key else "false"}
"""The function that converts a map key to text, by field type; `str` for all other types."""


def _timestamp(message: Message, depth: int) -> Any:
    seconds, nanos, unknown = message.seconds, message.nanos, UnknownFieldSet(message)
    if len(unknown) or not (SECONDS[0] <= seconds <= SECONDS[1] and 0 <= nanos < 10**9):
        return {"seconds": seconds, "nanos": nanos} | unknown_fields(unknown, message.DESCRIPTOR, depth)
    moment = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return f"{moment}.{nanos:09d}".rstrip("0").rstrip(".") + "Z" if nanos else f"{moment}Z"


# -- google.protobuf.Struct, Value, ListValue: the JSON value that they represent -------------------------------------


def _plain_value(message: Message, depth: int) -> Any:
    kind = _checked(message, depth).WhichOneof("kind")
    if kind is None or kind == "null_value":
        return None
    if kind == "struct_value":
        return _plain_struct(message.struct_value, depth - 1)
    if kind == "list_value":
        return _plain_list(message.list_value, depth - 1)
    return json_float(message.number_value) if kind == "number_value" else getattr(message, kind)


def _plain_struct(message: Message, depth: int) -> dict[str, Any]:
    fields = _checked(message, depth).fields
    return {key: _plain_value(fields[key], depth - 1) for key in sorted(fields)}


def _plain_list(message: Message, depth: int) -> list[Any]:
    return [_plain_value(value, depth - 1) for value in _checked(message, depth).values]


def _checked(message: Message, depth: int) -> Message:
    """Return the message. Raises: MessageError if it has unknown fields or is nested too deeply"""
    if depth <= 0:
        raise MessageError("the message is nested too deeply", code="payload-too-deep")
    if len(UnknownFieldSet(message)):
        name = message.DESCRIPTOR.full_name
        text = f"unknown field in a message of the type {name}"
        raise MessageError(text, {"type": name}, "a field with another number")
    return message


PLAIN_READERS: dict[str, Convert] = {
    f"{WELL_KNOWN}ListValue": _plain_list,
    f"{WELL_KNOWN}Struct": _plain_struct,
    f"{WELL_KNOWN}Value": _plain_value,
}


# -- unknown fields ---------------------------------------------------------------------------------------------------


def unknown_fields(fields: Any, descriptor: Descriptor | None, depth: int) -> dict[str, list[Any]]:
    """Return unknown fields by number.

    A field number that is in the schema is valid here only with its own wire type, as closed enums keep values without
    a name among the unknown fields.

    Raises: MessageError
    """
    if depth <= 0:
        raise MessageError("the message is nested too deeply", code="payload-too-deep")
    values: dict[str, list[Any]] = {}
    for field in fields:
        number, wire_type, data = field.field_number, field.wire_type, field.data
        known = descriptor and descriptor.fields_by_number.get(number)
        if known and wire_type not in wire_types(known):
            expected, actual = [WIRE_TYPES[allowed] for allowed in wire_types(known)], WIRE_TYPES[wire_type]
            error = MessageError(f"field {number} is encoded as {actual}", {"encoding": expected}, actual)
            error.path.append(known.name)
            raise error
        value = unknown_fields(data, None, depth - 1) if wire_type == 3 else data
        values.setdefault(str(number), []).append({WIRE_TYPES[wire_type]: value})
    return dict(sorted(values.items(), key=itemgetter(0)))


def wire_types(field: FieldDescriptor) -> tuple[int, ...]:
    """Return the valid wire types of a field: repeated numbers may be packed or not."""
    own = _BY_TYPE.get(field.type, 0)
    return (own, 2) if field.is_repeated and own not in (2, 3) else (own,)
