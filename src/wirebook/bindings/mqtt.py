"""CloudEvents over MQTT 5.0 (binary and structured mode) and MQTT 3.1.1 (structured mode only).

In MQTT 5.0, attribute `x` is the user property ``x``. `datacontenttype` is the property Content Type, else the user
property ``datacontenttype``. User properties whose names are not valid attribute names are ignored.
In MQTT 3.1.1, the payload is an event in the JSON format, but nothing on the wire marks it. `read_3` therefore returns
a native message, and `wirebook.bindings.as_structured` returns the event in it.

Spec: mqtt-protocol-binding.md; docs/semantics.md D32
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from wirebook.bindings import headers
from wirebook.bindings.attributes import WELL_KNOWN, is_attribute_name
from wirebook.bindings.cloudevents import (
    Binding,
    Contents,
    WireParts,
    add_text_attribute,
    map_content_type,
    read_parts,
)
from wirebook.bindings.received import Received
from wirebook.bindings.wire import (
    AnyMessage,
    Base64,
    Mqtt3Publish,
    Mqtt5Publish,
    MqttProperties,
    MqttPublish,
    Pair,
    bytes_of,
    from_bytes,
    text_of,
)
from wirebook.bindings.write_checks import (
    MQTT_STRING,
    Check,
    boolean,
    check_pairs,
    check_slots,
    integer,
    octets,
    rejected,
    text,
)
from wirebook.problems import Problem

# Reading: a zero-length payload is no data, in both versions.
BINDING_3: Final = Binding("MQTT/3.1.1")
BINDING_5: Final = Binding("MQTT/5.0", bare_names=True)
_NOT_IN_TOPIC: Final = re.compile(r"[+#\x00]|^\Z")
_NUL: Final = re.compile(r"\x00")
_PROPERTIES: Final = tuple(MqttProperties.__struct_fields__)
_NO_PROPERTIES: Final = MqttProperties()


def read_3(wire: Mqtt3Publish) -> tuple[Received, ...]:
    """Read the message of an MQTT 3.1.1 packet."""
    return read_parts(WireParts(BINDING_3, wire, bytes_of(wire.payload) or None))


def read_5(wire: Mqtt5Publish) -> tuple[Received, ...]:
    """Read the message of an MQTT 5.0 packet."""
    content_type = wire.properties.content_type if wire.properties else None
    parts = WireParts(BINDING_5, wire, bytes_of(wire.payload) or None, content_type)
    for name, value in wire.user_properties or ():
        if type(value) is str and name in WELL_KNOWN and name not in parts.attributes:
            parts.attributes[name] = value  # a fast path for common attributes
        elif is_attribute_name(name):
            add_text_attribute(parts, name, text_of(value))
    map_content_type(parts)
    return read_parts(parts)


def slots(wire: Mqtt3Publish | Mqtt5Publish) -> dict[str, Any]:
    """Return the slots, named as in the MQTT table of message/spec.md: three in MQTT 3.1.1, all in MQTT 5.0."""
    values: dict[str, Any] = {"topic_name": wire.topic, "qos": wire.qos, "retain": wire.retain}
    if isinstance(wire, Mqtt3Publish):
        return values
    properties = wire.properties or _NO_PROPERTIES
    values |= {name: getattr(properties, name) for name in _PROPERTIES}
    values["correlation_data"] = bytes_of(properties.correlation_data)
    values["user_properties"] = [(name, text_of(value)) for name, value in wire.user_properties or ()]
    return values


# -- writing --------------------------------------------------------------------------------------------------------


def fill_3(wire: Mqtt3Publish, contents: Contents) -> Mqtt3Publish:
    """Set the payload; MQTT 3.1.1 has no properties."""
    return msgspec.structs.replace(wire, payload=from_bytes(contents.data))


def fill_5(wire: Mqtt5Publish, contents: Contents) -> Mqtt5Publish:
    """Set the attributes, the content type, the data, and the payload format indicator for text."""
    payload = from_bytes(contents.data)
    is_text = isinstance(payload, str) and contents.content_type is not None
    properties = msgspec.structs.replace(
        wire.properties or _NO_PROPERTIES, content_type=contents.content_type, payload_format=1 if is_text else None
    )
    pairs: list[Pair] = list(contents.texts.items())
    names = {name for name, _ in pairs}
    pairs += [pair for pair in wire.user_properties or () if pair[0] not in names]
    return msgspec.structs.replace(
        wire,
        properties=None if properties == _NO_PROPERTIES else properties,
        user_properties=pairs or None,
        payload=payload,
    )


def with_slots(
    wire: Mqtt3Publish | Mqtt5Publish, options: dict[str, Any]
) -> tuple[Mqtt3Publish | Mqtt5Publish, list[Problem]]:
    """Set protocol slots, named as in `slots`. Slots that MQTT 3.1.1 does not have are ignored there (D32)."""
    problems = list(_check(wire, options))
    if problems:
        return wire, problems
    names = {"topic_name": "topic", "qos": "qos", "retain": "retain"}
    changes: dict[str, Any] = {field: options[name] for name, field in names.items() if name in options}
    if isinstance(wire, Mqtt5Publish):
        properties = {name: _written(options[name]) for name in _PROPERTIES if name in options}
        if properties:
            changes["properties"] = msgspec.structs.replace(wire.properties or _NO_PROPERTIES, **properties)
        if "user_properties" in options:
            changes["user_properties"] = _replaced(wire.user_properties, options["user_properties"])
    return msgspec.structs.replace(wire, **changes), []


def _written(value: Any) -> Any:
    return from_bytes(value) if isinstance(value, bytes) else value


def _replaced(old: list[Any] | None, new: Iterable[tuple[str, str | bytes]]) -> list[Any]:
    """Return `old` and `new`, without the pairs of `old` whose names occur in `new`. Names are case-sensitive."""
    added = headers.wire_lines(new)
    names = {name for name, _ in added}
    return [pair for pair in old or () if pair[0] not in names] + added


_TOPIC: Final = text(_NOT_IN_TOPIC, "a non-empty topic name without '+', '#' and NUL", MQTT_STRING)
_STRING: Final = text(_NUL, "a string without NUL", MQTT_STRING)
_CHECKS: Final[dict[str, Check]] = {"topic_name": _TOPIC, "qos": integer(0, 2), "retain": boolean}
_CHECKS_5: Final[dict[str, Check]] = _CHECKS | {
    "response_topic": _TOPIC,
    "content_type": _STRING,
    "payload_format": integer(0, 1),
    "message_expiry_interval": integer(0, 2**32 - 1),
    "correlation_data": octets(MQTT_STRING),
}


def _check(wire: Mqtt3Publish | Mqtt5Publish, options: dict[str, Any]) -> Iterator[Problem]:
    if isinstance(wire, Mqtt3Publish):
        yield from check_slots(_CHECKS, options)
        return
    yield from check_slots(_CHECKS_5, options)
    yield from check_pairs("user_properties", _STRING, _STRING, options)
    if options.get("payload_format") == 1 and isinstance(wire.payload, Base64):
        slot = "protocoloptions.payload_format"
        yield rejected("wrong-type", slot, "0, because the payload is not valid UTF-8", options["payload_format"])


def check_written(wire: AnyMessage) -> Iterator[Problem]:
    """Check the strings and the payload that a writer has set, by the limits of MQTT."""
    if isinstance(wire, Mqtt5Publish):
        yield from check_pairs("user_properties", _STRING, _STRING, {"user_properties": wire.user_properties or ()})
        content_type = wire.properties.content_type if wire.properties else None
        yield from check_slots(_CHECKS_5, {"content_type": content_type})
    if isinstance(wire, MqttPublish):
        size = len(bytes_of(wire.payload) or b"")
        if size > MAX_PAYLOAD:
            yield rejected("too-large", "payload", f"at most {MAX_PAYLOAD:,} bytes", f"{size:,} bytes")


MAX_PAYLOAD: Final = 268_435_455  # mqtt-v5.0#1.5.5: the largest length of a packet
