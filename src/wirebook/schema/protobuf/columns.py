"""The columns of a Protobuf message.

Rule: a message is a struct of its fields. A message that contains itself, or has no fields, is JSON text. Of the
well-known types, timestamps, wrappers and Struct, Value and ListValue have columns of their own; the others are plain
messages.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from wirebook.schema.layout import NOTHING, Cell, ColumnLayout, List, Map, ScalarColumn, Struct
from wirebook.schema.scalar_columns import BOOLEAN, BYTES, DOUBLE, FLOAT, INT32, INT64, JSON, TEXT, TIMESTAMP

MAX_LEVELS = 32
"""The deepest nesting of messages that has columns; deeper messages are JSON text."""
MAX_COLUMNS = 4000
"""The most fields that have columns; the messages of the others are JSON text."""
WELL_KNOWN = "google.protobuf."
TIMESTAMP_NAME = f"{WELL_KNOWN}Timestamp"
PLAIN_JSON = frozenset(f"{WELL_KNOWN}{name}" for name in ("Struct", "Value", "ListValue"))
WRAPPERS = frozenset(
    f"{WELL_KNOWN}{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
Descriptor = Any  # of a message; the classes of google.protobuf.descriptor are built in C and have no types
FieldDescriptor = Any


def _unsigned(value: Any) -> Cell:
    return (Decimal(value), NOTHING) if isinstance(value, int) and not isinstance(value, bool) else (None, value)


UNSIGNED = ScalarColumn("unsigned integer", pa.decimal128(20, 0), pa.decimal128(20, 0), {}, _unsigned)
# By the numbers of FieldDescriptorProto.Type.
SCALARS: dict[int, ScalarColumn] = {
    1: DOUBLE,
    2: FLOAT,
    3: INT64,
    4: UNSIGNED,
    5: INT32,
    6: UNSIGNED,
    7: INT64,  # fixed32
    8: BOOLEAN,
    9: TEXT,
    12: BYTES,
    13: INT64,  # uint32
    14: TEXT,  # enum
    15: INT32,
    16: INT64,
    17: INT32,
    18: INT64,
}


def layout_of(descriptor: Descriptor, docs: dict[str, str]) -> ColumnLayout:
    """Return the column layout of a message. `docs` are the comments of all members by full name."""
    return _ProtobufColumns(docs).message(descriptor)


def is_map(field: FieldDescriptor) -> bool:
    """Whether a field is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


class _ProtobufColumns:
    def __init__(self, docs: dict[str, str]) -> None:
        self.docs = docs
        self.remaining = MAX_COLUMNS
        self.ancestors: list[str] = []

    def message(self, descriptor: Descriptor) -> ColumnLayout:
        name = descriptor.full_name
        if name == TIMESTAMP_NAME:
            return TIMESTAMP
        if name in WRAPPERS:
            return self.single(descriptor.fields[0])
        is_closed = name in PLAIN_JSON or name in self.ancestors or len(self.ancestors) >= MAX_LEVELS
        if is_closed or not descriptor.fields or self.remaining < len(descriptor.fields):
            return JSON
        self.ancestors.append(name)
        try:
            return self._struct(descriptor)
        finally:
            self.ancestors.pop()

    def _struct(self, descriptor: Descriptor) -> ColumnLayout:
        self.remaining -= len(descriptor.fields)
        members = {field.name: self.field(field) for field in descriptor.fields}
        required = frozenset(field.name for field in descriptor.fields if not field.has_presence or field.is_required)
        docs = {field.name: self.docs[field.full_name] for field in descriptor.fields if field.full_name in self.docs}
        return Struct(members, required, docs)

    def field(self, field: FieldDescriptor) -> ColumnLayout:
        if is_map(field):
            return Map(self.single(field.message_type.fields_by_name["value"]))
        return List(self.single(field)) if field.is_repeated else self.single(field)

    def single(self, field: FieldDescriptor) -> ColumnLayout:
        return self.message(field.message_type) if field.message_type is not None else SCALARS[field.type]
