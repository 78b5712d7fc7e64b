"""The meta of a Resource. The rows of the checklist by their ids."""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.answers import meta_of, refuses, resource_of, seen, version_of
from tests.httpapi.conftest import BASE, Client, model_with

D = "/dirs/d/datas"
X = f"{D}/x"


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
    registry.put("/modelsource", model_with("things", metaattributes=meta))
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
        assert (error["subject"], error["args"]["name"]) == (X, "meta")
    for method, path, sent in (
        ("PATCH", X, {"meta": "x"}),
        ("POST", D, {"x": {"meta": "x"}}),
        ("PUT", X.rpartition("/datas")[0], {"datas": {"x": {"meta": ["x"]}}}),
        ("POST", "/dirs", {"d": {"datas": {"x": {"meta": True}}}}),
    ):
        assert refuses(registry, method, path, sent, "invalid_attribute")["subject"] == X
    refuses(registry, "PUT", f"{X}/meta", {"dataid": "y"}, "mismatched_id")
    refuses(registry, "PUT", X, {"meta": {"dataid": "X"}}, "mismatched_id")
    assert registry.put(f"{X}/meta?ignore=id", {"dataid": "y"}).status == 200
    assert registry.get(f"{X}/meta/x").error == (404, "not_found", f"{X}/meta/x")
    assert registry.put(f"{X}/meta").error == (400, "missing_body", f"{X}/meta")
