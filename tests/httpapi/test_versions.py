"""Versions: their lineage by each mode, how many there are, what they share. The rows of the checklist by their ids."""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.answers import default_of, lineage, refuses, resource_of, seen, version_of
from tests.httpapi.conftest import BASE, Client, model_with

X = "/dirs/d/datas/x"


def at(year: int) -> str:
    return f"{year}-01-01T00:00:00Z"


# -- how they are shown -------------------------------------------------------------------------------------------


def test_c_ver_01_and_03_what_a_version_shows(registry: Client) -> None:
    reply = registry.put(f"{X}/versions/a", {"isdefault": False, "self": 5, "xid": "/", "epoch": 7})
    assert (reply.status, seen(reply.json)) == (201, version_of(X, "a"))
    assert reply.headers["Location"] == reply.headers["Content-Location"] == f"{BASE}{X}/versions/a"
    registry.put(f"{X}/versions/b", {"name": "B", "xint": 5, "createdat": at(2100)})
    first, second = version_of(X, "a", isdefault=False), version_of(X, "b", name="B", xint=5, ancestorid="a")
    second["createdat"] = at(2100)
    assert seen(registry.get(f"{X}/versions").json) == {"a": first, "b": second}
    assert seen(registry.get(f"{X}/versions/a").json) == first
    names = ["dataid", "versionid", "self", "xid", "epoch", "name", "isdefault", "createdat", "modifiedat"]
    assert list(registry.get(f"{X}/versions/b").json) == [*names, "ancestorid", "xint"]
    for sent in ({"isdefault": True}, {"isdefault": "yes"}, {"isdefault": None}):
        assert registry.patch(f"{X}/versions/a", sent).json["isdefault"] is False
    assert default_of(registry, X) == ("b", False)


def test_c_ver_01_of_a_type_with_documents(registry: Client) -> None:
    path = "/dirs/d/files/x/versions/a"
    shown = registry.put(f"{path}$details", {"contenttype": "text/plain", "format": "F/1"}).json
    names = ["fileid", "versionid", "self", "xid", "epoch", "isdefault", "createdat", "modifiedat", "ancestorid"]
    assert list(shown) == [*names, "contenttype", "format"]
    assert (shown["self"], shown["xid"]) == (f"{BASE}{path}$details", path)


def test_c_ver_23_extensions_are_on_versions_and_their_resource(registry: Client) -> None:
    registry.put(f"{X}/versions/a", {"xint": 1, "xmap": {"k": "v"}})
    registry.put(f"{X}/versions/b", {"xint": 2})
    registry.put(X, {"xint": 3, "xobj": {"n": 1}})
    assert seen(registry.get(f"{X}/versions/a").json)["xmap"] == {"k": "v"}
    shown = {"epoch": 2, "xint": 3, "xobj": {"n": 1}, "ancestorid": "a"}
    assert seen(registry.get(f"{X}/versions/b").json) == version_of(X, "b", **shown)
    assert seen(registry.get(X).json) == resource_of(X, "b", 2, **shown)
    registry.delete(f"{X}/versions/b")
    assert registry.get(X).json["xint"] == 1


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
    assert lineage(registry, X) == {"a": "a", "b": "a", "c": "b"}
    epoch = registry.get(f"{X}/versions/c").json["epoch"]
    registry.delete(f"{X}/versions/b")
    assert lineage(registry, X) == {"a": "a", "c": "c"}
    assert registry.get(f"{X}/versions/c").json["epoch"] == epoch + 1


def test_c_ver_13_createdat(registry: Client) -> None:
    path = "/dirs/d/cats/x"
    times = {"a": "2003", "b": "2001", "c": "2002"}
    registry.post(f"{path}/versions", {id_: {"createdat": f"{y}-01-01T00:00:00Z"} for id_, y in times.items()})
    assert lineage(registry, path) == {"a": "c", "b": "b", "c": "b"}
    assert default_of(registry, path) == ("a", False)
    registry.patch(f"{path}/versions/b", {"createdat": "2005-01-01T00:00:00Z"})
    assert lineage(registry, path) == {"a": "c", "b": "a", "c": "c"}
    assert default_of(registry, path) == ("b", False)
    registry.delete(f"{path}/versions/a")
    assert lineage(registry, path) == {"b": "c", "c": "c"}


