"""The column layout of a Protobuf message.

Rule: a message becomes a struct of its fields. A message that contains itself, or has no fields, becomes JSON text. Of
the well-known types, a Timestamp becomes a timestamp, a wrapper becomes its scalar, and Struct, Value and ListValue
become JSON text; the others are treated as plain messages.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from wirebook.schema.layout import NOTHING, Cell, ColumnLayout, List, Map, ScalarColumn, Struct
from wirebook.schema.scalar_columns import BOOLEAN, BYTES, DOUBLE, FLOAT, INT32, INT64, JSON, TEXT, TIMESTAMP

MAX_LEVELS = 32
"""The deepest nesting of messages that get columns; deeper messages become JSON text."""
MAX_COLUMNS = 4000
"""The most fields that get columns; messages with further fields become JSON text."""
WELL_KNOWN = "google.protobuf."
TIMESTAMP_NAME = f"{WELL_KNOWN}Timestamp"
PLAIN_JSON = frozenset(f"{WELL_KNOWN}{name}" for name in ("Struct", "Value", "ListValue"))
WRAPPERS = frozenset(
    f"{WELL_KNOWN}{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
Descriptor = Any  # of a message; the C classes of google.protobuf.descriptor have no type annotations
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
    """Return the column layout of a message. `docs` are the comments of all fields by full name."""
    return _ProtobufColumns(docs).message(descriptor, ())


def is_map(field: FieldDescriptor) -> bool:
    """Whether a field is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


class _ProtobufColumns:
    def __init__(self, docs: dict[str, str]) -> None:
        self.docs = docs
        self.remaining = MAX_COLUMNS

    def message(self, descriptor: Descriptor, ancestors: tuple[str, ...]) -> ColumnLayout:
        name, fields = descriptor.full_name, descriptor.fields
        if name == TIMESTAMP_NAME:
            return TIMESTAMP
        if name in WRAPPERS:
            return self.single(fields[0], ancestors)
        is_closed = name in PLAIN_JSON or name in ancestors or len(ancestors) >= MAX_LEVELS
        if is_closed or not fields or self.remaining < len(fields):
            return JSON
        self.remaining -= len(fields)
        members = {field.name: self.field(field, (*ancestors, name)) for field in fields}
        required = frozenset(field.name for field in fields if not field.has_presence or field.is_required)
        docs = {field.name: self.docs[field.full_name] for field in fields if field.full_name in self.docs}
        return Struct(members, required, docs)

    def field(self, field: FieldDescriptor, ancestors: tuple[str, ...]) -> ColumnLayout:
        if is_map(field):
            return Map(self.single(field.message_type.fields_by_name["value"], ancestors))
        single = self.single(field, ancestors)
        return List(single) if field.is_repeated else single

    def single(self, field: FieldDescriptor, ancestors: tuple[str, ...]) -> ColumnLayout:
        return SCALARS[field.type] if field.message_type is None else self.message(field.message_type, ancestors)
