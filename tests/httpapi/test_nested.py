"""Nested collections in responses and requests. Rows COL of the checklist."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.httpapi.conftest import Client

X: Final = "/dirs/d/datas/x"


@pytest.fixture
def filled(registry: Client) -> Client:
    """A Group with one Resource of two types, and an empty Group of another type."""
    datas, files = {"x": {"name": "x"}}, {"f": {"name": "f"}}
    members = {"dirs": {"d": {"name": "d", "datas": datas, "files": files}}, "boxes": {"b": {}}}
    assert registry.put("/", members).status == 200
    return registry


def without_times(registry: Client) -> Any:
    """What there is, apart from what each write changes."""

    def strip(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: strip(item) for name, item in value.items() if name not in ("epoch", "modifiedat")}

    return strip(registry.get("/export").json)


@pytest.mark.parametrize("value", ["https://example.com/", 5, None, {}, [], True])
def test_c_col_08_urls_and_counts_are_ignored(filled: Client, value: Any) -> None:
    before = without_times(filled)
    for method in ("PUT", "PATCH"):
        versions = {"versionsurl": value, "versionscount": value, "name": "x"}
        groups = {"datasurl": value, "datascount": value, "name": "d"}
        assert filled.send(method, "/", {"dirsurl": value, "dirscount": value}).status == 200
        assert filled.send(method, "/dirs/d", groups).json["datascount"] == 1
        assert filled.send(method, X, {**versions, "metaurl": value}).json["versionscount"] == 1
        assert filled.send(method, "/", {"dirs": {"d": {**groups, "datas": {"x": versions}}}}).status == 200
    assert filled.post("/", {"dirs": {"d": groups}}).json["dirs"]["d"]["datascount"] == 1
    assert filled.post("/dirs/d/datas", {"x": versions}).json["x"]["versionscount"] == 1
    assert without_times(filled) == before
    assert filled.post(X, {**versions, "metaurl": value}).json["versionid"] == "2"
    assert filled.post("/", {"dirsurl": value, "dirscount": value}).json == {}
    assert filled.post("/dirs/d", {"datasurl": value, "datascount": value}).json == {}


@pytest.mark.parametrize("value", [{}, None])
def test_c_col_10_nothing_in_a_collection_changes_nothing_in_it(filled: Client, value: Any) -> None:
    before = without_times(filled)
    for method in ("PUT", "PATCH"):
        assert filled.send(method, "/", {"dirs": value, "boxes": value}).status == 200
        assert filled.send(method, "/dirs/d", {"name": "d", "datas": value}).status == 200
        assert filled.send(method, X, {"name": "x", "versions": value}).status == 200
        assert filled.send(method, "/", {"dirs": {"d": {"name": "d", "datas": value}}}).status == 200
    assert filled.post("/dirs", {"d": {"name": "d", "datas": value}}).status == 200
    assert without_times(filled) == before
    assert filled.put("/dirs/n/datas/y", {"versions": value}).json["versionid"] == "1"
