"""Large responses, slow reads, and responses that fail while they are rendered.

Spec: docs/registry.md#limits; core/spec.md#too_large; core/spec.md#server_busy.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from tests.httpapi.conftest import Client
from tests.httpapi.servers import serving
from tests.httpapi.test_app import Web
from wirebook.httpapi.handlers.context import ResponseLimits
from wirebook.httpapi.http.messages import ApiRequest
from wirebook.httpapi.http.spool import CHUNK_SIZE, MEMORY_LIMIT, BodySpool, BrokenBody, render_body
from wirebook.problems.xregistry import Refused
from wirebook.storage.database import Database
from wirebook.storage.streaming import TooSlow

LINE = "x" * 1000
DATAS = {f"d{number:04}": {"description": LINE} for number in range(1500)}
BREAK = "UPDATE versions SET tail = '\"formatvalidated\":' WHERE parent = (SELECT key FROM resources WHERE id = "


@pytest.fixture
def filled(registry: Client) -> Iterator[Client]:
    assert registry.post("/dirs/d/datas", DATAS).status == 200
    yield registry
    registry.service.close()


def limited(registry: Client, **limits: Any) -> Client:
    registry.service.context = replace(registry.service.context, limits=ResponseLimits(**limits))
    return registry


def spoil(registry: Client, id_: str) -> None:
    """Change a row so that it cannot be rendered in document view."""
    with registry.database.transaction() as connection:
        connection.execute(text(f"{BREAK}'{id_}')"))


# -- bodies -------------------------------------------------------------------------------------------------------


def test_small_body_stays_in_memory() -> None:
    assert render_body(["a", "ä"], "/", 10) == "aä".encode()
    assert render_body([], "/", 10) == b""


def test_large_body_is_read_while_it_is_written() -> None:
    pieces = [f"{number:07}," for number in range(400_000)]
    spool = render_body(pieces, "/", 1 << 30)
    assert isinstance(spool, BodySpool)
    assert spool.is_complete
    parts = list(spool)
    assert max(map(len, parts)) <= CHUNK_SIZE
    assert b"".join(parts) == b"".join(spool) == "".join(pieces).encode()


@pytest.mark.parametrize("most", [5, MEMORY_LIMIT + 5])
def test_body_above_the_limit_is_rejected(most: int) -> None:
    render_body(["x"] * most, "/p", most)
    with pytest.raises(Refused) as caught:
        render_body(["x"] * (most + 1), "/p", most)
    assert (caught.value.type.name, caught.value.type.status) == ("too_large", 406)


def test_abandoned_spool_rejects_writes() -> None:
    spool = BodySpool()
    spool.write(b"1")
    spool.end(failed=True)
    with pytest.raises(BrokenBody):
        spool.write(b"2")
    with pytest.raises(BrokenBody):
        list(spool)


def test_spool_reader_waits_for_the_writer() -> None:
    spool, seen = BodySpool(), list[bytes]()
    reader = threading.Thread(target=lambda: seen.extend(spool))
    reader.start()
    for part in (b"one", b"two"):
        spool.write(part)
    spool.end()
    reader.join(10)
    assert b"".join(seen) == b"onetwo"


# -- too large, too slow --------------------------------------------------------------------------------------------


def test_response_above_the_limit_is_rejected_but_its_pages_are_not(filled: Client) -> None:
    registry = limited(filled, response=300_000)
    assert registry.get("/dirs/d/datas").error == (406, "too_large", "/dirs/d/datas")
    assert registry.get("/?inline=*").error == (406, "too_large", "/")
    assert len(registry.get("/dirs/d/datas?limit=100").json) == 100
    assert len(registry.get("/export").json["dirs"]["d"]["datas"]) == len(DATAS)


@pytest.mark.parametrize("url", ["/dirs", "/dirs/d/datas?filter=description=*y", "/dirs/d/datas?sort=description"])
def test_read_above_the_time_limit_is_rejected(registry: Client, url: str) -> None:
    registry.put("/dirs/d/datas/a", {"description": "xyz"})
    reply = limited(registry, read_seconds=0).get(url)
    assert reply.error == (503, "server_busy", url.partition("?")[0])
    assert int(reply.headers["Retry-After"]) > 0
    assert limited(registry, read_seconds=30).get(url).status == 200
    assert limited(registry, export_seconds=0).get("/export").error == (503, "server_busy", "/export")


def test_slow_query_without_rows_is_interrupted(database: Database) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(TooSlow), database.reading(0.2) as session:
        session.connection.execute(text(endless))
    with database.reading(5) as session:
        assert session.connection.execute(text("SELECT 1")).scalar() == 1


# -- failures -------------------------------------------------------------------------------------------------------


def test_failure_in_a_small_response_is_an_error(registry: Client) -> None:
    registry.post("/dirs/d/datas", {"a": {}, "b": {}})
    spoil(registry, "b")
    for url in ("/export", "/dirs?inline=*&doc", "/dirs/d/datas/b/versions/1?doc"):
        assert registry.get(url).error[:2] == (500, "server_error")
    assert registry.get("/dirs/d/datas/a?doc").status == 200


def test_failure_in_a_large_response_is_an_error(filled: Client) -> None:
    spoil(filled, "d1499")
    assert filled.get("/dirs?inline=*&doc").error == (500, "server_error", "/dirs")


def test_failed_export_is_cut_off(filled: Client) -> None:
    spoil(filled, "d1499")
    answer = filled.service.handle(ApiRequest("GET", "/export", "http://registry.test", {}, []))
    assert isinstance(answer.body, BodySpool)
    with pytest.raises(BrokenBody):
        list(answer.body)


def test_abandoned_export_ends(filled: Client) -> None:
    for _ in range(5):
        answer = filled.service.handle(ApiRequest("GET", "/export", "http://registry.test", {}, []))
        assert isinstance(answer.body, BodySpool)
        answer.body.end(failed=True)
    assert filled.get("/export").status == 200


# -- sent -----------------------------------------------------------------------------------------------------------


def test_large_response_is_complete_with_and_without_gzip(filled: Client) -> None:
    web = Web(filled)
    for url in ("/export", "/dirs/d/datas"):
        plain, packed = (web.get(url, accept_encoding=coding) for coding in ("identity", "gzip"))
        assert plain.json() == packed.json()
        assert packed.headers["content-encoding"] == "gzip"
        assert web.send("HEAD", url).content == b""
    whole = web.get("/dirs/d/datas", accept_encoding="identity")
    assert int(whole.headers["content-length"]) == len(whole.content)
    assert web.get("/dirs/d/datas", accept_encoding="identity").headers["etag"] == whole.headers["etag"]
    assert web.get("/dirs/d/datas", if_none_match=whole.headers["etag"]).status_code == 304


def test_server_cuts_off_a_failed_export(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    with serving(f"sqlite:///{path}", tmp_path / "log") as [server], server.client() as client:
        model = {
            "groups": {"dirs": {"singular": "dir", "resources": {"datas": {"singular": "data", "hasdocument": False}}}}
        }
        assert client.put("/modelsource", content=json.dumps(model)).status_code == 200
        assert client.post("/dirs/d/datas", content=json.dumps(DATAS)).status_code == 200
        with client.stream("GET", "/export", headers={"accept-encoding": "gzip"}) as answer:
            raw = b"".join(answer.iter_raw())
        assert len(json.loads(gzip.decompress(raw))["dirs"]["d"]["datas"]) == len(DATAS)
        with sqlite3.connect(path) as connection:
            connection.execute(f"{BREAK}'d1499')")
        connection.close()
        for coding in ("identity", "gzip"):
            with pytest.raises(httpx.RemoteProtocolError):
                client.get("/export", headers={"accept-encoding": coding})
        assert client.get("/dirs/d/datas/d0000").status_code == 200
