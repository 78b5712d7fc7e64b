"""The shipped catalogue is what a good one looks like: nothing to find fault with, and something of everything."""

from __future__ import annotations

import json
from typing import Any

import pytest
from json_structure import SchemaValidator

from wirebook.bindings.wire import PROTOCOLS
from wirebook.catalog import Catalog, load_registry
from wirebook.definitions.lint.registry import lint
from wirebook.demo.message_types import CATALOGUE, MESSAGE_TYPES
from wirebook.schema import Unsupported


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog.load(CATALOGUE)


def test_lint_reports_nothing() -> None:
    assert [problem.to_dict() for problem in lint(load_registry(CATALOGUE))] == []


def test_catalogue_covers_all_protocols_and_formats(catalog: Catalog) -> None:
    definitions = catalog.definitions.values()
    assert 12 <= len(definitions) <= 20
    assert {definition.protocol for definition in definitions} - {None} == set(PROTOCOLS)
    assert {definition.schema_format.partition("/")[0] for definition in definitions if definition.schema_format} == {
        "JsonSchema",
        "JsonStructure",
        "Avro",
    }
    assert any(not definition.is_cloudevent for definition in definitions)
    assert any(xid.startswith("/endpoints/") for xid in catalog.definitions)


def test_all_payload_schemas_compile(catalog: Catalog) -> None:
    schemas = {xid: catalog.schema_of(definition) for xid, definition in catalog.definitions.items()}
    assert [xid for xid, schema in schemas.items() if schema is None or isinstance(schema, Unsupported)] == []


def test_definitions_of_message_types_exist(catalog: Catalog) -> None:
    assert {message_type.definition for message_type in MESSAGE_TYPES} <= catalog.definitions.keys()
    assert {message_type.endpoint for message_type in MESSAGE_TYPES} == catalog.scopes.keys()
    bases = {message["basemessage"] for message in _messages(catalog.registry.document) if "basemessage" in message}
    assert {message_type.definition for message_type in MESSAGE_TYPES} | bases == catalog.definitions.keys()


def test_json_structure_schemas_are_valid(catalog: Catalog) -> None:
    groups = catalog.registry.document["schemagroups"].values()
    documents = [
        version["schema"]
        for group in groups
        for schema in group["schemas"].values()
        for version in schema["versions"].values()
        if version["format"].startswith("JsonStructure")
    ]
    assert len(documents) == 6
    for document in documents:
        validator = SchemaValidator(extended=True)
        assert validator.validate(document, json.dumps(document)) == []


def _messages(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [message for group in document["messagegroups"].values() for message in group["messages"].values()]
