"""Completes responses with the headers that all of them have, and sends them over ASGI.

Starlette's middleware is not used. GZipMiddleware ignores ETags (a compressed response needs its own), and its output
differs from call to call. CORSMiddleware answers OPTIONS itself, where the registry must answer with the methods of the
path. Each middleware costs an event-loop task or a wrapper for every request.

Spec: RFC 9110#12.5.3; RFC 9112#7.1; docs/registry.md#who-may-write.
"""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Receive, Scope, Send

from wirebook.httpapi.http.etags import format_etag, matching_etag
from wirebook.httpapi.http.messages import JSON, READ_METHODS, ApiResponse
from wirebook.httpapi.http.preconditions import IF_NONE_MATCH
from wirebook.httpapi.http.spool import BodySpool
from wirebook.httpapi.web import send_before_close

MIN_GZIP: Final = 1024
"""Body size in bytes below which a response is not compressed."""


class ResponseSender:
    """An ASGI `send` that records the status and the body size in bytes. The status is 500 until a response starts."""

    def __init__(self, send: Send) -> None:
        self._send, self.status, self.size = send, 500, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.size += len(message.get("body", b""))
        await self._send(message)


# -- headers of all responses -----------------------------------------------------------------------------------------


def complete_response(
    response: ApiResponse,
    method: str,
    headers: list[tuple[str, str]],
    first_headers: Mapping[str, str],
    allowed_origin: str | None,
) -> None:
    """Add headers for CORS and caching, turn the response into a 304 if the client has it, and else compress it.

    `headers` are those of the request, `first_headers` the first of each name. `allowed_origin` is the origin of the
    request if pages of that origin may read and write.
    """
    response.headers.setdefault("Vary", "Accept-Encoding, Host, Origin")
    if allowed_origin:
        response.headers["Access-Control-Allow-Origin"] = allowed_origin
        response.headers["Access-Control-Allow-Headers"] = "*, Authorization"
        response.headers["Access-Control-Expose-Headers"] = "*"
    elif "origin" not in first_headers:
        response.headers.setdefault("Access-Control-Allow-Origin", "*")
    is_gzip = _is_compressible(response) and accepts_gzip(first_headers.get("accept-encoding", ""))
    if response.etag is not None and method in READ_METHODS and response.status in (200, 304):
        current = None
        if IF_NONE_MATCH in first_headers:
            current = matching_etag(response.etag, ", ".join(value for name, value in headers if name == IF_NONE_MATCH))
        response.headers["ETag"] = current or format_etag(response.etag, is_gzip=is_gzip)
        if current:
            response.status, response.body = 304, b""
            response.headers.pop("Content-Type", None)
            return
    if is_gzip:
        response.headers["Content-Encoding"] = "gzip"
        if isinstance(response.body, bytes):
            response.body = gzip.compress(response.body, 1, mtime=0)  # without the time: equal ETags need equal bytes


def _is_compressible(response: ApiResponse) -> bool:
    body = response.body
    is_large = isinstance(body, BodySpool) or (isinstance(body, bytes) and len(body) >= MIN_GZIP)
    return is_large and response.headers.get("Content-Type") == JSON


def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether an Accept-Encoding accepts gzip: it lists gzip, or else `*`, with a weight above 0."""
    weights = {}
    for item in accept_encoding.lower().split(","):
        coding, _, weight = item.replace(" ", "").partition(";q=")
        weights[coding] = weight.strip("0.") != "" or not weight
    return weights.get("gzip", weights.get("*", False))


# -- sending ----------------------------------------------------------------------------------------------------------


async def send_response(scope: Scope, receive: Receive, send: Send, response: ApiResponse) -> None:
    """Send a response. Raises: BrokenBody, if rendering a large body failed; the client then sees it cut off"""
    body, is_head = response.body, scope["method"] == "HEAD"
    if isinstance(body, bytes):
        await send(_start(response, None if response.status in (204, 304) else len(body)))
        content = b"" if is_head else body
        if response.headers.get("Connection") == "close":
            await send_before_close(scope, receive, send, content)
        else:
            await send({"type": "http.response.body", "body": content})
        return
    if not isinstance(body, BodySpool):
        await send(_start(response, None))
        await _send_chunks(receive, send, _no_chunks() if is_head else body)
        return
    is_gzip = "Content-Encoding" in response.headers
    chunks = compressed(body) if is_gzip else iter(body)
    try:
        await send(_start(response, body.size if body.is_complete and not is_gzip else None))
        await _send_chunks(receive, send, _no_chunks() if is_head else _in_threads(chunks))
    finally:
        body.end(failed=True)


async def _no_chunks() -> AsyncIterator[bytes]:
    """Yield nothing, as the body of a response to HEAD."""
    return
    yield b""


async def _in_threads(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks of a spool, read in worker threads because reading may wait."""
    while (chunk := await run_in_threadpool(next, chunks, None)) is not None:
        yield chunk


async def _send_chunks(receive: Receive, send: Send, chunks: AsyncIterator[bytes]) -> None:
    """Send a body chunk by chunk, until the client disconnects."""
    disconnected = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if disconnected.done():
                break
    finally:
        disconnected.cancel()
    await send({"type": "http.response.body", "body": b""})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _start(response: ApiResponse, size: int | None) -> Message:
    """Return the ASGI message with status and headers."""
    headers = [(_header_name(name), value.encode("latin-1")) for name, value in response.headers.items()]
    length = [] if size is None else [(b"content-length", str(size).encode())]
    return {"type": "http.response.start", "status": response.status, "headers": headers + length}


@lru_cache(maxsize=256)
def _header_name(name: str) -> bytes:
    return name.lower().encode("latin-1")


def compressed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a body compressed with gzip."""
    compressor = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    for chunk in chunks:
        if data := compressor.compress(chunk):
            yield data
    yield compressor.flush()
