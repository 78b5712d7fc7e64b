"""The Registry's row, which a transaction reads once and a write updates once at its end.

Every write has a number, the `revision` of all rows that it stores. It is larger than the number of the previous write,
and at least the time in microseconds, so a registry that is created again or restored from a backup does not reuse
numbers. A write locks the row until its commit, so numbers are in commit order, and a reader that sees an event also
sees all events before it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from typing import Final

from sqlalchemy import Connection, bindparam, select, update

from wirebook.storage.statements import Statement
from wirebook.storage.tables import REGISTRY


@dataclass(slots=True)
class RegistryRow:
    """The Registry's row in a transaction, with the columns of its table."""

    settings: int
    members: str
    revision: int
    events: int
    lastkey: int
    xrefs: bool

    def advance(self, new: int, *, happened: bool) -> None:
        """Assign numbers to a write, the `new` rows that it inserts and, if it `happened`, its row in the outbox."""
        self.revision = next_revision(self.revision)
        self.lastkey += new
        self.events += happened

    def write(self, connection: Connection) -> None:
        """Update the row."""
        _WRITE.run(connection, **{column.name: getattr(self, column.name) for column in COLUMNS})


def read_registry(connection: Connection) -> RegistryRow:
    """Return the Registry's row."""
    return RegistryRow(*_READ.row(connection))


def next_revision(number: int) -> int:
    """Return the number after `number`, or the time if that is larger."""
    return max(number + 1, clock())


def clock() -> int:
    """Return the time in microseconds, which is the smallest number for a write now."""
    return time.time_ns() // 1000


COLUMNS: Final = tuple(REGISTRY.c[field.name] for field in fields(RegistryRow))
_READ: Final = Statement(lambda _: select(*COLUMNS))
_WRITE: Final = Statement(
    lambda _: update(REGISTRY).values({column.name: bindparam(column.name, type_=column.type) for column in COLUMNS})
)
