"""CloudEvents over AMQP 1.0: attributes in the application properties, data in the body.

Rules: attribute `x` is the application property ``cloudEvents_x`` or ``cloudEvents:x`` (the prefix exactly so, one
separator in a message); its value is the native type or the canonical string; `datacontenttype` is the property
`content-type`. The body is a data section, or on receipt an amqp-value of a string or binary.

Spec: amqp-protocol-binding.md; docs/semantics.md D31
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from wirebook.bindings import headers
from wirebook.bindings.cloudevents import Binding, Contents, Parts, add_attribute, map_content_type, read_parts
from wirebook.bindings.jsonevent import is_attribute_name, strange_name
from wirebook.bindings.received import Received
from wirebook.bindings.typed import native, natives, written
from wirebook.bindings.wire import AmqpMessage, bytes_of, from_bytes, shown
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
    parts = Parts(BINDING, wire, bytes_of(wire.body), _content_type(wire.properties))
    separators = set()
    for name, value in (wire.application_properties or {}).items():
        if name[:11] == PREFIX and name[11:12] in SEPARATORS and len(name) > 12:
            separators.add(name[11])
            _take_attribute(parts, name[12:], native(value))
    if len(separators) > 1:
        expected, actual = "one separator, '_' or ':'", "both"
        slot = "application-properties"
        parts.problems.append(Problem("mixed-separators", slot=slot, expected=expected, actual=actual))
    map_content_type(parts)
    return read_parts(parts)


def _content_type(properties: dict[str, Any] | None) -> str | None:
    value = native((properties or {}).get("content-type"))
    return value if isinstance(value, str) else None


def _take_attribute(parts: Parts, name: str, value: Any) -> None:
    if value is None:
        return
    if not is_attribute_name(name):
        parts.problems.append(strange_name(name))
    add_attribute(parts.attributes, name, value, parts.problems)


def slots(wire: AmqpMessage) -> dict[str, Any]:
    """The six sections by their names, as maps of Python values (`wirebook.bindings.typed`)."""
    return {name: natives(getattr(wire, field)) for name, field in SECTIONS.items()}


# -- writing --------------------------------------------------------------------------------------------------------


def fill(wire: AmqpMessage, contents: Contents) -> AmqpMessage:
    """`wire` with these attributes in native types, content type and data, in one data section."""
    properties = dict(wire.properties or {})
    if contents.content_type is not None:
        properties["content-type"] = contents.content_type
    applied = {f"{PREFIX}_{name}": written(value) for name, value in contents.attributes.items()}
    applied = (wire.application_properties or {}) | applied
    return msgspec.structs.replace(
        wire, properties=properties or None, application_properties=applied or None, body=from_bytes(contents.data)
    )


def with_slots(wire: AmqpMessage, options: dict[str, Any]) -> tuple[AmqpMessage, list[Problem]]:
    """`wire` with properties of its sections set: section name -> {name: Python value}."""
    changes = {}
    for name, field in SECTIONS.items():
        if options.get(name):
            new = {key: written(value) for key, value in options[name].items()}
            changes[field] = (getattr(wire, field) or {}) | new
    return msgspec.structs.replace(wire, **changes), list(_check(options))


def _check(options: dict[str, Any]) -> Iterable[Problem]:
    properties = options.get("properties") or {}
    for name in ("content-type", "content-encoding"):
        if isinstance(properties.get(name), str):
            slot = f"protocoloptions.properties.{name}"
            yield from headers.check_text(properties[name], _NOT_ASCII, "printable ASCII", slot)
    for section in SECTIONS:
        for name, value in (options.get(section) or {}).items():
            if isinstance(value, str):
                slot = f"protocoloptions.{section}.{shown(name)}"
                yield from headers.check_text(value, _NUL, "no NUL", slot)
