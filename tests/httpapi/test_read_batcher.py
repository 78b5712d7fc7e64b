"""The read batcher: queued reads of PostgreSQL share a snapshot, and a failed read does not affect others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing

import pytest

from tests.httpapi.conftest import BASE, Client
from wirebook.httpapi.concurrency.read_batcher import ReadBatcher
from wirebook.httpapi.http.messages import ApiRequest, ApiResponse
from wirebook.storage.session import Session
from wirebook.storage.shared_transaction import Opening
from wirebook.storage.statements import driver_of

pytestmark = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
PATHS = [f"/dirs/d/datas/{id_}" for id_ in ("a", "b", "c")]


class BusyReadBatcher:
    """A read batcher that is busy until all reads of the test are queued."""

    def __init__(self, registry: Client) -> None:
        self._registry, self._is_busy, self._may_continue = registry, threading.Event(), threading.Event()
        self.batcher = ReadBatcher(registry.database.reading, self._answer)

    def _answer(self, incoming: ApiRequest, reading: Opening) -> ApiResponse:
        if incoming.path == "/":
            self._is_busy.set()
            assert self._may_continue.wait(10)
        return self._registry.service.handle(incoming, reading)

    def read(self, *paths: str) -> list[tuple[int, bytes]]:
        """The responses to reads that are queued together."""
        first = self._submit("/")
        assert self._is_busy.wait(10)
        waiting = [self._submit(path) for path in paths]
        self._may_continue.set()
        assert first.result(10).status == 200
        answers = [future.result(10) for future in waiting]
        return [(answer.status, answer.body) for answer in answers if isinstance(answer.body, bytes)]

    def _submit(self, path: str) -> Future[ApiResponse]:
        return self.batcher.submit(ApiRequest("GET", path, BASE, {}, []), "/".join(path.split("/")[:5]))


@pytest.fixture
def registry(registry: Client) -> Client:
    for path in PATHS:
        assert registry.put(path, {"name": path}).status == 201
    return registry


@pytest.fixture
def batcher(registry: Client) -> Iterator[BusyReadBatcher]:
    busy = BusyReadBatcher(registry)
    with closing(busy.batcher):
        yield busy


def test_queued_reads_share_a_snapshot(registry: Client, batcher: BusyReadBatcher) -> None:
    seen: list[str] = []
    registry.database.observe = lambda kind, _: seen.append(kind)
    paths = [*PATHS, f"{PATHS[0]}/meta", f"{PATHS[1]}/versions/1"]
    answers = batcher.read(*paths)
    batcher.batcher.close()
    assert seen == ["read", "read"]  # that of the first request, and that of all others
    registry.database.observe = None
    assert answers == [(200, registry.get(path).body) for path in paths]


def test_not_found_does_not_affect_other_reads_of_the_batch(batcher: BusyReadBatcher) -> None:
    answers = batcher.read(PATHS[0], "/dirs/d/datas/none", PATHS[1], "/dirs/none/datas/a", PATHS[2])
    assert [status for status, _ in answers] == [200, 404, 200, 404, 200]


def test_batched_read_sees_earlier_writes(registry: Client) -> None:
    for name in ("one", "two", "three"):
        assert registry.put(PATHS[0], {"name": name}).status == 200
        begun = registry.service.read_batched(ApiRequest("GET", PATHS[0], BASE, {}, []))
        assert begun
        body = begun.result(10).body
        assert isinstance(body, bytes)
        assert f'"name":"{name}"'.encode() in body.replace(b" ", b"")


def test_closed_connection_fails_one_read_of_the_batch(
    registry: Client, batcher: BusyReadBatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The read in progress fails; the others succeed."""
    prefetch = Session.prefetch

    def cut(self: Session, xids: list[str]) -> None:
        prefetch(self, xids)
        if xids == PATHS:
            monkeypatch.undo()
            driver_of(self.connection).execute("SELECT pg_terminate_backend(pg_backend_pid())")

    monkeypatch.setattr(Session, "prefetch", cut)
    assert [status for status, _ in batcher.read(*PATHS)] == [503, 200, 200]
    assert registry.get(PATHS[0]).status == 200


def test_only_reads_of_one_resource_without_flags_are_batched(registry: Client) -> None:
    """Other reads may take long."""
    registry.get("/")
    taken = {
        path: registry.service.read_batched(ApiRequest("GET", path, BASE, {}, []))
        for path in (PATHS[0], "/", "/dirs", "/dirs/d/datas", f"{PATHS[0]}/versions", "/dirs/d/files/f")
    }
    assert [path for path, begun in taken.items() if begun] == [PATHS[0]]
