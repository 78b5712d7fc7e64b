"""A thread that does together what waits together: what beginning and ending take is taken once for all of it.

Nobody waits for company: what comes while nothing is done is done at once, and what comes meanwhile is next.

Spec: docs/decisions/0103-group-commit.md.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

J = TypeVar("J")
MOST: Final = 64
"""Jobs that are done together at most."""


class Gathering(Generic[J]):
    """Has jobs done by `run`, which raises nothing, in the order in which they came."""

    def __init__(self, name: str, run: Callable[[list[J]], None]) -> None:
        self._run = run
        self._waiting: queue.SimpleQueue[J | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        """How many jobs wait."""
        return self._waiting.qsize()

    def put(self, job: J) -> None:
        self._waiting.put(job)

    def close(self) -> None:
        """Ends the thread, after the jobs that wait."""
        self._waiting.put(None)
        self._thread.join()

    def _loop(self) -> None:
        while (first := self._waiting.get()) is not None:
            jobs = [first]
            is_last = self._gather(jobs)
            self._run(jobs)
            if is_last:
                return

    def _gather(self, jobs: list[J]) -> bool:
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
