"""Row cursors iterate over the rows of one level in the order of their parents.

The number of cursors depends on the request, not on the number of entities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from wirebook.core.entities.rows import GroupRow, ResourceRow, VersionRow
from wirebook.core.query.filters import Level

R = TypeVar("R", GroupRow, ResourceRow, VersionRow)


class RowCursor(Generic[R]):
    """The rows of one level, in the order of their parents. `of` yields the rows of one parent once."""

    def __init__(self, rows: Iterable[R]) -> None:
        self._rows: Iterator[R] = iter(rows)
        self._next: R | None = next(self._rows, None)

    def of(self, parent: int) -> Iterator[R]:
        """Yield the rows of `parent`, if it has any. Call this with the parents in the order of the rows."""
        while self._next is not None and self._next.parent == parent:
            row, self._next = self._next, next(self._rows, None)
            yield row


class RowSource(Protocol):
    """Opens the cursors of a view."""

    def groups(self, level: Level) -> RowCursor[GroupRow]: ...
    def resources(self, level: Level) -> RowCursor[ResourceRow]: ...
    def versions(self, level: Level) -> RowCursor[VersionRow]: ...
