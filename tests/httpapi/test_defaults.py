"""The default Version of a Resource, and the flag that chooses it. The rows of the checklist by their ids."""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.answers import default_of, meta_of, refuses, seen
from tests.httpapi.conftest import BASE, Client, model_with

D = "/dirs/d/datas"
X = f"{D}/x"


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
    model = model_with("things", maxversions=0)
    registry.put("/modelsource", model)
    xid = "/dirs/d/things/x"
    registry.put(xid, {})
    registry.patch(f"{xid}/meta", {"defaultversionid": "1"})
    error = refuses(
        registry, "PUT", "/modelsource", model_with("things", maxversions=1), "setdefaultversionsticky_false"
    )
    assert error["subject"] == xid
    registry.patch(f"{xid}/meta", {"defaultversionid": None})
    assert registry.put("/modelsource", model_with("things", maxversions=1)).status == 200


@pytest.mark.parametrize("pinned", [True, False])
def test_c_def_11_a_model_that_says_which(registry: Client, pinned: bool) -> None:
    aspects = {"type": "boolean", "enum": [pinned], "required": True, "default": pinned}
    registry.put("/modelsource", model_with("things", metaattributes={"defaultversionsticky": aspects}))
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
        flag = f"{xid}/meta?setdefaultversionid={'null' if pinned else '1'}"
        error = refuses(registry, method, flag, {}, "invalid_attribute")
        assert (error["subject"], error["args"]["name"]) == (f"{xid}/meta", "defaultversionsticky")


def test_c_def_11_a_sticky_default_that_is_deleted(registry: Client) -> None:
    aspects = {"type": "boolean", "enum": [True], "required": True, "default": True}
    registry.put("/modelsource", model_with("things", metaattributes={"defaultversionsticky": aspects}))
    xid = "/dirs/d/things/x"
    registry.post(f"{xid}/versions", {"a": {}, "b": {}, "c": {}})
    assert registry.patch(f"{xid}/meta", {"defaultversionid": "b"}).status == 200
    registry.delete(f"{xid}/versions/b")
    assert default_of(registry, xid) == ("c", True)
    assert registry.patch(f"{xid}/meta", {}).status == 200


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
    assert registry.delete(f"{X}/versions?setdefaultversionid=b", {}).status == 204
    assert default_of(registry, X) == ("b", True)
    assert registry.patch(f"{X}/versions?setdefaultversionid=null", {}).json == {}
    assert default_of(registry, X) == ("b", False)


def test_c_sdv_is_stronger_than_what_is_sent(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    sent = {"defaultversionid": "none", "defaultversionsticky": True}
    assert registry.put(f"{X}/meta?setdefaultversionid=a", sent).json["defaultversionid"] == "a"
    registry.put(f"{X}?setdefaultversionid=null", {"meta": sent})
    assert default_of(registry, X) == ("b", False)
    registry.put(f"{D}/new?setdefaultversionid=v1", {"versions": {"v1": {}, "v2": {}}})
    assert default_of(registry, f"{D}/new") == ("v1", True)
    registry.post(f"{D}/more/versions?setdefaultversionid=v1", {"v1": {}, "v2": {}})
    assert default_of(registry, f"{D}/more") == ("v1", True)


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
        ("DELETE", f"{X}/versions/a?setdefaultversionid=a", None, "unknown_id"),
        ("DELETE", f"{X}/versions/a?setdefaultversionid=A", None, "unknown_id"),
        ("DELETE", f"{X}/versions?setdefaultversionid=z", None, "unknown_id"),
        ("DELETE", f"{X}/versions?setdefaultversionid=z", {"a": {}, "b": {}}, "unknown_id"),
        ("PUT", f"{D}/new?setdefaultversionid=z", {}, "unknown_id"),
        ("POST", f"{D}/new?setdefaultversionid=z", {}, "unknown_id"),
    ],
)
def test_c_sdv_errors(registry: Client, method: str, url: str, sent: Any, code: str) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    assert refuses(registry, method, url, sent, code)["status"] == 400
