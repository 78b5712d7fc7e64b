"""Transform messages from one definition to another by the names of their placeholders."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cloudevents.core.v1.event import CloudEvent

from wirebook.bindings import AmqpMessage, KafkaRecord, Mqtt5Publish, from_bytes, read_message
from wirebook.catalog import Catalog
from wirebook.cli.app import run
from wirebook.definitions.match.options import MatchOptions
from wirebook.problems import WirebookError

CE = "CloudEvents/1.0"
AVRO = {"type": "record", "name": "S", "fields": [{"name": "celsius", "type": "double"}]}
JSON = {"type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"]}
META = {
    "type": {"value": "oven.temperature"},
    "source": {"value": "/plants/{plant}/ovens/{oven}"},
    "subject": {"value": "{oven}"},
}
MESSAGES: dict[str, Any] = {
    "raw": {"protocol": "MQTT/5.0", "protocoloptions": {"topic_name": "{plant}/ovens/{oven}"}},
    "event": {"envelope": CE, "envelopemetadata": META, "dataschemaformat": "JsonSchema/draft-07", "dataschema": JSON},
    "record": {
        "envelope": CE,
        "envelopemetadata": META,
        "protocol": "KAFKA",
        "protocoloptions": {"topic": "ovens", "key": "{oven}"},
        "dataschemaformat": "Avro/1.11",
        "dataschema": AVRO,
    },
    "elsewhere": {"envelope": CE, "envelopemetadata": {"type": {"value": "x"}, "source": {"value": "/{town}"}}},
    "open": {"envelope": CE, "envelopemetadata": {"type": {"value": "oven.open"}}},
    "mapped": {
        "envelope": CE,
        "envelopemetadata": META | {"type": {"value": "oven.mapped"}},
        "protocol": "AMQP/1.0",
        "protocoloptions": {"properties": {"to": {"value": "/{plant}/{oven}"}}},
    },
}
G = "/messagegroups/g/messages/"


def catalog(**options: Any) -> Catalog:
    messages = {name: {"messageid": name, **message} for name, message in MESSAGES.items()}
    return Catalog.load({"messagegroups": {"g": {"messages": messages}}}, options=MatchOptions(**options))


RAW = Mqtt5Publish(topic="oslo/ovens/7", payload='{"celsius": 180.5}', received="2026-01-05T08:00:00Z")


def test_native_message_is_transformed_to_an_event() -> None:
    event = catalog().transform(RAW, G + "record", attributes={"id": "1"})
    assert isinstance(event, KafkaRecord)
    outcome = catalog().match(event)
    assert (outcome.definition, dict(outcome.bindings)) == (G + "record", {"plant": "oslo", "oven": "7"})
    assert outcome.data == {"celsius": 180.5}
    assert (event.topic, event.key) == ("ovens", "7")
    assert outcome.received.attributes["time"] == "2026-01-05T08:00:00Z"


def test_target_without_protocol_keeps_the_protocol_of_the_message() -> None:
    event = catalog().transform(RAW, G + "event")
    assert isinstance(event, Mqtt5Publish)
    assert event.payload == '{"celsius": 180.5}'
    assert catalog().match(event).definition == G + "event"


def test_transformed_event_keeps_attributes_that_the_target_leaves_open() -> None:
    attributes = {"id": "9", "time": "2026-01-05T08:00:00Z", "traceparent": "00-1"}
    context = {"plant": "oslo", "oven": "7"}
    event = catalog().build(G + "record", context, {"celsius": 1.5}, attributes=attributes)
    other = catalog().transform(event, G + "event", protocol="HTTP")
    (received,) = read_message(other)
    assert received.attributes.items() >= attributes.items()
    assert received.attributes["datacontenttype"] == "application/json"
    assert catalog().match(other).data == {"celsius": 1.5}


def test_payload_is_encoded_again_only_if_the_target_requires_it() -> None:
    as_avro = catalog().transform(RAW, G + "record")
    assert isinstance(as_avro, KafkaRecord)
    assert as_avro.value == from_bytes(b"\x00\x00\x00\x00\x00\x90f@")
    assert catalog().transform(RAW, G + "open", attributes={"source": "/s"}).payload == RAW.payload  # type: ignore[union-attr]


def codes(error: pytest.ExceptionInfo[WirebookError]) -> list[str]:
    return [problem.code for problem in error.value.problems]


@pytest.mark.parametrize(
    ("message", "to", "expected"),
    [
        (RAW, "elsewhere", ["missing-context"]),
        (RAW, "open", ["missing-required"]),
        (RAW, "nowhere", ["not-buildable"]),
        (Mqtt5Publish(topic="other"), "event", ["not-transformable"]),
        (Mqtt5Publish(topic="oslo/ovens/7", payload='{"celsius": "hot"}'), "record", ["payload-invalid"]),
        (Mqtt5Publish(topic="oslo/ovens/7"), "record", []),
        (Mqtt5Publish(topic="oslo/ovens/7"), "event", ["missing-data"]),
    ],
)
def test_message_that_cannot_be_transformed_has_the_problem(message: Any, to: str, expected: list[str]) -> None:
    if not expected:
        assert catalog().transform(message, G + to).value is None  # type: ignore[union-attr]
        return
    with pytest.raises(WirebookError) as error:
        catalog().transform(message, G + to)
    assert codes(error)[: len(expected)] == expected


def test_context_adds_values_and_conflicts_are_reported() -> None:
    assert catalog().transform(RAW, G + "elsewhere", context={"town": "oslo", "oven": "7"})
    with pytest.raises(WirebookError) as error:
        catalog().transform(RAW, G + "event", context={"oven": "8", "plant": "oslo"})
    assert codes(error) == ["placeholder-conflict"]


def test_ambiguous_message_is_not_transformed() -> None:
    twice = {"messageid": "again", **MESSAGES["raw"]}
    messages = {name: {"messageid": name, **message} for name, message in MESSAGES.items()} | {"again": twice}
    both = Catalog.load({"messagegroups": {"g": {"messages": messages}}})
    with pytest.raises(WirebookError) as error:
        both.transform(RAW, G + "event")
    assert codes(error) == ["not-transformable", "ambiguous-match"]


# -- to_cloudevent ----------------------------------------------------------------------------------------------------

MAPPED = AmqpMessage(
    properties={"to": "/oslo/7", "content-type": "application/json"},
    body='{"celsius":1}',
    received="2026-01-05T08:00:00Z",
)


def test_native_message_converts_to_the_event_of_its_definition() -> None:
    outcome = catalog(accept_native=True).match(MAPPED)
    assert (outcome.definition, outcome.synthesized) == (G + "mapped", True)
    event = outcome.to_cloudevent()
    assert isinstance(event, CloudEvent)
    assert (event.get_type(), event.get_source()) == ("oven.mapped", "/plants/oslo/ovens/7")
    assert (event.get_subject(), event.get_time()) == ("7", datetime(2026, 1, 5, 8, tzinfo=UTC))
    assert (event.get_datacontenttype(), event.get_data()) == ("application/json", {"celsius": 1})
    assert event.get_id() != outcome.to_cloudevent().get_id()


def test_synthesized_match_is_transformed() -> None:
    event = catalog(accept_native=True).transform(MAPPED, G + "mapped")
    assert catalog().match(event).definition == G + "mapped"


def test_event_converts_to_an_sdk_object() -> None:
    wire = catalog().build(G + "record", {"plant": "p", "oven": "o"}, {"celsius": 1.0}, attributes={"id": "1"})
    event = catalog().match(wire).to_cloudevent()
    assert (event.get_id(), event.get_data()) == ("1", b"\x00\x00\x00\x00\x00\x00\xf0?")


def test_matched_message_without_envelope_has_no_event() -> None:
    assert catalog().match(RAW).matched
    assert catalog().match(RAW).to_cloudevent() is None


def test_unmatched_message_without_an_event_is_an_error() -> None:
    with pytest.raises(WirebookError) as error:
        catalog().match(Mqtt5Publish(topic="oslo", payload="{}")).to_cloudevent()
    assert codes(error)[0] == "no-cloudevent"


# -- the command ------------------------------------------------------------------------------------------------------


def files(tmp_path: Path, *lines: dict[str, Any]) -> list[str]:
    messages = {name: {"messageid": name, **message} for name, message in MESSAGES.items()}
    (tmp_path / "c.json").write_text(json.dumps({"messagegroups": {"g": {"messages": messages}}}))
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return ["transform", str(tmp_path / "t.jsonl"), "--catalog", str(tmp_path / "c.json")]


def test_transform_command_prints_a_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = {"protocol": "MQTT/5.0", "topic": "oslo/ovens/7", "payload": '{"celsius": 1}'}
    assert run([*files(tmp_path, line, line), "--to", G + "record"]) == 0
    out, err = capsys.readouterr()
    outcomes = [catalog().match(outcome) for outcome in out.splitlines()]
    assert [outcome.definition for outcome in outcomes] == [G + "record"] * 2
    assert err == "2 converted, 0 failed\n"


def test_transform_command_reports_messages_it_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = {"protocol": "MQTT/5.0", "topic": "oslo/ovens/7", "payload": '{"celsius": 1}'}
    bad = {"protocol": "MQTT/5.0", "topic": "oslo"}
    assert run([*files(tmp_path, bad, good), "--to", G + "event", "--for", "nats", "--mode", "binary"]) == 1
    out, err = capsys.readouterr()
    assert [json.loads(line)["protocol"] for line in out.splitlines()] == ["NATS"]
    assert (
        "t.jsonl:1: error: only matched messages can be transformed; the outcome of this message is 'unexpected'" in err
    )
    assert "[not-transformable]" in err
    assert err.endswith("1 converted, 1 failed\n")


def test_transform_command_accepts_native_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = {"protocol": "AMQP/1.0", "properties": {"to": "/oslo/7", "content-type": "text/plain"}, "body": "hot"}
    arguments = [*files(tmp_path, line), "--to", G + "mapped"]
    assert run(arguments) == 1
    assert "[not-transformable]" in capsys.readouterr().err
    assert run([*arguments, "--accept-native", "--mode", "structured"]) == 0
    event = json.loads(json.loads(capsys.readouterr().out)["body"])
    assert (event["type"], event["source"], event["data"]) == ("oven.mapped", "/plants/oslo/ovens/7", "hot")


def test_transform_command_to_unknown_definition_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*files(tmp_path), "--to", G + "events"]) == 2
    assert f"did you mean '{G}event'?" in capsys.readouterr().err
