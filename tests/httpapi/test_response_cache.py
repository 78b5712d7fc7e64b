"""The response cache: small SQLite reads share transactions, and responses are cached until the next write."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event

from tests.httpapi.conftest import BASE, FIXTURE, Client, serve
from wirebook.httpapi.concurrency import response_cache
from wirebook.httpapi.http.messages import ApiRequest
from wirebook.storage.database import open_database

PATHS = [f"/dirs/d/datas/x{number}" for number in range(8)]
PATH = PATHS[0]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Client]:
    with closing(open_database(f"sqlite:///{tmp_path}/registry.db")) as database:
        client = serve(database, FIXTURE)
        assert {client.put(path, {"name": "first"}).status for path in PATHS} == {201}
        yield client


@pytest.fixture
def begun(registry: Client) -> Iterator[list[str]]:
    """The read transactions that have begun."""
    seen: list[str] = []

    def watch(driver: sqlite3.Connection, *_: object) -> None:
        driver.set_trace_callback(lambda statement: seen.append(statement) if statement == "BEGIN" else None)

    event.listen(registry.database.engine, "checkout", watch)
    yield seen
    event.remove(registry.database.engine, "checkout", watch)


class Loop:
    """An event loop whose callbacks run when the test says so."""

    def __init__(self, registry: Client) -> None:
        self._registry, self._callbacks = registry, list[Callable[[], None]]()

    def read(self, path: str = PATH) -> tuple[int, bytes]:
        answer = self._registry.service.read_cached(ApiRequest("GET", path, BASE, {}, []), self._callbacks.append)
        assert answer
        assert isinstance(answer.body, bytes)
        return answer.status, answer.body

    def turn(self) -> None:
        while self._callbacks:
            self._callbacks.pop(0)()


@pytest.fixture
def loop(registry: Client) -> Loop:
    return Loop(registry)


def test_reads_of_one_loop_iteration_share_a_transaction(loop: Loop, begun: list[str]) -> None:
    assert {loop.read(path)[0] for path in PATHS[:3]} == {200}
    assert len(begun) == 1
    loop.turn()
    loop.read(PATHS[3])
    assert len(begun) == 2


def test_response_is_cached_until_the_next_write(loop: Loop, registry: Client, begun: list[str]) -> None:
    first = loop.read()
    loop.turn()
    assert loop.read() == first
    assert len(begun) == 1
    registry.put("/dirs/other", {})
    assert loop.read() == first
    assert len(begun) == 2


def test_modified_response_does_not_change_the_cache(loop: Loop, registry: Client) -> None:
    request = ApiRequest("GET", PATH, BASE, {}, [])
    for _ in range(2):
        answer = registry.service.read_cached(request, lambda _: None)
        assert answer
        assert (answer.status, "ETag" in answer.headers) == (200, False)
        answer.status, answer.body, answer.headers["ETag"] = 304, b"", "x"


def test_response_cache_is_limited(loop: Loop, registry: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_cache, "MAX_BYTES", 4 * response_cache.ENTRY_BYTES)
    for path in (*PATHS, *PATHS):
        assert loop.read(path)[0] == 200
    assert len(registry.service.response_cache) <= 4


def test_cached_response_to_if_none_match_is_304(loop: Loop, registry: Client) -> None:
    first = registry.service.read_cached(ApiRequest("GET", PATH, BASE, {}, []), lambda _: None)
    assert first
    for _ in range(2):
        request = ApiRequest("GET", PATH, BASE, {}, [("if-none-match", f'"{first.etag}"')])
        answer = registry.service.read_cached(request, lambda _: None)
        assert answer
        assert (answer.status, answer.body) == (304, b"")
    assert loop.read()[0] == 200


def test_write_is_visible_to_the_next_read(loop: Loop, registry: Client) -> None:
    assert b'"first"' in loop.read()[1]
    assert registry.put(PATH, {"name": "second"}).status == 200
    assert b'"second"' in loop.read()[1]
    loop.turn()
    assert b'"second"' in loop.read()[1]


def test_model_change_is_visible_to_the_next_read(loop: Loop, registry: Client) -> None:
    assert loop.read()[0] == 200
    changed = registry.get("/modelsource").json
    changed["groups"]["dirs"]["resources"]["datas"]["attributes"]["motto"] = {"type": "string"}
    assert registry.put("/modelsource", changed).status == 200
    assert registry.put(PATH, {"motto": "new"}).status == 200
    loop.turn()
    assert b'"motto":"new"' in loop.read()[1]


def test_not_found_ends_the_shared_transaction(loop: Loop, begun: list[str]) -> None:
    assert loop.read("/dirs/d/datas/none")[0] == 404
    assert loop.read()[0] == 200
    assert len(begun) == 2
    loop.turn()
    assert loop.read()[0] == 200


def test_read_after_a_database_failure_succeeds(loop: Loop, registry: Client) -> None:
    loop.read(PATHS[1])
    loop.turn()
    with registry.database.transaction() as connection:
        connection.exec_driver_sql("ALTER TABLE resources RENAME TO gone")
    assert loop.read()[0] == 500
    loop.turn()
    with registry.database.transaction() as connection:
        connection.exec_driver_sql("ALTER TABLE gone RENAME TO resources")
    assert loop.read()[0] == 200
