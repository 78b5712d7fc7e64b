"""Properties: written messages are read back, and many lines are decoded like single ones."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from wirebook.bindings import (
    PROTOCOLS,
    AmqpMessage,
    AnyMessage,
    HttpMessage,
    KafkaRecord,
    Mqtt3Publish,
    Mqtt5Publish,
    MqttProperties,
    NatsMessage,
    Received,
    Timestamp,
    as_structured,
    decode_records,
    from_bytes,
    parse_record,
    read_message,
    read_parquet_batch,
    slots,
    to_line,
    to_record,
    with_slots,
    write_event,
    write_native,
)
from wirebook.bindings.attributes import FORBIDDEN, is_uri_reference
from wirebook.bindings.capture import EXPECTED
from wirebook.bindings.wire import BODY_SECTIONS
from wirebook.schema.payload import UNSET, Payload
from wirebook.text.json import parse_json

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20).filter(lambda t: not FORBIDDEN.search(t))
HEADER_TEXT = TEXT.map(str.strip)
NAME = st.from_regex(r"[a-z][a-z0-9]{0,10}", fullmatch=True).filter(lambda name: name != "data")
URI = st.from_regex(r"[A-Za-z0-9./:;?#@!$&'()*+,=~_-]{1,20}", fullmatch=True).filter(is_uri_reference)
VALUE = TEXT | st.booleans() | st.integers(-(2**31), 2**31 - 1) | st.binary(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
MEDIA_TYPES = st.sampled_from([None, "application/json", "text/plain; charset=utf-8", "application/xml", "image/png"])


@st.composite
def attributes(draw: st.DrawFn) -> dict[str, Any]:
    """Attributes of a sound CloudEvent."""
    more = draw(st.dictionaries(NAME, VALUE, max_size=4))
    some_text = TEXT.filter(bool)
    four = {"specversion": "1.0", "source": draw(URI)} | {name: draw(some_text) for name in ("id", "type")}
    content_type = draw(MEDIA_TYPES)
    return more | four | ({"datacontenttype": content_type} if content_type else {})


@st.composite
def payloads(draw: st.DrawFn, content_type: str | None) -> Payload | None:
    is_json = content_type is None or content_type.endswith("json")
    if is_json and draw(st.booleans()):
        return Payload(None, draw(JSON), content_type)
    return draw(st.none() | st.binary(min_size=1, max_size=20).map(lambda raw: Payload(raw, content_type=content_type)))


def texts(values: dict[str, Any]) -> dict[str, str]:
    """Attributes as their canonical strings, which is what has to survive."""
    one = write_event("KAFKA", "binary", values, None).wire
    return read_message(one)[0].attributes


def data(payload: Payload | None) -> Any:
    """What has to survive of the data: the JSON value where there is one, otherwise the bytes."""
    if payload is None:
        return None
    try:
        return payload.value if payload.raw is None else parse_json(payload.raw)
    except ValueError:
        return payload.raw


def received_of(wire: AnyMessage) -> Received:
    """The message, through a line of a capture file."""
    line = to_line(wire)
    parsed = parse_record(line)
    assert parsed.problems == ()
    assert parsed.wire == wire
    assert decode_records([line]) in ([wire], [None])
    (received,) = read_message(wire)
    return as_structured(received) or received


MODES = [(protocol, mode) for protocol in PROTOCOLS for mode in ("binary", "structured")]
MODES.remove(("MQTT/3.1.1", "binary"))


@pytest.mark.parametrize(("protocol", "mode"), MODES)
@settings(max_examples=60)
@given(st.data())
def test_written_event_is_read_back(protocol: str, mode: Any, draw: st.DataObject) -> None:
    sent = draw.draw(attributes())
    payload = draw.draw(payloads(sent.get("datacontenttype")))
    wire, problems = write_event(protocol, mode, sent, payload)
    assert problems == ()
    received = received_of(wire)
    assert (received.kind, received.mode, received.problems) == ("cloudevent", mode, ())
    actual = dict(received.attributes)
    if "datacontenttype" not in sent:
        assert actual.pop("datacontenttype", "application/json") == "application/json"
    assert texts(actual) == texts(sent)
    assert data(received.payload) == data(payload)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(content_type=MEDIA_TYPES, raw=st.binary(min_size=1, max_size=20))
def test_written_native_message_is_read_back(protocol: str, content_type: str | None, raw: bytes) -> None:
    wire, problems = write_native(protocol, Payload(raw, content_type=content_type))
    assert problems == ()
    received = received_of(wire)
    assert (received.kind, received.mode, received.attributes) == ("native", None, {})
    assert received.payload is not None
    assert received.payload.raw == raw
    assert received.content_type == (None if protocol == "MQTT/3.1.1" else content_type)


def test_amqp_keeps_native_types() -> None:
    sent = {"specversion": "1.0", "id": "1", "source": "/", "type": "t", "time": Timestamp("2026-01-01T00:00:00Z")}
    sent |= {"b": True, "n": 5, "x": b"\x00\xff"}
    actual = received_of(write_event("AMQP/1.0", "binary", sent, None).wire).attributes
    assert actual == sent
    assert {name: type(value) for name, value in actual.items()} == {name: type(value) for name, value in sent.items()}


SLOTS: dict[str, dict[str, Any]] = {
    "HTTP": {"method": "PUT", "path": "/a/b%2Fc", "query": [("k", "v w"), ("k", "ü")], "headers": [("x-a", "1")]},
    "KAFKA": {"topic": "t", "partition": 3, "key": b"\xff", "headers": [("X", "1"), ("n", None), ("b", b"\xfe")]},
    "MQTT/3.1.1": {"topic_name": "a/b", "qos": 2, "retain": False},
    "MQTT/5.0": {"topic_name": "a", "qos": 0, "correlation_data": b"\xff", "user_properties": [("U", "1"), ("U", "2")]},
    "AMQP/1.0": {"properties": {"subject": "s", "message-id": 5}, "header": {"durable": True}, "footer": {"f": b"\0"}},
    "NATS": {"subject": "a.b", "reply-to": "r", "headers": [("x-a", "1"), ("x-a", "2")]},
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_written_slots_are_read_back(protocol: str) -> None:
    sent = {"specversion": "1.0", "id": "1", "source": "/", "type": "t"}
    event = write_event(protocol, None, sent, Payload(b"{}", content_type="application/json"))
    wire, problems = with_slots(event.wire, SLOTS[protocol])
    assert problems == ()
    actual = slots(wire)
    for name, expected in SLOTS[protocol].items():
        if isinstance(expected, dict):
            assert expected.items() <= actual[name].items()
        elif isinstance(expected, list):
            assert actual[name][-len(expected) :] == expected
        else:
            assert actual[name] == expected
    assert received_of(wire).attributes.items() >= sent.items()


def test_slots_replace_headers_of_the_envelope() -> None:
    """D24: a protocol constraint replaces the envelope's on the same slot."""
    sent = {"specversion": "1.0", "id": "1", "source": "/", "type": "t"}
    event = write_event("HTTP", "binary", sent, None)
    wire, _ = with_slots(event.wire, {"headers": [("CE-Type", "u")]})
    assert read_message(wire)[0].attributes["type"] == "u"


