"""Cross-references: Resources that show another. The rows of the checklist by their ids."""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.answers import meta_of, refuses, resource_of, seen, version_of
from tests.httpapi.conftest import BASE, Client

D = "/dirs/d/datas"
T, X = f"{D}/t", f"{D}/x"
REFERENCE = {"meta": {"xref": T}}
NOWHERE = {"dataid": "x", "self": X, "xid": X, "metaurl": f"{X}/meta"}


@pytest.fixture
def target(registry: Client) -> Client:
    """A registry with a Resource that is referred to, and nothing else."""
    versions = {"a": {"xint": 1}, "b": {"name": "B", "labels": {"v": "1"}}}
    registry.put(T, {"versions": versions, "meta": {"labels": {"m": "1"}, "defaultversionid": "b"}})
    return registry


def moved(value: Any) -> Any:
    """What the target shows, as the source must show it."""
    if isinstance(value, dict):
        return {name: moved(each) for name, each in value.items()}
    if isinstance(value, str) and (value == T or value.startswith(f"{T}/")):
        return X + value.removeprefix(T)
    return "x" if value == "t" else value


# -- reading ------------------------------------------------------------------------------------------------------


def test_c_xref_01_and_02_all_of_the_target_under_its_own_ids(target: Client) -> None:
    reply = target.put(X, REFERENCE)
    assert (reply.status, reply.headers["Location"]) == (201, f"{BASE}{X}")
    assert seen(reply.json) == moved(seen(target.get(T).json))
    shown, expected = seen(target.get(f"{X}?inline=*").json), moved(seen(target.get(f"{T}?inline=*").json))
    assert shown["meta"].pop("xref") == T
    assert shown == expected
    assert shown["versions"]["b"]["self"] == shown["meta"]["defaultversionurl"] == f"{X}/versions/b"
    assert list(target.get(f"{X}/meta").json)[:4] == ["dataid", "self", "xid", "xref"]
    for path in ("/versions", "/versions/a", "/versions/b"):
        assert seen(target.get(f"{X}{path}").json) == moved(seen(target.get(f"{T}{path}").json))
    assert target.get(f"{X}/versions/c").error == (404, "not_found", f"{X}/versions/c")


def test_c_xref_02_documents(registry: Client) -> None:
    f, g = "/dirs/d/files/f", "/dirs/d/files/g"
    registry.put(f, b"abc", content_type="text/plain", xregistry_name="n")
    registry.put(f"{g}$details", {"meta": {"xref": f}})
    for path in ("", "/versions/1"):
        reply = registry.get(f"{g}{path}")
        assert (reply.status, reply.body, reply.headers["Content-Type"]) == (200, b"abc", "text/plain")
        assert reply.headers["xRegistry-self"] == f"{BASE}{g}{path}"
        assert reply.headers["xRegistry-fileid"] == reply.headers["Content-Disposition"] == "g"
        assert reply.headers["Content-Location"] == f"{BASE}{g}/versions/1"
        assert registry.get(f"{g}{path}$details").json["self"] == f"{BASE}{g}{path}$details"
    assert registry.get(f"{g}$details?inline=file").json["file"] == "abc"
    assert registry.get(f"{g}/meta").json["defaultversionurl"] == f"{BASE}{g}/versions/1$details"
    registry.put(f"{f}$details", {"fileurl": "http://h/x"})
    assert (registry.get(g).status, registry.get(g).headers["Location"]) == (303, "http://h/x")


def test_c_xref_03_reading_is_as_of_any_resource(target: Client) -> None:
    target.put(X, REFERENCE)
    for query, found in {
        "filter=name=B": {"t", "x"},
        "filter=labels.v=1": {"t", "x"},
        "filter=meta.labels.m=1": {"t", "x"},
        "filter=versions.xint=1": {"t", "x"},
        f"filter=meta.xref={T}": {"x"},
        "filter=meta.xref=null": {"t"},
        "filter=dataid=x": {"x"},
        "filter=xid=/dirs/d/datas/x": {"x"},
        "sort=name": {"t", "x"},
        "sort=name=desc&limit=1": {"x"},
    }.items():
        assert target.get(f"{D}?{query}").json.keys() == found, query
    shown = target.get("/?filter=dirs.datas.versions.xint=1&inline=*").json["dirs"]["d"]["datas"]["x"]
    assert (list(shown["versions"]), shown["versionscount"]) == (["a"], 1)
    assert target.get(f"{X}?filter=name=B").status == 200
    assert target.get(f"{X}?filter=name=A").status == 404
    assert target.get("/dirs/d").json["datascount"] == 2


