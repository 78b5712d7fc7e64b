"""CDEvents over every protocol: each example lands as a typed row, each faulty one is a dead letter with its code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from synthesis.agreement import Engines, Result
from synthesis.carriers import chunk_of_lines, chunk_of_rows
from synthesis.cdevents import Example, catalogue, examples
from synthesis.messages import BATCH, EVENTS, Message, Way

from wirebook.bindings import DEFAULT_MODE, to_line, write_event
from wirebook.bindings.wire import HttpMessage
from wirebook.catalog import Catalog
from wirebook.problems import Severity
from wirebook.schema import Payload

Attributes = dict[str, Any]
Data = dict[str, Any]
Reason = tuple[str, str, str]
"""What a dead letter says: outcome, code and slot of its first problem."""

WAYS = (
    Way("HTTP", "binary"), Way("HTTP", "structured"), Way("HTTP", "batch"),
    Way("KAFKA", "binary"), Way("KAFKA", "structured"),
    Way("MQTT/5.0", "binary"), Way("MQTT/5.0", "structured"), Way("MQTT/3.1.1", "structured"),
    Way("AMQP/1.0", "binary"), Way("AMQP/1.0", "structured"),
    Way("NATS", "binary"), Way("NATS", "structured"), Way(EVENTS, "structured"),
)  # fmt: skip


@cache
def engines(corpus: Path) -> Engines:
    return Engines(Catalog.load(catalogue(corpus)))


@pytest.fixture(scope="session")
def corpus(shared: Path) -> Path:
    return shared / "corpus"


@pytest.fixture(scope="session")
def all_examples(corpus: Path) -> list[Example]:
    return examples(corpus)


def message(example: Example, way: Way, attributes: Attributes, data: bytes | None, name: str | None = None) -> Message:
    """An event on its way; the strict writer's complaints do not matter here."""
    protocol = "HTTP" if way.protocol == EVENTS else way.protocol
    payload = None if data is None else Payload(data, content_type="application/json")
    mode = "binary" if way.mode == "binary" else "structured"
    wire = write_event(protocol, mode, attributes, payload).wire
    mutations = () if name is None else (name,)
    if way.protocol == EVENTS:
        assert isinstance(wire, HttpMessage)
        return Message(str(wire.body).encode(), way, example.definition, {}, mutations)
    if way.mode == "batch":
        wire = HttpMessage(method="POST", target="/", headers=[("content-type", BATCH)], body=f"[{wire.body}]")  # type: ignore[union-attr]
    return Message(to_line(wire), way, example.definition, {}, mutations)


def land(engines: Engines, messages: list[Message]) -> Iterator[tuple[Message, list[tuple[str, dict[str, Any]]]]]:
    """Each message with its rows, when both engines agree on all of them."""
    for is_event, part in groupby(
        sorted(messages, key=lambda member: member.is_event_file), lambda member: member.is_event_file
    ):
        chosen = list(part)
        result: Result = engines.compare(chunk_of_lines(chosen, "events" if is_event else "capture"), chosen)
        assert not result.differences, "\n\n".join(map(str, result.differences[:5]))
        yield from ((member, result.rows[line, 0]) for line, member in enumerate(chosen, start=1))


# -- the catalogue --------------------------------------------------------------------------------------------------


def test_catalogue_has_a_definition_for_each_example(corpus: Path, all_examples: list[Example]) -> None:
    """One definition for each example, each with its own schema, and nothing to complain about."""
    catalog = engines(corpus).catalog
    assert sorted(catalog.definitions) == sorted(example.definition for example in all_examples)
    assert [diagnostic for diagnostic in catalog.diagnostics if diagnostic.severity is not Severity.INFO] == []
    schemas = [catalog.schema_of(definition) for definition in catalog.definitions.values()]
    assert len({id(schema) for schema in schemas}) == len(schemas) == 48


