"""If-Match and If-None-Match on writes, which are evaluated against what a GET of the URL returns at that time.

Spec: RFC 9110#13; docs/registry.md#conditional-requests; docs/decisions/0151-conditional-writes.md.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.httpapi.conftest import FIXTURE, Client
from tests.httpapi.postgres import new_database
from tests.httpapi.servers import serving
from tests.httpapi.test_app import Web
from wirebook.httpapi.concurrency.commit_queue import CommitQueue

DATA, FILE = "/dirs/d/datas/x", "/dirs/d/files/f"
LONG = "d" * 2000
"""A value that makes an answer large enough to be compressed."""

SOURCE = {**FIXTURE, "description": "another"}
WRITES: tuple[tuple[str, str, Any], ...] = (
    ("PATCH", "/", {"name": "new"}),
    ("PUT", "/", {"name": "new"}),
    ("POST", "/", {"dirs": {"d": {"name": "new"}}}),
    ("PATCH", "/?inline=dirs", {"name": "new"}),
    ("POST", "/dirs", {"d": {"name": "new"}}),
    ("PATCH", "/dirs", {"d": {"name": "new"}}),
    ("DELETE", "/dirs", None),
    ("DELETE", "/dirs?limit=1", {"d": {}}),
    ("PUT", "/dirs/d", {"name": "new"}),
    ("PATCH", "/dirs/d", {"name": "new"}),
    ("POST", "/dirs/d", {"datas": {"x": {"name": "new"}}}),
    ("DELETE", "/dirs/d", None),
    ("POST", "/dirs/d/datas", {"x": {"name": "new"}}),
    ("PATCH", "/dirs/d/datas", {"x": {"name": "new"}}),
    ("DELETE", "/dirs/d/datas", None),
    ("PUT", DATA, {"name": "new"}),
    ("PUT", f"{DATA}?ignore=epoch", {"name": "new", "epoch": 77}),
    ("PATCH", DATA, {"name": "new"}),
    ("PATCH", f"{DATA}?inline=meta", {"name": "new"}),
    ("POST", DATA, {"versionid": "new"}),
    ("DELETE", DATA, None),
    ("PUT", f"{DATA}/meta", {"compatibility": "backward"}),
    ("PATCH", f"{DATA}/meta", {"defaultversionid": "1", "defaultversionsticky": True}),
    ("POST", f"{DATA}/versions", {"new": {}}),
    ("PATCH", f"{DATA}/versions", {"1": {"name": "new"}}),
    ("DELETE", f"{DATA}/versions", {"1": {}}),
    ("PUT", f"{DATA}/versions/1", {"name": "new"}),
    ("PATCH", f"{DATA}/versions/1", {"name": "new"}),
    ("DELETE", f"{DATA}/versions/1?setdefaultversionid=2", None),
    ("PUT", FILE, b"new"),
    ("POST", FILE, b"new"),
    ("DELETE", FILE, None),
    ("PUT", f"{FILE}$details", {"name": "new"}),
    ("PATCH", f"{FILE}$details", {"name": "new"}),
    ("PUT", f"{FILE}/versions/1", b"new"),
    ("PATCH", f"{FILE}/versions/1$details", {"name": "new"}),
    ("PATCH", "/capabilities", {"shortself": True}),
    ("PUT", "/modelsource", SOURCE),
)
IDS = [f"{method} {url}" for method, url, _ in WRITES]


@pytest.fixture
def filled(registry: Client) -> Client:
    registry.patch("/", {"description": LONG})
    registry.put("/dirs/d", {"description": LONG})
    registry.put(f"{DATA}/versions/1", {"description": LONG})
    registry.put(f"{DATA}/versions/2", {"description": LONG})
    registry.put(f"{FILE}$details", {"description": LONG, "file": {"a": LONG}})
    return registry


def tag_of(web: Web, url: str, accepted: str = "identity") -> str:
    answer = web.get(url, Accept_Encoding=accepted)
    assert answer.status_code == 200
    return str(answer.headers["etag"])


def failed(answer: httpx.Response, header: str, path: str) -> None:
    assert answer.status_code == 412, answer.text
    body = answer.json()
    assert body["type"] == "urn:wirebook:error:precondition_failed"
    assert (body["subject"], body["args"]) == (path.partition("?")[0], {"header": header})
    assert header in body["detail"]
    assert "rel=xregistry-root" in answer.headers["link"]


@pytest.mark.parametrize(("method", "url", "content"), WRITES, ids=IDS)
def test_write_with_another_etag_changes_nothing(filled: Client, method: str, url: str, content: Any) -> None:
    web = Web(filled)
    before = filled.get("/export").body
    tag = tag_of(web, url)
    for wrong in ('"other"', f"W/{tag}", f'"x{tag[1:]}', '"other", W/"more"', ""):
        failed(_send(web, method, url, content, If_Match=wrong), "If-Match", url)
    for known in ("*", tag, f"W/{tag}", f'"other" ,, {tag}'):
        failed(_send(web, method, url, content, If_None_Match=known), "If-None-Match", url)
    failed(_send(web, method, url, content, If_Match=tag, If_None_Match=tag), "If-None-Match", url)
    failed(_send(web, method, url, content, If_Match='"other"', If_None_Match='"other"'), "If-Match", url)
    assert filled.get("/export").body == before


@pytest.mark.parametrize(("method", "url", "content"), WRITES, ids=IDS)
@pytest.mark.parametrize("accepted", ["identity", "gzip"])
def test_write_with_the_current_etag_succeeds_once(
    filled: Client, method: str, url: str, content: Any, accepted: str
) -> None:
    web = Web(filled)
    tag = tag_of(web, url, accepted)
    done = _send(web, method, url, content, If_Match=f'"other", {tag}', If_None_Match='"other", W/"more"')
    assert done.status_code in (200, 201, 204), done.text
    is_gone = web.get(url).status_code == 404
    if is_gone or tag_of(web, url, accepted) != tag:  # a POST changes what is below its URL
        again = _send(web, method, url, content, If_Match=tag)
        assert again.status_code == (404 if is_gone and method == "DELETE" else 412)


def _send(web: Web, method: str, url: str, content: Any, **headers: str) -> httpx.Response:
    if content is None or isinstance(content, bytes):
        return web.send(method, url, content, **headers)
    return web.send(method, url, httpx.Request("POST", "http://h", json=content).content, **headers)


NEW = (
    ("PUT", "/dirs/new", b"{}"),
    ("PATCH", "/dirs/new", b"{}"),
    ("PUT", "/dirs/d/datas/new", b"{}"),
    ("PATCH", "/dirs/new/datas/new", b"{}"),
    ("POST", "/dirs/new/datas", b'{"new": {}}'),
    ("PUT", "/dirs/d/files/new", b"new"),
    ("PUT", "/dirs/d/files/new$details", b"{}"),
    ("PUT", f"{DATA}/versions/new", b"{}"),
    ("PUT", "/dirs/new/datas/new/versions/new", b"{}"),
    ("PUT", f"{FILE}/versions/new", b"new"),
)


@pytest.mark.parametrize(("method", "url", "content"), NEW, ids=[f"{method} {url}" for method, url, _ in NEW])
def test_if_none_match_star_creates_and_never_replaces(filled: Client, method: str, url: str, content: bytes) -> None:
    web = Web(filled)
    for missing in ("*", '"any"', '"any-gzip", "more"'):
        failed(web.send(method, url, content, If_Match=missing), "If-Match", url)
    assert web.get(url).status_code == 404
    assert web.send(method, url, content, If_None_Match="*").status_code in (200, 201)
    failed(web.send(method, url, content, If_None_Match="*"), "If-None-Match", url)
    assert web.send(method, url, content, If_Match="*").status_code in (200, 201)


def test_document_stored_elsewhere_is_not_replaced_with_if_none_match_star(filled: Client) -> None:
    web = Web(filled)
    filled.put("/dirs/d/files/e$details", {"fileurl": "http://elsewhere.test/e"})
    failed(web.send("PUT", "/dirs/d/files/e", b"new", If_None_Match="*"), "If-None-Match", "/dirs/d/files/e")
    failed(web.send("PUT", "/dirs/d/files/e", b"new", If_Match='"a"'), "If-Match", "/dirs/d/files/e")
    assert web.send("PUT", "/dirs/d/files/e", b"new", If_Match="*").status_code == 200


def test_delete_of_nothing_is_not_found_whatever_its_preconditions(filled: Client) -> None:
    for headers in ({"If_Match": "*"}, {"If_Match": '"a"'}, {"If_None_Match": "*"}):
        for url in ("/dirs/none", "/dirs/d/datas/none", f"{DATA}/versions/none", "/dirs/none/datas"):
            assert Web(filled).send("DELETE", url, **headers).status_code == 404


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
@pytest.mark.parametrize("value", ["tag", '"a', '*, "a"', '"a" "b"', 'w/"a"', '"a"b', '"a b"'])
def test_malformed_precondition_of_a_write_is_an_error(filled: Client, header: str, value: str) -> None:
    answer = Web(filled).send_lines("PUT", DATA, [(header, value)], b"{}")
    assert (answer.status_code, answer.json()["type"].rpartition("#")[2]) == (400, "header_error")
    assert answer.json()["args"]["name"] == header
    assert filled.get(DATA).json["epoch"] == 1


def test_very_long_precondition_takes_linear_time(filled: Client) -> None:
    for value in (" " * 60_000 + "x", '"a",' * 15_000 + "x", '"' * 60_000, "," * 60_000 + "x"):
        assert Web(filled).send("PUT", DATA, b"{}", If_Match=value).status_code == 400


def test_etags_in_several_header_lines_are_one_list(filled: Client) -> None:
    web = Web(filled)
    lines = [("If-Match", '"other"'), ("If-Match", tag_of(web, DATA))]
    assert web.send_lines("PUT", DATA, lines, b"{}").status_code == 200


def test_errors_before_the_content_precede_preconditions(filled: Client) -> None:
    """RFC 9110#13.2.1: preconditions are ignored if the response without them is an error."""
    web = Web(filled, write_token="secret")
    assert web.send("PUT", DATA, b"{}", If_Match='"other"').status_code == 401
    web = Web(filled)
    assert web.send("PUT", "/none/d", b"{}", If_Match='"other"').status_code == 400
    assert web.send("PATCH", FILE, b"{}", If_Match='"other"').status_code == 405
    assert web.send("PUT", DATA, b"{}", If_Match='"other"', Origin="https://page.example").status_code == 403
    available = {"available": {"capabilities": {"mutable": True}, "entities": {"mutable": True}}}
    assert filled.patch("/capabilities", available).status == 200
    filled.patch("/capabilities", {"available": {"capabilities": {"mutable": False}}})
    answer = web.send("PATCH", "/capabilities", b"{}", If_Match='"other"')
    assert (answer.status_code, answer.json()["type"].rpartition("#")[2]) == (400, "not_available")


