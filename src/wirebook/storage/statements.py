"""Statements that every request runs: described with SQLAlchemy, compiled once for each dialect, run by the driver.

    FIND = Statement(lambda _: select(GROUPS).where(GROUPS.c.key == bindparam("wanted")))
    for row in FIND.rows(connection, wanted=5): row.members

SQLAlchemy takes ten times as long to build a statement as SQLite does to run it, so what depends on a request alone is
built as it is there, and the rest is here. Values come as the driver gives them: booleans of SQLite are 0 and 1.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Dialect, make_url
from sqlalchemy.sql import ClauseElement, Select


@cache
def _dialect(name: str) -> Dialect:
    """The dialect with parameters by name."""
    if name == "sqlite":
        sqlite: Dialect = make_url("sqlite://").get_dialect()(paramstyle="named")
        return sqlite
    return make_url("postgresql+psycopg://").get_dialect()()


class Statement:
    """A statement with parameters by name. `build` is given the name of the dialect: sqlite or postgresql."""

    def __init__(self, build: Callable[[str], ClauseElement]) -> None:
        self._build = build
        self._compiled: dict[str, tuple[str, Mapping[str, Any], Callable[[Any], Any]]] = {}

    def run(self, connection: Connection, **parameters: Any) -> Any:
        """The driver's cursor. Raises: what the driver raises (see `wirebook.storage.session.conflicts`)"""
        text, constants, _ = self._for(connection)
        return driver_of(connection).execute(text, constants | parameters if constants else parameters)

    def run_many(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Once for each of `rows`."""
        if not rows:
            return
        text, constants, _ = self._for(connection)
        driver_of(connection).cursor().executemany(text, [constants | row for row in rows] if constants else rows)

    def rows(self, connection: Connection, **parameters: Any) -> Iterator[Any]:
        """The rows of a select, with the names of its columns."""
        return map(self._for(connection)[2], self.run(connection, **parameters))

    def row(self, connection: Connection, **parameters: Any) -> Any:
        """The first row of a select, or None."""
        return next(self.rows(connection, **parameters), None)

    def _for(self, connection: Connection) -> tuple[str, Mapping[str, Any], Callable[[Any], Any]]:
        name = connection.dialect.name
        if name not in self._compiled:
            self._compiled[name] = self._compile(name)
        return self._compiled[name]

    def _compile(self, name: str) -> tuple[str, Mapping[str, Any], Callable[[Any], Any]]:
        built = self._build(name)
        compiled = built.compile(dialect=_dialect(name))
        constants = {key: value for key, value in compiled.params.items() if value is not None}
        names = list(built.selected_columns.keys()) if isinstance(built, Select) else []
        return str(compiled), constants, namedtuple("Row", names, rename=True)._make


def driver_of(connection: Connection) -> Any:
    """The connection of the driver, in the same transaction."""
    return connection.connection.dbapi_connection
