"""Statements that every request runs: described with SQLAlchemy, compiled once for each dialect, run by the driver.

    FIND = Statement(lambda _: select(GROUPS).where(GROUPS.c.key == bindparam("key")))
    for row in FIND.rows(connection, wanted=5): row.members

SQLAlchemy takes ten times as long to build a statement as SQLite does to run it, so what depends on a request alone is
built as it is there, and the rest is here. Values come as the driver gives them: booleans of SQLite are 0 and 1.
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
    """The dialect with parameters as its driver takes them in the least time: by place, or by name."""
    if name == "sqlite":
        return SQLiteDialect_pysqlite(paramstyle="qmark")
    postgresql: Dialect = PGDialect_psycopg()  # type: ignore[no-untyped-call]
    return postgresql


class _Compiled(NamedTuple):
    """The text for a driver, the values of parameters that are always the same, what puts parameters as the driver
    takes them, and what makes a row."""

    text: str
    constants: dict[str, Any]
    pack: Callable[[dict[str, Any]], Any]
    make: Callable[[Any], Any]


class Statement:
    """A statement with parameters by name. `build` is given the name of the dialect: sqlite or postgresql."""

    def __init__(self, build: Callable[[str], ClauseElement]) -> None:
        self._build = build
        self._compiled: dict[str, _Compiled] = {}

    def run(self, connection: Connection, **parameters: Any) -> Any:
        """The driver's cursor. Raises: what the driver raises (see `wirebook.storage.session.conflicts`)"""
        text, constants, pack, _ = self._for(connection)
        return driver_of(connection).execute(text, pack(constants | parameters if constants else parameters))

    def run_many(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
        """Once for each of `rows`."""
        if not rows:
            return
        text, constants, pack, _ = self._for(connection)
        packed = [pack(constants | row if constants else row) for row in rows]
        driver_of(connection).cursor().executemany(text, packed)

    def rows(self, connection: Connection, **parameters: Any) -> Iterator[Any]:
        """The rows of a select, with the names of its columns."""
        return map(self._for(connection).make, self.run(connection, **parameters))

    def row(self, connection: Connection, **parameters: Any) -> Any:
        """The first row of a select, or None."""
        return next(self.rows(connection, **parameters), None)

    def _for(self, connection: Connection) -> _Compiled:
        name = connection.dialect.name
        if name not in self._compiled:
            self._compiled[name] = self._compile(name)
        return self._compiled[name]

    def _compile(self, name: str) -> _Compiled:
        built = self._build(name)
        compiled: Any = built.compile(dialect=_dialect(name))
        constants = {key: value for key, value in compiled.params.items() if not compiled.binds[key].required}
        names = built.selected_columns.keys() if isinstance(built, Select) else []
        pack = _by_name if compiled.positiontup is None else _by_place(compiled.positiontup)
        return _Compiled(str(compiled), constants, pack, _row_type(names)._make)


def _by_name(parameters: dict[str, Any]) -> dict[str, Any]:
    return parameters


def _by_place(names: Sequence[str]) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda parameters: tuple(parameters[name] for name in names)


def _row_type(names: Iterable[str]) -> Any:
    return namedtuple("Row", [*names], rename=True)


def driver_of(connection: Connection) -> Any:
    """The connection of the driver, in the same transaction."""
    return connection.connection.dbapi_connection


def pipelined(connection: Connection) -> AbstractContextManager[Any]:
    """Statements inside that give nothing back are not waited for one by one; what one of them raises, the end does."""
    return nullcontext() if connection.dialect.name == "sqlite" else driver_of(connection).pipeline()


def is_open(connection: Connection) -> bool:
    """Whether there is a transaction in which statements can be run."""
    driver = driver_of(connection)
    if connection.dialect.name == "sqlite":
        return bool(driver.in_transaction)
    return bool(driver.info.transaction_status.name == "INTRANS")
