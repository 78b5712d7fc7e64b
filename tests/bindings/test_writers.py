"""The writers are strict: what a place in a message forbids is a problem, with its slot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wirebook.bindings import PROTOCOLS, HttpMessage, KafkaRecord, to_record, with_slots, write_event, write_native
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
    ],
)
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_attributes(protocol: str, mode: Any, changed: dict[str, Any], code: str, slot: str) -> None:
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
def test_slots(protocol: str, options: dict[str, Any], slot: str) -> None:
    _, problems = with_slots(CLASSES[protocol](), options)
    assert [(problem.code, problem.slot) for problem in problems] == [("illegal-character", f"protocoloptions.{slot}")]


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
def test_slots_that_are_sound(protocol: str, options: dict[str, Any]) -> None:
    assert with_slots(CLASSES[protocol](), options).problems == ()


def test_http_binary() -> None:
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


def test_a_template_keeps_its_headers() -> None:
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


def test_nats_names_the_content_type_in_its_own_header() -> None:
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
def test_structured_data(payload: Payload | None, expected: dict[str, Any]) -> None:
    wire, problems = write_event("KAFKA", "structured", FOUR, payload)
    assert problems == ()
    assert json.loads(bytes_of(wire.value) or b"") == FOUR | expected  # type: ignore[union-attr]


def test_a_value_that_is_no_json() -> None:
    for mode in ("binary", "structured"):
        _, problems = write_event("HTTP", mode, FOUR, Payload(None, float("nan")))  # type: ignore[arg-type]
        assert [problem.code for problem in problems] == ["payload-invalid"]


def test_mqtt_3_has_no_binary_mode() -> None:
    _, problems = write_event("MQTT/3.1.1", "binary", FOUR, JSON)
    assert [problem.code for problem in problems] == ["wrong-mode"]


def test_a_content_type_with_a_line_break() -> None:
    payload = Payload(b"x", content_type="text/plain\r\nx: y")
    for written in (write_native("HTTP", payload), write_event("HTTP", "binary", FOUR, payload)):
        assert [problem.code for problem in written.problems] == ["illegal-character"]
