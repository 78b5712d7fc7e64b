"""Versions, the default Version, meta and cross-references. The rows of the checklist by their ids."""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.conftest import BASE, Client

X = "/dirs/d/datas/x"


def versions(registry: Client, path: str = X) -> dict[str, str]:
    """Each Version with its ancestor."""
    return {id_: each["ancestorid"] for id_, each in registry.get(f"{path}/versions").json.items()}


def default(registry: Client, path: str = X) -> tuple[str, bool]:
    meta = registry.get(f"{path}/meta").json
    return meta["defaultversionid"], meta["defaultversionsticky"]


def test_c_ver_02_one_is_the_default(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}, "c": {}})
    shown = registry.get(f"{X}/versions").json
    assert {id_: each["isdefault"] for id_, each in shown.items()} == {"a": False, "b": False, "c": True}


def test_c_ver_04_the_name_of_ancestors(registry: Client) -> None:
    assert registry.put(X, {"ancestor": "1"}).error[1] == "unknown_attribute"


def test_c_ver_06_ancestors_exist(registry: Client) -> None:
    assert registry.put(f"{X}/versions/a", {"ancestorid": "z"}).error == (400, "unknown_id", X)
    registry.put(f"{X}/versions/a", {})
    assert registry.put(f"{X}/versions/b", {"ancestorid": "A"}).error[1] == "unknown_id"


def test_c_ver_07_circles(registry: Client) -> None:
    reply = registry.post(f"{X}/versions", {"a": {"ancestorid": "b"}, "b": {"ancestorid": "a"}})
    assert reply.error == (400, "ancestor_circular_reference", X)
    assert reply.json["args"]["list"] == "a, b"


def test_c_ver_09_request_makes_a_root(registry: Client) -> None:
    registry.put(X, {})
    assert registry.post(X, {"ancestorid": "request"}).json["ancestorid"] == "2"


def test_c_ver_11_and_12_manual(registry: Client) -> None:
    registry.post(f"{X}/versions", {"c": {}, "a": {}, "b": {}})
    assert versions(registry) == {"a": "a", "b": "a", "c": "b"}
    epoch = registry.get(f"{X}/versions/c").json["epoch"]
    registry.delete(f"{X}/versions/b")
    assert versions(registry) == {"a": "a", "c": "c"}
    assert registry.get(f"{X}/versions/c").json["epoch"] == epoch + 1


def test_c_ver_13_createdat(registry: Client) -> None:
    path = "/dirs/d/cats/x"
    times = {"a": "2003", "b": "2001", "c": "2002"}
    registry.post(f"{path}/versions", {id_: {"createdat": f"{y}-01-01T00:00:00Z"} for id_, y in times.items()})
    assert versions(registry, path) == {"a": "c", "b": "b", "c": "b"}
    assert default(registry, path) == ("a", False)
    registry.patch(f"{path}/versions/b", {"createdat": "2005-01-01T00:00:00Z"})
    assert versions(registry, path) == {"a": "c", "b": "a", "c": "c"}
    assert default(registry, path) == ("b", False)
    registry.delete(f"{path}/versions/a")
    assert versions(registry, path) == {"b": "c", "c": "c"}


def test_c_ver_14_semver(registry: Client) -> None:
    path = "/dirs/d/sems/x"
    registry.post(f"{path}/versions", {id_: {} for id_ in ("1.0.10", "1.0.0", "1.0.0-rc.1", "1.0.9")})
    expected = {"1.0.0": "1.0.0-rc.1", "1.0.0-rc.1": "1.0.0-rc.1", "1.0.10": "1.0.9", "1.0.9": "1.0.0"}
    assert versions(registry, path) == expected
    assert default(registry, path) == ("1.0.10", False)


def test_c_ver_18_too_many(registry: Client) -> None:
    path = "/dirs/d/caps/x"
    for id_ in ("a", "b", "c"):
        registry.put(f"{path}/versions/{id_}", b"")
    assert list(versions(registry, path)) == ["b", "c"]
    registry.patch(f"{path}/meta", {"defaultversionid": "b"})
    registry.put(f"{path}/versions/d", b"")
    assert list(versions(registry, path)) == ["b", "d"]


def test_c_ver_19_one(registry: Client) -> None:
    path = "/dirs/d/ones/x"
    registry.put(f"{path}/versions/a", b"")
    registry.put(f"{path}/versions/b", b"")
    assert versions(registry, path) == {"b": "b"}
    assert registry.patch(f"{path}/meta", {"defaultversionsticky": True}).error[1] == "setdefaultversionsticky_false"


