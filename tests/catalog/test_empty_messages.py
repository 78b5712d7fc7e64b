"""A value that is encoded as zero bytes (a Protobuf message with default values) is a message in every protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wirebook.bindings import CLASSES, AnyMessage, KafkaRecord, bytes_of
from wirebook.bindings.kafka import read as read_kafka
from wirebook.catalog import Catalog

PROTO = ("Protobuf/3", 'syntax = "proto3"; message M { int32 a = 1; optional string b = 2; repeated int32 c = 3; }')
REQUIRED = ("Protobuf/2", 'syntax = "proto2"; message M { required int32 a = 1; }')
AVRO = ("Avro/1.11", {"type": "record", "name": "M", "fields": []})
JSON = ("JsonSchema/draft-07", {"type": "object"})
XSD = (
    "XSD/1.0",
    '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="m" type="xs:string"/></xs:schema>',
)
XID = "/messagegroups/g/messages/m"
OPTIONS: dict[str, dict[str, Any]] = {
    "HTTP": {"method": "POST", "path": "/x"},
    "KAFKA": {"topic": "t"},
    "MQTT/3.1.1": {"topic_name": "t"},
    "MQTT/5.0": {"topic_name": "t"},
    "AMQP/1.0": {"properties": {"subject": {"value": "s"}}},
    "NATS": {"subject": "s"},
}
MODES: dict[str, dict[str, Any]] = {
    "native": {},
    "binary": {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"source": {"value": "/s"}, "type": {"value": "t"}},
        "envelopeoptions": {"mode": "binary"},
    },
}
MODES["structured"] = MODES["binary"] | {"envelopeoptions": {"mode": "structured"}}
WAYS = [
    pytest.param(protocol, mode, id=f"{protocol} {mode}")
    for protocol in OPTIONS
    for mode in MODES
    if (protocol, mode) != ("MQTT/3.1.1", "binary")
]
BODIES = {"HTTP": "body", "KAFKA": "value", "MQTT/3.1.1": "payload", "MQTT/5.0": "payload", "AMQP/1.0": "body",
          "NATS": "data"}  # fmt: skip


def catalog(format: tuple[str, Any], protocol: str, mode: str = "native", **more: Any) -> Catalog:
    options = OPTIONS[protocol]
    definition = {"protocol": protocol, "protocoloptions": options, "dataschemaformat": format[0],
                  "dataschema": format[1]} | MODES[mode] | more  # fmt: skip
    return Catalog.load({"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": {"m": definition}}}})


def body(wire: AnyMessage) -> bytes | None:
    return bytes_of(getattr(wire, BODIES[wire.protocol]))


@pytest.mark.parametrize(("protocol", "mode"), WAYS)
@pytest.mark.parametrize("format", [PROTO, AVRO], ids=["Protobuf", "Avro"])
def test_message_with_default_values_is_built_and_matched(format: tuple[str, Any], protocol: str, mode: str) -> None:
    loaded = catalog(format, protocol, mode)
    wire = loaded.build(XID, {}, {})
    if mode != "structured":
        assert body(wire) == b""
    outcome = loaded.match(wire)
    assert (outcome.outcome, outcome.problems) == ("matched", ())
    assert outcome.reading is not None
    expected: dict[str, Any] = {"a": 0, "b": None, "c": []} if format is PROTO else {"value": "{}"}
    assert outcome.reading.row == expected | {"_rest": None}
    assert loaded.match(loaded.build(XID, {}, b"")).matched
    assert loaded.explain(wire).outcome.matched


@pytest.mark.parametrize("protocol", ["HTTP", "MQTT/3.1.1", "MQTT/5.0", "NATS"])
@pytest.mark.parametrize("wire_body", [None, ""])
def test_empty_and_missing_payload_are_equal_on_the_wire(protocol: str, wire_body: str | None) -> None:
    slots: dict[str, Any] = {"HTTP": {"method": "POST", "target": "/x"}, "NATS": {"subject": "s"}}
    message_class: Any = CLASSES[protocol]
    wire = message_class(**slots.get(protocol, {"topic": "t"}), **{BODIES[protocol]: wire_body})
    assert catalog(PROTO, protocol).match(wire).matched
    for format in (JSON, XSD, ("Avro/1.11", "int")):
        outcome = catalog(format, protocol).match(wire)
        assert outcome.outcome == "invalid-payload"
        assert [problem.code for problem in outcome.problems] == ["missing-data"]
    (problem,) = catalog(REQUIRED, protocol).match(wire).problems
    assert (problem.code, problem.expected) == ("payload-invalid", {"required": "a"})
    as_json = catalog(PROTO, protocol, datacontenttype="application/json")
    if protocol in ("HTTP", "NATS"):
        wire = message_class(**slots[protocol], headers=[("content-type", "application/json")])
        assert [problem.code for problem in as_json.match(wire).problems] == ["missing-data"]


def test_kafka_tombstone_and_empty_value_have_different_outcomes() -> None:
    loaded = catalog(PROTO, "KAFKA")
    empty = loaded.match(KafkaRecord(topic="t", value=""))
    assert empty.matched
    assert empty.data == {"a": 0, "c": []}
    assert not read_kafka(KafkaRecord(topic="t", value=""))[0].is_tombstone
    tombstone = loaded.match(KafkaRecord(topic="t"))
    assert tombstone.matched
    assert tombstone.data is None
    assert tombstone.received.is_tombstone


def test_event_without_data_member_has_no_data() -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
    loaded = catalog(PROTO, "HTTP", "structured")
    record = {"protocol": "HTTP", "method": "POST", "target": "/x",
              "headers": [["content-type", "application/cloudevents+json"]]}  # fmt: skip
    missing = loaded.match(record | {"body": json.dumps(event)})
    assert [problem.code for problem in missing.problems] == ["missing-data"]
    assert loaded.match(record | {"body": json.dumps(event | {"data_base64": ""})}).matched


def test_empty_message_transformed_to_kafka_stays_a_message() -> None:
    """Over HTTP the body is empty; over Kafka the value is empty, not a tombstone."""
    source, target = OPTIONS["HTTP"], OPTIONS["KAFKA"]
    schema = {"dataschemaformat": PROTO[0], "dataschema": PROTO[1]}
    messages = {
        "m": {"protocol": "HTTP", "protocoloptions": source} | schema,
        "to": {"protocol": "KAFKA", "protocoloptions": target} | schema,
    }
    loaded = Catalog.load({"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": messages}}})
    wire = loaded.transform(loaded.build(XID, {}, {}), "/messagegroups/g/messages/to")
    assert isinstance(wire, KafkaRecord)
    assert wire.value == ""


def test_sdk_event_of_empty_message_has_zero_bytes_of_data() -> None:
    loaded = catalog(PROTO, "HTTP", "binary")
    assert loaded.match(loaded.build(XID, {}, {})).to_cloudevent().get_data() == b""
