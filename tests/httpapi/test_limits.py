"""Time limits of database access, and secrets in errors and logs.

Spec: docs/registry.md#limits.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest
from sqlalchemy import QueuePool, text

from tests.core.memory import NoFormats
from tests.httpapi.conftest import FIXTURE, OFFER, Client, serve
from tests.httpapi.postgres import new_database
from wirebook.httpapi.handlers.context import ResponseLimits
from wirebook.httpapi.logs import JsonLines, TextLines, format_stack
from wirebook.httpapi.setup import make_service
from wirebook.problems import WirebookError
from wirebook.storage.database import open_database


@pytest.fixture(params=["sqlite", "postgresql"])
def hasty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    """A registry with time limits of a fifth of a second."""
    url = f"sqlite:///{tmp_path / 'registry.db'}"
    if request.param == "postgresql":
        url = new_database(request.getfixturevalue("postgresql"), "hasty")
    database = open_database(url, readers=1, wait=0.2)
    yield serve(database, FIXTURE)
    database.close()


def test_read_without_a_free_connection_is_rejected_as_busy(hasty: Client) -> None:
    """All connections are in use for longer than the limit."""
    pool = cast("QueuePool", hasty.database.engine.pool)
    with ExitStack() as stack:
        while pool.checkedout() < pool.size() + pool._max_overflow:
            stack.enter_context(hasty.database.engine.connect())
        answer = hasty.get("/")
        assert (answer.error, answer.headers["Retry-After"]) == ((503, "server_busy", "/"), "1")
        if not hasty.database.is_sqlite:  # its writer has a connection of its own
            assert hasty.put("/dirs/d", {}).error[:2] == (503, "server_busy")
    assert hasty.put("/dirs/d", {}).status == 201


def test_postgresql_write_times_out(postgresql: str) -> None:
    database = open_database(new_database(postgresql, "hasty"), wait=0.2)
    registry = serve(database, FIXTURE)
    with database.writing():
        answer = registry.put("/dirs/d", {})
    assert (answer.error[:2], answer.headers["Retry-After"]) == ((503, "server_busy"), "1")
    assert registry.put("/dirs/d", {}).status == 201
    database.close()


def test_postgresql_read_times_out(postgresql: str) -> None:
    """Waiting for a lock is limited by the request time-out; an export may otherwise take longer."""
    database = open_database(new_database(postgresql, "hasty"), wait=0.2)
    registry = serve(database, FIXTURE)
    with database.transaction() as other:
        other.exec_driver_sql("LOCK TABLE versions, groups IN ACCESS EXCLUSIVE MODE")
        for path in ("/dirs", "/export", "/dirs/d/datas/x"):
            answer = registry.get(path)
            assert (answer.error, answer.headers["Retry-After"]) == ((503, "server_busy", path), "1")
    assert registry.get("/export").status == 200
    database.close()


@pytest.mark.parametrize(
    "url", ["mysql://me:hush@host/db", "postgresql//me:hush@host", "postgresql://me:hush@[host/db"]
)
def test_database_error_hides_the_password(url: str) -> None:
    with pytest.raises(WirebookError) as caught:
        open_database(url)
    assert "hush" not in str(caught.value)
    assert caught.value.problems[0].code == "bad-database"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_slow_filter_is_rejected_as_busy(registry: Client, method: str) -> None:
    """Also for a filter in a write, which is rolled back."""
    datas = {f"x{number}": {"labels": {"k": "a" * 50}} for number in range(2000)}
    assert registry.post("/dirs/d", {"datas": datas}).status == 200
    service = make_service(registry.database, NoFormats(), OFFER, limits=ResponseLimits(read_seconds=0.3))
    hasty = Client(service, registry.database)
    query = "&".join(f"filter=datas.*.k!=*a*b{number}*,datas.description!=*" for number in range(100))
    started = time.monotonic()
    reply = hasty.send(method, f"/dirs?{query}", {"new": {}} if method == "POST" else None)
    assert (reply.error, reply.headers["Retry-After"]) == ((503, "server_busy", "/dirs"), "1")
    assert time.monotonic() - started < 5
    assert hasty.get("/dirs/new").status == 404
    assert hasty.post("/dirs", {"new": {}}).status == 200
    service.close()


@pytest.mark.parametrize("formatter", [TextLines(), JsonLines()])
def test_log_of_a_failure_has_no_sql_and_no_values(
    registry: Client, caplog: pytest.LogCaptureFixture, formatter: logging.Formatter
) -> None:
    with registry.database.transaction() as connection:
        connection.execute(text("ALTER TABLE versions RENAME TO gone"))
    try:
        assert registry.get("/dirs/d/datas?filter=name=hush").error[:2] == (404, "not_found")
        assert registry.get("/dirs?filter=datas.labels.secret=hush").error[:2] == (500, "data_retrieval_error")
        assert registry.put("/dirs/d/datas/x%0Ay", {"name": "hush"}).status in (400, 500, 503)
        assert registry.put("/dirs/d/datas/x", {"name": "hush"}).status in (500, 503)
    finally:
        with registry.database.transaction() as connection:
            connection.execute(text("ALTER TABLE gone RENAME TO versions"))
    logged = "".join(map(formatter.format, caplog.records))
    assert "the database cannot be read: GET /dirs" in logged
    assert "search.py" in logged
    assert not any(secret in logged for secret in ("hush", "secret", "SELECT", "INSERT", "x\ny"))


def test_traceback_in_a_log_has_no_messages() -> None:
    try:
        try:
            int("hush")
        except ValueError as error:
            raise KeyError("hush") from error
    except KeyError as error:
        formatted, raised = format_stack(error), sys.exc_info()
    assert formatted.startswith("ValueError\n  ")
    assert "\nKeyError\n  " in formatted
    assert "hush" not in formatted
    record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "failed", None, raised)
    assert "hush" not in TextLines().format(record)
    assert json.loads(JsonLines().format(record))["traceback"] == formatted
