"""Protocol bindings: wire records, the capture format, and the rules for CloudEvents over each protocol.

A *wire record* is a message of one protocol with everything that was on the wire. Its *slots* are the parts that a
definition can constrain, such as the topic, the key or a header. A *received message* (`Received`) is the content of a
wire record, independent of its protocol: a CloudEvent, or a native message (one without an envelope).

Reading: `parse_record` (a line of a capture file), `decode_records` (many lines) and `read_parquet_batch` return wire
records; `read_message` returns the messages in a wire record; `read_record` does both for a line. `read_events` reads
plain files of CloudEvents. `slots` returns the protocol slots of a wire record. Writing: `write_event`, `write_native`,
`with_slots`, and `to_line` for a line of a capture file.

Spec: docs/semantics.md#cloudevents-over-each-protocol, docs/capture-format.md; *-protocol-binding.md; json-format.md
"""

from wirebook.bindings.amqp_types import Timestamp, Uuid
from wirebook.bindings.capture import Parsed, decode_records, parse_record, record_of, to_line, to_record
from wirebook.bindings.events import read_events
from wirebook.bindings.parquet import read_parquet_batch
from wirebook.bindings.read import as_structured, read_message, read_record, received_of, slots
from wirebook.bindings.received import CLOUDEVENTS, Received
from wirebook.bindings.wire import (
    CLASSES,
    PROTOCOLS,
    AmqpMessage,
    AnyMessage,
    Base64,
    HttpMessage,
    KafkaRecord,
    Mqtt3Publish,
    Mqtt5Publish,
    MqttProperties,
    NatsMessage,
    WireMessage,
    bytes_of,
    from_bytes,
    text_of,
)
from wirebook.bindings.write import DEFAULT_MODE, WrittenMessage, with_slots, write_event, write_native

__all__ = [
    "CLASSES",
    "CLOUDEVENTS",
    "DEFAULT_MODE",
    "PROTOCOLS",
    "AmqpMessage",
    "AnyMessage",
    "Base64",
    "HttpMessage",
    "KafkaRecord",
    "Mqtt3Publish",
    "Mqtt5Publish",
    "MqttProperties",
    "NatsMessage",
    "Parsed",
    "Received",
    "Timestamp",
    "Uuid",
    "WireMessage",
    "WrittenMessage",
    "as_structured",
    "bytes_of",
    "decode_records",
    "from_bytes",
    "parse_record",
    "read_events",
    "read_message",
    "read_parquet_batch",
    "read_record",
    "received_of",
    "record_of",
    "slots",
    "text_of",
    "to_line",
    "to_record",
    "with_slots",
    "write_event",
    "write_native",
]
