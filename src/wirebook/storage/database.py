"""Open, migrate and lock a database, and run transactions.

    with closing(open_database("sqlite:///./wirebook.db")) as database: ...

Writes are durable: they are on disk before they are acknowledged. SQLite runs in WAL mode with ``synchronous=FULL``,
PostgreSQL with ``synchronous_commit=on``.

Spec: docs/registry.md#databases.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event, func, inspect, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import QueuePool

from wirebook.problems import Problem, WirebookError
from wirebook.problems.xregistry import Refused
from wirebook.storage.outages import OUTAGES, Outage, Probe, Unavailable, outage_of
from wirebook.storage.postgresql import ENCODING, begin_reading, begin_writing, encoding_of, make_engine
from wirebook.storage.session import ReadFailure, Session, WriteConflict, conflict_errors
from wirebook.storage.statements import driver_of, pipelined
from wirebook.storage.streaming import TooSlow, driver_errors, is_lock_timeout, within

MIGRATIONS: Final = Path(__file__).parent / "migrations"
VERSIONS: Final = sorted(file.name.partition("_")[0] for file in (MIGRATIONS / "versions").glob("[0-9]*.py"))
HEAD: Final = VERSIONS[-1]
VERSION_TABLE: Final = "alembic_version"
"""A table of all versions, from the first migration on."""
LOCK: Final = 0x77697265
"""The PostgreSQL advisory lock for creating and migrating a database."""

CHECKPOINT: Final = 4000
"""Pages in SQLite's write-ahead log before a checkpoint. One block of the index of the log has room for as many."""

SPACE: Final = 1 << 20
"""Bytes of free space below which the disk of a SQLite file counts as full."""

AWAY: Final = "the last attempt to reach the database failed"
READERS: Final = 8
READ_SECONDS: Final = 30