def test_c_ver_14_semver(registry: Client) -> None:
    path = "/dirs/d/sems/x"
    registry.post(f"{path}/versions", {id_: {} for id_ in ("1.0.10", "1.0.0", "1.0.0-rc.1", "1.0.9")})
    expected = {"1.0.0": "1.0.0-rc.1", "1.0.0-rc.1": "1.0.0-rc.1", "1.0.10": "1.0.9", "1.0.9": "1.0.0"}
    assert lineage(registry, path) == expected
    assert default_of(registry, path) == ("1.0.10", False)


NOT_SEMVER = ["notsemver", "1", "1.0", "v1.0.0", "1.0.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0-a..b", "1.0.0-a_b"]


@pytest.mark.parametrize("id_", NOT_SEMVER)
def test_id_that_is_no_semantic_version_is_rejected_in_semver_mode(registry: Client, id_: str) -> None:
    path = "/dirs/d/sems/x"
    registry.put(path, {})
    for method, url, sent in (
        ("PUT", f"{path}/versions/{id_}", {}),
        ("PATCH", f"{path}/versions", {"1.2.0": {}, id_: {}}),
        ("POST", path, {"versionid": id_}),
        ("PATCH", path, {"versions": {id_: {}}}),
        ("PUT", "/dirs/d/sems/new", {"versionid": id_}),
        ("PUT", "/dirs/d/sems/new", {"meta": {"defaultversionid": id_}}),
        ("POST", "/", {"dirs": {"d": {"sems": {"new": {"versions": {id_: {}}}}}}}),
    ):
        error = refuses(registry, method, url, sent, "malformed_id")
        assert (error["status"], error["args"]["id"]) == (400, id_)
        assert "MAJOR.MINOR.PATCH, for example 1.0.0" in error["args"]["error_detail"]


@pytest.mark.parametrize("id_", ["0.0.0", "1.0.0-rc.1", "10.20.30", "1.0.0-0.3.7", "1.0.0-x-y-z.--", "1.0.0-0a.00a"])
def test_semantic_version_is_accepted_in_semver_mode(registry: Client, id_: str) -> None:
    assert registry.put(f"/dirs/d/sems/x/versions/{id_}", {}).status == 201


def test_automatic_id_in_semver_mode_is_the_next_minor_version(registry: Client) -> None:
    path = "/dirs/d/sems/x"

    def new() -> str:
        return str(registry.post(path, {}).json["versionid"])

    assert [registry.put(path, {}).json["versionid"], new(), new()] == ["1.0.0", "1.1.0", "1.2.0"]
    for id_, following in (("1.2.7", "1.3.0"), ("2.0.0-rc.1", "2.0.0"), ("2.4.1-rc.1", "2.5.0"), ("0.9.0", "2.6.0")):
        registry.put(f"{path}/versions/{id_}", {})
        assert new() == following
        assert default_of(registry, path) == (following, False)
    registry.delete(f"{path}/versions", {"2.6.0": {}, "2.5.0": {}})
    assert new() == "2.7.0"
    registry.put(f"{path}/versions/3.0.0", {})
    assert new() == "3.1.0"
    registry.put(f"{path}/versions/99999999999999999999.0.0", {})
    assert new() == "99999999999999999999.1.0"


@pytest.mark.parametrize("aspects", [{}, {"hasdocument": True}, {"setversionid": False}])
def test_automatic_ids_follow_the_versionmode_when_it_changes(registry: Client, aspects: dict[str, Any]) -> None:
    path = "/dirs/d/datas/x"

    def change(mode: str) -> None:
        model = model_with("datas", versionmode=mode, singleversionroot=True, **aspects)
        assert registry.put("/modelsource", model).status == 200

    def new() -> str:
        return registry.post(f"{path}$details", {}).json["versionid"]

    assert registry.put("/modelsource", model_with("datas", **aspects)).status == 200
    assert (new(), new()) == ("1", "2")
    change("semver")
    assert (new(), new()) == ("2.1.0", "2.2.0")
    assert lineage(registry, path) == {"1": "1", "2": "1", "2.1.0": "2", "2.2.0": "2.1.0"}
    change("createdat")
    assert new() == "3"


def test_c_ver_18_too_many(registry: Client) -> None:
    path = "/dirs/d/caps/x"
    for id_ in ("a", "b", "c"):
        registry.put(f"{path}/versions/{id_}", b"")
    assert list(lineage(registry, path)) == ["b", "c"]
    registry.patch(f"{path}/meta", {"defaultversionid": "b"})
    registry.put(f"{path}/versions/d", b"")
    assert list(lineage(registry, path)) == ["b", "d"]


