"""Writes well-known types in the form that `read` returns, which Protobuf's JSON mapping does not accept.

A Duration is ``{"seconds": 1, "nanos": 5}``, a FieldMask ``{"paths": [...]}``, an Any of any type ``{"type_url": ...,
"value": ...}``, a Timestamp outside the years 1 to 9999 ``{"seconds": ..., "nanos": ...}``.

Rule: each such value is replaced by a neutral one before the library parses the rest; then its fields are set in the
message directly.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

from wirebook.problems import Problem
from wirebook.schema.payload_problems import preview
from wirebook.schema.protobuf.columns import TIMESTAMP_NAME, WELL_KNOWN, Descriptor, FieldDescriptor, is_map
from wirebook.schema.protobuf.read import Message
from wirebook.schema.protobuf.read_json import field_named
from wirebook.text.pointers import format_pointer

NEUTRAL: dict[str, Any] = {
    f"{WELL_KNOWN}Any": {},
    f"{WELL_KNOWN}Duration": "0s",
    f"{WELL_KNOWN}FieldMask": "",
    TIMESTAMP_NAME: "1970-01-01T00:00:00Z",
}
EXPECTED = {
    "paths": "paths, a list of strings",
    "seconds": "seconds and nanos, integers of 64 and 32 bits",
    "nanos": "seconds and nanos, integers of 64 and 32 bits",
    "type_url": "type_url, a string, and value, bytes",
    "value": "type_url, a string, and value, bytes",
}
KEYS = {"true": True, "false": False}


class WellKnownMessage(NamedTuple):
    """A well-known message in a value.

    Shape: `steps` lead to it in the Protobuf message (field names, indexes, map keys); `path` is its path in the value.
    """

    steps: tuple[Any, ...]
    path: tuple[str | int, ...]
    fields: dict[str, Any]


class WellKnownMessages:
    """The well-known messages of one value."""

    def __init__(self) -> None:
        self.messages: list[WellKnownMessage] = []

    def taken_out(self, value: Any, descriptor: Descriptor, depth: int) -> Any:
        """Return the value with its well-known messages replaced by neutral values. They are kept in `messages`."""
        return self._message(value, descriptor, WellKnownMessage((), (), {}), depth)

    def _message(self, value: Any, descriptor: Descriptor, at: WellKnownMessage, depth: int) -> Any:
        name = descriptor.full_name
        if not isinstance(value, dict) or depth < 0:
            return value
        if name in NEUTRAL and value.keys() <= set(descriptor.fields_by_name.keys()):
            self.messages.append(at._replace(fields=value))
            return NEUTRAL[name]
        if name.startswith(WELL_KNOWN):
            return value
        return {key: self._field(member, field_named(descriptor, key), key, at, depth) for key, member in value.items()}

    def _field(self, value: Any, field: FieldDescriptor | None, key: str, at: WellKnownMessage, depth: int) -> Any:
        if field is None or field.message_type is None:
            return value
        here = _inside(at, field.name, key)
        if is_map(field):
            return self._map(value, field, here, depth)
        if field.is_repeated and isinstance(value, list):
            places = enumerate(value)
            return [self._message(place, field.message_type, _inside(here, n, n), depth - 1) for n, place in places]
        return self._message(value, field.message_type, here, depth - 1)

    def _map(self, value: Any, field: FieldDescriptor, at: WellKnownMessage, depth: int) -> Any:
        key_type, inner = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        if inner.message_type is None or not isinstance(value, dict):
            return value
        return {
            key: self._message(item, inner.message_type, _inside(at, _key(key_type, key), key), depth - 1)
            for key, item in value.items()
        }

    def put_into(self, message: Message) -> Iterator[Problem]:
        """Set the fields of the well-known messages in a message parsed from the rest.

        Problems: payload-invalid
        """
        for part in self.messages:
            try:
                _set(reduce(_step, part.steps, message), part.fields)
            except (TypeError, ValueError, AttributeError, OverflowError) as error:
                slot, expected = f"payload#{format_pointer(part.path)}", EXPECTED[tuple(sorted(part.fields))[-1]]
                text = f"expected {expected} ({preview(str(error))})"
                yield Problem("payload-invalid", text, slot=slot, expected=expected, actual=preview(part.fields))


def _inside(at: WellKnownMessage, step: Any, name: str | int) -> WellKnownMessage:
    return WellKnownMessage((*at.steps, step), (*at.path, name), {})


def _key(field: FieldDescriptor, key: str) -> Any:
    """Return a map key with the Python type that the message uses; an invalid key, which the parser rejects, as is."""
    if field.type == 9:
        return key
    return KEYS.get(key, key) if field.type == 8 else int(key) if key.lstrip("-").isdecimal() else key


def _step(message: Any, step: Any) -> Any:
    return getattr(message, step) if isinstance(step, str) and hasattr(message, "DESCRIPTOR") else message[step]


def _set(message: Message, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        if name == "paths" and not isinstance(value, list):
            raise TypeError("not a list")
        if name == "paths":
            message.paths[:] = value
        elif value is not None:
            setattr(message, name, _octets(value) if name == "value" else value)


def _octets(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"the value is not valid base64: {error}") from None
