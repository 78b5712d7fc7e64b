"""What applications give in Python: values of its own types, and values that are none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import pytest

from wirebook.bindings import AmqpMessage, HttpMessage, KafkaRecord, Timestamp, read_message, to_record
from wirebook.catalog import Catalog
from wirebook.definitions.build.request import BuildRequest
from wirebook.problems import WirebookError

XID = "/messagegroups/g/messages/m"
EVENT = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "t"}, "source": {"value": "/{a}"}}}


def catalog(**definition: Any) -> Catalog:
    message = {"messageid": "m", **(definition or EVENT)}
    return Catalog.load({"messagegroups": {"g": {"messagegroupid": "g", "messages": {"m": message}}}})


def codes(*arguments: Any, **named: Any) -> list[str]:
    with pytest.raises(WirebookError) as error:
        catalog().build(*arguments, **named)
    return [problem.code for problem in error.value.problems]


def test_datetime_and_uuid_attributes_are_text() -> None:
    given = {"time": datetime(2026, 1, 5, 8, tzinfo=UTC), "id": UUID(int=5), "n": 5, "yes": True, "raw": b"\xff"}
    for protocol in ("HTTP", "AMQP/1.0"):
        (read,) = read_message(catalog().build(XID, {"a": "b"}, attributes=given, protocol=protocol))
        assert read.attributes["time"] == "2026-01-05T08:00:00Z"
        assert read.attributes["id"] == "00000000-0000-0000-0000-000000000005"
        assert isinstance(read.attributes["time"], Timestamp) == (protocol == "AMQP/1.0")
    assert (read.attributes["n"], read.attributes["yes"], read.attributes["raw"]) == (5, True, b"\xff")


def test_datetime_property_is_a_timestamp() -> None:
    properties = {"properties.creation-time": datetime(2026, 1, 5, tzinfo=UTC), "application-properties.x": UUID(int=5)}
    wire = catalog().build(XID, {"a": "b"}, properties=properties, protocol="AMQP/1.0")
    assert isinstance(wire, AmqpMessage)
    assert wire.properties is not None
    assert wire.properties["creation-time"] == {"timestamp": "2026-01-05T00:00:00Z"}
    assert (wire.application_properties or {})["x"] == {"uuid": str(UUID(int=5))}


def test_datetime_and_uuid_are_text_outside_of_amqp() -> None:
    properties = {"headers.x": datetime(2026, 1, 5, tzinfo=UTC), "key": UUID(int=5)}
    wire = catalog().build(XID, {"a": "b"}, properties=properties, protocol="KAFKA")
    record = to_record(wire)
    assert record["key"] == str(UUID(int=5))
    assert ("x", "2026-01-05T00:00:00Z") in record["headers"]


def test_repeated_headers_keep_their_order() -> None:
    """And a value that is given goes to the one that is left open, wherever it stands."""
    entries = [{"name": "Via", "value": "{a}"}, {"name": "Via", "value": "2"}, {"name": "Via", "required": True}]
    lines = catalog(protocol="HTTP", protocoloptions={"headers": entries})
    wire = lines.build(XID, {"a": "1"}, properties={"headers.via": "3"})
    assert to_record(wire)["headers"] == [("Via", "1"), ("Via", "2"), ("Via", "3")]
    (problem,) = lines.try_build(XID, BuildRequest({"a": "1"}, properties={"headers.via": ["3", "1", "4"]})).errors
    assert (problem.code, problem.expected, problem.actual) == ("constant-override", "2", "4")


def test_problems_of_any_value_are_json() -> None:
    given = {"headers.x": "\ud800", "method": 2**70}
    result = catalog().try_build(XID, BuildRequest({"a": "\ud800"}, attributes={"n": 2**70}, properties=given))
    assert len(result.errors) >= 4
    assert orjson.dumps([problem.to_dict() for problem in result.problems])


def test_attribute_without_an_envelope_is_a_problem() -> None:
    native = catalog(protocol="KAFKA", protocoloptions={"topic": "t"})
    with pytest.raises(WirebookError) as error:
        native.build(XID, attributes={"id": "1"})
    assert [problem.code for problem in error.value.problems] == ["unknown-slot"]
    assert native.build(XID, {}, b"{}", attributes={"datacontenttype": "application/json"})


def test_forbidden_character_names_the_allowed_values() -> None:
    topic = catalog(protocol="MQTT/5.0", protocoloptions={"topic_name": "a/{x}"})
    (problem,) = topic.try_build(XID, BuildRequest({"x": "b/+"})).errors
    text = "'a/{x}' becomes 'a/b/+'; expected placeholder values without '/', '+', '#', '\\x00'"
    assert problem.message == f"protocoloptions.topic_name: {text}"


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({"context": {"a": None}}, "missing-context"),
        ({"context": {"a": "\ud800"}}, "illegal-character"),
        ({"attributes": {"time": datetime(2026, 1, 5)}}, "wrong-type"),  # without an offset
        ({"attributes": {"x": object()}}, "wrong-type"),
        ({"attributes": {"x": 1.5}}, "wrong-type"),
        ({"attributes": {"X": "1"}}, "illegal-character"),
        ({"attributes": {"source": 5}}, "constant-override"),
        ({"attributes": {"id": 5}}, "wrong-type"),  # CloudEvents has a text there
        ({"attributes": {"datacontenttype": 1.5}, "data": "x", "mode": "structured"}, "wrong-type"),
        ({"attributes": {"datacontenttype": "json"}}, "illegal-character"),
        ({"attributes": {"ext": "1"}, "properties": {"headers.ce-ext": "2"}}, "constant-override"),
        ({"properties": {"headers.x": object()}}, "wrong-type"),
        ({"properties": {"headers.ce-id": "\ud800"}}, "illegal-character"),
        ({"properties": {"headers.x": "1 "}}, "illegal-character"),  # receivers cut off the blank
        ({"properties": {"headers": "x"}}, "unknown-slot"),
        ({"properties": {"method": 5}}, "wrong-type"),
        ({"protocol": "SMTP"}, "unknown-protocol"),
        ({"data": object()}, "payload-invalid"),
        ({"data": float("nan")}, "payload-invalid"),
        ({"mode": "batch"}, "wrong-mode"),
    ],
)
def test_invalid_value_has_its_code(named: dict[str, Any], expected: str) -> None:
    assert expected in codes(XID, **{"context": {"a": "b"}, **named})


def test_unknown_definition_is_an_error() -> None:
    assert codes("/messagegroups/g/messages/n") == ["not-buildable"]


def test_definition_with_another_envelope_is_not_buildable() -> None:
    other = catalog(envelope="Other/1.0", envelopemetadata={})
    with pytest.raises(WirebookError) as error:
        other.build(XID, attributes={"source": "/s"})
    assert "not-buildable" in [problem.code for problem in error.value.problems]


def test_try_build_returns_problems() -> None:
    built = catalog().try_build(XID, BuildRequest({"a": "b"}, protocol="KAFKA", attributes={"id": "1"}))
    assert isinstance(built.wire, KafkaRecord)
    assert built.problems == ()
    built = catalog().try_build(XID, BuildRequest())
    assert built.wire is None
    assert [problem.code for problem in built.errors] == ["missing-context"]


def test_http_request_has_method_post_by_default() -> None:
    wire = catalog().build(XID, {"a": "b"}, {"n": 1})
    assert isinstance(wire, HttpMessage)
    assert (wire.method, wire.body) == ("POST", '{"n":1}')
