"""A transaction that short reads on one thread share, because its begin and end take as long as such a read.

The first read begins the transaction and schedules its end after all reads that are waiting by then. A read therefore
never sees an older state than any response that was sent before the read arrived.

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
    """A transaction that `opening` begins and that reads enter repeatedly until it ends. An error also ends it."""

    def __init__(self, opening: Opening) -> None:
        self._opening, self._open = opening, ExitStack()
        self._session: Session | None = None
        self._schedule_end: ScheduleEnd | None = None

    def until(self, schedule_end: ScheduleEnd) -> SharedTransaction:
        """Return itself; if the next read begins the transaction, it passes `schedule_end` the function to end it."""
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
