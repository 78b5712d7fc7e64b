"""Deleting: one entity, those of a map, or all of a collection. The rows of the checklist by their ids."""

from __future__ import annotations

from typing import Any

from tests.httpapi.answers import default_of, lineage, refuses, resource_of, seen
from tests.httpapi.conftest import Client

D = "/dirs/d/datas"
X = f"{D}/x"


def epoch(registry: Client, path: str) -> int:
    found: int = registry.get(path).json["epoch"]
    return found


def fill(registry: Client) -> None:
    """Groups d and e, in d the Resources x and y, of x the Versions 1, 2 and 3."""
    registry.put("/dirs/e", {})
    registry.post(D, {"x": {"versions": {"1": {}, "2": {}, "3": {}}}, "y": {}})


def test_c_del_01_it_is_gone(registry: Client) -> None:
    fill(registry)
    registry.put("/dirs/d/files/f", b"abc")
    for path in (f"{X}/versions/1", "/dirs/d/files/f/versions/1$details", f"{D}/y", X, "/dirs/d"):
        reply = registry.delete(path)
        assert (reply.status, reply.body) == (204, b""), path
        assert "Content-Type" not in reply.headers
        assert registry.get(path).status == 404
    for path in ("/dirs",):
        assert registry.delete(path).status == 204
        assert (registry.get(path).status, registry.get(path).json) == (200, {})
    assert registry.get("/").json["dirscount"] == 0


def test_c_del_02_what_is_not_there(registry: Client) -> None:
    fill(registry)
    for path in ("/dirs/none", "/dirs/D", f"{D}/none", f"{D}/X", f"{X}/versions/none", f"{D}/none/versions/1"):
        error = refuses(registry, "DELETE", path, None, "not_found")
        assert (error["status"], "args" in error) == (404, False)
        assert error["subject"] == (f"{D}/none" if path.endswith("none/versions/1") else path)
    for path, subject in (("/dirs/none/datas", "/dirs/none"), (f"{D}/none/versions", f"{D}/none")):
        assert refuses(registry, "DELETE", path, None, "not_found")["subject"] == subject
        assert refuses(registry, "DELETE", path, {"a": {}}, "not_found")["subject"] == subject


def test_c_del_03_those_of_a_map(registry: Client) -> None:
    fill(registry)
    for path, keys in ((f"{X}/versions", ["1", "3"]), (D, ["x", "y"]), ("/dirs", ["d", "e"])):
        before = registry.get("/export").body
        assert registry.delete(path, {}).status == 204
        assert registry.delete(path, {"none": {}, keys[0].upper() + "x": None}).status == 204
        assert registry.get("/export").body == before
        assert registry.delete(path, {keys[0]: {}, "none": {"epoch": 99}}).status == 204
        left = registry.get(path).json.keys()
        assert keys[0] not in left
        assert keys[1] in left
        if path == D:
            registry.put(X, {})


def test_c_del_03_a_body_that_is_no_map(registry: Client) -> None:
    fill(registry)
    for path, key in ((f"{X}/versions", "1"), (D, "x"), ("/dirs", "d")):
        for body in ([], "x", 5, b"null", b" ", b"{bad", {key: 5}, {key: []}):
            assert refuses(registry, "DELETE", path, body, "parsing_data")["status"] == 400


def test_c_del_04_all_of_a_collection(registry: Client) -> None:
    fill(registry)
    assert registry.delete(D).status == 204
    assert registry.get(D).json == {}
    assert registry.get("/dirs/d").json["datascount"] == 0
    fill(registry)
    assert registry.delete("/dirs").status == 204
    assert registry.get("/dirs").json == {}


