"""Imports of catalogues of any dialect: corrections are reported, and an import is atomic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.httpapi.conftest import FIXTURE, Client
from wirebook.catalog import Catalog
from wirebook.catalog.importing import load_import
from wirebook.cli.serve import read_catalogue
from wirebook.core.model.builtin import builtin_model
from wirebook.core.model.offered_formats import OFFER
from wirebook.definitions.compile.definition import Definition
from wirebook.httpapi.setup import make_registry, make_service
from wirebook.schema.validator import SchemaValidator
from wirebook.storage.database import Database

IMPORT = "/.wirebook/import"
OLD: dict[str, Any] = {
    "specversion": "0.5-wip",
    "id": "urn:old",
    "name": "Old",
    "messagegroups": {
        "rides": {
            "id": "rides",
            "format": "CloudEvents/1.0",
            "messages": {
                "base": {"id": "base", "format": "CloudEvents/1.0", "metadata": {"type": {"value": "ride"}}},
                "started": {
                    "id": "started",
                    "format": "CloudEvents/1.0",
                    "basemessageurl": "#/messagegroups/rides/messages/base",
                    "metadata": {"source": {"value": "/rides"}},
                    "binding": "Kafka",
                    "message": {"topic": {"value": "rides"}},
                    "createdat": "2024-01-01T00:00:00",
                },
            },
        }
    },
}
NEWER: dict[str, Any] = {
    "specversion": "1.0-rc2",
    "messagegroups": {
        "queue": {
            "envelope": "None",
            "protocol": "AMQP/1.0",
            "messages": {
                "one": {"protocoloptions": {"properties": {"subject": {"value": "x"}}}},
                "two": {
                    "protocol": "AMQP/1.0",
                    "meta": {"defaultversionid": "b"},
                    "versions": {
                        "a": {"name": "old", "ancestor": "a"},
                        "b": {"name": "new", "ancestor": "a", "createdat": "2024-01-01T00:00:00Z"},
                    },
                },
            },
        }
    },
}


@pytest.fixture
def client(database: Database) -> Client:
    """A registry with the model that a fresh one has."""
    return served(database, builtin_model())


def served(database: Database, model: dict[str, Any]) -> Client:
    make_registry(database, "test", model, OFFER)
    service = make_service(database, SchemaValidator(as_declared=True), OFFER, read_catalogue)
    return Client(service, database)


def codes_in(report: dict[str, Any]) -> set[str]:
    return {diagnostic["code"] for diagnostic in report["diagnostics"]}


def test_import_of_a_0_5_catalogue_is_converted(client: Client) -> None:
    reply = client.post(IMPORT, OLD)
    assert reply.status == 200
    assert "/messagegroups/rides/messages/started/versions/1" in reply.json["changed"]
    assert {"old-specversion", "old-base-name", "old-attribute-name", "guessed-time-zone", "not-imported"} <= codes_in(
        reply.json
    )
    zone = next(diagnostic for diagnostic in reply.json["diagnostics"] if diagnostic["code"] == "guessed-time-zone")
    assert zone["pointer"] == "/messagegroups/rides/messages/started/createdat"
    assert zone["line"] == 1
    message = client.get("/messagegroups/rides/messages/started").json
    assert message["basemessageuri"] == "/messagegroups/rides/messages/base"
    assert message["createdat"] == "2024-01-01T00:00:00Z"
    assert message["protocoloptions"] == {"topic": "rides"}
    assert "name" not in client.get("/").json


def test_import_of_an_rc2_catalogue_in_yaml_is_converted(client: Client) -> None:
    text = b"specversion: 1.0-rc2\nschemagroups:\n  s:\n    schemas:\n      x:\n        versions:\n          '1':\n"
    text += b"            format: Avro/1.9\n            schemaobject: {type: string}\n            ancestor: '1'\n"
    reply = client.post(IMPORT, text)
    assert reply.status == 200, reply.body
    version = client.get("/schemagroups/s/schemas/x/versions/1$details?inline=schema").json
    assert (version["format"], version["schema"]) == ("Avro/1.9", {"type": "string"})


def test_import_is_converted_to_the_model(client: Client) -> None:
    report = client.post(IMPORT, NEWER).json
    assert {"written-default", "dropped-version"} <= codes_in(report)
    one = client.get("/messagegroups/queue/messages/one").json
    assert one["protocol"] == "AMQP/1.0"
    assert one["protocoloptions"]["properties"]["subject"] == {"required": False, "value": "x"}
    two = client.get("/messagegroups/queue/messages/two?inline=versions").json
    assert (two["name"], list(two["versions"]), two["ancestorid"]) == ("new", ["b"], "b")


def test_import_keeps_existing_entities(client: Client) -> None:
    client.put("/messagegroups/rides/messages/mine", {"name": "mine"})
    client.put("/messagegroups/rides/messages/base", {"name": "before"})
    assert client.post(IMPORT, OLD).status == 200
    assert client.get("/messagegroups/rides/messages/mine").json["name"] == "mine"
    base = client.get("/messagegroups/rides/messages/base").json
    assert "name" not in base
    assert base["epoch"] == 2
    assert client.post(IMPORT, OLD).status == 200, "once more"


def test_export_with_gaps_and_duplicate_members_is_imported(client: Client) -> None:
    path, document = "/schemagroups/s/schemas/x", b'{"a": 1, "a": 2}'
    for _ in range(4):
        client.post(path, document, content_type="application/json", xregistry_format="Thrift/1")
    client.delete(f"{path}/versions/2")
    exported = client.get("/export").body
    client.delete("/schemagroups")
    reply = client.post(IMPORT, exported)
    assert reply.status == 200, reply.body
    assert client.get(f"{path}/versions/3").body == document
    assert client.get(f"{path}/versions/3$details").json["epoch"] == 1
    created = client.post(path, document, content_type="application/json", xregistry_format="Thrift/1")
    assert created.headers["xRegistry-versionid"] == "5"


def test_dry_run_changes_nothing(client: Client) -> None:
    before = client.get("/export").body
    tried = client.post(f"{IMPORT}?dryrun", OLD)
    assert tried.status == 200
    assert client.get("/export").body == before
    assert client.post(IMPORT, OLD).json["changed"] == tried.json["changed"]


BAD = json.loads(json.dumps(OLD).replace('"topic": {"value": "rides"}', '"topic": {"value": "rides"}, "colour": "red"'))


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (BAD, (400, "unknown_attribute", "/messagegroups/rides/messages/started/versions/1")),
        (b"", (400, "missing_body", IMPORT)),
        (b"{", (400, "parsing_data", IMPORT)),
        (b"\xff\xfe\x00", (400, "parsing_data", IMPORT)),
        (b"[1, 2]", (400, "parsing_data", IMPORT)),
        (b'{"a": 1}', (400, "parsing_data", IMPORT)),
        (b"[" * 5000, (400, "parsing_data", IMPORT)),
        (b"a: &a [*a]", (400, "parsing_data", IMPORT)),
    ],
)
def test_rejected_import_changes_nothing(client: Client, content: Any, error: tuple[int, str, str | None]) -> None:
    before = client.get("/export").body
    assert client.post(IMPORT, content).error == error
    assert client.get("/export").body == before


@pytest.mark.parametrize(
    ("content", "place", "code"),
    [
        ({"messagegroups": [1]}, "line 1, column 2", "wrong-shape"),
        ({"messagegroups": {"g": "text"}}, "line 1, column 20", "wrong-shape"),
        ({"messagegroups": {"g": {"messages": []}}}, "line 1, column 26", "wrong-shape"),
        ({"messagegroups": {"g": {"messages": {"m": None}}}}, "line 1, column 39", "wrong-shape"),
        ({"messagegroups": {"g": {"messages": {"m": {"versions": 5}}}}}, "line 1, column 45", "wrong-shape"),
        ({"messagegroups": {"g": {"messages": {"m": {"envelopemetadata": "a"}}}}}, "line 1, column 45", "wrong-shape"),
        ({"messagegroups": {"g": {"messages": {"m": {"messageid": "n"}}}}}, "line 1, column 45", "id-mismatch"),
        ({"messagegroups": {"g": {"id": "h"}}}, "line 1, column 26", "id-mismatch"),
        (
            {"messagegroups": {"g": {"messages": {"m": {"basemessage": "http://a", "basemessageurl": "http://b"}}}}},
            "line 1, column 72",
            "conflicting-names",
        ),
        ({"messagegroups": {}, "definitionGroups": {"g": {}}}, "line 1, column 23", "conflicting-names"),
        ({"messagegroups": {"g": {"protocol": "NATS", "binding": "HTTP"}}}, "line 1, column 46", "conflicting-names"),
    ],
)
def test_import_that_would_lose_content_is_rejected(client: Client, content: Any, place: str, code: str) -> None:
    before = client.get("/export").body
    reply = client.post(IMPORT, {**content, "endpoints": {"e": {"usage": ["producer"]}}})
    assert reply.error == (400, "parsing_data", IMPORT)
    assert place in reply.json["args"]["error_detail"]
    assert f"[{code}]" in reply.json["args"]["error_detail"]
    assert client.get("/export").body == before


def test_import_into_a_read_only_registry_is_rejected(client: Client) -> None:
    capabilities = client.get("/capabilities").json
    capabilities["available"]["entities"]["mutable"] = False
    assert client.put("/capabilities", capabilities).status == 200
    assert client.post(IMPORT, OLD).error == (405, "action_not_supported", IMPORT)
    assert "messagegroups" not in client.get("/export").json or not client.get("/messagegroups").json


def test_import_with_another_method_is_not_allowed(client: Client) -> None:
    reply = client.get(IMPORT)
    assert (reply.status, reply.headers["Allow"]) == (405, "OPTIONS, POST")
    assert client.send("OPTIONS", IMPORT).headers["Allow"] == "OPTIONS, POST"


def test_import_of_custom_group_types_follows_the_model(database: Database) -> None:
    registry = served(database, FIXTURE)
    catalogue = {"specversion": "1.0-rc4", "dirs": {"d": {"files": {"f": {"name": "x"}}}}, **OLD}
    reply = registry.post(IMPORT, catalogue)
    assert reply.status == 200, reply.body
    left = {diagnostic["actual"] for diagnostic in reply.json["diagnostics"] if diagnostic["code"] == "not-imported"}
    assert left == {"messagegroups", "name"}
    assert registry.get("/dirs/d/files/f$details").json["name"] == "x"


# -- real catalogues ------------------------------------------------------------------------------------------------


def meaning(definition: Definition) -> list[Any]:
    """What messages a definition fits, in no order."""
    slots = (definition.constraints, definition.entries, definition.soft)
    return [definition.envelope, definition.protocol, definition.mode, *(sorted(map(str, slot)) for slot in slots)]


def test_real_catalogue_is_exported_as_imported(client: Client, shared: Path) -> None:
    files = sorted((shared / "corpus").glob("*/*.xreg.json"))
    assert len(files) == 57
    for file in files:
        reply = client.post(IMPORT, file.read_bytes())
        assert reply.status == 200, (file.name, reply.body)
    exported = Catalog.load(client.get("/export").json)
    for file in files:
        imported = Catalog(load_import([file]).registry)
        for xid, definition in imported.definitions.items():
            assert meaning(exported.definitions[xid]) == meaning(definition), (file.name, xid)
            before, after = imported.schema_of(definition), exported.schema_of(exported.definitions[xid])
            assert type(before) is type(after), (file.name, xid)
        for xid, scope in imported.scopes.items():
            assert exported.scopes[xid] == scope, (file.name, xid)
