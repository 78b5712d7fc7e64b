"""Exponential backoff with jitter, so that clients do not reconnect to a server at the same moment."""

from __future__ import annotations

import asyncio
import random
from typing import Final

FIRST_SECONDS: Final = 0.5
MAX_SECONDS: Final = 30.0


class Backoff:
    """The delay before the next attempt."""

    def __init__(self, first: float = FIRST_SECONDS, most: float = MAX_SECONDS) -> None:
        self._first = self._next = first
        self._most = most

    def reset(self) -> None:
        """Return to the shortest delay, after a success."""
        self._next = self._first

    async def wait(self, until: asyncio.Event | None = None) -> None:
        """Wait for a random part of the delay, at least half, and double the delay. `until` ends the wait early."""
        seconds = random.uniform(self._next / 2, self._next)  # noqa: S311 (not for cryptography)
        self._next = min(2 * self._next, self._most)
        try:
            async with asyncio.timeout(seconds):
                await (until or asyncio.Event()).wait()
        except TimeoutError:
            pass