class Database:
    """An open database, which provides sessions in transactions (`reading` and `writing`).

    `observe` is called after each transaction with its kind (``read`` or ``write``) and its duration in seconds.
    `written` counts write transactions that have ended. `unavailable`, `unwritable` and `full` are its outages.
    """

    def __init__(self, engine: Engine, lock: int | None = None) -> None:
        self.engine, self._lock, self.written = engine, lock, 0
        self._dedicated: dict[str, Connection] = {}
        self.observe: Callable[[str, float], None] | None = None
        self.is_sqlite = engine.dialect.name == "sqlite"
        self.unavailable = Outage("the database is not available", "the database is available again")
        self.unwritable = Outage("the database cannot be written", "the database can be written again")
        self.full = Outage("the disk of the database is full", "the disk of the database has space again")
        self._probe = Probe(self._is_reachable)

    @contextmanager
    def reading(self, seconds: float = READ_SECONDS) -> Iterator[Session]:
        """Provide a snapshot that concurrent writes do not change.

        Raises: Unavailable; ReadFailure; TooSlow, if the read takes longer than `seconds` or no connection is free
        """
        try:
            with (
                self._tracking_outages(is_write=False),
                self._timed(),
                self._checked_out() as connection,
                within(connection, seconds),
                closing(self._snapshot(connection, seconds)) as session,
            ):
                yield session
        except PoolTimeoutError as error:  # no connection was free in time
            raise TooSlow from error
        except driver_errors(self.engine.dialect) as error:
            raise ReadFailure(str(error)) from error

    def _snapshot(self, connection: Connection, seconds: float) -> Session:
        if self.is_sqlite:
            connection.exec_driver_sql("BEGIN")
            return Session(connection)
        return Session(connection, begin_reading(driver_of(connection), seconds))

    @contextmanager
    def short_reading(self) -> Iterator[Session]:
        """Provide a snapshot of SQLite for short reads, always on the same thread. Raises: Unavailable; ReadFailure"""
        try:
            with (
                self._tracking_outages(is_write=False),
                self._timed(),
                self.dedicated_connection("reading", "BEGIN") as connection,
                closing(Session(connection)) as session,
            ):
                yield session
        except driver_errors(self.engine.dialect) as error:
            raise ReadFailure(str(error)) from error

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Provide a transaction that is committed at the end and rolled back on any exception.

        For SQLite, call this on one thread only.

        Raises: Unavailable; Unwritable; WriteConflict; TooSlow, if other writes take too long
        """
        started = time.perf_counter()
        try:
            with self._tracking_outages(is_write=True), self._serialised() as session:
                yield session
            if session.has_changed:
                self.unwritable.end()
        except PoolTimeoutError as error:
            raise TooSlow from error
        except conflict_errors(self.engine.dialect) as error:
            raise (TooSlow if is_lock_timeout(error) else WriteConflict)(str(error)) from error
        finally:
            self.written += 1
            self._report("write", started)

    @contextmanager
    def _tracking_outages(self, *, is_write: bool) -> Iterator[None]:
        """Begin an outage on an error that indicates one, and end it when a transaction succeeds.

        Raises: Unavailable, immediately while the database is known to be unreachable; Unwritable
        """
        if self._probe.is_away:
            raise Unavailable(AWAY)
        try:
            yield
        except driver_errors(self.engine.dialect) as error:
            outage = outage_of(error, is_write=is_write)
            if outage is None:
                raise
            if isinstance(outage, Unavailable):
                self.unavailable.begin(outage)
                if not self.is_sqlite:
                    self._probe.begin()
            else:
                self.unwritable.begin(outage)
            raise outage from error
        except Refused:  # the data to decide this was read
            self.unavailable.end()
            raise
        self.unavailable.end()

    def _is_reachable(self) -> bool:
        """Connect to a database that was unreachable; on success the outage ends."""
        try:
            with self.engine.connect() as connection:
                driver_of(connection).execute("SELECT 1")
        except PoolTimeoutError:  # all connections are in use, so the database is reachable
            return True
        except Exception:  # any error: still unreachable
            return False
        self.unavailable.end()
        return True

    def has_space(self) -> bool:
        """Return whether the file system of a SQLite file has free space.

        A test write is not sufficient, because a small write may succeed where larger writes fail.
        """
        if not self.is_sqlite:
            return True
        disk = os.statvfs(Path(self.engine.url.database or ".").parent)
        blocks = disk.f_bfree if os.geteuid() == 0 else disk.f_bavail
        if disk.f_blocks and blocks * disk.f_frsize < SPACE:
            self.full.begin(f"{blocks * disk.f_frsize} bytes are free")
        else:
            self.full.end()
        return not self.full.is_on

    @contextmanager
    def _serialised(self) -> Iterator[Session]:
        """Provide a write transaction, one at a time across all servers."""
        if self.is_sqlite:
            with self.dedicated_connection("writing", "BEGIN IMMEDIATE") as connection:
                with closing(Session(connection)) as session:
                    yield session
                session.finish()
        else:
            with self._checked_out() as connection:
                driver = driver_of(connection)
                with closing(Session(connection, begin_writing(driver))) as session:
                    yield session
                with pipelined(connection):
                    session.finish()
                    driver.execute("COMMIT")

    @contextmanager
    def dedicated_connection(self, purpose: str, begin: str) -> Iterator[Connection]:
        """Provide a SQLite transaction on the connection that is dedicated to one purpose, and so to one thread."""
        connection = self._dedicated.get(purpose) or self._dedicated.setdefault(purpose, self.engine.connect())
        driver = driver_of(connection)
        driver.execute(begin)
        try:
            yield connection
            driver.execute("COMMIT")
        finally:
            if driver.in_transaction:
                driver.execute("ROLLBACK")

    @contextmanager
    def _timed(self) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self._report("read", started)

    def _report(self, kind: str, started: float) -> None:
        if self.observe:
            self.observe(kind, time.perf_counter() - started)

    @contextmanager
    def _checked_out(self) -> Iterator[Connection]:
        """Provide a pooled connection. A transaction that is still open at the end is rolled back."""
        with self.engine.connect() as connection:
            try:
                yield connection
            except BaseException:
                if not (self.is_sqlite or connection.invalidated) and driver_of(connection).broken:
                    connection.invalidate()
                raise

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Provide a connection in a transaction that may write."""
        with self._tracking_outages(is_write=True), self.engine.connect() as connection, connection.begin():
            connection.exec_driver_sql("BEGIN IMMEDIATE" if self.is_sqlite else "BEGIN")
            yield connection

    @contextmanager
    def exclusive_transaction(self) -> Iterator[Connection]:
        """Provide a `transaction`, one at a time across all servers, for migrations and for creating a registry."""
        with self.transaction() as connection:
            if not self.is_sqlite:
                connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
            yield connection

    @contextmanager
    def leadership(self, name: str) -> Iterator[Leadership | None]:
        """Provide the leadership for a task that one server at a time performs; None if another server has it.

        Raises: Unavailable
        """
        if self.is_sqlite:  # no other server can open the file
            yield Leadership(None)
            return
        with self._tracking_outages(is_write=False), self.engine.connect() as connection:
            connection.detach()  # closed at the end instead of pooled, which releases the lock
            lock = select(func.pg_try_advisory_lock(LOCK, func.hashtext(name)))
            yield Leadership(connection) if connection.execute(lock).scalar() else None

    def close(self) -> None:
        """Close all connections and release the lock."""
        self._probe.close()
        for connection in self._dedicated.values():
            connection.close()
        self.engine.dispose()
        if self._lock is not None:
            os.close(self._lock)


class Leadership:
    """The leadership for a task, which lasts as long as the connection to the database."""

    def __init__(self, connection: Connection | None) -> None:
        self._connection = connection

    def check(self) -> None:
        """Check that the leadership is not lost.

        Raises: an error of SQLAlchemy, which `Database.leadership` converts to Unavailable
        """
        if self._connection:
            self._connection.execute(select(1))


