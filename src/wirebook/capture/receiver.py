"""The interface of receivers, and functions that they share."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, Protocol


class Receiver(Protocol):
    """Receives the messages of one connection or address."""

    async def run(self, stopping: asyncio.Event) -> None:
        """Receive until `stopping` is set; return when everything received is durable and acknowledged."""


def received_now() -> str:
    """Return the current time in the format of records."""
    return instant_text(datetime.now(UTC))


def instant_text(time: datetime) -> str:
    """Return a time in UTC in the format of records."""
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


async def first_of(*waiting: asyncio.Future[Any] | Coroutine[Any, Any, Any]) -> None:
    """Wait until one of the arguments is done, and cancel the coroutines among the others."""
    futures = [asyncio.ensure_future(item) for item in waiting]
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for item, future in zip(waiting, futures, strict=True):
            if item is not future:
                future.cancel()