def test_c_ver_19_a_new_version_takes_the_place(registry: Client) -> None:
    path = "/dirs/d/ones/x"
    registry.put(path, b"")
    registry.put(f"{path}/versions/old$details", {"createdat": at(2001), "ancestorid": "old"})
    assert lineage(registry, path) == {"old": "old"}
    registry.post(f"{path}$details", {"createdat": at(2000), "ancestorid": "request"})
    assert lineage(registry, path) == {"2": "2"}
    registry.post(f"{path}/versions", {"b": {}, "a": {"createdat": at(1999)}})
    assert lineage(registry, path) == {"b": "b"}
    assert default_of(registry, path) == ("b", False)
    registry.put(f"{path}$details", {"name": "of b, which goes", "versions": {"c": {}}})
    assert (lineage(registry, path), registry.get(f"{path}/versions/b").status) == ({"c": "c"}, 404)


def test_c_ver_19_one(registry: Client) -> None:
    path = "/dirs/d/ones/x"
    registry.put(f"{path}/versions/a", b"")
    registry.put(f"{path}/versions/b", b"")
    assert lineage(registry, path) == {"b": "b"}
    assert registry.patch(f"{path}/meta", {"defaultversionsticky": True}).error[1] == "setdefaultversionsticky_false"


# -- ids ---------------------------------------------------------------------------------------------------------


def test_c_id_10_ids_that_the_server_chooses(registry: Client) -> None:
    path = "/dirs/d/svids/x"
    assert registry.put(f"{path}/versions/a", b"").error == (400, "versionid_not_allowed", path)
    assert registry.put(path, b"").status == 201
    assert registry.put(f"{path}/versions/1", b"").status == 200


@pytest.mark.parametrize("id_", ["null", "request", "-a", "a b", "a" * 129])
def test_c_id_02_and_06_ids_that_are_none(registry: Client, id_: str) -> None:
    assert registry.post(f"{X}/versions", {id_: {}}).error[:2] == (400, "malformed_id")


# -- who is whose ancestor ----------------------------------------------------------------------------------------


def test_c_ver_05_a_root_is_its_own_ancestor(registry: Client) -> None:
    registry.put(f"{X}/versions/a", {})
    registry.put(f"{X}/versions/b", {"ancestorid": "b"})
    registry.put(f"{X}/versions/c", {"ancestorid": "a"})
    assert lineage(registry, X) == {"a": "a", "b": "b", "c": "a"}
    registry.patch(f"{X}/versions/c", {"ancestorid": "c"})
    assert lineage(registry, X)["c"] == "c"
    for wrong in ("", 5, ["a"]):
        refuses(registry, "PATCH", f"{X}/versions/c", {"ancestorid": wrong}, "invalid_attribute")


def test_c_ver_11_those_that_name_an_ancestor_beside_those_that_do_not(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {"ancestorid": "b"}, "b": {}, "c": {"ancestorid": "a"}})
    assert lineage(registry, X) == {"a": "b", "b": "b", "c": "a"}
    registry.post(f"{X}/versions", {"d": {}, "e": {"ancestorid": "b"}, "f": {"ancestorid": "d"}, "g": {}})
    assert lineage(registry, X) == {"a": "b", "b": "b", "c": "a", "d": "e", "e": "b", "f": "d", "g": "d"}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_c_ver_08_without_an_ancestor_it_stays(registry: Client, method: str) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}, "c": {"ancestorid": "a"}})
    for sent in ({}, {"name": "n"}):
        assert registry.send(method, f"{X}/versions/c", sent).json["ancestorid"] == "a"
        assert registry.send(method, X, sent).json["ancestorid"] == "a"
    collection = "POST" if method == "PUT" else "PATCH"
    assert registry.send(collection, f"{X}/versions", {"c": {}}).json["c"]["ancestorid"] == "a"


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_null_ancestor_makes_an_existing_version_follow_the_newest_other(registry: Client, method: str) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}, "c": {"ancestorid": "a"}})
    sent = {"createdat": at(2001), "ancestorid": None}
    assert registry.send(method, f"{X}/versions/a", sent).json["ancestorid"] == "a"
    assert lineage(registry, X) == {"a": "a", "b": "a", "c": "a"}
    assert registry.send(method, f"{X}/versions/c", {"ancestorid": None}).json["ancestorid"] == "b"
    assert registry.send(method, X, {"ancestorid": None}).json["ancestorid"] == "b"
    registry.post(f"{X}/versions", {"d": {"ancestorid": "b", "createdat": at(2000)}})
    assert registry.send(method, f"{X}/versions/d", {"createdat": at(2000), "ancestorid": None}).json["ancestorid"] == (
        "c"
    )


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_null_ancestors_of_existing_versions_are_chained_by_creation_then_id(registry: Client, method: str) -> None:
    created = {"a": 2003, "B": 2001, "c": 2001, "d": 2000}
    registry.post(f"{X}/versions", {id_: {"createdat": at(year)} for id_, year in created.items()})
    assert lineage(registry, X) == {"a": "a", "B": "a", "c": "B", "d": "c"}
    epochs = {id_: each["epoch"] for id_, each in registry.get(f"{X}/versions").json.items()}
    unset = {id_: {"createdat": at(year), "ancestorid": None} for id_, year in created.items()}
    registry.send(method, f"{X}/versions", unset)
    assert lineage(registry, X) == {"d": "d", "B": "d", "c": "B", "a": "c"}
    found = registry.get(f"{X}/versions").json
    assert {id_: each["epoch"] - epochs[id_] for id_, each in found.items()} == dict.fromkeys(created, 1)
    assert default_of(registry, X) == ("a", False)


