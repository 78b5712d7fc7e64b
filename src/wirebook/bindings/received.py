"""A message as the matcher sees it, independent of its protocol.

Spec: cloudevents-spec.md#terminology (message, content modes); docs/semantics.md#cloudevents-over-each-protocol.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from wirebook.bindings.wire import KafkaRecord, WireMessage
from wirebook.problems import Problem
from wirebook.schema.payload import Payload

Kind: TypeAlias = Literal["cloudevent", "native", "malformed", "unsupported"]
Mode: TypeAlias = Literal["binary", "structured", "batch"]

CLOUDEVENTS: Final = "CLOUDEVENTS"
EMPTY_IS_NONE: Final = frozenset({"HTTP", "MQTT/3.1.1", "MQTT/5.0", "NATS"})
"""Protocols that cannot distinguish a body of zero bytes from no body."""

EVENT_FORMATS: Final = {
    "application/cloudevents": "application/cloudevents+json",
    "application/cloudevents-batch+json": "application/cloudevents+json",
}


class Received(Struct, frozen=True):
    """A message that was read: a CloudEvent, a native message, or a malformed or unsupported CloudEvent.

      `protocol`: a protocol of the capture format; "CLOUDEVENTS" for an event from a plain file, which has no
        protocol slots; "" for a record without a known protocol.
      `index`: the position in the batch; 0 outside of batches.
      `attributes`: the CloudEvents attributes as received; `{}` for a native message. Values are `str`; in structured
        JSON also bool and int; in AMQP also float, bytes, Timestamp and Uuid (`wirebook.bindings.amqp_types`). A null
        attribute counts as absent. Here `datacontenttype` has no default; the property of that name has one.
      `payload`: None if there is no data: a null Kafka value, no `data` member, no AMQP body, or a body of zero bytes
        in HTTP, MQTT and NATS (see `is_empty`).
      `content_type`: the content type on the wire; in structured mode that of the envelope.

    A malformed message has those members that could be read.
    """

    protocol: str
    wire: WireMessage | None
    kind: Kind
    mode: Mode | None = None
    attributes: dict[str, Any] = {}
    payload: Payload | None = None
    content_type: str | None = None
    received: str | None = None
    endpoint: str | None = None
    problems: tuple[Problem, ...] = ()
    index: int = 0

    @property
    def is_tombstone(self) -> bool:
        """Whether the message is a Kafka record with a null value."""
        return isinstance(self.wire, KafkaRecord) and self.wire.value is None

    @property
    def is_empty(self) -> bool:
        """Whether the body may have zero bytes, which is a value in some payload formats."""
        return self.payload is None and self.protocol in EMPTY_IS_NONE and self.mode in (None, "binary")

    @property
    def event_format(self) -> str | None:
        """The content type of a structured event, or of each event in a batch; None in other modes."""
        if self.mode not in ("structured", "batch") or self.content_type is None:
            return None
        essence, semicolon, parameters = self.content_type.partition(";")
        # Reading: a batch of events in a format, and the bare type of NATS, satisfy the format of a single event.
        event_format = EVENT_FORMATS.get(essence.strip().lower(), essence)
        return f"{event_format}{semicolon}{parameters}"

    @property
    def datacontenttype(self) -> str | None:
        """The content type of the data; in a structured event application/json by default."""
        if self.kind == "native":
            return self.content_type
        declared = self.attributes.get("datacontenttype")
        if declared is None and self.mode in ("structured", "batch"):
            return self.payload.content_type if self.payload else "application/json"
        return declared if isinstance(declared, str) else None