def open_database(
    url: str, *, readers: int = READERS, wait: float = READ_SECONDS, must_exist: bool = False
) -> Database:
    """Open the database at `url` and migrate it to this version.

    `readers` is the number of connections that the pool keeps open, `wait` the seconds to wait for a connection and, on
    PostgreSQL, for locks. If the registry `must_exist`, a database without one is an error.

    Raises: bad-database (unsupported, missing, unreachable, or newer than the program), database-in-use
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise _bad_database(
            url.partition(":")[0], "it is not a database URL, such as sqlite:///FILE or postgresql://HOST/NAME"
        ) from None  # may have a password
    if parsed.get_backend_name() == "sqlite":
        if parsed.database in (None, "", ":memory:") or parsed.query or parsed.host:
            raise _bad_database(parsed.render_as_string(), "it must be sqlite:///FILE, without host and parameters")
        if must_exist and not Path(parsed.database or "").is_file():
            raise _bad_database(parsed.render_as_string(), "the file does not exist")
        database = _open_sqlite(parsed, readers, wait)
    elif parsed.get_backend_name() == "postgresql":
        database = Database(make_engine(parsed, readers, wait))
    else:
        raise _bad_database(parsed.render_as_string(), "it must start with sqlite:/// or postgresql://")
    try:
        if must_exist and not _has_tables(database):
            raise _bad_database(parsed.render_as_string(), "it has no registry")
        migrate(database)
    except (SQLAlchemyError, *OUTAGES) as error:
        database.close()
        raise _bad_database(
            parsed.render_as_string(hide_password=True), str(getattr(error, "orig", error)).strip()
        ) from None
    except BaseException:
        database.close()
        raise
    return database


def _bad_database(url: str, why: str) -> WirebookError:
    return WirebookError(Problem(code="bad-database", message=f"cannot use the database '{url}': {why}"))


# -- SQLite -------------------------------------------------------------------------------------------------------


def _open_sqlite(url: URL, readers: int, wait: float) -> Database:
    path = Path(str(url.database))
    lock = _lock_file(path)
    engine = create_engine(
        url.set(database=str(path)),
        poolclass=QueuePool,
        pool_size=readers + 2,
        pool_use_lifo=True,  # keeps the caches of few connections warm
        pool_timeout=wait,
        hide_parameters=True,  # errors are logged, but values of clients must not be
        connect_args={"check_same_thread": False, "isolation_level": None, "cached_statements": 256},
    )
    event.listen(engine, "connect", _set_up_sqlite)
    return Database(engine, lock)


def _lock_file(path: Path) -> int:
    """Lock ``<file>.lock`` and return its descriptor. The lock ends with the process.

    Raises: database-in-use, bad-database
    """
    if not path.parent.is_dir():
        why = f"the folder '{path.parent}' does not exist; correct the path, or create the folder"
        raise _bad_database(f"sqlite:///{path}", why)
    try:
        fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise _bad_database(str(path), error.strerror or str(error)) from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        hint = "stop that server, or use PostgreSQL, which several servers can share"
        raise WirebookError(
            Problem("database-in-use", f"another server uses the database '{path}'", hint=hint)
        ) from None
    return fd


def _set_up_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    for setting in (
        "journal_mode=WAL",
        "synchronous=FULL",
        f"wal_autocheckpoint={CHECKPOINT}",
        "foreign_keys=ON",
        "busy_timeout=10000",
        "cache_size=-8000",
        "temp_store=MEMORY",
    ):
        connection.execute(f"PRAGMA {setting}")


# -- migrations ---------------------------------------------------------------------------------------------------


def _has_tables(database: Database) -> bool:
    """Whether a version of Wirebook has created its tables. Raises: SQLAlchemyError"""
    with database.engine.connect() as connection:
        return inspect(connection).has_table(VERSION_TABLE)


def migrate(database: Database) -> None:
    """Migrate the tables to this version, under a lock, because several servers may start at once.

    Raises: bad-database
    """
    with database.exclusive_transaction() as connection:
        if not database.is_sqlite and (encoding := encoding_of(driver_of(connection))) != ENCODING:
            raise _bad_database(
                database.engine.url.render_as_string(), f"its encoding is {encoding}; it must be {ENCODING}"
            )
        has_version = inspect(connection).has_table(VERSION_TABLE)
        query = text("SELECT version_num FROM alembic_version")
        current = connection.execute(query).scalar() if has_version else None
        if current == HEAD:
            return
        if current is not None and current not in VERSIONS:
            raise _bad_database(
                database.engine.url.render_as_string(),
                f"a newer version of Wirebook has migrated it ({current}); upgrade Wirebook",
            )
        from alembic import command  # noqa: PLC0415 (slow to load, and most starts need no migration)
        from alembic.config import Config  # noqa: PLC0415

        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
