"""What Groups demand of their Resources, by every way of writing these. The rows of the checklist by their ids."""

from __future__ import annotations

from typing import Any

from tests.httpapi.answers import refuses
from tests.httpapi.conftest import FIXTURE, Client

G, D = "/dirs/d", "/dirs/d/datas"


def model_with(**aspects: Any) -> dict[str, Any]:
    """The model of the tests with other aspects of a Group type."""
    return {"groups": {**FIXTURE["groups"], "dirs": {**FIXTURE["groups"]["dirs"], **aspects}}}


def test_c_grp_13_post_to_a_group(registry: Client) -> None:
    for sent, name in (
        ({"name": "n"}, "name"),
        ({"datas": {"x": {}}, "labels": {}}, "labels"),
        ({"nope": {}}, "nope"),
        ({"dirid": "d"}, "dirid"),
    ):
        error = refuses(registry, "POST", G, sent, "resources_only")
        assert (error["status"], error["subject"], error["args"]) == (400, G, {"name": name})
    reply = registry.post(G, {"datas": {"x": {"name": "n"}}, "cats": {"c": {}}, "datascount": 7, "files": {}})
    assert (reply.status, {name: list(each) for name, each in reply.json.items()}) == (
        200,
        {"datas": ["x"], "cats": ["c"], "files": []},
    )
    assert reply.json["datas"]["x"] == registry.get(f"{D}/x").json
    before = registry.get(G).body
    registry.post(G, {"datas": {"x": {}}})
    assert registry.get(G).body == before
    for sent in ({"datas": None}, {"datas": []}, {"datas": {"x": None}}, {"datas": {"x": 5}}):
        refuses(registry, "POST", G, sent, "bad_request")


def test_c_grp_02_to_10_constraints(registry: Client) -> None:
    own = {"datas.xstr": {"enum": ["a", "b"], "default": "a"}}
    assert registry.put(G, {"constraints": own}).status == 201
    assert registry.put(f"{D}/x", {}).json["xstr"] == "a"
    error = refuses(registry, "PUT", f"{D}/x", {"xstr": "c"}, "constraint_failure")
    assert (error["subject"], error["args"]) == (f"{D}/x", {"kind": "enum", "path": "xstr"})
    narrower = {"datas.xstr": {"enum": ["b"]}}
    refuses(registry, "PUT", G, {"constraints": narrower}, "constraint_failure")
    refuses(registry, "PUT", G, {"constraints": {"nope.xstr": {}}}, "bad_request")


def test_c_grp_07_the_server_needs_no_defaults(registry: Client) -> None:
    defaults = {"epoch": 5, "self": "https://h/x", "isdefault": True, "versionid": "v", "dataid": "d"}
    constraints = {f"datas.{name}": {"default": value} for name, value in defaults.items()}
    assert registry.put(G, {"constraints": constraints}).status == 201
    reply = registry.put(f"{D}/x", {})
    assert (reply.status, reply.json["epoch"], reply.json["versionid"], reply.json["dataid"]) == (201, 1, "1", "x")
    assert registry.patch(f"{D}/x", {}).json["epoch"] == 2


def test_c_grp_02_their_form(registry: Client) -> None:
    good = {"datas.xstr": {"default": "a", "enum": ["a", "b"], "equals": "xstr"}, "cats.xobj.n": {"enum": [1]}}
    assert registry.put(G, {"constraints": good}).json["constraints"] == good
    assert registry.put(G, {"constraints": {}}).json["constraints"] == {}
    assert "constraints" not in registry.put(G, {}).json
    for bad in (5, [], {"datas.xstr": 5}, {"datas.xstr": {"enum": 5}}, {"datas.xstr": {"equals": 5}}):
        error = refuses(registry, "PUT", G, {"constraints": bad}, "invalid_attribute")
        assert error["subject"] == G
    error = refuses(registry, "PUT", G, {"constraints": {"datas.xstr": {"foo": 1}}}, "unknown_attribute")
    assert error["args"] == {"name": "constraints['datas.xstr'].foo"}


