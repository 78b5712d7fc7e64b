"""Outages: a full disk and an unavailable PostgreSQL, as seen by clients, probes and the log.

Spec: docs/registry.md#outages; docs/decisions/0152-database-outages.md.
"""

from __future__ import annotations

import json
import pwd
import shutil
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import httpx
import psycopg
import pytest
from sqlalchemy import make_url

from tests.disks import fill, mounted_disk
from tests.httpapi.conftest import Client
from tests.httpapi.postgres import MISSING, SERVER_USER, is_installed, new_database, running_postgresql, start, stop
from tests.httpapi.servers import Follower, Server, serving
from wirebook.storage.outages import Unavailable, Unwritable, outage_of
from wirebook.storage.statements import driver_of

LARGE = {f"m{number}": {"description": "d" * 2000} for number in range(300)}
LOG = ("--log-format", "json")


@pytest.fixture
def small_disk() -> Iterator[Path]:
    with mounted_disk("24m") as folder:
        yield folder


def lines_of(server: Server, *levels: str) -> list[str]:
    """What the log says of the registry at some levels."""
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    return [line["message"] for line in lines if line["logger"].startswith("wirebook") and line["level"] in levels]


def problem(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"]


FULL = (507, "urn:wirebook:error:insufficient_storage")
AWAY = (503, "urn:wirebook:error:database_unavailable")


def check_full(server: Server, folder: Path) -> None:
    """Fills the disk of a server, and empties it again."""
    with server.client() as client:
        assert client.put("/messagegroups/before", json={}).status_code == 201
        ballast = fill(folder)
        failed = [client.post("/messagegroups/before/messages", json=LARGE) for _ in range(3)]
        assert {problem(answer) for answer in failed} == {FULL}
        assert "no disk space left" in failed[0].json()["title"]
        with ThreadPoolExecutor(6) as pool:  # writes that share a transaction
            posts = [pool.submit(client.post, "/messagegroups/before/messages", json=LARGE) for _ in range(6)]
            assert {problem(post.result()) for post in posts} == {FULL}
        assert client.get("/messagegroups/before").status_code == 200
        assert client.get("/messagegroups/before/messages").json() == {}
        assert client.get("/healthz").text == "ok\n"
        ballast.unlink()
        assert client.get("/readyz").status_code == 200
        assert client.post("/messagegroups/before/messages", json=LARGE).status_code == 200
        assert len(client.get("/messagegroups/before/messages").json()) == 300
    (began,) = lines_of(server, "error")
    assert began.startswith("the database cannot be written: ")
    (over,) = [line for line in lines_of(server, "warning") if "can be written again" in line]
    assert over.endswith("requests that failed: 9")


def test_full_disk_of_sqlite_is_507_until_there_is_space(small_disk: Path, tmp_path: Path) -> None:
    with serving(f"sqlite:///{small_disk}/r.db", tmp_path / "log", *LOG) as (server,):
        check_full(server, small_disk)


def test_readiness_fails_on_a_full_disk_and_recovers(small_disk: Path, tmp_path: Path) -> None:
    with serving(f"sqlite:///{small_disk}/r.db", tmp_path / "log", *LOG) as (server,), server.client() as client:
        assert client.get("/readyz").status_code == 200
        ballast = fill(small_disk)
        ready = client.get("/readyz")  # before any write has failed
        assert (ready.status_code, ready.headers["retry-after"]) == (503, "1")
        assert problem(client.post("/messagegroups/g/messages", json=LARGE)) == FULL
        assert {client.get("/readyz").status_code for _ in range(3)} == {503}
        assert client.get("/messagegroups").json() == {}
        ballast.unlink()
        assert client.get("/readyz").status_code == 200
        assert client.put("/messagegroups/g", json={}).status_code == 201
        assert server.stop() == 0
    assert [line.partition(":")[0] for line in lines_of(server, "error")] == [
        "the disk of the database is full",
        "the database cannot be written",
    ]
    assert len([line for line in lines_of(server, "warning") if " again after " in line]) == 2


def test_full_disk_of_postgresql_is_507_until_there_is_space(small_disk: Path, tmp_path: Path, postgresql: str) -> None:
    place = small_disk / "tables"
    place.mkdir()
    server = pwd.getpwnam(SERVER_USER)
    shutil.chown(place, server.pw_uid, server.pw_gid)
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute(f"CREATE TABLESPACE small LOCATION '{place}'".encode())
    db = new_database(postgresql, "small", "TABLESPACE small")
    try:
        with serving(db, tmp_path / "log", *LOG) as (server,):
            check_full(server, small_disk)
    finally:
        with psycopg.connect(postgresql, autocommit=True) as connection:
            connection.execute(b"DROP DATABASE small WITH (FORCE)")
            connection.execute(b"DROP TABLESPACE small")


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_full_database_of_sqlite_is_507(registry: Client) -> None:
    """Where no file system can be mounted: a limit of SQLite that has the same error."""

    def limit(pages: int) -> None:
        registry.service.write(
            lambda session: driver_of(session.connection).execute(f"PRAGMA max_page_count={pages}").fetchone()
        )

    limit(1)
    large = {f"f{number}": {"description": "d" * 2000} for number in range(300)}
    for _ in range(2):
        assert registry.post("/dirs/d/files", large).status == 507
    assert registry.get("/dirs").json == {}
    limit(1 << 30)
    assert registry.service.is_ready()
    assert registry.post("/dirs/d/files", large).status == 200


@pytest.fixture
def own_postgresql() -> Iterator[str]:
    if not is_installed():
        pytest.skip(MISSING)
    with running_postgresql() as address:
        yield address


def wait_until_ready(client: httpx.Client) -> None:
    deadline = time.monotonic() + 20
    while client.get("/readyz").status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_postgresql_away_is_503_until_it_is_back(own_postgresql: str, tmp_path: Path) -> None:
    options = (*LOG, "--events-sink", "http://127.0.0.1:9/")
    with serving(own_postgresql, tmp_path / "log", *options) as (server,), server.client() as client:
        url = "/messagegroups/g/messages/m"
        assert client.put(url, json={}).status_code == 201
        follower = Follower(server.base)
        assert follower.is_open.wait(30)
        stop(own_postgresql)
        requests = [
            *[("GET", path) for path in (url, "/messagegroups", "/", "/export", "/model", "/messagegroups?sort=epoch")],
            *[(method, url) for method in ("PUT", "PATCH", "DELETE")],
            ("PATCH", "/capabilities"),
            ("FOO", url),
        ] * 3
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda request: client.request(*request, json={}), requests))
        assert {problem(answer) for answer in answers} == {AWAY}
        assert {answer.headers["retry-after"] for answer in answers} == {"1"}
        assert client.get("/.wirebook/events").status_code == 503
        assert (client.get("/readyz").status_code, client.get("/healthz").status_code) == (503, 200)
        time.sleep(2)  # for what runs beside the requests
        start(own_postgresql)
        wait_until_ready(client)
        assert client.get(url).status_code == 200
        assert client.patch(url, json={"name": "after"}).json()["epoch"] == 2
        deadline = time.monotonic() + 20
        while len(follower.events) < 1 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert follower.events
        stop(own_postgresql)
        assert problem(client.get(url)) == AWAY
        start(own_postgresql)
        wait_until_ready(client)
        assert client.get("/messagegroups/none").status_code == 404
    assert len(lines_of(server, "error")) == 2
    first, second = (line for line in lines_of(server, "warning") if "available again" in line)
    assert first.endswith(f"requests that failed: {len(requests)}")
    assert second.endswith("requests that failed: 1")
    others = [line for line in lines_of(server, "warning") if "available again" not in line and "sink" not in line]
    assert others == []
    assert "Traceback" not in server.log.read_text()


