"""Constraints of Groups on their Resources, for every kind of write. Tests are named after rows of the checklist."""

from __future__ import annotations

from typing import Any

from tests.httpapi.answers import refuses
from tests.httpapi.conftest import FIXTURE, Client

G, D = "/dirs/d", "/dirs/d/datas"


def model_with(**aspects: Any) -> dict[str, Any]:
    """The model of the tests with other aspects of a Group type."""
    return {"groups": {**FIXTURE["groups"], "dirs": {**FIXTURE["groups"]["dirs"], **aspects}}}


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