def test_c_del_05_epochs_in_a_map(registry: Client) -> None:
    fill(registry)
    registry.patch("/dirs/e", {})
    registry.patch(f"{X}/versions/2", {})
    wrong: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("/dirs", {"d": {}, "e": {"epoch": 1}}, "/dirs/e"),
        (f"{X}/versions", {"1": {"epoch": 1}, "2": {"epoch": 3}}, f"{X}/versions/2"),
    )
    for path, sent, subject in wrong:
        error = refuses(registry, "DELETE", path, sent, "mismatched_epoch")
        bad = str(sent[subject.rpartition("/")[2]]["epoch"])
        assert (error["subject"], error["args"]) == (subject, {"bad_epoch": bad, "epoch": "2"})
    for value in ("2", -1, 1.5, True, {}):
        error = refuses(registry, "DELETE", "/dirs", {"e": {"epoch": value}}, "invalid_attribute")
        assert (error["subject"], error["args"]["name"]) == ("/dirs/e", "epoch")
    assert registry.delete(f"{X}/versions", {"2": {"epoch": 2}, "1": {"epoch": None}}).status == 204
    assert registry.delete("/dirs?ignore=epoch", {"e": {"epoch": 99}}).status == 204


def test_c_del_05_the_flag_for_one(registry: Client) -> None:
    fill(registry)
    registry.patch(f"{X}/meta", {})
    registry.patch("/dirs/e", {})
    registry.patch(f"{X}/versions/3", {})
    for path, subject in ((f"{X}/versions/3", f"{X}/versions/3"), (X, f"{X}/meta"), ("/dirs/e", "/dirs/e")):
        error = refuses(registry, "DELETE", f"{path}?epoch=1", None, "mismatched_epoch")
        assert (error["subject"], error["args"]) == (subject, {"bad_epoch": "1", "epoch": "2"})
        refuses(registry, "DELETE", f"{path}?epoch=x", None, "invalid_attribute")
    assert registry.delete(f"{X}/versions/3?epoch=2").status == 204
    assert registry.delete(f"{X}?epoch=3").status == 204
    assert registry.delete("/dirs/e?epoch=2").status == 204


def test_c_del_06_and_amb_05_of_resources_they_are_in_the_meta(registry: Client) -> None:
    fill(registry)
    registry.patch(f"{X}/meta", {})
    for sent in ({"epoch": 1}, {"epoch": 2}, {"epoch": 2, "meta": None}, {"epoch": 2, "meta": {}}):
        error = refuses(registry, "DELETE", D, {"x": sent, "y": {}}, "misplaced_epoch")
        assert (error["status"], error["subject"]) == (400, X)
    error = refuses(registry, "DELETE", D, {"x": {"meta": {"epoch": 1}}}, "mismatched_epoch")
    assert (error["subject"], error["args"]) == (f"{X}/meta", {"bad_epoch": "1", "epoch": "2"})
    assert registry.delete(D, {"x": {"epoch": 99, "meta": {"epoch": 2}}}).status == 204
    assert registry.delete(D, {"y": {"epoch": None}}).status == 204
    assert registry.get(D).json == {}


def test_amb_05_the_flag_deletes_no_collection(registry: Client) -> None:
    """The sample that has it there means one Version. With a map it says nothing, and an empty map deletes nothing."""
    fill(registry)
    for path in (f"{X}/versions", D, "/dirs"):
        error = refuses(registry, "DELETE", f"{path}?epoch=1", None, "bad_flag")
        assert (error["status"], error["subject"], error["args"]) == (400, path, {"flag": "epoch"})
    before = registry.get("/export").body
    assert registry.delete(f"{X}/versions?epoch=1", {}).status == 204
    assert registry.get("/export").body == before
    assert registry.delete(f"{X}/versions?epoch=99", {"1": {}}).status == 204
    assert registry.get(f"{X}/versions").json.keys() == {"2", "3"}
    assert registry.delete(f"{X}/versions?epoch=").status == 204


def test_c_del_07_ids_must_match(registry: Client) -> None:
    fill(registry)
    sent: tuple[tuple[str, dict[str, Any], str, str, str], ...] = (
        ("/dirs", {"d": {"dirid": "e"}}, "/dirs/d", "dir", "d"),
        (D, {"x": {"dataid": "X"}}, X, "data", "x"),
        (D, {"x": {"meta": {"dataid": "y"}}}, f"{X}/meta", "data", "x"),
        (f"{X}/versions", {"1": {"versionid": "2"}}, f"{X}/versions/1", "version", "1"),
    )
    for path, body, subject, singular, id_ in sent:
        error = refuses(registry, "DELETE", path, body, "mismatched_id")
        assert (error["subject"], error["args"]["singular"]) == (subject, singular)
        assert error["args"]["expected_id"] == id_


