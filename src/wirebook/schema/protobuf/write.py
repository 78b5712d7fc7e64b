"""Writes values as Protobuf messages, binary or JSON.

Spec: protobuf.dev "Encoding", "ProtoJSON Format".
"""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format

from wirebook.problems import Problem
from wirebook.schema.payload_problems import preview
from wirebook.schema.protobuf.columns import WELL_KNOWN, Descriptor, FieldDescriptor, is_map
from wirebook.schema.protobuf.read import BASE, Message
from wirebook.schema.protobuf.read_json import from_json, json_value
from wirebook.schema.protobuf.well_known import WellKnownMessages


def to_message(message: Message, value: Any, descriptor: Descriptor, depth: int) -> tuple[Problem, ...]:
    """Fill an empty message with a value, and return the problems of what does not fit (``payload-invalid``)."""
    parts = WellKnownMessages()
    plain = parts.taken_out(json_value(value), descriptor, depth)
    return from_json(message, plain, descriptor, depth) or tuple(parts.put_into(message))


def to_binary(message: Message) -> bytes:
    """Return a message in the binary encoding. Equal messages have equal bytes."""
    return bytes(BASE.SerializeToString(message, deterministic=True))


def to_json(message: Message, descriptor: Descriptor) -> Any:
    """Return a message as a JSON value, with the names of the schema and sorted map keys.

    Returns a Problem if the message has no JSON form: an Any of an unknown type, a duration of more than 10,000 years.
    """
    pool = descriptor.file.pool
    try:
        value = json_format.MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=pool)
    except (json_format.Error, ValueError, TypeError, KeyError, OverflowError) as error:
        return Problem("payload-invalid", f"the value has no JSON form: {preview(str(error))}", slot="payload")
    return _in_order(value, descriptor)


def _in_order(value: Any, type_: Descriptor | None) -> Any:
    """Sort the keys of maps: their order in the library's result varies between processes."""
    if isinstance(value, list):
        return [_in_order(item, type_) for item in value]
    if type_ is None or not isinstance(value, dict):
        return value
    if type_.full_name.startswith(WELL_KNOWN):  # a Struct, or the message in an Any
        return {key: _in_order(value[key], type_) for key in sorted(value)}
    return {name: _field_in_order(item, type_.fields_by_name.get(name)) for name, item in value.items()}


def _field_in_order(value: Any, field: FieldDescriptor | None) -> Any:
    if field is None:  # an extension
        return value
    if not is_map(field):
        return _in_order(value, field.message_type)
    type_ = field.message_type.fields_by_name["value"].message_type
    return {key: _in_order(value[key], type_) for key in sorted(value)}