class Relay(threading.Thread):
    """A TCP port that leads to the Unix socket of a PostgreSQL, or accepts connections and never answers."""

    def __init__(self, target: Path) -> None:
        super().__init__(daemon=True)
        self.target, self.hangs = target, False
        self.open: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self) -> None:
        with suppress(OSError):  # until the listener is closed
            while True:
                accepted, _ = self.listener.accept()
                self.open.append(accepted)
                if not self.hangs:
                    server = socket.socket(socket.AF_UNIX)
                    self.open.append(server)
                    server.connect(str(self.target))
                    for ends in ((accepted, server), (server, accepted)):
                        threading.Thread(target=self.copy, args=ends, daemon=True).start()

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.join()
        self.listener.close()
        self.hang(True)

    def copy(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)

    def hang(self, hangs: bool) -> None:
        self.hangs = hangs
        for connection in self.open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self.open.clear()


def test_request_during_a_postgresql_hang_fails_at_once(own_postgresql: str, tmp_path: Path) -> None:
    folder = make_url(own_postgresql).query["host"]
    with (
        closing(Relay(Path(str(folder)) / ".s.PGSQL.5432")) as relay,
        serving(f"postgresql://tests@127.0.0.1:{relay.port}/postgres?connect_timeout=3", tmp_path / "log", *LOG) as (
            server,
        ),
        server.client() as client,
    ):
        url = "/messagegroups/g/messages/m"
        assert client.put(url, json={}).status_code == 201
        relay.hang(True)
        deadline, seconds = time.monotonic() + 30, 60.0
        while seconds > 0.5:  # until an attempt to reach the database has failed
            assert time.monotonic() < deadline
            started = time.monotonic()
            assert problem(client.get(url)) == AWAY
            seconds = time.monotonic() - started
        started = time.monotonic()
        requests = [("GET", url), ("GET", "/export"), ("PUT", url), ("GET", "/readyz")] * 6
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda request: client.request(*request, json={}), requests))
        assert {answer.status_code for answer in answers} == {503}
        assert time.monotonic() - started < 2.5
        relay.hang(False)
        wait_until_ready(client)
        assert client.get(url).status_code == 200
    assert len(lines_of(server, "error")) == 1
    assert len([line for line in lines_of(server, "warning") if "available again" in line]) == 1


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_lost_connection_does_not_stop_other_requests(registry: Client) -> None:
    """One transaction that fails is not yet a sign that the database is away."""
    database = registry.service.database
    assert registry.put("/dirs/d", {}).status == 201
    with pytest.raises(Unavailable), database.reading() as session:
        driver_of(session.connection).execute("SELECT pg_terminate_backend(pg_backend_pid())").fetchall()
    assert registry.get("/dirs/d").status == 200
    assert not database.unavailable.is_on


