"""A transaction shared by short reads of one thread, since to begin and end one takes as long as such a read.

The first read begins it and schedules its end for when all reads that wait by then are answered. A read therefore never
sees an older state than any response sent before it arrived.

Spec: docs/decisions/0104-request-threads.md.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType

from wirebook.storage.session import Session

Opening = Callable[[], AbstractContextManager[Session]]
ScheduleEnd = Callable[[Callable[[], None]], object]


class SharedTransaction:
    """A transaction, begun by `opening`, that reads enter repeatedly until it ends. An error ends it, too."""

    def __init__(self, opening: Opening) -> None:
        self._opening, self._open = opening, ExitStack()
        self._session: Session | None = None
        self._schedule_end: ScheduleEnd | None = None

    def until(self, schedule_end: ScheduleEnd) -> SharedTransaction:
        """Return itself; `schedule_end` receives the function that ends the transaction if this read begins it."""
        self._schedule_end = schedule_end
        return self

    def __enter__(self) -> Session:
        if self._session is None:
            assert self._schedule_end
            self._session = self._open.enter_context(self._opening())
            self._schedule_end(self.end)
        return self._session

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._session = None
            self._open.__exit__(kind, error, trace)

    def end(self) -> None:
        """End the transaction."""
        self._session = None
        self._open.close()
