"""Lines that Arrow parses as columns equal the records that the reference reads."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wirebook.bindings import parse_record
from wirebook.bindings.capture import MEMBERS
from wirebook.bindings.wire import Base64, bytes_of
from wirebook.landing.columns.json_records import JsonRecords, read_lines
from wirebook.landing.columns.records import RecordFields
from wirebook.text.json_tables import BLOCK, FEW

MOMENT = "2026-03-04T05:06:07.890123Z"
PAIRS = [["ce_id", "1"], ["Ce_Type", "t"], ["x", "ü\n"]]
PLAIN: dict[str, dict[str, Any]] = {
    "HTTP": {"method": "POST", "target": "/a?b", "headers": PAIRS, "body": "{}", "received": MOMENT},
    "KAFKA": {
        "topic": "t",
        "partition": 0,
        "offset": 2**53,
        "headers": [*PAIRS, ["n", None]],
        "value": '{"a":"\\u0000"}',
    },
    "MQTT/3.1.1": {"topic": "a/b", "qos": 1, "retain": False, "payload": "text"},
    "MQTT/5.0": {
        "topic": "a/b",
        "properties": {"content_type": "a/b", "payload_format": 1},
        "user_properties": PAIRS,
        "payload": "",
    },
    "NATS": {"subject": "a.b", "reply-to": "c", "headers": PAIRS, "data": "1", "endpoint": "/endpoints/e"},
}
ODD = [
    b'{"protocol":"%s","topic":"t","topic":"t"}',
    b'{"protocol":"%s","received":null,"received":null}',
    b'{"protocol":"%s","unknown":1}',
    b'{"protocol":"%s","unknown":null}',
    b'{"protocol":"%s","payload":{"base64":"AA=="},"value":{"base64":"AA=="}}',
    b'{"protocol":"%s","headers":[["a",{ "base64" : "AA==" }]]}',
    b'{"protocol":"%s","headers":[["a"]],"user_properties":[["a"]]}',
    b'{"protocol":"%s","headers":[["a","b","c"],["d"]],"user_properties":[["a","b","c"],["d"]]}',
    b'{"protocol":"%s","headers":[null],"user_properties":[null]}',
    b'{"protocol":"%s","headers":[[null,"a"]],"user_properties":[["a",null]]}',
    b'{"protocol":"%s","headers":[],"user_properties":[]}',
    b'{"protocol":"%s","headers":null,"user_properties":null,"properties":null}',
    b'{"protocol":"%s","offset":1.0,"qos":1.0,"status":200.0}',
    b'{"protocol":"%s","offset":-1,"qos":3,"status":1000}',
    b'{"protocol":"%s","offset":99999999999999999999}',
    b'{"protocol":"%s","properties":{"payload_format":2}}',
    b'{"protocol":"%s","properties":{"message_expiry_interval":4294967296}}',
    b'{"protocol":"%s","properties":{"x":1}}',
    b'{"protocol":"%s","topic":5,"subject":true,"target":[]}',
    b'{"protocol":"%s","topic":"\xff","subject":"\xff","target":"\xff"}',
    b'{"protocol":"%s","topic":"\\ud800","subject":"\\udc00","target":"\\ud800"}',
    b'{"protocol":"%s","topic":"a","timestamp":"yesterday"}',
    b'{"protocol":"%s"',
    b'{"protocol":"%s","topic":"}',
    b'{"protocol":"%s"}{"protocol":"%s"}',
    b'{"protocol":"%s"},',
    b' {"protocol":"%s"}',
    b'{"protocol":"%s"} ',
    b'{"protocol":"%s"}\r',
    b'{"pr\\u006ftocol":"%s","t\\u006fpic":"t"}',
    b'{"topic":"t","protocol":"other","subject":"%s"}',
    b'["%s"]',
    b"null",
    b'{"protocol":"%s"} null {"protocol":"%s"}',
    b'{"protocol":"%s","offset":NaN,"qos":NaN,"status":NaN}',
    b'"%s"',
    b"{}",
    b"",
]


def lines_of(protocol: str, odd: list[bytes], every: int) -> list[bytes]:
    """Plain lines with an odd one here and there."""
    plain = json.dumps({"protocol": protocol, **PLAIN[protocol]}).encode()
    lines_ = [plain] * FEW
    for place, line in enumerate(odd):
        lines_.insert((place * every) % len(lines_), line.replace(b"%s", protocol.encode()))
    return lines_


def hold(lines: list[bytes], protocol: str, rows: Any, fields: RecordFields) -> None:
    """What the columns say of these lines is what the reference reads in them."""
    assert len(rows) == len(fields)
    for place, row in {lines[row]: (place, row) for place, row in enumerate(rows.tolist())}.values():
        parsed = parse_record(lines[row])
        assert parsed.wire is not None, lines[row]
        assert not parsed.problems, lines[row]
        assert parsed.wire.protocol == protocol
        for member, name in MEMBERS[type(parsed.wire)].items():
            assert is_same(member, getattr(parsed.wire, name), place, fields), (lines[row], member)


def is_same(member: str, value: Any, place: int, fields: RecordFields) -> bool:
    if member in ("headers", "user_properties"):
        return all(is_same_pair(pair, value, place, fields.pairs(member, str)) for pair in value or ())
    if member == "properties":
        inner = fields.nested(member, "content_type").text[place].as_py()
        return bool(inner == (value and value.content_type))
    if isinstance(value, Base64):
        return bool(fields.data(member)[place].as_py() == bytes_of(value))
    if value is None or isinstance(value, str):
        return bool(fields.text(member).text[place].as_py() == value)
    return True


def is_same_pair(pair: Any, pairs: Any, place: int, actual: Any) -> bool:
    column = actual.column(pair[0])
    if [name for name, _ in pairs].count(pair[0]) > 1 or not isinstance(pair[1], str):
        return bool(column.doubtful[place])
    return bool(column.text[place].as_py() == pair[1])


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(list(PLAIN)), st.lists(st.sampled_from(ODD), max_size=12), st.integers(1, 60))
def test_columns_equal_decoded_records(protocol: str, odd: list[bytes], every: int) -> None:
    lines = lines_of(protocol, odd, every)
    for protocol_of_rows, rows, fields in JsonRecords(pa.array(lines, pa.large_binary())).by_protocol():
        hold(lines, protocol_of_rows, rows, fields)


@pytest.mark.parametrize("protocol", PLAIN)
def test_invalid_line_does_not_affect_its_neighbours(protocol: str) -> None:
    for line in ODD:
        lines = lines_of(protocol, [line], every=FEW // 2)
        records = JsonRecords(pa.array(lines, pa.large_binary()))
        taken = {row for _, rows, _ in records.by_protocol() for row in rows.tolist()}
        assert len(taken) >= FEW, line
        assert len(records.received[0]) == len(records.endpoints) == len(lines)


def test_lines_that_would_shift_neighbours_are_not_parsed() -> None:
    lines = [b'{"topic":"a"}'] * FEW + [b'{"topic":"}', b'{"topic":"a"}{"topic":"b"}']
    table, places = read_lines(pa.array(lines, pa.large_binary()), pa.schema({"topic": pa.string()}))
    assert places.tolist() == list(range(FEW))
    assert set(table["topic"].to_pylist()) == {"a"}


def test_many_invalid_lines_stop_column_parsing() -> None:
    lines = [b'{"topic":5}'] * 2 * BLOCK
    table, places = read_lines(pa.array(lines, pa.large_binary()), pa.schema({"topic": pa.string()}))
    assert len(table) == len(places) == 0


def test_unusual_time_is_left_to_the_reference() -> None:
    """`received` is certain where it is plain or absent, and nowhere else."""
    odd = {3: "2026-02-30T00:00:00Z", 5: "2026-01-01T00:00:00.1234567Z", 9: "", 11: None}
    times = [odd.get(number, MOMENT) for number in range(FEW)]
    lines = [json.dumps({"protocol": "KAFKA", "topic": "t", "received": time}).encode() for time in times]
    read, certain = JsonRecords(pa.array(lines, pa.large_binary())).received
    assert [number for number in range(FEW) if not certain[number]] == [3, 5, 9]
    assert read[11].as_py() is None
