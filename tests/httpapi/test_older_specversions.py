"""`specversion=1.0-rc2`: responses with the names of that version of xRegistry."""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.conftest import Client, serve
from wirebook.core.model.builtin import builtin_model
from wirebook.storage.database import Database

FLAG = "specversion=1.0-rc2"
MESSAGE = "/messagegroups/g/messages/m"
SCHEMA = "/schemagroups/g/schemas/s"
BASE_NAME = "/messagegroups/g/messages/b"


@pytest.fixture
def client(database: Database) -> Client:
    registry = serve(database, builtin_model())
    labels = {"ancestorid": "kept", "basemessageuri": "kept"}
    assert registry.put(MESSAGE, {"basemessageuri": BASE_NAME, "labels": labels}).status == 201
    schema = {
        "format": "x",
        "schema": {"ancestorid": 1},
        "basemessageuri": "an extension",
        "big": 10**30,
        "ancestor": "e",
    }
    assert registry.put(f"{SCHEMA}$details", schema).status == 201
    return registry


def renamed(value: Any, names: dict[str, str]) -> dict[str, Any]:
    return {names.get(name, name): member for name, member in value.items()}


NAMES = {"ancestorid": "ancestor", "basemessageuri": "basemessageurl"}


def test_older_specversion_renames_message_attributes(client: Client) -> None:
    for path in (MESSAGE, f"{MESSAGE}/versions/1"):
        older, newer = client.get(f"{path}?{FLAG}"), client.get(path)
        assert older.json == renamed(newer.json, NAMES)
        assert list(older.json) == [NAMES.get(name, name) for name in newer.json]
        assert older.json["labels"] == {"ancestorid": "kept", "basemessageuri": "kept"}


def test_older_specversion_keeps_extensions_of_other_types(client: Client) -> None:
    older = client.get(f"{SCHEMA}$details?{FLAG}&inline=schema").json
    assert older["ancestor"] == "1"
    assert client.get(f"{SCHEMA}$details").json["ancestor"] == "e"
    assert older["basemessageuri"] == "an extension"
    assert older["schema"] == {"ancestorid": 1}
    assert older["big"] == 10**30


@pytest.mark.parametrize("path", ["/", "/messagegroups", "/messagegroups/g", "/messagegroups/g/messages", "/export"])
def test_older_specversion_applies_to_collections_and_inlined_entities(client: Client, path: str) -> None:
    older = client.get(f"{path}?{FLAG}&inline=*")
    assert older.status == 200
    assert b'"ancestor":"1"' in older.body
    assert b'"basemessageurl":"/messagegroups/g/messages/b"' in older.body
    assert older.body.count(b'"ancestorid":"1"') == 0
    if path in ("/", "/export"):
        assert older.json["specversion"] == "1.0-rc2"


def test_older_specversion_applies_to_the_document_view(client: Client) -> None:
    view = client.get(f"{SCHEMA}/versions/1?{FLAG}&doc")
    assert (view.json["ancestor"], view.body.count(b'"ancestor":')) == ("1", 1)


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", MESSAGE), ("PATCH", MESSAGE), ("POST", "/"), ("DELETE", MESSAGE), ("GET", SCHEMA), ("PUT", SCHEMA)],
)
def test_older_specversion_is_rejected_in_writes(client: Client, method: str, path: str) -> None:
    before = client.get("/export").body
    reply = client.send(method, f"{path}?{FLAG}", None if method in ("GET", "DELETE") else {})
    assert reply.error == (400, "unsupported_specversion", path)
    assert reply.json["args"] == {"specversion": "1.0-rc2", "list": "1.0-rc2,1.0-rc4"}
    assert client.get("/export").body == before


def test_etag_depends_on_the_specversion(client: Client) -> None:
    assert client.get(f"{MESSAGE}?{FLAG}").body != client.get(MESSAGE).body
    assert client.get(f"{MESSAGE}?specversion=1.0-RC4").body == client.get(MESSAGE).body
