"""CloudEvents over AMQP 1.0: attributes in the application properties, data in the body.

Attribute `x` is the application property ``cloudEvents_x`` or ``cloudEvents:x``, with the same separator in the whole
message. Its value has the native type, or is the canonical string. `datacontenttype` is the property `content-type`.
The body is a data section; a received body may also be an amqp-value of a string or binary.

Spec: amqp-protocol-binding.md; docs/semantics.md D31
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec

from wirebook.bindings.amqp_types import Timestamp, captured, native, natives, type_of
from wirebook.bindings.cloudevents import Binding, Contents, WireParts, add_attribute, map_content_type, read_parts
from wirebook.bindings.received import Received
from wirebook.bindings.wire import AmqpMessage, bytes_of, from_bytes, preview
from wirebook.bindings.write_checks import Check, boolean, integer, octets, rejected, text
from wirebook.problems import Problem

BINDING: Final = Binding("AMQP/1.0")
SEPARATORS: Final = "_:"
PREFIX: Final = "cloudEvents"
SECTIONS: Final = {
    "header": "header",
    "delivery-annotations": "delivery_annotations",
    "message-annotations": "message_annotations",
    "properties": "properties",
    "application-properties": "application_properties",
    "footer": "footer",
}
_NOT_ASCII: Final = re.compile(r"[^\x20-\x7e]|^\Z")
_NUL: Final = re.compile(r"\x00")


def read(wire: AmqpMessage) -> tuple[Received, ...]:
    """Read the message."""
    content_type = native((wire.properties or {}).get("content-type"))
    parts = WireParts(BINDING, wire, bytes_of(wire.body), content_type if isinstance(content_type, str) else None)
    separators = set()
    for name, value in (wire.application_properties or {}).items():
        if name[:11] == PREFIX and name[11:12] in SEPARATORS and len(name) > 12:
            separators.add(name[11])
            if (attribute := native(value)) is not None:
                add_attribute(parts.attributes, name[12:], attribute, parts.problems)
    if len(separators) > 1:
        expected, actual = "a single separator, '_' or ':'", "both"
        slot = "application-properties"
        parts.problems.append(Problem("mixed-separators", slot=slot, expected=expected, actual=actual))
    map_content_type(parts)
    return read_parts(parts)


def slots(wire: AmqpMessage) -> dict[str, Any]:
    """Return the slots: the six sections as maps of Python values (`wirebook.bindings.amqp_types`)."""
    return {name: natives(getattr(wire, field)) for name, field in SECTIONS.items()}


# -- writing --------------------------------------------------------------------------------------------------------


def fill(wire: AmqpMessage, contents: Contents) -> AmqpMessage:
    """Set the attributes in native types, the content type, and the data as one data section."""
    properties = dict(wire.properties or {})
    if contents.content_type is not None:
        properties["content-type"] = contents.content_type
    applied = {f"{PREFIX}_{name}": captured(value) for name, value in contents.attributes.items()}
    applied = (wire.application_properties or {}) | applied
    return msgspec.structs.replace(
        wire, properties=properties or None, application_properties=applied or None, body=from_bytes(contents.data)
    )


def with_slots(wire: AmqpMessage, options: dict[str, Any]) -> tuple[AmqpMessage, list[Problem]]:
    """Set properties of the sections. `options`: section name -> {name: Python value}."""
    problems = list(_check(options))
    if problems:
        return wire, problems
    changes = {}
    for name, field in SECTIONS.items():
        if options.get(name):
            new = {key: captured(value) for key, value in options[name].items()}
            changes[field] = _with_separator(getattr(wire, field) or {}, new) | new
    return msgspec.structs.replace(wire, **changes), []


def check_sections(wire: AmqpMessage) -> Iterator[Problem]:
    """Check the sections of a message by the rules for writers."""
    sections = {name: getattr(wire, field) or {} for name, field in SECTIONS.items()}
    return _check(
        {name: {key: _binary_as_bytes(value) for key, value in section.items()} for name, section in sections.items()}
    )


def _binary_as_bytes(value: Any) -> Any:
    with suppress(ValueError):
        return native(value) if type_of(value) == "binary" else value
    return value


def _with_separator(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Change the old attributes to the separator of the new ones, because a message must not mix separators."""
    if not any(name.startswith(f"{PREFIX}:") for name in new):
        return old
    return {name.replace(f"{PREFIX}_", f"{PREFIX}:", 1): value for name, value in old.items()}


_TEXT: Final = text(_NUL, "a string without NUL")
_SYMBOL: Final = text(_NOT_ASCII, "printable ASCII")
_UINT: Final = integer(0, 2**32 - 1)


def _time(slot: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, Timestamp) and type_of(value) != "timestamp":
        yield rejected("wrong-type", slot, "a time", value)


def _simple(slot: str, value: Any) -> Iterator[Problem]:
    """Check the value of an application property, which must not be a list, an array or a map."""
    if isinstance(value, (list, tuple)) or (
        isinstance(value, dict) and type_of(value) in (None, "list", "map", "array")
    ):
        yield rejected("wrong-type", slot, "a simple value", value)
    else:
        yield from _any(slot, value)


def _any(slot: str, value: Any) -> Iterator[Problem]:
    if isinstance(value, str):
        yield from _TEXT(slot, value)
    elif isinstance(value, int):
        yield from integer(-(2**63), 2**64 - 1)(slot, int(value))
    elif isinstance(value, dict):
        try:
            native(value)
        except ValueError as error:
            yield rejected("wrong-type", slot, str(error), next(iter(value.values())))
    elif not isinstance(value, (float, bytes, list, type(None))):
        yield rejected("wrong-type", slot, "a value of an AMQP type", value)


_ID: Final = _simple
_CHECKS: Final[dict[str, dict[str, Check]]] = {
    "properties": {
        "message-id": _ID,
        "user-id": octets(),
        "to": _TEXT,
        "subject": _TEXT,
        "reply-to": _TEXT,
        "correlation-id": _ID,
        "content-type": _SYMBOL,
        "content-encoding": _SYMBOL,
        "absolute-expiry-time": _time,
        "creation-time": _time,
        "group-id": _TEXT,
        "group-sequence": _UINT,
        "reply-to-group-id": _TEXT,
    },
    "header": {
        "durable": boolean,
        "priority": integer(0, 255),
        "ttl": _UINT,
        "first-acquirer": boolean,
        "delivery-count": _UINT,
    },
}


def _check(options: dict[str, Any]) -> Iterator[Problem]:
    for section in SECTIONS:
        known = _CHECKS.get(section)
        for name, value in (options.get(section) or {}).items():
            slot = f"protocoloptions.{section}.{preview(name)}"
            if value is None:
                continue
            if known is not None and name not in known:
                yield Problem("unknown-slot", slot=slot, expected=sorted(known), actual=name)
            elif known is not None:
                yield from known[name](slot, value)
            elif section == "application-properties":
                yield from _TEXT(slot, name)
                yield from _simple(slot, value)
            else:
                yield from _SYMBOL(slot, name)
                yield from _any(slot, value)
