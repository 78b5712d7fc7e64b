"""Writers: a CloudEvent, or a native message, as a wire message of each protocol. Strict where the reader is tolerant.

    written = write_event("KAFKA", "binary", {"specversion": "1.0", ...}, Payload(b"...", content_type="text/plain"))
    wire, problems = with_slots(written.wire, {"topic": "orders", "key": "k"})

An error among the problems means that the message must not be sent.

Spec: docs/semantics.md#cloudevents-over-each-protocol; *-protocol-binding.md#3
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wirebook.bindings import amqp, http, kafka, mqtt, nats
from wirebook.bindings.cloudevents import Contents
from wirebook.bindings.jsonevent import MEDIA_TYPE, WELL_KNOWN, attribute_slot, check_mandatory, is_attribute_name
from wirebook.bindings.jsonwrite import canonical_text, data_bytes, write_json_event
from wirebook.bindings.strict import SURROGATE, refused
from wirebook.bindings.wire import (
    CLASSES,
    TIME_PATTERN,
    AmqpMessage,
    AnyMessage,
    HttpMessage,
    KafkaRecord,
    Mqtt3Publish,
    Mqtt5Publish,
    NatsMessage,
    shown,
)
from wirebook.problems import Problem
from wirebook.schema.payload import Payload

WriteMode: TypeAlias = Literal["binary", "structured"]

# D25: binary where the binding has it.
DEFAULT_MODE: Final[dict[str, WriteMode]] = {
    "HTTP": "binary",
    "KAFKA": "binary",
    "MQTT/3.1.1": "structured",
    "MQTT/5.0": "binary",
    "AMQP/1.0": "binary",
    "NATS": "structured",
}
_FILL: Final[dict[type[AnyMessage], Callable[[Any, Contents], AnyMessage]]] = {
    HttpMessage: http.fill,
    KafkaRecord: kafka.fill,
    Mqtt3Publish: mqtt.fill_3,
    Mqtt5Publish: mqtt.fill_5,
    AmqpMessage: amqp.fill,
    NatsMessage: nats.fill,
}
_WITH_SLOTS: Final[dict[type[AnyMessage], Callable[[Any, dict[str, Any]], tuple[Any, list[Problem]]]]] = {
    HttpMessage: http.with_slots,
    KafkaRecord: kafka.with_slots,
    Mqtt3Publish: mqtt.with_slots,
    Mqtt5Publish: mqtt.with_slots,
    AmqpMessage: amqp.with_slots,
    NatsMessage: nats.with_slots,
}
# What is no CloudEvents String: controls, surrogates, noncharacters.
FORBIDDEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(17))
    + "]"
)
# RFC 3986: the characters of a URI reference, with whole escapes.
URI_REFERENCE: Final = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*\Z")
_IS_TIME: Final = re.compile(TIME_PATTERN)
# RFC 9110, 8.3.1: type, subtype, parameters.
_MEDIA_TYPE: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:[ \t]*;[\t\x20-\x7e]*)?\Z")


class Written(NamedTuple):
    """A wire message, and what is wrong with it."""

    wire: AnyMessage
    problems: tuple[Problem, ...]


def write_event(
    protocol: str,
    mode: WriteMode | None,
    attributes: dict[str, Any],
    payload: Payload | None,
    base: AnyMessage | None = None,
    *,
    content_type: str = MEDIA_TYPE,
) -> Written:
    """A CloudEvent as a message of `protocol`; `mode` None takes the protocol's usual one; `base` has slots already.

    Shape: `attributes` as `Received` has them, `datacontenttype` with them; None is absent. `content_type` is that of a
    structured event: the JSON format, maybe with parameters.
    """
    wire = base or CLASSES[protocol]()
    attributes = {name: value for name, value in attributes.items() if value is not None}
    problems = list(check_attributes(attributes))
    if not isinstance(attributes.get("datacontenttype"), str):
        attributes.pop("datacontenttype", None)
    if (mode or DEFAULT_MODE[wire.protocol]) == "structured":
        problems.extend(_no_format(content_type))
        contents = Contents({}, {}, content_type, write_json_event(attributes, payload, problems))
    else:
        problems.extend(_no_binary(wire))
        contents = _binary(attributes, payload, problems)
    return _filled(wire, contents, problems)


def _filled(wire: AnyMessage, contents: Contents, problems: list[Problem]) -> Written:
    filled = _FILL[type(wire)](wire, contents)
    problems.extend(mqtt.check_written(filled))
    return Written(filled, tuple(problems))


def write_native(protocol: str, payload: Payload | None, base: AnyMessage | None = None) -> Written:
    """A message without an envelope."""
    wire, problems = base or CLASSES[protocol](), list[Problem]()
    data = data_bytes(payload, problems)
    content_type = payload.content_type if payload else None
    problems.extend(_check_content_type(content_type))
    return _filled(wire, Contents({}, {}, content_type, data), problems)


def with_slots(wire: AnyMessage, options: dict[str, Any]) -> Written:
    """`wire` with protocol slots set, named as `slots` gives them; headers replace those of the same name."""
    filled, problems = _WITH_SLOTS[type(wire)](wire, options)
    return Written(filled, tuple(problems))


# -- parts ----------------------------------------------------------------------------------------------------------


def _binary(attributes: dict[str, Any], payload: Payload | None, problems: list[Problem]) -> Contents:
    others = {name: value for name, value in attributes.items() if name != "datacontenttype" and _encodable(value)}
    content_type = attributes.get("datacontenttype") or _implied(payload)
    problems.extend(_check_content_type(content_type))
    declared = payload and Payload(payload.raw, payload.value, content_type)
    texts = {name: canonical_text(value) for name, value in others.items()}
    return Contents(others, texts, content_type, data_bytes(declared, problems))


def _implied(payload: Payload | None) -> str | None:
    """The payload's own content type; a JSON value without one is sent as application/json (json-format.md#312)."""
    if payload is None:
        return None
    return payload.content_type or ("application/json" if payload.raw is None else None)


