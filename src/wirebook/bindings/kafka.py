"""CloudEvents over Kafka: attributes in headers, data in the value. A null value (a tombstone) is no data.

Attribute `x` is the header ``ce_x`` in UTF-8, without percent-encoding. `datacontenttype` is the header
``content-type``. Both names are case-insensitive (D33). A null header counts as absent. The key is not related to
attributes.

Spec: kafka-protocol-binding.md; docs/semantics.md D33
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from wirebook.bindings import headers
from wirebook.bindings.attributes import WELL_KNOWN
from wirebook.bindings.cloudevents import (
    Binding,
    Contents,
    WireParts,
    add_text_attribute,
    map_content_type,
    read_parts,
)
from wirebook.bindings.received import Received
from wirebook.bindings.wire import KafkaRecord, bytes_of, from_bytes, text_of
from wirebook.bindings.write_checks import Check, check_pairs, check_slots, integer, octets, text
from wirebook.problems import Problem

BINDING: Final = Binding("KAFKA")
PREFIX: Final = "ce_"
_NOT_IN_TOPIC: Final = re.compile(r"[^A-Za-z0-9._-]|^\Z|^\.{1,2}\Z|^.{250}")


def read(wire: KafkaRecord) -> tuple[Received, ...]:
    """Read the message of a record."""
    parts = WireParts(BINDING, wire, bytes_of(wire.value))
    for name, value in wire.headers or ():
        lower = name.lower()
        if lower[:3] == PREFIX:
            attribute = lower[3:]
            if type(value) is str and attribute in WELL_KNOWN and attribute not in parts.attributes:
                parts.attributes[attribute] = value  # a fast path for common attributes
            elif value is not None:  # Reading: a null header is absent, like a null in the JSON format
                add_text_attribute(parts, attribute, text_of(value))
        elif lower == "content-type":
            headers.set_content_type(parts, text_of(value))
    map_content_type(parts)
    return read_parts(parts)


def slots(wire: KafkaRecord) -> dict[str, Any]:
    """Return the slots: `topic`, `partition`, `key` as bytes, and `headers` as pairs. Header names keep their case."""
    return {
        "topic": wire.topic,
        "partition": wire.partition,
        "key": bytes_of(wire.key),
        "headers": [(name, text_of(value)) for name, value in wire.headers or ()],
    }


def fill(wire: KafkaRecord, contents: Contents) -> KafkaRecord:
    """Set the attributes, the content type and the data. No data is a null value."""
    lines = contents.content_type_line("content-type")
    lines += [(PREFIX + name, text) for name, text in contents.texts.items()]
    return msgspec.structs.replace(wire, headers=headers.replaced(wire.headers, lines), value=from_bytes(contents.data))


def with_slots(wire: KafkaRecord, options: dict[str, Any]) -> tuple[KafkaRecord, list[Problem]]:
    """Set protocol slots, named as in `slots`. Headers replace those of the same name."""
    problems = list(_check(options))
    if problems:
        return wire, problems
    changes: dict[str, Any] = {name: options[name] for name in ("topic", "partition") if name in options}
    if "key" in options:
        key = options["key"]
        changes["key"] = from_bytes(key) if isinstance(key, bytes) else key
    if "headers" in options:
        changes["headers"] = headers.replaced(wire.headers, headers.wire_lines(options["headers"]))
    return msgspec.structs.replace(wire, **changes), []


_CHECKS: Final[dict[str, Check]] = {
    "topic": text(_NOT_IN_TOPIC, "at most 249 of the characters A-Z a-z 0-9 . _ -"),
    "partition": integer(0, 2**31 - 1),
    "key": octets(),
}
_NAME: Final = text()


def _check(options: dict[str, Any]) -> Iterator[Problem]:
    yield from check_slots(_CHECKS, options)
    yield from check_pairs("headers", _NAME, _check_header, options)


def _check_header(slot: str, value: Any) -> Iterator[Problem]:
    if value is not None:
        yield from _OCTETS(slot, value)


_OCTETS: Final = octets()
