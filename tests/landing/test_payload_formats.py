"""Payloads of Protobuf, XML and with Confluent's prefix land alike by columns and by the reference."""

from __future__ import annotations

import base64
import io
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from wirebook.catalog import Catalog
from wirebook.definitions.match.options import MatchOptions
from wirebook.landing.chunks import Chunk, Landed
from wirebook.landing.runs.engine import engine_for

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "corpus"))

from synthesis.agreement import Engines

PROTO = """
syntax = "proto3";
package shop;
message Other { int32 o = 1; }
message Order {
  string id = 1; uint64 total = 2; repeated Line lines = 3;
  message Line { string sku = 1; int32 n = 2; }
}
"""
XSD = (
    '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="order"><xs:complexType><xs:sequence>'
    '<xs:element name="total" type="xs:decimal"/></xs:sequence><xs:attribute name="id" type="xs:string"/>'
    "</xs:complexType></xs:element></xs:schema>"
)
AVRO = {"type": "record", "name": "R", "fields": [{"name": "s", "type": "string"}]}
JSON = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
FORMATS: dict[str, tuple[str, Any]] = {
    "proto": ("Protobuf/3", PROTO),
    "xml": ("XMLSchema/1.1", XSD),
    "avro": ("Avro/1.11", AVRO),
    "json": ("JsonSchema/draft-07", JSON),
}


def document() -> dict[str, Any]:
    """A definition for each format; a topic's name says which."""
    schemas = {
        name: {"versions": {"1": {"format": format, "schema": schema}}} for name, (format, schema) in FORMATS.items()
    }
    parts = {"proto": ":shop.Order", "inner": ":Order.Line"}
    messages = {
        name: {
            "protocol": "KAFKA",
            "protocoloptions": {"topic": name},
            "dataschemaformat": FORMATS.get(name, FORMATS["proto"])[0],
            "dataschemauri": f"/schemagroups/g/schemas/{'proto' if name == 'inner' else name}{parts.get(name, '')}",
        }
        for name in (*FORMATS, "inner")
    }
    return {
        "specversion": "1.0-rc4",
        "schemagroups": {"g": {"schemas": schemas}},
        "messagegroups": {"g": {"messages": messages}},
    }


def chunk(*records: tuple[str, bytes | None]) -> Chunk:
    """Records of (topic, value), twenty times, so that they are read as columns."""
    lines = [
        json.dumps({"protocol": "KAFKA", "topic": topic}
                   | ({} if value is None else {"value": {"base64": base64.b64encode(value).decode()}}))
        for topic, value in records
    ] * 20  # fmt: skip
    return Chunk(
        "f", "capture", pa.array([line.encode() for line in lines], pa.large_binary()), np.arange(1, len(lines) + 1)
    )


def landed(chunk: Chunk, *, prefix: bool = False) -> Landed:
    """What both engines say: the same."""
    catalog = Catalog.load(document(), options=MatchOptions(confluent_prefix=prefix))
    result = Engines(catalog).compare(chunk)
    assert not result.differences, [str(difference) for difference in result.differences]
    landed = engine_for(json.dumps(catalog.registry.document).encode(), {"match": catalog.options}).land(chunk)
    assert landed.outcomes == result.landed.outcomes
    return landed


def rows(landed: Landed, name: str) -> list[dict[str, Any]]:
    table = next(landed.tables[table] for table in landed.tables if table.endswith(f"/{name}"))
    return list(table.to_pylist())


ORDER = bytes.fromhex("0a0161" + "10ffffffffffffffffff01" + "1a060a0278791003")
XML = b'<order id="7"><total>1.50</total></order>'


def test_protobuf_and_xml_land() -> None:
    result = landed(
        chunk(("proto", ORDER), ("xml", XML), ("proto", ORDER + b"\x20\x05"), ("xml", b"<order/>"), ("proto", b"\x0a"))
    )
    assert result.outcomes == {"matched": 60, "invalid-payload": 20, "undecodable": 20}
    order = rows(result, "proto")[0]
    assert (order["id"], int(order["total"]), order["lines"]) == ("a", 2**64 - 1, [{"sku": "xy", "n": 3}])
    assert {row["_rest"] for row in rows(result, "proto")} == {None, '{"4":[{"varint":5}]}'}
    assert str(rows(result, "xml")[0]["total"]) == "1.500000000000000000"


PREFIX = b"\0\0\0\1\2"


def avro(text: str) -> bytes:
    return bytes([2 * len(text)]) + text.encode()


WITH_PREFIX = {
    "proto": [PREFIX + b"\x02\x02" + ORDER, PREFIX + b"\x02\x02" + ORDER, ORDER],
    "inner": [PREFIX + b"\x04\x02\x00" + bytes.fromhex("0a02787910031801")],
    "xml": [PREFIX + XML, XML],
    "avro": [PREFIX + avro("abc"), avro("abc")],
    "json": [PREFIX + b'{"a":1}', b'{"a":1}'],
}


@pytest.mark.parametrize("name", WITH_PREFIX)
def test_confluent_prefix_is_removed(name: str) -> None:
    values = WITH_PREFIX[name]
    result = landed(chunk(*((name, value) for value in values), (name, None)), prefix=True)
    assert result.outcomes == {"matched": 20 * (len(values) + 1)}
    unprefixed = landed(chunk((name, values[0])))
    assert unprefixed.outcomes != {"matched": 20}  # without the option it is no payload of the schema


