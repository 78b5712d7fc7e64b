"""Responses to writes, request bodies, exports and headers. Tests are named after rows of the checklist.

Spec: core/http.md#creating-or-updating-entities; core/http.md#get-export.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.answers import refuses
from tests.httpapi.conftest import FIXTURE, Client, serve
from wirebook.storage.database import Database

F, X = "/dirs/d/files/f", "/dirs/d/datas/x"


@pytest.fixture
def filled(registry: Client) -> Client:
    assert registry.put(F, b'{"a": 1}', content_type="application/json").status == 201
    assert registry.post(f"{X}/versions", {"v1": {}, "v2": {}}).status == 200
    return registry


# -- answers to writes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *[(method, path) for method in ("PUT", "PATCH") for path in ("/", "/capabilities", "/dirs/d", X, f"{X}/meta")],
        *[(method, path) for method in ("POST", "PATCH") for path in ("/dirs", "/dirs/d/files", f"{X}/versions")],
        *[("POST", path) for path in ("/", "/dirs/d", X, f"{F}$details")],
        *[("PUT", path) for path in ("/modelsource", f"{F}$details", f"{F}/versions/1$details", f"{X}/versions/v1")],
    ],
)
def test_c_http_10_a_body_is_needed_and_must_be_an_object(filled: Client, method: str, path: str) -> None:
    before = filled.get("/export").body
    assert filled.send(method, path).error == (400, "missing_body", path)
    for body in (b" ", b"{", b"{} {}", b"{,}", b'{"a":1,}', b"\xef\xbb\xbf{}", b'{"name": "\xff"}', b'{"name": NaN}'):
        assert filled.send(method, path, body).error == (400, "parsing_data", path), body
    for body in (b"[]", b"5", b'"x"', b"true"):
        code = filled.send(method, path, body).error[1]
        special = {"/capabilities": "capability_error", "/modelsource": "model_error"}
        assert code == special.get(path, "parsing_data")
    deep = b'{"labels":' * 101 + b"{}" + b"}" * 101
    assert filled.send(method, path, deep).error == (400, "parsing_data", path)
    assert filled.send(method, path, b'{"name":' * 200_000).error == (400, "parsing_data", path)
    assert filled.get("/export").body == before


DUPLICATES = {
    b'{"name": "a", "name": "b"}': ("name", "/name"),
    b'{"a": {"labels": {"x": "1", "y": "2", "x": "1"}}}': ("x", "/a/labels/x"),
    b'{"versions": {"v": {"xarr": [1, {"n": {}, "n": {}}]}}}': ("n", "/versions/v/xarr/1/n"),
    b'{"a/b~": {"\\u0061": 1, "a": 1}}': ("a", "/a~1b~0/a"),
}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *[(method, path) for method in ("PUT", "PATCH") for path in ("/", "/capabilities", "/dirs/d", X, f"{X}/meta")],
        *[(method, path) for method in ("POST", "PATCH") for path in ("/dirs", "/dirs/d/files", f"{X}/versions")],
        *[("POST", path) for path in ("/", "/dirs/d", X, f"{F}$details")],
        *[("PUT", path) for path in ("/modelsource", f"{F}$details", f"{F}/versions/1$details", f"{X}/versions/v1")],
        *[("DELETE", path) for path in ("/dirs", "/dirs/d/files", f"{X}/versions")],
    ],
)
def test_duplicate_member_in_a_body_is_rejected(filled: Client, method: str, path: str) -> None:
    for body, (name, pointer) in DUPLICATES.items():
        error = refuses(filled, method, path, body, "parsing_data")
        why = f"duplicate member '{name}' at '{pointer}'; keep one of them"
        assert (error["status"], error["args"]["error_detail"]) == (400, why)


# -- exports ------------------------------------------------------------------------------------------------------


def test_c_http_15_exports_can_be_put_back(database: Database) -> None:
    registry = serve(database, FIXTURE)
    registry.put(F, b'{"a": 1}', content_type="application/json", xregistry_name="n")
    registry.post(f"{X}/versions?setdefaultversionid=v1", {"v1": {"xany": [1]}, "v2": {"labels": {"a": "b"}}})
    registry.put("/dirs/d/datas/alias/meta", {"xref": X})
    registry.patch("/", {"labels": {"of": "registry"}})
    whole = registry.get("/export").json
    assert registry.put("/", whole).status == 200
    assert without_times(registry.get("/export").json) == without_times(whole)
    registry.delete("/dirs")
    assert registry.put("/?ignore=epoch", whole).status == 200
    assert without_times(registry.get("/export").json) == without_times(whole)


def without_times(value: Any) -> Any:
    """The same without what every write changes."""
    if isinstance(value, dict):
        return {name: without_times(item) for name, item in value.items() if name not in ("epoch", "modifiedat")}
    return value


# -- headers ------------------------------------------------------------------------------------------------------


def test_c_neg_01_writes_need_no_conditions(filled: Client) -> None:
    assert filled.put("/dirs/d", {}).status == 200
    assert filled.put("/dirs/d", {}, if_match='"other"').status == 412
    assert filled.put("/dirs/d", {}, if_none_match='"other"').status == 200
    assert filled.put("/dirs/d", {}, if_unmodified_since='"other"').status == 200
    for name in ("if_match", "if_none_match", "if_unmodified_since"):
        assert filled.delete(f"{X}/versions/none", **{name: "*"}).status == 404
