"""Formats and compatibility, with the schemas of all formats. The rows of the checklist by their ids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.httpapi.conftest import FIXTURE, Client
from wirebook.core.model.offered_formats import OFFER
from wirebook.httpapi.formats import Formats
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
    assert found == {"formatvalidated": False, "formatvalidatedreason": "Unknown format"}
    strict = "/dirs/d/stricts/s"
    assert put(schemas, strict, OBJECT, "Thrift/1").error == (400, "format_unknown", f"{strict}/versions/1")


def test_c_val_06_documents_elsewhere(schemas: Client) -> None:
    sent = {"format": "Avro/1.9", "valurl": "http://h/x"}
    found = shown(schemas.put(f"{V}$details", sent))
    assert found == {"formatvalidated": False, "formatvalidatedreason": "Data stored externally"}
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


# -- what is said, and when ---------------------------------------------------------------------------------------


def say(client: Client, path: str) -> dict[str, Any]:
    """What a Version says of its validation; reasons by whether they are texts that say something."""
    found = shown(client.get(f"{path}$details"))
    return {name: bool(value) and value is not False for name, value in found.items()}


BOTH_FALSE = {
    "formatvalidated": False,
    "formatvalidatedreason": True,
    "compatibilityvalidated": False,
    "compatibilityvalidatedreason": True,
}


def test_c_val_01_types_that_are_not_validated(schemas: Client) -> None:
    sent = {"format": "JsonSchema/draft-07", "file": {"type": 5}, "formatvalidated": True}
    assert shown(schemas.put("/dirs/d/files/f$details", sent)) == {}
    assert schemas.patch("/dirs/d/files/f/meta", {"compatibility": "full"}).status == 200
    assert shown(schemas.put("/dirs/d/files/f/versions/2$details", {**sent, "file": 5})) == {}


def test_c_val_09_and_13_what_is_not_validated_is_not_compared(schemas: Client) -> None:
    put(schemas, f"{V}/versions/1", OBJECT, "Thrift/1")
    assert say(schemas, V) == {"formatvalidated": False, "formatvalidatedreason": True}
    schemas.patch(f"{V}/meta", {"compatibility": "backward"})
    assert say(schemas, V) == BOTH_FALSE
    assert schemas.patch(f"{V}$details", {"valurl": "http://h/v", "format": "Avro/1.9"}).status == 200
    assert say(schemas, V) == BOTH_FALSE
    assert schemas.patch(f"{V}$details", {"val": {"type": "int"}}).status == 200
    assert say(schemas, V) == {"formatvalidated": True, "compatibilityvalidated": True}
    assert schemas.patch(f"{V}$details", {"format": None}).status == 200
    assert say(schemas, V) == {}
    assert schemas.patch(f"{V}$details", {"format": "Avro/1.9"}).status == 200
    schemas.patch(f"{V}/meta", {"compatibility": None})
    assert say(schemas, V) == {"formatvalidated": True}


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ({"format": "Thrift/1", "val": 5}, "Unknown format"),
        ({"format": "Avro/1.9", "valurl": "http://h/v"}, "Data stored externally"),
        ({"format": "Thrift/1", "valurl": "http://h/v"}, "Unknown format"),
    ],
)
def test_version_that_is_not_validated_has_the_same_reason_twice(
    schemas: Client, sent: dict[str, Any], reason: str
) -> None:
    schemas.put(f"{V}$details", {**sent, "meta": {"compatibility": "backward"}})
    found = shown(schemas.get(f"{V}$details"))
    assert (found["formatvalidatedreason"], found["compatibilityvalidatedreason"]) == (reason, reason)


def test_c_val_13_a_version_beside_one_that_was_not_validated(schemas: Client) -> None:
    put(schemas, f"{V}/versions/1", OBJECT, "Thrift/1")
    schemas.patch(f"{V}/meta", {"compatibility": "backward"})
    put(schemas, f"{V}/versions/2", OBJECT)
    expected = {"formatvalidated": True, "compatibilityvalidated": False, "compatibilityvalidatedreason": True}
    assert say(schemas, f"{V}/versions/2") == expected
    put(schemas, f"{V}/versions/1", OBJECT)
    assert say(schemas, f"{V}/versions/2") == {"formatvalidated": True, "compatibilityvalidated": True}


def test_c_val_07_versions_without_a_format_are_left_out(schemas: Client) -> None:
    put(schemas, f"{V}/versions/1", OBJECT)
    schemas.patch(f"{V}/meta", {"compatibility": "backward_transitive"})
    put(schemas, f"{V}/versions/2", 5, None)
    assert say(schemas, f"{V}/versions/2") == {}
    narrower = {**OBJECT, "required": ["a"]}
    assert put(schemas, f"{V}/versions/3", narrower).error[1] == "compatibility_violation"
    put(schemas, f"{V}/versions/3", OBJECT)
    assert say(schemas, f"{V}/versions/3") == {"formatvalidated": True, "compatibilityvalidated": True}


def test_c_val_11_formats_that_differ_cannot_be_compared(schemas: Client) -> None:
    put(schemas, f"{V}/versions/1", OBJECT)
    put(schemas, f"{V}/versions/2", {"type": "int"}, "Avro/1.9")
    assert schemas.patch(f"{V}/meta", {"compatibility": "full"}).error == (400, "compatibility_violation", V)
    put(schemas, f"{V}/versions/2", OBJECT, "JsonSchema/draft/2020-12")
    assert schemas.patch(f"{V}/meta", {"compatibility": "full"}).status == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_c_val_15_another_rule_is_held_to_every_version(schemas: Client, method: str) -> None:
    for id_, document in (("1", OBJECT), ("2", {"type": "object"}), ("3", {"type": "object", "title": "t"})):
        put(schemas, f"{V}/versions/{id_}", document)
    epochs = {id_: each["epoch"] for id_, each in schemas.get(f"{V}/versions").json.items()}
    assert schemas.send(method, f"{V}/meta", {"compatibility": "backward"}).status == 200
    assert all(each["compatibilityvalidated"] for each in schemas.get(f"{V}/versions").json.values())
    before = schemas.get("/dirs?inline").body
    for rule in ("forward", "full", "forward_transitive", "full_transitive", "FULL"):
        reply = schemas.send(method, f"{V}/meta", {"compatibility": rule})
        assert (reply.error, reply.json["args"]) == ((400, "compatibility_violation", V), {"compat": rule})
        assert "/versions/1 to " in reply.json["detail"]
    assert schemas.patch(f"{V}$details", {"meta": {"compatibility": "full"}}).error[1] == "compatibility_violation"
    assert schemas.get("/dirs?inline").body == before
    assert schemas.send(method, f"{V}/meta", {"compatibility": None}).status == 200
    assert not any("compatibilityvalidated" in each for each in schemas.get(f"{V}/versions").json.values())
    assert {id_: each["epoch"] for id_, each in schemas.get(f"{V}/versions").json.items()} == epochs


WIDER = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}


@pytest.mark.parametrize("rule", ["backward", "forward", "full", "full_transitive"])
def test_optional_property_added_to_an_open_object_is_compatible(schemas: Client, rule: str) -> None:
    open_ = {**OBJECT, "additionalProperties": True}
    put(schemas, f"{V}/versions/1", OBJECT)
    schemas.patch(f"{V}/meta", {"compatibility": rule})
    for id_, document in (("2", WIDER), ("3", open_), ("4", {**open_, **WIDER})):
        found = shown(put(schemas, f"{V}/versions/{id_}", document))
        assert found == {"formatvalidated": True, "compatibilityvalidated": True}
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
    strict = Client(make_service(database, Formats(strict_json_schema=True), OFFER), database)
    put(strict, f"{V}/versions/1", OBJECT)
    strict.patch(f"{V}/meta", {"compatibility": "backward"})
    reply = put(strict, f"{V}/versions/2", WIDER)
    assert reply.error == (400, "compatibility_violation", V)
    assert "/properties/b: property-added-to-open-content" in reply.json["detail"]
    assert 'set "additionalProperties": false in the old one' in reply.json["detail"]


@pytest.mark.parametrize("rule", ["none", "NONE", "", "backwards", 5])
def test_amb_14_what_is_no_rule(schemas: Client, rule: Any) -> None:
    put(schemas, V, OBJECT)
    before = schemas.get("/dirs?inline").body
    assert schemas.patch(f"{V}/meta", {"compatibility": rule}).error == (400, "invalid_attribute", f"{V}/meta")
    assert schemas.get("/dirs?inline").body == before


def test_c_val_17_names_of_formats(schemas: Client) -> None:
    assert put(schemas, V, OBJECT, "").status == 201  # no format is sent
    assert schemas.patch(f"{V}$details", {"format": ""}).error == (400, "invalid_attribute", f"{V}/versions/1")
    assert schemas.patch(f"{V}$details", {"format": 5}).error == (400, "invalid_attribute", f"{V}/versions/1")
    for format_ in ("JSONSCHEMA/DRAFT-07", "jsonSchema/draft-07", "JsonSchema"):
        assert schemas.patch(f"{V}$details", {"format": format_}).json["format"] == format_
        assert say(schemas, V) == {"formatvalidated": True}
    assert schemas.get("/dirs/d/vals?filter=format=jsonschema").json.keys() == {"v"}


def test_c_val_19_what_the_capabilities_leave_out(schemas: Client) -> None:
    rules = {"JSONSCHEMA*": ["Backward"], "avro*": []}
    changed = schemas.patch("/capabilities", {"formats": ["jsonschema*", "avro*"], "compatibilities": rules})
    assert changed.status == 200
    put(schemas, f"{V}/versions/1", OBJECT)
    put(schemas, "/dirs/d/vals/x", "a", "XSD/1.1")
    assert say(schemas, "/dirs/d/vals/x") == {"formatvalidated": False, "formatvalidatedreason": True}
    schemas.patch(f"{V}/meta", {"compatibility": "backward"})
    assert say(schemas, V) == {"formatvalidated": True, "compatibilityvalidated": True}
    assert schemas.patch(f"{V}/meta", {"compatibility": "full"}).status == 200
    expected = {"formatvalidated": True, "compatibilityvalidated": False, "compatibilityvalidatedreason": True}
    assert say(schemas, V) == expected
    schemas.patch("/capabilities", {"compatibilities": None})
    assert schemas.patch(f"{V}/meta", {"compatibility": "backward"}).status == 200
    assert say(schemas, V) == expected


def test_c_val_12_and_amb_04_strict_types_refuse_what_is_not_supported(schemas: Client) -> None:
    schemas.patch("/capabilities", {"compatibilities": {"jsonschema*": ["backward"]}})
    strict = "/dirs/d/stricts/s"
    put(schemas, strict, OBJECT)
    before = schemas.get("/dirs?inline").body
    reply = schemas.patch(f"{strict}/meta", {"compatibility": "Full"})
    assert reply.error == (400, "compatibility_unknown", strict)
    assert reply.json["args"] == {"compat": "Full", "format": "JsonSchema/draft-07"}
    reply = put(schemas, f"{strict}/versions/2", OBJECT, "Thrift/1")
    assert (reply.error, reply.json["args"]) == (
        (400, "format_unknown", f"{strict}/versions/2"),
        {"format": "Thrift/1"},
    )
    reply = schemas.patch(f"{strict}$details", {"stricturl": "http://h/s"})
    assert (reply.error, reply.json.get("args", {})) == ((400, "format_external", f"{strict}/versions/1"), {})
    assert schemas.get("/dirs?inline").body == before


def chained(**aspects: Any) -> dict[str, Any]:
    """A model of schemas that are validated."""
    schema = {"singular": "schema", "validateformat": True, "validatecompatibility": True, **aspects}
    return {"groups": {"dirs": {"singular": "dir", "resources": {"schemas": schema}}}}


S = "/dirs/d/schemas/s"


def record(**field: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "a", **field}] if field else []}


CHAIN = (record(type="int"), record(), record(type="string", default=""))
"""Each is read by the next, and the first not by the last."""


def chain(client: Client, model: dict[str, Any], rule: str = "backward") -> None:
    """Versions 0, 1 and 2, a year after each other."""
    assert client.put("/modelsource", model).status == 200
    for number, document in enumerate(CHAIN):
        sent = {"format": "Avro/1.9", "schema": document, "createdat": f"{2000 + number}-01-01T00:00:00Z"}
        assert client.put(f"{S}/versions/{number}$details", sent).status == 201
    assert client.patch(f"{S}/meta", {"compatibility": rule}).status == 200


def test_c_val_20_versions_that_become_neighbours(schemas: Client) -> None:
    chain(schemas, chained(versionmode="createdat"))
    before = schemas.get("/dirs?inline").body
    for reply in (
        schemas.delete(f"{S}/versions/1"),
        schemas.delete(f"{S}/versions", {"1": {}}),
        schemas.patch(f"{S}/versions/1$details", {"createdat": "2010-01-01T00:00:00Z"}),
        schemas.patch(f"{S}/meta", {"compatibility": "backward_transitive"}),
    ):
        assert reply.error == (400, "compatibility_violation", S)
        assert schemas.get("/dirs?inline").body == before
    assert schemas.delete(f"{S}/versions/0").status == 204
    assert schemas.delete(f"{S}/versions/1").status == 204


def test_c_val_20_ancestors_that_are_sent(schemas: Client) -> None:
    chain(schemas, chained())
    before = schemas.get("/dirs?inline").body
    reply = schemas.patch(f"{S}/versions/2$details", {"ancestorid": "0"})
    assert reply.error == (400, "compatibility_violation", S)
    assert schemas.get("/dirs?inline").body == before
    assert schemas.delete(f"{S}/versions/1").status == 204  # what came after it begins a lineage of its own
    found = schemas.get(f"{S}/versions").json
    assert {id_: each["ancestorid"] for id_, each in found.items()} == {"0": "0", "2": "2"}
    assert all(each["compatibilityvalidated"] for each in found.values())


def test_c_val_20_versions_that_are_pruned(schemas: Client) -> None:
    chain(schemas, chained(versionmode="createdat", maxversions=3))
    schemas.patch(f"{S}/meta", {"defaultversionid": "0", "defaultversionsticky": True})
    before = schemas.get("/dirs?inline").body
    sent = {"format": "Avro/1.9", "schema": CHAIN[2]}
    assert schemas.put(f"{S}/versions/3$details", sent).error == (400, "compatibility_violation", S)
    assert schemas.get("/dirs?inline").body == before
    schemas.patch(f"{S}/meta", {"defaultversionsticky": False})
    assert schemas.put(f"{S}/versions/3$details", sent).status == 201
    assert schemas.get(f"{S}/versions").json.keys() == {"1", "2", "3"}


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
        found, Counting.compared = Counting.compared, 0
        return found

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
