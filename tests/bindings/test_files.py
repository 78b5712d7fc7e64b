"""Captures in Parquet, and plain files of CloudEvents."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from wirebook.bindings import read_events, read_parquet_batch, to_record

FOUR = {"specversion": "1.0", "id": "1", "source": "/s", "type": "a.b"}
PAIRS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
TIME = pa.timestamp("us", "UTC")


def batch(**columns: tuple[Any, list[Any]]) -> pa.RecordBatch:
    arrays = {name: pa.array(values, type_) for name, (type_, values) in columns.items()}
    return pa.RecordBatch.from_pydict(arrays)


def test_parquet_rows_are_read_as_records() -> None:
    """Members as columns; a null is an absent member, a column that is no member is the writer's own."""
    at = datetime.datetime(2026, 1, 1, 0, 0, 0, 120_000, tzinfo=datetime.UTC)
    rows = read_parquet_batch(
        batch(
            protocol=(pa.string(), ["KAFKA", "AMQP/1.0", "http"]),
            received=(TIME, [at, None, None]),
            topic=(pa.string(), ["t", None, None]),
            offset=(pa.int64(), [12, None, None]),
            key=(pa.binary(), [b"\xff", None, None]),
            headers=(PAIRS, [[{"name": "a", "value": b"1"}, {"name": "b", "value": None}], None, []]),
            value=(pa.binary(), [b"{}", None, None]),
            body=(pa.large_binary(), [None, b"x", b""]),
            status=(pa.int32(), [None, None, 200]),
            **{"application-properties": (pa.string(), [None, '{"a":{"ulong":5}}', None])},
            written_by=(pa.string(), ["x", "y", "z"]),
        )
    )
    assert [row.problems for row in rows] == [(), (), ()]
    assert [to_record(row.wire) for row in rows if row.wire] == [
        {
            "protocol": "KAFKA",
            "received": "2026-01-01T00:00:00.12Z",
            "topic": "t",
            "offset": 12,
            "key": {"base64": "/w=="},
            "headers": [("a", "1"), ("b", None)],
            "value": "{}",
        },
        {"protocol": "AMQP/1.0", "application-properties": {"a": {"ulong": 5}}, "body": "x"},
        {"protocol": "HTTP", "status": 200, "headers": [], "body": ""},
    ]


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        ("s", 0, "1970-01-01T00:00:00Z"),
        ("ms", -1, "1969-12-31T23:59:59.999Z"),
        ("us", 1_000_001, "1970-01-01T00:00:01.000001Z"),
        ("ns", 1_000_000_001, "1970-01-01T00:00:01.000000001Z"),
    ],
)
def test_timestamp_of_each_unit_is_rfc_3339_text(unit: str, value: int, text: str) -> None:
    (row,) = read_parquet_batch(batch(protocol=(pa.string(), ["NATS"]), received=(pa.timestamp(unit, "UTC"), [value])))
    assert row.wire is not None
    assert row.wire.received == text


@pytest.mark.parametrize(
    ("name", "type_", "value", "slot"),
    [
        ("received", TIME, 2**62, "received"),
        ("received", pa.string(), "yesterday", "received"),
        ("header", pa.string(), "{", "header"),
        ("header", pa.string(), "[]", "header"),
        ("header", pa.string(), '{"a":1,"a":2}', "header.a"),
        ("header", pa.int64(), 5, "header"),
        ("body", pa.int64(), 5, "body"),
        ("body-section", pa.string(), "x", "body-section"),
    ],
)
def test_value_of_wrong_type_is_malformed(name: str, type_: Any, value: Any, slot: str) -> None:
    (row,) = read_parquet_batch(batch(protocol=(pa.string(), ["AMQP/1.0"]), **{name: (type_, [value])}))
    assert row.wire is None
    assert [(problem.code, problem.slot) for problem in row.problems] == [("malformed-record", slot)]
    assert row.value is not None
    assert row.value["protocol"] == "AMQP/1.0"


def test_pair_without_a_name_is_malformed() -> None:
    headers = (pa.list_(pa.string()), [["a"]])
    (row,) = read_parquet_batch(batch(protocol=(pa.string(), ["HTTP"]), headers=headers))
    assert [(problem.code, problem.slot) for problem in row.problems] == [("malformed-record", "headers[0]")]


def test_row_without_members_is_malformed() -> None:
    rows = read_parquet_batch(batch(x=(pa.int64(), [1, 2])))
    assert [[problem.slot for problem in row.problems] for row in rows] == [["protocol"], ["protocol"]]


# -- plain files of CloudEvents -------------------------------------------------------------------------------------


def test_file_of_one_event_is_read() -> None:
    (message,) = read_events(json.dumps(FOUR | {"data": 5}, indent=2).encode())
    assert (message.protocol, message.wire, message.kind, message.mode) == (
        "CLOUDEVENTS",
        None,
        "cloudevent",
        "structured",
    )
    assert message.attributes == FOUR
    assert message.payload is not None
    assert (message.payload.value, message.datacontenttype, message.content_type) == (5, "application/json", None)


def test_array_of_events_is_a_batch() -> None:
    messages = read_events(b" \r\n" + json.dumps([FOUR, FOUR | {"id": ""}], indent=2).encode())
    assert [(m.kind, m.mode, m.index) for m in messages] == [("cloudevent", "batch", 0), ("malformed", "batch", 1)]


@pytest.mark.parametrize("text", [b"", b" \n", b"\xef\xbb\xbf", b"[]"])
def test_blank_text_has_no_events(text: bytes) -> None:
    assert read_events(text) == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"5", "malformed-cloudevent"),
        (b"{", "malformed-cloudevent"),
        (b"[", "malformed-batch"),
        (b"\xff", "malformed-cloudevent"),
        (b"[" * 1000, "payload-too-deep"),
        (json.dumps(FOUR).encode() * 2, "malformed-cloudevent"),
    ],
)
def test_text_that_is_no_event_is_malformed(text: bytes, code: str) -> None:
    (message,) = read_events(text)
    assert message.kind == "malformed"
    assert [problem.code for problem in message.problems] == [code]


def test_byte_order_mark_is_ignored() -> None:
    (message,) = read_events(b"\xef\xbb\xbf" + json.dumps(FOUR).encode())
    assert message.kind == "cloudevent"


def test_examples_of_the_specification_are_read(shared: Path) -> None:
    """Every JSON example of the JSON event format's text is an event, or a batch of them."""
    text = (shared / "spec" / "cloudevents" / "json-format.md").read_text()
    examples = [part.partition("```")[0] for part in text.split("```JSON\n")[1:]]
    assert len(examples) == 8
    for example in examples:
        for message in read_events(example.replace("... base64 encoded string ...", "AAEC").encode()):
            assert message.kind == "cloudevent", example
