"""Limits on waiting, and who sees what of an address.

Spec: docs/registry.md#limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest
from sqlalchemy import QueuePool

from tests.httpapi.conftest import FIXTURE, Client, serve
from tests.httpapi.postgres import new_database
from wirebook.problems import WirebookError
from wirebook.storage.database import open_database


@pytest.fixture(params=["sqlite", "postgresql"])
def hasty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    """A registry that waits for a fifth of a second."""
    url = f"sqlite:///{tmp_path / 'registry.db'}"
    if request.param == "postgresql":
        url = new_database(request.getfixturevalue("postgresql"), "hasty")
    database = open_database(url, readers=1, wait=0.2)
    yield serve(database, FIXTURE)
    database.close()


def test_a_read_that_gets_no_connection(hasty: Client) -> None:
    """All connections are in use for too long."""
    pool = cast("QueuePool", hasty.database.engine.pool)
    with ExitStack() as stack:
        while pool.checkedout() < pool.size() + pool._max_overflow:
            stack.enter_context(hasty.database.engine.connect())
        answer = hasty.get("/")
        assert (answer.error, answer.headers["Retry-After"]) == ((503, "server_busy", "/"), "1")
        if not hasty.database.is_sqlite:  # its writer has a connection of its own
            assert hasty.put("/dirs/d", {}).error[:2] == (503, "server_busy")
    assert hasty.put("/dirs/d", {}).status == 201


def test_a_write_of_postgresql_does_not_wait_forever(postgresql: str) -> None:
    database = open_database(new_database(postgresql, "hasty"), wait=0.2)
    registry = serve(database, FIXTURE)
    with database.writing():
        answer = registry.put("/dirs/d", {})
    assert (answer.error[:2], answer.headers["Retry-After"]) == ((503, "server_busy"), "1")
    assert registry.put("/dirs/d", {}).status == 201
    database.close()


def test_a_read_of_postgresql_does_not_wait_forever(postgresql: str) -> None:
    """Not longer for a lock than a request may take; an export may take longer otherwise."""
    database = open_database(new_database(postgresql, "hasty"), wait=0.2)
    registry = serve(database, FIXTURE)
    with database.connected() as other:
        other.exec_driver_sql("LOCK TABLE versions, groups IN ACCESS EXCLUSIVE MODE")
        for path in ("/dirs", "/export", "/dirs/d/datas/x"):
            answer = registry.get(path)
            assert (answer.error, answer.headers["Retry-After"]) == ((503, "server_busy", path), "1")
    assert registry.get("/export").status == 200
    database.close()


@pytest.mark.parametrize(
    "url", ["mysql://me:hush@host/db", "postgresql//me:hush@host", "postgresql://me:hush@[host/db"]
)
def test_addresses_of_databases_are_told_without_passwords(url: str) -> None:
    with pytest.raises(WirebookError) as caught:
        open_database(url)
    assert "hush" not in str(caught.value)
    assert caught.value.problems[0].code == "bad-database"
