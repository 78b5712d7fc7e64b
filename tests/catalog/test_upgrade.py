"""Upgrades write documents of 1.0-rc4, and a second upgrade changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirebook.catalog.load import load_registry
from wirebook.catalog.upgrade import render_document, upgrade

VECTORS = Path(__file__).resolve().parent.parent / "vectors" / "documents"
PLACES = {"message": ("messagegroups", "g", "messages", "m"), "endpoint": ("endpoints", "e"), "document": ()}


def codes(problems: Any) -> list[str]:
    return [problem.code for problem in problems]


def test_upgrade_replaces_types_that_rc4_does_not_have() -> None:
    metadata = {
        "a": {"type": "urireference"},
        "b": {"type": "urireference", "value": "https://{h}/x"},
        "c": {"type": "urireference", "value": "../x"},
    }
    options = {"headers": [{"name": "x", "type": "urireference", "value": "/y"}]}
    message = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": metadata,
        "protocol": "HTTP",
        "protocoloptions": options,
    }
    registry = load_registry({"messagegroups": {"g": {"messages": {"m": message}}}})
    assert registry.document["messagegroups"]["g"]["messages"]["m"] == message, "loading keeps the type"
    document, problems = upgrade(registry)
    written = document["messagegroups"]["g"]["messages"]["m"]
    assert [written["envelopemetadata"][name]["type"] for name in "abc"] == ["string", "uri", "string"]
    assert written["protocoloptions"]["headers"][0]["type"] == "string"
    assert codes(problems) == ["added-specversion"] + ["mapped-type"] * 4
    assert document["specversion"] == "1.0-rc4"


def test_upgrade_adds_ancestors_by_time_then_by_id() -> None:
    versions = {
        "v10": {},
        "v9": {},
        "b": {"createdat": "2024-01-02T00:00:00Z"},
        "a": {"createdat": "2024-01-01T00:00:00Z"},
    }
    registry = load_registry({"schemagroups": {"s": {"schemas": {"x": {"versions": versions}}}}})
    document, problems = upgrade(registry)
    found = document["schemagroups"]["s"]["schemas"]["x"]["versions"]
    assert {key: version["ancestorid"] for key, version in found.items()} == {
        "v9": "v9", "v10": "v9", "a": "v10", "b": "a",
    }  # fmt: skip
    assert codes(problems).count("guessed-ancestor") == 4


def test_upgrade_renames_ancestor_of_older_specification() -> None:
    schema = {"versions": {"1": {"ancestor": "1"}}}
    document, problems = upgrade(load_registry({"schemagroups": {"s": {"schemas": {"x": schema}}}}))
    assert document["schemagroups"]["s"]["schemas"]["x"]["versions"]["1"] == {"ancestorid": "1"}
    assert codes(problems) == ["old-attribute-name", "added-specversion"]


@pytest.mark.parametrize("file", ["texts.json", "dialects.json", "lint.json", "resolution.json"])
def test_second_upgrade_changes_nothing(file: str) -> None:
    for vector in json.loads((VECTORS / file).read_text("utf-8"))["vectors"]:
        kind = next(name for name in PLACES if name in vector)
        document = vector[kind]
        for name in reversed(PLACES[kind]):
            document = {name: document}
        once = render_document(upgrade(load_registry(document))[0])
        twice = render_document(upgrade(load_registry(json.loads(once)))[0])
        assert twice == once, vector["name"]
