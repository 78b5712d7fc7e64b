"""The service as an ASGI application: reads requests, has them answered in threads, sends the answers."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import logging
import time
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Receive, Scope, Send

from wirebook.httpapi.door import Barred, Caller, Door
from wirebook.httpapi.feed import LAST, PATH, next_events, start_of
from wirebook.httpapi.messages import JSON, Answer, Incoming, decode_path, parse_query
from wirebook.httpapi.options import Options
from wirebook.httpapi.service import Service, error_answer
from wirebook.problems.xregistry import Refused, refused

ACCESS: Final = logging.getLogger("wirebook.access")
POLL: Final = 0.5
"""Seconds between looks for new events."""

MIN_GZIP: Final = 1024
"""Bytes below which compression does not pay."""

Pairs = list[tuple[str, str]]


class App:
    """A registry for the web."""

    def __init__(self, service: Service, options: Options) -> None:
        self.service, self.options, self.door = service, options, Door(options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        headers: Pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        if scope["path"] == self.options.prefix + PATH and scope["method"] == "GET":
            await self._stream(scope, headers, receive, send)
            return
        answer, origin = await self._answer(scope, headers, receive)
        self._finish(answer, headers, origin)
        await _send(send, answer, is_head=scope["method"] == "HEAD")
        took = (time.perf_counter() - started) * 1000
        ACCESS.info("%s %s %d %.1f ms", scope["method"], scope["path"], answer.status, took)

    async def _answer(self, scope: Scope, headers: Pairs, receive: Receive) -> tuple[Answer, str | None]:
        """The answer, and the origin that may read it."""
        first = dict(reversed(headers))
        peer = scope["client"][0] if scope.get("client") else None
        caller = Caller(scope["method"], scope["path"], first, scope["scheme"], peer)
        try:
            base = self.door.base_of(caller)
            self.door.check(caller, base)
        except Barred as error:
            return error_answer(error), None
        origin = first.get("origin")
        friend = origin if origin and self.door.is_friend(origin, base) else None
        body = await _read(receive, self.options.max_body)
        if body is None:
            title = f"The body has more than {self.options.max_body} bytes."
            return error_answer(Barred(413, "body_too_large", title, scope["path"])), friend
        incoming = self._incoming(scope, base, headers, body)
        if incoming is None:
            return error_answer(refused("bad_request", scope["path"], error_detail="the path is not UTF-8")), friend
        if incoming.path in HEALTH and incoming.method in ("GET", "HEAD"):
            return await run_in_threadpool(self.service.health, incoming.path.endswith("readyz")), friend
        return await run_in_threadpool(self.service.answer, incoming), friend

    async def _stream(self, scope: Scope, headers: Pairs, receive: Receive, send: Send) -> None:
        """Sends events as they come, until the client leaves or the server stops."""
        first = dict(reversed(headers))
        caller = Caller(
            "GET", scope["path"], first, scope["scheme"], scope["client"][0] if scope.get("client") else None
        )
        try:
            base = self.door.base_of(caller)
            after = await run_in_threadpool(start_of, self.service.database, first.get(LAST))
        except Refused as error:
            await _send(send, error_answer(error))
            return
        kind = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": kind})
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            while not gone.done():
                after, text = await run_in_threadpool(next_events, self.service.database, after, base)
                await send(
                    {"type": "http.response.body", "body": text.encode() or b": nothing new\n\n", "more_body": True}
                )
                if not text:
                    await asyncio.wait([gone], timeout=POLL)
        finally:
            gone.cancel()
        await send({"type": "http.response.body", "body": b""})

    def _incoming(self, scope: Scope, base: str, headers: Pairs, body: bytes) -> Incoming | None:
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        try:
            path = decode_path(raw.decode("ascii", "strict").partition("?")[0])
        except UnicodeDecodeError:
            return None
        if path != "/.well-known/xregistry":
            path = path.removeprefix(self.options.prefix)
        path = "/" + path.strip("/")
        query = parse_query(scope["query_string"].decode("latin-1"))
        return Incoming(scope["method"], path, base, query, headers, body)

    def _finish(self, answer: Answer, headers: Pairs, origin: str | None) -> None:
        """What every answer has: who may read it; its tag; and it compressed where that was asked for."""
        answer.headers["Vary"] = "Accept-Encoding, Host, Origin"
        if origin:
            answer.headers["Access-Control-Allow-Origin"] = origin
        elif not any(name == "origin" for name, _ in headers):
            answer.headers.setdefault("Access-Control-Allow-Origin", "*")
        accepted = next((value for name, value in headers if name == "accept-encoding"), "")
        is_large = isinstance(answer.body, bytes) and len(answer.body) >= MIN_GZIP
        is_packed = answer.headers.get("Content-Type") == JSON and "gzip" in accepted and is_large
        if answer.status == 200:
            tag = tag_of(answer, packed=is_packed)
            answer.headers["ETag"] = tag
            if is_known(tag, next((value for name, value in headers if name == "if-none-match"), None)):
                answer.status, answer.body, is_packed = 304, b"", False
        if is_packed and isinstance(answer.body, bytes):
            answer.body = gzip.compress(answer.body, 1)
            answer.headers["Content-Encoding"] = "gzip"


def tag_of(answer: Answer, *, packed: bool) -> str:
    """What changes whenever the bytes of an answer would, its headers among them."""
    digest = hashlib.blake2b(digest_size=12)
    for name, value in sorted(answer.headers.items()):
        digest.update(f"{name}:{value}\n".encode())
    digest.update(answer.body if isinstance(answer.body, bytes) else b"")
    return f'"{digest.hexdigest()}{"-gzip" if packed else ""}"'


def is_known(tag: str, sent: str | None) -> bool:
    """Whether a client has the answer already."""
    return sent is not None and (
        sent.strip() == "*" or tag in (each.strip().removeprefix("W/") for each in sent.split(","))
    )


HEALTH: Final = frozenset({"/healthz", "/readyz", "/.wirebook/healthz", "/.wirebook/readyz"})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read(receive: Receive, most: int) -> bytes | None:
    """The body; None if it is larger than it may be."""
    parts: list[bytes] = []
    size = 0
    while True:
        message: Message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


async def _send(send: Send, answer: Answer, *, is_head: bool = False) -> None:
    body = answer.body if isinstance(answer.body, bytes) else "".join(answer.body).encode()
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.items()]
    if answer.status not in (204, 304):
        headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if is_head else body})