def test_null_ancestors_of_existing_versions_come_before_new_versions(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "m": {}})
    registry.post(f"{X}/versions", {"z": {"createdat": at(1999)}, "b": {}, "m": {"ancestorid": None}})
    assert lineage(registry, X) == {"a": "a", "m": "a", "b": "m", "z": "b"}


def test_null_ancestor_of_a_version_with_descendants_makes_no_circle(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}, "c": {}})
    registry.post(f"{X}/versions", {"a": {"ancestorid": None}, "b": {"ancestorid": None}})
    assert lineage(registry, X) == {"a": "a", "b": "a", "c": "b"}
    registry.delete(f"{X}/versions", {"a": {}, "c": {}})
    assert registry.patch(f"{X}/versions/b", {"ancestorid": None}).json["ancestorid"] == "b"


def test_c_ver_10_the_newest_is_a_leaf(registry: Client) -> None:
    registry.put(f"{X}/versions/a", {"createdat": at(2009)})
    registry.put(f"{X}/versions/b", {"createdat": at(2001)})
    assert default_of(registry, X) == ("b", False)
    registry.put(f"{X}/versions/c", {"createdat": at(2000), "ancestorid": "a"})
    assert default_of(registry, X) == ("b", False)
    registry.put(f"{X}/versions/D", {"createdat": at(2001), "ancestorid": "a"})
    assert default_of(registry, X) == ("D", False)
    assert registry.put(f"{X}/versions/e", {}).json["ancestorid"] == "D"
    registry.put(f"{X}/versions/f", {"createdat": at(1999), "ancestorid": "f"})
    assert default_of(registry, X) == ("e", False)


def test_c_ver_10_the_oldest_is_a_root(registry: Client) -> None:
    path = "/dirs/d/caps/x"
    registry.put(f"{path}/versions/b$details", {"createdat": at(2005)})
    registry.put(f"{path}/versions/a$details", {"createdat": at(2001)})
    registry.put(f"{path}/versions/c$details", {})
    assert lineage(registry, path) == {"a": "a", "c": "a"}
    registry.put(f"{path}/versions/B$details", {"ancestorid": "B", "createdat": at(2001)})
    assert list(lineage(registry, path)) == ["B", "c"]


def test_c_ver_12_an_ancestor_among_others_is_deleted(registry: Client) -> None:
    registry.post(
        f"{X}/versions", {"a": {}, "b": {"ancestorid": "a"}, "c": {"ancestorid": "a"}, "d": {"ancestorid": "c"}}
    )
    registry.delete(f"{X}/versions", {"a": {}})
    assert lineage(registry, X) == {"b": "b", "c": "c", "d": "c"}
    epochs = {id_: each["epoch"] for id_, each in registry.get(f"{X}/versions").json.items()}
    assert epochs == {"b": 2, "c": 2, "d": 1}


# -- how many there are -------------------------------------------------------------------------------------------


