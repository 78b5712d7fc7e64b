"""Protobuf's JSON mapping: a JSON value to a message, and back.

Spec: protobuf.dev "ProtoJSON Format"; members that the schema does not have are refused, as it says.
"""

from __future__ import annotations

import base64
import math
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
from wirebook.schema.protobuf.read import Message
from wirebook.text.pointers import format_pointer

_INSIDE = re.compile(r"Failed to parse \S{1,200} field: ")
_PLACE = re.compile(r"""[ ]at "?\w+(?:[.\[][^ ]{0,1000})?"?\.*\Z""")


def from_json(message: Message, value: Any, descriptor: Descriptor, depth: int) -> tuple[Problem, ...]:
    """Fills a message with a JSON value; what does not fit, at most 20 places."""
    if _fill(message, value, descriptor, depth) is None:
        return ()
    found = islice(_faults(value, descriptor, (), depth), MAX_PROBLEMS)
    return tuple(starmap(_problem, found))


def _fill(message: Message, value: Any, descriptor: Descriptor, depth: int) -> str | None:
    """The first fault, in the library's words."""
    if not isinstance(value, dict) and not descriptor.full_name.startswith(WELL_KNOWN):
        return "expected an object"
    try:
        json_format.ParseDict(value, message, descriptor_pool=descriptor.file.pool, max_recursion_depth=depth)
    except KeyError as error:  # an Any within an Any
        return f"there is no member {error}"
    except (json_format.Error, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        return str(error)
    return None


# -- places: the library tells some of them; which members do not fit shows when each is tried alone ------------------

Fault = tuple[tuple[str | int, ...], str, Any]


def _faults(
    value: Any, descriptor: Descriptor, path: tuple[str | int, ...], depth: int, said: str = "does not fit"
) -> Iterator[Fault]:
    """Where in a message; `said` of the whole is what is said where nothing in it is wrong alone."""
    class_ = message_factory.GetMessageClass(descriptor)
    found = False
    plain = not isinstance(value, dict) or descriptor.full_name.startswith(WELL_KNOWN)
    for name, each in () if plain else value.items():
        fault = _fill(class_(), {name: each}, descriptor, depth)
        if fault is not None:
            found = True
            field = _named(descriptor, name)
            here = (path if field is None else (*path, name), fault, each)
            yield from [here] if field is None else _inside(field, name, here, depth)
    if not found:
        yield path, _fill(class_(), value, descriptor, depth) or said, value


def _inside(field: FieldDescriptor, name: str, fault: Fault, depth: int) -> Iterator[Fault]:
    """Where in a member that does not fit; `fault` is what is said of the whole."""
    here, _, value = fault
    found = False
    class_ = message_factory.GetMessageClass(field.containing_type)
    for step, part, alone in _parts(field, value):
        inner = _fill(class_(), {name: alone}, field.containing_type, depth)
        if inner is not None:
            found = True
            type_ = field.message_type.fields_by_name["value"].message_type if is_map(field) else field.message_type
            yield from (
                [((*here, step), inner, part)] if type_ is None else _faults(part, type_, (*here, step), depth, inner)
            )
    if not found and field.message_type is not None and not field.is_repeated:
        yield from _faults(value, field.message_type, here, depth, fault[1])
    elif not found:
        yield fault


def _parts(field: FieldDescriptor, value: Any) -> Iterator[tuple[str | int, Any, Any]]:
    """The items of a list or a map: the step to each, the item, and a list or map of it alone."""
    if is_map(field):
        yield from ((key, each, {key: each}) for key, each in (value.items() if isinstance(value, dict) else ()))
    elif field.is_repeated and isinstance(value, list):
        yield from ((index, each, [each]) for index, each in enumerate(value))


def _named(descriptor: Descriptor, name: str) -> FieldDescriptor | None:
    return descriptor.fields_by_name.get(name) or descriptor.fields_by_camelcase_name.get(name)


def _problem(path: tuple[str | int, ...], fault: str, value: Any) -> Problem:
    text = preview(_PLACE.sub("", _INSIDE.sub("", fault).partition("\n")[0]).rstrip(". "))
    slot = f"payload#{format_pointer(path)}"
    return Problem("payload-invalid", text, slot=slot, expected=text, actual=preview(json_value(value)))


def _key(key: Any) -> Any:
    """The key of a map as JSON has it."""
    return str(key).lower() if isinstance(key, bool) else str(key) if isinstance(key, int) else key


def json_value(value: Any) -> Any:
    """A value with bytes, times and numbers as the JSON mapping writes them."""
    if isinstance(value, dict):
        return {_key(key): json_value(each) for key, each in value.items()}
    if isinstance(value, list):
        return [json_value(each) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value
