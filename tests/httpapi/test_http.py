"""Paths, methods, discovery, and requests over ASGI. Tests are named after rows of the checklist.

Spec: core/http.md#http-api-patterns; core/http.md#http-options-method; core/http.md#xregistry-discovery.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.httpapi.conftest import BASE, Client
from tests.httpapi.servers import serving
from tests.httpapi.test_app import Web

F, X = "/dirs/d/files/f", "/dirs/d/datas/x"


@pytest.fixture
def filled(registry: Client) -> Client:
    assert registry.put(F, b'{"a": 1}', content_type="application/json").status == 201
    assert registry.post(f"{X}/versions", {"v1": {}, "v2": {}}).status == 200
    return registry


# -- paths and methods --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", [f"{F}/nope", f"{X}/meta/x", f"{X}/versions/v1/x", f"{X}/versions/v1/meta/x", f"{X}/Meta"]
)
def test_unknown_path_is_not_found(filled: Client, path: str) -> None:
    for method in ("GET", "PUT", "POST", "DELETE"):
        assert filled.send(method, path, {}).error == (404, "not_found", path)


# -- as it comes over the wire ------------------------------------------------------------------------------------


@pytest.fixture
def web(filled: Client) -> Web:
    return Web(filled)


def test_head_returns_the_headers_of_get(web: Web) -> None:
    for path in ("/", "/dirs", F, X, "/export", "/model", "/nope", "/dirs/none"):
        head, get = web.send("HEAD", path), web.get(path)
        assert (head.status_code, head.content) == (get.status_code, b"")
        assert dict(head.headers) == dict(get.headers)


@pytest.mark.parametrize(
    ("path", "same"),
    [
        ("/dirs/", "/dirs"),
        (f"{BASE}//dirs", "/dirs"),
        ("/capabilities/", "/capabilities"),
        (f"{X}/", X),
        (f"{F}%24details", f"{F}$details"),
        ("/dirs/%64", "/dirs/d"),
        ("/dirs%2Fd", "/dirs/d"),
        (f"{X}/%76ersions/v1", f"{X}/versions/v1"),
    ],
)
def test_equivalent_paths_return_the_same(web: Web, path: str, same: str) -> None:
    assert web.get(path).status_code == web.get(same).status_code == 200
    assert web.get(path).content == web.get(same).content


def test_percent_encoded_path_and_flags_are_decoded(web: Web) -> None:
    assert web.get("/dirs/%E9").json()["type"].endswith("#bad_request")
    assert web.get("/dirs/n%C3%A9").json()["subject"] == "/dirs/né"
    assert web.send("PUT", "/dirs/a%20b", "{}").json()["args"]["id"] == "a b"
    web.send("PUT", "/dirs/e", '{"name": "a b&c=é+"}')
    assert list(web.get("/dirs?filter=name=a%20b%26c%3D%C3%A9%2B").json()) == ["e"]
    assert list(web.get("/dirs?filter=name%3Da+b*").json()) == ["e"]
    assert web.get("/?%69nline=dirs").json()["dirs"].keys() == {"d", "e"}


def test_c_ent_02_a_prefix_is_on_everything(filled: Client) -> None:
    web = Web(filled, base_path="/reg")
    base = f"{BASE}/reg"
    assert web.get("/reg").json()["self"] == f"{base}/"
    group = web.get("/reg/dirs/d").json()
    assert (group["self"], group["xid"], group["filesurl"]) == (f"{base}/dirs/d", "/dirs/d", f"{base}/dirs/d/files")
    assert web.get(f"/reg{F}").headers["xRegistry-self"] == f"{base}{F}"
    created = web.send("PUT", "/reg/dirs/e", "{}")
    assert created.headers["Location"] == f"{base}/dirs/e"
    assert f"<{base}>;rel=xregistry-root" in created.headers["Link"]
    assert f"<{base}/dirs?limit=1&after=d>;rel=next" in web.get("/reg/dirs?limit=1").headers["Link"]
    for path in ("/reg/.xregistry", "/.well-known/xregistry"):
        assert web.get(path).json() == {"registries": [base]}
    for path in ("/dirs/d", "/register", "/", "/export"):
        error = web.get(path)
        assert (error.status_code, error.json()["subject"]) == (404, path)
        assert error.json()["type"].endswith("http.md#api_not_found")


def test_c_lnk_01_refusals_at_the_door_lead_to_the_root(filled: Client) -> None:
    web = Web(filled, base_path="/reg", write_token="secret", max_body=10)
    token = {"authorization": "Bearer secret"}
    refusals = [
        (web.get("/dirs"), 404),
        (web.get("/reg/dirs/%E9"), 400),
        (web.send("PUT", "/reg/dirs/d", "{}"), 401),
        (web.send("PUT", "/reg/dirs/d", "{}", origin="http://other", **token), 403),
        (web.send("PUT", "/reg/dirs/d", '{"name": "name"}', **token), 413),
    ]
    for reply, status in refusals:
        assert (reply.status_code, reply.headers["Link"]) == (status, f"<{BASE}/reg>;rel=xregistry-root")
        assert reply.headers["Content-Type"] == "application/json; charset=utf-8"
        assert {"type", "title", "subject"} <= reply.json().keys()
        assert ("WWW-Authenticate" in reply.headers) == (status == 401)
    bad = web.get("/reg", host="no host")
    assert (bad.status_code, bad.json()["type"]) == (400, "urn:wirebook:error:bad_host")


def test_page_of_an_allowed_origin_may_read_and_write(filled: Client) -> None:
    web = Web(filled, cors_origins=("http://friend",))
    asked = web.send("OPTIONS", "/dirs/d", origin="http://friend", access_control_request_method="PUT")
    assert asked.headers["Access-Control-Allow-Origin"] == "http://friend"
    assert "PUT" in asked.headers["Access-Control-Allow-Methods"]
    assert asked.headers["Access-Control-Allow-Headers"] == "*, Authorization"
    written = web.send("PUT", "/dirs/d", "{}", origin="http://friend")
    assert (written.status_code, written.headers["Access-Control-Expose-Headers"]) == (200, "*")
    assert "Access-Control-Allow-Origin" not in web.get("/dirs/d", origin="http://other").headers
    assert web.send("PUT", "/dirs/d", "{}", origin="http://other").status_code == 403


def test_c_http_02_methods_that_nobody_knows(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'r.db'}", tmp_path / "log") as (server,), server.client() as client:
        for method in ("FOO", "M-SEARCH", "TRACE", "PROPFIND", "X!", "FOO"):
            for content in (None, b"body"):
                reply = client.request(method, "/schemagroups", content=content)
                assert (reply.status_code, reply.json()["args"]) == (405, {"action": method})
                assert reply.headers["Allow"] == "DELETE, GET, OPTIONS, PATCH, POST"
                assert client.get("/schemagroups").json() == {}