def test_c_xref_03_changes_show_at_once(target: Client) -> None:
    target.put(X, REFERENCE)
    for method, path, sent in (
        ("PATCH", "", {"name": "new"}),
        ("POST", "", {"name": "third"}),
        ("PATCH", "/meta", {"defaultversionid": "a", "labels": {"m": "2"}}),
        ("DELETE", "/versions/a", None),
    ):
        target.send(method, f"{T}{path}", sent)
        expected = moved(seen(target.get(f"{T}?inline=*").json))
        expected["meta"]["xref"] = T
        assert seen(target.get(f"{X}?inline=*").json) == expected


def test_c_xref_09_a_target_that_is_not_there(registry: Client) -> None:
    nowhere = {"dataid": "x", "self": f"{X}/meta", "xid": f"{X}/meta", "xref": T}
    assert seen(registry.put(X, REFERENCE).json) == NOWHERE
    assert seen(registry.get(f"{X}/meta").json) == nowhere
    assert seen(registry.get(f"{X}?inline=*").json) == {**NOWHERE, "meta": nowhere}
    assert seen(registry.get(D).json) == {"x": NOWHERE}
    assert (registry.get(f"{X}/versions").status, registry.get(f"{X}/versions").json) == (200, {})
    assert registry.get(f"{X}/versions/1").error == (404, "not_found", f"{X}/versions/1")
    assert registry.get("/dirs/d").json["datascount"] == 1
    for elsewhere in ("/dirs/none/datas/t", f"{D}/T", X):
        registry.put(f"{X}/meta", {"xref": elsewhere})
        assert seen(registry.get(f"{X}/meta").json) == {**nowhere, "xref": elsewhere}
    registry.put(f"{X}/meta", {"xref": T})
    registry.put(T, {"name": "late"})
    assert seen(registry.get(X).json) == resource_of(X, name="late")


def test_c_xref_10_it_does_not_go_further(target: Client) -> None:
    target.put(f"{D}/s", REFERENCE)
    target.put(X, {"meta": {"xref": f"{D}/s"}})
    assert seen(target.get(X).json) == NOWHERE
    assert set(target.get(f"{X}/meta").json) == {"dataid", "self", "xid", "xref"}


def test_c_xref_13_what_is_deleted(target: Client) -> None:
    target.put(X, REFERENCE)
    before = target.get(f"{T}?inline=*").body
    assert target.delete(X).status == 204
    assert (target.get(X).status, target.get(f"{T}?inline=*").body) == (404, before)
    target.put(X, REFERENCE)
    assert target.delete(T).status == 204
    assert seen(target.get(X).json) == NOWHERE
    assert target.delete(X).status == 204
    target.put("/dirs/e/datas/x", REFERENCE)
    target.put(T, {})
    target.delete("/dirs/d")
    assert target.get("/dirs/e/datas/x").json.keys() == NOWHERE.keys()


# -- writing ------------------------------------------------------------------------------------------------------


def test_c_xref_04_a_source_is_not_written(target: Client) -> None:
    target.put(X, REFERENCE)
    meta = {"xref": T}
    for method, path, sent, name in (
        ("PUT", X, {"name": "n"}, "name"),
        ("PATCH", X, {"labels": {}}, "labels"),
        ("PUT", X, {"versions": {}}, "versions"),
        ("PUT", X, {**REFERENCE, "versions": {"a": {}}}, "versions"),
        ("PUT", X, {**REFERENCE, "epoch": 1}, "epoch"),
        ("PUT", X, {"meta": {**meta, "epoch": 1}}, "epoch"),
        ("PUT", f"{X}/meta", {**meta, "labels": {}}, "labels"),
        ("PATCH", f"{X}/meta", {"defaultversionid": "a"}, "defaultversionid"),
        ("PATCH", f"{X}/meta", {"deprecated": {}}, "deprecated"),
        ("PATCH", f"{X}?setdefaultversionid=a", {}, "defaultversionid"),
        ("PUT", f"{D}/new", {**REFERENCE, "name": "n"}, "name"),
        ("PUT", T, {**REFERENCE, "name": "n"}, "name"),
    ):
        error = refuses(target, method, path, sent, "extra_xref_attribute")
        xid = path.removesuffix("/meta").partition("?")[0]
        assert (error["status"], error["subject"], error["args"]) == (400, xid, {"name": name, "singular": "data"})
    nested = {"datas": {"x": {**REFERENCE, "name": "n"}}}
    refuses(target, "POST", "/dirs/d", nested, "extra_xref_attribute")
    refuses(target, "PUT", "/dirs/d", nested, "extra_xref_attribute")


