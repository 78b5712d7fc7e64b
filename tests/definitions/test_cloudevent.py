"""A matched CloudEvent can always be handed on as one, with the CloudEvents SDK and without it."""

from __future__ import annotations

import json
import sys
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from wirebook.catalog import Catalog
from wirebook.definitions.match.options import MatchOptions

CATALOG = Catalog.load({
    "messagegroups": {"g": {"messages": {
        "any": {"envelope": "CloudEvents/1.0", "envelopemetadata": {}},
        "timed": {"envelope": "CloudEvents/1.0", "envelopemetadata": {
            "time": {"type": "timestamp"}, "subject": {"value": "{s}"}, "n": {"type": "number", "required": True}}},
    }}},
})  # fmt: skip
STRUCTURED = "application/cloudevents+json"
TIMES = st.sampled_from((
    "2026-01-01T00:00:00Z", "2026-01-01t00:00:00.123456789+01:00", "2016-12-31T23:59:60Z", "9999-12-31T23:59:60Z",
    "0000-02-29T00:00:00Z", "0001-01-01T00:00:00+14:00", "2026-02-29T00:00:00Z", "yesterday", "",
))  # fmt: skip
TEXTS = st.sampled_from(
    ("", "x", "a b", "ü", "😀", "a\tb", "%", "%41", "http://[", "urn:x", "/s", "text/plain", "json")
)
VALUES = TEXTS | TIMES | st.text(max_size=5)
NATIVE = VALUES | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.sampled_from(("time", "subject", "dataschema", "datacontenttype", "n", "ext", "my-ext", "data", "Upper"))


def events(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    four = {name: st.just(value) | values for name, value in (("id", "1"), ("source", "/s"), ("type", "t"))}
    return st.builds(
        lambda first, more: {"specversion": "1.0", **first, **more},
        st.fixed_dictionaries(four),
        st.dictionaries(NAMES, values, max_size=4),
    )


def binary(protocol: str, attributes: dict[str, Any]) -> dict[str, Any]:
    content_type = [["content-type", attributes["datacontenttype"]]] if "datacontenttype" in attributes else []
    if protocol == "HTTP":
        return {"headers": content_type + [[f"ce-{name}", value] for name, value in attributes.items()], "body": "{}"}
    if protocol == "KAFKA":
        return {"headers": content_type + [[f"ce_{name}", value] for name, value in attributes.items()], "value": "{}"}
    if protocol == "NATS":
        return {"headers": [[f"ce-{name}", value] for name, value in attributes.items()], "data": "{}"}
    if protocol == "MQTT/5.0":
        return {"user_properties": list(map(list, attributes.items())), "payload": "{}"}
    return {"application-properties": {f"cloudEvents:{name}": value for name, value in attributes.items()}}


def structured(protocol: str, attributes: dict[str, Any]) -> dict[str, Any]:
    body = json.dumps(attributes)
    headers = [["content-type", STRUCTURED]]
    return {
        "HTTP": {"headers": headers, "body": body},
        "KAFKA": {"headers": headers, "value": body},
        "NATS": {"data": body},
        "MQTT/3.1.1": {"payload": body},
        "MQTT/5.0": {"properties": {"content_type": STRUCTURED}, "payload": body},
        "AMQP/1.0": {"properties": {"content-type": STRUCTURED}, "body": body},
    }[protocol]


def check(record: dict[str, Any]) -> None:
    for outcome in CATALOG.match_each(json.dumps(record)):
        event(outcome.outcome)
        if not outcome.matched:
            continue
        made = outcome.to_cloudevent()
        assert made is not None
        assert set(made.get_attributes()) == set(outcome.received.attributes)
        with patch.dict(sys.modules, {"cloudevents.core.v1.event": None}):
            plain = outcome.to_cloudevent()
        assert plain is not None
        assert plain.get_attributes() == made.get_attributes()
        assert plain.get_data() == made.get_data()


@pytest.mark.parametrize("protocol", ["HTTP", "KAFKA", "NATS", "MQTT/5.0"])
@given(attributes=events(VALUES))
def test_matched_binary_event_is_a_cloudevent(protocol: str, attributes: dict[str, Any]) -> None:
    check({"protocol": protocol, **binary(protocol, attributes)})


@given(attributes=events(NATIVE))
def test_matched_amqp_event_is_a_cloudevent(attributes: dict[str, Any]) -> None:
    check({"protocol": "AMQP/1.0", **binary("AMQP/1.0", attributes)})


@pytest.mark.parametrize("protocol", ["HTTP", "KAFKA", "NATS", "MQTT/3.1.1", "MQTT/5.0", "AMQP/1.0"])
@given(attributes=events(NATIVE))
def test_matched_structured_event_is_a_cloudevent(protocol: str, attributes: dict[str, Any]) -> None:
    check({"protocol": protocol, **structured(protocol, attributes)})


@given(attributes=st.lists(events(NATIVE), max_size=3))
def test_matched_events_of_a_batch_are_cloudevents(attributes: list[dict[str, Any]]) -> None:
    content_type = "application/cloudevents-batch+json"
    check({"protocol": "HTTP", "headers": [["content-type", content_type]], "body": json.dumps(attributes)})


# -- messages that are not CloudEvents --------------------------------------------------------------------------------

SOURCE = {"source": {"value": "/s/{x}"}}
ENVELOPES: dict[str, tuple[dict[str, Any], bool]] = {  # and whether an event can be made
    "complete": ({"envelopemetadata": SOURCE}, True),
    "no source": ({"envelopemetadata": {}}, False),
    "another placeholder": ({"envelopemetadata": {"source": {"value": "/s/{y}"}}}, False),
    "a required attribute": ({"envelopemetadata": SOURCE | {"ext": {"required": True}}}, False),
    "a time that is not one": ({"envelopemetadata": SOURCE | {"time": {"type": "timestamp", "value": "{x}"}}}, False),
    "a constant that is not a URI": ({"envelopemetadata": SOURCE | {"dataschema": {"value": "/relative"}}}, False),
    "a number that CloudEvents lacks": ({"envelopemetadata": SOURCE | {"n": {"type": "number", "value": 1.5}}}, True),
    "a name that CloudEvents lacks": ({"envelopemetadata": SOURCE | {"my-ext": {"value": "x"}}}, False),
    "structured mode": ({"envelopemetadata": SOURCE, "envelopeoptions": {"mode": "structured"}}, True),
}
ADDRESSED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "HTTP": ({"path": "/{x}"}, {"method": "POST", "target": "/1", "headers": [], "body": "{}"}),
    "KAFKA": ({"key": "{x}"}, {"key": "1", "headers": [], "value": None}),
    "MQTT/3.1.1": ({"topic_name": "a/{x}"}, {"topic": "a/1", "payload": "x"}),
    "MQTT/5.0": ({"topic_name": "a/{x}"}, {"topic": "a/1", "payload": "x"}),
    "AMQP/1.0": ({"properties": {"subject": {"value": "{x}"}}}, {"properties": {"subject": "1"}, "body": "x"}),
    "NATS": ({"subject": "a.{x}"}, {"subject": "a.1", "data": "x"}),
}