def test_c_del_07_and_nothing_else_is_looked_at(registry: Client) -> None:
    fill(registry)
    nonsense = {"name": 5, "labels": "x", "zz": [], "self": None, "datas": 7, "createdat": "never"}
    assert registry.delete(f"{X}/versions", {"1": {**nonsense, "versionid": "1"}}).status == 204
    assert registry.delete(D, {"y": {**nonsense, "dataid": "y", "meta": {"zz": 1}}}).status == 204
    assert registry.delete("/dirs", {"e": {**nonsense, "dirid": "e"}}).status == 204
    assert registry.delete(f"{X}/versions", {"2": registry.get(f"{X}/versions").json["2"]}).status == 204
    refuses(registry, "DELETE", D, registry.get(D).json, "misplaced_epoch")
    assert registry.delete(D, registry.get(f"{D}?inline=meta").json).status == 204
    assert registry.delete("/dirs", registry.get("/dirs").json).status == 204
    assert registry.get("/").json["dirscount"] == 0


def test_c_del_08_parents_and_children(registry: Client) -> None:
    fill(registry)
    before = {path: epoch(registry, path) for path in ("/", "/dirs/d", f"{X}/meta")}
    registry.delete(f"{X}/versions", {"1": {}, "2": {}})
    assert epoch(registry, f"{X}/meta") == before[f"{X}/meta"] + 1
    assert epoch(registry, "/dirs/d") == before["/dirs/d"]
    assert registry.get(X).json["versionscount"] == 1
    registry.delete(D, {"x": {}, "y": {}})
    shown = registry.get("/dirs/d").json
    assert (shown["epoch"], shown["datascount"]) == (before["/dirs/d"] + 1, 0)
    assert shown["modifiedat"] > shown["createdat"]
    for path in (X, f"{X}/meta", f"{X}/versions", f"{X}/versions/3"):
        assert registry.get(path).status == 404
    assert epoch(registry, "/") == before["/"]
    registry.delete("/dirs", {"d": {}, "e": {}})
    root = registry.get("/").json
    assert (root["epoch"], root["dirscount"]) == (before["/"] + 1, 0)
    assert root["modifiedat"] > root["createdat"]


def test_c_del_09_the_last_version_takes_the_resource_along(registry: Client) -> None:
    for path, sent in ((f"{X}/versions/1", None), (f"{X}/versions", {"1": {}}), (f"{X}/versions", None)):
        registry.put(X, {})
        before = epoch(registry, "/dirs/d")
        assert registry.delete(path, sent).status == 204
        for gone in (X, f"{X}/meta", f"{X}/versions"):
            assert registry.get(gone).status == 404
        shown = registry.get("/dirs/d").json
        assert (shown["datascount"], shown["epoch"]) == (0, before + 1)


def test_amb_21_all_versions_take_the_resource_along(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    assert registry.delete(f"{X}/versions", {"a": {}, "b": {}, "c": {}}).status == 204
    assert registry.get(X).status == 404


def test_c_del_10_what_comes_again_is_new(registry: Client) -> None:
    sent = {"name": "old", "versions": {"a": {}, "b": {}}, "meta": {"labels": {"a": "b"}, "defaultversionid": "a"}}
    registry.put(X, {**sent, "meta": {**sent["meta"], "defaultversionsticky": True}})  # type: ignore[dict-item]
    registry.patch(X, {})
    registry.post(X, {})
    registry.delete(X)
    assert seen(registry.put(X, {}).json) == resource_of(X)
    assert registry.get(f"{X}/meta").json.keys().isdisjoint({"labels"})
    assert (lineage(registry, X), default_of(registry, X)) == ({"1": "1"}, ("1", False))
    registry.put("/dirs/d", {"name": "old", "labels": {"a": "b"}})
    registry.delete("/dirs/d")
    shown = registry.put("/dirs/d", {}).json
    assert (shown["epoch"], shown["datascount"], "name" in shown, "labels" in shown) == (1, 0, False, False)
    registry.put(f"{X}/versions/v", {"name": "old"})
    registry.put(f"{X}/versions/w", {})
    registry.delete(f"{X}/versions/v")
    assert "name" not in registry.put(f"{X}/versions/v", {}).json
