"""The two engines agree on Protobuf and XML payloads with every type; campaigns without messages fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from synthesis.agreement import Engines
from synthesis.campaign import run
from synthesis.carriers import chunk_of_lines
from synthesis.dice import Dice, dice_of
from synthesis.messages import Message, message_of, ways_of
from synthesis.mutations import mutate

from wirebook.catalog import Catalog

SCHEMAS = Path(__file__).parent / "schemas"
FORMATS = {
    "All": ("every3.proto", "Protobuf/3"),
    "Inner": ("every3.proto", "Protobuf/3"),
    "Flat": ("every3.proto", "Protobuf/3"),
    "Two": ("every2.proto", "Protobuf/2"),
    "Order": ("every.xsd", "XMLSchema/1.1"),
    "Line": ("every.xsd", "XMLSchema/1.0"),
}
MESSAGES = 100
BYTES = ("bytes-damaged", "fields-more", "xml-texts", "xml-elements")


def catalogue(names: tuple[str, ...]) -> Catalog:
    """A CloudEvent and a Kafka record for each of the message types and elements."""
    schemas = {name: {"versions": {"1": {"format": FORMATS[name][1], "schema": text_of(name)}}} for name in names}
    messages: dict[str, Any] = {}
    for name in names:
        schema = {"dataschemaformat": FORMATS[name][1], "dataschemauri": f"/schemagroups/g/schemas/{name}:{name}"}
        messages[f"record{name}"] = schema | {"protocol": "KAFKA", "protocoloptions": {"topic": name}}
        messages[f"event{name}"] = schema | {
            "envelope": "CloudEvents/1.0",
            "envelopemetadata": {"type": {"value": name}},
        }
    return Catalog.load(
        {
            "specversion": "1.0-rc4",
            "schemagroups": {"g": {"schemas": schemas}},
            "messagegroups": {"g": {"messages": messages}},
        }
    )


def text_of(name: str) -> str:
    return (SCHEMAS / FORMATS[name][0]).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FORMATS)
def test_engines_agree_on_valid_payloads(name: str) -> None:
    report = run(catalogue((name,)), f"1 {name}", MESSAGES)
    assert report.messages >= MESSAGES
    assert report.placed["own"] == report.valid, str(report)
    assert report.is_clean, str(report)


def test_engines_agree_on_changed_bytes() -> None:
    catalog = catalogue(tuple(FORMATS))
    messages = list(changed(catalog, dice_of("bytes")))
    result = Engines(catalog).compare(chunk_of_lines(messages, "capture"), messages)
    assert not result.differences, "\n".join(map(str, result.differences[:5]))
    assert set(BYTES) == {name for message in messages for name in message.mutations}
    assert {"matched", "invalid-payload", "undecodable"} <= set(result.landed.outcomes)


def changed(catalog: Catalog, dice: Dice) -> Iterator[Message]:
    for definition in catalog.definitions.values():
        for _ in range(40):
            way = dice.choice([candidate for candidate in ways_of(definition) if candidate.protocol == "KAFKA"])
            message = mutate(message_of(catalog, definition, way, dice), dice, (dice.choice(BYTES),))
            if message.mutations:
                yield message


def test_campaign_without_messages_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """An abstract type that nothing stands for has no valid payload."""
    schema = text_of("Line").replace('<xs:complexType name="Line">', '<xs:complexType name="Line" abstract="true">')
    monkeypatch.setitem(globals(), "text_of", lambda name: schema)
    report = run(catalogue(("Line",)), 1, 20)
    assert (report.messages, report.is_clean) == (0, False)
    assert "none could be built" in report.unbuilt[-1]
