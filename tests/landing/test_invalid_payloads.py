"""Messages with invalid payloads are dead letters by columns: the same rows as by the reference, which reads none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wirebook.catalog import Catalog
from wirebook.landing.chunks import Chunk, Landed
from wirebook.landing.runs.engine import CatalogueEngine
from wirebook.landing.tables.reference_rows import MessageOrigin
from wirebook.spark.matching import outcomes_of

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0}, "mode": {"enum": ["a", "b"]}, "text": {"type": "string"}},
    "required": ["n"],
}
SOURCE = {"type": "uritemplate", "value": "/plants/{plant}"}


def definition(name: str, schema: Any = SCHEMA, format_: str = "JsonSchema/draft-07") -> dict[str, Any]:
    metadata = {"type": {"value": name}, "source": SOURCE}
    return {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": metadata,
        "dataschemaformat": format_,
        "dataschema": schema,
    }


AVRO = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
MESSAGES = {
    "one": definition("one"),
    "two": definition("two"),
    "avro": definition("avro", AVRO, "Avro/1.11"),
    "proto": definition("proto", 'syntax = "proto3"; message R { int32 n = 1; }', "Protobuf/3"),
    "broken": definition("broken", {"type": "record"}, "Avro/1.11"),
    "other": definition("other", "message", "Thrift/1"),
}
CATALOG = Catalog.load({"specversion": "1.0-rc4", "registryid": "r", "messagegroups": {"g": {"messages": MESSAGES}}})


def event(name: str, number: int) -> dict[str, Any]:
    return {"specversion": "1.0", "id": str(number), "type": name, "source": f"/plants/{number}"}


def kafka(value: Any, name: str = "one", number: int = 1, **more: Any) -> dict[str, Any]:
    headers = [[f"ce_{key}", text] for key, text in event(name, number).items()]
    record = {"protocol": "KAFKA", "headers": [*headers, ["content-type", "application/json"]], "value": value}
    return record | {"received": "2026-05-01T00:00:00Z"} | more


def structured(data: Any, name: str = "one", number: int = 1) -> dict[str, Any]:
    headers = [["content-type", "application/cloudevents+json"]]
    return {"protocol": "KAFKA", "headers": headers, "value": json.dumps(event(name, number) | {"data": data})}


class Watched(CatalogueEngine):
    """The engine, and how many messages the reference has read."""

    read_by_reference = 0

    def outcomes(self, chunk: Chunk) -> Iterator[tuple[MessageOrigin, Any]]:
        for outcome in super().outcomes(chunk):
            self.read_by_reference += 1
            yield outcome


def landed(engine: CatalogueEngine, *records: dict[str, Any]) -> Landed:
    lines = pa.array([json.dumps(record).encode() for record in records], pa.large_binary())
    return engine.land(Chunk("f", "capture", lines, np.arange(1, len(lines) + 1)))


def by_line(landed: Landed) -> list[dict[str, Any]]:
    return sorted(landed.dead_letters.to_pylist(), key=lambda row: row["_line"])


def rows_of(landed: Landed) -> dict[str, list[dict[str, Any]]]:
    tables = {name: rows.to_pylist() for name, rows in landed.tables.items() if len(rows)}
    return {name: sorted(rows, key=lambda row: row["_line"]) for name, rows in tables.items()}


def check(*records: dict[str, Any]) -> tuple[Watched, list[dict[str, Any]]]:
    """Both engines return the same; returns the first and its dead letters."""
    columns = Watched(CATALOG)
    actual, expected = landed(columns, *records), landed(CatalogueEngine(CATALOG, columns=False), *records)
    assert by_line(actual) == by_line(expected)
    assert rows_of(actual) == rows_of(expected)
    assert (actual.outcomes, actual.reasons, actual.read) == (expected.outcomes, expected.reasons, expected.read)
    return columns, by_line(actual)


INVALID = ['{"n": "x"}', '{"n": -1, "mode": "c"}', '{"mode": "a"}', '{"n": 1', "[]", '{"n": 1e999}', '"x"', "null", "1"]


@pytest.mark.parametrize("name", ["one", "two", "avro"])
def test_the_reference_reads_no_message_with_an_invalid_payload(name: str) -> None:
    valid = [kafka('{"n": 3}', name, number) for number in range(30)]
    engine, dead = check(*valid, *(kafka(value, name, number) for number, value in enumerate(INVALID)))
    assert engine.read_by_reference == 0
    assert [row["definition"] for row in dead] == [f"/messagegroups/g/messages/{name}"] * len(INVALID)
    assert {row["outcome"] for row in dead} == {"invalid-payload", "undecodable"}
    assert all(row["problems"] and not row["near"] for row in dead)


@pytest.mark.parametrize("name", ["broken", "other"])
def test_a_schema_that_cannot_be_used(name: str) -> None:
    engine, dead = check(*(kafka(value, name, number) for number, value in enumerate(["{}", "x", "", None])))
    assert engine.read_by_reference == 0
    assert {row["outcome"] for row in dead} == {"unsupported"}


def test_definitions_that_share_a_schema() -> None:
    """Their rows are read as one run."""
    names = ["one", "two"] * 20
    engine, dead = check(*(kafka('{"n": "x"}', name, number) for number, name in enumerate(names)))
    assert engine.read_by_reference == 0
    assert [row["definition"].rpartition("/")[2] for row in dead] == names


def test_data_of_structured_events() -> None:
    data = [{"n": "x"}, {"n": -1}, {}, [], None, "x", {"n": 1, "text": 5}, {"n": 2**70, "mode": "é\ud83d\ude00"}]
    engine, dead = check(*(structured(value, "one", number) for number, value in enumerate(data)))
    assert engine.read_by_reference == 0
    assert {row["outcome"] for row in dead} == {"invalid-payload"}


def test_a_problem_of_the_record_is_a_problem_of_the_dead_letter() -> None:
    """The reference reads such a record."""
    engine, dead = check(kafka('{"n": "x"}', unknown="member"), kafka('{"n": "x"}', number=2))
    assert engine.read_by_reference == 1
    assert [[problem["code"] for problem in row["problems"]] for row in dead] == [
        ["unknown-member", "payload-invalid"],
        ["payload-invalid"],
    ]


def without_data(protocol: str, name: str, number: int, **more: Any) -> dict[str, Any]:
    """An event in binary mode whose body is absent, or has zero bytes."""
    attributes = event(name, number).items()
    content_type = {"proto": "application/protobuf"}.get(name, "application/json")
    dashed = [[f"ce-{key}", text] for key, text in attributes]
    members: dict[str, dict[str, Any]] = {
        "HTTP": {"method": "POST", "target": "/", "headers": [*dashed, ["content-type", content_type]], "body": ""},
        "NATS": {"subject": "s", "headers": dashed, "data": ""},
        "MQTT/5.0": {
            "topic": "t",
            "user_properties": list(map(list, attributes)),
            "properties": {"content_type": content_type},
        },
        "AMQP/1.0": {
            "properties": {"content-type": content_type},
            "application-properties": {f"cloudEvents_{key}": text for key, text in attributes},
        },
        "KAFKA": {"headers": [[f"ce_{key}", text] for key, text in attributes], "value": None},
    }
    return {"protocol": protocol, **members[protocol], "received": "2026-05-01T00:00:00Z", **more}


@pytest.mark.parametrize("protocol", ["HTTP", "NATS", "MQTT/5.0", "AMQP/1.0"])
@pytest.mark.parametrize("name", ["one", "avro"])
def test_the_reference_reads_no_message_without_data(protocol: str, name: str) -> None:
    engine, dead = check(*(without_data(protocol, name, number) for number in range(3)), kafka('{"n": "x"}', number=9))
    assert engine.read_by_reference == 0
    assert [row["problems"][0]["code"] for row in dead] == ["missing-data"] * 3 + ["payload-invalid"]
    assert dead[0]["problems"][0]["expected"] == MESSAGES[name]["dataschemaformat"]


def test_a_structured_event_without_data() -> None:
    record = structured(None) | {"value": json.dumps(event("one", 1))}
    engine, dead = check(record, structured({"n": "x"}))
    assert engine.read_by_reference == 0
    assert [row["problems"][0]["code"] for row in dead] == ["missing-data", "payload-invalid"]


@pytest.mark.parametrize("protocol", ["HTTP", "NATS", "MQTT/5.0", "AMQP/1.0"])
def test_zero_bytes_are_a_message_of_protobuf(protocol: str) -> None:
    engine, dead = check(without_data(protocol, "proto", 1), without_data(protocol, "one", 2))
    assert engine.read_by_reference == 0
    assert [row["_line"] for row in dead] == ([1, 2] if protocol == "AMQP/1.0" else [2])


@pytest.mark.parametrize("name", ["one", "avro", "proto"])
def test_the_reference_reads_no_tombstone(name: str) -> None:
    records = [without_data("KAFKA", name, number) for number in range(3)]
    engine, dead = check(*records, kafka('{"n": 5}', "one", 4), without_data("KAFKA", "unknown", 5))
    assert engine.read_by_reference == 0
    assert [row["_line"] for row in dead] == [5]


def test_a_valid_payload_that_its_column_does_not_hold_lands() -> None:
    engine, dead = check(kafka('{"n": 18446744073709551616}'), kafka('{"n": "x"}', number=2))
    assert [row["_line"] for row in dead] == [2]
    assert engine.read_by_reference <= 1


def test_match_tells_the_placeholders() -> None:
    """As `wirebook.spark.match` returns them."""
    records = [kafka(value, "one", number) for number, value in enumerate(['{"n": 1}', '{"n": "x"}', "x"])]
    records += [kafka("{}", "broken", 7), kafka("{}", "unknown", 8)]
    batch = pa.record_batch({"value": [json.dumps(record) for record in records]})
    engine = Watched(CATALOG)
    actual, expected = (
        sorted(outcomes_of(batch, engine).to_pylist(), key=lambda row: str(row["value"]))
        for engine in (engine, CatalogueEngine(CATALOG, columns=False))
    )
    assert actual == expected
    assert engine.read_by_reference == 0
    bound = {row["outcome"]: row["bindings"] for row in actual}
    assert bound["invalid-payload"] == [("plant", "1")]
    assert bound["unsupported"] == [("plant", "7")]
    assert bound["unexpected"] == []
