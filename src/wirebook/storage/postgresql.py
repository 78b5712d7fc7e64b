"""PostgreSQL: connections and the start of transactions.

A round trip to the server takes longer than most statements, so transactions use few: the statement that begins one
also reads the Registry's row, which every request needs.
"""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.pool import QueuePool

from wirebook.storage.registry import RegistryRow

if TYPE_CHECKING:
    import psycopg

SETTINGS: Final = {
    "synchronous_commit": "on",
    "timezone": "UTC",
    "tcp_keepalives_idle": "10",  # releases the locks of an application server that crashed
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
CONNECTING: Final = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}
"""Timeouts in seconds, except where noted, for a server that stops responding. The URL may override them."""

READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = {}; "
WRITING: Final = "BEGIN; "
FIND: Final = "SELECT settings, members, revision, events, lastkey, xrefs FROM registry"
"""The columns of a `RegistryRow`."""

ENCODING: Final = "UTF8"
"""Required encoding of the database and its connections: others lack characters or count bytes as characters."""

IDLE: Final = 10.0
"""Seconds without use after which a connection is tested."""

PREPARED: Final = 256
"""Prepared statements per connection: each statement is prepared once per combination of parameter types."""


def make_engine(url: URL, readers: int, wait: float) -> Engine:
    """Return an engine with `readers` permanent and as many temporary connections; `wait` as in `open_database`."""
    settings = SETTINGS | {"lock_timeout": f"{wait * 1000:.0f}"}
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        poolclass=QueuePool,
        pool_size=readers,
        max_overflow=readers,
        pool_use_lifo=True,  # keeps the prepared statements of few connections in use
        pool_timeout=wait,
        hide_parameters=True,  # errors are logged, but values of clients must not be
        connect_args={
            **{name: value for name, value in CONNECTING.items() if name not in url.query},
            "autocommit": True,
            "options": options,
            "client_encoding": ENCODING,
        },
    )
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "checkin", _note_last_use)
    event.listen(engine, "checkout", _test_before_use)
    return engine


def encoding_of(connection: psycopg.Connection[Any]) -> str | None:
    """Return the encoding of the database of a connection."""
    return connection.info.parameter_status("server_encoding")


def _set_up(connection: psycopg.Connection[Any], _: Any) -> None:
    connection.prepared_max = PREPARED


def _note_last_use(_: Any, record: Any) -> None:
    record.info["used"] = time.monotonic()


def _test_before_use(connection: psycopg.Connection[Any], record: Any, _: Any) -> None:
    """Test a connection before use if it was idle or has unread data, which means that the server closed it."""
    if time.monotonic() - record.info.get("used", time.monotonic()) < IDLE and not _has_unread_data(connection):
        return
    import psycopg  # noqa: PLC0415 (not needed with SQLite, and slow to load)

    try:
        connection.execute("")
    except psycopg.Error as error:
        raise InvalidatePoolError from error


def _has_unread_data(connection: psycopg.Connection[Any]) -> bool:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def begin_reading(connection: psycopg.Connection[Any], seconds: float) -> RegistryRow | None:
    """Begin a snapshot in which no statement takes longer than `seconds`.

    Return the Registry's row; None without a Registry.
    """
    return _begin(connection, READING.format(max(1, int(seconds * 1000))) + FIND)


def begin_writing(connection: psycopg.Connection[Any]) -> RegistryRow | None:
    """Begin a write and lock the Registry's row, which serialises writes on all servers. Return the row."""
    return _begin(connection, f"{WRITING}{FIND} FOR UPDATE")


def _begin(connection: psycopg.Connection[Any], text: str) -> RegistryRow | None:
    """Run statements in one round trip and return the Registry's row."""
    cursor = connection.execute(text.encode())
    while cursor.nextset():
        pass
    row = cursor.fetchone()
    return None if row is None else RegistryRow(*row)
