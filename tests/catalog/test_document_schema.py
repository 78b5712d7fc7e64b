"""The JSON Schema of catalogue documents: valid catalogues are accepted, and common mistakes are located."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from wirebook.catalog.document_schema import DRAFT, document_schema

ROOT = Path(__file__).resolve().parent.parent.parent
OWN = [*(ROOT / "src/wirebook/demo/catalogue").glob("*.xreg.json"), ROOT / "docs/examples/bikes.xreg.json"]
VALIDATOR = jsonschema_rs.Draft7Validator(document_schema())


def pointers(document: Any) -> list[str]:
    return ["/".join(map(str, error.instance_path)) for error in VALIDATOR.iter_errors(document)]


def test_schema_is_a_valid_draft_07_schema() -> None:
    assert document_schema()["$schema"] == DRAFT
    assert jsonschema_rs.meta.is_valid(document_schema())


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_own_catalogue_is_valid(path: Path) -> None:
    assert pointers(json.loads(path.read_text())) == []


def test_real_catalogues_are_valid(shared: Path) -> None:
    paths = sorted(
        path for folder in ("production", "spec-scenarios") for path in (shared / "corpus" / folder).glob("*.json")
    )
    assert len(paths) >= 57
    assert {path.name: errors for path in paths if (errors := pointers(json.loads(path.read_text())))} == {}


# -- slips ----------------------------------------------------------------------------------------------------------

MESSAGE: dict[str, Any] = {
    "envelope": "CloudEvents/1.0",
    "envelopemetadata": {
        "type": {"value": "rides.started"},
        "source": {"value": "/cities/{city}", "type": "uritemplate"},
    },
    "protocol": "KAFKA",
    "protocoloptions": {"topic": "rides", "headers": {"trace": {"name": "trace", "value": "{trace}"}}},
}
AT = "messagegroups/g/messages/m"


def document(message: dict[str, Any]) -> dict[str, Any]:
    return {"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": {"m": message}}}}


def changed(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    message = copy.deepcopy(MESSAGE)
    change(message)
    return document(message)


MISTAKES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "soruce": (lambda m: m["envelopemetadata"].update(soruce={"value": "/x"}), f"{AT}/envelopemetadata"),
    "datacontentype": (lambda m: m["envelopemetadata"].update(datacontentype={}), f"{AT}/envelopemetadata"),
    "requred": (lambda m: m["envelopemetadata"]["type"].update(requred=True), f"{AT}/envelopemetadata/type"),
    "protocl": (lambda m: m.update(protocl="KAFKA"), AT),
    "envelopmetadata": (lambda m: m.update(envelopmetadata={}), AT),
    "topics": (lambda m: m["protocoloptions"].update(topics="x"), f"{AT}/protocoloptions"),
    "vlaue": (
        lambda m: m["protocoloptions"]["headers"]["trace"].update(vlaue="x"),
        f"{AT}/protocoloptions/headers/trace",
    ),
    "option of another protocol": (
        lambda m: m.update(protocol="MQTT/5.0", protocoloptions={"topic_name": "a", "partition": 1}),
        f"{AT}/protocoloptions",
    ),
    "header for headers": (
        lambda m: m.update(protocol="HTTP/1.1", protocoloptions={"header": [{"name": "x"}]}),
        f"{AT}/protocoloptions",
    ),
    "text for a number": (
        lambda m: m.update(protocol="mqtt", protocoloptions={"qos": "1"}),
        f"{AT}/protocoloptions/qos",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_misspelt_name_is_reported_at_its_place(mistake: str) -> None:
    change, pointer = MISTAKES[mistake]
    assert pointers(document(MESSAGE)) == []
    assert pointers(changed(change)) == [pointer]


def test_misspelt_group_type_is_rejected() -> None:
    assert pointers({"messagegroup": {"g": {}}}) == [""]


@pytest.mark.parametrize("name", ["tenantid", "partitionkey", "traceparent", "sequence", "types", "xid2"])
def test_extension_attribute_is_accepted(name: str) -> None:
    assert pointers(changed(lambda message: message["envelopemetadata"].update({name: {"value": "x"}}))) == []


@pytest.mark.parametrize(
    ("protocol", "options"),
    [
        ("amqp", {"application_properties": {"kind": {"value": "x"}}, "header": {"priority": {"value": 9}}}),
        ("MQTT", {"topic-name": "a/b"}),
        ("MQTT/5", {"topic": "a/b", "user_properties": [{"name": "a", "value": "b", "required": True}]}),
        ("Kafka/2.0", {"headers": {"trace": "{trace}"}}),
        ("NATS/1.0.0", {"subject": "a.b", "reply-to": "c"}),
    ],
)
def test_spelling_that_loading_corrects_is_accepted(protocol: str, options: dict[str, Any]) -> None:
    message = {"protocol": protocol, "protocoloptions": options}
    assert pointers(document(message)) == []


def test_options_of_the_text_are_not_deprecated() -> None:
    text = json.dumps(document_schema())
    assert '"status": {}' in text
    assert '"status": {"deprecated": true}' not in text
