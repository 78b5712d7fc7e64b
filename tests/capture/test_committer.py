"""Group commit: one write for many messages, retries, and the limit on memory."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Awaitable, Callable, Sequence

from wirebook.capture.committer import Committer
from wirebook.capture.status import GatewayStatus


class MemorySink:
    """Keeps groups in memory. A write waits for `gate`, and fails `failures` times."""

    identity = "memory"
    linger_seconds = 0.0

    def __init__(self, failures: int = 0) -> None:
        self.groups: list[list[bytes]] = []
        self.gate = threading.Event()
        self.failures, self.is_closed = failures, False

    def write(self, lines: Sequence[bytes]) -> None:
        assert self.gate.wait(60)
        if self.failures:
            self.failures -= 1
            raise OSError(errno.ENOSPC, "No space left on device")
        self.groups.append(list(lines))

    def roll(self) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True


def run(
    sink: MemorySink, use: Callable[[Committer], Awaitable[None]], limit: int = 1000
) -> tuple[GatewayStatus, list[str]]:
    """Use a committer, then close it; its status and its notes."""
    status, notes = GatewayStatus(), list[str]()

    async def main() -> None:
        committer = Committer(sink, limit, status, notes.append)
        writing = asyncio.create_task(committer.run())
        await use(committer)
        committer.close()
        await writing

    asyncio.run(main())
    assert sink.is_closed
    return status, notes


def test_messages_that_arrive_during_a_write_form_one_group() -> None:
    sink = MemorySink()

    async def use(committer: Committer) -> None:
        first = committer.append(b"1")
        await asyncio.sleep(0.05)  # the write of the first line is under way
        others = [committer.append(line) for line in (b"2", b"3", b"4")]
        assert not first.done()
        sink.gate.set()
        await asyncio.gather(first, *others)

    status, _ = run(sink, use)
    assert sink.groups == [[b"1"], [b"2", b"3", b"4"]]
    assert (status.messages, status.groups, status.pending_bytes) == (4, 2, 0)


def test_failed_write_is_repeated_before_anything_is_acknowledged() -> None:
    sink = MemorySink(failures=2)
    sink.gate.set()

    async def use(committer: Committer) -> None:
        durable = committer.append(b"1")
        while not committer.is_failing:
            await asyncio.sleep(0.01)
        assert not durable.done()
        await durable
        assert not committer.is_failing

    status, notes = run(sink, use)
    assert sink.groups == [[b"1"]]
    assert status.write_failures == 2
    text = "cannot write a segment: No space left on device; nothing is acknowledged until it can be written"
    assert notes == [text, "writing again"]


def test_receivers_wait_while_memory_is_full() -> None:
    sink = MemorySink()

    async def use(committer: Committer) -> None:
        committer.append(b"x" * 600)
        assert not committer.is_full
        committer.append(b"x" * 600)
        assert committer.is_full
        waiting = asyncio.create_task(committer.room())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        sink.gate.set()
        await waiting
        assert not committer.is_full

    run(sink, use)


def test_close_writes_everything_first() -> None:
    sink = MemorySink()
    sink.gate.set()

    async def use(committer: Committer) -> None:
        for number in range(100):
            committer.append(b"%d" % number)

    run(sink, use)
    assert [line for group in sink.groups for line in group] == [b"%d" % number for number in range(100)]
