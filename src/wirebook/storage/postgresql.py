"""PostgreSQL: how it is connected to, and how its transactions begin.

Every word to the server takes longer than most of what it does, so few are said: connections begin transactions by
themselves, as those of SQLite do, and with the first one comes what every request asks for.
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
    "tcp_keepalives_idle": "10",  # a server whose machine is gone gives up its locks
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
"""How soon a server that is gone without a word is given up, unless the URL says otherwise."""

READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = {}; "
WRITING: Final = "BEGIN; "
FIND: Final = "SELECT settings, members, revision, events, lastkey, xrefs FROM registry"
"""The columns of a `RegistryRow`."""

ENCODING: Final = "UTF8"
"""Of the database and of its connections: others lack characters, or count bytes as such."""

IDLE: Final = 10.0
"""Seconds without a word after which a connection is asked whether it is still there."""

PREPARED: Final = 256
"""Statements that a connection keeps prepared: each is there for several types of its parameters."""


def make_engine(url: URL, readers: int, wait: float) -> Engine:
    """Connections to a PostgreSQL: `readers` that are kept, and as many for a while; `wait` as in `open_database`."""
    settings = SETTINGS | {"lock_timeout": f"{wait * 1000:.0f}"}
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        poolclass=QueuePool,
        pool_size=readers,
        max_overflow=readers,
        pool_use_lifo=True,  # few have all statements prepared
        pool_timeout=wait,
        hide_parameters=True,  # errors are logged, and values of clients are not
        connect_args={
            **{name: value for name, value in CONNECTING.items() if name not in url.query},
            "autocommit": True,
            "options": options,
            "client_encoding": ENCODING,
        },
    )
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "checkin", _put_back)
    event.listen(engine, "checkout", _check)
    return engine


def encoding_of(connection: psycopg.Connection[Any]) -> str | None:
    """How a database keeps texts, as the server has said."""
    return connection.info.parameter_status("server_encoding")


def _set_up(connection: psycopg.Connection[Any], _: Any) -> None:
    connection.prepared_max = PREPARED


def _put_back(_: Any, record: Any) -> None:
    record.info["used"] = time.monotonic()


def _check(connection: psycopg.Connection[Any], record: Any, _: Any) -> None:
    """A connection that was cut is not given out: the end of it can be read, and nothing else is said unasked."""
    if time.monotonic() - record.info.get("used", time.monotonic()) < IDLE and not _is_readable(connection):
        return
    import psycopg  # noqa: PLC0415 (with SQLite it is not needed, and takes long to load)

    try:
        connection.execute("")
    except psycopg.Error as error:
        raise InvalidatePoolError from error


def _is_readable(connection: psycopg.Connection[Any]) -> bool:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def begin_reading(connection: psycopg.Connection[Any], seconds: float) -> RegistryRow | None:
    """A snapshot, in which no statement takes longer than `seconds`; None without a Registry."""
    return _begin(connection, READING.format(max(1, int(seconds * 1000))) + FIND)


def begin_writing(connection: psycopg.Connection[Any]) -> RegistryRow | None:
    """One write after the other, on all servers: the transaction has the Registry's row for itself."""
    return _begin(connection, f"{WRITING}{FIND} FOR UPDATE")


def _begin(connection: psycopg.Connection[Any], text: str) -> RegistryRow | None:
    """One word to the server."""
    cursor = connection.execute(text.encode())
    while cursor.nextset():
        pass
    row = cursor.fetchone()
    return None if row is None else RegistryRow(*row)
