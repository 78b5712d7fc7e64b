"""ETags change whenever the bytes of a response change, and If-None-Match returns 304.

Spec: docs/decisions/0102-etags.md; docs/registry.md#reading.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.httpapi.conftest import FIXTURE, Client
from tests.httpapi.test_app import HOST, Web

DATA = "/dirs/d/datas"
URLS = (
    "/",
    "/?inline=*",
    "/export",
    "/dirs",
    "/dirs/d",
    DATA,
    f"{DATA}?inline",
    *(
        f"{DATA}/{below}"
        for below in (
            "x",
            "x?inline=*",
            "x?doc",
            "x?filter=name=two",
            "x/meta",
            "x/versions",
            "x/versions/1",
            "x/versions/2",
            "source",
            "source/meta",
            "source/versions/1",
            "source/versions/2",
        )
    ),
    "/dirs/d/files/f",
    "/dirs/d/files/f$details",
    "/dirs/d/files/f$details?inline=file",
    "/dirs/d/files/f/versions/1",
)
WRITES: tuple[tuple[str, str, Any], ...] = (
    ("PUT", f"{DATA}/source/meta", {"xref": f"{DATA}/x"}),
    ("PUT", f"{DATA}/x/versions/1", {"name": "one"}),
    ("PUT", f"{DATA}/x/versions/2", {"name": "two"}),
    ("PATCH", f"{DATA}/x/meta", {"defaultversionid": "1", "defaultversionsticky": True}),
    ("PATCH", f"{DATA}/x/versions/2", {"name": "three"}),
    ("PATCH", f"{DATA}/x/meta", {"defaultversionsticky": False}),
    ("DELETE", f"{DATA}/x/versions/2", None),
    ("PUT", f"{DATA}/x/versions/2", {"name": "two"}),
    ("DELETE", f"{DATA}/x", None),
    ("PUT", f"{DATA}/x/versions/1", {"name": "one"}),
    ("PUT", f"{DATA}/source/meta", {"xref": None}),
    ("PATCH", "/dirs/d", {"name": "a directory"}),
    ("PUT", "/dirs/d/files/f", b"first"),
    ("PUT", "/dirs/d/files/f", b"second"),
    ("PATCH", "/capabilities", {"shortself": True}),
    ("PUT", "/modelsource", {**FIXTURE, "description": "another"}),
    ("DELETE", "/dirs", None),
)


def _seen(web: Web) -> dict[str, httpx.Response]:
    return {url: web.get(url) for url in URLS}


def test_etag_changes_with_the_bytes(registry: Client) -> None:
    web = Web(registry)
    registry.put("/dirs/d", {})
    before = _seen(web)
    for method, url, content in WRITES:
        done = registry.send(method, url, content)
        assert done.status < 300, (method, url, done.body)
        after = _seen(web)
        for path in URLS:
            _check(web, path, before[path], after[path])
        before = after


def _check(web: Web, url: str, before: httpx.Response, after: httpx.Response) -> None:
    assert ("etag" in after.headers) == (after.status_code == 200)
    if before.status_code == after.status_code == 200 and before.content != after.content:
        assert before.headers["etag"] != after.headers["etag"], url
        assert web.get(url, If_None_Match=before.headers["etag"]).content == after.content
    if after.status_code == 200:
        same = web.get(url, If_None_Match=f'"other", W/{after.headers["etag"]}')
        assert (same.status_code, same.content) == (304, b"")
        assert same.headers["etag"] == after.headers["etag"]


def test_etag_depends_on_the_base_url(registry: Client) -> None:
    web = Web(registry)
    registry.put(f"{DATA}/x", {})
    url = f"{DATA}/x"
    tags = {web.get(url, Host=host).headers["etag"] for host in ("a.test", "b.test")}
    tags |= {web.get(f"{url}{query}").headers["etag"] for query in ("", "?inline=meta", "?doc")}
    assert len(tags) == 5


def test_compressed_response_has_its_own_etag(registry: Client) -> None:
    web = Web(registry)
    url = f"{DATA}/x"
    registry.put(url, {"description": "d" * 2000})
    plain, packed = (web.get(url, Accept_Encoding=accepted) for accepted in ("identity", "gzip"))
    assert packed.headers["content-encoding"] == "gzip"
    assert plain.headers["etag"] != packed.headers["etag"]
    for answer in (plain, packed):
        same = web.get(url, Accept_Encoding="gzip", If_None_Match=answer.headers["etag"])
        assert (same.status_code, same.headers["etag"]) == (304, answer.headers["etag"])


def test_compressed_response_is_deterministic(registry: Client) -> None:
    registry.put(f"{DATA}/x", {"description": "d" * 2000})

    async def raw() -> bytes:
        transport = httpx.ASGITransport(Web(registry).app)
        async with (
            httpx.AsyncClient(transport=transport, base_url=HOST) as client,
            client.stream("GET", f"{DATA}/x", headers={"Accept-Encoding": "gzip"}) as answer,
        ):
            return b"".join([part async for part in answer.aiter_raw()])

    packed = asyncio.run(raw())
    assert (packed[:2], packed[4:8]) == (b"\x1f\x8b", bytes(4))  # gzip, and no time in it


@pytest.mark.parametrize("tags", ['"other"', '"other", "more"', "other", ""])
def test_stale_if_none_match_returns_200(registry: Client, tags: str) -> None:
    registry.put(f"{DATA}/x", {})
    assert Web(registry).get(f"{DATA}/x", If_None_Match=tags).status_code == 200


def test_if_none_match_star_returns_304(registry: Client) -> None:
    registry.put(f"{DATA}/x", {})
    assert Web(registry).get(f"{DATA}/x", If_None_Match="*").status_code == 304
    assert Web(registry).get(f"{DATA}/none", If_None_Match="*").status_code == 404


def test_if_none_match_star_without_a_version_is_not_found(registry: Client) -> None:
    registry.put(f"{DATA}/x", {})
    assert Web(registry).get(f"{DATA}/x/versions/none", If_None_Match="*").status_code == 404


def test_document_stored_elsewhere_is_a_redirect_despite_if_none_match(registry: Client) -> None:
    registry.put("/dirs/d/files/f$details", {"fileurl": "http://elsewhere.test/f"})
    answer = Web(registry).get("/dirs/d/files/f", If_None_Match="*")
    assert (answer.status_code, answer.headers["location"]) == (303, "http://elsewhere.test/f")
    assert "etag" not in answer.headers


def test_etag_does_not_depend_on_the_origin(registry: Client) -> None:
    web = Web(registry)
    registry.put("/dirs/d", {})
    assert web.get("/dirs/d").headers["etag"] == web.get("/dirs/d", Origin=HOST).headers["etag"]


def test_if_none_match_lines_are_one_list(registry: Client) -> None:
    registry.put(f"{DATA}/x", {})
    tag = Web(registry).get(f"{DATA}/x").headers["etag"]
    headers = [("if-none-match", '"other"'), ("if-none-match", tag)]
    assert Web(registry).send_lines("GET", f"{DATA}/x", headers).status_code == 304