def test_c_grp_03_and_04_layers(registry: Client) -> None:
    model = {"datas.xstr": {"enum": ["a", "b", "c"]}, "datas.xint": {"equals": "xint"}}
    registry.put("/modelsource", model_with(constraints=model))
    for bad in (
        {"datas.xstr": {"enum": ["a", "z"]}},
        {"datas.xint": {"equals": "xuint"}},
        {"datas.xint": {"equals": "other"}},
        {"datas.xstr": {"default": "z"}},
    ):
        assert refuses(registry, "PUT", G, {"constraints": bad}, "bad_request")["status"] == 400
    good = {"datas.xstr": {"enum": ["b"], "equals": "xstr"}, "datas.xint": {"equals": "xint"}}
    assert registry.put(G, {"constraints": good, "xint": 5, "xstr": "b"}).status == 201
    fits = {"xstr": "b", "xint": 5}
    assert registry.put(f"{D}/x", fits).status == 201
    for sent, kind, path in (
        ({**fits, "xstr": "a"}, "enum", "xstr"),
        ({**fits, "xint": 6}, "equals", "xint"),
        ({"xint": 5}, "equals", "xstr"),
        ({"xstr": "b"}, "equals", "xint"),
    ):
        error = refuses(registry, "PUT", f"{D}/x", sent, "constraint_failure")
        assert error["args"] == {"kind": kind, "path": path}
    registry.put("/dirs/e", {"constraints": {"datas.xstr": {"enum": None, "equals": None}}, "xint": None})
    assert registry.put("/dirs/e/datas/x", {"xstr": "c"}).status == 201
    refuses(registry, "PUT", "/dirs/e/datas/y", {"xstr": "d"}, "constraint_failure")


def test_c_grp_05_all_versions_by_every_way(registry: Client) -> None:
    registry.put(G, {"constraints": {"files.xstr": {"enum": ["a"]}}})
    f = "/dirs/d/files/f"
    registry.put(f, b"", xregistry_xstr="a")
    for method, url, sent, headers in (
        ("PUT", f, b"", {"xregistry_xstr": "b"}),
        ("POST", f, b"", {"xregistry_xstr": "b"}),
        ("PATCH", f"{f}$details", {"xstr": "b"}, {}),
        ("PUT", f"{f}/versions/v$details", {"xstr": "b"}, {}),
        ("POST", f"{f}/versions", {"v": {"xstr": "a"}, "w": {"xstr": "b"}}, {}),
        ("PATCH", "/dirs/d/files", {"f": {"xstr": "b"}}, {}),
        ("PUT", G, {"files": {"f": {"xstr": "b"}}, "constraints": {"files.xstr": {"enum": ["a"]}}}, {}),
    ):
        error = refuses(registry, method, url, sent, "constraint_failure", **headers)
        assert (error["status"], error["subject"], error["args"]) == (400, f, {"kind": "enum", "path": "xstr"})
    both = {"files": {"f": {"xstr": "b"}}, "constraints": {"files.xstr": {"enum": ["b"]}}}
    assert registry.put(G, both).status == 200


def test_c_grp_11_cross_references_follow_enum_and_equals(registry: Client) -> None:
    registry.put("/dirs/home", {"datas": {"t": {"xstr": "b"}, "u": {}}})
    own = {"datas.xstr": {"enum": ["a", "b"], "default": "a"}, "datas.xint": {"equals": "xint"}}
    registry.put(G, {"constraints": own})
    assert "xstr" not in registry.put(f"{D}/u", {"meta": {"xref": "/dirs/home/datas/u"}}).json
    assert registry.put(f"{D}/t", {"meta": {"xref": "/dirs/home/datas/t"}}).status == 201
    for method, url, sent in (
        ("PATCH", "/dirs/home/datas/t", {"xstr": "c"}),
        ("POST", "/dirs/home/datas/t", {"xstr": "c"}),
        ("POST", "/dirs/home/datas/t/versions", {"v": {"xstr": "c"}}),
        ("PATCH", "/dirs", {"home": {"datas": {"t": {"xstr": "c"}}}}),
    ):
        error = refuses(registry, method, url, sent, "constraint_failure")
        assert (error["subject"], error["args"]) == (f"{D}/t", {"kind": "enum", "path": "xstr"})
    registry.put("/dirs/home/datas/c", {"xstr": "c"})
    error = refuses(registry, "PUT", f"{D}/c", {"meta": {"xref": "/dirs/home/datas/c"}}, "constraint_failure")
    assert error["subject"] == f"{D}/c"
    error = refuses(registry, "PATCH", G, {"xint": 5}, "constraint_failure")
    assert error["args"] == {"kind": "equals", "path": "xint"}
    registry.patch("/dirs/home/datas", {"t": {"xint": 5}, "u": {"xint": 5}})
    assert registry.patch(G, {"xint": 5}).status == 200
    refuses(registry, "PATCH", "/dirs/home/datas/u", {"xint": None}, "constraint_failure")
    assert registry.delete("/dirs/home/datas/u").status == 204


