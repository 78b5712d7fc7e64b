"""The meta of a Resource. Tests are named after rows of the checklist."""

from __future__ import annotations

from tests.httpapi.answers import refuses
from tests.httpapi.conftest import Client

D = "/dirs/d/datas"
X = f"{D}/x"


def test_meta_that_is_not_an_object_is_rejected(registry: Client) -> None:
    registry.put(X, {})
    for content in ({"meta": 5}, {"meta": []}, {"meta": "x"}):
        error = refuses(registry, "PUT", X, content, "invalid_attribute")
        assert (error["subject"], error["args"]["name"]) == (X, "meta")
    for method, path, content in (
        ("PATCH", X, {"meta": "x"}),
        ("POST", D, {"x": {"meta": "x"}}),
        ("PUT", X.rpartition("/datas")[0], {"datas": {"x": {"meta": ["x"]}}}),
        ("POST", "/dirs", {"d": {"datas": {"x": {"meta": True}}}}),
    ):
        assert refuses(registry, method, path, content, "invalid_attribute")["subject"] == X
    refuses(registry, "PUT", f"{X}/meta", {"dataid": "y"}, "mismatched_id")
    refuses(registry, "PUT", X, {"meta": {"dataid": "X"}}, "mismatched_id")
    assert registry.put(f"{X}/meta?ignore=id", {"dataid": "y"}).status == 200
    assert registry.get(f"{X}/meta/x").error == (404, "not_found", f"{X}/meta/x")
    assert registry.put(f"{X}/meta").error == (400, "missing_body", f"{X}/meta")
