"""One message as the matcher sees it, whatever it came over.

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
"""Protocols that cannot tell a body of zero bytes from none."""

EVENT_FORMATS: Final = {
    "application/cloudevents": "application/cloudevents+json",
    "application/cloudevents-batch+json": "application/cloudevents+json",
}


class Received(Struct, frozen=True):
    """A message that was read: a CloudEvent, a native message, or what claims to be one and is not.

    Shape:
      `protocol`: a name of the capture format; "CLOUDEVENTS" for an event from a plain file, whose protocol slots
        cannot be observed; "" for a record that names no known protocol.
      `index`: the place in its batch; 0 outside of batches.
      `attributes`: the CloudEvents attributes as received, `{}` when native. A `str` where the wire has text; bool and
        int native from structured JSON; from AMQP also float, bytes, and the `str` classes Timestamp and Uuid of
        `wirebook.bindings.typed`. A null attribute is an absent one. `datacontenttype` is the one that was sent;
        see `datacontenttype` below for the one that holds.
      `payload`: None when there is no data: a null Kafka value, no `data` member, an absent AMQP body, a zero-length
        body or payload of HTTP, MQTT and NATS (which cannot tell it from none; see `is_empty`).
      `content_type`: the one on the wire: the envelope's in structured mode.
    Columns of a malformed message are what could be read of it.
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
        """Is it a Kafka record with a null value?"""
        return isinstance(self.wire, KafkaRecord) and self.wire.value is None

    @property
    def is_empty(self) -> bool:
        """Is there no data because the body has zero bytes, which is a value to some formats?"""
        return self.payload is None and self.protocol in EMPTY_IS_NONE and self.mode in (None, "binary")

    @property
    def event_format(self) -> str | None:
        """The content type that names the format of a structured event, or of each event in a batch."""
        if self.mode not in ("structured", "batch") or self.content_type is None:
            return None
        essence, semicolon, parameters = self.content_type.partition(";")
        # Reading: a batch of events in a format, and the bare type of NATS, satisfy the format of a single event.
        known = EVENT_FORMATS.get(essence.strip().lower(), essence)
        return f"{known}{semicolon}{parameters}"

    @property
    def datacontenttype(self) -> str | None:
        """The content type of the data: the declared one; in a structured event application/json by default."""
        if self.kind == "native":
            return self.content_type
        declared = self.attributes.get("datacontenttype")
        if declared is None and self.mode in ("structured", "batch"):
            return self.payload.content_type if self.payload else "application/json"
        return declared if isinstance(declared, str) else None