# -- many lines against one -----------------------------------------------------------------------------------------

BYTES = st.none() | TEXT | st.binary(max_size=6).map(from_bytes)
SOME_BYTES = TEXT | st.binary(max_size=6).map(from_bytes)
PAIRS = st.none() | st.lists(st.tuples(TEXT, SOME_BYTES), max_size=3)
TIME = st.sampled_from([None, "2026-01-01T00:00:00Z", "2024-02-29T12:00:00.5+01:00"])
TYPED = st.sampled_from([{"timestamp": "2026-01-01T00:00:00Z"}, {"ulong": 5}, {"binary": "AA=="}, {"symbol": "s"}])
SECTION = st.none() | st.dictionaries(TEXT, st.none() | st.booleans() | st.integers() | TEXT | TYPED, max_size=3)
COMMON: dict[str, Any] = {"received": TIME, "endpoint": st.none() | TEXT}
NUMBER = st.none() | st.integers(0, 2**63 - 1)
QOS = st.none() | st.integers(0, 2)
PROPERTIES = st.none() | st.builds(MqttProperties, content_type=st.none() | TEXT, correlation_data=BYTES)
WIRES = st.one_of(
    st.builds(HttpMessage, **COMMON, method=st.none() | TEXT, target=st.none() | TEXT, headers=PAIRS, body=BYTES),
    st.builds(
        KafkaRecord,
        **COMMON,
        topic=st.none() | TEXT,
        offset=NUMBER,
        timestamp=TIME,
        key=BYTES,
        headers=st.none() | st.lists(st.tuples(TEXT, st.none() | SOME_BYTES), max_size=3),
        value=BYTES,
    ),
    st.builds(Mqtt3Publish, **COMMON, topic=st.none() | TEXT, qos=QOS, payload=BYTES),
    st.builds(Mqtt5Publish, **COMMON, topic=st.none() | TEXT, properties=PROPERTIES, user_properties=PAIRS),
    st.builds(
        AmqpMessage,
        **COMMON,
        properties=SECTION,
        application_properties=SECTION,
        header=SECTION,
        body_section=st.sampled_from([None, *BODY_SECTIONS]),
        body=BYTES,
    ),
    st.builds(NatsMessage, **COMMON, subject=st.none() | TEXT, reply_to=st.none() | TEXT, headers=PAIRS, data=BYTES),
)


