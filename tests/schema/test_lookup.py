"""Finding schemas in a catalogue."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirebook.schema import Payload, SchemaIndex, Unsupported

FILE = json.loads((Path(__file__).parent.parent / "vectors/schema/lookup.json").read_text())


@pytest.mark.parametrize("vector", FILE["vectors"], ids=lambda v: v["description"])
def test_reference_is_resolved(vector: dict[str, Any]) -> None:
    arguments = dict(vector["input"])
    schema = SchemaIndex(FILE["registry"]).find(arguments.pop("format", "JsonSchema/draft-07"), **arguments)
    if "code" in vector["expected"]:
        assert isinstance(schema, Unsupported)
        assert [problem.code for problem in schema.problems] == [vector["expected"]["code"]]
        assert schema.read(Payload(b"{}")).outcome == "unsupported"
    else:
        assert not isinstance(schema, Unsupported), schema.problems
        assert [field.name for field in schema.fields] == vector["expected"]["fields"]


def test_schema_is_compiled_once() -> None:
    index = SchemaIndex(FILE["registry"])
    inline = {"type": "object", "properties": {"x": {}}}
    for arguments in ({"dataschemauri": "/schemagroups/g/schemas/one"}, {"dataschema": inline}):
        assert index.find("JsonSchema", **arguments) is index.find("jsonschema", **arguments)


def test_unusable_schema_is_reported_once() -> None:
    one, other = ({"format": "JsonSchema", "schema": {"pattern": "(?=x)"}} for _ in range(2))
    registry = {"schemagroups": {"g": {"schemas": {"s": {"versions": {"1": one}}, "t": other}}}}
    problems = list(SchemaIndex(registry).problems())
    assert [(p.code, p.xid) for p in problems] == [("schema-not-compilable", "/schemagroups/g/schemas/s/versions/1"),
                                                ("schema-not-compilable", "/schemagroups/g/schemas/t")]  # fmt: skip


def test_production_catalogue_schemas_compile(shared: Path) -> None:
    """Every payload schema of the 48 production catalogues compiles."""
    count = 0
    for file in sorted((shared / "corpus/production").glob("*.json")):
        registry = json.loads(file.read_text())
        index = SchemaIndex(registry)
        assert list(index.problems()) == [], file.name
        for group in registry.get("messagegroups", {}).values():
            for message in group.get("messages", {}).values():
                if "dataschemauri" in message:
                    schema = index.find(message["dataschemaformat"], dataschemauri=message["dataschemauri"])
                    assert not isinstance(schema, Unsupported), (file.name, schema.problems)
                    count += 1
    assert count > 150


@pytest.mark.parametrize(
    "registry",
    [{}, {"schemagroups": None}, {"schemagroups": {"g": 5}}, {"schemagroups": {"g": {"schemas": {"s": None}}}},
     {"schemagroups": {"g": {"schemas": {"s": {"versions": [], "schema": 5, "format": 7, "meta": "x"}}}}}],
    ids=str,
)  # fmt: skip
def test_malformed_registry_is_indexed(registry: dict[str, Any]) -> None:
    index = SchemaIndex(registry)
    list(index.problems())
    assert isinstance(index.find("JsonSchema", dataschemauri="/schemagroups/g/schemas/s:x:y#z"), Unsupported)
    assert isinstance(index.find(None, dataschema="x"), Unsupported)
    assert isinstance(index.find(None), Unsupported)


def test_inline_schema_with_non_json_member_is_accepted() -> None:
    index = SchemaIndex({})
    for schema in ({1: "a", "type": "object"}, {"const": 2**70}, {"const": "\ud800"}):
        assert index.find("JsonSchema/draft-07", dataschema=schema) is index.find(
            "JsonSchema/draft-07", dataschema=schema
        )
