"""Statements that are built with SQLAlchemy, compiled once for each dialect, and run by the driver.

    FIND = Statement(lambda _: select(GROUPS).where(GROUPS.c.key == bindparam("key")))
    for row in FIND.rows(connection, key=5):
        row.members

SQLAlchemy takes ten times as long to build a statement as SQLite takes to run it, so only statements that depend on the
request are built for each request. Rows have the values of the driver: booleans of SQLite are 0 and 1.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, Dialect
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.sql import ClauseElement, Select


@cache
def _dialect(name: str) -> Dialect:
    """Return the dialect with the fastest parameter style of its driver."""
    if name == "sqlite":
        return SQLiteDialect_pysqlite(paramstyle="qmark")
    postgresql: Dialect = PGDialect_psycopg()  # type: ignore[no-untyped-call]
    return postgresql


class CompiledStatement(NamedTuple):
    """The text for a driver, constant parameters, a function that packs parameters, and one that makes a row."""

    text: str
    constants: dict[str, Any]
    pack: Callable[[dict[str, Any]], Any]
    make: Callable[[Any], Any]


class Statement:
    """A statement with named parameters. `build` receives the name of the dialect: sqlite or postgresql."""

    def __init__(self, build: Callable[[str], ClauseElement]) -> None:
        self._build = build
        self._compiled: dict[str, CompiledStatement] = {}

    def run(self, connection: Connection, **parameters: Any) -> Any:
        """Run the statement and return the driver's cursor.

        Raises: exceptions of the driver (see `session.conflict_errors`)
        """
        text, constants, pack, _ = self.compiled_for(connection)
        return driver_of(connection).execute(text, pack(constants | parameters if constants else parameters))

    def run_many(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
        """Run the statement once for each of `rows`."""
        if not rows:
            return
        text, constants, pack, _ = self.compiled_for(connection)
        packed = [pack(constants | row if constants else row) for row in rows]
        driver_of(connection).cursor().executemany(text, packed)

    def rows(self, connection: Connection, **parameters: Any) -> Iterator[Any]:
        """Return the rows of a select, with column names."""
        return map(self.compiled_for(connection).make, self.run(connection, **parameters))

    def row(self, connection: Connection, **parameters: Any) -> Any:
        """Return the first row of a select, or None."""
        return next(self.rows(connection, **parameters), None)

    def compiled_for(self, connection: Connection) -> CompiledStatement:
        """Return the statement compiled for the dialect of a connection."""
        name = connection.dialect.name
        if name not in self._compiled:
            self._compiled[name] = self._compile(name)
        return self._compiled[name]

    def _compile(self, name: str) -> CompiledStatement:
        built = self._build(name)
        compiled: Any = built.compile(dialect=_dialect(name))
        constants = {key: value for key, value in compiled.params.items() if not compiled.binds[key].required}
        names = built.selected_columns.keys() if isinstance(built, Select) else []
        pack = _by_name if compiled.positiontup is None else _by_place(compiled.positiontup)
        return CompiledStatement(str(compiled), constants, pack, _row_type(names)._make)


def _by_name(parameters: dict[str, Any]) -> dict[str, Any]:
    return parameters


def _by_place(names: Sequence[str]) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda parameters: tuple(parameters[name] for name in names)


def _row_type(names: Iterable[str]) -> Any:
    """Return the tuple type of rows with these columns."""
    return namedtuple("Row", [*names], rename=True)


def driver_of(connection: Connection) -> Any:
    """Return the driver's connection, which is in the same transaction."""
    return connection.connection.dbapi_connection


def pipelined(connection: Connection) -> AbstractContextManager[Any]:
    """Send statements without results in one batch. An error in any of them is raised at the end."""
    return nullcontext() if connection.dialect.name == "sqlite" else driver_of(connection).pipeline()


def is_open(connection: Connection) -> bool:
    """Return whether the connection is in a transaction in which statements can run."""
    driver = driver_of(connection)
    if connection.dialect.name == "sqlite":
        return bool(driver.in_transaction)
    return bool(driver.info.transaction_status.name == "INTRANS")
