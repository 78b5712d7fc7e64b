"""The outbox: one row per request that changed something, stored for a limited time, and the progress of each sink.

Rows are numbered in commit order, without gaps.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select, tuple_, update

from wirebook.core.entities.versions import instant_key
from wirebook.storage.registry import RegistryRow
from wirebook.storage.tables import EVENTS, SINKS

EventPosition = tuple[int, int]
"""The position of an event: the number of its row, and its index in the row."""


@dataclass(frozen=True, slots=True)
class Outbox:
    """The outbox, in a transaction that has read the Registry's row."""

    _connection: Connection
    _registry: RegistryRow

    def after(self, number: int, limit: int) -> list[tuple[int, str, str, str]]:
        """Return up to `limit` rows after row `number`: number, time, correlation, body."""
        query = select(EVENTS.c.key, EVENTS.c.time, EVENTS.c.correlation, EVENTS.c.body).where(EVENTS.c.key > number)
        return [tuple(row) for row in self._connection.execute(query.order_by(EVENTS.c.key).limit(limit))]

    def range(self) -> tuple[int, int]:
        """Return the numbers of the last trimmed row and of the last row."""
        last = self._registry.events
        first = self._connection.execute(select(func.min(EVENTS.c.key))).scalar()
        return (last if first is None else int(first) - 1), last

    def trim(self, before: str, limit: int) -> int:
        """Delete rows older than a time, among the first `limit` rows, and return the number of deleted rows.

        The rows before an older row are deleted, too, so that there are no gaps.
        """
        first = select(EVENTS.c.key, EVENTS.c.time).order_by(EVENTS.c.key).limit(limit).subquery()
        last = self._connection.execute(select(func.max(first.c.key)).where(first.c.time < instant_key(before)))
        return self._connection.execute(delete(EVENTS).where(EVENTS.c.key <= (last.scalar() or 0))).rowcount

    def position(self, sink: str) -> EventPosition:
        """Return the position of the last event that a sink has received."""
        query = select(SINKS.c.number, SINKS.c.place).where(SINKS.c.name == sink)
        number, position = self._connection.execute(query).one()
        return number, position

    def begin(self, sink: str, position: EventPosition) -> None:
        """Store a sink with its start position, unless it is stored already."""
        if self._connection.execute(select(SINKS.c.name).where(SINKS.c.name == sink)).first() is None:
            self._connection.execute(insert(SINKS), {"name": sink, "number": position[0], "place": position[1]})

    def advance(self, sink: str, position: EventPosition) -> None:
        """Record that a sink has received the events up to a position, which never moves backwards."""
        is_behind = tuple_(SINKS.c.number, SINKS.c.place) < tuple_(*position)
        values = {"number": position[0], "place": position[1]}
        self._connection.execute(update(SINKS).where(SINKS.c.name == sink, is_behind).values(values))
