"""The meta of a Resource and its default Version. The rows of the checklist by their ids."""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.answers import default_of, meta_of, refuses, resource_of, seen, version_of
from tests.httpapi.conftest import BASE, FIXTURE, Client

D = "/dirs/d/datas"
X = f"{D}/x"


def model_with(singular: str, **aspects: Any) -> dict[str, Any]:
    """The model of the tests, and a type of Resources more."""
    dirs = FIXTURE["groups"]["dirs"]
    more = {f"{singular}s": {"singular": singular, "hasdocument": False, **aspects}}
    return {"groups": {"dirs": {**dirs, "resources": {**dirs["resources"], **more}}}}


# -- the entity ---------------------------------------------------------------------------------------------------


def test_c_meta_01(registry: Client) -> None:
    registry.put(X, {})
    reply = registry.get(f"{X}/meta")
    assert (reply.status, seen(reply.json)) == (200, meta_of(X))
    names = ["dataid", "self", "xid", "epoch", "createdat", "modifiedat", "readonly"]
    names += ["defaultversionid", "defaultversionurl", "defaultversionsticky"]
    assert list(reply.json) == names


def test_c_meta_02_put_replaces_and_patch_changes(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {"name": "n"}, "b": {}})
    before = registry.get(f"{X}/versions").body
    first = {"labels": {"a": "1", "b": "2"}, "deprecated": {"effective": "2001-01-01T00:00:00Z"}}
    meta = {**first, "createdat": "2002-01-01T00:00:00Z", "compatibility": "full"}
    reply = registry.put(f"{X}/meta", meta)
    assert (reply.status, seen(reply.json)) == (200, meta_of(X, "b", epoch=2, **meta))
    meta["labels"] = {"c": "3"}
    reply = registry.patch(f"{X}/meta", {"labels": {"c": "3"}, "compatibility": None})
    del meta["compatibility"]
    assert (reply.status, seen(reply.json)) == (200, meta_of(X, "b", epoch=3, **meta))
    assert seen(registry.patch(f"{X}/meta", {}).json) == meta_of(X, "b", epoch=4, **meta)
    created = {"createdat": meta["createdat"]}
    assert seen(registry.put(f"{X}/meta", {}).json) == meta_of(X, "b", epoch=5, **created)
    assert registry.get(f"{X}/versions").body == before
    assert "Location" not in reply.headers


def test_c_meta_02_in_its_resource(registry: Client) -> None:
    registry.put(X, {"name": "n", "meta": {"labels": {"a": "1"}, "deprecated": {}}})
    assert seen(registry.patch(X, {"meta": {"labels": {"b": "2"}}}).json) == resource_of(X, epoch=2, name="n")
    labels: dict[str, Any] = {"labels": {"b": "2"}}
    assert seen(registry.get(f"{X}/meta").json) == meta_of(X, epoch=2, deprecated={}, **labels)
    assert registry.put(X, {"name": "n", "meta": labels}).status == 200
    assert seen(registry.get(f"{X}/meta").json) == meta_of(X, epoch=3, **labels)
    registry.patch("/dirs/d", {"datas": {"x": {"meta": {"deprecated": {}}}}})
    assert seen(registry.get(f"{X}/meta").json) == meta_of(X, epoch=4, deprecated={}, **labels)
    registry.patch(X, {"meta": None})
    assert seen(registry.get(f"{X}/meta").json) == meta_of(X, epoch=5, deprecated={}, **labels)


def test_c_meta_03_it_is_not_deleted(registry: Client) -> None:
    registry.put(X, {})
    for method in ("DELETE", "POST"):
        reply = registry.send(method, f"{X}/meta", {})
        assert reply.error == (405, "action_not_supported", f"{X}/meta")
        assert reply.headers["Allow"] == "GET, OPTIONS, PATCH, PUT"
        assert reply.json["args"] == {"action": method}


