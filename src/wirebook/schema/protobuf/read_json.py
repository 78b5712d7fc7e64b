"""Reads Protobuf's JSON mapping: fills a message with a JSON value.

Spec: protobuf.dev "ProtoJSON Format", which requires that unknown members are rejected.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice, starmap
from typing import Any

from google.protobuf import json_format, message_factory

from wirebook.problems import Problem
from wirebook.schema.payload_problems import MAX_PROBLEMS, preview
from wirebook.schema.protobuf.columns import WELL_KNOWN, Descriptor, FieldDescriptor, is_map
from wirebook.schema.protobuf.read import Message, json_float
from wirebook.text.pointers import format_pointer

_PREFIX = re.compile(r"Failed to parse \S{1,200} field: ")
_SUFFIX = re.compile(r"""[ ]at "?\w+(?:[.\[][^ ]{0,1000})?"?\.*\Z""")


def from_json(message: Message, value: Any, descriptor: Descriptor, depth: int) -> tuple[Problem, ...]:
    """Fill a message with a JSON value, and return at most 20 problems (``payload-invalid``)."""
    if _fill(message, value, descriptor, depth) is None:
        return ()
    faults = islice(_faults(value, descriptor, (), depth), MAX_PROBLEMS)
    return tuple(starmap(_problem, faults))


def _fill(message: Message, value: Any, descriptor: Descriptor, depth: int) -> str | None:
    """Fill a message, and return the library's message about the first fault; None if there is none."""
    if not isinstance(value, dict) and not descriptor.full_name.startswith(WELL_KNOWN):
        return "expected an object"
    try:
        json_format.ParseDict(value, message, descriptor_pool=descriptor.file.pool, max_recursion_depth=depth)
    except KeyError as error:  # an Any within an Any
        return f"unknown member {error}"
    except SystemError as error:  # a name with a lone surrogate
        return str(error.__cause__ or error)
    except (json_format.Error, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        return str(error)
    return None


# -- places of faults: the library reports only the first; parsing each member alone finds the others -----------------

Fault = tuple[tuple[str | int, ...], str, Any]
"""The path, message and value of a fault."""


def _faults(
    value: Any, descriptor: Descriptor, path: tuple[str | int, ...], depth: int, default: str = "does not match"
) -> Iterator[Fault]:
    """Yield the faults in the value of a message. `default` is the text if the library accepts the value alone."""
    class_ = message_factory.GetMessageClass(descriptor)
    has_fault = False
    is_leaf = not isinstance(value, dict) or descriptor.full_name.startswith(WELL_KNOWN)
    for name, member in () if is_leaf else value.items():
        message = _fill(class_(), {name: member}, descriptor, depth)
        if message is not None:
            has_fault = True
            field = field_named(descriptor, name)
            if field is None:
                yield path, message, member
            else:
                yield from _faults_inside(field, name, ((*path, name), message, member), depth)
    if not has_fault:
        yield path, _fill(class_(), value, descriptor, depth) or default, value


def _faults_inside(field: FieldDescriptor, name: str, fault: Fault, depth: int) -> Iterator[Fault]:
    """Yield the faults inside the value of a field; `fault`, the fault of the whole value, if there are none."""
    path, message, value = fault
    has_fault = False
    class_ = message_factory.GetMessageClass(field.containing_type)
    for step, item, single in _items(field, value):
        item_message = _fill(class_(), {name: single}, field.containing_type, depth)
        if item_message is not None:
            has_fault = True
            type_ = field.message_type.fields_by_name["value"].message_type if is_map(field) else field.message_type
            if type_ is None:
                yield (*path, step), item_message, item
            else:
                yield from _faults(item, type_, (*path, step), depth, item_message)
    if not has_fault and field.message_type is not None and not field.is_repeated:
        yield from _faults(value, field.message_type, path, depth, message)
    elif not has_fault:
        yield fault


def _items(field: FieldDescriptor, value: Any) -> Iterator[tuple[str | int, Any, Any]]:
    """Yield the index or key of each item of a list or map, the item, and a list or map with only that item."""
    if is_map(field):
        yield from ((key, item, {key: item}) for key, item in (value.items() if isinstance(value, dict) else ()))
    elif field.is_repeated and isinstance(value, list):
        yield from ((index, item, [item]) for index, item in enumerate(value))


def field_named(descriptor: Descriptor, name: str) -> FieldDescriptor | None:
    """Return the field with this name in the schema or in its JSON mapping."""
    try:
        return descriptor.fields_by_name.get(name) or descriptor.fields_by_camelcase_name.get(name)
    except SystemError:  # the library's error for a lone surrogate
        return None


def _problem(path: tuple[str | int, ...], message: str, value: Any) -> Problem:
    text = preview(_SUFFIX.sub("", _PREFIX.sub("", message).partition("\n")[0]).rstrip(". "))
    slot = f"payload#{format_pointer(path)}"
    return Problem("payload-invalid", text, slot=slot, expected=text, actual=preview(json_value(value)))


def json_value(value: Any) -> Any:
    """Return a value with bytes, timestamps, numbers and map keys as the JSON mapping writes them."""
    if isinstance(value, dict):
        return {str(key).lower() if isinstance(key, int) else key: json_value(member) for key, member in value.items()}
    if isinstance(value, list):
        return [json_value(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float):
        return json_float(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value
