"""The Registry's row: read once in a transaction, and written once, when it ends.

Every write has a number, which all rows that it stores have as their `revision`. It is above that of the write before,
and not below the microseconds of the time, so that a registry that was made anew, or is a copy from some days ago, has
numbers that it never had before. Who writes has the row for itself until the commit: numbers are in the order of
commits, and a reader that has seen an event has seen all before it.
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
    """The Registry as a transaction has it; the columns are those of the table."""

    settings: int
    members: str
    revision: int
    events: int
    lastkey: int
    xrefs: bool

    def advance(self, new: int, *, happened: bool) -> None:
        """Numbers a write, the `new` rows that it makes and, if something `happened`, its event."""
        self.revision = next_revision(self.revision)
        self.lastkey += new
        self.events += happened

    def write(self, connection: Connection) -> None:
        _WRITE.run(connection, **{column.name: getattr(self, column.name) for column in COLUMNS})


def read_registry(connection: Connection) -> RegistryRow:
    return RegistryRow(*_READ.row(connection))


def next_revision(number: int) -> int:
    """The next number, or the time, whichever is later."""
    return max(number + 1, clock())


def clock() -> int:
    """The least number that a write may have now."""
    return time.time_ns() // 1000


COLUMNS: Final = tuple(REGISTRY.c[field.name] for field in fields(RegistryRow))
_READ: Final = Statement(lambda _: select(*COLUMNS))
_WRITE: Final = Statement(
    lambda _: update(REGISTRY).values({column.name: bindparam(column.name, type_=column.type) for column in COLUMNS})
)
