"""Rows of Parquet captures land alike by columns and by the reference, whatever types their writer chose."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wirebook.bindings import read_parquet_batch, to_line
from wirebook.catalog import Catalog
from wirebook.landing.chunks import Chunk
from wirebook.landing.columns import record_lines as record_lines_module
from wirebook.landing.columns.record_lines import record_lines

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "corpus"))

from synthesis.agreement import Engines

PAIR = pa.struct([("name", pa.string()), ("value", pa.binary())])
TEXT_TYPES = (pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string()))
BYTE_TYPES = (pa.binary(), pa.large_binary(), pa.string())
PAIR_TYPES = (
    pa.list_(PAIR),
    pa.large_list(PAIR),
    pa.list_(pa.struct([("value", pa.string()), ("extra", pa.int8()), ("name", pa.binary())])),
    pa.map_(pa.string(), pa.binary()),
    pa.list_(pa.list_(pa.string())),
)
TIME_TYPES = (pa.timestamp("us", "UTC"), pa.timestamp("s"), pa.timestamp("ns", "Europe/Stockholm"), pa.string())
MOMENT = datetime(2026, 3, 4, 5, 6, 7, 890123, UTC)


@pytest.fixture(scope="module")
def engines() -> Engines:
    event = {"type": {"value": "t"}, "source": {"type": "uritemplate", "value": "/s/{a}"}}
    names = {"event": {"envelope": "CloudEvents/1.0", "envelopemetadata": event}}
    names["kafka"] = {"protocol": "KAFKA", "protocoloptions": {"topic": "t", "key": "{k}"}}
    names["http"] = {"protocol": "HTTP", "protocoloptions": {"method": "POST", "path": "/x/{p}"}}
    names["nats"] = {"protocol": "NATS", "protocoloptions": {"subject": "a.{s}"}}
    names["mqtt5"] = {"protocol": "MQTT/5.0", "protocoloptions": {"topic_name": "t", "content_type": "text/plain"}}
    names["mqtt3"] = {"protocol": "MQTT/3.1.1", "protocoloptions": {"topic_name": "t/{x}"}}
    properties = {"properties": {"subject": {"value": "{s}", "type": "uritemplate"}}}
    names["amqp"] = {"protocol": "AMQP/1.0", "protocoloptions": properties}
    messages = {name: {"messageid": name} | message for name, message in names.items()}
    group = {"messagegroupid": "g", "messages": messages}
    return Engines(Catalog.load({"specversion": "1.0-rc4", "registryid": "r", "messagegroups": {"g": group}}))


def agree(engines: Engines, columns: dict[str, pa.Array] | pa.RecordBatch) -> int:
    """Both engines say the same of these rows; how many of them the columns settled."""
    batch = columns if isinstance(columns, pa.RecordBatch) else pa.RecordBatch.from_pydict(columns)
    result = engines.compare(Chunk("f", "parquet", None, np.arange(1, len(batch) + 1), batch))
    assert not result.differences, "\n".join(map(str, result.differences))
    return len(result.settled)


def kinds(types: tuple[pa.DataType, ...], *values: Any) -> st.SearchStrategy[Any]:
    """A type for the column, and what may be in it."""
    return st.sampled_from(types).map(lambda type_: (type_, values_of(type_, values)))


def values_of(type_: pa.DataType, values: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from((None, *(as_of(type_, value) for value in values)))


def as_of(type_: pa.DataType, value: Any) -> Any:
    """A value as `pyarrow.array` takes it for the type."""
    if pa.types.is_map(type_):
        return [(name, item) for name, item in value if name is not None]
    if pa.types.is_list(type_) and pa.types.is_list(type_.value_type):
        return [[name, item] for name, item in value]
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return [{"name": name, "value": item} for name, item in value]
    if isinstance(value, datetime) and pa.types.is_string(type_):
        return value.isoformat()
    if isinstance(value, datetime) and type_.unit == "ns":
        return MOMENT
    return value


HEADERS = (
    (),
    (("content-type", "text/plain"),),
    (("ce_specversion", "1.0"), ("ce_id", "1"), ("ce_type", "t"), ("ce_source", "/s/x")),
    (("CE-specversion", "1.0"), ("ce-id", "1"), ("ce-type", "t"), ("ce-source", "/s/x%20y"), ("a", "")),
    (("h", None),),
    ((None, "v"),),
    (("h", "1"), ("h", "2")),
)  # fmt: skip
COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    "received": kinds(TIME_TYPES, MOMENT, datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)),
    "endpoint": kinds(TEXT_TYPES, "/endpoints/none"),
    "method": kinds(TEXT_TYPES, "post", "POST"),
    "target": kinds(TEXT_TYPES, "/x/1", "/x/%41?q=1"),
    "status": kinds((pa.int16(), pa.float64()), 200, 99),
    "topic": kinds(TEXT_TYPES, "t", "t/ü"),
    "partition": kinds((pa.int32(), pa.int64()), 0, -1),
    "offset": kinds((pa.uint64(), pa.int64()), 7),
    "timestamp": kinds(TIME_TYPES, MOMENT),
    "key": kinds(BYTE_TYPES, "k", ""),
    "headers": kinds(PAIR_TYPES, *HEADERS),
    "user_properties": kinds(PAIR_TYPES, *HEADERS),
    "value": kinds(BYTE_TYPES, '{"a":1}', ""),
    "body": kinds(BYTE_TYPES, "x", ""),
    "payload": kinds(BYTE_TYPES, "x", ""),
    "data": kinds(BYTE_TYPES, "x", ""),
    "qos": kinds((pa.int8(), pa.int64()), 1, 3),
    "retain": kinds((pa.bool_(), pa.bool_()), True),
    "properties": kinds(
        TEXT_TYPES, "{}", '{"content_type":"text/plain"}', '{"subject":"s"}', '{"a":1,"a":2}', "null", "[", '{"x":[]}'
    ),
    "application-properties": kinds(TEXT_TYPES, '{"cloudEvents:id":"1"}', '{"n":{"uint":-1}}', '{"n":{"uint":1}}'),
    "subject": kinds(TEXT_TYPES, "a.b", "a"),
    "reply-to": kinds(TEXT_TYPES, "r"),
    "body-section": kinds(TEXT_TYPES, "data", "amqp-value", "other"),
    "writer": kinds(TEXT_TYPES, "a column of its own"),
}
PROTOCOLS = ("HTTP", "KAFKA", "kafka", "MQTT/3.1.1", "MQTT/5.0", "AMQP/1.0", "NATS", "SMTP", None)


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    """Rows of any protocols with columns of any members, each of any type that a writer may choose."""
    count = draw(st.integers(0, 12))
    protocols = draw(st.lists(st.sampled_from(PROTOCOLS), min_size=count, max_size=count))
    columns = {"protocol": pa.array(protocols, draw(st.sampled_from(TEXT_TYPES[:3])))}
    for name in draw(st.sets(st.sampled_from(sorted(COLUMNS)), max_size=9)):
        type_, values = draw(COLUMNS[name])
        columns[name] = pa.array(draw(st.lists(values, min_size=count, max_size=count)), type_)
    batch = pa.RecordBatch.from_pydict(columns)
    return batch.slice(draw(st.integers(0, count)))


@settings(max_examples=100)
@given(batches())
def test_random_columns_have_the_same_rows_by_columns_and_by_reference(engines: Engines, batch: pa.RecordBatch) -> None:
    agree(engines, batch)


@settings(max_examples=150)
@given(batches())
def test_lines_of_random_records_are_those_of_the_reference(batch: pa.RecordBatch) -> None:
    records = [parsed.wire for parsed in read_parquet_batch(batch)]
    valid = [place for place, record in enumerate(records) if record is not None]
    for protocol in {records[place].protocol for place in valid}:
        chosen = np.array([place for place in valid if records[place].protocol == protocol], np.int64)
        lines = record_lines(Chunk("f", "parquet", None, np.arange(len(batch)), batch), chosen)
        assert lines.to_pylist() == [to_line(records[place]) for place in chosen]


def test_lines_of_usual_records_are_written_by_columns() -> None:
    pairs = [[{"name": "a", "value": b"1"}, {"name": "é", "value": None}], None, []]
    columns = {
        "protocol": pa.array(["KAFKA"] * 3),
        "received": pa.array([MOMENT, MOMENT.replace(microsecond=0), None], pa.timestamp("us", "UTC")),
        "topic": pa.array(["t", 'a "quoted" \x01 topic', "\\"]),
        "offset": pa.array([1, None, 2**62]),
        "headers": pa.array(pairs, pa.list_(PAIR)),
        "value": pa.array([b'{"a": 1}', None, "\u2028é".encode()]),
    }
    batch = pa.RecordBatch.from_pydict(columns)
    expected = [to_line(parsed.wire) for parsed in read_parquet_batch(batch) if parsed.wire]
    with mock.patch.object(record_lines_module, "read_parquet_batch", side_effect=AssertionError):
        lines = record_lines(Chunk("f", "parquet", None, np.arange(3), batch), np.arange(3))
    assert lines.to_pylist() == expected


def test_plain_rows_are_decided_by_columns(engines: Engines) -> None:
    pairs = [[{"name": "content-type", "value": b"text/plain"}], None, []]
    columns = {
        "protocol": pa.array(["KAFKA"] * 3),
        "received": pa.array([MOMENT] * 3, pa.timestamp("ns", "UTC")),
        "topic": pa.array(["t"] * 3),
        "key": pa.array([b"k"] * 3),
        "headers": pa.array(pairs, pa.list_(PAIR)),
        "value": pa.array([b"1", b"\xff", None]),
    }
    assert agree(engines, columns) == 3
    assert agree(engines, columns | {"key": pa.array([b"k", b"\xff", b"k"])}) == 2
    properties = pa.array(['{"content_type":"text/plain"}'] * 3)
    mqtt = {"protocol": pa.array(["MQTT/5.0"] * 3), "topic": columns["topic"], "properties": properties}
    assert agree(engines, mqtt) == 3


BROKEN = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])

BROKEN_PAIR = pa.StructArray.from_arrays([BROKEN, BROKEN], ["name", "value"])


@pytest.mark.parametrize(
    ("columns", "slot"),
    [
        ({"topic": BROKEN}, "topic"),
        ({"topic": BROKEN.cast(pa.binary())}, "topic"),
        ({"protocol": BROKEN}, "protocol"),
        ({"value": BROKEN}, "value"),
        ({"headers": pa.ListArray.from_arrays([0, 1], BROKEN_PAIR)}, "headers"),
        ({"received": pa.array([-(2**60)], pa.timestamp("s"))}, "received"),
        ({"headers": pa.array([json.dumps([])])}, "headers"),
    ],
)  # fmt: skip
def test_invalid_columns_are_reported(engines: Engines, columns: dict[str, pa.Array], slot: str) -> None:
    whole = {"protocol": pa.array(["KAFKA"]), "topic": pa.array(["t"])} | columns
    (record,) = read_parquet_batch(pa.RecordBatch.from_pydict(whole))
    assert (record.wire, record.problems[0].slot) == (None, slot)
    assert agree(engines, whole) == 0


def test_duplicate_column_is_left_to_the_reference(engines: Engines) -> None:
    batch = pa.RecordBatch.from_arrays(
        [pa.array(["KAFKA"]), pa.array(["t"]), pa.array(["t"])], ["protocol", "topic", "topic"]
    )
    (record,) = read_parquet_batch(batch)
    assert record.problems[0].slot == "topic"
    assert agree(engines, batch) == 0