def test_c_grp_12_what_can_be_constrained(registry: Client) -> None:
    attributes = {
        "*": {"type": "string"},
        "kind": {"type": "string", "ifvalues": {"k": {"siblingattributes": {"sibling": {"type": "string"}}}}},
        "inner": {
            "type": "object",
            "attributes": {"deep": {"type": "object", "attributes": {"n": {"type": "integer"}}}},
        },
        "list": {"type": "array", "item": {"type": "string"}},
    }
    dirs = FIXTURE["groups"]["dirs"]["resources"]
    resources = {**dirs, "things": {"singular": "thing", "hasdocument": False, "attributes": attributes}}
    registry.put("/modelsource", model_with(resources=resources))
    for key in (
        "things.list[0]",
        "things.list",
        "things.labels.a",
        "things.labels",
        "things.inner",
        "things.sibling",
        "things.any",
        "things.*",
        "things.meta.compatibility",
        "things",
        "none.kind",
        "things.versions.kind",
    ):
        refused = model_with(resources=resources, constraints={key: {"enum": ["a"]}})
        error = refuses(registry, "PUT", "/modelsource", refused, "model_error")
        assert (error["status"], error["subject"]) == (400, "/model"), key
        assert registry.put(G, {"constraints": {key: {"enum": ["a"]}}}).status == 400, key
        assert registry.get(G).status == 404
    deep = {"things.inner.deep.n": {"enum": [1]}, "things.name": {"enum": ["a"]}}
    assert registry.put("/modelsource", model_with(resources=resources, constraints=deep)).status == 200
    assert registry.put(f"{G}/things/x", {"inner": {"deep": {"n": 1}}, "name": "a"}).status == 201
    refuses(registry, "PUT", f"{G}/things/x", {"inner": {"deep": {"n": 2}}}, "constraint_failure")


def test_constraint_errors_name_the_group(registry: Client) -> None:
    reply = registry.put(G, {"constraints": {"datas.none": {"enum": ["a"]}}})
    assert reply.json["args"]["error_detail"].startswith(f"Group '{G}': constraints['datas.none']")
    reply = registry.post("/", {"dirs": {"e": {}, "d": {"constraints": {"datas.xint": {"enum": ["a"]}}}}})
    assert f"Group '{G}': " in reply.json["args"]["error_detail"]
    own = {"datas.xstr": {"enum": ["a", "b"]}, "datas.xint": {"equals": "xint"}}
    assert registry.put(G, {"constraints": own, "xint": 5}).status == 201
    reply = registry.put(f"{D}/x", {"xstr": "c", "xint": 5})
    assert (reply.json["subject"], reply.json["detail"]) == (
        f"{D}/x",
        f"Group: {G}; allowed: 'a', 'b'; Versions: 1.",
    )
    reply = registry.put(f"{D}/x", {"xstr": "a", "xint": 6})
    assert reply.json["detail"] == f"Group: {G}; must equal xint of the Group, 5; Versions: 1."
    registry.put(f"{D}/x", {"xstr": "a", "xint": 5})
    assert f"Group: {G}; " in registry.patch(G, {"xint": 6}).json["detail"]
