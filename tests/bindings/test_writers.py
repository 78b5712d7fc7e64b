"""Writers are strict: a value that a slot does not allow is a problem."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wirebook.bindings import (
    PROTOCOLS,
    HttpMessage,
    KafkaRecord,
    read_message,
    to_record,
    with_slots,
    write_event,
    write_native,
)
from wirebook.bindings.wire import CLASSES, bytes_of
from wirebook.schema.payload import Payload

FOUR = {"specversion": "1.0", "id": "1", "source": "/s", "type": "a.b"}
JSON = Payload(b'{"a": 1}', content_type="application/json")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("changed", "code", "slot"),
    [
        ({"id": None}, "malformed-cloudevent", "id"),
        ({"id": ""}, "malformed-cloudevent", "id"),
        ({"specversion": "0.3"}, "malformed-cloudevent", "specversion"),
        ({"myExt": "x"}, "illegal-character", "myExt"),
        ({"data": "x"}, "illegal-character", "data"),
        ({"x": "a\r\nb"}, "illegal-character", "x"),
        ({"x": "\ud800"}, "illegal-character", "x"),
        ({"x": "\ufdd0"}, "illegal-character", "x"),
        ({"x": 2**31}, "wrong-type", "x"),
        ({"x": 1.5}, "wrong-type", "x"),
        ({"source": "/a b"}, "illegal-character", "source"),
        ({"source": "/%4"}, "illegal-character", "source"),
        ({"dataschema": "ü"}, "illegal-character", "dataschema"),
        ({"time": "yesterday"}, "wrong-type", "time"),
        ({"time": "2026-01-01T00:00:00"}, "wrong-type", "time"),
        ({"subject": ""}, "wrong-type", "subject"),
    ],
)
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_invalid_attribute_is_rejected(protocol: str, mode: Any, changed: dict[str, Any], code: str, slot: str) -> None:
    _, problems = write_event(protocol, mode, FOUR | changed, None)
    assert (code, f"envelopemetadata.{slot}") in [(problem.code, problem.slot) for problem in problems]


@pytest.mark.parametrize(
    ("protocol", "options", "slot"),
    [
        ("HTTP", {"headers": [("x\n", "1")]}, "headers[x\n]"),
        ("HTTP", {"headers": [("x", "1\r\n2")]}, "headers[x]"),
        ("HTTP", {"headers": [("x", b"1\x002")]}, "headers[x]"),
        ("HTTP", {"path": "/a b"}, "path"),
        ("HTTP", {"method": "PO ST"}, "method"),
        ("KAFKA", {"topic": "a/b"}, "topic"),
        ("KAFKA", {"topic": ""}, "topic"),
        ("KAFKA", {"topic": "a" * 250}, "topic"),
        ("MQTT/5.0", {"topic_name": "a/+"}, "topic_name"),
        ("MQTT/3.1.1", {"topic_name": "a/#"}, "topic_name"),
        ("MQTT/5.0", {"response_topic": "a\0"}, "response_topic"),
        ("MQTT/5.0", {"user_properties": [("a", "\0")]}, "user_properties[a]"),
        ("NATS", {"subject": "a.*"}, "subject"),
        ("NATS", {"subject": "a..b"}, "subject"),
        ("NATS", {"subject": "a b"}, "subject"),
        ("NATS", {"reply-to": "a.>"}, "reply-to"),
        ("NATS", {"headers": [("x", "\n")]}, "headers[x]"),
        ("AMQP/1.0", {"properties": {"content-type": "é"}}, "properties.content-type"),
        ("AMQP/1.0", {"application-properties": {"x": "\0"}}, "application-properties.x"),
    ],
)
def test_invalid_slot_is_a_problem(protocol: str, options: dict[str, Any], slot: str) -> None:
    _, problems = with_slots(CLASSES[protocol](), options)
    assert [(problem.code, problem.slot) for problem in problems] == [("illegal-character", f"protocoloptions.{slot}")]


@pytest.mark.parametrize(
    ("protocol", "options", "code", "slot"),
    [
        ("HTTP", {"path": "a"}, "illegal-character", "path"),
        ("HTTP", {"path": "/ü"}, "illegal-character", "path"),
        ("HTTP", {"path": "/%zz"}, "illegal-character", "path"),
        ("HTTP", {"path": "/a#b"}, "illegal-character", "path"),
        ("HTTP", {"path": 5}, "wrong-type", "path"),
        ("HTTP", {"method": ""}, "illegal-character", "method"),
        ("HTTP", {"status": "20x"}, "wrong-type", "status"),
        ("HTTP", {"status": 99}, "wrong-type", "status"),
        ("HTTP", {"status": 200, "method": "GET"}, "wrong-type", "status"),
        ("HTTP", {"headers": [("", "1")]}, "illegal-character", "headers[]"),
        ("HTTP", {"headers": [("x", 5)]}, "wrong-type", "headers[x]"),
        ("HTTP", {"query": [("q", "\ud800")]}, "illegal-character", "query[q]"),
        ("KAFKA", {"partition": -1}, "wrong-type", "partition"),
        ("KAFKA", {"partition": 2**31}, "wrong-type", "partition"),
        ("KAFKA", {"partition": True}, "wrong-type", "partition"),
        ("KAFKA", {"key": 5}, "wrong-type", "key"),
        ("KAFKA", {"headers": [("x", 5)]}, "wrong-type", "headers[x]"),
        ("KAFKA", {"headers": [("\ud800", "5")]}, "illegal-character", "headers[\ud800]"),
        ("MQTT/5.0", {"topic_name": "é" * 32768}, "too-large", "topic_name"),
        ("MQTT/5.0", {"content_type": "a" * 65536}, "too-large", "content_type"),
        ("MQTT/5.0", {"correlation_data": bytes(65536)}, "too-large", "correlation_data"),
        ("MQTT/5.0", {"user_properties": [("a", "b" * 65536)]}, "too-large", "user_properties[a]"),
        ("MQTT/5.0", {"user_properties": [("a", b"\xff")]}, "wrong-type", "user_properties[a]"),
        ("MQTT/5.0", {"payload_format": 2}, "wrong-type", "payload_format"),
        ("MQTT/5.0", {"message_expiry_interval": 2**32}, "wrong-type", "message_expiry_interval"),
        ("MQTT/3.1.1", {"qos": 3}, "wrong-type", "qos"),
        ("MQTT/3.1.1", {"retain": "yes"}, "wrong-type", "retain"),
        ("NATS", {"subject": ""}, "illegal-character", "subject"),
        ("NATS", {"subject": "a\tb"}, "illegal-character", "subject"),
        ("NATS", {"headers": [("a:b", "1")]}, "illegal-character", "headers[a:b]"),
        ("AMQP/1.0", {"properties": {"nonsense": "1"}}, "unknown-slot", "properties.nonsense"),
        ("AMQP/1.0", {"properties": {"group-sequence": -1}}, "wrong-type", "properties.group-sequence"),
        ("AMQP/1.0", {"properties": {"creation-time": "2026-01-01"}}, "wrong-type", "properties.creation-time"),
        ("AMQP/1.0", {"header": {"priority": 256}}, "wrong-type", "header.priority"),
        ("AMQP/1.0", {"header": {"ttl": 2**32}}, "wrong-type", "header.ttl"),
        ("AMQP/1.0", {"header": {"durable": 1}}, "wrong-type", "header.durable"),
        ("AMQP/1.0", {"application-properties": {"x": [1]}}, "wrong-type", "application-properties.x"),
        ("AMQP/1.0", {"application-properties": {"x": {"map": {}}}}, "wrong-type", "application-properties.x"),
        ("AMQP/1.0", {"application-properties": {"x": 2**64}}, "wrong-type", "application-properties.x"),
        ("AMQP/1.0", {"application-properties": {"x": {"ubyte": 256}}}, "wrong-type", "application-properties.x"),
        ("AMQP/1.0", {"message-annotations": {"é": "1"}}, "illegal-character", "message-annotations.é"),
    ],
)  # fmt: skip
def test_invalid_slot_has_its_own_code(protocol: str, options: dict[str, Any], code: str, slot: str) -> None:
    wire, problems = with_slots(CLASSES[protocol](), options)
    assert [(problem.code, problem.slot) for problem in problems] == [(code, f"protocoloptions.{slot}")]
    assert wire == CLASSES[protocol]()


def test_mqtt_attribute_above_the_limit_is_a_problem() -> None:
    _, problems = write_event("MQTT/5.0", "binary", FOUR | {"x": "a" * 65536}, None)
    assert [(problem.code, problem.slot) for problem in problems] == [
        ("too-large", "protocoloptions.user_properties[x]")
    ]


def test_mqtt_payload_format_is_set_for_text_only() -> None:
    wire, _ = write_native("MQTT/5.0", Payload(b"\xff", content_type="image/png"))
    assert [problem.code for problem in with_slots(wire, {"payload_format": 1}).problems] == ["wrong-type"]


def test_amqp_attributes_have_one_separator() -> None:
    wire, _ = write_event("AMQP/1.0", "binary", FOUR, None)
    filled, _ = with_slots(wire, {"application-properties": {"cloudEvents:type": "b"}})
    (received,) = read_message(filled)
    assert (received.attributes["type"], received.problems) == ("b", ())


def test_json_value_under_another_content_type_is_a_problem() -> None:
    for written in (
        write_native("HTTP", Payload(None, {"a": 1}, "image/png")),
        write_event("HTTP", "binary", FOUR, Payload(None, {"a": 1}, "image/png")),
    ):
        assert [problem.code for problem in written.problems] == ["payload-invalid"]


@pytest.mark.parametrize("content_type", ["application/cloudevents+avro", "application/cloudevents-batch+json"])
def test_unsupported_event_format_is_a_problem(content_type: str) -> None:
    _, problems = write_event("HTTP", "structured", FOUR, None, content_type=content_type)
    assert [problem.code for problem in problems] == ["unsupported-event-format"]


@pytest.mark.parametrize(
    ("protocol", "options"),
    [
        ("HTTP", {"headers": [("x", "ü")], "path": "/a", "method": "get", "query": [("a", "b c")]}),
        ("KAFKA", {"topic": "a.b_c-d", "key": "k"}),
        ("MQTT/5.0", {"topic_name": "a//b", "response_topic": "r", "content_type": "x/y"}),
        ("NATS", {"subject": "a.b-c", "reply-to": "_INBOX.x"}),
        ("AMQP/1.0", {"properties": {"content-type": "application/json; charset=utf-8"}}),
    ],
)
def test_valid_slots_have_no_problems(protocol: str, options: dict[str, Any]) -> None:
    assert with_slots(CLASSES[protocol](), options).problems == ()


def test_http_binary_event_has_encoded_headers() -> None:
    wire, problems = write_event("HTTP", "binary", FOUR | {"subject": "Euro € 😀"}, JSON)
    assert problems == ()
    assert to_record(wire)["headers"] == [
        ("content-type", "application/json"),
        ("ce-specversion", "1.0"),
        ("ce-id", "1"),
        ("ce-source", "/s"),
        ("ce-type", "a.b"),
        ("ce-subject", "Euro%20%E2%82%AC%20%F0%9F%98%80"),
    ]


def test_base_record_keeps_its_headers() -> None:
    base = HttpMessage(method="POST", target="/x", headers=[("X-A", "1"), ("CE-ID", "old")])
    wire, _ = write_event("HTTP", "binary", FOUR, None, base)
    assert isinstance(wire, HttpMessage)
    assert wire.headers is not None
    assert wire.headers[0] == ("X-A", "1")
    assert [value for name, value in wire.headers if name.lower() == "ce-id"] == ["1"]
    assert (wire.method, wire.target) == ("POST", "/x")


def test_kafka_without_data_is_a_tombstone() -> None:
    wire, _ = write_event("KAFKA", "binary", FOUR, None, KafkaRecord(topic="t"))
    assert isinstance(wire, KafkaRecord)
    assert wire.value is None


def test_nats_content_type_is_ce_datacontenttype() -> None:
    wire, _ = write_event("NATS", "binary", FOUR, JSON)
    assert ("ce-datacontenttype", "application/json") in to_record(wire)["headers"]


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (None, {}),
        (Payload(None, {"a": 1}), {"data": {"a": 1}}),
        (Payload(None, None), {"data": None}),
        (JSON, {"datacontenttype": "application/json", "data": {"a": 1}}),
        (Payload(b"{", content_type="text/json"), {"datacontenttype": "text/json", "data_base64": "ew=="}),
        (Payload(b"a,b", content_type="text/csv"), {"datacontenttype": "text/csv", "data": "a,b"}),
        (Payload(b"\xff", content_type="text/csv"), {"datacontenttype": "text/csv", "data_base64": "/w=="}),
        (Payload(b"ab", content_type="image/png"), {"datacontenttype": "image/png", "data_base64": "YWI="}),
        (Payload(b"{}"), {"data_base64": "e30="}),
    ],
)
def test_structured_data_member(payload: Payload | None, expected: dict[str, Any]) -> None:
    wire, problems = write_event("KAFKA", "structured", FOUR, payload)
    assert problems == ()
    assert json.loads(bytes_of(wire.value) or b"") == FOUR | expected  # type: ignore[union-attr]


def test_value_that_is_not_json_is_a_problem() -> None:
    for mode in ("binary", "structured"):
        _, problems = write_event("HTTP", mode, FOUR, Payload(None, float("nan")))  # type: ignore[arg-type]
        assert [problem.code for problem in problems] == ["payload-invalid"]


def test_binary_mode_of_mqtt_3_is_a_problem() -> None:
    _, problems = write_event("MQTT/3.1.1", "binary", FOUR, JSON)
    assert [problem.code for problem in problems] == ["wrong-mode"]


def test_content_type_with_a_line_break_is_a_problem() -> None:
    payload = Payload(b"x", content_type="text/plain\r\nx: y")
    for written in (write_native("HTTP", payload), write_event("HTTP", "binary", FOUR, payload)):
        assert [problem.code for problem in written.problems] == ["illegal-character"]
