"""The commit queue: one thread runs all writes of a server, and queued writes share a commit (group commit).

A write is answered after the commit of its batch, when it is on disk. A rejected write changes nothing. If a write
fails in a way that ends the shared transaction, each write of the batch is run again in its own transaction.

Spec: docs/decisions/0103-group-commit.md.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from wirebook.httpapi.concurrency.batcher import Batcher
from wirebook.storage.database import Database
from wirebook.storage.session import RollbackRequired, Session

T = TypeVar("T")


class _WriteJob(Generic[T]):
    def __init__(self, work: Callable[[Session], T]) -> None:
        self.work, self.future = work, Future[T]()


class CommitQueue:
    """Runs the writes of all threads one after another."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batcher: Batcher[_WriteJob[Any]] = Batcher("commit-queue", self._run_batch)

    def __len__(self) -> int:
        """Return the number of queued writes."""
        return len(self._batcher)

    def submit(self, work: Callable[[Session], T]) -> Future[T]:
        """Queue a write and return a future, which has the result of `work` once its changes are on disk.

        If `work` raises, nothing changes.
        """
        job = _WriteJob(work)
        self._batcher.put(job)
        return job.future

    def close(self) -> None:
        """Run the queued writes, then end the thread."""
        self._batcher.close()

    def _run_batch(self, batch: list[_WriteJob[Any]]) -> None:
        jobs = [job for job in batch if job.future.set_running_or_notify_cancel()]
        if len(jobs) > 1 and self._commit_together(jobs):
            return
        for job in jobs:
            try:
                with self._database.writing() as session:
                    result = job.work(session)
            except BaseException as error:
                job.future.set_exception(error)
            else:
                job.future.set_result(result)

    def _commit_together(self, jobs: list[_WriteJob[Any]]) -> bool:
        """Run writes in one transaction and deliver their results after the commit.

        Return False if one of them ended the transaction; then nothing is stored.
        """
        try:
            with self._database.writing() as session:
                outcomes = [_run_in_batch(job, session) for job in jobs]
        except RollbackRequired:
            return False
        except BaseException as error:  # from begin or commit
            outcomes = [(None, error)] * len(jobs)
        for job, (result, raised) in zip(jobs, outcomes, strict=True):
            if raised is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(raised)
        return True


def _run_in_batch(job: _WriteJob[Any], session: Session) -> tuple[Any, BaseException | None]:
    """Return the result of a write, or what it raised.

    Raises: RollbackRequired, if the whole batch must be rolled back
    """
    try:
        with session.rollback_if_changed():
            return job.work(session), None
    except RollbackRequired:
        raise
    except Exception as error:
        return None, error
