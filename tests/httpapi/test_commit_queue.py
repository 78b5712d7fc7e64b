"""The commit queue: writes that share a commit are atomic, and are answered when they are on disk."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, event

from tests.httpapi.conftest import Client, Reply
from wirebook.httpapi.handlers.registry_writer import RegistryWriter
from wirebook.httpapi.http.messages import ApiRequest, ApiResponse
from wirebook.problems.xregistry import refused
from wirebook.storage.database import Database
from wirebook.storage.statements import driver_of

SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
POSTGRESQL = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


def together(registry: Client, *writes: tuple[str, Any]) -> list[Reply]:
    """The responses to writes that share a commit: they are queued while the commit queue runs another write."""
    is_busy, may_continue = threading.Event(), threading.Event()

    def hold(_: Any) -> None:
        is_busy.set()
        assert may_continue.wait(10)

    with ThreadPoolExecutor(len(writes) + 1) as pool:
        first = pool.submit(registry.service.write, hold)
        assert is_busy.wait(10)
        waiting = []
        for path, content in writes:  # in this order
            waiting.append(pool.submit(registry.put, path, content))
            while len(registry.service.commit_queue) < len(waiting):
                pass
        may_continue.set()
        first.result()
        return [future.result() for future in waiting]


def writes_of(database: Database) -> list[str]:
    """A list that gets an item for each write transaction."""
    seen: list[str] = []
    database.observe = lambda kind, _: seen.append(kind) if kind == "write" else None
    return seen


def test_queued_writes_share_a_commit(registry: Client) -> None:
    seen = writes_of(registry.database)
    answers = together(registry, *((f"/dirs/d{place}", {}) for place in range(8)))
    assert [answer.status for answer in answers] == [201] * 8
    assert len(seen) == 2


@SQLITE
def test_concurrent_clients_write_faster_than_one(registry: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """With commits of at least 20 ms, 16 clients write at least three times as much as one."""
    dedicated_connection = Database.dedicated_connection

    @contextmanager
    def slowly(self: Database, purpose: str, begin: str) -> Iterator[Connection]:
        with dedicated_connection(self, purpose, begin) as connection:
            yield connection
            time.sleep(0.02)

    monkeypatch.setattr(Database, "dedicated_connection", slowly)

    def rate(clients: int) -> float:
        """Writes a second, each client one after the other."""
        started = time.perf_counter()
        with ThreadPoolExecutor(clients) as pool:
            for client in range(clients):
                pool.submit(lambda client=client: [registry.put(f"/dirs/{clients}-{client}-{n}", {}) for n in range(6)])
        return 6 * clients / (time.perf_counter() - started)

    one = rate(1)
    assert rate(16) >= 3 * one


def test_rejected_write_does_not_affect_its_batch(registry: Client) -> None:
    answers = together(
        registry,
        ("/dirs/a", {}),
        ("/dirs/b", {"labels": 5}),
        ("/dirs/c", {"files": {"f": {}, "g": {"labels": 5}}}),
        ("/dirs/d", {}),
    )
    assert [answer.status for answer in answers] == [201, 400, 400, 201]
    assert list(registry.get("/dirs").json) == ["a", "d"]
    assert registry.get("/").json["epoch"] == 3


def test_write_failing_after_storing_does_not_affect_its_batch(
    registry: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    render = RegistryWriter.render_result

    def fails_for_one(self: RegistryWriter, request: ApiRequest, *rest: Any) -> ApiResponse:
        if request.path == "/dirs/b":
            assert self.session.group("dirs", "b")
            raise refused("too_large", request.path)
        return render(self, request, *rest)

    monkeypatch.setattr(RegistryWriter, "render_result", fails_for_one)
    answers = together(registry, ("/dirs/a", {}), ("/dirs/b", {}), ("/dirs/c", {}))
    assert [answer.status for answer in answers] == [201, 406, 201]
    assert list(registry.get("/dirs").json) == ["a", "c"]
    assert registry.get("/").json["epoch"] == 3


@POSTGRESQL
def test_closed_connection_loses_no_write_of_the_batch(registry: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other writes of the batch are repeated in their own transactions."""
    render, cuts = RegistryWriter.render_result, [None]

    def cuts_once(self: RegistryWriter, request: ApiRequest, *rest: Any) -> ApiResponse:
        if request.path == "/dirs/b" and cuts:
            cuts.pop()
            driver_of(self.session.connection).execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return render(self, request, *rest)

    monkeypatch.setattr(RegistryWriter, "render_result", cuts_once)
    answers = together(registry, ("/dirs/a", {}), ("/dirs/b", {}), ("/dirs/c", {}))
    assert [answer.status for answer in answers] == [201] * 3
    assert registry.get("/").json["epoch"] == 4


@POSTGRESQL
def test_failed_statement_does_not_affect_its_batch(registry: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL rejects everything after it in the transaction; the writes are repeated in their own transactions."""
    render = RegistryWriter.render_result

    def fails_for_one(self: RegistryWriter, request: ApiRequest, *rest: Any) -> ApiResponse:
        if request.path == "/dirs/b":
            driver_of(self.session.connection).execute("SELECT 1 / 0")
        return render(self, request, *rest)

    monkeypatch.setattr(RegistryWriter, "render_result", fails_for_one)
    answers = together(registry, ("/dirs/a", {}), ("/dirs/b", {}), ("/dirs/c", {}))
    assert [answer.status for answer in answers] == [201, 500, 201]
    assert list(registry.get("/dirs").json) == ["a", "c"]


@SQLITE
def test_full_disk_loses_no_acknowledged_write(registry: Client) -> None:
    """SQLite then rolls back the whole transaction, with the other writes of the batch."""
    with registry.database.transaction() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()

    def limit_size(driver: sqlite3.Connection, *_: object) -> None:
        driver.execute(f"PRAGMA max_page_count={pages + 40}")

    event.listen(registry.database.engine, "checkout", limit_size)
    large = {"files": {f"f{place}": {"file": "x" * 100_000} for place in range(30)}}
    answers = together(registry, ("/dirs/a", {}), ("/dirs/b", large), ("/dirs/c", {}))
    there = list(registry.get("/dirs").json)
    assert [id_ for id_, answer in zip("abc", answers, strict=True) if answer.status == 201] == there == ["a", "c"]
    assert (answers[1].status, answers[1].json["type"]) == (507, "urn:wirebook:error:insufficient_storage")
    event.remove(registry.database.engine, "checkout", limit_size)