def test_c_id_10_ids_that_the_server_chooses(registry: Client) -> None:
    path = "/dirs/d/svids/x"
    assert registry.put(f"{path}/versions/a", b"").error == (400, "versionid_not_allowed", path)
    assert registry.put(path, b"").status == 201
    assert registry.put(f"{path}/versions/1", b"").status == 200


@pytest.mark.parametrize("id_", ["null", "request", "-a", "a b", "a" * 129])
def test_c_id_02_and_06_ids_that_are_none(registry: Client, id_: str) -> None:
    assert registry.post(f"{X}/versions", {id_: {}}).error[:2] == (400, "malformed_id")


def test_c_def_02_and_03_sticky(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    assert registry.patch(f"{X}/meta", {"defaultversionid": "a"}).json["defaultversionsticky"] is True
    registry.put(f"{X}/versions/c", {})
    assert default(registry) == ("a", True)
    registry.delete(f"{X}/versions/a")
    assert default(registry) == ("c", False)


def test_c_def_05_null_lets_it_go(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    registry.patch(f"{X}/meta", {"defaultversionid": "a"})
    registry.patch(f"{X}/meta", {"defaultversionid": None})
    assert default(registry) == ("b", False)


def test_c_def_06_put_without_sticky(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    assert registry.put(f"{X}/meta", {"defaultversionid": "a"}).status == 200
    assert default(registry) == ("b", False)


def test_c_def_12_its_url(registry: Client) -> None:
    registry.put("/dirs/d/files/f", b"")
    url = registry.get("/dirs/d/files/f/meta").json["defaultversionurl"]
    assert url == f"{BASE}/dirs/d/files/f/versions/1$details"
    assert registry.get(url).json["self"] == url


def test_c_sdv(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    assert registry.patch(f"{X}?setdefaultversionid=a", {}).status == 200
    assert default(registry) == ("a", True)
    assert registry.patch(f"{X}/meta?setdefaultversionid=null", {}).json["defaultversionid"] == "b"
    assert registry.post(f"{X}?setdefaultversionid=request", {}).json["versionid"] == "1"
    assert default(registry) == ("1", True)
    assert registry.delete(f"{X}/versions/1?setdefaultversionid=a").status == 204
    assert default(registry) == ("a", True)


@pytest.mark.parametrize(
    ("method", "url", "sent", "code"),
    [
        ("PATCH", f"{X}?setdefaultversionid=z", {}, "unknown_id"),
        ("PATCH", f"{X}?setdefaultversionid=", {}, "bad_defaultversionid"),
        ("PATCH", f"{X}?setdefaultversionid=a&setdefaultversionid=b", {}, "bad_defaultversionid"),
        ("PATCH", f"{X}?setdefaultversionid=request", {}, "bad_flag"),
        ("POST", f"{X}/versions?setdefaultversionid=request", {"p": {}, "q": {}}, "too_many_versions"),
        ("POST", f"{X}/versions?setdefaultversionid=request", {}, "defaultversionid_request"),
        ("POST", "/dirs/d/datas?setdefaultversionid=a", {"x": {}}, "bad_flag"),
        ("DELETE", f"{X}/versions/a?setdefaultversionid=a", None, "bad_request"),
    ],
)
def test_c_sdv_errors(registry: Client, method: str, url: str, sent: Any, code: str) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    before = registry.get("/export").body
    assert registry.send(method, url, sent).error[:2] == (400, code)
    assert registry.get("/export").body == before


def test_c_meta_01(registry: Client) -> None:
    registry.put(X, {})
    names = ["dataid", "self", "xid", "epoch", "createdat", "modifiedat", "readonly"]
    names += ["defaultversionid", "defaultversionurl", "defaultversionsticky"]
    assert list(registry.get(f"{X}/meta").json) == names


def test_c_meta_03_it_is_not_deleted(registry: Client) -> None:
    registry.put(X, {})
    for method in ("DELETE", "POST"):
        reply = registry.send(method, f"{X}/meta", {})
        assert reply.error == (405, "action_not_supported", f"{X}/meta")
        assert "PATCH" in reply.headers["Allow"]


def test_c_meta_07_it_makes_its_resource(registry: Client) -> None:
    reply = registry.put(f"{X}/meta", {})
    assert (reply.status, reply.headers["Location"]) == (201, f"{BASE}{X}/meta")
    assert list(versions(registry)) == ["1"]


def test_c_xref_05_to_08_there_and_back(registry: Client) -> None:
    registry.put("/dirs/d/datas/t", {})
    for _ in range(5):
        registry.patch("/dirs/d/datas/t/meta", {})
    made = registry.put(X, {"name": "old", "versions": {"a": {}, "b": {}}}).json
    created = registry.get(f"{X}/meta").json["createdat"]
    assert registry.put(f"{X}/meta", {"xref": "/dirs/d/datas/t"}).status == 200
    assert list(versions(registry)) == ["1"]
    reply = registry.put(X, {"name": "new", "meta": {}})
    assert (reply.status, reply.json["name"], reply.json["versionid"]) == (200, "new", "1")
    meta = registry.get(f"{X}/meta").json
    assert (meta["epoch"], meta["createdat"], "xref" in meta) == (7, created, False)
    assert made["name"] == "old" if "name" in made else True


def test_c_xref_04_a_source_is_not_written(registry: Client) -> None:
    registry.put("/dirs/d/datas/t", {})
    registry.put(X, {"meta": {"xref": "/dirs/d/datas/t"}})
    for method, path, sent in (
        ("PUT", X, {"name": "n"}),
        ("PUT", X, {"versions": {}}),
        ("PUT", f"{X}/meta", {"xref": "/dirs/d/datas/t", "labels": {}}),
    ):
        assert registry.send(method, path, sent).error[:2] == (400, "extra_xref_attribute"), path
    for method, path in (("PUT", f"{X}/versions/1"), ("POST", X), ("DELETE", f"{X}/versions/1")):
        assert registry.send(method, path, {}).error[0] == 400, path


def test_c_xref_10_it_does_not_go_further(registry: Client) -> None:
    registry.put("/dirs/d/datas/t", {})
    registry.put("/dirs/d/datas/s", {"meta": {"xref": "/dirs/d/datas/t"}})
    registry.put(X, {"meta": {"xref": "/dirs/d/datas/s"}})
    assert set(registry.get(X).json) == {"dataid", "self", "xid", "metaurl"}
    assert set(registry.get(f"{X}/meta").json) == {"dataid", "self", "xid", "xref"}


@pytest.mark.parametrize("xref", ["", "x", "/dirs", "/nope/d/datas/t", "/dirs/d/files/f", "/dirs/d/datas/t/meta", 5])
def test_c_xref_11_and_12_what_cannot_be_referred_to(registry: Client, xref: Any) -> None:
    assert registry.put(X, {"meta": {"xref": xref}}).error == (400, "malformed_xref", X)


def test_c_xref_12_the_same_type_in_another_group(registry: Client) -> None:
    registry.put("/dirs/d/files/t", b"abc")
    assert registry.put("/boxes/b/files/s$details", {"meta": {"xref": "/dirs/d/files/t"}}).status == 201
    assert registry.get("/boxes/b/files/s").body == b"abc"


def test_c_docv(registry: Client) -> None:
    registry.put("/dirs/d/files/f", b"{}", content_type="application/json")
    shown = registry.get("/dirs/d/files/f?doc&inline=*").json
    assert set(shown) == {
        "fileid",
        "self",
        "xid",
        "metaurl",
        "meta",
        "versionsurl",
        "versions",
        "versionscount",
    }
    assert (shown["self"], shown["metaurl"]) == ("#/", "#/meta")
    assert shown["meta"]["defaultversionurl"] == "#/versions/1" == shown["versions"]["1"]["self"]
    group = registry.get("/dirs/d?doc&inline=files").json
    assert group["files"]["f"]["self"] == "#/files/f"
    assert group["files"]["f"]["metaurl"] == f"{BASE}/dirs/d/files/f/meta"
    assert registry.get("/dirs/d/files?doc").json["f"]["self"] == "#/f"
    registry.put("/dirs/d/files/s$details", {"meta": {"xref": "/dirs/d/files/f"}})
    assert registry.get("/dirs/d/files/s/versions?doc").error == (400, "cannot_doc_xref", "/dirs/d/files/s")


def test_c_time(registry: Client) -> None:
    registry.put(X, {"createdat": "2001-01-01T02:00:00+02:00", "modifiedat": "2002-01-01T00:00:00Z"})
    shown = registry.get(X).json
    assert (shown["createdat"], shown["modifiedat"]) == ("2001-01-01T00:00:00Z", "2002-01-01T00:00:00Z")
    again = registry.put(X, {"modifiedat": "2002-01-01T00:00:00Z"}).json
    assert again["createdat"] == "2001-01-01T00:00:00Z"
    assert again["modifiedat"] > "2026"
    assert registry.patch(X, {"createdat": None}).json["createdat"] > "2026"
