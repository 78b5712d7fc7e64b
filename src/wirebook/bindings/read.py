"""Read the messages in a wire record.

Spec: docs/semantics.md#cloudevents-over-each-protocol
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from wirebook.bindings import amqp, http, kafka, mqtt, nats
from wirebook.bindings.attributes import MANDATORY
from wirebook.bindings.capture import Parsed, parse_record
from wirebook.bindings.cloudevents import bounded, event_kind
from wirebook.bindings.json_event import MEDIA_TYPE, NotAnEvent, read_event
from wirebook.bindings.received import Received
from wirebook.bindings.wire import (
    CLASSES,
    AmqpMessage,
    HttpMessage,
    KafkaRecord,
    Mqtt3Publish,
    Mqtt5Publish,
    NatsMessage,
    WireMessage,
)

_READERS: Final[dict[type[WireMessage], Callable[[Any], tuple[Received, ...]]]] = {
    HttpMessage: http.read,
    KafkaRecord: kafka.read,
    Mqtt3Publish: mqtt.read_3,
    Mqtt5Publish: mqtt.read_5,
    AmqpMessage: amqp.read,
    NatsMessage: nats.read,
}
_SLOTS: Final[dict[type[WireMessage], Callable[[Any], dict[str, Any]]]] = {
    HttpMessage: http.slots,
    KafkaRecord: kafka.slots,
    Mqtt3Publish: mqtt.slots,
    Mqtt5Publish: mqtt.slots,
    AmqpMessage: amqp.slots,
    NatsMessage: nats.slots,
}


def read_message(wire: WireMessage) -> tuple[Received, ...]:
    """Read the messages of a wire record: one, or one for each event of an HTTP batch."""
    return _READERS[type(wire)](wire)


def read_record(line: bytes) -> tuple[Received, ...]:
    """Read the messages of a line of a capture file. An invalid line is one malformed message."""
    return received_of(parse_record(line))


def received_of(parsed: Parsed) -> tuple[Received, ...]:
    """Read the messages of a parsed record. Each has the problems of the record."""
    if parsed.wire is None:
        return (_malformed_message(parsed),)
    messages = read_message(parsed.wire)
    if not parsed.problems:
        return messages
    return tuple(msgspec.structs.replace(message, problems=parsed.problems + message.problems) for message in messages)


def _malformed_message(parsed: Parsed) -> Received:
    """Return a malformed message with those members of an invalid record that could be read."""
    value = parsed.value or {}
    members = (value.get(name) for name in ("protocol", "received", "endpoint"))
    protocol, received, endpoint = (member if isinstance(member, str) else None for member in members)
    known = protocol.upper() if protocol is not None and protocol.upper() in CLASSES else ""
    return Received(known, None, "malformed", received=received, endpoint=endpoint, problems=parsed.problems)


def slots(wire: WireMessage) -> dict[str, Any]:
    """Return the protocol slots of a wire record, named as in `protocoloptions`.

    Values are `str`, or `bytes` if they are not valid UTF-8. Repeated names are lists of (name, value), in order. See
    `slots` in the module of each protocol.
    """
    return _SLOTS[type(wire)](wire)


def as_structured(message: Received) -> Received | None:
    """Read a native message as a structured CloudEvent without a content type; None if it is not one.

    The payload of MQTT 3.1.1, of NATS without headers, or of Kafka without a content type may be a JSON object with the
    four mandatory attributes. For Kafka, a definition or an endpoint must also require structured mode.
    """
    if message.kind != "native" or message.payload is None or not _may_be_structured(message.wire):
        return None
    raw = message.payload.raw
    if raw is None or not (b"\\u" in raw or all(name in raw for name in _MANDATORY_NAMES)):
        return None
    try:
        event = read_event(raw)
    except NotAnEvent:
        return None
    if not all(name in event.attributes for name in MANDATORY):
        return None
    return msgspec.structs.replace(
        message,
        kind=event_kind(event.problems),
        mode="structured",
        attributes=event.attributes,
        payload=event.payload,
        content_type=message.content_type or MEDIA_TYPE,
        problems=bounded([*message.problems, *event.problems]),
    )


_MANDATORY_NAMES: Final = tuple(name.encode() for name in MANDATORY)


# Reading: NATS before 2.2 has no headers, and is always structured; with a header, it is in binary mode.
# Reading: the content type is a SHOULD in the Kafka binding, so a structured event may have none.
def _may_be_structured(wire: WireMessage | None) -> bool:
    if isinstance(wire, KafkaRecord):
        return not any(name.lower() == "content-type" for name, _ in wire.headers or ())
    return isinstance(wire, Mqtt3Publish) or (isinstance(wire, NatsMessage) and not wire.headers)
