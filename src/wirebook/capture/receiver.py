"""What all receivers have in common."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Protocol


class Receiver(Protocol):
    """Receives the messages of one connection or address."""

    async def run(self, stopping: asyncio.Event) -> None:
        """Receive until `stopping` is set; return when everything received is durable and acknowledged."""


def received_now() -> str:
    """Return the time as a record contains it."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
