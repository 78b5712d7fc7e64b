"""The columns of a caller's DataFrame: which hold messages, and what they become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wirebook.catalog import Catalog
from wirebook.landing.runs.engine import CatalogueEngine
from wirebook.landing.sources.dataframes import (
    Identity,
    are_events,
    identified_rows,
    identity_of,
    input_columns,
    missing_topic,
)
from wirebook.problems import WirebookError
from wirebook.spark.matching import outcomes_of

BIKES = Path(__file__).resolve().parents[2] / "docs" / "examples" / "bikes.xreg.json"
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(scope="module")
def engine() -> CatalogueEngine:
    return CatalogueEngine(Catalog.load(BIKES))


@pytest.mark.parametrize(
    ("available", "chosen", "form"),
    [
        (["value"], None, "lines"),
        (["Value", "file"], None, "lines"),
        (["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"], None, "kafka"),
        (["topic", "value"], None, "kafka"),
        (["protocol", "topic", "value", "day"], None, "capture"),
        (["payload_json", "topic"], {"value": "payload_json"}, "lines"),
        (["body", "subject_area"], {"value": "BODY", "topic": "subject_area"}, "kafka"),
    ],
)
def test_form_is_told_by_the_columns(available: list[str], chosen: dict[str, str] | None, form: str) -> None:
    columns = input_columns(available, chosen)
    assert columns.form == form
    assert {*columns.names.values()} <= {*available}


@pytest.mark.parametrize("names", [("f", "n"), ["f", "n"]])
def test_identity_is_two_columns(names: object) -> None:
    assert identity_of(names, ["value", "f", "n"]) == Identity("f", "n")
    assert identity_of(("F", "n"), ["value", "f", "N"]) == Identity("f", "N")
    assert identity_of(None, ["value"]) is None


@pytest.mark.parametrize("names", ["fn", "f", (), ("n",), ("f", "n", "f"), ("f", 1), ("f", "f"), {"f": "n"}, 1])
def test_other_identity_is_an_error(names: object) -> None:
    with pytest.raises(WirebookError, match="frame-columns") as error:
        identity_of(names, ["value", "f", "n"])
    assert str(error.value.problems[0].hint) == "name both, as in identity=('file', 'line')"


def test_column_of_the_identity_is_missing_or_ambiguous() -> None:
    with pytest.raises(WirebookError, match="'identity' names \\['x'\\], which the DataFrame does not have"):
        identity_of(("f", "x"), ["value", "f", "n"])
    for again in ("f", "F"):
        with pytest.raises(WirebookError, match="several columns of the name 'f'"):
            identity_of(("f", "n"), ["value", "f", again, "n"])


@pytest.mark.parametrize(
    ("available", "chosen", "beside"),
    [
        (["key", "value"], None, "'key'"),
        (["Value", "Partition", "offset", "note"], None, "'Partition', 'offset'"),
        (["value", "headers", "timestamp"], None, "'headers', 'timestamp'"),
        (["value", "note"], None, None),
        (["key", "value", "topic"], None, None),
        (["key", "value"], {"value": "value"}, None),
    ],
)
def test_kafka_columns_without_topic_are_a_warning(
    available: list[str], chosen: dict[str, str] | None, beside: str | None
) -> None:
    problems = missing_topic(input_columns(available, chosen), available, chosen)
    expected = [("missing-topic", "warning")] * (beside is not None)
    assert [(problem.code, problem.severity) for problem in problems] == expected
    for problem in problems:
        assert f"the columns 'value' and {beside}, but no 'topic', so its rows are read as lines" in problem.message


@pytest.mark.parametrize(
    ("available", "chosen", "message"),
    [
        (["id", "body"], None, "has no columns with messages; found: 'id', 'body'; needed: 'value'"),
        ([], None, "found: none"),
        (["key", "topic"], None, "found: 'key', 'topic'"),
        (["a"], {"valeu": "a"}, "'columns' maps 'valeu', which Wirebook does not know; it knows: app"),
        (["a"], {"value": "b"}, "'columns' names 'b', which the DataFrame does not have; found: 'a'"),
        (["a"], {"topic": "a"}, "has no columns with messages"),
        (["k", "v"], {"value": "v", "key": "k"}, "'columns' maps 'key', which has no meaning beside 'value'"),
    ],
)
def test_columns_that_fit_no_form_are_named(available: list[str], chosen: dict[str, str] | None, message: str) -> None:
    with pytest.raises(WirebookError, match="frame-columns") as error:
        input_columns(available, chosen)
    assert message in str(error.value)


def kafka_rows() -> pa.RecordBatch:
    headers = [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"1"),
        ("ce_type", b"rides.started"),
        ("ce_time", b"2030-01-01T00:00:00Z"),
    ]
    headers += [
        ("ce_source", b"/cities/lund/stations/17"),
        ("ce_subject", b"r1"),
        ("content-type", b"application/json"),
    ]
    pairs = [{"key": name, "value": value} for name, value in headers]
    count = 4
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b"r1", b"r1", b"other", None], pa.binary()),
            "value": pa.array([b'{"bike":7,"battery":0.9}', b'{"bike":"x"}', b'{"bike":7}', None], pa.binary()),
            "topic": pa.array(["rides"] * count),
            "partition": pa.array([0, 1, 0, 1], pa.int32()),
            "offset": pa.array([10, 10, 11, 11], pa.int64()),
            "timestamp": pa.array([0] * count, pa.timestamp("us", tz="UTC")),
            "timestampType": pa.array([0] * count, pa.int32()),
            "headers": pa.array([pairs, pairs, pairs, None], HEADERS),
        }
    )


def test_kafka_columns_match_as_the_same_records_of_a_capture(engine: CatalogueEngine) -> None:
    rows = kafka_rows()
    by_columns = outcomes_of(rows, engine).to_pylist()
    outcomes = {(row["partition"], row["offset"]): row["outcome"] for row in by_columns}
    assert len(by_columns) == rows.num_rows

    def captured(row: dict[str, Any]) -> str:
        record = {"protocol": "KAFKA", "topic": row["topic"], "partition": row["partition"], "offset": row["offset"]}
        texts = {name: value.decode() for name in ("key", "value") if (value := row[name]) is not None}
        headers = [[pair["key"], pair["value"].decode()] for pair in row["headers"] or []]
        return json.dumps(record | texts | {"headers": headers})

    lines = pa.RecordBatch.from_pydict({"value": [captured(row) for row in rows.to_pylist()]})
    captures = outcomes_of(lines, engine).to_pylist()
    expected = {
        (json.loads(row["value"])["partition"], json.loads(row["value"])["offset"]): row["outcome"] for row in captures
    }
    assert outcomes == expected
    assert {*outcomes.values()} >= {"matched", "invalid-payload", "unexpected"}


def test_other_columns_pass_through(engine: CatalogueEngine) -> None:
    batch = kafka_rows().append_column("note", pa.array(["a", "b", "c", "d"]))
    notes = {row["note"]: row["offset"] for row in outcomes_of(batch, engine, prefix="w_").to_pylist()}
    assert notes == {"a": 10, "b": 10, "c": 11, "d": 11}
    assert "w_outcome" in outcomes_of(batch, engine, prefix="w_").column_names


def test_lines_are_captures_or_events_each(engine: CatalogueEngine) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/", "type": "t", "data": {"protocol": "x"}}
    record = {"protocol": "HTTP", "method": "POST", "body": json.dumps(event)}
    texts = [
        json.dumps(event),
        json.dumps(record),
        json.dumps([event]),
        "{",
        None,
        json.dumps({"protocol": 1, **event}),
    ]
    lines = pa.array([None if text is None else text.encode() for text in texts], pa.large_binary()).fill_null(b"")
    assert are_events(lines).tolist() == [True, False, True, False, False, False]
    batch = pa.RecordBatch.from_pydict({"value": [*texts, json.dumps([event, event])]})
    assert outcomes_of(batch, engine).num_rows == 8  # two for the batch of two, one for each other row


def test_rows_are_identified_by_topic_partition_and_offset() -> None:
    batch = kafka_rows()
    identified = identified_rows(batch, input_columns(batch.schema.names), None)
    lines_of = {file: lines.tolist() for file, lines, _ in identified}
    assert lines_of == {"kafka:rides/0": [10, 11], "kafka:rides/1": [10, 11]}


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        (["a", None], [1, 2], "column 'f' identifies messages, so it must be text without nulls"),
        ([1, 2], [1, 2], "column 'f' identifies messages, so it must be text without nulls"),
        (["a", "b"], ["1", "2"], "column 'l' identifies messages, so it must be integers without nulls"),
    ],
)
def test_identity_that_is_not_text_and_integer_is_an_error(file: list[Any], line: list[Any], message: str) -> None:
    batch = pa.RecordBatch.from_pydict({"value": ["", ""], "f": file, "l": line})
    with pytest.raises(ValueError, match=message):
        list(identified_rows(batch, input_columns(batch.schema.names), Identity("f", "l")))


def test_slices_of_headers_keep_their_rows(engine: CatalogueEngine) -> None:
    rows = kafka_rows()
    whole = {row["offset"]: row["outcome"] for row in outcomes_of(rows, engine).to_pylist() if row["partition"] == 1}
    parts = [row for start in range(4) for row in outcomes_of(rows.slice(start, 1), engine).to_pylist()]
    assert {row["offset"]: row["outcome"] for row in parts if row["partition"] == 1} == whole
    assert np.all([row["index"] == 0 for row in parts])
