"""Hostile input is reported as malformed, without an exception and in linear time."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest

from wirebook.bindings import (
    capture,
    decode_records,
    json_event,
    parse_record,
    read_events,
    read_message,
    read_record,
    slots,
)
from wirebook.bindings.http import normal_path, query_pairs
from wirebook.bindings.percent import decode_value

FOUR = {"specversion": "1.0", "id": "1", "source": "/s", "type": "a.b"}


def line(protocol: str, **members: object) -> bytes:
    return json.dumps({"protocol": protocol, **members}, ensure_ascii=False).encode()


def headers(prefix: str, **more: str) -> list[list[str]]:
    return [[prefix + name, value] for name, value in {**FOUR, **more}.items()]


MILLION = 10**6
MANY = 10**5
LINES: dict[str, Callable[[], bytes]] = {
    "a header of a megabyte": lambda: line("HTTP", headers=headers("ce-", subject="x" * MILLION)),
    "a megabyte of escapes": lambda: line("HTTP", headers=headers("ce-", subject="%41" * MILLION)),
    "a megabyte of stray percents": lambda: line("HTTP", headers=headers("ce-", subject="%" * MILLION)),
    "a quote that never closes": lambda: line("HTTP", headers=headers("ce-", subject='"' + "\\" * MILLION)),
    "backslashes in quotes": lambda: line("HTTP", headers=headers("ce-", subject='"' + "\\a" * MILLION + '"')),
    "many quotes": lambda: line("HTTP", headers=headers("ce-", subject='"' * MILLION)),
    "a hundred thousand headers": lambda: line("HTTP", headers=headers("ce-") + [["X", "y"]] * MANY),
    "a hundred thousand attributes": lambda: line("HTTP", headers=[[f"ce-{n}", "y"] for n in range(MANY)]),
    "a hundred thousand bad names": lambda: line("HTTP", headers=headers("ce-") + [["ce-\u00e9", "y"]] * MANY),
    "a hundred thousand repeats": lambda: line(
        "KAFKA", headers=headers("ce_") + [["ce_id", str(n)] for n in range(MANY)]
    ),
    "a name of a megabyte": lambda: line("KAFKA", headers=headers("ce_", **{"x" * MILLION: "1"})),
    "a content type of a megabyte": lambda: line("HTTP", headers=[["content-type", "application/cloudevents" * MANY]]),
    "user properties": lambda: line("MQTT/5.0", user_properties=headers("") + [[f"p{n}", "1"] for n in range(MANY)]),
    "application properties": lambda: line("AMQP/1.0", **{"application-properties": {f"p{n}": n for n in range(MANY)}}),
    "typed values": lambda: line("AMQP/1.0", header={f"p{n}": {"timestamp": "x"} for n in range(MANY)}),
    "unknown members": lambda: line("NATS", **{f"m{n}": n for n in range(MANY)}),
    "a deep unknown member": lambda: b'{"protocol":"NATS","x":' + b"[" * MANY + b"]" * MANY + b"}",
    "a deep section": lambda: b'{"protocol":"AMQP/1.0","header":' + b'{"a":' * MANY + b"1" + b"}" * MANY + b"}",
    "brackets that never close": lambda: b'{"protocol":"NATS","x":' + b"[" * MILLION,
    "nulls": lambda: b'{"protocol":"NATS"' + b',"data":null' * MANY + b"}",
    "one member often": lambda: b'{"protocol":"NATS"' + b',"data":"a"' * MANY + b"}",
    "blanks": lambda: b'{"protocol":"NATS","data"' + b" " * MILLION + b":1}",
    "a long number": lambda: b'{"protocol":"KAFKA","offset":' + b"9" * MILLION + b"}",
    "binary": lambda: bytes(range(256)) * 4000,
    "broken base64": lambda: line("KAFKA", value={"base64": "A" * MILLION + "*"}),
}


@pytest.mark.parametrize("name", LINES)
def test_invalid_line_is_a_malformed_message(name: str) -> None:
    text = LINES[name]()
    parsed = parse_record(text)
    for message in read_record(text):
        assert len(message.problems) <= 30
        assert all(len(str(problem.to_dict())) < 5000 for problem in message.problems)
    if parsed.wire is not None:
        slots(parsed.wire)
    assert decode_records([text, text])[0] in (None, parsed.wire)


BODIES: dict[str, Callable[[], bytes]] = {
    "deep data": lambda: json.dumps(FOUR).encode()[:-1] + b',"data":' + b"[" * MANY + b"]" * MANY + b"}",
    "many attributes": lambda: json.dumps(FOUR | {f"x{n}": {} for n in range(MANY)}).encode(),
    "many repeats": lambda: json.dumps(FOUR).encode()[:-1] + b',"id":"2"' * MANY + b"}",
    "broken base64": lambda: json.dumps(FOUR | {"data_base64": "A" * MILLION + "*"}).encode(),
    "a long text": lambda: json.dumps(FOUR | {"data": "\u00e9" * MILLION}).encode(),
    "lone surrogates": lambda: json.dumps(FOUR | {"data": "\ud800" * MANY}).encode(),
    "a big number": lambda: json.dumps(FOUR).encode()[:-1] + b',"data":' + b"1" * MILLION + b"}",
    "a batch": lambda: b"[" + b",".join([json.dumps(FOUR).encode()] * 20_000) + b"]",
    "a batch of nothing": lambda: b"[" + b"0," * MANY + b"0]",
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("media_type", ["application/cloudevents+json", "application/cloudevents-batch+json"])
def test_invalid_structured_body_is_malformed(name: str, media_type: str) -> None:
    body = BODIES[name]()
    record = line("HTTP", headers=[["content-type", media_type]], body={"base64": base64.b64encode(body).decode()})
    wire = parse_record(record).wire
    assert wire is not None
    for message in (*read_message(wire), *read_events(body)):
        assert message.kind in ("cloudevent", "malformed")
        assert len(message.problems) <= 20


@pytest.mark.parametrize(
    "text",
    [
        b'{"protocol":"AMQP/1.0","header":{},"header":{"base64":"/w=="}}',
        b'{"protocol":"AMQP/1.0","footer":{"base64":"/w=="},"footer":{"base64":"/w=="}}',
        b'{"protocol":"MQTT/5.0","properties":{"base64":"/w=="}}',
        b'{"protocol":"NATS","x":{"base64":"/w=="}}',
        b'{"protocol":"NATS","data":"a","data":{"base64":"/w=="}}',
        b'{"protocol":"HTTP","headers":[["a",{"base64":"/w=="}]],"headers":[]}',
    ],
)
def test_misplaced_base64_object_is_left_to_parse_record(text: bytes) -> None:
    """An object with the member base64 where there are no bytes, or twice, is left to `parse_record`."""
    assert decode_records([text] * 2) == [None] * 2
    good = line("HTTP", headers=[["a", {"base64": "/w=="}], ["b", "c"]], body={"base64": "/w=="})
    assert decode_records([good, text])[0] == parse_record(good).wire


def test_record_above_the_limit_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "MAX_RECORD_BYTES", 100)
    text = line("NATS", data="x" * 100)
    assert [problem.code for problem in parse_record(text).problems] == ["too-large"]
    assert decode_records([text]) == [None]


def test_event_above_the_limit_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_event, "MAX_EVENT_BYTES", 50)
    (message,) = read_events(json.dumps(FOUR).encode())
    assert message.kind == "malformed"
    assert [problem.code for problem in message.problems] == ["payload-too-large"]


@pytest.mark.parametrize("walk", [decode_value, normal_path, query_pairs], ids=lambda walk: walk.__name__)
def test_any_text_is_read_without_an_exception(walk: Callable[[str], object]) -> None:
    for text in ("%41" * MILLION, "%4" * MILLION, "&=" * MILLION, '"\\' * MILLION, "\u00e9" * MILLION, "%" * MILLION):
        walk(text)