def test_c_xref_04_nor_what_is_below_it(target: Client) -> None:
    target.put(X, REFERENCE)
    for method, path, sent in (
        ("PUT", "/versions/a", {}),
        ("PATCH", "/versions/a", {"name": "n"}),
        ("PUT", "/versions/new", {}),
        ("DELETE", "/versions/a", None),
        ("POST", "/versions", {"a": {}}),
        ("PATCH", "/versions", {"a": {}}),
        ("DELETE", "/versions", None),
        ("DELETE", "/versions", {"a": {}}),
        ("POST", "", {}),
        ("POST", "", {"versionid": "a"}),
    ):
        assert refuses(target, method, f"{X}{path}", sent, "bad_request")["status"] == 400


def test_c_xref_04_documents_are_attributes(registry: Client) -> None:
    f, g = "/dirs/d/files/f", "/dirs/d/files/g"
    registry.put(f, b"abc")
    registry.put(f"{g}$details", {"meta": {"xref": f}})
    assert refuses(registry, "PUT", g, b"x", "extra_xref_attribute")["args"]["name"] == "file"
    refuses(registry, "PUT", g, b"", "extra_xref_attribute", content_type="text/plain")
    refuses(registry, "PUT", g, b"", "extra_xref_attribute", xregistry_name="n")
    refuses(registry, "PUT", f"{g}$details", {"file": 1}, "extra_xref_attribute")


def test_c_xref_04_ids_and_the_epoch_of_what_it_was(target: Client) -> None:
    target.put(X, {})
    target.patch(f"{X}/meta", {})
    refuses(target, "PUT", X, {"meta": {"xref": T, "epoch": 1}}, "mismatched_epoch")
    refuses(target, "PUT", X, {"dataid": "y", **REFERENCE}, "mismatched_id")
    refuses(target, "PUT", X, {"meta": {"xref": T, "dataid": "y"}}, "mismatched_id")
    sent = {"dataid": "x", "meta": {"dataid": "x", "xref": T, "epoch": 2}}
    assert target.put(X, sent).json["name"] == "B"
    for again in (REFERENCE, {"dataid": "x", **REFERENCE}, {}):
        assert target.put(X, again).json["name"] == "B"


def test_c_xref_05_its_own_versions_go(target: Client) -> None:
    target.put(X, {"name": "old", "versions": {"v1": {}, "v2": {}}, "meta": {"labels": {"own": "1"}}})
    assert target.patch(X, REFERENCE).status == 200
    assert target.get(f"{X}/versions").json.keys() == {"a", "b"}
    assert target.get(f"{X}/meta").json["labels"] == {"m": "1"}
    for path in ("v1", "v2"):
        assert target.get(f"{X}/versions/{path}").status == 404


@pytest.mark.parametrize(
    ("method", "path", "sent"),
    [
        ("PUT", f"{X}/meta", {}),
        ("PUT", f"{X}/meta", {"xref": None}),
        ("PATCH", f"{X}/meta", {"xref": None}),
        ("PUT", X, {"meta": {}}),
        ("PUT", X, {"meta": None}),
        ("PATCH", X, {"meta": {"xref": None}}),
        ("POST", D, {"x": {"meta": {"xref": None}}}),
    ],
)
def test_c_xref_06_back_again(target: Client, method: str, path: str, sent: Any) -> None:
    target.put(X, {"name": "old", "versions": {"v1": {}}, "meta": {"labels": {"own": "1"}}})
    target.put(X, REFERENCE)
    before = target.get(f"{T}?inline=*").body
    assert target.send(method, path, sent).status == 200
    meta = meta_of(X, epoch=target.get(f"{T}/meta").json["epoch"] + 1)
    fresh = {**resource_of(X), "meta": meta, "versions": {"1": version_of(X, "1")}}
    assert seen(target.get(f"{X}?inline=*").json) == fresh
    assert target.get(f"{T}?inline=*").body == before
    target.patch(T, {"name": "changed"})
    assert "name" not in target.get(X).json