def _encodable(value: Any) -> bool:
    """Has a text no lone surrogate? (`check_attributes` has reported it.)"""
    return not isinstance(value, str) or value.isascii() or not SURROGATE.search(value)


def _no_format(content_type: str) -> Iterator[Problem]:
    """Formats other than JSON are not written."""
    if content_type.partition(";")[0].strip().lower() != MEDIA_TYPE:
        slot, text = "envelopeoptions.format", f"nothing here writes events as {shown(content_type)}"
        yield Problem("unsupported-event-format", text, slot=slot, expected=MEDIA_TYPE, actual=shown(content_type))
    yield from _check_content_type(content_type)


def _no_binary(wire: AnyMessage) -> Iterator[Problem]:
    if isinstance(wire, Mqtt3Publish):
        message = "MQTT 3.1.1 has no binary mode"
        yield Problem("wrong-mode", message, slot="envelopeoptions.mode", expected="structured", actual="binary")


def _check_content_type(content_type: Any) -> Iterator[Problem]:
    if content_type is not None and not (isinstance(content_type, str) and _MEDIA_TYPE.match(content_type)):
        slot = attribute_slot("datacontenttype")
        yield Problem("illegal-character", slot=slot, expected="a media type", actual=shown(content_type))


def check_attributes(attributes: dict[str, Any]) -> Iterator[Problem]:
    """The mandatory four, names in a-z and 0-9, values of CloudEvents types."""
    missing: list[Problem] = []
    check_mandatory(attributes, missing)
    yield from missing
    for name, value in attributes.items():
        if not is_attribute_name(name):
            expected = "lower-case letters and digits"
            yield Problem("illegal-character", slot=attribute_slot(name), expected=expected, actual=shown(name))
        yield from _check_value(name, value)


def _check_core(name: str, slot: str, value: str) -> Iterator[Problem]:
    """What the attributes of CloudEvents itself are besides texts (spec.md#required-attributes)."""
    if name in ("source", "dataschema") and not URI_REFERENCE.match(value):
        yield refused("illegal-character", slot, "a URI reference (RFC 3986)", value)
    elif name == "time" and not _IS_TIME.match(value):
        yield refused("wrong-type", slot, "a time as in RFC 3339, with an offset", value)
    elif name in ("subject", "dataschema", "datacontenttype", "time") and not value:
        yield refused("wrong-type", slot, "a text that is not empty", value)


def _check_value(name: str, value: Any) -> Iterator[Problem]:
    slot = attribute_slot(name)
    if isinstance(value, str):
        if FORBIDDEN.search(value):
            expected = "a text without controls, surrogates and noncharacters"
            yield Problem("illegal-character", slot=slot, expected=expected, actual=shown(value))
        else:
            yield from _check_core(name, slot, value)
    elif name in WELL_KNOWN:
        yield refused("wrong-type", slot, "a text", value)
    elif isinstance(value, int) and not isinstance(value, bool):
        if not -(2**31) <= value < 2**31:
            yield Problem("wrong-type", slot=slot, expected="an integer of 32 bits", actual=shown(value))
    elif not isinstance(value, (bool, bytes)):
        expected = "a text, a boolean, an integer or bytes"
        yield Problem("wrong-type", slot=slot, expected=expected, actual=type(value).__name__)