def test_c_meta_04_its_epoch(registry: Client) -> None:
    registry.put(X, {})
    registry.patch(f"{X}/meta", {})
    for method, url, sent in (
        ("PUT", f"{X}/meta", {"epoch": 1}),
        ("PATCH", f"{X}/meta", {"epoch": 3}),
        ("PUT", X, {"epoch": 1, "meta": {"epoch": 1}}),
        ("POST", D, {"x": {"meta": {"epoch": 1}}}),
    ):
        error = refuses(registry, method, url, sent, "mismatched_epoch")
        wrong = str((sent.get("x") or sent).get("meta", sent)["epoch"])  # type: ignore[union-attr]
        assert (error["subject"], error["args"]) == (f"{X}/meta", {"bad_epoch": wrong, "epoch": "2"})
    for wrong in ("2", -1, 1.5, True):
        refuses(registry, "PATCH", f"{X}/meta", {"epoch": wrong}, "invalid_attribute")
    assert registry.patch(f"{X}/meta", {"epoch": 2}).json["epoch"] == 3
    assert registry.patch(f"{X}/meta", {"epoch": None}).json["epoch"] == 4
    assert registry.patch(f"{X}/meta?ignore=epoch", {"epoch": 1}).json["epoch"] == 5
    assert registry.get(X).json["epoch"] == 1


def test_c_meta_05_extensions(registry: Client) -> None:
    meta = {"xm": {"type": "string", "required": True, "default": "d"}, "xn": {"type": "integer"}}
    registry.put("/modelsource", model_with("thing", metaattributes=meta))
    xid = "/dirs/d/things/x"
    registry.put(xid, {})
    assert seen(registry.get(f"{xid}/meta").json) == meta_of(xid, xm="d")
    assert seen(registry.patch(f"{xid}/meta", {"xn": 5}).json) == meta_of(xid, epoch=2, xm="d", xn=5)
    assert seen(registry.put(f"{xid}/meta", {"xm": "e"}).json) == meta_of(xid, epoch=3, xm="e")
    for sent in ({"zz": 1}, {"name": "n"}, {"zz": None}, {"versionid": "1"}):
        error = refuses(registry, "PATCH", f"{xid}/meta", sent, "unknown_attribute")
        assert (error["subject"], error["args"]) == (f"{xid}/meta", {"name": next(iter(sent))})
    refuses(registry, "PUT", xid, {"meta": {"zz": 1}}, "unknown_attribute")
    refuses(registry, "PUT", xid, {"xn": 1}, "unknown_attribute")
    refuses(registry, "PATCH", f"{xid}/meta", {"xn": "5"}, "invalid_attribute")


def test_c_meta_06_and_amb_14_compatibility(registry: Client) -> None:
    registry.put(X, {})
    for value in ("backward", "FULL_transitive", "Forward"):
        assert registry.patch(f"{X}/meta", {"compatibility": value}).json["compatibility"] == value
    for bad in ("none", "", "sideways", 5):
        error = refuses(registry, "PUT", f"{X}/meta", {"compatibility": bad}, "invalid_attribute")
        assert (error["subject"], error["args"]["name"]) == (f"{X}/meta", "compatibility")
    refuses(registry, "PUT", X, {"compatibility": "full"}, "unknown_attribute")
    assert "compatibility" not in registry.patch(f"{X}/meta", {"compatibility": None}).json


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_c_meta_07_it_makes_its_resource(registry: Client, method: str) -> None:
    reply = registry.send(method, f"{X}/meta", {"labels": {"a": "b"}})
    assert (reply.status, reply.headers["Location"]) == (201, f"{BASE}{X}/meta")
    assert seen(reply.json) == meta_of(X, labels={"a": "b"})
    assert seen(registry.get(f"{X}/versions").json) == {"1": version_of(X, "1")}
    refuses(registry, "PATCH", f"{D}/y/meta", {"defaultversionid": "v"}, "unknown_id")
    assert registry.put(f"{D}/y/meta", {"defaultversionid": "v"}).json["defaultversionid"] == "1"


