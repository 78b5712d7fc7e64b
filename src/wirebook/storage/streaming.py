"""Stream the rows of queries within a time limit.

The deadline and the open results are stored with the connection. The deadline is checked between batches of rows; the
database interrupts a statement that returns no rows for too long.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final

from sqlalchemy import Connection, Dialect, Select, text
from sqlalchemy.exc import DBAPIError

from wirebook.storage.statements import driver_of

BATCH: Final = 500
"""Rows per fetch."""

STEPS: Final = 20_000
"""SQLite virtual machine instructions between checks of the deadline, which take some tenths of a millisecond."""

LOCK_NOT_AVAILABLE: Final = "55P03"
END, OPEN = "end", "open"


class TooSlow(Exception):
    """A read exceeded its time limit."""


def driver_errors(dialect: Dialect) -> tuple[type[Exception], ...]:
    """Return the exceptions that a failing database raises, from SQLAlchemy or from the driver."""
    return DBAPIError, dialect.loaded_dbapi.Error


def is_lock_timeout(error: Exception) -> bool:
    """Return whether PostgreSQL gave up waiting for a lock."""
    return getattr(getattr(error, "orig", error), "sqlstate", None) == LOCK_NOT_AVAILABLE


@contextmanager
def within(connection: Connection, seconds: float) -> Iterator[None]:
    """Limit the time of all reads on a connection.

    Raises: TooSlow, also if another transaction holds a lock for too long
    """
    end = connection.info[END] = monotonic() + seconds
    if connection.dialect.name == "sqlite":
        driver_of(connection).set_progress_handler(lambda: monotonic() > end, STEPS)
    try:
        yield
    except driver_errors(connection.dialect) as error:
        if monotonic() > end or is_lock_timeout(error):
            raise TooSlow from error
        raise
    finally:
        if not connection.invalidated:  # an invalidated connection has lost its info
            del connection.info[END]
        if connection.dialect.name == "sqlite":
            driver_of(connection).set_progress_handler(None, 0)


def limit_statements(connection: Connection, seconds: float) -> None:
    """Let PostgreSQL interrupt statements of this transaction after `seconds` (0: never).

    SQLite needs no such limit: `within` interrupts its statements.
    """
    if connection.dialect.name != "sqlite":
        connection.execute(text(f"SET LOCAL statement_timeout = {int(seconds * 1000)}"))


def rows(connection: Connection, query: Select[Any]) -> Generator[Any]:
    """Yield the rows of a query, which are fetched in batches. Raises: TooSlow"""
    end = connection.info.get(END, float("inf"))
    results = connection.info.setdefault(OPEN, set())
    with connection.execute(query, execution_options={"yield_per": BATCH}) as result:
        results.add(result)
        for batch in result.partitions():
            if monotonic() > end:
                raise TooSlow
            yield from batch
    results.discard(result)


def close_results(connection: Connection) -> None:
    """Close results that were not read to their end because a response was aborted."""
    if connection.invalidated:  # which has closed the results
        return
    for result in connection.info.pop(OPEN, ()):
        result.close()
