"""The CloudEvents SDK: its events, and the messages that its JSON format and HTTP binding write."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from wirebook.bindings import Timestamp, read_events, read_message, write_event
from wirebook.convert.cloudevents import PlainCloudEvent, attributes_of, data_of, event_of, moment, payload_of
from wirebook.problems import WirebookError
from wirebook.schema import Payload

FOUR = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}


@pytest.mark.parametrize(
    ("payload", "data"),
    [
        (None, None),
        (Payload(b'{"a": 1}', content_type="application/json"), {"a": 1}),
        (Payload(b"{", content_type="application/json"), b"{"),
        (Payload(None, [1], None), [1]),
        (Payload(b"<a/>", content_type="application/xml"), "<a/>"),
        (Payload(b"\xff", content_type="text/plain"), b"\xff"),
        (Payload(b"abc", content_type="image/png"), b"abc"),
    ],
)
def test_data_depends_on_the_content_type(payload: Payload | None, data: Any) -> None:
    assert data_of(payload) == data


def test_sdk_event_has_the_json_format_of_the_sdk() -> None:
    attributes = FOUR | {"time": Timestamp("2026-01-05T08:00:00.5Z"), "n": 5, "datacontenttype": "application/json"}
    event = event_of(attributes, Payload(b'{"a":1}', content_type="application/json"))
    assert type(event) is CloudEvent
    (read,) = read_events(JSONFormat().write(event))
    assert read.attributes == {**attributes, "time": "2026-01-05T08:00:00.500000Z"}
    assert read.payload is not None
    assert read.payload.value == {"a": 1}


def test_sdk_event_is_built() -> None:
    event = CloudEvent(
        {
            "id": "1",
            "source": "/s",
            "type": "t",
            "time": datetime(2026, 1, 5, tzinfo=UTC),
            "datacontenttype": "text/csv",
        },
        "a,b",
    )
    wire, problems = write_event("KAFKA", None, attributes_of(event), payload_of(event))
    assert problems == ()
    (read,) = read_message(wire)
    assert read.attributes == FOUR | {"time": "2026-01-05T00:00:00Z", "datacontenttype": "text/csv"}
    assert read.payload is not None
    assert read.payload.raw == b"a,b"


@pytest.mark.parametrize("data", [{"a": 1}, [1, 2], b"\xff", None])
def test_payload_survives_the_round_trip(data: Any) -> None:
    event = CloudEvent(FOUR | {"id": "2"}, data)
    payload = payload_of(event)
    wire, _ = write_event("HTTP", "structured", attributes_of(event), payload)
    (read,) = read_message(wire)
    value = data_of(read.payload)
    assert value == data
    assert json.loads(wire.body)["id"] == "2"  # type: ignore[union-attr, arg-type]


@pytest.mark.parametrize("attribute", [{"myExt": "x"}, {"a-b": "x"}, {"subject": ""}, {"datacontenttype": ""}])
def test_attribute_the_sdk_rejects_is_an_error(attribute: dict[str, str]) -> None:
    with pytest.raises(WirebookError) as error:
        event_of(FOUR | attribute, None)
    (problem,) = error.value.problems
    assert (problem.code, problem.slot) == ("not-expressible", f"envelopemetadata.{next(iter(attribute))}")


def test_event_without_time_gets_none() -> None:
    event = event_of(FOUR, None)
    assert event.get_time() is None
    assert attributes_of(event) == FOUR
    assert b"time" not in JSONFormat().write(event)


def test_time_becomes_a_datetime() -> None:
    assert moment("2026-12-31T23:59:60Z") == datetime(2027, 1, 1, tzinfo=UTC)
    assert moment("2026-01-01t00:00:00.1234567z") == datetime(2026, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)


@pytest.mark.parametrize("time", ["0000-01-01T00:00:00Z", "9999-12-31T23:59:60Z"])
def test_time_out_of_range_stays_a_string(time: str) -> None:
    event = event_of(FOUR | {"time": time}, None)
    assert attributes_of(event) == FOUR | {"time": time}
    assert json.loads(JSONFormat().write(event))["time"] == time


def test_binary_attribute_becomes_base64() -> None:
    event = event_of(FOUR | {"key": b"\x00\x01"}, None)
    assert event.get_extension("key") == "AAE="
    assert json.loads(JSONFormat().write(event))["key"] == "AAE="


def test_event_without_the_sdk_has_the_same_getters(monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = FOUR | {
        "subject": "s", "dataschema": "https://h/s", "datacontenttype": "application/json", "n": 5,
        "time": Timestamp("2026-01-05T08:00:00Z"),
    }  # fmt: skip
    payload = Payload(b'{"a":1}', content_type="application/json")
    event = event_of(attributes, payload)
    monkeypatch.setitem(sys.modules, "cloudevents.core.v1.event", None)
    plain = event_of(attributes, payload)
    assert isinstance(plain, PlainCloudEvent)
    getters = [name for name in dir(CloudEvent) if name.startswith("get_") and name != "get_extension"]
    assert [getattr(plain, name)() for name in getters] == [getattr(event, name)() for name in getters]
    assert plain.get_extension("n") == event.get_extension("n") == 5
    assert attributes_of(plain) == attributes_of(event)
    assert payload_of(plain) == payload_of(event)
