"""Formats and compatibility, with the schemas of all formats. The rows of the checklist by their ids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.httpapi.conftest import FIXTURE, Client
from wirebook.core.offer import OFFER
from wirebook.httpapi.setup import make_registry, make_service
from wirebook.schema.validator import SchemaValidator
from wirebook.storage.database import Database

V = "/dirs/d/vals/v"
OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}}
VALIDATED = ("formatvalidated", "formatvalidatedreason", "compatibilityvalidated", "compatibilityvalidatedreason")


@pytest.fixture
def schemas(database: Database) -> Client:
    make_registry(database, "test", FIXTURE, OFFER)
    return Client(make_service(database, SchemaValidator(), OFFER), database)


def put(schemas: Client, path: str, document: Any, format_: str | None = "JsonSchema/draft-07") -> Any:
    """Writes a Version by its metadata; gives the answer."""
    sent = {"val" if "/vals/" in path else "strict": document, **({"format": format_} if format_ else {})}
    return schemas.put(f"{path}$details", sent)


def shown(reply: Any) -> dict[str, Any]:
    assert reply.status in (200, 201), reply.body
    return {name: reply.json[name] for name in VALIDATED if name in reply.json}


def test_c_val_02_and_03(schemas: Client) -> None:
    assert shown(put(schemas, V, OBJECT)) == {"formatvalidated": True}
    assert put(schemas, V, {"type": 5}).error == (400, "format_violation", f"{V}/versions/1")


def test_c_val_04_and_05_formats_that_are_not_known(schemas: Client) -> None:
    found = shown(put(schemas, V, OBJECT, "Thrift/1"))
    assert (found["formatvalidated"], bool(found["formatvalidatedreason"])) == (False, True)
    strict = "/dirs/d/stricts/s"
    assert put(schemas, strict, OBJECT, "Thrift/1").error == (400, "format_unknown", f"{strict}/versions/1")


def test_c_val_06_documents_elsewhere(schemas: Client) -> None:
    sent = {"format": "Avro/1.9", "valurl": "http://h/x"}
    assert shown(schemas.put(f"{V}$details", sent))["formatvalidated"] is False
    strict = {"format": "Avro/1.9", "stricturl": "http://h/x"}
    assert schemas.put("/dirs/d/stricts/s$details", strict).error[:2] == (400, "format_external")


def test_c_val_07_and_08_no_format_and_no_document(schemas: Client) -> None:
    assert shown(put(schemas, V, OBJECT, None)) == {}
    assert schemas.put(f"{V}$details", {"format": "Avro/1.9"}).error[1] in ("format_violation",)


def test_c_val_10_to_12_compatibility(schemas: Client) -> None:
    put(schemas, f"{V}/versions/1", OBJECT)
    assert schemas.patch(f"{V}/meta", {"compatibility": "Backward"}).status == 200
    assert schemas.get(f"{V}$details").json["compatibilityvalidated"] is True
    narrower = {**OBJECT, "required": ["a"]}
    assert put(schemas, f"{V}/versions/2", narrower).error == (400, "compatibility_violation", V)
    assert shown(put(schemas, f"{V}/versions/2", {"type": "object"}))["compatibilityvalidated"] is True
    assert schemas.get(f"{V}/versions").json.keys() == {"1", "2"}


def test_c_val_14_transitive(schemas: Client) -> None:
    for id_, document in (("1", {"type": "string"}), ("2", {"type": "integer"}), ("3", {"type": "integer"})):
        put(schemas, f"{V}/versions/{id_}", document)
    assert schemas.patch(f"{V}/meta", {"compatibility": "backward_transitive"}).error[1] == "compatibility_violation"
    schemas.delete(f"{V}/versions/1")
    assert schemas.patch(f"{V}/meta", {"compatibility": "full_transitive"}).status == 200


def test_c_val_18_they_are_the_servers(schemas: Client) -> None:
    sent = {"format": "Thrift/1", "formatvalidated": True, "compatibilityvalidated": "x"}
    assert shown(schemas.put(f"{V}$details", sent))["formatvalidated"] is False


@pytest.mark.parametrize(
    ("format_", "document"),
    [
        ("JsonSchema/draft/2020-12", json.dumps(OBJECT)),
        ("Avro/1.11.0", '{"type": "record", "name": "R", "fields": []}'),
        ("Protobuf/3", 'syntax = "proto3"; message M { string a = 1; }'),
        ("XSD/1.1", '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="a"/></xs:schema>'),
        (
            "JsonStructure/draft-04",
            '{"$schema": "https://json-structure.org/meta/core/v0/#", "$id": "http://h/a", "name": "A", '
            '"type": "object", "properties": {"a": {"type": "string"}}}',
        ),
    ],
)
def test_c_sch_06_well_known_formats(schemas: Client, format_: str, document: str) -> None:
    reply = schemas.put(V, document.encode(), xregistry_format=format_.swapcase())
    assert (reply.status, reply.headers["xRegistry-formatvalidated"]) == (201, "true")
    assert schemas.put(V, b"\x00{<", xregistry_format=format_).error[:2] == (400, "format_violation")
