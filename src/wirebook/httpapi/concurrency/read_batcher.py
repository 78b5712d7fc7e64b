"""The read batcher: one thread answers small reads of PostgreSQL, and queued reads share a snapshot and a query.

A round trip to the database takes longer than rendering a response, so queued reads share their round trips. The
snapshot is taken after its reads were queued, so a read never returns older data than any read answered before it.

Spec: docs/decisions/0104-request-threads.md; docs/decisions/0117-postgresql-round-trips.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import NamedTuple

from wirebook.httpapi.concurrency.batcher import Batcher
from wirebook.httpapi.http.messages import ApiRequest, ApiResponse
from wirebook.storage.outages import Unavailable
from wirebook.storage.session import ReadFailure, Session
from wirebook.storage.shared_transaction import Opening, SharedTransaction
from wirebook.storage.streaming import TooSlow


class _ReadJob(NamedTuple):
    request: ApiRequest
    xid: str
    future: Future[ApiResponse]


class ReadBatcher:
    """Answers reads of single Resources by calling `handle` with the shared transaction.

    `begin_read` begins a read transaction of the database.
    """

    def __init__(self, begin_read: Opening, handle: Callable[[ApiRequest, Opening], ApiResponse]) -> None:
        self._begin_read, self._handle = begin_read, handle
        self._snapshot = SharedTransaction(self._begin_snapshot)
        self._xids: list[str] = []
        self._batcher: Batcher[_ReadJob] = Batcher("read-batcher", self._run_batch)

    def submit(self, request: ApiRequest, xid: str) -> Future[ApiResponse]:
        """Queue a request that reads the Resource `xid`, its meta or one of its Versions."""
        job = _ReadJob(request, xid, Future())
        self._batcher.put(job)
        return job.future

    def close(self) -> None:
        """Answer the queued reads, then end the thread."""
        self._batcher.close()

    def _run_batch(self, jobs: list[_ReadJob]) -> None:
        self._xids = [job.xid for job in jobs]
        ends: list[Callable[[], None]] = []
        for job in jobs:
            if job.future.set_running_or_notify_cancel():
                job.future.set_result(self._handle(job.request, lambda: self._snapshot.until(ends.append)))
        with suppress(TooSlow, ReadFailure, Unavailable):  # all responses are complete
            for end in ends:
                end()

    @contextmanager
    def _begin_snapshot(self) -> Iterator[Session]:
        with self._begin_read() as session:
            session.prefetch(self._xids)
            yield session
