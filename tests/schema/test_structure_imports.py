"""Imports of JSON Structure between schemas of a catalogue, compared with the json-structure package."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from json_structure import InstanceValidator

from wirebook.schema import CompiledSchema, Payload, SchemaIndex, Unsupported

ADDRESS = {
    "$schema": "https://json-structure.org/meta/extended/v0/#",
    "$id": "https://example.com/address",
    "name": "Address",
    "type": "object",
    "properties": {"street": {"type": "string"}, "country": {"type": {"$ref": "#/definitions/Country"}},
                   "next": {"type": {"$ref": "#"}}},
    "required": ["street"],
    "definitions": {
        "Country": {"type": "int32"},
        "Place": {"type": "object", "name": "Place", "properties": {"at": {"type": "double"}}, "required": ["at"]},
    },
}  # fmt: skip


def schema(**more: Any) -> dict[str, Any]:
    root = {"$schema": "https://json-structure.org/meta/extended/v0/#", "$id": "https://example.com/person",
            "name": "Person", "type": "object"}  # fmt: skip
    return root | more


AT_ROOT = schema(
    **{"$import": "https://example.com/address"},
    properties={
        "home": {"type": {"$ref": "#/definitions/Address"}},
        "land": {"type": {"$ref": "#/definitions/Country"}},
    },
)
DEFINITIONS_ALONE = schema(
    **{"$importdefs": "https://example.com/address"}, properties={"land": {"type": {"$ref": "#/definitions/Country"}}}
)
NAMESPACE = schema(
    definitions={"Geo": {"$import": "https://example.com/address"}},
    properties={
        "home": {"type": {"$ref": "#/definitions/Geo/Address"}},
        "land": {"type": {"$ref": "#/definitions/Geo/Country"}},
    },
)
SHADOWED = schema(
    **{"$import": "https://example.com/address"},
    definitions={"Country": {"type": "boolean"}},
    properties={"home": {"type": {"$ref": "#/definitions/Address"}}},
)
EXTENDED = schema(
    **{"$importdefs": "https://example.com/address", "$extends": "#/definitions/Place"},
    properties={"name": {"type": "string"}},
)
SCHEMAS = {"root": AT_ROOT, "definitions": DEFINITIONS_ALONE, "namespace": NAMESPACE, "shadowed": SHADOWED,
           "extended": EXTENDED}  # fmt: skip
PAYLOADS: dict[str, list[Any]] = {
    "root": [{"home": {"street": "a", "country": 1}}, {"home": {"country": 1}}, {"land": "us"}, {"land": 3},
             {"home": {"street": "a", "country": "us"}}],
    "definitions": [{"land": 3}, {"land": "x"}],
    "namespace": [{"home": {"street": "a", "country": 2}, "land": 3}, {"home": {"street": "a", "country": "x"}}],
    "shadowed": [{"home": {"street": "a", "country": True}}, {"home": {"street": "a", "country": 1}}],
    "extended": [{"name": "a", "at": 1.5}, {"name": "a"}],
}  # fmt: skip


def compiled(document: Any, *others: Any, as_text: bool = False) -> CompiledSchema | Unsupported:
    texts = {name: json.dumps(content) if as_text else content for name, content in enumerate((document, *others))}
    schemas = {
        f"s{name}": {"versions": {"1": {"format": "JSONStructure", "schema": text}}} for name, text in texts.items()
    }
    index = SchemaIndex({"schemagroups": {"g": {"schemas": schemas}}})
    return index.find("JSONStructure", dataschemauri="/schemagroups/g/schemas/s0")


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("name", SCHEMAS)
def test_imports_agree_with_json_structure_package(name: str, as_text: bool) -> None:
    schema_ = compiled(SCHEMAS[name], ADDRESS, as_text=as_text)
    assert not isinstance(schema_, Unsupported), schema_.problems
    for payload in PAYLOADS[name]:
        others = [
            copy.deepcopy(ADDRESS) | {"properties": {k: v for k, v in ADDRESS["properties"].items() if k != "next"}}
        ]
        oracle = InstanceValidator(copy.deepcopy(SCHEMAS[name]), allow_import=True, external_schemas=others)
        errors = oracle.validate_instance(copy.deepcopy(payload))
        reading = schema_.read(Payload(json.dumps(payload).encode()))
        assert (reading.outcome is None) is (not errors), (payload, errors, reading.problems)


def test_self_reference_after_import_is_resolved() -> None:
    schema_ = compiled(AT_ROOT, ADDRESS)
    assert {field.name: str(field.arrow_type) for field in schema_.fields} == {
        "home": "struct<street: string, country: int32, next: string>",
        "land": "int32",
    }
    reading = schema_.read(Payload(b'{"home":{"street":"a","next":{"country":1}}}'))
    assert [problem.slot for problem in reading.problems] == ["payload#/home/next"]


def test_nested_imports_are_resolved() -> None:
    middle = schema(
        **{"$id": "https://example.com/middle", "$import": "address", "name": "Middle"},
        properties={"home": {"type": {"$ref": "#/definitions/Address"}}},
    )
    top = schema(
        definitions={"M": {"$import": "https://example.com/middle"}},
        properties={"m": {"type": {"$ref": "#/definitions/M/Middle"}}},
    )
    schema_ = compiled(top, middle, ADDRESS)
    assert not isinstance(schema_, Unsupported), schema_.problems
    reading = schema_.read(Payload(b'{"m":{"home":{"street":"a","country":"us"}}}'))
    assert [problem.slot for problem in reading.problems] == ["payload#/m/home/country"]


@pytest.mark.parametrize(
    ("document", "others", "text"),
    [
        (AT_ROOT, (), "is not in the catalogue"),
        (schema(**{"$import": 5}, properties={}), (), "must be the URI of a document"),
        (schema(**{"$import": "https://example.com/person"}, properties={}), (), "imports itself"),
        (AT_ROOT, ({**ADDRESS, "name": None},), "has no 'name'"),
        (schema(definitions={f"n{i}": {"$importdefs": "https://example.com/address"} for i in range(300)}), (ADDRESS,),
         "more than 200 imports"),
    ],
)  # fmt: skip
def test_invalid_import_is_reported(document: Any, others: tuple[Any, ...], text: str) -> None:
    schema_ = compiled(document, *others)
    assert isinstance(schema_, Unsupported)
    assert [problem.code for problem in schema_.problems] == ["schema-not-compilable"]
    assert text in str(schema_.problems[0].message)


def test_exponential_imports_are_rejected() -> None:
    """Each document imports the next one twice: 2 to the power of 30 copies."""
    documents = [
        schema(**{"$id": f"https://example.com/d{i}", "name": f"D{i}"}, properties={"x": {"type": "string"}},
               definitions={side: {"$import": f"https://example.com/d{i + 1}"} for side in ("a", "b")})
        for i in range(30)
    ]  # fmt: skip
    documents.append(schema(**{"$id": "https://example.com/d30", "name": "D30"}, properties={}))
    schema_ = compiled(*documents)
    assert isinstance(schema_, Unsupported)
    assert "imports" in str(schema_.problems[0].message)
