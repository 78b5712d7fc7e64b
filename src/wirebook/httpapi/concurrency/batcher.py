"""A thread that runs queued jobs in batches, so that they share the cost of beginning and ending a transaction.

No job waits for a batch to fill: a job that arrives while the thread is idle runs at once, and the jobs that arrive
meanwhile form the next batch.

Spec: docs/decisions/0103-group-commit.md.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

Job = TypeVar("Job")
MAX_BATCH: Final = 64
"""Maximum number of jobs in a batch."""


class Batcher(Generic[Job]):
    """Runs `run_batch`, which must not raise, for batches of jobs in the order of their arrival."""

    def __init__(self, name: str, run_batch: Callable[[list[Job]], None]) -> None:
        self._run_batch = run_batch
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        """Return the number of queued jobs."""
        return self._queue.qsize()

    def put(self, job: Job) -> None:
        """Queue a job."""
        self._queue.put(job)

    def close(self) -> None:
        """Run the queued jobs, then end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _loop(self) -> None:
        job = self._queue.get()
        while job is not None:
            batch = [job]
            while len(batch) < MAX_BATCH and not self._queue.empty():  # only this thread removes jobs
                job = self._queue.get()
                if job is None:
                    self._run_batch(batch)
                    return
                batch.append(job)
            self._run_batch(batch)
            job = self._queue.get()
