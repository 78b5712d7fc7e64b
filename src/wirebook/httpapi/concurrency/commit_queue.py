"""The writer of a server: one thread, in which writes that wait share a commit.

A write is answered once the commit that it is in has ended, and so is on disk. One that is refused has changed nothing;
where one fails later than that, each has a transaction to itself.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from wirebook.httpapi.concurrency.batcher import Gathering
from wirebook.storage.database import Database
from wirebook.storage.session import RollbackRequired, Session

T = TypeVar("T")


class _WriteJob(Generic[T]):
    def __init__(self, work: Callable[[Session], T]) -> None:
        self.work, self.future = work, Future[T]()


class CommitQueue:
    """Runs writes one after the other, from any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._jobs: Gathering[_WriteJob[Any]] = Gathering("writer", self._run)

    def submit(self, work: Callable[[Session], T]) -> Future[T]:
        """What `work` returns, once that is durable, or raises, in which case it has changed nothing."""
        job = _WriteJob(work)
        self._jobs.put(job)
        return job.future

    def close(self) -> None:
        """Ends once the writes that wait are done."""
        self._jobs.close()

    def _run(self, waiting: list[_WriteJob[Any]]) -> None:
        jobs = [job for job in waiting if job.future.set_running_or_notify_cancel()]
        if len(jobs) == 1 or not self._share(jobs):
            for job in jobs:
                self._alone(job)

    def _alone(self, job: _WriteJob[Any]) -> None:
        try:
            with self._database.writing() as session:
                result = job.work(session)
        except BaseException as error:
            job.future.set_exception(error)
        else:
            job.future.set_result(result)

    def _share(self, jobs: list[_WriteJob[Any]]) -> bool:
        """Runs writes in one transaction and hands out their results when it is on disk. False if they cannot share
        one: nothing of any of them is there."""
        try:
            with self._database.writing() as session:
                results = [_attempt(job, session) for job in jobs]
        except RollbackRequired:
            return False
        except BaseException as error:  # the transaction itself
            results = [(None, error)] * len(jobs)
        for job, (result, problem) in zip(jobs, results, strict=True):
            if problem is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(problem)
        return True


def _attempt(job: _WriteJob[Any], session: Session) -> tuple[Any, BaseException | None]:
    """The result of a write, or why there is none. Raises: RollbackRequired, if the others have to be undone with it"""
    try:
        with session.rollback_if_changed():
            return job.work(session), None
    except RollbackRequired:
        raise
    except Exception as error:
        return None, error