@given(WIRES)
def test_record_is_read_back_from_its_line(wire: AnyMessage) -> None:
    assert parse_record(to_line(wire))[:2] == (wire, ())


@given(st.lists(WIRES, max_size=4))
def test_written_lines_take_the_fast_path(wires: list[AnyMessage]) -> None:
    """A line as we write it needs no second look, unless a name ends with a backslash, a text begins with a colon or a
    section has a null."""
    lines = [to_line(wire) for wire in wires]
    odd = (b'\\":', b'":null', b':":', b',":', b'[":', b'{":')
    assume(not any(character in line for line in lines for character in odd))
    assert decode_records(lines) == wires


NAMES = ('"x"', '"key"', '"data"', '"reply_to"', '"base64"', '"\\u006bey"', '"ke\\\\"')
VALUES = ("null", '"v"', '{"base64":"/w=="}', '{"base64":"/w==","base64":"/w=="}', '{"ulong":5}', '{"a":null,"a":1}')


@st.composite
def odd_lines(draw: st.DrawFn) -> bytes:
    """Lines near a sound one: spaced, escaped, cut, with members repeated, nulled, renamed or added."""
    record = msgspec.to_builtins(draw(WIRES))
    members = [
        (json.dumps(name), json.dumps(value, ensure_ascii=draw(st.booleans()))) for name, value in record.items()
    ]
    for _ in range(draw(st.integers(0, 2))):
        name, value = draw(st.sampled_from(members))
        name, value = draw(st.sampled_from([name, *NAMES])), draw(st.sampled_from([value, *VALUES]))
        members.insert(draw(st.integers(0, len(members))), (name, value))
    comma, colon = draw(st.sampled_from([",", ", ", " ,"])), draw(st.sampled_from([":", ": ", " :", "\t:", "  : "]))
    text = comma.join(name + colon + value for name, value in members)
    line = (draw(st.sampled_from(["", " ", "\t"])) + "{" + text + "}").encode()
    return line[: draw(st.integers(0, len(line)))] if draw(st.integers(0, 9)) == 0 else line


@settings(max_examples=200)
@given(st.lists(odd_lines(), max_size=4))
def test_decode_records_agrees_with_parse_record(lines: list[bytes]) -> None:
    for line, record in zip(lines, decode_records(lines), strict=True):
        if record is not None:
            parsed = parse_record(line)
            assert parsed.wire == record
            assert parsed.problems == ()


@given(st.lists(st.binary(max_size=60), max_size=3))
def test_any_bytes_are_decoded_without_an_exception(lines: list[bytes]) -> None:
    assert len(decode_records(lines)) == len(lines)
    for line in lines:
        parsed = parse_record(line)
        assert (parsed.wire is None) == any(problem.severity == "error" for problem in parsed.problems)


# -- rows of Parquet against lines ----------------------------------------------------------------------------------

PAIR_COLUMN = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
COLUMN: dict[str, Any] = {
    **dict.fromkeys(EXPECTED, pa.string()),
    **dict.fromkeys(("body", "key", "value", "payload", "data"), pa.binary()),
    **dict.fromkeys(("headers", "user_properties"), PAIR_COLUMN),
    **dict.fromkeys(("partition", "offset", "status", "qos"), pa.int64()),
    "retain": pa.bool_(),
}


def cell(name: str, value: Any) -> Any:
    """A member as a column of a Parquet capture has it."""
    if COLUMN[name] == PAIR_COLUMN:
        return [{"name": pair[0], "value": raw(pair[1])} for pair in value]
    if COLUMN[name] == pa.binary():
        return raw(value)
    return json.dumps(value) if isinstance(value, dict) else value


def raw(value: Any) -> Any:
    wire = parse_record(json.dumps({"protocol": "KAFKA", "value": value}).encode()).wire
    field = getattr(wire, "value", None)
    return field.encode() if isinstance(field, str) else field and field.base64


@given(WIRES)
def test_parquet_row_is_read_like_its_line(wire: AnyMessage) -> None:
    record = to_record(wire)
    columns = {
        name: (COLUMN.get(name, pa.string()), [value if name == "protocol" else cell(name, value)])
        for name, value in record.items()
    }
    arrays = {name: pa.array(values, type_) for name, (type_, values) in columns.items()}
    (row,) = read_parquet_batch(pa.RecordBatch.from_pydict(arrays))
    assert row.problems == ()
    assert row.wire == parse_record(json.dumps(record).encode()).wire


def test_unset_payload_is_not_a_value() -> None:
    assert Payload(b"").value is UNSET
