"""Rows in order: those of one level, handed out parent by parent.

The number of streams depends on what is asked for, never on how much there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from wirebook.core.entities.rows import GroupRow, ResourceRow, VersionRow
from wirebook.core.query.filters import Level

R = TypeVar("R", GroupRow, ResourceRow, VersionRow)


class RowCursor(Generic[R]):
    """Rows of one level, in the order of their parents: `of` hands out those of one parent, each once."""

    def __init__(self, rows: Iterable[R]) -> None:
        self._rows: Iterator[R] = iter(rows)
        self._next: R | None = next(self._rows, None)

    def of(self, parent: int) -> Iterator[R]:
        while self._next is not None and self._next.parent == parent:
            row, self._next = self._next, next(self._rows, None)
            yield row


class RowSource(Protocol):
    """Where a view gets its rows."""

    def groups(self, level: Level) -> RowCursor[GroupRow]: ...
    def resources(self, level: Level) -> RowCursor[ResourceRow]: ...
    def versions(self, level: Level) -> RowCursor[VersionRow]: ...
