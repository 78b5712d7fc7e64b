"""Outages of a database that cannot be reached or written: detection, probing and logging.

An outage is logged when it begins, and when it ends, with its duration and the number of failed requests.

Spec: docs/registry.md#outages; docs/decisions/0152-database-outages.md.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any, Final

LOG: Final = logging.getLogger("wirebook.registry")
SQLITE_UNUSABLE: Final = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOLFS,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
    }
)
DISK_FULL, QUERY_CANCELED, READ_ONLY = "53100", "57014", "25006"
LOST_CLASSES: Final = ("08", "28", "53", "57")
"""SQLSTATE classes that mean a lost connection: connection, authorisation, resources, operator intervention."""

SYSTEM_ERROR: Final = "58"
CONFLICT_WITHOUT_STATE: Final = "PipelineAborted"
PROBE_INTERVAL: Final = 0.5
"""Seconds between attempts to reach a database."""

CLOSE_SECONDS: Final = 2
"""Seconds that closing the database waits for the end of an attempt."""


class Unavailable(Exception):
    """The database cannot be reached or read."""


class Unwritable(Exception):
    """The database can be read but not written. `is_full`: because there is no free space."""

    def __init__(self, why: str, *, is_full: bool) -> None:
        super().__init__(why)
        self.is_full = is_full


OUTAGES: Final = (Unavailable, Unwritable)


def outage_of(error: Exception, *, is_write: bool) -> Unavailable | Unwritable | None:
    """Return the outage that an error of SQLAlchemy or a driver indicates in a read or write transaction, or None.

    Its text is that of the driver, without statement and parameters.
    """
    cause: Any = getattr(error, "orig", None) or error
    why = str(cause).strip().partition("\n")[0]
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        is_full, is_unusable, is_lost = code == sqlite3.SQLITE_FULL, code in SQLITE_UNUSABLE, False
    else:
        state = getattr(cause, "sqlstate", None) or ""
        is_full, is_unusable = state == DISK_FULL, state == READ_ONLY or state.startswith(SYSTEM_ERROR)
        is_lost = state.startswith(LOST_CLASSES) and state not in (DISK_FULL, QUERY_CANCELED)
        if not state:
            names = {class_.__name__ for class_ in type(cause).__mro__}
            is_lost = "OperationalError" in names and CONFLICT_WITHOUT_STATE not in names
    if is_lost or (is_unusable and not is_write):
        return Unavailable(why)
    return Unwritable(why, is_full=is_full) if is_full or is_unusable else None


class Probe:
    """Tries to reach a database in a separate thread, so that no request waits for it.

    `reach` connects to the database and returns whether that succeeded. `is_away` is true from the first failed attempt
    to the first successful attempt. A failed transaction does not set it, because other transactions may succeed.
    """

    def __init__(self, reach: Callable[[], bool]) -> None:
        self._reach, self._lock, self._closing = reach, threading.Lock(), threading.Event()
        self._is_running = self.is_away = False
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start the thread unless it is running."""
        with self._lock:
            if self._is_running or self._closing.is_set():
                return
            self._is_running = True
            self._thread = threading.Thread(target=self._run, name="database probe", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop the thread and wait for a limited time, so that its connection is closed with the others."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while not self._closing.is_set() and not self._reach():
            self.is_away = True
            self._closing.wait(PROBE_INTERVAL)
        with self._lock:
            self._is_running = self.is_away = False


class Outage:
    """Tracks outages of one kind. `text` and `over` are the log messages for their beginning and end."""

    def __init__(self, text: str, over: str) -> None:
        self._text, self._over, self._lock = text, over, threading.Lock()
        self._since: float | None = None
        self._requests = 0

    @property
    def is_on(self) -> bool:
        """Whether there is an outage now."""
        return self._since is not None

    def begin(self, why: object) -> None:
        """Begin an outage and log the cause, unless there is one already."""
        with self._lock:
            if self._since is not None:
                return
            self._since, self._requests = time.monotonic(), 0
        LOG.error("%s: %s", self._text, why)

    def count(self) -> None:
        """Count a failed request."""
        with self._lock:
            self._requests += 1

    def end(self) -> None:
        """End the outage, if there is one, and log its duration."""
        if self._since is None:  # the usual case needs no lock
            return
        with self._lock:
            since, self._since, requests = self._since, None, self._requests
        if since is not None:
            failed = f"; requests that failed: {requests}" if requests else ""
            LOG.warning("%s after %.1f s%s", self._over, time.monotonic() - since, failed)
