"""Resources: how they are shown, and what writing one does, step by step. The rows of the checklist by their ids.

Those that cite core/resource.md are about a type whose Versions are ordered by createdat.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.answers import default_of, lineage, meta_of, refuses, resource_of, seen, version_of
from tests.httpapi.conftest import BASE, Client

X, C, F = "/dirs/d/datas/x", "/dirs/d/cats/x", "/dirs/d/files/x"
WRITES = ["PUT", "PATCH"]


def at(year: int) -> str:
    return f"{year}-01-01T00:00:00Z"


def whole(registry: Client, xid: str) -> Any:
    return seen(registry.get(f"{xid}?inline=*").json)


# -- how they are shown -------------------------------------------------------------------------------------------


def test_c_res_01_and_02_a_resource_shows_its_default_version(registry: Client) -> None:
    registry.put(f"{X}/versions/a", {"name": "A", "labels": {"of": "version"}, "xint": 5})
    registry.put(f"{X}/versions/b", {"createdat": at(2001), "modifiedat": at(2002)})
    registry.patch(f"{X}/meta", {"labels": {"of": "meta"}, "defaultversionid": "a"})
    attributes = {"epoch": 2, "name": "A", "labels": {"of": "version"}, "xint": 5}
    attributes["epoch"] = registry.get(f"{X}/versions/a").json["epoch"]
    assert seen(registry.get(X).json) == resource_of(X, "a", 2, **attributes)
    names = ["dataid", "versionid", "self", "xid", "epoch", "name", "isdefault", "labels", "createdat", "modifiedat"]
    own = ["metaurl", "versionsurl", "versionscount"]
    assert list(registry.get(X).json) == [*names, "ancestorid", "xint", *own]
    inlined = whole(registry, X)
    assert list(inlined)[-5:] == ["metaurl", "meta", "versionsurl", "versions", "versionscount"]
    assert inlined["versions"]["a"] == version_of(X, "a", **attributes)
    assert inlined["meta"]["labels"] == {"of": "meta"}
    registry.patch(f"{X}/meta", {"defaultversionid": "b"})
    shown = registry.get(X).json
    assert (shown["versionid"], shown["createdat"], shown["modifiedat"]) == ("b", at(2001), at(2002))
    assert "labels" not in shown
    assert "xint" not in shown


def test_c_res_02_its_epoch_is_not_that_of_its_meta(registry: Client) -> None:
    registry.put(X, {})
    for _ in range(3):
        registry.patch(f"{X}/meta", {})
    assert (registry.get(X).json["epoch"], registry.get(f"{X}/meta").json["epoch"]) == (1, 4)


def test_c_res_03_the_url_of_the_meta(registry: Client) -> None:
    registry.put(X, {})
    shown = {
        "": f"{BASE}{X}/meta",
        "?inline=meta": f"{BASE}{X}/meta",
        "?doc": f"{BASE}{X}/meta",
        "?doc&inline=meta": "#/meta",
        "?doc&inline=versions": f"{BASE}{X}/meta",
    }
    assert {query: registry.get(f"{X}{query}").json["metaurl"] for query in shown} == shown


def test_c_res_04_without_a_meta_the_meta_stays(registry: Client) -> None:
    registry.put(f"{X}/versions/a", {})
    registry.put(f"{X}/versions/b", {})
    registry.patch(f"{X}/meta", {"labels": {"a": "b"}, "defaultversionid": "a", "deprecated": {}})
    before = registry.get(f"{X}/meta").body
    for method, url, sent in (
        ("PUT", X, {}),
        ("PATCH", X, {"name": "n"}),
        ("POST", "/dirs/d/datas", {"x": {}}),
        ("PATCH", "/dirs/d", {"datas": {"x": {"name": "n"}}}),
        ("PUT", f"{X}/versions/a", {}),
    ):
        assert registry.send(method, url, sent).status == 200
        assert registry.get(f"{X}/meta").body == before, (method, url)


READ_ONLY = {"metaurl": 5, "versionsurl": [], "versionscount": -1, "self": 1, "xid": None, "isdefault": "no"}


@pytest.mark.parametrize("method", WRITES)
def test_c_res_05_what_is_read_only_is_ignored(registry: Client, method: str) -> None:
    assert seen(registry.send(method, X, READ_ONLY).json) == resource_of(X)
    assert seen(registry.send(method, X, READ_ONLY).json) == resource_of(X, epoch=2)
    assert registry.post(X, {**READ_ONLY, "shortself": 5}).status == 201
    nested = {"d": {"datas": {"x": READ_ONLY}}}
    assert registry.post("/dirs", nested).status == 200


def test_a_resource_that_was_read_can_be_written(registry: Client) -> None:
    registry.put(X, {"name": "n", "meta": {"labels": {"a": "b"}}, "versions": {"a": {}, "b": {"xint": 1}}})
    for query in ("", "?inline=meta", "?inline=versions", "?inline=*"):
        shown = registry.get(f"{X}{query}").json
        assert registry.put(f"{X}{query}", shown).status == 200
        for each in ("b", "a"):
            version = registry.get(f"{X}/versions/{each}").json
            assert registry.put(f"{X}/versions/{each}", version).status == 200
    assert default_of(registry, X) == ("b", False)
    assert registry.get(f"{X}/meta").json["labels"] == {"a": "b"}


# -- making one ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("xid", [X, C])
@pytest.mark.parametrize("method", WRITES)
def test_c_res_07_with_nothing(registry: Client, method: str, xid: str) -> None:
    reply = registry.send(method, xid, {})
    assert (reply.status, seen(reply.json)) == (201, resource_of(xid))
    assert reply.headers["Location"] == f"{BASE}{xid}"
    assert reply.headers["Content-Location"] == f"{BASE}{xid}/versions/1"
    expected = {**resource_of(xid), "meta": meta_of(xid), "versions": {"1": version_of(xid, "1")}}
    assert whole(registry, xid) == expected


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize("xid", [X, C])
def test_c_res_08_and_21_versions_alone(registry: Client, method: str, xid: str) -> None:
    sent = {"name": "dropped", "versions": {"c": {}, "B": {}, "a": {}}}
    reply = registry.send(method, xid, sent)
    assert seen(reply.json) == resource_of(xid, "c", 3, ancestorid="B")
    assert lineage(registry, xid) == {"a": "a", "B": "a", "c": "B"}


def test_c_res_08_no_versions_in_an_empty_map(registry: Client) -> None:
    assert seen(registry.put(X, {"name": "kept", "versions": {}}).json) == resource_of(X, name="kept")
    assert seen(registry.put(C, {"name": "kept", "versions": None}).json) == resource_of(C, name="kept")


@pytest.mark.parametrize("method", WRITES)
def test_c_res_09_the_id_of_the_default_version(registry: Client, method: str) -> None:
    registry.send(method, X, {"versionid": "v", "name": "N", "versions": {"a": {}, "w": {}}})
    assert lineage(registry, X) == {"a": "a", "v": "a", "w": "v"}
    assert registry.get(f"{X}/versions/v").json["name"] == "N"
    assert default_of(registry, X) == ("w", False)
    registry.send(method, C, {"versionid": "v", "name": "ignored", "versions": {"v": {"name": "own"}}})
    assert seen(registry.get(C).json) == resource_of(C, "v", name="own")


@pytest.mark.parametrize("sticky", [True, False, None])
def test_c_res_10_and_12_the_default_in_the_meta(registry: Client, sticky: bool | None) -> None:
    meta = {"defaultversionid": "b"} | ({} if sticky is None else {"defaultversionsticky": sticky})
    registry.put(C, {"name": "N", "meta": meta, "versions": {"a": {}, "c": {}}})
    assert lineage(registry, C) == {"a": "a", "b": "a", "c": "b"}
    assert registry.get(f"{C}/versions/b").json["name"] == "N"
    assert default_of(registry, C) == (("b", True) if sticky else ("c", False))
    registry.put(X, {"name": "ignored", "meta": meta, "versions": {"b": {}, "c": {}}})
    assert lineage(registry, X) == {"b": "b", "c": "b"}
    assert "name" not in registry.get(f"{X}/versions/b").json


def test_c_res_11_the_id_is_the_stronger_clue(registry: Client) -> None:
    meta = {"defaultversionid": "a", "defaultversionsticky": True}
    registry.put(X, {"versionid": "v", "name": "N", "meta": meta, "versions": {"a": {}}})
    assert registry.get(f"{X}/versions/v").json["name"] == "N"
    assert default_of(registry, X) == ("a", True)
    both = {"versionid": "v", "meta": {**meta, "defaultversionid": "none"}, "versions": {"a": {}}}
    error = refuses(registry, "PUT", C, both, "unknown_id")
    assert (error["subject"], error["args"]) == (f"{C}/meta", {"id": "none", "singular": "version"})


@pytest.mark.parametrize("method", WRITES)
def test_versions_that_are_null_or_no_map(registry: Client, method: str) -> None:
    registry.put(C, {})
    for versions in ([], "x", 5, {"a": None}, {"a": 5}, {"a": {}, "b": []}):
        code = "bad_request" if isinstance(versions, dict) else "invalid_attribute"
        for path in (X, C):
            refuses(registry, method, path, {"versions": versions}, code)
    assert registry.send(method, X, {"versions": None, "meta": None}).status == 201


# -- changing one -------------------------------------------------------------------------------------------------


def test_c_res_13_attributes_are_those_of_the_default_before(registry: Client) -> None:
    registry.put(C, {"versionid": "v1", "name": "old"})
    meta = {"defaultversionid": "v2", "defaultversionsticky": True}
    registry.put(C, {"name": "new", "meta": meta, "versions": {"v2": {}, "v3": {}}})
    assert registry.get(f"{C}/versions/v1").json["name"] == "new"
    assert "name" not in registry.get(f"{C}/versions/v2").json
    assert default_of(registry, C) == ("v2", True)
    registry.patch(C, {"name": "ignored", "versions": {"v2": {"description": "own"}}})
    shown = registry.get(f"{C}/versions/v2").json
    assert (shown["description"], "name" in shown) == ("own", False)


@pytest.mark.parametrize("url", [X, "/dirs/d/datas", "/dirs/d", "/dirs"])
def test_c_res_13_versions_in_what_is_sent_win(registry: Client, url: str) -> None:
    registry.put(X, {"versionid": "v1"})
    sent: Any = {"dataid": "x", "versionid": "v1", "name": "loses", "versions": {"v1": {"name": "wins"}}}
    for parent, key in (("/dirs/d/datas", "x"), ("/dirs/d", "datas"), ("/dirs", "d")):
        if len(url) <= len(parent):
            sent = {key: sent}
    method = "PUT" if url == X else "POST"
    assert registry.send(method, url, sent).status == 200
    assert seen(registry.get(X).json) == resource_of(X, "v1", epoch=2, name="wins")


def test_c_res_14_put_of_nothing_clears(registry: Client) -> None:
    registry.put(f"{X}/versions/a", {})
    first = {"createdat": at(2001), "modifiedat": at(2002), "name": "n", "labels": {"a": "b"}, "xobj": {"a": "b"}}
    registry.put(f"{X}/versions/b", {**first, "ancestorid": "b"})
    registry.patch(f"{X}/meta", {"defaultversionid": "b"})
    meta, other = registry.get(f"{X}/meta").body, registry.get(f"{X}/versions/a").body
    reply = registry.put(X, {})
    assert (reply.status, seen(reply.json)) == (200, resource_of(X, "b", 2, epoch=2, createdat=at(2001)))
    assert "Location" not in reply.headers
    assert (registry.get(f"{X}/meta").body, registry.get(f"{X}/versions/a").body) == (meta, other)


def test_c_res_14_and_keeps_a_document(registry: Client) -> None:
    registry.put(F, b"abc", content_type="text/plain")
    assert "contenttype" not in registry.put(f"{F}$details", {}).json
    assert registry.get(F).body == b"abc"


def test_c_res_15_patch_of_nothing_is_a_touch(registry: Client) -> None:
    attributes = {"createdat": at(2001), "name": "n", "labels": {"a": "b"}}
    registry.put(X, {**attributes, "modifiedat": at(2002)})
    meta = registry.get(f"{X}/meta").body
    assert seen(registry.patch(X, {}).json) == resource_of(X, epoch=2, **attributes)
    assert registry.get(f"{X}/meta").body == meta


@pytest.mark.parametrize("sticky", [False, None])
def test_c_res_16_a_default_that_is_not_there_and_not_sticky(registry: Client, sticky: bool | None) -> None:
    registry.put(C, {"versionid": "v"})
    meta = {"defaultversionid": "none"} | ({} if sticky is None else {"defaultversionsticky": sticky})
    for url, sent in ((C, {"meta": meta}), (f"{C}/meta", meta)):
        assert registry.put(url, sent).status == 200
        assert default_of(registry, C) == ("v", False)


def test_c_res_17_and_18_a_default_that_is_not_there(registry: Client) -> None:
    registry.put(C, {"versionid": "v"})
    named = {"defaultversionid": "none"}
    sticky = {**named, "defaultversionsticky": True}
    for method, url, sent in (
        ("PATCH", C, {"meta": named}),
        ("PATCH", f"{C}/meta", named),
        ("PATCH", "/dirs/d", {"cats": {"x": {"meta": named}}}),
        ("PUT", C, {"meta": sticky}),
        ("PUT", f"{C}/meta", sticky),
        ("PATCH", f"{C}/meta", sticky),
        ("POST", "/dirs/d/cats", {"x": {"meta": sticky, "versions": {"None": {}}}}),
    ):
        error = refuses(registry, method, url, sent, "unknown_id")
        assert (error["status"], error["subject"], error["args"]["id"]) == (400, f"{C}/meta", "none")


def test_c_res_19_sticky_without_an_id(registry: Client) -> None:
    registry.post(f"{C}/versions", {"v1": {"createdat": at(2001)}, "v2": {"createdat": at(2002)}})
    registry.patch(f"{C}/meta", {"defaultversionid": "v1"})
    for url, sent in ((f"{C}/meta", {"defaultversionsticky": True}), (C, {"meta": {"defaultversionsticky": True}})):
        registry.patch(f"{C}/meta", {"defaultversionid": "v1"})
        assert registry.put(url, sent).status == 200
        assert default_of(registry, C) == ("v2", True)


def test_c_res_20_and_amb_10_a_patch_that_makes_it_sticky(registry: Client) -> None:
    registry.put(C, {"versionid": "v1", "createdat": at(2003)})
    sent = {"meta": {"defaultversionsticky": True}, "versions": {"v2": {"createdat": at(2002)}}}
    assert registry.patch(C, sent).status == 200
    assert default_of(registry, C) == ("v1", True)
    registry.patch(f"{C}/meta", {"defaultversionsticky": False})
    later = {"meta": {"defaultversionsticky": True}, "versions": {"v4": {"createdat": at(2004)}}}
    registry.patch(C, later)
    assert default_of(registry, C) == ("v1", True)


@pytest.mark.parametrize(
    ("xid", "ancestors"), [(C, {"v0": "v1", "v1": "v1", "v2": "v0"}), (X, {"v0": "v0", "v1": "v0", "v2": "v1"})]
)
def test_amb_11_new_versions_and_a_sticky_default(registry: Client, xid: str, ancestors: dict[str, str]) -> None:
    """Under createdat the older Version is the root; by hand it is chained to the newest."""
    registry.put(xid, {"versionid": "v0", "createdat": at(2002)})
    meta = {"defaultversionid": "v1", "defaultversionsticky": True}
    versions = {"v1": {"createdat": at(2001)}, "v2": {"createdat": at(2003)}}
    assert registry.put(xid, {"meta": meta, "versions": versions}).status == 200
    assert lineage(registry, xid) == ancestors
    assert default_of(registry, xid) == ("v1", True)


# -- the order of things ------------------------------------------------------------------------------------------


def test_c_res_06_the_result_of_all_steps(registry: Client) -> None:
    """Versions, then the default Version's attributes, then ancestors, meta, the default, and last their number."""
    xid = "/dirs/d/caps/x"
    registry.put(f"{xid}/versions/a$details", {"name": "first"})
    sent = {"name": "second", "meta": {"labels": {"m": "1"}}, "versions": {"b": {}, "c": {}, "d": {}}}
    assert registry.put(f"{xid}$details", sent).status == 200
    assert lineage(registry, xid) == {"c": "c", "d": "c"}
    assert default_of(registry, xid) == ("d", False)
    assert registry.get(f"{xid}/meta").json["epoch"] == 2
    sent = {"name": "third", "meta": {"defaultversionid": "c"}, "versions": {"e": {}, "f": {}}}
    assert registry.patch(f"{xid}$details", sent).status == 200
    assert lineage(registry, xid) == {"c": "c", "f": "f"}
    assert default_of(registry, xid) == ("c", True)
    assert registry.get(f"{xid}/versions/d").status == 404


def test_c_res_06_a_default_among_those_that_are_made(registry: Client) -> None:
    sent = {"meta": {"defaultversionid": "b", "defaultversionsticky": True}, "versions": {"b": {}, "c": {}}}
    assert registry.put(X, sent).json["versionid"] == "b"
    flag = {"meta": {"defaultversionid": "b", "defaultversionsticky": True}}
    assert registry.put(f"{X}?setdefaultversionid=c", flag).json["versionid"] == "c"
