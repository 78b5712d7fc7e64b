"""The Registry, its capabilities, its model, and flags. The rows of the checklist by their ids."""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.conftest import BASE, FIXTURE, Client
from wirebook.core.model.capabilities import bare


def test_c_reg_01_the_root(registry: Client) -> None:
    root = registry.get("/")
    assert (root.status, root.headers["Content-Type"]) == (200, "application/json; charset=utf-8")
    names = ["specversion", "registryid", "self", "xid", "epoch", "createdat", "modifiedat", "boxesurl"]
    assert list(root.json)[:8] == names
    assert (root.json["specversion"], root.json["self"], root.json["xid"]) == ("1.0-rc4", f"{BASE}/", "/")


def test_c_reg_03_what_is_shown_on_demand(registry: Client) -> None:
    for name in ("capabilities", "model", "modelsource"):
        assert name not in registry.get("/?inline=*").json
        assert registry.get(f"/?inline={name}").json[name] == registry.get(f"/{name}").json


def test_c_reg_04_put_and_patch(registry: Client) -> None:
    registry.put("/", {"name": "n", "description": "d", "labels": {"a": "1"}})
    assert registry.patch("/", {"name": None}).json.get("description") == "d"
    assert "description" not in registry.put("/", {}).json
    assert "dirsurl" in registry.get("/").json


@pytest.mark.parametrize("value", ["1.0", "", 5, None, {}])
def test_c_reg_02_and_10_what_is_only_read(registry: Client, value: Any) -> None:
    before = registry.get("/?inline=model").json
    for method in ("PUT", "PATCH"):
        sent = {"specversion": value, "model": value, "self": value, "xid": value, "name": "n"}
        shown = registry.send(method, "/?inline=model", sent).json
        assert shown == {**before, "epoch": shown["epoch"], "modifiedat": shown["modifiedat"], "name": "n"}
    assert shown["specversion"] == "1.0-rc4"


def test_c_reg_05_and_06_capabilities_in_whole_in_part_and_as_they_were(registry: Client) -> None:
    fresh = registry.get("/capabilities").json

    def now() -> dict[str, Any]:
        found: dict[str, Any] = registry.get("/capabilities").json
        return found

    registry.patch("/", {"capabilities": {"flags": ["doc"], "shortself": True}})
    assert now() == {**fresh, "flags": ["doc"], "shortself": True}
    registry.patch("/", {"capabilities": {"available": {"capabilities": {"mutable": True}}}})
    assert now()["available"] == {**bare()["available"], "capabilities": {"mutable": True}}
    registry.patch("/", {"capabilities": {}})
    assert now()["flags"] == ["doc"]
    given = {"available": fresh["available"], "versionmodes": fresh["versionmodes"]}
    registry.put("/", {"capabilities": {**given, "shortself": None}})
    assert now() == {**bare(), **given}
    for method in ("PUT", "PATCH"):
        registry.patch("/", {"capabilities": {"shortself": True}})
        registry.send(method, "/", {"capabilities": None})
        assert now() == fresh


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("nothing", [None, {}])
def test_c_reg_07_amb_16_a_model_is_replaced_as_a_whole(registry: Client, method: str, nothing: Any) -> None:
    registry.put("/", {"xint": 5, "name": "n"})
    one = {"attributes": {"xint": {"type": "integer"}}, "groups": {"ones": {"singular": "one"}}}
    shown = registry.send(method, "/?inline=modelsource", {"modelsource": one, "xint": 6}).json
    assert (shown["modelsource"], shown["onescount"], "dirsurl" in shown) == (one, 0, False)
    if method == "PATCH":  # what is there has an attribute that would be gone
        assert registry.patch("/", {"modelsource": nothing}).status == 400
        assert registry.get("/?inline=modelsource").json["modelsource"] == one
        registry.patch("/", {"xint": None})
    shown = registry.send(method, "/?inline=model,modelsource", {"modelsource": nothing, "name": "m"}).json
    assert (shown["modelsource"], shown["name"], "onescount" in shown) == ({}, "m", False)
    assert "groups" not in shown["model"]
    assert "xint" not in shown["model"]["attributes"]
    assert registry.send(method, "/", {"name": "k"}).status == 200
    assert registry.get("/modelsource").json == {}


