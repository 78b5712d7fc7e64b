"""Wire records: a message of one protocol, with everything that was on the wire.

The classes are the objects of the capture format (docs/capture-format.md). Headers keep their order, repetitions, bytes
and nulls. Bytes are a `str` if they are valid UTF-8, otherwise a `Base64`, and None for a null of the protocol;
`bytes_of`, `text_of` and `from_bytes` convert them.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, TypeAlias

from msgspec import Meta, Struct, field

from wirebook.text.preview import preview_scalar

# RFC 3339 with valid days only, leap seconds, and fractions of any length.
_DATE = (
    r"\d{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29"
)
TIME_PATTERN: Final = (
    rf"^(?:{_DATE})[Tt](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)\Z"
).replace(r"\d", "[0-9]")

Time: TypeAlias = str  # matches `TIME_PATTERN`; checked when a record is read
Natural: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Base64(Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes that are not valid UTF-8; in the capture format ``{"base64": "..."}``."""

    base64: bytes


Bytes: TypeAlias = str | Base64
Pair: TypeAlias = tuple[str, Bytes]
NullablePair: TypeAlias = tuple[str, Bytes | None]


class WireMessage(Struct, frozen=True, kw_only=True, gc=False, tag_field="protocol", omit_defaults=True):
    """The members that every record has: the time of receipt, and the XID of the endpoint, if known."""

    protocol: ClassVar[str] = ""
    received: Time | None = None
    endpoint: str | None = None


class HttpMessage(WireMessage, frozen=True, kw_only=True, tag="HTTP"):
    """A request (`method`, and `target` with its query) or a response (`status`)."""

    protocol: ClassVar[str] = "HTTP"
    method: str | None = None
    target: str | None = None
    status: Annotated[int, Meta(ge=100, le=999)] | None = None
    headers: list[Pair] | None = None
    body: Bytes | None = None


class KafkaRecord(WireMessage, frozen=True, kw_only=True, tag="KAFKA"):
    """A Kafka record. A null `value` is a tombstone. Header values may be null."""

    protocol: ClassVar[str] = "KAFKA"
    topic: str | None = None
    partition: Natural | None = None
    offset: Natural | None = None
    timestamp: Time | None = None
    key: Bytes | None = None
    headers: list[NullablePair] | None = None
    value: Bytes | None = None


class MqttProperties(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The properties of an MQTT 5.0 PUBLISH packet, named as in the table of message/spec.md."""

    payload_format: Annotated[int, Meta(ge=0, le=1)] | None = None
    message_expiry_interval: Annotated[int, Meta(ge=0, le=2**32 - 1)] | None = None
    response_topic: str | None = None
    correlation_data: Bytes | None = None
    content_type: str | None = None


class MqttPublish(WireMessage, frozen=True, kw_only=True):
    """The members that PUBLISH packets of both MQTT versions have."""

    topic: str | None = None
    qos: Annotated[int, Meta(ge=0, le=2)] | None = None
    retain: bool | None = None
    payload: Bytes | None = None


class Mqtt3Publish(MqttPublish, frozen=True, kw_only=True, tag="MQTT/3.1.1"):
    """A PUBLISH packet of MQTT 3.1.1, which has no properties."""

    protocol: ClassVar[str] = "MQTT/3.1.1"


class Mqtt5Publish(MqttPublish, frozen=True, kw_only=True, tag="MQTT/5.0"):
    """A PUBLISH packet of MQTT 5.0. User properties keep their order and repetitions."""

    protocol: ClassVar[str] = "MQTT/5.0"
    properties: MqttProperties | None = None
    user_properties: list[Pair] | None = None


BODY_SECTIONS: Final = ("data", "amqp-value", "amqp-value-json", "amqp-sequence-json")
"""The types of an AMQP body. `data` is bytes, and `amqp-value` is a string or binary. `amqp-value-json` (any other
value) and `amqp-sequence-json` (an array of sequences) are JSON text with the types of
`wirebook.bindings.amqp_types`."""


class AmqpMessage(WireMessage, frozen=True, kw_only=True, tag="AMQP/1.0"):
    """The sections of an AMQP 1.0 message.

    A value of a type that JSON does not have is an object with one member, such as ``{"timestamp": "..."}``; see
    `wirebook.bindings.amqp_types`. `body_section` is None for `data`, else one of `BODY_SECTIONS`.
    """

    protocol: ClassVar[str] = "AMQP/1.0"
    header: dict[str, Any] | None = None
    delivery_annotations: dict[str, Any] | None = field(default=None, name="delivery-annotations")
    message_annotations: dict[str, Any] | None = field(default=None, name="message-annotations")
    properties: dict[str, Any] | None = None
    application_properties: dict[str, Any] | None = field(default=None, name="application-properties")
    footer: dict[str, Any] | None = None
    body_section: Annotated[str, Meta(pattern=rf"^(?:{'|'.join(BODY_SECTIONS)})\Z")] | None = field(
        default=None, name="body-section"
    )
    body: Bytes | None = None


class NatsMessage(WireMessage, frozen=True, kw_only=True, tag="NATS"):
    """A published message. `headers` is None on servers before 2.2."""

    protocol: ClassVar[str] = "NATS"
    subject: str | None = None
    reply_to: str | None = field(default=None, name="reply-to")
    headers: list[Pair] | None = None
    data: Bytes | None = None


AnyMessage: TypeAlias = HttpMessage | KafkaRecord | Mqtt3Publish | Mqtt5Publish | AmqpMessage | NatsMessage
CLASSES: Final[dict[str, type[AnyMessage]]] = {
    cls.protocol: cls for cls in (HttpMessage, KafkaRecord, Mqtt3Publish, Mqtt5Publish, AmqpMessage, NatsMessage)
}
PROTOCOLS: Final = tuple(CLASSES)


def bytes_of(value: Bytes | None) -> bytes | None:
    """Return the bytes of a value."""
    if type(value) is str:
        return value.encode()
    return value if value is None else value.base64  # type: ignore[union-attr]


def text_of(value: Bytes | None) -> str | bytes | None:
    """Return the text of a value, or its bytes if they are not valid UTF-8."""
    return text_or_bytes(value.base64) if isinstance(value, Base64) else value


def text_or_bytes(raw: bytes) -> str | bytes:
    """Return the text of bytes, or the bytes themselves if they are not valid UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def from_bytes(raw: bytes | None) -> Bytes | None:
    """Return bytes in the form of wire records."""
    if raw is None:
        return None
    value = text_or_bytes(raw)
    return value if isinstance(value, str) else Base64(value)


def preview(value: Any) -> Any:
    """Return a value of a message as a problem shows it, of bounded length.

    Long text is truncated, integers beyond 64 bits become text, arrays and objects become the name of their type, and
    bytes become their count.
    """
    if isinstance(value, (dict, list, tuple)):
        return type(value).__name__
    return f"{len(value)} bytes" if isinstance(value, bytes) else preview_scalar(value)
