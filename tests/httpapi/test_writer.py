"""The writer of a SQLite file: writes that share a commit are each whole, and answered when they are on disk."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from tests.httpapi.conftest import FIXTURE, Client, Reply, serve
from wirebook.storage.database import Database, open_database


@pytest.fixture
def registry(tmp_path: Path) -> Any:
    with_file = open_database(f"sqlite:///{tmp_path / 'registry.db'}")
    yield serve(with_file, FIXTURE)
    with_file.close()


def together(registry: Client, *writes: tuple[str, Any]) -> list[Reply]:
    """The answers to writes that share a commit: all wait while the writer is busy with one before them."""
    held, go = threading.Event(), threading.Event()

    def hold(_: Any) -> None:
        held.set()
        assert go.wait(10)

    with ThreadPoolExecutor(len(writes) + 1) as pool:
        first = pool.submit(registry.service.write, hold)
        assert held.wait(10)
        waiting = []
        for path, sent in writes:  # in this order
            waiting.append(pool.submit(registry.put, path, sent))
            while registry.service._writer._waiting.qsize() < len(waiting):  # type: ignore[union-attr]
                pass
        go.set()
        first.result()
        return [each.result() for each in waiting]


def commits_of(database: Database) -> list[None]:
    """Grows by one for each commit."""
    seen: list[None] = []
    event.listen(database.engine, "commit", lambda _: seen.append(None))
    return seen


def test_writes_share_a_commit(registry: Client) -> None:
    seen = commits_of(registry.database)
    answers = together(registry, *((f"/dirs/d{place}", {}) for place in range(8)))
    assert [answer.status for answer in answers] == [201] * 8
    assert len(seen) == 2


def test_one_that_fails_leaves_the_others(registry: Client) -> None:
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


def test_a_disk_that_is_full_takes_no_acknowledged_write_away(registry: Client) -> None:
    """SQLite gives up the whole transaction then, with what others did in it."""
    with registry.database.connected() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    event.listen(
        registry.database.engine,
        "begin",
        lambda connection: connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 40}"),
    )
    large = {"files": {f"f{place}": {"file": "x" * 100_000} for place in range(30)}}
    answers = together(registry, ("/dirs/a", {}), ("/dirs/b", large), ("/dirs/c", {}))
    there = list(registry.get("/dirs").json)
    assert [id_ for id_, answer in zip("abc", answers, strict=True) if answer.status == 201] == there == ["a", "c"]
    assert answers[1].error[:2] == (503, "server_busy")
    registry.database.engine.dispose()