def test_c_reg_08_capabilities_then_model_then_entities(registry: Client) -> None:
    semver = {"singular": "sem", "versionmode": "semver", "singleversionroot": True, "hasdocument": False}
    source = {"groups": {"news": {"singular": "new", "resources": {"sems": semver}}}}
    sent = {"news": {"n": {"sems": {"s": {"versions": {"1.0.0": {}, "0.9.0": {}}}}}}, "modelsource": source}
    modes = {"capabilities": {"versionmodes": ["manual"]}}
    before = registry.get("/export").body
    assert registry.patch("/", {**sent, **modes}).error == (400, "model_error", "/model")
    assert registry.get("/export").body == before
    modes["capabilities"]["versionmodes"].append("semver")
    assert registry.patch("/", {"capabilities": None, "modelsource": {}}).status == 200
    assert registry.put("/", {**sent, "name": "n"}).json["newscount"] == 1
    assert registry.get("/news/n/sems/s").json["versionid"] == "1.0.0"
    assert registry.get("/").json["epoch"] == 3


def test_c_reg_13_c_mod_04_a_source_comes_back_as_it_was(registry: Client) -> None:
    source = {
        "$schema": "https://example.com/s",
        "labels": {"z": "1", "a": ""},
        "groups": {"b": {"singular": "c"}, "a": {"plural": "a", "singular": "d", "resources": {}, "attributes": {}}},
    }
    reply = registry.put("/modelsource", source)
    assert (reply.status, reply.json, list(reply.json)) == (200, source, list(source))
    assert list(reply.json["groups"]) == ["b", "a"]
    assert registry.get("/modelsource").body == reply.body
    assert registry.get("/?inline=modelsource").json["modelsource"] == source
    assert "$schema" not in registry.get("/model").json


def test_c_reg_08_one_request_makes_model_and_groups(registry: Client) -> None:
    source = {"groups": {**FIXTURE["groups"], "news": {"singular": "new"}}}
    reply = registry.put("/", {"modelsource": source, "news": {"n": {}}})
    assert (reply.status, reply.json["newscount"]) == (200, 1)
    assert registry.get("/news/n").status == 200


def test_c_reg_11_and_12_post(registry: Client) -> None:
    assert registry.post("/", {"name": "n"}).error == (400, "groups_only", "/")
    reply = registry.post("/", {"dirs": {"a": {}}, "boxes": {"b": {}}, "dirscount": 3})
    assert {name: list(each) for name, each in reply.json.items()} == {"dirs": ["a"], "boxes": ["b"]}


def test_c_com_04_and_06_deprecated(registry: Client) -> None:
    assert registry.put("/dirs/d", {"deprecated": {}}).json["deprecated"] == {}
    late = {"effective": "2030-01-01T00:00:00Z", "removal": "2029-01-01T00:00:00Z"}
    assert registry.put("/dirs/d", {"deprecated": late}).error == (400, "invalid_attribute", "/dirs/d")
    assert registry.put("/", {"deprecated": {}}).error[1] == "unknown_attribute"


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("/?inline=foo", "bad_inline"),
        ("/?inline=name", "inline_noninlineable"),
        ("/?inline=dirs.d*", "bad_inline"),
        ("/?inline=*.dirs", "bad_inline"),
        ("/dirs?inline=dirs", "bad_inline"),
        ("/?inline=dirs.files.filebase64", "inline_noninlineable"),
        ("/?ignore=foo", "bad_ignore"),
        ("/dirs?collections", "bad_flag"),
        ("/?specversion=9", "unsupported_specversion"),
    ],
)
def test_flags_that_are_none(registry: Client, url: str, code: str) -> None:
    assert registry.get(url).error[:2] == (400, code)


def test_c_inl_04_only_what_was_asked_for(registry: Client) -> None:
    registry.put("/dirs/d/files/f", b"")
    shown = registry.get("/?inline=dirs.files.versions").json["dirs"]["d"]
    assert "datas" not in shown
    assert "versions" in shown["files"]["f"]
    assert "meta" not in shown["files"]["f"]


