"""Rows as they come, within a time.

When time is over, and which results are open, is kept with the connection. The clock is looked at between rows; a
statement that gives none for long is interrupted by the database.
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
"""Rows that are fetched at once."""

STEPS: Final = 20_000
"""Instructions of SQLite's machine between looks at the clock: some tenths of a millisecond."""

LOCK_NOT_AVAILABLE: Final = "55P03"
END, OPEN = "end", "open"


class TooSlow(Exception):
    """A read took longer than it may."""


def driver_errors(dialect: Dialect) -> tuple[type[Exception], ...]:
    """What is raised where the database fails: by SQLAlchemy, or by the driver."""
    return DBAPIError, dialect.loaded_dbapi.Error


def is_lock_timeout(error: Exception) -> bool:
    """Whether PostgreSQL waited for a lock for as long as it may."""
    return getattr(getattr(error, "orig", error), "sqlstate", None) == LOCK_NOT_AVAILABLE


@contextmanager
def within(connection: Connection, seconds: float) -> Iterator[None]:
    """All that is read takes at most so many seconds. Raises: TooSlow, also where others lock it for too long"""
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
        if not connection.invalidated:  # which has no info, either
            del connection.info[END]
        if connection.dialect.name == "sqlite":
            driver_of(connection).set_progress_handler(None, 0)


def limit_statements(connection: Connection, seconds: float) -> None:
    """Let PostgreSQL interrupt statements of this transaction after so many seconds (0: never).

    SQLite needs no such limit: `within` interrupts its statements.
    """
    if connection.dialect.name != "sqlite":
        connection.execute(text(f"SET LOCAL statement_timeout = {int(seconds * 1000)}"))


def rows(connection: Connection, query: Select[Any]) -> Generator[Any]:
    """The rows of a query, some at a time. Raises: TooSlow"""
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
    """Ends what was not read to its end, as an answer that broke off leaves it."""
    if connection.invalidated:  # they are gone with it
        return
    for result in connection.info.pop(OPEN, ()):
        result.close()