BAD = {
    "another message": ("proto", PREFIX + b"\x00" + ORDER, "invalid-payload"),
    "another message, too": ("proto", PREFIX + b"\x04\x02\x00" + ORDER, "invalid-payload"),
    "no indexes": ("proto", PREFIX, "undecodable"),
    "many indexes": ("proto", PREFIX + b"\xfe\xff\xff\xff\x0f" + ORDER, "undecodable"),
    "fewer than none": ("proto", PREFIX + b"\x01" + ORDER, "undecodable"),
    "a prefix that ends": ("json", b"\0\0\0", "undecodable"),
    "nothing behind it": ("json", PREFIX, "undecodable"),
    "two prefixes": ("json", PREFIX + PREFIX + b'{"a":1}', "undecodable"),
    "a bad payload": ("json", PREFIX + b'{"a":"x"}', "invalid-payload"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_payload_after_prefix_is_reported(name: str) -> None:
    topic, value, outcome = BAD[name]
    assert landed(chunk((topic, value)), prefix=True).outcomes == {outcome: 20}


def test_avro_of_confluent_serializer_lands() -> None:
    """The bytes are those of fastavro, behind a prefix as Confluent's serialiser puts it."""
    written = io.BytesIO(PREFIX)
    written.seek(5)
    fastavro.schemaless_writer(written, AVRO, {"s": "é"})
    assert [row["s"] for row in rows(landed(chunk(("avro", written.getvalue())), prefix=True), "avro")] == ["é"] * 20


def test_first_protobuf_message_needs_no_index() -> None:
    catalogue = document()
    catalogue["messagegroups"]["g"]["messages"]["proto"]["dataschemauri"] = "/schemagroups/g/schemas/proto:Other"
    catalog = Catalog.load(catalogue, options=MatchOptions(confluent_prefix=True))
    values = [PREFIX + b"\0\x08\x05", PREFIX + b"\x02\x00\x08\x05"]
    result = Engines(catalog).compare(chunk(*(("proto", value) for value in values)))
    assert not result.differences
    assert result.landed.outcomes == {"matched": 40}


def http(body: str | None, content_type: str = "application/protobuf") -> bytes:
    record = {"protocol": "HTTP", "method": "POST", "target": "/x", "headers": [["content-type", content_type]]}
    return json.dumps(record if body is None else record | {"body": body}).encode()


@pytest.mark.parametrize("protocol", ["HTTP", None])
def test_empty_protobuf_body_has_default_values(protocol: str | None) -> None:
    catalogue = document()
    bound = {"protocol": protocol, "protocoloptions": {"path": "/x"}} if protocol else {}
    message = catalogue["messagegroups"]["g"]["messages"]["proto"]
    catalogue["messagegroups"]["g"]["messages"] = {
        "m": {name: message[name] for name in ("dataschemaformat", "dataschemauri")} | bound
        | ({} if protocol else {"envelope": "CloudEvents/1.0"})
    }  # fmt: skip
    headers = [["ce-id", "1"], ["ce-source", "/s"], ["ce-type", "t"], ["ce-specversion", "1.0"]]
    lines = [http(""), http(None), http("\n\u0001a"), http("", "application/json")] * 10
    if protocol is None:
        lines = [json.dumps(record | {"headers": headers + record["headers"]}).encode()
                 for record in map(json.loads, lines)]  # fmt: skip
    engines = Engines(Catalog.load(catalogue))
    result = engines.compare(Chunk("f", "capture", pa.array(lines, pa.large_binary()), np.arange(1, len(lines) + 1)))
    assert not result.differences, [str(difference) for difference in result.differences]
    assert result.landed.outcomes == {"matched": 30, "invalid-payload": 10}
    assert result.landed.reasons == {"missing-data": 10}
    (table,) = result.landed.tables.values()
    assert sorted(set(table["id"].to_pylist())) == ["", "a"]
    assert "_tombstone" not in table.column_names or set(table["_tombstone"].to_pylist()) == {False}


NATIVE = {"protocol": "HTTP", "method": "POST", "target": "/v/%41b", "headers": [["ce_x", "1"]], "body": "{}"}
OPTIONS: dict[str, tuple[MatchOptions, int]] = {
    "none": (MatchOptions(), 9),
    "a value does not imply presence": (MatchOptions(values_imply_presence=False), 18),
    "closed": (MatchOptions(closed=True), 9),
    "placeholders": (MatchOptions(placeholders="rfc6570"), 9),
    "transport": (MatchOptions(match_transport=True), 0),
    "native": (MatchOptions(accept_native=True), 18),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_match_options_apply_to_columns_and_reference(name: str) -> None:
    """Columns know the options' defaults alone; with any other the reference does everything."""
    event = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "t"}, "source": {"value": "/{a}"}}}
    messages = {
        "path": {
            "protocol": "HTTP",
            "protocoloptions": {"path": "/v/{name}", "headers": [{"name": "h", "value": "1"}]},
        },
        "event": event | {"protocol": "HTTP", "protocoloptions": {"path": "/e/{a}"}},
        "status": {"protocol": "MQTT/5.0", "protocoloptions": {"topic_name": "t", "qos": 1}},
    }
    catalog = Catalog.load(
        {"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": messages}}}, options=OPTIONS[name][0]
    )
    records = [
        NATIVE,
        NATIVE | {"target": "/e/b"},
        {"protocol": "MQTT/5.0", "topic": "t", "qos": 0, "payload": "x"},
    ] * 9
    lines = [json.dumps(record).encode() for record in records]
    capture = Chunk("f", "capture", pa.array(lines, pa.large_binary()), np.arange(1, len(lines) + 1))
    options = {"match": catalog.options}
    result = engine_for(json.dumps(catalog.registry.document).encode(), options).land(capture)
    outcomes = [catalog.match(record) for record in records]
    assert result.outcomes == dict(Counter(outcome.outcome for outcome in outcomes))
    assert (
        sum(table.num_rows for table in result.tables.values())
        == sum(outcome.matched for outcome in outcomes)
        == OPTIONS[name][1]
    )
