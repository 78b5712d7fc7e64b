"""CloudEvents over MQTT 5.0 (user properties with bare names, or structured) and 3.1.1 (structured JSON only).

Rules, 5.0: attribute `x` is the user property ``x``; `datacontenttype` is the property Content Type, and a user
property of that name is read when there is none. User properties with other names are no attributes.
Rules, 3.1.1: the payload is an event in the JSON format and nothing on the wire says so: `read` gives a native message,
`wirebook.bindings.as_structured` the event, where the context says that it must be one.

Spec: mqtt-protocol-binding.md; docs/semantics.md D32
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from wirebook.bindings import headers
from wirebook.bindings.cloudevents import (
    Binding,
    Contents,
    Parts,
    add_attribute,
    map_content_type,
    not_text,
    read_parts,
)
from wirebook.bindings.jsonevent import WELL_KNOWN, is_attribute_name
from wirebook.bindings.received import Received
from wirebook.bindings.wire import (
    Mqtt3Publish,
    Mqtt5Publish,
    MqttProperties,
    Pair,
    bytes_of,
    from_bytes,
    shown,
    text_of,
)
from wirebook.problems import Problem

# Reading: a zero-length payload is no data, in both versions.
BINDING_3: Final = Binding("MQTT/3.1.1")
BINDING_5: Final = Binding("MQTT/5.0", bare_names=True)
_NOT_IN_TOPIC: Final = re.compile(r"[+#\x00]|^\Z")
_NUL: Final = re.compile(r"\x00")
_PROPERTIES: Final = tuple(MqttProperties.__struct_fields__)
_NOTHING: Final = MqttProperties()


def read_3(wire: Mqtt3Publish) -> tuple[Received, ...]:
    return read_parts(Parts(BINDING_3, wire, bytes_of(wire.payload) or None))


def read_5(wire: Mqtt5Publish) -> tuple[Received, ...]:
    content_type = wire.properties.content_type if wire.properties else None
    parts = Parts(BINDING_5, wire, bytes_of(wire.payload) or None, content_type)
    for name, value in wire.user_properties or ():
        if type(value) is str and name in WELL_KNOWN and name not in parts.attributes:
            parts.attributes[name] = value  # the same as below, for the usual ones
        elif is_attribute_name(name):
            _take_attribute(parts, name, text_of(value))
    map_content_type(parts)
    return read_parts(parts)


def _take_attribute(parts: Parts, name: str, value: str | bytes | None) -> None:
    if not isinstance(value, str):
        parts.problems.append(not_text(name, value))
    add_attribute(parts.attributes, name, value, parts.problems)


def slots(wire: Mqtt3Publish | Mqtt5Publish) -> dict[str, Any]:
    """The names of the MQTT table; `user_properties` pairs, `correlation_data` bytes. 3.1.1 has the first three."""
    found: dict[str, Any] = {"topic_name": wire.topic, "qos": wire.qos, "retain": wire.retain}
    if isinstance(wire, Mqtt3Publish):
        return found
    properties = wire.properties or _NOTHING
    found |= {name: getattr(properties, name) for name in _PROPERTIES}
    found["correlation_data"] = bytes_of(properties.correlation_data)
    found["user_properties"] = [(name, text_of(value)) for name, value in wire.user_properties or ()]
    return found


# -- writing --------------------------------------------------------------------------------------------------------


def fill_3(wire: Mqtt3Publish, contents: Contents) -> Mqtt3Publish:
    """`wire` with this payload: there is no place for anything else."""
    return msgspec.structs.replace(wire, payload=from_bytes(contents.data))


def fill_5(wire: Mqtt5Publish, contents: Contents) -> Mqtt5Publish:
    """`wire` with these attributes, content type and data; the payload format indicator says whether it is text."""
    payload = from_bytes(contents.data)
    is_text = isinstance(payload, str) and contents.content_type is not None
    properties = msgspec.structs.replace(
        wire.properties or _NOTHING, content_type=contents.content_type, payload_format=1 if is_text else None
    )
    pairs: list[Pair] = list(contents.texts.items())
    names = {name for name, _ in pairs}
    pairs += [pair for pair in wire.user_properties or () if pair[0] not in names]
    return msgspec.structs.replace(wire, properties=properties, user_properties=pairs or None, payload=payload)


def with_slots(
    wire: Mqtt3Publish | Mqtt5Publish, options: dict[str, Any]
) -> tuple[Mqtt3Publish | Mqtt5Publish, list[Problem]]:
    """`wire` with protocol slots set: the same names as in `slots`; what 3.1.1 has not is ignored there (D32)."""
    names = {"topic_name": "topic", "qos": "qos", "retain": "retain"}
    changes: dict[str, Any] = {field: options[name] for name, field in names.items() if name in options}
    if isinstance(wire, Mqtt5Publish):
        properties = {name: _written(options[name]) for name in _PROPERTIES if name in options}
        if properties:
            changes["properties"] = msgspec.structs.replace(wire.properties or _NOTHING, **properties)
        if "user_properties" in options:
            changes["user_properties"] = _replaced(wire.user_properties, options["user_properties"])
    return msgspec.structs.replace(wire, **changes), list(_check(options))


def _written(value: Any) -> Any:
    return from_bytes(value) if isinstance(value, bytes) else value


def _replaced(old: list[Any] | None, new: Iterable[tuple[str, str | bytes]]) -> list[Any]:
    """`old` with the pairs of `new`; names keep their case."""
    added = headers.wire_lines(new)
    names = {name for name, _ in added}
    return [pair for pair in old or () if pair[0] not in names] + added


def _check(options: dict[str, Any]) -> Iterable[Problem]:
    for name in ("topic_name", "response_topic"):
        if options.get(name) is not None:
            expected = "levels between slashes, without '+', '#' and NUL"
            yield from headers.check_text(options[name], _NOT_IN_TOPIC, expected, f"protocoloptions.{name}")
    for name, value in options.get("user_properties", ()):
        slot = f"protocoloptions.user_properties[{shown(name)}]"
        text = name + value if isinstance(value, str) else name
        yield from headers.check_text(text, _NUL, "no NUL", slot)