def test_meta_is_alone_in_its_resource(registry: Client) -> None:
    registry.put(X, {})
    for sent in ({"meta": 5}, {"meta": []}, {"meta": "x"}):
        error = refuses(registry, "PUT", X, sent, "invalid_attribute")
        assert error["args"]["name"] == "meta"
    refuses(registry, "PUT", f"{X}/meta", {"dataid": "y"}, "mismatched_id")
    refuses(registry, "PUT", X, {"meta": {"dataid": "X"}}, "mismatched_id")
    assert registry.put(f"{X}/meta?ignore=id", {"dataid": "y"}).status == 200
    assert registry.get(f"{X}/meta/x").error == (404, "not_found", f"{X}/meta/x")
    assert registry.put(f"{X}/meta").error == (400, "missing_body", f"{X}/meta")


# -- the default Version ------------------------------------------------------------------------------------------


def test_c_def_01_the_newest(registry: Client) -> None:
    registry.put(f"{X}/versions/a", {})
    assert default_of(registry, X) == ("a", False)
    for id_ in ("b", "c"):
        registry.put(f"{X}/versions/{id_}", {})
        assert default_of(registry, X) == (id_, False)
    registry.delete(f"{X}/versions/c")
    assert default_of(registry, X) == ("b", False)
    registry.patch(f"{X}/versions", {"a": {"ancestorid": "b"}, "b": {"ancestorid": "b"}})
    assert default_of(registry, X) == ("a", False)
    assert [each["isdefault"] for each in registry.get(f"{X}/versions").json.values()] == [True, False]
    registry.delete(f"{X}/versions/b")
    assert default_of(registry, X) == ("a", False)


def test_c_def_01_a_default_that_moves_is_an_update_of_the_meta(registry: Client) -> None:
    xid = "/dirs/d/cats/x"
    for id_, year in (("a", 2001), ("b", 2002)):
        registry.put(f"{xid}/versions/{id_}", {"createdat": f"{year}-01-01T00:00:00Z"})
    epoch = registry.get(f"{xid}/meta").json["epoch"]
    registry.patch(f"{xid}/versions/a", {"createdat": "2003-01-01T00:00:00Z"})
    meta = registry.get(f"{xid}/meta").json
    assert (meta["defaultversionid"], meta["epoch"]) == ("a", epoch + 1)
    registry.patch(f"{xid}/versions/a", {"name": "n"})
    assert registry.get(f"{xid}/meta").json["epoch"] == epoch + 1


def test_c_def_02_and_03_sticky(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    assert registry.patch(f"{X}/meta", {"defaultversionid": "a"}).json["defaultversionsticky"] is True
    registry.put(f"{X}/versions/c", {})
    assert default_of(registry, X) == ("a", True)
    registry.delete(f"{X}/versions/b")
    assert default_of(registry, X) == ("a", True)
    registry.delete(f"{X}/versions/a")
    assert default_of(registry, X) == ("c", False)


def test_c_def_04_patch_of_the_id_makes_it_sticky(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}, "c": {}})
    chosen = {"epoch": 2, "defaultversionsticky": True}
    assert seen(registry.patch(f"{X}/meta", {"defaultversionid": "b"}).json) == meta_of(X, "b", **chosen)
    assert registry.patch(X, {"meta": {"defaultversionid": "a"}}).json["versionid"] == "a"
    registry.patch(D, {"x": {"meta": {"defaultversionid": "c"}}})
    assert default_of(registry, X) == ("c", True)
    registry.patch(f"{X}/meta", {"defaultversionid": "c"})
    assert default_of(registry, X) == ("c", True)


