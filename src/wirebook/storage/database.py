"""A database: opened, migrated, locked where one server alone may have it.

    with closing(open_database("sqlite:///./wirebook.db")) as database: ...

Durable means that a write is on disk when it is answered: SQLite in WAL mode with ``synchronous=FULL``, PostgreSQL with
``synchronous_commit=on``.

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
from wirebook.storage.rows import TooSlow, driver_errors, is_lock_timeout, within
from wirebook.storage.session import ReadFailure, Session, WriteConflict, conflict_errors
from wirebook.storage.statements import driver_of, pipelined

MIGRATIONS: Final = Path(__file__).parent / "migrations"
VERSIONS: Final = sorted(file.name.partition("_")[0] for file in (MIGRATIONS / "versions").glob("[0-9]*.py"))
HEAD: Final = VERSIONS[-1]
LOCK: Final = 0x77697265
"""The advisory lock of PostgreSQL under which a database is made and migrated."""

CHECKPOINT: Final = 4000
"""Pages that SQLite's log has before they go into the file: each goes once, however often it was written; and one part
of the log's index has as many."""

SPACE: Final = 1 << 20
"""Bytes of free space below which the disk of a SQLite file counts as full."""

AWAY: Final = "the last attempt to reach the database failed"
READERS: Final = 8
READ_SECONDS: Final = 30


