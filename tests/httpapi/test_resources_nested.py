"""Resources nested in writes of Groups, the Registry or collections. Tests are named after rows of the checklist."""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.answers import meta_of, resource_of, seen, version_of
from tests.httpapi.conftest import Client

X, F = "/dirs/d/datas/x", "/dirs/d/files/x"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "POST"])
def test_nested_write_creates_missing_entities(registry: Client, method: str) -> None:
    versions = {"v1": {"name": "one"}, "v2": {"name": "two"}}
    members = {"dirs": {"d": {"datas": {"x": {"versions": versions, "meta": {"labels": {"a": "b"}}}}}}}
    assert registry.send(method, "/", members).status == 200
    resource = seen(registry.get(f"{X}?inline=*").json)
    both = {"v1": version_of(X, "v1", name="one", isdefault=False)}
    both["v2"] = version_of(X, "v2", name="two", ancestorid="v1")
    meta = meta_of(X, "v2", labels={"a": "b"})
    assert resource == {**resource_of(X, "v2", 2, name="two", ancestorid="v1"), "meta": meta, "versions": both}
    assert (registry.get("/dirs/d").json["epoch"], registry.get("/").json["epoch"]) == (1, 2)


@pytest.mark.parametrize(("method", "keeps"), [("PUT", False), ("PATCH", True)])
def test_nested_write_follows_the_method(registry: Client, method: str, keeps: bool) -> None:
    registry.put("/dirs/d", {"name": "g", "datas": {"x": {"name": "r", "versions": {"v1": {"name": "v"}}}}})
    members = {"datas": {"x": {"versions": {"v1": {"description": "new"}}}}}
    assert registry.send(method, "/dirs/d", members).status == 200
    assert ("name" in registry.get("/dirs/d").json) == keeps
    assert ("name" in registry.get(f"{X}/versions/v1").json) == keeps
    assert registry.get(f"{X}/versions/v1").json["description"] == "new"


@pytest.mark.parametrize(("method", "keeps"), [("POST", False), ("PATCH", True)])
def test_collection_write_follows_the_method(registry: Client, method: str, keeps: bool) -> None:
    first = {"name": "n", "labels": {"a": "b"}}
    registry.put(X, {**first, "meta": {"labels": {"m": "1"}}})
    for url, members in (
        ("/dirs", {"d": {"datas": {"x": {}}}}),
        ("/dirs/d/datas", {"x": {}}),
        (f"{X}/versions", {"1": {}}),
    ):
        registry.put(X, first)
        reply = registry.send(method, url, members)
        assert (reply.status, "Location" in reply.headers) == (200, False)
        assert ("name" in registry.get(X).json) == keeps, url
    assert registry.get(f"{X}/meta").json["labels"] == {"m": "1"}


# -- back again -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", "?inline=*", "?doc&inline=*"])
def test_read_entity_can_be_written_back_at_every_level(registry: Client, query: str) -> None:
    """Nothing but epochs and times of changes differs."""
    registry.put(X, {"name": "n", "meta": {"labels": {"a": "b"}}, "versions": {"a": {"xint": 1}, "b": {}}})
    registry.put(F, b'{"a": 1}', content_type="application/json", xregistry_name="n")
    registry.patch(f"{X}/meta", {"defaultversionid": "a"})
    before = _without_changes(registry.get("/export").json)
    for path, methods in (
        ("/", ("PUT", "PATCH")),
        ("/dirs", ("POST", "PATCH")),
        ("/dirs/d", ("PUT", "PATCH")),
        ("/dirs/d/datas", ("POST", "PATCH")),
        (f"{X}/meta", ("PUT", "PATCH")),
        (f"{X}/versions", ("POST", "PATCH")),
        (f"{X}/versions/b", ("PUT", "PATCH")),
        (f"{F}$details", ("PUT", "PATCH")),
    ):
        for method in methods:
            entity = registry.get(f"{path}{query}").json
            reply = registry.send(method, path, entity)
            assert reply.status == 200, (method, path, reply.body)
            assert _without_changes(registry.get("/export").json) == before, (method, path)


def _without_changes(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_changes(item) for name, item in value.items() if name not in ("epoch", "modifiedat")}
    return value
