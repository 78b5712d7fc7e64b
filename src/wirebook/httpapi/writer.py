"""The writer of a SQLite file: one thread, in which writes that wait share a commit, each in a savepoint of its own.

A write is answered once the commit that it is in has ended, and so is on disk.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from wirebook.storage.database import Database
from wirebook.storage.session import Session, Undone

T = TypeVar("T")
MOST: Final = 64
"""Writes that share a commit at most."""


class _Job(Generic[T]):
    def __init__(self, work: Callable[[Session], T]) -> None:
        self.work, self.future = work, Future[T]()


class Writer:
    """Runs writes one after the other. `run` may be called from any thread, and blocks until the write is durable."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="writer", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[Session], T]) -> T:
        """What `work` returns, or raises, in which case it has changed nothing."""
        job = _Job(work)
        self._waiting.put(job)
        return job.future.result()

    def close(self) -> None:
        """Ends the thread, after the writes that wait."""
        self._waiting.put(None)
        self._thread.join()

    def _loop(self) -> None:
        while (first := self._waiting.get()) is not None:
            jobs: list[_Job[Any]] = [first]
            is_last = self._gather(jobs)
            self._commit(jobs)
            if is_last:
                return

    def _gather(self, jobs: list[_Job[Any]]) -> bool:
        """Adds what waits already; says whether the end is among it."""
        while len(jobs) < MOST:
            try:
                job = self._waiting.get_nowait()
            except queue.Empty:
                return False
            if job is None:
                return True
            jobs.append(job)
        return False

    def _commit(self, jobs: list[_Job[Any]]) -> None:
        """Runs writes in one transaction and hands out their results when it is on disk."""
        results: list[tuple[_Job[Any], Any, BaseException | None]] = []
        try:
            with self._database.writing() as session:
                for job in jobs:
                    results.append((job, *_attempt(job, session)))
        except BaseException as error:  # the transaction itself: nothing of any of them is there
            self._give_up(jobs, error)
            return
        for job, result, problem in results:
            if problem is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(problem)

    def _give_up(self, jobs: list[_Job[Any]], error: BaseException) -> None:
        """Where one of several made the transaction fail, each has another to itself."""
        if isinstance(error, Undone) and len(jobs) > 1:
            for job in jobs:
                self._commit([job])
            return
        for job in jobs:
            with suppress(Exception):
                job.future.set_exception(error)


def _attempt(job: _Job[Any], session: Session) -> tuple[Any, BaseException | None]:
    """The result of a write, or why there is none; what it did is undone then. Raises: Undone"""
    try:
        with session.savepoint():
            return job.work(session), None
    except Undone:
        raise
    except Exception as error:
        return None, error