class Database:
    """An open database. `reading` and `writing` give connections with a transaction; one that writes has begun it.

    `observe` is told of each transaction: ``read`` or ``write``, and how many seconds it took. `written` counts those
    that wrote and have ended. `unavailable`, `unwritable` and `full` are its outages.
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
        """One snapshot, whatever is written meanwhile. Raises: Unavailable; Unreadable; TooSlow, if it takes longer"""
        try:
            with (
                self._tracking_outages(is_write=False),
                self._timed(),
                self._checked_out() as connection,
                within(connection, seconds),
                closing(self._snapshot(connection, seconds)) as session,
            ):
                yield session
        except PoolTimeoutError as error:  # all connections are in use for that long
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
        """As `reading`, of SQLite, for small reads of one thread, always the same. Raises: Unavailable; Unreadable"""
        try:
            with (
                self._tracking_outages(is_write=False),
                self._timed(),
                self._dedicated_connection("reading", "BEGIN") as connection,
                closing(Session(connection)) as session,
            ):
                yield session
        except driver_errors(self.engine.dialect) as error:
            raise ReadFailure(str(error)) from error

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Committed at the end, rolled back on any exception. SQLite: for one thread alone.

        Raises: Unavailable; Unwritable; Conflict; TooSlow, where others write for too long
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
        """Notes outages: one begins with an error that means one, and ends when a transaction or a probe succeeds.

        Raises: Unavailable, at once while the database is away; Unwritable
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
        except Refused:  # by what was read
            self.unavailable.end()
            raise
        self.unavailable.end()

    def _is_reachable(self) -> bool:
        """Connect to a database that was away; if that works, the outage is over."""
        try:
            with self.engine.connect() as connection:
                driver_of(connection).execute("SELECT 1")
        except PoolTimeoutError:  # transactions use all connections, so nothing says that the database is away
            return True
        except Exception:  # whatever it is, the database is not back
            return False
        self.unavailable.end()
        return True

    def has_space(self) -> bool:
        """Whether the file system of a SQLite file has space left: a small write may succeed where others fail."""
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
        """One write after the other, on all servers: each sees what the one before left."""
        if self.is_sqlite:
            with self._dedicated_connection("writing", "BEGIN IMMEDIATE") as connection:
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
    def _dedicated_connection(self, purpose: str, begin: str) -> Iterator[Connection]:
        """A transaction of SQLite on a connection that is kept for one purpose, and so for one thread."""
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
        """A connection that is rolled back in the end, if it is in a transaction then."""
        with self.engine.connect() as connection:
            try:
                yield connection
            except BaseException:
                if not (self.is_sqlite or connection.invalidated) and driver_of(connection).broken:
                    connection.invalidate()
                raise

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A connection in a transaction that may write."""
        with self._tracking_outages(is_write=True), self.engine.connect() as connection, connection.begin():
            connection.exec_driver_sql("BEGIN IMMEDIATE" if self.is_sqlite else "BEGIN")
            yield connection

    @contextmanager
    def exclusive_transaction(self) -> Iterator[Connection]:
        """As `transaction`, and only one at a time on all servers: for migrations, and for making a registry."""
        with self.transaction() as connection:
            if not self.is_sqlite:
                connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
            yield connection

    @contextmanager
    def leadership(self, name: str) -> Iterator[Leadership | None]:
        """The turn at something that one server alone does, of all that share the database; None if another has it."""
        if self.is_sqlite:  # there is no other
            yield Leadership(None)
            return
        with self._tracking_outages(is_write=False), self.engine.connect() as connection:
            connection.detach()  # closed in the end, not kept for others: the lock goes with it
            lock = select(func.pg_try_advisory_lock(LOCK, func.hashtext(name)))
            yield Leadership(connection) if connection.execute(lock).scalar() else None

    def close(self) -> None:
        self._probe.close()
        for connection in self._dedicated.values():
            connection.close()
        self.engine.dispose()
        if self._lock is not None:
            os.close(self._lock)


class Leadership:
    """A turn at something, which is lost with the connection that it hangs on."""

    def __init__(self, connection: Connection | None) -> None:
        self._connection = connection

    def check(self) -> None:
        """Raises: Unavailable, when it is lost"""
        if self._connection:
            self._connection.execute(select(1))


def open_database(
    url: str, *, readers: int = READERS, wait: float = READ_SECONDS, must_exist: bool = False
) -> Database:
    """The database at `url`, with the tables of this version. `readers` are connections that are kept, `wait` is how
    many seconds are waited for one, and for a lock; a file of SQLite is made, unless it `must_exist`.

    Raises: bad-database (no such kind, not there, not reachable, newer than the program), database-in-use
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise _bad_database(url.partition(":")[0], "it is no address of a database") from None  # it may hold a password
    if parsed.get_backend_name() == "sqlite":
        if parsed.database in (None, "", ":memory:") or parsed.query or parsed.host:
            raise _bad_database(parsed.render_as_string(), "it must name a file, as sqlite:///FILE, and nothing else")
        if must_exist and not Path(parsed.database or "").is_file():
            raise _bad_database(parsed.render_as_string(), "there is no such file")
        database = _open_sqlite(parsed, readers, wait)
    elif parsed.get_backend_name() == "postgresql":
        database = Database(make_engine(parsed, readers, wait))
    else:
        raise _bad_database(parsed.render_as_string(), "it must begin with sqlite:/// or postgresql://")
    try:
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
        pool_use_lifo=True,  # few readers have all the caches
        pool_timeout=wait,
        hide_parameters=True,  # errors are logged, and values of clients are not
        connect_args={"check_same_thread": False, "isolation_level": None, "cached_statements": 256},
    )
    event.listen(engine, "connect", _set_up_sqlite)
    return Database(engine, lock)


def _lock_file(path: Path) -> int:
    """Holds ``<file>.lock``, which a process loses when it dies. Raises: database-in-use, bad-database"""
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
        hint = "one server for each file; several servers can share a PostgreSQL"
        raise WirebookError(
            Problem("database-in-use", f"another server has the database '{path}'", hint=hint)
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


def migrate(database: Database) -> None:
    """Brings the tables to this version, under a lock; several may start at once. Raises: bad-database"""
    with database.exclusive_transaction() as connection:
        if not database.is_sqlite and (encoding := encoding_of(driver_of(connection))) != ENCODING:
            raise _bad_database(
                database.engine.url.render_as_string(), f"its encoding is {encoding}, and must be {ENCODING}"
            )
        current = _version_of(connection)
        if current == HEAD:
            return
        if current is not None and current not in VERSIONS:
            raise _bad_database(
                database.engine.url.render_as_string(), f"it is of a newer version of Wirebook ({current})"
            )
        from alembic import command  # noqa: PLC0415 (takes long to load, and most starts do without)
        from alembic.config import Config  # noqa: PLC0415

        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _version_of(connection: Connection) -> str | None:
    """The migration that the tables are of; None before the first."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
