"""Small reads of one thread that share a transaction: beginning and ending one takes as long as such a read.

The first read begins it, and has it ended once all that was there by then is answered. So a read never sees less than
what was answered before it came.

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
    """A transaction, begun by `opening`, that is entered again and again until it has ended. An error ends it, too."""

    def __init__(self, opening: Opening) -> None:
        self._opening, self._open = opening, ExitStack()
        self._session: Session | None = None
        self._schedule_end: ScheduleEnd | None = None

    def until(self, schedule_end: ScheduleEnd) -> SharedTransaction:
        """Itself. `schedule_end` takes what ends it, if it has to begin."""
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
        self._session = None
        self._open.close()