def test_preconditions_precede_the_content(filled: Client) -> None:
    failed(Web(filled).send("PUT", DATA, b"no JSON", If_Match='"other"'), "If-Match", DATA)


def test_read_with_another_etag_fails(filled: Client) -> None:
    web = Web(filled)
    for url in ("/", "/dirs", "/dirs/d", DATA, f"{DATA}/meta", FILE, f"{FILE}$details", "/model"):
        plain, packed = tag_of(web, url), tag_of(web, url, "gzip")
        failed(web.get(url, If_Match='"other"'), "If-Match", url)
        failed(web.get(url, If_Match=f"W/{plain}"), "If-Match", url)
        assert web.send("HEAD", url, If_Match='"other"').status_code == 412
        assert web.get(url, If_Match='"other"', If_None_Match=plain).status_code == 412
        assert {web.get(url, If_Match=tag).status_code for tag in (plain, packed, "*")} == {200}
        assert web.get(url, If_Match=plain, If_None_Match=plain).status_code == 304
    assert web.get("/dirs/none", If_Match='"other"').status_code == 404


def test_import_has_no_representation(filled: Client) -> None:
    filled.service.context = replace(filled.service.context, read_catalogue=_no_groups)
    web = Web(filled)
    failed(web.send("POST", "/.wirebook/import", b"{}", If_Match="*"), "If-Match", "/.wirebook/import")
    assert web.send("POST", "/.wirebook/import", b"{}", If_None_Match="*").status_code == 200