# -- the examples ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_examples_land(way: Way, corpus: Path, all_examples: list[Example]) -> None:
    """Over each protocol and in each mode: its own table, and the values of the example in typed columns."""
    catalog = engines(corpus).catalog
    messages = [
        message(example_, way, example_.attributes, json.dumps(example_.data).encode()) for example_ in all_examples
    ]
    for example, (example_, rows) in zip(all_examples, land(engines(corpus), messages), strict=True):
        ((table, row),) = rows
        assert table != "dead_letters", (example_, row)
        check_row(example, row, catalog)
        assert row["_protocol"] == way.protocol


@pytest.mark.parametrize("way", [way for way in WAYS if way.mode != "batch" and way.protocol != EVENTS], ids=str)
def test_examples_land_from_parquet(way: Way, corpus: Path, all_examples: list[Example]) -> None:
    messages = [
        message(example, way, example.attributes, json.dumps(example.data).encode()) for example in all_examples
    ]
    chunk, records = chunk_of_rows(messages)
    result = engines(corpus).compare(chunk, records)
    assert len(records) == len(messages)
    assert result.differences == []
    for line, example in enumerate(all_examples, start=1):
        ((_, row),) = result.rows[line, 0]
        check_row(example, row, engines(corpus).catalog)


@pytest.mark.parametrize("kind", ["capture", "events"])
def test_examples_land_from_one_batch(kind: str, corpus: Path, all_examples: list[Example]) -> None:
    """One record holds all events: each lands in its own table, under its own index."""
    events = [
        message(example, Way(EVENTS, "structured"), example.attributes, json.dumps(example.data).encode()).line
        for example in all_examples
    ]
    array = b"[" + b",".join(events) + b"]"
    record = HttpMessage(method="POST", target="/", headers=[("content-type", BATCH)], body=array.decode())
    line = array if kind == "events" else to_line(record)
    messages = [Message(line, Way(EVENTS if kind == "events" else "HTTP", "batch"), "")]
    result = engines(corpus).compare(chunk_of_lines(messages, kind), messages)
    assert result.differences == []
    for index, example in enumerate(all_examples):
        ((_, row),) = result.rows[1, index]
        check_row(example, row, engines(corpus).catalog)


def check_row(example: Example, row: dict[str, Any], catalog: Catalog) -> None:
    """The columns say what the example says."""
    attributes = example.attributes
    for name in ("id", "source", "type", "subject", "datacontenttype"):
        assert row[f"ce_{name}"] == attributes[name]
    assert row["ce_time"] == micros(attributes["time"])
    assert (row["ctx_source"], row["ctx_subjectid"]) == (attributes["source"], attributes["subject"])
    assert row["ce_rest"] is None
    assert row["_rest"] is None
    fields = {field.name for field in catalog.schema_of(catalog.definitions[example.definition]).fields}  # type: ignore[union-attr]
    assert example.data.keys() <= fields
    assert {name for name in fields if row[name] is not None} == example.data.keys()
    for name, value in example.data.items():
        assert says(row[name], value), (name, row[name], value)


def says(cell: Any, value: Any) -> bool:
    """Does a cell say what a JSON value says? Times are instants, objects of no fixed shape JSON text."""
    if isinstance(value, dict) and isinstance(cell, dict):
        others = (cell[name] for name in cell.keys() - value.keys())
        return all(other is None for other in others) and all(says(cell.get(name), value[name]) for name in value)
    if isinstance(value, list) and isinstance(cell, list):
        return len(cell) == len(value) and all(map(says, cell, value))
    if isinstance(cell, datetime):
        return cell == datetime.fromisoformat(value)
    if isinstance(cell, str) and cell != value:
        return bool(json.loads(cell) == value)
    return bool(cell == value)