def _sqlite(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("why")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "of_reads", "of_writes"),
    [
        (_sqlite(sqlite3.SQLITE_FULL), Unwritable, Unwritable),
        (_sqlite(sqlite3.SQLITE_IOERR_WRITE), Unavailable, Unwritable),
        (_sqlite(sqlite3.SQLITE_READONLY), Unavailable, Unwritable),
        (_sqlite(sqlite3.SQLITE_BUSY), None, None),
        (psycopg.errors.DiskFull("why"), Unwritable, Unwritable),
        (psycopg.errors.ReadOnlySqlTransaction("why"), Unavailable, Unwritable),
        (psycopg.errors.AdminShutdown("why"), Unavailable, Unavailable),
        (psycopg.errors.CannotConnectNow("why"), Unavailable, Unavailable),
        (psycopg.errors.TooManyConnections("why"), Unavailable, Unavailable),
        (psycopg.OperationalError("the connection is lost"), Unavailable, Unavailable),
        (psycopg.errors.QueryCanceled("why"), None, None),
        (psycopg.errors.LockNotAvailable("why"), None, None),
        (psycopg.errors.SerializationFailure("why"), None, None),
        (psycopg.errors.PipelineAborted("why"), None, None),
        (psycopg.errors.UndefinedTable("why"), None, None),
    ],
    ids=lambda error: type(error).__name__,
)
def test_driver_error_is_classified_as_an_outage(
    error: Exception, of_reads: type[Exception] | None, of_writes: type[Exception] | None
) -> None:
    outages = [outage_of(error, is_write=is_write) for is_write in (False, True)]
    assert [None if outage is None else type(outage) for outage in outages] == [of_reads, of_writes]
