"""Identifiers and the URLs of entities. Rows ID, SELF, XID and SS of the checklist."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.httpapi.conftest import Client
from tests.httpapi.test_app import Web

X: Final = "/dirs/d/datas/x"


# -- ids ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/dirs/\0", "/dirs/d/datas/\0", f"{X}/versions/\0", "/dirs/\0/datas", "/\0"])
def test_path_with_a_nul_character_is_rejected(registry: Client, path: str) -> None:
    for method in ("GET", "PUT", "PATCH", "POST", "DELETE"):
        assert registry.send(method, path, {}).status in (400, 404, 405)
    assert registry.get("/dirs?limit=1&after=%00").error == (400, "bad_request", "/dirs")
    assert registry.put(X, {"meta": {"xref": "/dirs/d/datas/\0"}}).error[:2] == (400, "malformed_xref")


@pytest.mark.parametrize("below", ["", "/meta", "/versions/1"])
def test_path_with_a_nul_character_is_rejected_in_a_read_batch(registry: Client, below: str) -> None:
    registry.put(X, {})
    web = Web(registry)
    for path in (f"/dirs/d/datas/a%00{below}", f"/dirs/d%00/datas/x{below}", f"/dirs/d/files/a%00{below}$details"):
        assert web.get(X).status_code == 200
        answer = web.get(path)
        assert (answer.status_code, answer.json()["args"]) == (
            400,
            {"error_detail": "the path contains the character U+0000"},
        )


NUMBERED = {"1": {}, "3": {}, "v": {}, "007": {}, "1.0": {}, "9" * 30: {}}


@pytest.mark.parametrize(
    ("method", "path", "wrap"),
    [
        ("PUT", X, lambda resource: resource),
        ("PATCH", X, lambda resource: resource),
        ("POST", "/dirs/d/datas", lambda resource: {"x": resource}),
        ("PUT", "/dirs/d", lambda resource: {"datas": {"x": resource}}),
        ("POST", "/", lambda resource: {"dirs": {"d": {"datas": {"x": resource}}}}),
    ],
)
@pytest.mark.parametrize("exists", [False, True])
def test_automatic_id_continues_after_sent_numbers(
    registry: Client, method: str, path: str, wrap: Any, exists: bool
) -> None:
    if exists:
        registry.put(X, {})
    assert registry.send(method, path, wrap({"versions": NUMBERED})).status in (200, 201)
    assert [registry.post(X, {}).json["versionid"] for _ in range(2)] == ["4", "5"]


def test_automatic_ids_continue_after_an_import(registry: Client) -> None:
    for _ in range(4):
        registry.post(X, {})
    registry.delete(f"{X}/versions/2")
    exported = registry.get("/export").json
    registry.delete("/dirs")
    assert registry.put("/?ignore=epoch", exported).status == 200
    assert registry.post(X, {}).json["versionid"] == "5"
