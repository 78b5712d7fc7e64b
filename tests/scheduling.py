"""How pytest-xdist distributes the tests over its processes.

Tests that share a server form a group (`xdist_group`), which one process runs. All others are distributed in chunks
of a file: pytest-xdist would schedule each of 17,000 tests by itself, at a cost that grows with their square.
"""

from __future__ import annotations

from itertools import count, groupby
from typing import Any

from xdist.scheduler import LoadGroupScheduling

CHUNKS = 1000
"""About how many chunks there are. The last ones should take a few seconds, and a short run needs none."""


class ChunkScheduling(LoadGroupScheduling):
    """Schedules groups and chunks in the order of their first tests."""

    def __init__(self, config: Any, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False
        self._scopes: dict[str, str] = {}

    def schedule(self) -> None:
        if self.collection is None:
            self._scopes = scopes_of(next(iter(self.registered_collections.values())), super()._split_scope)
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return self._scopes[nodeid]


def scopes_of(nodeids: list[str], scope_of: Any) -> dict[str, str]:
    """The group or chunk of each test. `scope_of` returns the group of a test, or the test itself."""
    scopes = {nodeid: scope_of(nodeid) for nodeid in nodeids}
    alone = [nodeid for nodeid in nodeids if scopes[nodeid] == nodeid]
    size = 1 + len(nodeids) // CHUNKS
    for path, tests in groupby(alone, key=lambda nodeid: nodeid.partition("::")[0]):
        numbers = count()
        scopes |= {nodeid: f"{path} {next(numbers) // size}" for nodeid in tests}
    return scopes
