"""Fuzz building and transforming: valid, nearly valid and invalid contexts, properties and data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from synthesis import texts
from synthesis.dice import Dice
from synthesis.messages import ways_of
from synthesis.payloads import payload_for

from fuzzing import documents, junk, stock
from fuzzing.case import Input, check
from wirebook.bindings import parse_record, to_line
from wirebook.catalog.building import TextOrBytes
from wirebook.cli.senders import PROGRAMS, command_of
from wirebook.cli.wiretext import wire_text
from wirebook.definitions.build.request import BuildRequest, Built
from wirebook.schema import Payload

PROPERTIES = (
    "topic", "key", "key_base64", "headers.x", "headers.content-type", "path", "query.a", "method", "status", "topic_name", "qos", "retain",
    "payload_format", "user_properties.u", "properties.subject", "properties.message-id", "application-properties.n", "subject", "reply-to", "", ".", "a.b.c",
    "headers.", "header.ttl", "footer.x", "partition", "correlation_data", "content_type", "message_expiry_interval",
)  # fmt: skip
ATTRIBUTES = (
    "id",
    "source",
    "type",
    "subject",
    "time",
    "datacontenttype",
    "dataschema",
    "specversion",
    "ext",
    "Ext",
    "a-b",
    "",
    "data",
)
PROTOCOLS = (None, "HTTP", "KAFKA", "MQTT/3.1.1", "MQTT/5.0", "AMQP/1.0", "NATS", "kafka", "")


def _text(dice: Dice) -> str:
    return junk.text(texts.strange(dice), dice) if dice.random() < 0.4 else texts.word(dice)


def _value(dice: Dice) -> Any:
    return dice.choice(junk.VALUES) if dice.random() < 0.5 else _text(dice)


def _request(name: str, xid: str, dice: Dice) -> Input:
    definition = stock.catalog(name).definitions[xid]
    way = dice.choice(list(ways_of(definition)))
    return {
        "context": {placeholder: _text(dice) for placeholder in definition.placeholders if dice.random() < 0.95},
        "attributes": {"id": "1", "source": "/s"}
        | {dice.choice(ATTRIBUTES): _value(dice) for _ in range(dice.choice((0, 0, 1, 2)))},
        "properties": {dice.choice(PROPERTIES): _value(dice) for _ in range(dice.choice((0, 0, 1, 3)))},
        "protocol": way.protocol if dice.random() < 0.8 and way.protocol != "CLOUDEVENTS" else dice.choice(PROTOCOLS),
        "mode": dice.choice((None, "binary", "structured")),
        "encoding": dice.choice(("place", "place", "raw", "rfc6570")),
    }


def make(dice: Dice) -> Input:
    name = dice.choice(stock.catalogues())
    catalog = stock.catalog(name)
    xid = dice.choice(list(catalog.definitions))
    case = _request(name, xid, dice) | {
        "catalogue": name,
        "definition": xid,
        "as": dice.choice(("value", "raw", "file", "payload")),
    }
    drawn = payload_for(catalog, catalog.definitions[xid], dice, as_json=dice.random() < 0.7)
    case["type"] = "application/json" if drawn.is_json else drawn.media_type
    if drawn.is_json:
        case["data"] = junk.spoiled(drawn.value, dice, dice.choice((0, 0, 1, 3)))
        if case["as"] != "value":
            case["data"] = junk.json_of(case["data"])
    else:
        case["data"] = drawn.raw
    if isinstance(case["data"], bytes) and dice.random() < 0.3:
        case["data"] = junk.octets(case["data"], dice)
    return case if dice.random() < 0.9 else case | {"data": None}


def run(case: Input) -> Iterator[Any]:
    catalog = stock.catalog(case["catalogue"])
    data = case["data"]
    if isinstance(data, bytes) and case["as"] != "raw":
        data = TextOrBytes(data) if case["as"] == "file" else Payload(data, content_type=case["type"])
    yield from _built(case, catalog.try_build(case["definition"], _of(case), data))


def _of(case: Input) -> BuildRequest:
    more = {name: case[name] for name in ("attributes", "properties", "protocol", "mode", "encoding")}
    return documents.fixed_request(case["context"], **more)


def _built(case: Input, built: Built) -> Iterator[Any]:
    """What was built is a record of a capture, and a message of its own definition."""
    yield built.problems
    check((built.wire is None) == bool(built.errors), "no message and no error, or both")
    if built.wire is None:
        return
    line = to_line(built.wire)
    yield line
    check(parse_record(line).wire == built.wire, "what was built is another record when it is read")
    yield wire_text(built.wire)
    for program in PROGRAMS:
        command = command_of(built.wire, program)
        yield command.problems
        yield "" if command.problems else command.shell
    (outcome,) = stock.catalog(case["catalogue"]).match_each(line)
    yield outcome.to_dict()
    bad = ("undecodable", "malformed") if case["encoding"] == "place" else ()
    check(outcome.outcome not in bad, f"what was built is {outcome.outcome}: {outcome.problems}")


def make_transform(dice: Dice) -> Input:
    name = dice.choice(stock.catalogues())
    xid = dice.choice(list(stock.catalog(name).definitions))
    return _request(name, xid, dice) | {"catalogue": name, "definition": xid, "line": stock.message(name, dice).line}


def run_transform(case: Input) -> Iterator[Any]:
    catalog = stock.catalog(case["catalogue"])
    for outcome in catalog.match_each(case["line"]):
        yield outcome.problems
        yield from _built(case, catalog.try_transform(outcome, case["definition"], _of(case)))
