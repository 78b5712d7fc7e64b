"""The writer of a server: one thread, in which writes that wait share a commit.

A write is answered once the commit that it is in has ended, and so is on disk. One that is refused has changed nothing;
where one fails later than that, each has a transaction to itself.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
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
    """Runs writes one after the other, from any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Session], T]) -> Future[T]:
        """What `work` returns, once that is durable, or raises, in which case it has changed nothing."""
        job = _Job(work)
        self._waiting.put(job)
        return job.future

    def close(self) -> None:
        """Ends the thread, after the writes that wait."""
        self._waiting.put(None)
        self._thread.join()

    def _loop(self) -> None:
        while (first := self._waiting.get()) is not None:
            jobs: list[_Job[Any]] = [first]
            is_last = self._gather(jobs)
            self._run([job for job in jobs if job.future.set_running_or_notify_cancel()])
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

    def _run(self, jobs: list[_Job[Any]]) -> None:
        if len(jobs) == 1 or not self._share(jobs):
            for job in jobs:
                self._alone(job)

    def _alone(self, job: _Job[Any]) -> None:
        try:
            with self._database.writing() as session:
                result = job.work(session)
        except BaseException as error:
            job.future.set_exception(error)
        else:
            job.future.set_result(result)

    def _share(self, jobs: list[_Job[Any]]) -> bool:
        """Runs writes in one transaction and hands out their results when it is on disk. False if they cannot share
        one: nothing of any of them is there."""
        try:
            with self._database.writing() as session:
                results = [_attempt(job, session) for job in jobs]
        except Undone:
            return False
        except BaseException as error:  # the transaction itself
            results = [(None, error)] * len(jobs)
        for job, (result, problem) in zip(jobs, results, strict=True):
            if problem is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(problem)
        return True


def _attempt(job: _Job[Any], session: Session) -> tuple[Any, BaseException | None]:
    """The result of a write, or why there is none. Raises: Undone, if the others have to be undone with it"""
    try:
        with session.unless_changed():
            return job.work(session), None
    except Undone:
        raise
    except Exception as error:
        return None, error
