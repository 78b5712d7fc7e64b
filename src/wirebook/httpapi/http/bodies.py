"""Reading request bodies from ASGI: within a size limit, with time-outs, and decoded.

Spec: docs/registry.md#limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Receive

from wirebook.httpapi.http.codings import SUPPORTED, BodyTooLarge, UnsupportedCoding, decode_body, parse_codings
from wirebook.problems import Problem
from wirebook.problems.xregistry import Refused, refused

FRAMING_HEADERS: Final = ("content-length", "transfer-encoding")
"""A request without any of these headers has no body. Spec: RFC 9112#6.3"""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """The limits of a request body.

    Units: `size` in bytes, both before and after decoding; `chunk_seconds` between two chunks; `body_seconds` for the
    whole body.
    """

    size: int
    chunk_seconds: float
    body_seconds: float


async def read_body(
    receive: Receive, headers: Sequence[tuple[str, str]], path: str, limits: BodyLimits, *, is_complete: bool
) -> bytes:
    """Return the decoded body of a request.

    `is_complete`: the server has received all of it, so no time-out is needed.

    Raises: request_timeout, body_too_large, unsupported_content_coding, parsing_data
    """
    if not any(name in FRAMING_HEADERS for name, _ in headers):
        return b""
    try:
        codings = parse_codings(",".join(value for name, value in headers if name == "content-encoding"))
    except UnsupportedCoding as error:
        detail = f"Content-Encoding: {error}; supported: {', '.join(SUPPORTED)}, identity."
        raise refused("unsupported_content_coding", path, detail=detail) from None
    length = next((value for name, value in headers if name == "content-length"), "")
    declared = int(length) if length.isdigit() and len(length) < 20 else 0
    try:
        if declared > limits.size:
            raise BodyTooLarge
        if is_complete:
            body = await _receive_body(receive, limits.size)
        else:
            body = await _receive_slowly(receive, limits)
    except BodyTooLarge:
        message = f"The body is larger than {limits.size} bytes."
        raise Refused(Problem("body_too_large", message, xid=path)) from None
    except TimeoutError:
        raise refused("request_timeout", path) from None
    if not codings or not body:
        return body
    try:
        return await run_in_threadpool(decode_body, body, codings, limits.size, path)
    except BodyTooLarge:
        message = f"The decoded body is larger than {limits.size} bytes."
        raise Refused(Problem("body_too_large", message, xid=path)) from None


async def _receive_body(receive: Receive, limit: int, after_chunk: Callable[[], None] = lambda: None) -> bytes:
    """Return the body as sent. `after_chunk` is called after each chunk except the last. Raises: BodyTooLarge"""
    chunks: list[bytes] = []
    size = 0
    while True:
        message: Message = await receive()
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise BodyTooLarge
        chunks.append(chunk)
        if not message.get("more_body"):
            return b"".join(chunks)
        after_chunk()


async def _receive_slowly(receive: Receive, limits: BodyLimits) -> bytes:
    """Do the same as `_receive_body`, with time-outs. Raises: BodyTooLarge, TimeoutError"""
    clock = asyncio.get_running_loop().time
    deadline = clock() + limits.body_seconds
    async with asyncio.timeout(min(limits.chunk_seconds, limits.body_seconds)) as timer:
        return await _receive_body(
            receive, limits.size, lambda: timer.reschedule(min(clock() + limits.chunk_seconds, deadline))
        )