def test_c_def_04_versions_stay_as_they_are(registry: Client) -> None:
    """Only isdefault differs, which is not an update."""
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    before = registry.get(f"{X}/versions").json
    for id_ in ("a", "b", None):
        registry.patch(f"{X}/meta", {"defaultversionid": id_})
        shown = registry.get(f"{X}/versions").json
        default = shown.pop("a") if id_ == "a" else shown.pop("b")
        assert default.pop("isdefault") is True
        assert default == {name: value for name, value in before[default["versionid"]].items() if name != "isdefault"}


def test_c_def_05_null_lets_it_go(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    registry.patch(f"{X}/meta", {"defaultversionid": "a"})
    assert seen(registry.patch(f"{X}/meta", {"defaultversionid": None}).json) == meta_of(X, "b", epoch=3)
    registry.patch(f"{X}/meta", {"defaultversionid": "a"})
    registry.patch(X, {"meta": {"defaultversionid": None}})
    assert default_of(registry, X) == ("b", False)


def test_c_def_06_put_without_sticky(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    registry.patch(f"{X}/meta", {"defaultversionid": "a"})
    assert seen(registry.put(f"{X}/meta", {"defaultversionid": "a"}).json) == meta_of(X, "b", epoch=3)
    registry.patch(f"{X}/meta", {"defaultversionid": "a"})
    assert registry.put(X, {"meta": {"defaultversionid": "a"}}).json["versionid"] == "b"


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_c_def_07_sticky_null_is_false(registry: Client, method: str) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    for sent in ({"defaultversionsticky": None}, {"defaultversionid": "a", "defaultversionsticky": None}):
        registry.patch(f"{X}/meta", {"defaultversionid": "a"})
        assert registry.send(method, f"{X}/meta", sent).json["defaultversionsticky"] is False
        assert default_of(registry, X) == ("b", False)
    for wrong in ("true", 1, "True", {}):
        refuses(registry, method, f"{X}/meta", {"defaultversionsticky": wrong}, "invalid_attribute")


def test_c_def_08_a_version_of_the_same_request(registry: Client) -> None:
    registry.put(X, {})
    sticky = {"defaultversionid": "new", "defaultversionsticky": True}
    assert registry.put(X, {"meta": sticky, "versions": {"new": {}, "newer": {}}}).json["versionid"] == "new"
    assert default_of(registry, X) == ("new", True)
    registry.patch(X, {"meta": {"defaultversionid": "last"}, "versions": {"last": {}}})
    assert default_of(registry, X) == ("last", True)
    assert registry.put(f"{X}/versions/v?setdefaultversionid=v", {}).json["isdefault"] is True
    for id_ in ("Last", "none"):
        refuses(registry, "PATCH", X, {"meta": {"defaultversionid": id_}, "versions": {"z": {}}}, "unknown_id")


def test_c_def_09_one_version_is_not_sticky(registry: Client) -> None:
    xid = "/dirs/d/ones/x"
    registry.put(xid, b"")
    sticky = {"defaultversionsticky": True}
    for method, url, sent in (
        ("PUT", f"{xid}/meta", sticky),
        ("PATCH", f"{xid}/meta", sticky),
        ("PATCH", f"{xid}/meta", {"defaultversionid": "1"}),
        ("PATCH", f"{xid}$details", {"meta": sticky}),
        ("PATCH", f"{xid}$details?setdefaultversionid=1", {}),
        ("POST", f"{xid}$details?setdefaultversionid=request", {}),
        ("PUT", "/dirs/d/ones/new$details", {"meta": sticky}),
    ):
        error = refuses(registry, method, url, sent, "setdefaultversionsticky_false")
        assert error["subject"] == ("/dirs/d/ones/new" if "new" in url else xid)
    assert registry.patch(f"{xid}/meta?setdefaultversionid=null", {}).status == 200
    assert registry.patch(f"{xid}/meta", {"defaultversionsticky": False}).status == 200


def test_c_def_10_a_model_with_one_version(registry: Client) -> None:
    model = model_with("thing", maxversions=0)
    registry.put("/modelsource", model)
    xid = "/dirs/d/things/x"
    registry.put(xid, {})
    registry.patch(f"{xid}/meta", {"defaultversionid": "1"})
    error = refuses(
        registry, "PUT", "/modelsource", model_with("thing", maxversions=1), "setdefaultversionsticky_false"
    )
    assert error["subject"] == xid
    registry.patch(f"{xid}/meta", {"defaultversionid": None})
    assert registry.put("/modelsource", model_with("thing", maxversions=1)).status == 200


@pytest.mark.parametrize("pinned", [True, False])
def test_c_def_11_a_model_that_says_which(registry: Client, pinned: bool) -> None:
    aspects = {"type": "boolean", "enum": [pinned], "required": True, "default": pinned}
    registry.put("/modelsource", model_with("thing", metaattributes={"defaultversionsticky": aspects}))
    xid = "/dirs/d/things/x"
    registry.put(xid, {})
    assert default_of(registry, xid) == ("1", pinned)
    registry.post(xid, {})
    assert default_of(registry, xid) == ("1" if pinned else "2", pinned)
    for method in ("PUT", "PATCH"):
        error = refuses(registry, method, f"{xid}/meta", {"defaultversionsticky": not pinned}, "invalid_attribute")
        assert (error["subject"], error["args"]["name"]) == (f"{xid}/meta", "defaultversionsticky")
        assert registry.send(method, f"{xid}/meta", {"defaultversionsticky": pinned}).status == 200
        assert registry.send(method, f"{xid}/meta", {}).json["defaultversionsticky"] is pinned


def test_c_def_12_its_url(registry: Client) -> None:
    registry.put("/dirs/d/files/f", b"")
    url = registry.get("/dirs/d/files/f/meta").json["defaultversionurl"]
    assert url == f"{BASE}/dirs/d/files/f/versions/1$details"
    assert registry.get(url).json["self"] == url
    registry.put(X, {})
    assert registry.patch(f"{X}/meta", {"defaultversionurl": 5}).json["defaultversionurl"] == f"{BASE}{X}/versions/1"


# -- the flag -----------------------------------------------------------------------------------------------------


def test_c_sdv(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    assert registry.patch(f"{X}?setdefaultversionid=a", {}).status == 200
    assert default_of(registry, X) == ("a", True)
    assert registry.patch(f"{X}/meta?setdefaultversionid=null", {}).json["defaultversionid"] == "b"
    assert registry.post(f"{X}?setdefaultversionid=request", {}).json["versionid"] == "1"
    assert default_of(registry, X) == ("1", True)
    assert registry.delete(f"{X}/versions/1?setdefaultversionid=a").status == 204
    assert default_of(registry, X) == ("a", True)


@pytest.mark.parametrize(
    ("method", "url", "sent", "code"),
    [
        ("PATCH", f"{X}?setdefaultversionid=z", {}, "unknown_id"),
        ("PATCH", f"{X}?setdefaultversionid=", {}, "bad_defaultversionid"),
        ("PATCH", f"{X}?setdefaultversionid=a&setdefaultversionid=b", {}, "bad_defaultversionid"),
        ("PATCH", f"{X}?setdefaultversionid=request", {}, "bad_flag"),
        ("POST", f"{X}/versions?setdefaultversionid=request", {"p": {}, "q": {}}, "too_many_versions"),
        ("POST", f"{X}/versions?setdefaultversionid=request", {}, "defaultversionid_request"),
        ("POST", f"{D}?setdefaultversionid=a", {"x": {}}, "bad_flag"),
        ("DELETE", f"{X}/versions/a?setdefaultversionid=a", None, "bad_request"),
    ],
)
def test_c_sdv_errors(registry: Client, method: str, url: str, sent: Any, code: str) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    assert refuses(registry, method, url, sent, code)["status"] == 400
