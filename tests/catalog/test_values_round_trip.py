"""Build a message from a value, match it, and build it again from the result: every format, protocol and mode."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from wirebook.catalog import Catalog

XID = "/messagegroups/g/messages/m"
ORDER = """
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:o" elementFormDefault="qualified">
  <xs:element name="o"><xs:complexType>
    <xs:sequence><xs:element name="a" type="xs:decimal"/>
      <xs:choice maxOccurs="unbounded"><xs:element name="x" type="xs:int"/><xs:element name="y" type="xs:string"/>
      </xs:choice>
    </xs:sequence><xs:attribute name="t" type="xs:dateTime"/></xs:complexType></xs:element></xs:schema>"""
PROTO = """syntax = "proto3"; import "google/protobuf/duration.proto";
message M { uint64 a = 1; google.protobuf.Duration d = 2; M m = 3; }"""
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
RECORD = {"type": "record", "name": "R", "fields": [
    {"name": "a", "type": MONEY}, {"name": "n", "type": ["null", "R"], "default": None}]}  # fmt: skip
FORMATS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "XSD/1.0": (
        ORDER, {"t": datetime(2024, 1, 1, tzinfo=UTC), "a": 1.5, "x": [1, 2], "y": ["é<"]},
        {"t": datetime(2024, 1, 1, tzinfo=UTC), "a": Decimal("1.5"), "x": [1, 2], "y": ["é<"]}),
    "Avro/1.11": (RECORD, {"a": "1.5", "n": {"a": 2}}, {"a": Decimal("1.50"), "n": '{"a":"AMg=","n":null}'}),
    "Protobuf/3": (
        PROTO, {"a": 2**64 - 1, "d": {"seconds": 5, "nanos": 1}, "m": {"a": 1}},
        {"a": Decimal(2**64 - 1), "d": {"seconds": 5, "nanos": 1}, "m": '{"a":1}'}),
    "JsonSchema": ({"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": 2**62}, {"a": 2**62}),
    "JSONStructure": (
        {"type": "object", "name": "R", "properties": {"a": {"type": "int128"}}}, {"a": str(2**100)},
        {"a": Decimal(2**100)}),
}  # fmt: skip
OPTIONS: dict[str, dict[str, Any]] = {
    "HTTP": {"method": "POST", "path": "/x"},
    "KAFKA": {"topic": "t"},
    "MQTT/5.0": {"topic_name": "t"},
    "AMQP/1.0": {},
    "NATS": {"subject": "s"},
}
EVENT = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"source": {"value": "/s"}, "type": {"value": "t"}}}


@pytest.mark.parametrize("protocol", OPTIONS)
@pytest.mark.parametrize("format", FORMATS)
def test_value_survives_build_and_match(format: str, protocol: str) -> None:
    schema, data, cells = FORMATS[format]
    for mode in ("native", "binary", "structured"):
        event = {} if mode == "native" else EVENT | {"envelopeoptions": {"mode": mode}}
        definition = {"protocol": protocol, "protocoloptions": OPTIONS[protocol], "dataschemaformat": format,
                      "dataschema": schema}  # fmt: skip
        messages = {"m": definition | event}
        catalog = Catalog.load({"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": messages}}})
        outcome = catalog.match(catalog.build(XID, {}, data))
        assert outcome.matched, (mode, outcome.problems)
        assert outcome.reading is not None
        assert outcome.reading.row == cells | {"_rest": None}
        again = catalog.match(catalog.build(XID, {}, outcome.data))
        assert again.reading is not None
        assert again.reading.row == outcome.reading.row
