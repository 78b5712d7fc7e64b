"""Collections: how they are shown in what owns them, and what becomes of those that are sent. Rows COL."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.httpapi.conftest import BASE, FIXTURE, Client

X: Final = "/dirs/d/datas/x"
OWNERS: Final = {
    "/": {"boxes": "/boxes", "dirs": "/dirs"},
    "/dirs/d": {resource: f"/dirs/d/{resource}" for resource in FIXTURE["groups"]["dirs"]["resources"]},
    "/boxes/b": {"files": "/boxes/b/files"},
    X: {"versions": f"{X}/versions"},
    "/dirs/d/files/f$details": {"versions": "/dirs/d/files/f/versions"},
}


@pytest.fixture
def filled(registry: Client) -> Client:
    """A Group with one Resource of two types, and an empty Group of another type."""
    datas, files = {"x": {"name": "x"}}, {"f": {"name": "f"}}
    sent = {"dirs": {"d": {"name": "d", "datas": datas, "files": files}}, "boxes": {"b": {}}}
    assert registry.put("/", sent).status == 200
    return registry


@pytest.mark.parametrize("owner", OWNERS)
def test_c_col_01_02_03_and_06_every_collection_is_shown(filled: Client, owner: str) -> None:
    shown = filled.get(owner).json
    for name, path in OWNERS[owner].items():
        assert shown[f"{name}url"] == BASE + path
        found = filled.get(shown[f"{name}url"])
        assert (found.status, len(found.json)) == (200, shown[f"{name}count"])
        assert name not in shown
    urls = {each for each in shown if each.endswith("url")} - {"metaurl"}
    assert urls == {f"{name}url" for name in OWNERS[owner]}


def test_c_col_06_also_in_answers_to_writes_and_below(filled: Client) -> None:
    assert filled.put("/dirs/n", {}).json.keys() >= {f"{name}count" for name in OWNERS["/dirs/d"]}
    assert filled.patch("/", {}).json["boxescount"] == 1
    assert filled.post("/dirs", {"m": {}}).json["m"]["filescount"] == 0
    below = filled.get("/?inline=dirs,boxes").json
    assert below["dirs"]["d"].keys() >= {f"{name}url" for name in OWNERS["/dirs/d"]}
    assert (below["boxes"]["b"]["filesurl"], below["boxes"]["b"]["filescount"]) == (f"{BASE}/boxes/b/files", 0)


def test_c_col_04_and_05_what_is_inlined(filled: Client) -> None:
    filled.delete("/boxes")
    shown = filled.get("/?inline=boxes,dirs.datas").json
    assert (shown["boxes"], shown["boxescount"]) == ({}, 0)
    inner = shown["dirs"]["d"]
    assert (shown["dirs"].keys(), inner["datas"].keys(), "files" in inner) == ({"d"}, {"x"}, False)
    assert inner["datas"]["x"] == filled.get("/dirs/d/datas").json["x"] == filled.get(X).json
    every = filled.get("/dirs/d?inline=*").json
    assert {name: list(every[name]) for name in OWNERS["/dirs/d"]} == {
        name: {"datas": ["x"], "files": ["f"]}.get(name, []) for name in OWNERS["/dirs/d"]
    }
    for id_, entity in every["files"].items():
        assert (entity["fileid"], entity["versions"]["1"]["versionid"]) == (id_, "1")


def test_c_col_07_in_document_view_they_point_into_the_document(filled: Client) -> None:
    filled.delete("/boxes")
    shown = filled.get("/?doc&inline=dirs.datas,boxes").json
    assert (shown["dirsurl"], shown["boxesurl"], shown["boxes"]) == ("#/dirs", "#/boxes", {})
    inner = shown["dirs"]["d"]
    assert (inner["datasurl"], inner["filesurl"]) == ("#/dirs/d/datas", f"{BASE}/dirs/d/files")
    assert inner["datas"]["x"]["versionsurl"] == f"{BASE}{X}/versions"
    assert filled.get(f"{X}?doc&inline=versions").json["versionsurl"] == "#/versions"


def without_times(registry: Client) -> Any:
    """What there is, apart from what each write changes."""

    def strip(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: strip(each) for name, each in value.items() if name not in ("epoch", "modifiedat")}

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


def test_c_col_09_nested_entities_are_written_as_the_method_says(filled: Client) -> None:
    filled.patch(X, {"description": "kept"})
    filled.patch("/dirs/d", {"description": "kept"})
    filled.patch("/", {"dirs": {"d": {"datas": {"x": {"name": "new"}, "y": {"name": "y"}}}}})
    group, data = filled.get("/dirs/d").json, filled.get(X).json
    assert (group["name"], group["description"], group["datascount"], group["filescount"]) == ("d", "kept", 2, 1)
    assert (data["name"], data["description"]) == ("new", "kept")
    filled.put("/", {"dirs": {"d": {"datas": {"x": {"labels": {}}}}}})
    group, data = filled.get("/dirs/d").json, filled.get(X).json
    assert ("name" in group, "description" in group, group["datascount"]) == (False, False, 2)
    assert ("name" in data, "description" in data, data["labels"]) == (False, False, {})
    filled.post("/", {"dirs": {"d": {"name": "n", "datas": {"x": {"name": "m", "versions": {"1": {}, "2": {}}}}}}})
    assert filled.get("/dirs/d").json["name"] == "n"
    assert filled.get(X).json["versionscount"] == 2
    filled.patch("/dirs", {"d": {"datas": {"x": {"versions": {"3": {"name": "three"}}}}}})
    assert filled.get("/dirs/d").json["name"] == "n"
    assert list(filled.get(f"{X}/versions").json) == ["1", "2", "3"]
    filled.post("/dirs/d", {"datas": {"x": {"description": "d"}}})
    assert "name" not in filled.get(X).json


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


@pytest.mark.parametrize("bad", [None, "text", 5, True, [], [{}]])
def test_c_col_11_what_is_no_entity(filled: Client, bad: Any) -> None:
    before = filled.get("/export").body
    for method, path, sent in (
        ("PUT", "/", {"name": "n", "dirs": {"new": {}, "d": bad}}),
        ("PATCH", "/", {"dirs": {"d": {"datas": {"x": bad}}}}),
        ("PUT", "/dirs/d", {"datas": {"x": bad}}),
        ("PATCH", "/dirs/d", {"datas": {"y": {}, "x": bad}}),
        ("POST", "/dirs", {"d": {"datas": {"x": bad}}}),
        ("POST", "/", {"dirs": {"d": {"datas": {"x": {"versions": {"1": bad}}}}}}),
        ("PUT", X, {"versions": {"1": bad}}),
        ("PATCH", X, {"versions": {"2": bad}}),
        ("POST", "/", {"dirs": {"d": bad}}),
        ("POST", "/", {"boxes": {"b": {}}, "dirs": {"new": bad}}),
        ("POST", "/dirs", {"new": bad}),
        ("PATCH", "/dirs", {"d": bad}),
        ("POST", "/dirs/d", {"datas": {"x": bad}}),
        ("POST", "/dirs/d/datas", {"new": bad}),
        ("PATCH", "/dirs/d/datas", {"x": bad}),
        ("POST", f"{X}/versions", {"2": bad}),
        ("PATCH", f"{X}/versions", {"1": bad}),
    ):
        assert filled.send(method, path, sent).error == (400, "bad_request", path), (method, path, sent)
        assert filled.get("/export").body == before
    for method, path, sent, owner, name in (
        ("PUT", "/", {"dirs": bad}, "/", "dirs"),
        ("PATCH", "/dirs/d", {"datas": bad}, "/dirs/d", "datas"),
        ("PUT", X, {"versions": bad}, X, "versions"),
        ("POST", "/dirs", {"d": {"datas": bad}}, "/dirs/d", "datas"),
    ):
        if bad is not None:
            reply = filled.send(method, path, sent)
            assert reply.error == (400, "invalid_attribute", owner), (method, path, sent)
            assert reply.json["args"]["name"] == name
    for path, sent in (("/", {"dirs": bad}), ("/dirs/d", {"datas": bad})):
        assert filled.post(path, sent).error == (400, "bad_request", path), (path, sent)
    assert filled.get("/export").body == before


def test_c_col_12_they_come_in_the_order_of_ids(registry: Client) -> None:
    ids = ["b", "C", "10", "9", "_", "a.b", "a-b", "B2", "a"]
    path = "/dirs/a/datas/a"
    registry.post("/dirs", {id_: {"datas": {each: {} for each in ids}} for id_ in ids})
    registry.delete("/dirs/a/datas/a")
    for id_ in ids:
        registry.put(f"{path}/versions/{id_}", {})
    ordered = sorted(ids, key=str.lower)
    assert list(registry.get("/dirs").json) == ordered
    assert list(registry.get("/?inline=dirs").json["dirs"]) == ordered
    assert list(registry.get("/dirs/C/datas").json) == ordered
    assert list(registry.get("/dirs?inline=datas").json["b"]["datas"]) == ordered
    assert list(registry.get(f"{path}/versions").json) == ordered
    assert list(registry.get(f"{path}?inline=versions").json["versions"]) == ordered
    assert list(registry.get("/export").json["dirs"]) == ordered
