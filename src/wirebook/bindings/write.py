"""Write a CloudEvent or a native message as a wire record of each protocol.

    written = write_event("KAFKA", "binary", {"specversion": "1.0", ...}, Payload(b"...", content_type="text/plain"))
    wire, problems = with_slots(written.wire, {"topic": "orders", "key": "k"})

Writers are strict where readers are tolerant. A message with an error among its problems must not be sent.

Spec: docs/semantics.md#cloudevents-over-each-protocol; *-protocol-binding.md#3
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wirebook.bindings import amqp, http, kafka, mqtt, nats
from wirebook.bindings.attributes import MANDATORY, attribute_slot, malformed, wrong_attributes
from wirebook.bindings.cloudevents import Contents
from wirebook.bindings.json_event import MEDIA_TYPE, canonical_text, data_bytes, write_json_event
from wirebook.bindings.wire import (
    CLASSES,
    AmqpMessage,
    AnyMessage,
    HttpMessage,
    KafkaRecord,
    Mqtt3Publish,
    Mqtt5Publish,
    NatsMessage,
    preview,
)
from wirebook.bindings.write_checks import SURROGATE, rejected
from wirebook.problems import Problem
from wirebook.schema.payload import Payload
from wirebook.text.mediatypes import is_media_type

WriteMode: TypeAlias = Literal["binary", "structured"]

DEFAULT_MODE: Final[dict[str, WriteMode]] = {
    "HTTP": "binary",
    "KAFKA": "binary",
    "MQTT/3.1.1": "structured",
    "MQTT/5.0": "binary",
    "AMQP/1.0": "binary",
    "NATS": "structured",
}
"""The content mode of an event if nothing requires one (D25)."""

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


class WrittenMessage(NamedTuple):
    """A wire record and the problems found while writing it."""

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
) -> WrittenMessage:
    """Write a CloudEvent.

    A `mode` of None is the default mode of the protocol. `attributes` are as in `Received`, including
    `datacontenttype`; None counts as absent. `base` is a record with slots that are already set. `content_type` is that
    of a structured event: the JSON format, possibly with parameters.
    """
    wire = base or CLASSES[protocol]()
    attributes = {name: value for name, value in attributes.items() if value is not None}
    problems = list(check_attributes(attributes))
    if not isinstance(attributes.get("datacontenttype"), str):
        attributes.pop("datacontenttype", None)
    if (mode or DEFAULT_MODE[wire.protocol]) == "structured":
        problems.extend(_check_event_format(content_type))
        contents = Contents({}, {}, content_type, write_json_event(attributes, payload, problems))
    else:
        if isinstance(wire, Mqtt3Publish):
            message, slot = "MQTT 3.1.1 has no binary mode; use structured mode", "envelopeoptions.mode"
            problems.append(Problem("wrong-mode", message, slot=slot, expected="structured", actual="binary"))
        contents = _binary(attributes, payload, problems)
    return _write(wire, contents, problems)


def _write(wire: AnyMessage, contents: Contents, problems: list[Problem]) -> WrittenMessage:
    filled = _FILL[type(wire)](wire, contents)
    problems.extend(mqtt.check_written(filled))
    return WrittenMessage(filled, tuple(problems))


def write_native(protocol: str, payload: Payload | None, base: AnyMessage | None = None) -> WrittenMessage:
    """Write a message without an envelope."""
    wire, problems = base or CLASSES[protocol](), list[Problem]()
    data = data_bytes(payload, problems)
    content_type = payload.content_type if payload else None
    problems.extend(_check_content_type(content_type))
    return _write(wire, Contents({}, {}, content_type, data), problems)


def with_slots(wire: AnyMessage, options: dict[str, Any]) -> WrittenMessage:
    """Set protocol slots, named as in `slots`. Headers replace those of the same name."""
    filled, problems = _WITH_SLOTS[type(wire)](wire, options)
    return WrittenMessage(filled, tuple(problems))


# -- parts ----------------------------------------------------------------------------------------------------------


def _binary(attributes: dict[str, Any], payload: Payload | None, problems: list[Problem]) -> Contents:
    others = {name: value for name, value in attributes.items() if name != "datacontenttype" and _encodable(value)}
    content_type = attributes.get("datacontenttype") or _implied(payload)
    problems.extend(_check_content_type(content_type))
    declared = payload and Payload(payload.raw, payload.value, content_type)
    texts = {name: canonical_text(value) for name, value in others.items()}
    return Contents(others, texts, content_type, data_bytes(declared, problems))


def _implied(payload: Payload | None) -> str | None:
    """Return the content type of the payload: application/json for a JSON value without one (json-format.md#312)."""
    if payload is None:
        return None
    return payload.content_type or ("application/json" if payload.raw is None else None)


def _encodable(value: Any) -> bool:
    """Return whether the value has no lone surrogate. `check_attributes` reports lone surrogates."""
    return not isinstance(value, str) or value.isascii() or not SURROGATE.search(value)


def _check_event_format(content_type: str) -> Iterator[Problem]:
    """Check that the event format is JSON, the only one that is supported."""
    if content_type.partition(";")[0].strip().lower() != MEDIA_TYPE:
        slot, text = (
            "envelopeoptions.format",
            f"the event format {preview(content_type)} is not supported; it must be {MEDIA_TYPE}",
        )
        yield Problem("unsupported-event-format", text, slot=slot, expected=MEDIA_TYPE, actual=preview(content_type))
    yield from _check_content_type(content_type)


def _check_content_type(content_type: Any) -> Iterator[Problem]:
    if content_type is not None and not (isinstance(content_type, str) and is_media_type(content_type)):
        slot = attribute_slot("datacontenttype")
        yield Problem("illegal-character", slot=slot, expected="a media type", actual=preview(content_type))


def check_attributes(attributes: dict[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each CloudEvents rule that the attributes violate."""
    for name, expected, value in wrong_attributes(attributes):
        if name == "specversion" or (name in MANDATORY and value in (None, "")):
            yield malformed(name, expected, value)
        else:
            code = "illegal-character" if isinstance(value, str) and value and name != "time" else "wrong-type"
            yield rejected(code, attribute_slot(name), expected, value)
