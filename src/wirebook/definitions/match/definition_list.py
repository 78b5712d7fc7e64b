"""Definitions by number and by XID, which another process reads when it first uses them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, overload

from wirebook.core.collector import without_collector
from wirebook.definitions.compile.definition import Definition

__all__ = ["DefinitionList", "DefinitionMap"]

GROUP: Final = 16
"""Definitions that are read together: what they have in common is stored once."""


class DefinitionList(Sequence[Definition]):
    """Definitions by number.

    A copy in another process (`pickle`) reads a group of them when the first of it is used. Reading takes 12 µs for
    each definition, and messages of most definitions of a large catalogue never occur. `on_read` is called after that.
    """

    def __init__(self, definitions: Iterable[Definition]) -> None:
        self._definitions: list[Definition | None] = list(definitions)
        self._groups: tuple[bytes, ...] = ()
        self.on_read: Callable[[], None] = _do_nothing

    def __len__(self) -> int:
        return len(self._definitions)

    @overload
    def __getitem__(self, number: int) -> Definition: ...
    @overload
    def __getitem__(self, number: slice) -> list[Definition]: ...

    def __getitem__(self, number: int | slice) -> Definition | list[Definition]:
        if isinstance(number, slice):
            return [self[place] for place in range(len(self))[number]]
        return self._definitions[number] or self._read(range(len(self))[number])

    def __iter__(self) -> Iterator[Definition]:
        return (definition or self[number] for number, definition in enumerate(self._definitions))

    def _read(self, number: int) -> Definition:
        """Read the group of a definition."""
        group = number // GROUP
        with without_collector():
            read: list[Definition] = pickle.loads(self._groups[group])  # noqa: S301
        self._definitions[group * GROUP : group * GROUP + len(read)] = read
        self.on_read()
        return read[number % GROUP]

    def __getstate__(self) -> tuple[int, tuple[bytes, ...]]:
        groups = (self[start : start + GROUP] for start in range(0, len(self), GROUP))
        return len(self), tuple(pickle.dumps(group, pickle.HIGHEST_PROTOCOL) for group in groups)

    def __setstate__(self, state: tuple[int, tuple[bytes, ...]]) -> None:
        count, self._groups = state
        self._definitions, self.on_read = [None] * count, _do_nothing


def _do_nothing() -> None:
    """By default, nothing follows the reading of definitions."""


class DefinitionMap(Mapping[str, Definition]):
    """The definitions of a list by XID, in its order."""

    def __init__(self, definitions: DefinitionList) -> None:
        self._definitions = definitions
        self._numbers = {definition.xid: number for number, definition in enumerate(definitions)}

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __getitem__(self, xid: str) -> Definition:
        return self._definitions[self._numbers[xid]]

    def __contains__(self, xid: object) -> bool:
        return xid in self._numbers
