"""Group commit: messages that arrive during a write become durable together, with the next write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import perf_counter
from typing import Final

from wirebook.capture.backoff import Backoff
from wirebook.capture.segments import Sink
from wirebook.capture.status import GatewayStatus

ROLL_SECONDS: Final = 1.0


class Committer:
    """Writes lines to a sink in groups. All methods must run on the event loop; the sink has its own thread.

    Units: `limit` is in bytes. Receivers stop reading while the lines in memory exceed it (`is_full`, `room`).
    """

    def __init__(self, sink: Sink, limit: int, status: GatewayStatus, note: Callable[[str], None]) -> None:
        self._sink, self._limit, self._status, self._note = sink, limit, status, note
        self._thread = ThreadPoolExecutor(1, "wirebook-segments")
        self._loop = asyncio.get_running_loop()
        self._lines: list[bytes] = []
        self._durable: asyncio.Future[None] = self._loop.create_future()
        self._wake, self._has_room = asyncio.Event(), asyncio.Event()
        self._has_room.set()
        self._closing = False

    @property
    def is_full(self) -> bool:
        """Whether receivers must not read more messages."""
        return not self._has_room.is_set()

    @property
    def free_bytes(self) -> int:
        """The number of bytes that can be added before the limit is reached."""
        return max(self._limit - self._status.pending_bytes, 0)

    @property
    def is_failing(self) -> bool:
        """Whether the last write failed."""
        return self._status.failure is not None

    async def room(self) -> None:
        """Wait until the lines in memory are below the limit."""
        await self._has_room.wait()

    def reserve(self, size: int) -> None:
        """Count bytes in memory that are not lines yet; a negative size releases them."""
        self._status.pending_bytes += size
        if self._status.pending_bytes >= self._limit:
            self._has_room.clear()
        else:
            self._has_room.set()

    def try_reserve(self, size: int, held: int = 0) -> bool:
        """Reserve more bytes for a message that already holds `held` bytes, if they fit. Returns whether they do.

        A message that is larger than the limit fits if nothing else is in memory.
        """
        others = self._status.pending_bytes - held
        if others > 0 and others + held + size > self._limit:
            return False
        self.reserve(size)
        return True

    def append(self, line: bytes) -> asyncio.Future[None]:
        """Add a line. The returned future is done when the line is durable. A group shares it: do not cancel it."""
        self._lines.append(line)
        self.reserve(len(line))
        self._wake.set()
        return self._durable

    async def run(self) -> None:
        """Write groups until `close` is called and everything is durable; then complete the last segment.

        A failed write is retried until it succeeds. Until then, nothing is acknowledged, and `is_full` stops the
        receivers when memory is full. However `run` ends, the sink is closed after the current write, so that the next
        gateway can start at once.
        """
        try:
            while self._lines or not self._closing:
                self._wake.clear()
                if self._lines:
                    await self._linger()
                    await self._write_group()
                elif not self._closing:
                    await self._roll()
                    try:
                        async with asyncio.timeout(ROLL_SECONDS):
                            await self._wake.wait()
                    except TimeoutError:
                        continue
        except BaseException:
            with suppress(OSError):  # the first failure is raised
                await self._close_sink()
            raise
        await self._close_sink()

    async def _close_sink(self) -> None:
        closing = self._loop.run_in_executor(self._thread, self._sink.close)
        self._thread.shutdown(wait=False)
        await closing

    def close(self) -> None:
        """Make `run` return after everything is durable."""
        self._closing = True
        self._wake.set()

    async def _linger(self) -> None:
        """Wait for more lines, for the time that the sink defines and while there is room."""
        end = self._loop.time() + self._sink.linger_seconds
        while not (self._closing or self.is_full) and (left := end - self._loop.time()) > 0:
            self._wake.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._wake.wait()

    async def _write_group(self) -> None:
        lines, self._lines = self._lines, []
        durable, self._durable = self._durable, self._loop.create_future()
        backoff = Backoff()
        while True:
            begun = perf_counter()
            try:
                await self._loop.run_in_executor(self._thread, self._sink.write, lines)
                break
            except OSError as error:
                self._failed(error)
                await backoff.wait()
        if self._status.failure is not None:
            self._note("writing again")
            self._status.failure = None
        self._status.committed(len(lines), perf_counter() - begun)
        durable.set_result(None)
        self.reserve(-sum(map(len, lines)))

    async def _roll(self) -> None:
        try:
            await self._loop.run_in_executor(self._thread, self._sink.roll)
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        text = f"cannot write a segment: {error.strerror or error}"
        self._status.write_failures += 1
        if text != self._status.failure:  # once, not for every attempt
            self._note(f"{text}; nothing is acknowledged until it can be written")
        self._status.failure = text
