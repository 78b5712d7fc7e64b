"""Formats and compatibility, with the schemas of all formats. Tests are named after rows of the checklist."""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.conftest import FIXTURE, Client
from wirebook.core.model.offered_formats import OFFER
from wirebook.httpapi.formats import LazySchemaValidator
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
    version = {"val" if "/vals/" in path else "strict": document, **({"format": format_} if format_ else {})}
    return schemas.put(f"{path}$details", version)


def validation_results(reply: Any) -> dict[str, Any]:
    assert reply.status in (200, 201), reply.body
    return {name: reply.json[name] for name in VALIDATED if name in reply.json}


# -- what is said, and when ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ({"format": "Thrift/1", "val": 5}, "Unknown format"),
        ({"format": "Avro/1.9", "valurl": "http://h/v"}, "Data stored externally"),
        ({"format": "Thrift/1", "valurl": "http://h/v"}, "Unknown format"),
    ],
)
def test_version_that_is_not_validated_has_the_same_reason_twice(
    schemas: Client, version: dict[str, Any], reason: str
) -> None:
    schemas.put(f"{V}$details", {**version, "meta": {"compatibility": "backward"}})
    results = validation_results(schemas.get(f"{V}$details"))
    assert (results["formatvalidatedreason"], results["compatibilityvalidatedreason"]) == (reason, reason)


WIDER = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}


@pytest.mark.parametrize("rule", ["backward", "forward", "full", "full_transitive"])
def test_optional_property_added_to_an_open_object_is_compatible(schemas: Client, rule: str) -> None:
    open_ = {**OBJECT, "additionalProperties": True}
    put(schemas, f"{V}/versions/1", OBJECT)
    schemas.patch(f"{V}/meta", {"compatibility": rule})
    for id_, document in (("2", WIDER), ("3", open_), ("4", {**open_, **WIDER})):
        results = validation_results(put(schemas, f"{V}/versions/{id_}", document))
        assert results == {"formatvalidated": True, "compatibilityvalidated": True}
    assert put(schemas, f"{V}/versions/5", {**open_, "additionalProperties": False}).status == (
        201 if rule == "forward" else 400
    )


def test_violation_names_versions_direction_rule_and_fix(schemas: Client) -> None:
    put(schemas, f"{V}/versions/1", OBJECT)
    schemas.patch(f"{V}/meta", {"compatibility": "backward"})
    assert put(schemas, f"{V}/versions/2", {**WIDER, "required": ["b"]}).json["detail"] == (
        f"{V}/versions/1 to {V}/versions/2 is not backward compatible: "
        '/required: required-added (old: [], new: ["b"]). To fix: make the property optional in the new schema.'
    )


def test_strict_server_rejects_a_property_added_to_an_open_object(database: Database) -> None:
    make_registry(database, "test", FIXTURE, OFFER)
    strict = Client(make_service(database, LazySchemaValidator(strict_json_schema=True), OFFER), database)
    put(strict, f"{V}/versions/1", OBJECT)
    strict.patch(f"{V}/meta", {"compatibility": "backward"})
    reply = put(strict, f"{V}/versions/2", WIDER)
    assert reply.error == (400, "compatibility_violation", V)
    assert "/properties/b: property-added-to-open-content" in reply.json["detail"]
    assert 'set "additionalProperties": false in the old schema' in reply.json["detail"]


def record(**field: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "a", **field}] if field else []}


# -- which pairs are compared ---------------------------------------------------------------------------------------


class Counting(SchemaValidator):
    """Counts the comparisons and the documents that were validated."""

    compared = 0
    validated = 0

    def incompatible(self, rule: str, format_: str, old: bytes, new: bytes) -> str | None:
        Counting.compared += 1
        return super().incompatible(rule, format_, old, new)

    def faults(self, format_: str, document: bytes) -> str | None:
        Counting.validated += 1
        return super().faults(format_, document)


@pytest.mark.parametrize(
    ("rule", "beside"),
    [("backward", (1, 2)), ("full", (2, 4)), ("forward_transitive", (9, 9)), ("full_transitive", (18, 18))],
)
def test_only_pairs_that_a_write_changes_are_compared(database: Database, rule: str, beside: tuple[int, int]) -> None:
    """`beside`: how often the last of ten Versions is compared, and one in the middle."""
    make_registry(database, "test", FIXTURE, OFFER)
    client = Client(make_service(database, Counting(), OFFER), database)
    documents = [{**OBJECT, "title": str(number)} for number in range(10)]
    for number in range(9):
        assert put(client, f"{V}/versions/{number}", documents[number]).status == 201

    def counted(reply: Any) -> int:
        assert reply.status in (200, 201, 204), reply.body
        compared, Counting.compared = Counting.compared, 0
        return compared

    Counting.compared = 0
    assert counted(client.patch(f"{V}/meta", {"compatibility": rule})) > 0
    assert counted(put(client, f"{V}/versions/9", documents[9])) == beside[0]
    assert counted(put(client, f"{V}/versions/4", {**OBJECT, "title": "another"})) == beside[1]
    assert counted(client.delete(f"{V}/versions/0")) == 0
    assert counted(client.patch(f"{V}/meta", {"labels": {"a": "b"}})) == 0
    assert counted(client.patch(f"{V}/versions/4$details", {"name": "n"})) == 0
    Counting.validated = 0
    put(client, f"{V}/versions/9", documents[9])
    assert Counting.validated == 1
