"""Sending answers over ASGI: at once, or part by part where they are large.

Spec: RFC 9112#7.1.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache

from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Receive, Send

from wirebook.httpapi.http.messages import ApiResponse
from wirebook.httpapi.http.spool import BodySpool


class Sent:
    """Sends, and keeps the status and how many bytes there were of the body. Without an answer the status is 500."""

    def __init__(self, send: Send) -> None:
        self._send, self.status, self.size = send, 500, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.size += len(message.get("body", b""))
        await self._send(message)


async def until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_answer(receive: Receive, send: Send, answer: ApiResponse, *, is_head: bool = False) -> None:
    """Sends an answer. Raises: Broken, where a large one fails; what was sent then has no end"""
    body = answer.body
    if not isinstance(body, bytes):
        await _send_spool(receive, send, answer, body, is_head=is_head)
        return
    await send(_head(answer, None if answer.status in (204, 304) else len(body)))
    await send({"type": "http.response.body", "body": b"" if is_head else body})


async def _send_spool(receive: Receive, send: Send, answer: ApiResponse, spool: BodySpool, *, is_head: bool) -> None:
    """Sends a large body as it comes, until the client leaves."""
    is_packed = "Content-Encoding" in answer.headers
    gone = asyncio.ensure_future(until_gone(receive))
    try:
        await send(_head(answer, spool.size if spool.is_whole and not is_packed else None))
        parts = iter(()) if is_head else zipped(spool) if is_packed else iter(spool)
        while not gone.done() and (part := await run_in_threadpool(next, parts, None)) is not None:
            await send({"type": "http.response.body", "body": part, "more_body": True})
    finally:
        gone.cancel()
        spool.end(failed=True)
    await send({"type": "http.response.body", "body": b""})


def _head(answer: ApiResponse, size: int | None) -> Message:
    headers = [(_name(name), value.encode("latin-1")) for name, value in answer.headers.items()]
    length = [] if size is None else [(b"content-length", str(size).encode())]
    return {"type": "http.response.start", "status": answer.status, "headers": headers + length}


@lru_cache(maxsize=256)
def _name(name: str) -> bytes:
    return name.lower().encode("latin-1")


def zipped(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The parts of a body, as gzip has it."""
    packer = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    for part in parts:
        if data := packer.compress(part):
            yield data
    yield packer.flush()
