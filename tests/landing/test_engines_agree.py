"""The column path returns the same rows as the reference, for random catalogues and messages.

Definitions use every slot of every protocol, all kinds of templates, all types, repeated headers, endpoints with
templates, and small schemas of each format. They share a few constants and names, so that they compete. Messages are
built from a definition and then changed. Both paths land them as lines, as events and as Parquet.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow.compute import match_substring_regex

from wirebook.catalog import Catalog
from wirebook.definitions.compile.values import CHECKS
from wirebook.landing.columns import placeholder_conflicts
from wirebook.landing.columns.match import TYPE_PATTERNS
from wirebook.problems import WirebookError

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "corpus"))

from synthesis.agreement import Engines
from synthesis.carriers import chunk_of_lines, chunk_of_rows
from synthesis.dice import dice_of
from synthesis.messages import Message, Way, message_of, ways_of
from synthesis.mutations import mutate

Document = dict[str, Any]
PROTOCOLS = ("HTTP", "KAFKA", "MQTT/3.1.1", "MQTT/5.0", "AMQP/1.0", "NATS")

# -- properties -----------------------------------------------------------------------------------------------------

PIECES = ("x", "y", "a1", "{a}", "{b}", "{c}", "{a}", "/", "/", "/", ".", "-", "ü", "%41", "%2F", ",", "{+a}", "é{a}")
TEXTS = st.sampled_from(("x", "y", "x/y", "t.x", "1", "true", "a, b", "ü", "%41", "2026-01-01T00:00:00Z"))
TEMPLATES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)
VALUES: dict[str | None, st.SearchStrategy[Any]] = {
    None: TEXTS | TEMPLATES,
    "string": TEXTS | TEMPLATES,
    "uritemplate": TEMPLATES,
    "uri": st.sampled_from(("https://h/x", "https://{a}/y", "{a}")),
    "urireference": st.sampled_from(("/x", "/x/{a}", "{b}", "/{a}/{b}")),
    "symbol": st.sampled_from(("x", "x_1", "{a}")),
    "timestamp": st.sampled_from(("2026-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "{a}")),
    "integer": st.sampled_from((5, "5", -1)),
    "number": st.sampled_from((1.5, 2)),
    "boolean": st.sampled_from((True, "true", False)),
    "any": st.sampled_from((1, "x", None)),
    "binary": st.just("AAE="),
    "duration": st.just("PT1S"),
    "uuid": st.just("12345678-1234-1234-1234-123456789abc"),
    "ulong": st.just(7),
}


@st.composite
def properties(draw: st.DrawFn, types: tuple[str | None, ...] = tuple(VALUES)) -> Document:
    """A property definition: a type, and perhaps a value and a demand."""
    type_ = draw(st.sampled_from((None, "string", "uritemplate", *types)))
    declaration: Document = {} if type_ is None else {"type": type_}
    if draw(st.booleans()):
        declaration["value"] = draw(VALUES[type_])
    if draw(st.booleans()):
        declaration["required"] = draw(st.booleans())
    return declaration


def named(names: tuple[str, ...]) -> st.SearchStrategy[list[Document]]:
    """Properties as an array of entries, names repeated or not."""
    entry = st.builds(lambda name, declaration: {"name": name} | declaration, st.sampled_from(names), properties())
    return st.lists(entry, max_size=3)


def mapped(names: tuple[str, ...], most: int = 3) -> st.SearchStrategy[Document]:
    return st.dictionaries(st.sampled_from(names), properties(), max_size=most)


def some(**slots: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    """Each of the slots, or not."""
    return st.fixed_dictionaries({}, optional={name.replace("_0", "-"): slot for name, slot in slots.items()})


# -- definitions ----------------------------------------------------------------------------------------------------

TOPICS = st.lists(st.sampled_from(("x", "y", "{a}", "{b}", "s-{c}")), min_size=1, max_size=3)
SLASHED = TOPICS.map("/".join)
DOTTED = TOPICS.map(".".join)
MEDIA_TYPES = st.sampled_from(("application/json", "application/json; charset=utf-8", "text/plain", "avro/binary"))
TYPES = st.sampled_from(("t1", "t1", "t2", "t.x", "{a}.x"))
METADATA = some(
    type=TYPES.map(lambda value: {"value": value}) | properties(),
    source=SLASHED.map(lambda value: {"type": "uritemplate", "value": value}) | properties(("uri", "urireference")),
    subject=SLASHED.map(lambda value: {"value": value}) | properties(),
    id=properties(("string",)),
    time=properties(("timestamp",)),
    dataschema=st.just({"type": "uritemplate", "value": "https://h/{a}"}) | properties(("uri",)),
    datacontenttype=MEDIA_TYPES.map(lambda value: {"value": value}) | st.just({"required": True}),
    extone=properties(),
    exttwo=properties(),
)
CONTENT_TYPE = MEDIA_TYPES.map(lambda value: {"value": value})
OPTIONS: dict[str, st.SearchStrategy[Document]] = {
    "HTTP": some(
        method=st.sampled_from(("POST", "put")),
        path=SLASHED.map("/{}".format),
        query=named(("q", "Q", "r")),
        headers=named(("x-a", "X-A", "x-b", "content-type", "ce-type", "ce-extone", "set-cookie", "te")),
    ),
    "KAFKA": some(
        topic=DOTTED, key=SLASHED, partition=st.just(1),
        headers=mapped(("h1", "H1", "ce_type", "ce_extone", "content-type", "Content-Type")),
    ),
    "MQTT/3.1.1": some(topic_name=SLASHED, qos=st.just(1), retain=st.just(True)),
    "MQTT/5.0": some(
        topic_name=SLASHED, qos=st.just(1), response_topic=SLASHED, correlation_data=st.just("AAE="), payload_format=st.just(1),
        content_type=MEDIA_TYPES, user_properties=named(("u", "U", "type", "extone", "subject")),
    ),
    "AMQP/1.0": some(
        properties=some(
            subject=properties(), to=properties(("uri",)), content_0type=CONTENT_TYPE, message_0id=properties(("ulong", "uuid")),
            group_0sequence=properties(("integer",)), creation_0time=properties(("timestamp",)), user_0id=properties(("binary",)),
        ),
        application_0properties=mapped(("n", "m-1", "cloudEvents:type", "cloudEvents_extone")),
        message_0annotations=mapped(("x-opt-partition-key",)),
        header=some(ttl=properties(("integer",))),
    ),
    "NATS": some(subject=DOTTED, reply_0to=DOTTED, headers=named(("x-a", "X-A", "ce-type"))),
}  # fmt: skip
SCHEMAS = st.sampled_from((
    {},
    {"dataschemaformat": "JsonSchema/draft-07", "dataschema": {"type": "object", "properties": {
        "n": {"type": "integer"}, "s": {"type": "string"}, "x": {"type": "number"}, "when": {"type": "string", "format": "date-time"},
    }, "required": ["n"]}},
    {"dataschemaformat": "JsonSchema/draft-07", "dataschema": {"type": "array", "items": {"type": ["integer", "null"]}}},
    {"dataschemaformat": "JsonStructure/draft-02", "dataschema": {
        "$schema": "https://json-structure.org/meta/core/v0/#", "$id": "https://h/s", "name": "S", "type": "object",
        "properties": {"i": {"type": "int32"}, "l": {"type": "int64"}, "d": {"type": ["datetime", "null"]}, "m": {
            "type": "map", "values": {"type": "double"}}}, "required": ["i"]}},
    {"dataschemaformat": "Avro/1.11", "dataschema": {"type": "record", "name": "R", "fields": [
        {"name": "n", "type": "long"}, {"name": "s", "type": ["null", "string"]}]}},
    {"dataschemaformat": "Protobuf/3", "dataschema": "syntax = \"proto3\";"},
))  # fmt: skip


FORMATS = (
    "application/cloudevents+json",
    "application/cloudevents+json; charset=utf-8",
    "application/cloudevents+avro",
)
ENVELOPE_OPTIONS = some(mode=st.sampled_from(("binary", "structured")), format=st.sampled_from((FORMATS[0], *FORMATS)))
ENDPOINT_OPTIONS = {
    "KAFKA": some(topic=DOTTED, key=SLASHED, headers=st.dictionaries(st.sampled_from(("h1", "ce_type")), SLASHED, max_size=2)),
    "MQTT/5.0": some(topic=SLASHED),
    "NATS": some(subject=DOTTED),
    "HTTP": some(
        method=st.sampled_from(("POST", "put")), query=st.dictionaries(st.sampled_from(("q", "r")), SLASHED, max_size=1),
        headers=st.lists(st.builds(dict, name=st.sampled_from(("x-a", "X-A", "x-b")), value=SLASHED), max_size=2),
    ),
}  # fmt: skip


@st.composite
def definitions(draw: st.DrawFn) -> Document:
    definition: Document = dict(draw(SCHEMAS))
    protocol = draw(st.sampled_from((None, None, *PROTOCOLS)))
    if protocol is not None:
        definition |= {"protocol": protocol, "protocoloptions": draw(OPTIONS[protocol])}
    if protocol is None or draw(st.booleans()):
        definition |= {"envelope": "CloudEvents/1.0", "envelopemetadata": draw(METADATA)}
        if draw(st.booleans()):
            definition["envelopeoptions"] = draw(ENVELOPE_OPTIONS)
    if draw(st.integers(0, 3)) == 0:
        definition["datacontenttype"] = draw(MEDIA_TYPES | st.just("application/cloudevents+json"))
    return definition


@st.composite
def endpoints(draw: st.DrawFn) -> Document:
    protocol = draw(st.sampled_from((None, "KAFKA", "MQTT/5.0", "NATS", "HTTP")))
    endpoint: Document = {"usage": ["consumer"], "envelopeoptions": draw(ENVELOPE_OPTIONS)}
    if protocol is not None:
        endpoint |= {"protocol": protocol, "protocoloptions": draw(ENDPOINT_OPTIONS[protocol])}
    return endpoint | {"messagegroups": draw(st.sampled_from((["/messagegroups/g"], ["/messagegroups/h"], [])))}


@st.composite
def catalogues(draw: st.DrawFn) -> Document:
    groups = {
        name: {"messagegroupid": name, "messages": {
            f"m{number}": {"messageid": f"m{number}"} | member
            for number, member in enumerate(draw(st.lists(definitions(), min_size=1, max_size=4)))
        }}
        for name in ("g", "h")
    }  # fmt: skip
    for name in draw(st.sets(st.sampled_from(("a1", "a2")))):
        groups["h"]["messages"][name] = {"messageid": name, "meta": {"xref": "/messagegroups/g/messages/m0"}}
    endpoints_ = {f"e{number}": member for number, member in enumerate(draw(st.lists(endpoints(), max_size=2)))}
    return {"specversion": "1.0-rc4", "registryid": "r", "messagegroups": groups, "endpoints": endpoints_}


# -- the property ---------------------------------------------------------------------------------------------------


def messages_near(catalog: Catalog, seed: int, rounds: int = 2) -> list[Message]:
    """Messages of every definition on every way, each as it is and changed; those that cannot be built left out."""
    dice, near = dice_of(seed, strangeness=seed % 3 * 0.15), list[Message]()
    for definition in catalog.definitions.values():
        for way in ways_of(definition):
            for _ in range(rounds):
                try:
                    message = message_of(catalog, definition, way, dice)
                except WirebookError:
                    continue
                near += [message, mutate(message, dice), mutate(message, dice)]
    return near


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(catalogues(), st.integers(0, 2**32))
def test_random_messages_have_the_same_rows_by_columns_and_by_reference(document: Document, seed: int) -> None:
    catalog = Catalog.load(document)
    messages = messages_near(catalog, seed)
    events = [message for message in messages if message.is_event_file]
    records = [message for message in messages if not message.is_event_file]
    for endpoint in (None, *catalog.scopes):
        engines = Engines(catalog, endpoint)
        rows, row_messages = chunk_of_rows(records)
        for chunk, part in (
            (chunk_of_lines(events, "events"), events),
            (chunk_of_lines(records, "capture"), records),
            (rows, row_messages),
        ):
            differences = engines.compare(chunk, part).differences
            assert not differences, "\n\n".join(map(str, differences[:3]))


@pytest.mark.parametrize("count", [0, 1])
def test_chunks_of_few_records_have_the_same_rows(count: int) -> None:
    """Nothing, or one record, is no special case."""
    message = {"messageid": "m", "envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "t1"}}}
    groups = {"g": {"messagegroupid": "g", "messages": {"m": message}}}
    catalog = Catalog.load({"specversion": "1.0-rc4", "registryid": "r", "messagegroups": groups})
    messages = messages_near(catalog, 1)[:count]
    for kind in ("capture", "events"):
        assert Engines(catalog).compare(chunk_of_lines(messages, kind), messages).differences == []


# -- the vectors ----------------------------------------------------------------------------------------------------

VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "matching"
VECTOR_FILES = sorted(path.stem for path in VECTORS.glob("*.json") if path.stem not in {"build", "known-failures"})


def vectors_by_catalogue(name: str) -> dict[tuple[str, str | None], list[Document]]:
    """The captured records of a file of vectors, by catalogue and endpoint; other options are the reference's alone."""
    content = json.loads((VECTORS / f"{name}.json").read_text("utf-8"))
    by_catalogue: dict[tuple[str, str | None], list[Document]] = {}
    for case in content["vectors"]:
        named, record = case["catalogue"], case["record"]
        if not case.get("options") and isinstance(record, dict) and "protocol" in record:
            document = content["catalogues"][named] if isinstance(named, str) else named
            by_catalogue.setdefault((json.dumps(document), case.get("endpoint")), []).append(record)
    return by_catalogue