def micros(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return round(moment.timestamp()) * 1_000_000 + moment.microsecond


# -- the broken ones ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Defect:
    """A way to break an event, and what its dead letter must say.

    `breaks` changes attributes and data in place, or gives other bytes for the data. `but` has the reasons that differ
    by way; `names_it`: the dead letter names the definition.
    """

    name: str
    breaks: Callable[[Attributes, Data], bytes | None]
    reason: Reason
    names_it: bool
    but: dict[str, Reason]

    def reason_on(self, way: Way) -> Reason:
        return self.but.get(str(way), self.reason)


DEFECTS: list[Defect] = []
NOT_AN_EVENT: Reason = ("unexpected", "wrong-envelope", "envelope")


def defect(outcome: str, code: str, slot: str, *, names_it: bool = False, **but: Reason) -> Callable[..., Any]:
    ways = {"mqtt3": "MQTT/3.1.1 structured"}

    def register(breaks: Callable[[Attributes, Data], bytes | None]) -> Callable[[Attributes, Data], bytes | None]:
        name = breaks.__name__.replace("_", " ")
        DEFECTS.append(Defect(name, breaks, (outcome, code, slot), names_it, {ways[way]: but[way] for way in but}))
        return breaks

    return register


@defect("unexpected", "mismatch", "envelopemetadata.type")
def unknown_type(attributes: Attributes, data: Data) -> None:
    attributes["type"] += ".9"


# Reading: of MQTT 3.1.1 only its JSON can say that it is an event; without the mandatory four it is none.
@defect("malformed", "malformed-cloudevent", "envelopemetadata.id", mqtt3=NOT_AN_EVENT)
def no_id(attributes: Attributes, data: Data) -> None:
    del attributes["id"]


@defect("malformed", "malformed-cloudevent", "envelopemetadata.specversion")
def old_specversion(attributes: Attributes, data: Data) -> None:
    attributes["specversion"] = "0.3"


@defect("unexpected", "wrong-type", "envelopemetadata.source")
def source_is_no_uri(attributes: Attributes, data: Data) -> None:
    attributes["source"] = "event source <1>"


@defect("unexpected", "missing-value", "envelopemetadata.subject")
def no_subject(attributes: Attributes, data: Data) -> None:
    del attributes["subject"]


@defect("unexpected", "missing-required", "envelopemetadata.time")
def no_time(attributes: Attributes, data: Data) -> None:
    del attributes["time"]


@defect("unexpected", "wrong-type", "envelopemetadata.time")
def time_without_offset(attributes: Attributes, data: Data) -> None:
    attributes["time"] = "2023-03-20T14:27:05"


@defect("invalid-payload", "payload-invalid", "payload#/context", names_it=True)
def required_member_missing(attributes: Attributes, data: Data) -> None:
    del data["context"]["timestamp"]


@defect("invalid-payload", "payload-invalid", "payload#/context/type", names_it=True)
def not_in_enum(attributes: Attributes, data: Data) -> None:
    data["context"]["type"] = "dev.cdevents.other"


@defect("invalid-payload", "payload-invalid", "payload#/subject/id", names_it=True)
def member_of_wrong_type(attributes: Attributes, data: Data) -> None:
    data["subject"]["id"] = 5


@defect("invalid-payload", "payload-invalid", "payload#", names_it=True)
def additional_member(attributes: Attributes, data: Data) -> None:
    data["surprise"] = 1


@defect("invalid-payload", "payload-invalid", "payload#/context/source", names_it=True)
def empty_text(attributes: Attributes, data: Data) -> None:
    data["context"]["source"] = ""


@defect("invalid-payload", "payload-invalid", "payload#/context/links/0", names_it=True)
def broken_in_a_referenced_schema(attributes: Attributes, data: Data) -> None:
    data["context"]["links"] = [{"linkType": "NOWHERE"}]


@defect("undecodable", "payload-syntax", "payload", names_it=True)
def truncated(attributes: Attributes, data: Data) -> bytes:
    return json.dumps(data).encode()[:-5]


@defect("undecodable", "payload-syntax", "payload", names_it=True)
def not_utf_8(attributes: Attributes, data: Data) -> bytes:
    return json.dumps(data).encode().replace(b"dev.cdevents", b"dev.\xff", 1)


@defect("oversized", "payload-too-deep", "payload", names_it=True)
def nested_deeply(attributes: Attributes, data: Data) -> None:
    nested: Any = {}
    for _ in range(250):
        nested = {"a": nested}
    data["customData"] = nested


def broken(example: Example, way: Way, kind: Defect) -> Message:
    attributes, data = dict(example.attributes), deepcopy(example.data)
    raw = kind.breaks(attributes, data)
    return message(example, way, attributes, json.dumps(data).encode() if raw is None else raw, kind.name)


KINDS = [pytest.param(kind, id=kind.name) for kind in DEFECTS]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_faulty_example_has_its_code(way: Way, kind: Defect, corpus: Path, all_examples: list[Example]) -> None:
    """Every example, broken in one way: dead-lettered for the right reason, at the right place."""
    wrong = []
    for example, rows in land(engines(corpus), [broken(example, way, kind) for example in all_examples]):
        actual, named = reason(rows), rows[0][1].get("definition")
        if actual != kind.reason_on(way) or named != (example.definition if kind.names_it else None):
            wrong.append((actual, kind.reason_on(way), named, example.line[:300]))
    assert not wrong, f"{len(wrong)}: {wrong[:3]}"


def reason(rows: list[tuple[str, dict[str, Any]]]) -> Reason:
    ((table, row),) = rows
    if table != "dead_letters":
        return ("matched", table, "")
    first = row["problems"][0]
    return row["outcome"], first["code"], first["slot"]


@pytest.mark.parametrize("way", [pytest.param(way, id=str(way)) for way in WAYS])
def test_event_without_data_is_an_invalid_payload(way: Way, corpus: Path, all_examples: list[Example]) -> None:
    """No data is missing data, except for a record of Kafka without a value, which is a tombstone."""
    messages = [message(example, way, example.attributes, None) for example in all_examples]
    for example, rows in land(engines(corpus), messages):
        if str(way) == "KAFKA binary":
            assert rows[0][1]["_tombstone"] is True
        else:
            assert reason(rows) == ("invalid-payload", "missing-data", "payload"), example


def test_domain_id_vectors_have_their_outcome(corpus: Path, all_examples: list[Example]) -> None:
    """The public vectors for one member, whose schema is two references away."""
    vectors = json.loads((corpus / "cdevents" / "conformance" / "formats" / "domainid.json").read_text("utf-8"))
    example, way = all_examples[0], Way("KAFKA", "binary")

    def message_with(text: str) -> Message:
        data = deepcopy(example.data)
        data["context"]["links"] = [{"linkType": "RELATION", "linkKind": "CAUSE", "target": {"domainId": text}}]
        return message(example, way, example.attributes, json.dumps(data).encode())

    valid = [vector["expected"] for vector in vectors["valid"]]
    for text, (_, rows) in zip(valid, land(engines(corpus), list(map(message_with, valid))), strict=True):
        assert rows[0][1]["context"]["links"][0]["target"]["domainId"] == text
    for _, rows in land(engines(corpus), [message_with(vector["input"]) for vector in vectors["invalid"]]):
        assert reason(rows) == ("invalid-payload", "payload-invalid", "payload#/context/links/0")


@pytest.mark.parametrize("way", [way for way in WAYS if way.mode == "binary"], ids=str)
def test_oversized_event_is_dead_lettered(way: Way, corpus: Path, all_examples: list[Example]) -> None:
    """A payload over the limit is oversized, and nothing else suffers."""
    example = all_examples[0]
    huge = json.dumps(example.data | {"customData": "A" * (17 << 20)}).encode()
    messages = [
        message(example, way, example.attributes, huge),
        message(example, way, example.attributes, json.dumps(example.data).encode()),
    ]
    (_, first), (_, second) = land(engines(corpus), messages)
    assert reason(first) == ("oversized", "payload-too-large", "payload")
    assert second[0][0] != "dead_letters"


def test_every_content_mode_is_covered() -> None:
    """Every protocol, each in every mode it has."""
    assert {way.protocol for way in WAYS} == {*DEFAULT_MODE, EVENTS}
    assert replace(WAYS[0], mode="structured") in WAYS
