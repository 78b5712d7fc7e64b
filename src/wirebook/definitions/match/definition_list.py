"""Definitions by number and by XID. Other processes unpickle them when they first use them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, overload

from wirebook.core.collector import without_collector
from wirebook.definitions.compile.definition import Definition

__all__ = ["DefinitionList", "DefinitionMap"]

GROUP: Final = 16
"""Number of definitions that are unpickled together. What they have in common is stored once."""


class DefinitionList(Sequence[Definition]):
    """Definitions by number.

    A pickled copy in another process unpickles a group of definitions when one of them is first used, and then calls
    `on_read`. Unpickling takes 12 µs for each definition, and most definitions of a large catalogue have no messages.
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
        """Unpickle the group of a definition, and return the definition."""
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
    """The default of `on_read`."""


class DefinitionMap(Mapping[str, Definition]):
    """The definitions of a list by XID, in the order of the list."""

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