def test_c_cln_01_and_03_collections(registry: Client) -> None:
    registry.put("/dirs/d/datas/x", {"name": "n"})
    found = registry.get("/?collections").json
    assert set(found) == {f"{plural}{end}" for plural in ("dirs", "boxes") for end in ("", "url", "count")}
    registry.delete("/dirs")
    found["dirs"]["d"].pop("epoch")
    assert registry.post("/?ignore=epoch", found).status == 200
    assert registry.get("/dirs/d/datas/x").json["name"] == "n"


def test_c_ign(registry: Client) -> None:
    registry.put("/dirs/d", {})
    assert registry.put("/dirs/d?ignore=epoch", {"epoch": 99}).status == 200
    assert registry.put("/dirs/d?ignore=id", {"dirid": "other"}).status == 200
    assert registry.put("/dirs/d", {"dirid": "other"}).error == (400, "mismatched_id", "/dirs/d")
    assert registry.put("/?ignore=capabilities,modelsource", {"capabilities": 5, "modelsource": 5}).status == 200


def test_c_http_03_methods(registry: Client) -> None:
    registry.put("/dirs/d/datas/x", {})
    allowed = {
        "/": "GET, OPTIONS, PATCH, POST, PUT",
        "/dirs": "DELETE, GET, OPTIONS, PATCH, POST",
        "/dirs/d": "DELETE, GET, OPTIONS, PATCH, POST, PUT",
        "/dirs/d/datas/x": "DELETE, GET, OPTIONS, PATCH, POST, PUT",
        "/dirs/d/datas/x/meta": "GET, OPTIONS, PATCH, PUT",
        "/dirs/d/datas/x/versions": "DELETE, GET, OPTIONS, PATCH, POST",
        "/dirs/d/datas/x/versions/1": "DELETE, GET, OPTIONS, PATCH, PUT",
        "/model": "GET, OPTIONS",
        "/modelsource": "GET, OPTIONS, PUT",
        "/capabilities": "GET, OPTIONS, PATCH, PUT",
        "/capabilitiesoffered": "GET, OPTIONS",
        "/export": "GET, OPTIONS",
    }
    for path, names in allowed.items():
        reply = registry.send("OPTIONS", path)
        assert (reply.status, reply.headers["Allow"]) == (200, names), path
        for method in {"GET", "PUT", "PATCH", "POST", "DELETE", "TRACE"} - set(names.split(", ")):
            refused = registry.send(method, path, {})
            assert refused.error == (405, "action_not_supported", path), (method, path)
            assert refused.headers["Allow"] == names


def test_unknown_paths(registry: Client) -> None:
    assert registry.get("/nope").error[:2] == (400, "unknown_group_type")
    assert registry.get("/dirs/d/nope").error[:2] == (400, "unknown_resource_type")
    assert registry.get("/dirs//files").error[:2] == (400, "bad_request")
    assert registry.get("/dirs/d/files/f/nope").error[:2] == (404, "not_found")


def test_c_lnk_01_every_answer_leads_to_the_root(registry: Client) -> None:
    for path in ("/", "/dirs/none", "/nope"):
        assert f"<{BASE}>;rel=xregistry-root" in registry.get(path).headers["Link"]


def test_c_mod_36_and_37_entities_must_comply(registry: Client) -> None:
    registry.put("/dirs/d/datas/x", {"xint": 5})
    before = registry.get("/export").body
    source = registry.get("/modelsource").json
    del source["groups"]["dirs"]["resources"]["datas"]["attributes"]["xint"]
    assert registry.put("/modelsource", source).error == (400, "model_compliance_error", "/model")
    assert registry.put("/modelsource", {}).error == (400, "model_compliance_error", "/model")
    assert registry.get("/export").body == before
    registry.delete("/dirs")
    assert registry.put("/modelsource", {}).status == 200
    assert registry.get("/model").json.keys() == {"attributes"}
    assert registry.get("/dirs").error[:2] == (400, "unknown_group_type")