def _no_groups(_: bytes) -> Any:
    return lambda model: ({}, ())


def test_write_in_a_shared_commit_sees_the_etag_of_the_write_before(filled: Client) -> None:
    """Writes that share a commit see each other: the first with an ETag succeeds, the others fail."""
    web, tag = Web(filled), tag_of(Web(filled), DATA)
    with closing(CommitQueue(filled.database)) as writer, ThreadPoolExecutor(8) as pool:
        filled.service.commit_queue.close()
        filled.service.commit_queue = writer
        held = pool.submit(writer.submit(lambda session: time.sleep(0.5)).result)
        futures = [pool.submit(web.send, "PATCH", DATA, f'{{"name": "{n}"}}', If_Match=tag) for n in range(7)]
        statuses = sorted(future.result().status_code for future in futures)
        held.result()
        filled.service.commit_queue = CommitQueue(filled.database)
    assert statuses == [200, *[412] * 6]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_one_of_many_writes_with_the_same_etag_succeeds(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """On server processes; two of them with PostgreSQL."""
    db = f"sqlite:///{tmp_path / 'r.db'}"
    if database == "postgresql":
        db = new_database(request.getfixturevalue("postgresql"), "race")
    url = "/messagegroups/race/messages/m"
    with serving(db, tmp_path / "log", count=1 if database == "sqlite" else 2) as servers:
        clients = [server.client(headers={"Host": "localhost"}) for server in servers]  # tags depend on the URL
        clients[0].put(url, json={"description": LONG})
        with ThreadPoolExecutor(8) as pool:
            for turn in range(10):
                tag = clients[turn % len(clients)].get(url).headers["etag"]
                assert tag.endswith('-gzip"')
                futures = [
                    pool.submit(
                        clients[n % len(clients)].patch, url, json={"name": f"{turn}.{n}"}, headers={"If-Match": tag}
                    )
                    for n in range(8)
                ]
                assert sorted(future.result().status_code for future in futures) == [200, *[412] * 7]
                assert clients[0].get(url).json()["epoch"] == turn + 2
        for client in clients:
            client.close()