def test_c_ver_17_one_root(registry: Client) -> None:
    registry.put("/modelsource", model_with("datas", singleversionroot=True))
    registry.post(f"{X}/versions", {"a": {}, "b": {}, "c": {"ancestorid": "a"}})
    for method, url, sent in (
        ("PUT", f"{X}/versions/d", {"ancestorid": "d"}),
        ("PATCH", f"{X}/versions/b", {"ancestorid": "b"}),
        ("POST", X, {"ancestorid": "request"}),
        ("DELETE", f"{X}/versions/a", None),
        ("PUT", "/dirs/d/datas/new", {"versions": {"a": {"ancestorid": "a"}, "b": {"ancestorid": "b"}}}),
    ):
        error = refuses(registry, method, url, sent, "multiple_roots")
        xid = "/dirs/d/datas/new" if "new" in url else X
        assert (error["status"], error["subject"], error["args"]) == (400, xid, {"plural": "datas"})
    registry.put("/modelsource", model_with("datas"))
    registry.put(f"{X}/versions/d", {"ancestorid": "d"})
    refuses(registry, "PUT", "/modelsource", model_with("datas", singleversionroot=True), "multiple_roots")


def test_c_ver_20_without_a_limit_all_stay(registry: Client) -> None:
    for _ in range(30):
        registry.post(X, {})
    assert registry.get(X).json["versionscount"] == 30
    assert sorted(map(int, lineage(registry, X))) == list(range(1, 31))


def test_c_ver_21_a_lower_limit(registry: Client) -> None:
    for id_ in "abcd":
        registry.put(f"{X}/versions/{id_}", {})
    registry.patch(f"{X}/meta", {"defaultversionid": "a"})
    assert registry.put("/modelsource", model_with("datas", maxversions=2)).status == 200
    assert lineage(registry, X) == {"a": "a", "d": "d"}
    assert default_of(registry, X) == ("a", True)
    registry.patch(f"{X}/meta", {"defaultversionid": None})
    assert registry.put("/modelsource", model_with("datas", maxversions=1)).status == 200
    assert lineage(registry, X) == {"d": "d"}


def test_c_ver_22_what_is_left_has_one_root(registry: Client) -> None:
    registry.put("/modelsource", model_with("caps", singleversionroot=True, maxversions=3, hasdocument=False))
    path = "/dirs/d/caps/x"
    registry.post(f"{path}/versions", {"a": {}, "b": {"ancestorid": "a"}, "c": {"ancestorid": "a"}})
    error = refuses(registry, "PUT", f"{path}/versions/d", {"ancestorid": "c"}, "multiple_roots")
    assert error["subject"] == path
    registry.patch(f"{path}/versions/c", {"ancestorid": "b"})
    assert registry.put(f"{path}/versions/d", {}).status == 201
    assert lineage(registry, path) == {"b": "b", "c": "b", "d": "c"}


# -- what they share ----------------------------------------------------------------------------------------------


def test_c_ver_24_attributes_that_match(registry: Client) -> None:
    same = {"type": "string", "matchversions": True}
    attributes = {"same": same, "obj": {"type": "object", "attributes": {"same": {**same, "type": "integer"}}}}
    registry.put("/modelsource", model_with("datas", attributes=attributes))
    registry.put(f"{X}/versions/a", {"same": "s"})
    for method, url, sent, name in (
        ("PUT", f"{X}/versions/b", {}, "same"),
        ("PUT", f"{X}/versions/b", {"same": "t"}, "same"),
        ("POST", X, {"same": "t"}, "same"),
        ("POST", f"{X}/versions", {"b": {"same": "s"}, "c": {}}, "same"),
        ("PUT", f"{X}/versions/b", {"same": "s", "obj": {"same": 1}}, "obj.same"),
        ("PUT", "/dirs/d/datas/new", {"versions": {"a": {"same": "s"}, "b": {}}}, "same"),
    ):
        error = refuses(registry, method, url, sent, "mismatched_version_attribute")
        xid = "/dirs/d/datas/new" if "new" in url else X
        assert (error["status"], error["subject"], error["args"]) == (400, xid, {"name": name})
    assert registry.put(f"{X}/versions/b", {"same": "s"}).status == 201
    refuses(registry, "PATCH", f"{X}/versions/b", {"same": None}, "mismatched_version_attribute")
    both = {"a": {"same": "t", "obj": {"same": 1}}, "b": {"same": "t", "obj": {"same": 1}}}
    assert registry.post(f"{X}/versions", both).status == 200
    assert registry.get(X).json["same"] == "t"
