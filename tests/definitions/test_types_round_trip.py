"""Values of every type in every slot, binding and mode: what is built from constants and from given values matches."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wirebook.bindings import KafkaRecord, bytes_of, to_line
from wirebook.bindings.attributes import is_uri_reference
from wirebook.catalog import Catalog
from wirebook.definitions.build.request import BuildRequest
from wirebook.definitions.compile.values import DECLARABLE

XID = "/messagegroups/g/messages/m"
TEXT = st.text("abcXYZ019-_.~:/", min_size=1, max_size=8)
BYTES = st.binary(min_size=1, max_size=6)
INT32 = st.integers(-(2**31), 2**31 - 1)
NUMBER = INT32 | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)
TYPES: dict[str, st.SearchStrategy[Any]] = {
    "any": TEXT | NUMBER | st.booleans(),
    "binary": BYTES.map(lambda raw: base64.b64encode(raw).decode()),
    "boolean": st.booleans() | st.sampled_from(("true", "false")),
    "duration": st.sampled_from(("PT0.5S", "P1W", "P1Y2M")),
    "integer": INT32 | INT32.map(str),
    "number": NUMBER | st.floats(allow_nan=False, allow_infinity=False).map(str),
    "string": TEXT,
    "stringified integer": INT32.map(str),
    "symbol": st.text("abcXYZ019_", min_size=1, max_size=8),
    "timestamp": st.sampled_from(("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.25+01:00")),
    "ulong": st.integers(0, 2**64 - 1),
    "uri": TEXT.map(lambda text: f"urn:{text}").filter(is_uri_reference),
    "urireference": TEXT.map(lambda text: f"/{text}").filter(is_uri_reference),
    "uritemplate": TEXT,
    "uuid": st.uuids().map(str),
}
GIVEN: dict[str, st.SearchStrategy[Any]] = TYPES | {"binary": BYTES | TYPES["binary"]}
MODES = [
    ("HTTP", "binary"), ("HTTP", "structured"), ("KAFKA", "binary"), ("KAFKA", "structured"),
    ("MQTT/3.1.1", "structured"),
    ("MQTT/5.0", "binary"), ("MQTT/5.0", "structured"), ("AMQP/1.0", "binary"), ("AMQP/1.0", "structured"),
    ("NATS", "binary"), ("NATS", "structured"),
]  # fmt: skip
SLOTS = [
    ("HTTP", "headers"), ("HTTP", "query"), ("KAFKA", "headers"), ("KAFKA", "key"), ("MQTT/5.0", "user_properties"),
    ("AMQP/1.0", "application-properties"), ("AMQP/1.0", "message-annotations"), ("NATS", "headers"),
]  # fmt: skip


def catalog_of(message: dict[str, Any]) -> Catalog:
    return Catalog.load({"messagegroups": {"g": {"messagegroupid": "g", "messages": {"m": message}}}})


def check(catalog: Catalog, request: BuildRequest) -> Any:
    built = catalog.try_build(XID, request, None)
    assert built.wire is not None, built.problems
    outcome = catalog.match(to_line(built.wire))
    assert outcome.matched, outcome.problems
    return built.wire


def event(declared: dict[str, Any], mode: str) -> Catalog:
    return catalog_of({
        "envelope": "CloudEvents/1.0", "envelopeoptions": {"mode": mode},
        "envelopemetadata": {"type": {"value": "t"}, "source": {"value": "/s"}, "ext": declared},
    })  # fmt: skip


def native(protocol: str, section: str, declared: dict[str, Any]) -> Catalog:
    entries = [{"name": "x", **declared}] if (protocol, section) != ("KAFKA", "headers") else {"x": declared}
    named = {"x": declared} if protocol == "AMQP/1.0" or section == "query" else entries
    options = {"key": declared} if section == "key" else {section: named}
    return catalog_of({"protocol": protocol, "protocoloptions": options})


def test_every_type_is_drawn() -> None:
    assert set(TYPES) == DECLARABLE


@pytest.mark.parametrize(("protocol", "mode"), MODES)
@pytest.mark.parametrize("type_", TYPES)
@settings(max_examples=10)
@given(data=st.data())
def test_attribute_of_every_type_round_trips(type_: str, protocol: str, mode: Any, data: st.DataObject) -> None:
    constant = data.draw(TYPES[type_])
    check(event({"type": type_, "value": constant}, mode), BuildRequest(protocol=protocol))
    value = data.draw(GIVEN[type_])
    check(event({"type": type_, "required": True}, mode), BuildRequest(protocol=protocol, attributes={"ext": value}))


@pytest.mark.parametrize(("protocol", "section"), SLOTS)
@pytest.mark.parametrize("type_", TYPES)
@settings(max_examples=10)
@given(data=st.data())
def test_property_of_every_type_round_trips(type_: str, protocol: str, section: str, data: st.DataObject) -> None:
    constant = data.draw(TYPES[type_])
    check(native(protocol, section, {"type": type_, "value": constant}), BuildRequest())
    value = data.draw(GIVEN[type_])
    name = section if section == "key" else f"{section}.x"
    check(native(protocol, section, {"type": type_, "required": True}), BuildRequest(properties={name: value}))


@pytest.mark.parametrize("section", ["headers", "key"])
@given(raw=BYTES)
def test_binary_constant_of_kafka_is_those_bytes(section: str, raw: bytes) -> None:
    declared = {"type": "binary", "value": base64.b64encode(raw).decode()}
    wire = check(native("KAFKA", section, declared), BuildRequest())
    assert isinstance(wire, KafkaRecord)
    assert bytes_of(wire.key if section == "key" else dict(wire.headers or ())["x"]) == raw


@pytest.mark.parametrize(
    "declared", [{"type": "binary"}, {"type": "string", "value": "abc"}, {"type": "any", "value": "abc"}]
)
def test_correlation_data_round_trips(declared: dict[str, Any]) -> None:
    given = {"correlation_data": b"\xff"} if "value" not in declared else {}
    message = {"protocol": "MQTT/5.0", "protocoloptions": {"topic_name": "t", "correlation_data": declared}}
    check(catalog_of(message), BuildRequest(properties=given))