@pytest.mark.parametrize("protocol", ADDRESSED)
@pytest.mark.parametrize("case", ENVELOPES)
def test_synthesized_match_gives_an_event_or_none(case: str, protocol: str) -> None:
    envelope, can_be_made = ENVELOPES[case]
    options, record = ADDRESSED[protocol]
    message = {"envelope": "CloudEvents/1.0", "protocol": protocol, "protocoloptions": options} | envelope
    document = {"messagegroups": {"g": {"messages": {"m": message}}}}
    outcome = Catalog.load(document, options=MatchOptions(accept_native=True)).match({"protocol": protocol} | record)
    assert (outcome.outcome, outcome.synthesized) == ("matched", True)
    made = outcome.to_cloudevent()
    with patch.dict(sys.modules, {"cloudevents.core.v1.event": None}):
        plain = outcome.to_cloudevent()
    assert (made is not None, plain is not None) == (can_be_made, can_be_made)
    if made is not None:
        assert (made.get_source(), made.get_type()) == ("/s/1", "m")


@pytest.mark.parametrize("protocol", ADDRESSED)
def test_match_without_envelope_has_no_event(protocol: str) -> None:
    options, record = ADDRESSED[protocol]
    document = {"messagegroups": {"g": {"messages": {"m": {"protocol": protocol, "protocoloptions": options}}}}}
    outcome = Catalog.load(document).match({"protocol": protocol} | record)
    assert (outcome.outcome, outcome.to_cloudevent()) == ("matched", None)


@pytest.mark.parametrize("protocol", ["HTTP", "KAFKA", "MQTT/5.0", "AMQP/1.0"])
def test_event_matched_by_a_definition_without_envelope_stays_an_event(protocol: str) -> None:
    document = {"messagegroups": {"g": {"messages": {"m": {"protocol": protocol, "protocoloptions": {}}}}}}
    four = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
    for parts in (binary(protocol, four), structured(protocol, four)):
        event_ = Catalog.load(document).match({"protocol": protocol, **parts}).to_cloudevent()
        assert event_ is not None
        assert event_.get_id() == "1"


@pytest.mark.parametrize("source", ["/é/1", "http://é/1"])
def test_event_with_a_uri_beyond_ascii_is_a_cloudevent(source: str) -> None:
    metadata = {"source": {"value": "{x}"}}
    document = {"messagegroups": {"g": {"messages": {"m": {
        "envelope": "CloudEvents/1.0", "envelopemetadata": metadata}}}}}  # fmt: skip
    four = {"specversion": "1.0", "id": "1", "source": source, "type": "t"}
    outcome = Catalog.load(document).match({"protocol": "KAFKA", **structured("KAFKA", four)})
    assert outcome.matched
    event_ = outcome.to_cloudevent()
    assert event_ is not None
    assert event_.get_source() == source