@pytest.mark.parametrize("name", VECTOR_FILES)
def test_vectors_have_the_same_outcome_by_columns_and_by_reference(name: str) -> None:
    """The records of `tests/vectors/matching` land alike, and have the same outcomes, with columns and without."""
    for (document, endpoint), records in vectors_by_catalogue(name).items():
        engines = Engines(Catalog.load(json.loads(document)), endpoint)
        messages = [Message(json.dumps(record).encode(), Way(record["protocol"], None), "") for record in records]
        landed = engines.compare(chunk_of_lines(messages, "capture"), messages)
        differences = [*landed.differences, *engines.compare_outcomes(messages)]
        assert not differences, "\n\n".join(map(str, differences[:3]))


# -- what once differed ---------------------------------------------------------------------------------------------

EVENT = {"envelope": "CloudEvents/1.0"}
JSON_OBJECT = {"dataschemaformat": "JsonSchema/draft-07", "dataschema": {"type": "object"}}
FOUR = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t1"}


def kafka(**more: str) -> Document:
    headers = [[f"ce_{name}", value] for name, value in (FOUR | more).items()]
    return {"protocol": "KAFKA", "headers": headers, "value": "{}"}


def nats(**more: str) -> Document:
    headers = [[f"ce-{name}", value] for name, value in (FOUR | more).items()]
    return {"protocol": "NATS", "subject": "s", "headers": headers, "data": "{}"}


