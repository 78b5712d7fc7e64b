"""The vectors of tests/vectors/bindings: the messages of a record, and the problems of an invalid line.

Shape: a vector has a `record` in the capture format and `expect`, the messages in it; `slots`, `data_content_type` and
`context` ("cloudevents": the definition says that it is one) where they matter. Bytes are ``{"bytes": text}`` or
``{"bytes_base64": ...}`` among slots; data is ``{"text": ...}``, ``{"base64": ...}`` or ``{"json": ...}``.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from wirebook.bindings import (
    Received,
    as_structured,
    decode_records,
    parse_record,
    read_message,
    read_record,
    slots,
    to_line,
    to_record,
)
from wirebook.bindings.amqp_types import captured
from wirebook.schema.payload import UNSET, Payload

FOLDER = Path(__file__).parent.parent / "vectors" / "bindings"
FILES = ("examples", "json-event-format", "http", "kafka", "amqp", "mqtt", "nats")


def vectors(*files: str) -> list[Any]:
    read = [(name, json.loads((FOLDER / f"{name}.json").read_bytes())["vectors"]) for name in files]
    return [pytest.param(vector, id=f"{name}/{vector['name']}") for name, items in read for vector in items]


def line_of(vector: dict[str, Any]) -> bytes:
    return json.dumps(vector["record"], ensure_ascii=False).encode()


def shape(received: Received) -> dict[str, Any]:
    """A message in the form of `expect`."""
    attributes = {name: captured(value) for name, value in received.attributes.items()}
    problems = [{"code": problem.code, "slot": problem.slot} for problem in received.problems]
    return {
        "kind": received.kind,
        "mode": received.mode,
        "attributes": attributes,
        "data": data_of(received.payload),
        "content_type": received.content_type,
        "problems": problems,
    } | ({"index": received.index} if received.index else {})


def data_of(payload: Payload | None) -> Any:
    if payload is None:
        return None
    if payload.raw is None:
        assert payload.value is not UNSET
        return {"json": payload.value}
    try:
        return {"text": payload.raw.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(payload.raw).decode()}


def slot_shape(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return {"bytes": value.decode()}
        except UnicodeDecodeError:
            return {"bytes_base64": base64.b64encode(value).decode()}
    return [list(map(slot_shape, pair)) for pair in value] if isinstance(value, list) else value


@pytest.mark.parametrize("vector", vectors(*FILES))
def test_reading_vector(vector: dict[str, Any]) -> None:
    messages = read_record(line_of(vector))
    if vector.get("context") == "cloudevents":
        messages = tuple(as_structured(message) or message for message in messages)
    assert [shape(message) for message in messages] == vector["expect"]


@pytest.mark.parametrize("vector", [v for v in vectors(*FILES) if "data_content_type" in v.values[0]])
def test_content_type_vector(vector: dict[str, Any]) -> None:
    (message,) = read_record(line_of(vector))
    assert message.datacontenttype == vector["data_content_type"]


@pytest.mark.parametrize("vector", [v for v in vectors(*FILES) if "slots" in v.values[0]])
def test_slots_vector(vector: dict[str, Any]) -> None:
    wire = parse_record(line_of(vector)).wire
    assert wire is not None
    all_slots = slots(wire)
    for name, expected in vector["slots"].items():
        actual = all_slots[name]
        if isinstance(actual, dict):
            actual = {key: captured(value) for key, value in actual.items()}
        elif not (isinstance(actual, list) and actual == expected):
            actual = slot_shape(actual)
        assert actual == expected, name


@pytest.mark.parametrize("vector", vectors(*FILES))
def test_record_of_vector_is_read_back(vector: dict[str, Any]) -> None:
    """Many lines at once, and writing a record again, change nothing."""
    line = line_of(vector)
    parsed = parse_record(line)
    assert parsed.wire is not None, parsed.problems
    assert decode_records([line])[0] in (None, parsed.wire)
    assert parse_record(to_line(parsed.wire)).wire == parsed.wire
    assert json.loads(to_line(parsed.wire)) == json.loads(json.dumps(to_record(parsed.wire)))
    assert read_message(parsed.wire) == read_record(line)


@pytest.mark.parametrize("vector", vectors("records"))
def test_record_vector(vector: dict[str, Any]) -> None:
    line = vector["line"].encode()
    parsed = parse_record(line)
    assert [{"code": p.code, "slot": p.slot} for p in parsed.problems] == vector["problems"]
    assert all(p.expected is not None for p in parsed.problems)
    assert (parsed.wire is not None) == vector.get("valid", False)
    message = read_record(line)[0]
    assert message.kind == ("native" if vector.get("valid") else "malformed")
    assert message.protocol == vector.get("protocol", "")
    if "received" in vector:
        assert message.received == vector["received"]


@pytest.mark.parametrize("vector", vectors("records"))
def test_record_vector_among_many_lines(vector: dict[str, Any]) -> None:
    """What is quick to read is read the same, and what has problems is left to `parse_record`."""
    line, good = vector["line"].encode(), b'{"protocol":"NATS","subject":"a","data":null}'
    parsed = parse_record(line)
    before, record, after = decode_records([good, line, good])
    assert before == after == parse_record(good).wire
    assert record is None or (record == parsed.wire and not parsed.problems)
