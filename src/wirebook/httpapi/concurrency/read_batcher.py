"""The reader of a PostgreSQL: one thread, in which small reads that wait share a snapshot and the query for their rows.

A word to the server takes longer than making an answer, so those that come together say theirs together. What a read
sees was there when it came, or later: the snapshot is taken for it, or after it had come.

Spec: docs/decisions/0104-request-threads.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import NamedTuple

from wirebook.httpapi.concurrency.batcher import Gathering
from wirebook.httpapi.http.messages import ApiResponse, Incoming
from wirebook.storage.outages import Unavailable
from wirebook.storage.session import ReadFailure, Session
from wirebook.storage.shared_transaction import Opening, SharedTransaction
from wirebook.storage.streaming import TooSlow


class _ReadJob(NamedTuple):
    incoming: Incoming
    xid: str
    future: Future[ApiResponse]


class ReadBatcher:
    """Has reads of single Resources answered by `answer`, each in the transaction that it is given."""

    def __init__(self, reading: Opening, answer: Callable[[Incoming, Opening], ApiResponse]) -> None:
        self._reading, self._answer = reading, answer
        self._shared = SharedTransaction(self._begin)
        self._xids: list[str] = []
        self._jobs: Gathering[_ReadJob] = Gathering("reader", self._run)

    def submit(self, incoming: Incoming, xid: str) -> Future[ApiResponse]:
        """The answer to a request about the Resource `xid`."""
        job = _ReadJob(incoming, xid, Future())
        self._jobs.put(job)
        return job.future

    def close(self) -> None:
        self._jobs.close()

    def _run(self, jobs: list[_ReadJob]) -> None:
        self._xids = [job.xid for job in jobs]
        ends: list[Callable[[], None]] = []
        for job in jobs:
            if job.future.set_running_or_notify_cancel():
                job.future.set_result(self._answer(job.incoming, lambda: self._shared.until(ends.append)))
        with suppress(TooSlow, ReadFailure, Unavailable):  # all is answered
            for end in ends:
                end()

    @contextmanager
    def _begin(self) -> Iterator[Session]:
        with self._reading() as session:
            session.prefetch(self._xids)
            yield session