def mqtt_3(**more: Any) -> Document:
    return {"protocol": "MQTT/3.1.1", "topic": "t/x", "payload": json.dumps(FOUR | {"data": {}} | more)}


def structured(header: list[str]) -> Document:
    """An event in structured mode with a header beside it."""
    headers = [["content-type", "application/cloudevents+json"], header]
    return {"protocol": "KAFKA", "headers": headers, "value": json.dumps(FOUR | {"data": {}})}


CASES: dict[str, tuple[Document, Document, str]] = {
    "an instant before the first year": (EVENT, kafka(time="0001-01-01T00:00:00+00:01"), "matched"),
    "received before the first year": (EVENT, kafka() | {"received": "0001-01-01T00:00:00+14:00"}, "matched"),
    "received after the last year": (EVENT, kafka() | {"received": "9999-12-31T23:59:59-10:00"}, "matched"),
    "the last day of a month": (EVENT, kafka(time="2026-01-31T00:00:00Z"), "matched"),
    "a day that is none": (
        EVENT | {"envelopemetadata": {"time": {"type": "timestamp"}}}, kafka(time="2026-02-29T00:00:00Z"), "unexpected",
    ),
    "blanks around a header": (EVENT | {"envelopemetadata": {"subject": {"value": "{s}"}}}, nats(subject=" x y "), "matched"),
    "an escape in a header": (EVENT | {"envelopemetadata": {"subject": {"value": "{s}"}}}, nats(subject="%C3%BC"), "matched"),
    "members of ce_rest": (EVENT | JSON_OBJECT, kafka(zeta="1", alpha="2"), "matched"),
    "a schema that nothing here reads": (EVENT | {"dataschemaformat": "Protobuf/3", "dataschema": "x"}, kafka(), "unsupported"),
    "a number of the type any, sent as text": (EVENT | {"envelopemetadata": {"n": {"type": "any", "value": 1}}}, kafka(n="1"), "matched"),
    "a typed time": (EVENT, {
        "protocol": "AMQP/1.0", "body": "{}", "application-properties": {
            f"cloudEvents:{name}": value for name, value in (FOUR | {"time": {"timestamp": "2026-01-31T00:00:00Z"}}).items()
        },
    }, "matched"),
    "an integer beyond 64 bits": (EVENT, mqtt_3(data={"n": 2**64}), "matched"),
    "an event that only its content gives away": (EVENT | JSON_OBJECT, mqtt_3(), "matched"),
    "a placeholder with two values": (
        EVENT | {"envelopemetadata": {"subject": {"value": "{a}"}}, "protocol": "KAFKA", "protocoloptions": {"key": "{a}"}},
        kafka(subject="x") | {"key": "y"}, "unexpected",
    ),
    "a header's value in a list": (
        {"protocol": "HTTP", "protocoloptions": {"headers": [{"name": "x-a", "value": "b"}]}},
        {"protocol": "HTTP", "method": "POST", "target": "/", "headers": [["X-A", "a, b"]]}, "matched",
    ),
    "a header that says something else than the event": (EVENT | JSON_OBJECT, structured(["ce_id", "2"]), "matched"),
    "an attribute of an event on a message that is none": (
        {"protocol": "KAFKA", "protocoloptions": {"topic": "t"}},
        {"protocol": "KAFKA", "topic": "t", "headers": [["content-type", "x/y"], ["ce_datacontenttype", "1"]], "value": "x"}, "matched",
    ),
    "no data, and a type that is the message's and not the event's": (
        EVENT | {"dataschemaformat": "Protobuf/3", "dataschema": 'syntax = "proto3"; message M { int32 a = 1; }'},
        {"protocol": "NATS", "subject": "s", "headers": [*nats()["headers"], ["content-type", "application/json"]]}, "invalid-payload",
    ),
    "a structured event of Kafka without a content type": (
        EVENT | JSON_OBJECT | {"envelopeoptions": {"mode": "structured"}},
        {"protocol": "KAFKA", "headers": [], "value": json.dumps(FOUR | {"data": {}})}, "matched",
    ),
    "the same where no definition asks for it": (
        {"protocol": "KAFKA", "protocoloptions": {"topic": "t"}},
        {"protocol": "KAFKA", "topic": "t", "headers": [], "value": json.dumps(FOUR | {"data": {}})}, "matched",
    ),
    "two members of one header that two slots name": (
        {"protocol": "HTTP", "protocoloptions": {"path": "/{x}", "headers": [{"name": "x-a", "value": "{x}"}]}},
        {"protocol": "HTTP", "method": "POST", "target": "/b", "headers": [["X-A", "a, b"]]}, "matched",
    ),
    "a repeated header that the key decides": (
        {"protocol": "KAFKA", "protocoloptions": {"key": "{x}", "headers": {"h": {"value": "{x}"}}}},
        {"protocol": "KAFKA", "key": "b", "headers": [["h", "a"], ["h", "b"]], "value": "{}"}, "matched",
    ),
    "a literal beyond ASCII in a URI": (
        EVENT | {"envelopemetadata": {"source": {"value": "/é/{x}"}}}, kafka(source="/%C3%A9/1"), "matched",
    ),
    "a URI sent with a character that no URI has": (
        EVENT | {"envelopemetadata": {"source": {"value": "/é/{x}"}}}, kafka(source="/é/1"), "matched",
    ),
    "a source sent with a blank": (
        EVENT | {"envelopemetadata": {"source": {"value": "/a b"}}}, kafka(source="/a b"), "malformed",
    ),
    "an AMQP address sent with a character that no URI has": (
        {"protocol": "AMQP/1.0", "protocoloptions": {"properties": {"to": {"value": "/é/{x}"}}}},
        {"protocol": "AMQP/1.0", "properties": {"to": "/é/1"}, "body": "{}"}, "matched",
    ),
    "a constant path sent with a blank": (
        {"protocol": "HTTP", "protocoloptions": {"path": "/a b"}},
        {"protocol": "HTTP", "method": "POST", "target": "/a b", "headers": [], "body": "{}"}, "matched",
    ),
    "a header that says the same as the event": (EVENT | JSON_OBJECT, structured(["ce_id", "1"]), "matched"),
    "a header of an attribute that the event has not": (EVENT | JSON_OBJECT, structured(["ce_subject", "s"]), "matched"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_earlier_differences_are_fixed(case: str) -> None:
    definition, record, expected = CASES[case]
    group = {"messagegroupid": "g", "messages": {"m": {"messageid": "m"} | definition}}
    catalog = Catalog.load({"specversion": "1.0-rc4", "registryid": "r", "messagegroups": {"g": group}})
    message = Message(json.dumps(record).encode(), Way(record["protocol"], None), "/messagegroups/g/messages/m")
    engines = Engines(catalog)
    result = engines.compare(chunk_of_lines([message], "capture"), [message])
    differences = [*result.differences, *engines.compare_outcomes([message])]
    assert not differences, str(differences[0])
    assert result.landed.outcomes == {expected: 1}


def test_extension_with_the_name_of_a_type_has_its_own_column() -> None:
    """Arrow's types are equal to their names, so that a column and the rest of the attributes were taken for each
    other: the attribute `aa` of the type `string`, and the attributes `aa` and `string`."""
    declared = {"envelopemetadata": {"type": {"value": "t1"}, "aa": {"type": "string"}}}
    messages = {
        "m1": EVENT | {"messageid": "m1"} | declared,
        "m2": EVENT | {"messageid": "m2", "envelopemetadata": {"type": {"value": "t2"}}},
    }
    groups = {"g": {"messagegroupid": "g", "messages": messages}}
    catalog = Catalog.load({"specversion": "1.0-rc4", "registryid": "r", "messagegroups": groups})
    sent = [
        Message(json.dumps(kafka(type=f"t{n}", aa="1", string="2")).encode(), Way("KAFKA", None), f"/messagegroups/g/messages/m{n}")
        for n in (1, 2)
    ]  # fmt: skip
    result = Engines(catalog).compare(chunk_of_lines(sent, "capture"), sent)
    assert not result.differences, str(result.differences[0])
    tables = result.landed.tables
    assert tables["/messagegroups/g/messages/m1"]["ce_aa"].to_pylist() == ["1"]
    assert tables["/messagegroups/g/messages/m1"]["ce_rest"].to_pylist() == ['{"string":"2"}']
    assert tables["/messagegroups/g/messages/m2"]["ce_rest"].to_pylist() == ['{"aa":"1","string":"2"}']


def test_placeholder_without_observable_slot_is_null() -> None:
    """An event of a plain file has no path: the placeholder's column is empty, in both engines."""
    definition = EVENT | {"messageid": "m", "protocol": "HTTP", "protocoloptions": {"path": "/{a}"}}
    groups = {"g": {"messagegroupid": "g", "messages": {"m": definition}}}
    catalog = Catalog.load({"specversion": "1.0-rc4", "registryid": "r", "messagegroups": groups})
    message = Message(json.dumps(FOUR | {"data": {}}).encode(), Way("CLOUDEVENTS", "structured"), "")
    result = Engines(catalog).compare(chunk_of_lines([message], "events"), [message])
    assert not result.differences, str(result.differences[0])
    assert result.landed.tables["/messagegroups/g/messages/m"]["ctx_a"].to_pylist() == [None]


def test_unescaped_uri_matches_the_most_specific_definition() -> None:
    """The index has the more specific definition under the percent-encoded literal; columns leave such rows alone."""
    definitions_ = {
        name: EVENT | {"messageid": name, "envelopemetadata": {"type": {"value": "t1"}, "source": {"value": source}}}
        for name, source in (
            ("m", "/é/{x}"),
            ("n", "{y}"),
            ("o", "/o/{x}"),
            ("p", "/p/{x}"),
            ("q", "/q/{x}"),
            ("r", "/r/{x}"),
        )
    }
    groups = {"g": {"messagegroupid": "g", "messages": definitions_}}
    catalog = Catalog.load({"specversion": "1.0-rc4", "registryid": "r", "messagegroups": groups})
    messages = [
        Message(json.dumps(kafka(source=source)).encode(), Way("KAFKA", "binary"), "/messagegroups/g/messages/m")
        for source in ("/é/1", "/%C3%A9/1", "/x/1")
    ]
    result = Engines(catalog).compare(chunk_of_lines(messages, "capture"), messages)
    assert not result.differences, str(result.differences[0])
    assert {name: len(table) for name, table in result.landed.tables.items()} == {
        "/messagegroups/g/messages/m": 2,
        "/messagegroups/g/messages/n": 1,
    }


@settings(max_examples=700, deadline=None)
@given(st.sampled_from(sorted(TYPE_PATTERNS)), st.text("a1:/?#[]@%-+._0TZt\n é", max_size=12))
def test_values_that_columns_accept_are_of_the_type(type_: str, value: str) -> None:
    if match_substring_regex(pa.array([value]), TYPE_PATTERNS[type_])[0].as_py():
        CHECKS[type_](value)


@pytest.mark.parametrize("value", ["1:2", "a:b#c#d", "//host:port/", "/a%4", "/a%41", "", "//h:8/p?q#f"])
@pytest.mark.parametrize("type_", ["uri", "urireference"])
def test_uris_are_checked_as_the_reference_does(type_: str, value: str) -> None:
    definition = EVENT | {"messageid": "m", "envelopemetadata": {"extone": {"type": type_}}}
    groups = {"g": {"messagegroupid": "g", "messages": {"m": definition}}}
    catalog = Catalog.load({"specversion": "1.0-rc4", "registryid": "r", "messagegroups": groups})
    message = Message(json.dumps(kafka(extone=value)).encode(), Way("KAFKA", "binary"), "/messagegroups/g/messages/m")
    result = Engines(catalog).compare(chunk_of_lines([message], "capture"), [message])
    assert not result.differences, str(result.differences[0])


# -- dead letters ---------------------------------------------------------------------------------------------------


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(catalogues(), catalogues(), st.integers(0, 2**32))
def test_messages_of_another_catalogue_have_the_same_dead_letters(own: Document, other: Document, seed: int) -> None:
    """Problems and near misses of messages that hardly any definition fits, more of them than caches remember."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placeholder_conflicts, "MIN_BY_COLUMNS", 1 + seed % 2 * 31)
        _compare_dead_letters(Catalog.load(own), Catalog.load(other), seed)


def _compare_dead_letters(catalog: Catalog, other: Catalog, seed: int) -> None:
    messages = [message for message in messages_near(other, seed, rounds=1) if not message.is_event_file]
    for endpoint in (None, *catalog.scopes):
        engines = Engines(catalog, endpoint)
        rows, row_messages = chunk_of_rows(messages)
        for chunk, part in ((chunk_of_lines(messages, "capture"), messages), (rows, row_messages)):
            for _ in range(2):  # the second time with what the caches remember
                differences = engines.compare(chunk, part).differences
                assert not differences, "\n\n".join(map(str, differences[:3]))


READING = {
    "envelope": "CloudEvents/1.0",
    "envelopemetadata": {
        "type": {"value": "readings.taken"},
        "source": {"type": "uritemplate", "value": "/plants/{plant}/cells/{cell}"},
        "subject": {"value": "{plant}/{unit}"},
        "level": {"type": "integer"},
    },
}
DEFINITIONS: dict[str, Document] = {
    "reading": READING,
    "reading2": READING | {"envelopemetadata": READING["envelopemetadata"] | {"type": {"value": "readings.lost"}}},
    "keyed": READING | {"protocol": "KAFKA", "protocoloptions": {"topic": "plants", "headers": {"line": {"value": "{unit}"}}}},
    "line": {"protocol": "MQTT/5.0", "protocoloptions": {
        "topic_name": "plants/{plant}/lines/{line}", "user_properties": [{"name": "line", "value": "{line}"}]}},
    "path": {"protocol": "HTTP", "protocoloptions": {
        "method": "POST", "path": "/plants/{plant}", "headers": [{"name": "x-a", "value": "b"}]}},
    "nats": {"protocol": "NATS", "protocoloptions": {"subject": "plants.{plant}.lines"}},
    "amqp": {"protocol": "AMQP/1.0", "protocoloptions": {
        "properties": {"to": {"type": "uritemplate", "value": "/plants/{plant}"}},
        "application-properties": {"kind": {"value": "lines", "required": True}, "level": {"type": "integer"}},
        "footer": {"line": {"value": "{plant}"}}}},
}  # fmt: skip
GOOD = {"type": "readings.taken", "source": "/plants/p1/cells/c1", "subject": "p1/u1"}
MQTT = {
    "protocol": "MQTT/5.0",
    "topic": "plants/p1/lines/l1",
    "qos": 1,
    "user_properties": [["line", "l1"]],
    "payload": "{}",
}
HTTP = {"protocol": "HTTP", "method": "POST", "target": "/plants/p1", "headers": [["x-a", "b"]], "body": "{}"}
UNEXPECTED: dict[str, Document] = {
    "nothing in common": kafka(type="zz", source="urn:zz"),
    "a type that is nearly right": kafka(**GOOD | {"type": "readings.takenx"}),
    "another type than the rest of the message": kafka(**GOOD | {"type": "readings.lost", "subject": "p2"}),
    "a template that does not match": kafka(**GOOD | {"source": "/sites/p1/cells/c1"}),
    "placeholders that contradict each other": kafka(**GOOD | {"subject": "p2/u1"}),
    "a value of the wrong type": kafka(**GOOD | {"level": "high"}),
    "a missing attribute": {"protocol": "KAFKA", "headers": kafka(**GOOD)["headers"][:-1], "value": "{}"},
    "a long value": kafka(**GOOD | {"type": "readings." + "x" * 500}),
    "a value beyond ASCII": kafka(**GOOD | {"subject": "\u00fc/\u00fc"}),
    "a message that is no event": {"protocol": "KAFKA", "topic": "plants", "headers": [["content-type", "x/y"]], "value": "{}"},
    "a structured event": structured(["content-language", "de"]),
    "a topic that does not match": MQTT | {"topic": "plants/p1/rows/l1"},
    "a user property that contradicts the topic": MQTT | {"user_properties": [["line", "l2"]]},
    "a missing user property": MQTT | {"user_properties": []},
    "a path that does not match": HTTP | {"target": "/sites/p1?x=1"},
    "a header that is missing": HTTP | {"headers": []},
    "an address that does not match": {"protocol": "AMQP/1.0", "properties": {"to": "/sites/p1"}, "body": "{}"},
    "a property with another text": {
        "protocol": "AMQP/1.0", "application-properties": {"kind": {"symbol": "rows"}, "level": "high"}, "body": "{}"},
    "a footer that contradicts the address": {
        "protocol": "AMQP/1.0", "properties": {"to": "/plants/p1"}, "footer": {"line": "p2"}, "body": "{}"},
    "a subject that does not match": {"protocol": "NATS", "subject": "plants.p1.rows", "headers": [["a", "b"]], "data": "x"},
}  # fmt: skip


@pytest.mark.parametrize("parquet", [False, True], ids=["lines", "parquet"])
def test_unexpected_messages_are_settled_by_columns(parquet: bool) -> None:
    """Messages that match no definition have the dead letters of the reference, without it."""
    members = {name: definition | {"messageid": name} for name, definition in DEFINITIONS.items()}
    groups = {"g": {"messagegroupid": "g", "messages": members}}
    catalog = Catalog.load({"specversion": "1.0-rc4", "registryid": "r", "messagegroups": groups})
    messages = [
        Message(json.dumps(record).encode(), Way(record["protocol"], None), name) for name, record in UNEXPECTED.items()
    ]
    chunk, messages = chunk_of_rows(messages) if parquet else (chunk_of_lines(messages, "capture"), messages)
    result = Engines(catalog).compare(chunk, messages)
    assert not result.differences, "\n\n".join(map(str, result.differences[:3]))
    assert result.landed.outcomes == {"unexpected": len(UNEXPECTED)}
    left = [message.definition for place, message in enumerate(messages) if place not in result.settled]
    assert not left


SEGMENTS = st.sampled_from(("p1", "p2", "p3", "", "%41", "A", "%2F", "ü", "%C3%BC", "x y", "\x01", "p" * 300))
CONTRADICTING = {
    "one": {"source": {"type": "uritemplate", "value": "/plants/{plant}/cells/{cell}"}, "subject": {"value": "{plant}/{unit}"}},
    "two": {"subject": {"value": "{cell}/{plant}"}, "source": {"value": "/plants/{plant}/cells/{cell}", "required": True}},
    "three": {"subject": {"value": "{unit}/{cell}"}, "source": {"value": "/plants/{unit}/cells/{cell}"}, "level": {"value": "{cell}"}},
}  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(SEGMENTS, SEGMENTS, SEGMENTS, SEGMENTS, st.integers(0, 3)), min_size=1, max_size=60))
def test_contradicting_placeholders_have_the_same_dead_letters(rows: list[tuple[str, str, str, str, int]]) -> None:
    """Each message occurs often enough to be compared by columns; some lack the subject."""
    members = {
        name: {"messageid": name, "envelope": "CloudEvents/1.0", "envelopemetadata": attributes}
        for name, attributes in CONTRADICTING.items()
    }
    groups = {"g": {"messagegroupid": "g", "messages": members}}
    catalog = Catalog.load({"specversion": "1.0-rc4", "registryid": "r", "messagegroups": groups})
    messages = []
    for plant, cell, first, second, kind in rows * placeholder_conflicts.MIN_BY_COLUMNS:
        attributes = {"type": "t", "source": f"/plants/{plant}/cells/{cell}", "level": first}
        attributes |= {"subject": f"{first}/{second}"} if kind else {}
        messages.append(Message(json.dumps(kafka(**attributes)).encode(), Way("KAFKA", None), "x"))
    differences = Engines(catalog).compare(chunk_of_lines(messages, "capture"), messages).differences
    assert not differences, "\n\n".join(map(str, differences[:3]))