def test_c_xref_06_with_what_is_sent(target: Client) -> None:
    target.put(X, REFERENCE)
    sent = {"versionid": "v", "name": "N", "meta": {"labels": {"a": "b"}}, "versions": {"w": {}}}
    assert target.put(X, sent).status == 200
    assert target.get(f"{X}/versions").json.keys() == {"v", "w"}
    assert target.get(f"{X}/versions/v").json["name"] == "N"
    assert target.get(f"{X}/meta").json["labels"] == {"a": "b"}


def test_c_xref_07_and_08_times_and_epochs(target: Client) -> None:
    target.put(X, {"meta": {"createdat": "2001-01-01T00:00:00Z", "modifiedat": "2002-01-01T00:00:00Z"}})
    target.patch(f"{X}/meta", {})
    for raised in (0, 5):
        for _ in range(raised):
            target.patch(f"{T}/meta", {})
        own, other = target.get(f"{X}/meta").json["epoch"], target.get(f"{T}/meta").json["epoch"]
        target.put(X, REFERENCE)
        meta = seen(target.patch(f"{X}/meta", {"xref": None}).json)
        expected = meta_of(X, epoch=max(own, other) + 1, createdat="2001-01-01T00:00:00Z")
        default = ("defaultversionid", "defaultversionurl")
        assert meta | dict.fromkeys(default) == expected | dict.fromkeys(default)
    target.put(X, REFERENCE)
    target.delete(T)
    assert target.put(f"{X}/meta", {}).json["epoch"] == meta["epoch"] + 1
    target.put(X, {"meta": {"xref": T}})
    times = {"createdat": "2003-01-01T00:00:00Z", "modifiedat": "2004-01-01T00:00:00Z"}
    assert target.put(f"{X}/meta", times).json.items() >= times.items()


@pytest.mark.parametrize("xref", ["", "x", "/dirs", "/nope/d/datas/t", "/dirs/d/files/f", f"{T}/meta", 5, {}])
def test_c_xref_11_and_12_what_cannot_be_referred_to(registry: Client, xref: Any) -> None:
    for method, path, sent in (("PUT", X, {"meta": {"xref": xref}}), ("PATCH", f"{X}/meta", {"xref": xref})):
        error = refuses(registry, method, path, sent, "malformed_xref")
        assert (error["status"], error["subject"]) == (400, path)
        assert error["args"]["xref"] == (xref if isinstance(xref, str) else "")


def test_c_xref_11_the_form_of_an_xid(target: Client) -> None:
    forms = (f"{T}/", T[1:], f"{T}$details", f"{T}/versions/a", f"{BASE}{T}", "/dirs/d/datas/-t", "/DIRS/d/datas/t")
    for xref in (*forms, "/dirs/d/datas", f"{T}/versions", "/dirs/d", "/", "/dirs//datas/t", f"{T} "):
        refuses(target, "PUT", X, {"meta": {"xref": xref}}, "malformed_xref")


def test_c_xref_12_the_same_type_in_another_group(registry: Client) -> None:
    registry.put("/dirs/d/files/t", b"abc")
    assert registry.put("/boxes/b/files/s$details", {"meta": {"xref": "/dirs/d/files/t"}}).status == 201
    assert registry.get("/boxes/b/files/s").body == b"abc"
    registry.put("/boxes/b/files/own", b"box")
    assert registry.put("/dirs/d/files/back$details", {"meta": {"xref": "/boxes/b/files/own"}}).status == 201
    assert registry.get("/dirs/d/files/back").body == b"box"
    refuses(registry, "PUT", X, {"meta": {"xref": "/dirs/d/cats/c"}}, "malformed_xref")


def test_automatic_version_ids_continue_after_a_cross_reference(target: Client) -> None:
    for _ in range(3):
        target.post(X, {})
    for expected in ("4", "5"):
        assert target.put(X, REFERENCE).status == 200
        assert target.put(X, {"meta": {}}).json["versionid"] == expected
    assert target.post(X, {}).json["versionid"] == "6"
    target.put(f"{X}/versions/7", {})
    assert target.post(X, {}).json["versionid"] == "8"
    target.delete(X)
    target.put(X, REFERENCE)
    assert target.put(X, {"meta": {}}).json["versionid"] == "1"
