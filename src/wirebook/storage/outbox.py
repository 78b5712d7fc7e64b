"""The outbox: a row for each request that changed something, kept for a while, and how far each sink is with them.

Rows are numbered in the order of their commits, without gaps.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select, tuple_, update

from wirebook.core.entities.versions import instant_key
from wirebook.storage.registry import RegistryRow
from wirebook.storage.tables import EVENTS, SINKS

Place = tuple[int, int]
"""An event: the number of its row, and its place in the row."""


@dataclass(frozen=True, slots=True)
class Outbox:
    """The outbox, within a transaction that has the Registry's row."""

    _connection: Connection
    _registry: RegistryRow

    def after(self, number: int, limit: int) -> list[tuple[int, str, str, str]]:
        """The next rows: number, time, correlation, body."""
        query = select(EVENTS.c.key, EVENTS.c.time, EVENTS.c.correlation, EVENTS.c.body).where(EVENTS.c.key > number)
        return [tuple(row) for row in self._connection.execute(query.order_by(EVENTS.c.key).limit(limit))]

    def range(self) -> tuple[int, int]:
        """The numbers of the last row that is gone and of the last that is there."""
        last = self._registry.events
        first = self._connection.execute(select(func.min(EVENTS.c.key))).scalar()
        return (last if first is None else int(first) - 1), last

    def trim(self, before: str, limit: int) -> int:
        """Forgets what is older than a time, of the first rows, so many at most; says how many. No gaps come, whatever
        clocks say."""
        first = select(EVENTS.c.key, EVENTS.c.time).order_by(EVENTS.c.key).limit(limit).subquery()
        last = self._connection.execute(select(func.max(first.c.key)).where(first.c.time < instant_key(before)))
        return self._connection.execute(delete(EVENTS).where(EVENTS.c.key <= (last.scalar() or 0))).rowcount

    def place(self, sink: str) -> Place:
        """The last event that a sink has."""
        query = select(SINKS.c.number, SINKS.c.place).where(SINKS.c.name == sink)
        number, place = self._connection.execute(query).one()
        return number, place

    def begin(self, sink: str, place: Place) -> None:
        """Where a sink begins, if it is new."""
        if self._connection.execute(select(SINKS.c.name).where(SINKS.c.name == sink)).first() is None:
            self._connection.execute(insert(SINKS), {"name": sink, "number": place[0], "place": place[1]})

    def advance(self, sink: str, place: Place) -> None:
        """A sink has the events up to there; it never goes back."""
        is_behind = tuple_(SINKS.c.number, SINKS.c.place) < tuple_(*place)
        values = {"number": place[0], "place": place[1]}
        self._connection.execute(update(SINKS).where(SINKS.c.name == sink, is_behind).values(values))
