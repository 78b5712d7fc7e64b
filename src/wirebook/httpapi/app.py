"""The service as an ASGI application: reads requests, has them answered in threads, sends the answers."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Receive, Scope, Send

from wirebook.httpapi.handlers.feed import LAST, PATH, next_events, start_of
from wirebook.httpapi.handlers.metrics import CONTENT_TYPE, METRICS_PATH, Metrics, route_of
from wirebook.httpapi.http.access import READS, Barred, Caller, Door
from wirebook.httpapi.http.codings import SUPPORTED, TooLarge, Unsupported, decode_body, parse_codings
from wirebook.httpapi.http.etags import known_as, quoted
from wirebook.httpapi.http.messages import JSON, ApiResponse, Incoming, decode_path, parse_query
from wirebook.httpapi.http.preconditions import IF_NONE_MATCH
from wirebook.httpapi.http.sending import Sent, send_answer, until_gone
from wirebook.httpapi.logs import log_access
from wirebook.httpapi.options import ServerOptions
from wirebook.httpapi.service import PATHS, Service, error_answer
from wirebook.httpapi.web import authority_of, has_come
from wirebook.problems.xregistry import Refused, refused
from wirebook.storage.outages import Unavailable

PLAIN: Final = "text/plain; charset=utf-8"
PATIENCE: Final = 3
"""Seconds within which a database that is ready answers."""

POLL: Final = 0.5
"""Seconds between looks for new events."""

MIN_GZIP: Final = 1024
"""Bytes below which compression does not pay."""

LARGE: Final = 64 * 1024
"""Bytes above which an answer is hashed and compressed in a thread."""

Pairs = list[tuple[str, str]]


class App:
    """A registry for the web."""

    def __init__(self, service: Service, options: ServerOptions) -> None:
        self.service, self.options, self.door = service, options, Door(options)
        self.metrics, self.stopping = Metrics(), asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started, sent = time.perf_counter(), Sent(send)
        try:
            await self._respond(scope, receive, sent)
        finally:
            self._record(scope, sent, time.perf_counter() - started)

    def _record(self, scope: Scope, sent: Sent, seconds: float) -> None:
        """One request for metrics and for the log."""
        route = route_of(scope["path"].removeprefix(self.options.prefix), ROUTES)
        self.metrics.request(scope["method"], route, sent.status, seconds)
        peer = peer_of(scope)
        log_access(scope["method"], raw_path(scope), status=sent.status, size=sent.size, seconds=seconds, peer=peer)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The server that reads them leaves the blanks behind a value, which do not belong to it.
        headers: Pairs = [
            (name.decode("latin-1"), value.decode("latin-1").strip(" \t")) for name, value in scope["headers"]
        ]
        if scope["path"] == self.options.prefix + PATH and scope["method"] == "GET":
            await self._stream(scope, headers, receive, send)
            return
        first = dict(reversed(headers))
        answer, origin = await self._answer(scope, headers, first, receive)
        if isinstance(answer.body, bytes) and len(answer.body) <= LARGE:
            self._finish(answer, scope["method"], headers, first, origin)
        else:
            await run_in_threadpool(self._finish, answer, scope["method"], headers, first, origin)
        await send_answer(receive, send, answer, is_head=scope["method"] == "HEAD")

    async def _answer(
        self, scope: Scope, headers: Pairs, first: Mapping[str, str], receive: Receive
    ) -> tuple[ApiResponse, str | None]:
        """The answer, and the origin that may read it. `first` are the first headers of each name."""
        caller, base = self._caller(scope, headers, first), None
        try:
            base = self.door.base_of(caller)
            self.door.check(caller, base)
        except Barred as error:
            return error_answer(error, base), None
        origin = first.get("origin")
        friend = origin if origin and self.door.is_friend(origin, base) else None
        try:
            body = await self._read(headers, first, receive, scope)
            incoming = self._incoming(scope, base, headers, body)
        except Barred as error:
            return closing(error_answer(error, base)), friend
        except Refused as error:
            return error_answer(error, base), friend
        if incoming.method in ("GET", "HEAD") and (own := await self._own(incoming.path)):
            return own, friend
        if at_once := self.service.at_once(incoming, asyncio.get_running_loop().call_soon):
            return at_once, friend
        if soon := self.service.soon(incoming):
            return await asyncio.wrap_future(soon), friend
        begun = self.service.begin(incoming)
        if begun and await has_succeeded(begun, self.options.request_timeout):
            return self.service.answer(incoming), friend
        return await run_in_threadpool(self.service.answer, incoming), friend

    def _caller(self, scope: Scope, headers: Pairs, first: Mapping[str, str]) -> Caller:
        path, method = scope["path"], scope["method"]
        return Caller(
            method,
            path,
            first,
            [value for name, value in headers if name == "host"],
            scope["scheme"],
            peer_of(scope),
            authority_of(scope),
            is_probe=method in ("GET", "HEAD")
            and self._is_probe("/" + path.removeprefix(self.options.prefix).strip("/")),
        )

    def _is_probe(self, path: str) -> bool:
        """Whether a path asks for the health of the server. A Group type may have the name of such a path."""
        return path in HEALTH and not self.service.has_groups(path.strip("/"))

    async def _own(self, path: str) -> ApiResponse | None:
        """What is answered without the registry, if that is such a path."""
        if path == METRICS_PATH:
            return ApiResponse(200, self.metrics.text(), {"Content-Type": CONTENT_TYPE})
        if not self._is_probe(path):
            return None
        if path.endswith("healthz"):
            return ApiResponse(200, b"ok\n", {"Content-Type": PLAIN})
        return ApiResponse(200, b"ok\n", {"Content-Type": PLAIN}) if await self._is_ready() else not_ready()

    async def _is_ready(self) -> bool:
        """Whether the database answers, and soon."""
        if self.stopping.is_set():
            return False
        try:
            return await asyncio.wait_for(run_in_threadpool(self.service.is_ready), PATIENCE)
        except TimeoutError:
            return False

    async def _read(self, headers: Pairs, first: Mapping[str, str], receive: Receive, scope: Scope) -> bytes:
        """The body, decoded. Raises: Barred, 408, 413 or 415; parsing_data"""
        if "content-length" not in first and "transfer-encoding" not in first:
            return b""
        path = scope["path"]
        try:
            codings = parse_codings(",".join(value for name, value in headers if name == "content-encoding"))
        except Unsupported as error:
            detail = f"Content-Encoding: {error}; supported: {', '.join(SUPPORTED)}, identity."
            title = "The body has a coding that is not supported."
            raise Barred(415, "unsupported_content_coding", title, path, detail) from None
        most, length = self.options.max_body, first.get("content-length", "")
        size = int(length) if length.isdigit() and len(length) < 20 else 0
        try:
            body = None if size > most else await self._body(receive, scope)
        except TimeoutError:
            raise Barred(408, "request_timeout", "The body did not come in time.", path) from None
        if body is None:
            raise Barred(413, "body_too_large", f"The body has more than {most} bytes.", path)
        if not codings or not body:
            return body
        try:
            return await run_in_threadpool(decode_body, body, codings, most, path)
        except TooLarge:
            raise Barred(413, "body_too_large", f"The decoded body has more than {most} bytes.", path) from None

    async def _body(self, receive: Receive, scope: Scope) -> bytes | None:
        """The body; None if it is larger than it may be. Raises: TimeoutError"""
        most = self.options.max_body
        if has_come(scope):
            return await read_body(receive, most)
        return await read_slowly(receive, most, self.options.request_timeout, self.options.stream_timeout)

    async def _stream(self, scope: Scope, headers: Pairs, receive: Receive, send: Send) -> None:
        """Sends events as they come, until the client leaves or the server stops."""
        first = dict(reversed(headers))
        caller = self._caller(scope, headers, first)
        try:
            base = self.door.base_of(caller)
            after = await run_in_threadpool(start_of, self.service.database, first.get(LAST))
        except Refused as error:
            await send_answer(receive, send, error_answer(error))
            return
        except Unavailable:
            await send_answer(receive, send, error_answer(refused("database_unavailable", PATH)))
            return
        origin = first.get("origin", "*")
        kind = {"content-type": "text/event-stream", "cache-control": "no-store", "vary": "Host, Origin"}
        if origin == "*" or self.door.is_friend(origin, base):
            kind["access-control-allow-origin"] = origin
        start = [(name.encode(), value.encode("latin-1")) for name, value in kind.items()]
        await send({"type": "http.response.start", "status": 200, "headers": start})
        ends = [asyncio.ensure_future(until_gone(receive)), asyncio.ensure_future(self.stopping.wait())]
        try:
            while not any(end.done() for end in ends):
                text = ""
                with suppress(Unavailable):  # the stream goes on when the database is back
                    after, text = await run_in_threadpool(next_events, self.service.database, after, base)
                part = text.encode() or b": nothing new\n\n"
                await send({"type": "http.response.body", "body": part, "more_body": True})
                if not text:
                    await asyncio.wait(ends, timeout=POLL, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
        await send({"type": "http.response.body", "body": b""})

    def _incoming(self, scope: Scope, base: str, headers: Pairs, body: bytes) -> Incoming:
        """Raises: bad_request, api_not_found"""
        try:
            path = decode_path(raw_path(scope).decode("ascii", "strict"))
        except UnicodeDecodeError:
            raise refused("bad_request", scope["path"], error_detail="the path is not UTF-8") from None
        if path != WELL_KNOWN:
            if not f"{path}/".startswith(f"{self.options.prefix}/"):
                raise refused("api_not_found", path)
            path = path.removeprefix(self.options.prefix)
        query = parse_query(scope["query_string"].decode("latin-1"))
        return Incoming(scope["method"], "/" + path.strip("/"), base, query, headers, body)

    def _finish(
        self, answer: ApiResponse, method: str, headers: Pairs, first: Mapping[str, str], origin: str | None
    ) -> None:
        """What every answer has: who may read it; its tag; and it compressed where that was asked for."""
        answer.headers["Vary"] = "Accept-Encoding, Host, Origin"
        if origin:
            answer.headers["Access-Control-Allow-Origin"] = origin
            answer.headers["Access-Control-Allow-Headers"] = "*, Authorization"
            answer.headers["Access-Control-Expose-Headers"] = "*"
        elif "origin" not in first:
            answer.headers.setdefault("Access-Control-Allow-Origin", "*")
        accepted = first.get("accept-encoding", "")
        is_large = not isinstance(answer.body, bytes) or len(answer.body) >= MIN_GZIP
        is_packed = is_large and answer.headers.get("Content-Type") == JSON and accepts_gzip(accepted)
        if answer.tag is not None and method in READS and answer.status in (200, 304):
            known = ", ".join(value for name, value in headers if name == IF_NONE_MATCH) or None
            is_packed = self._tag(answer, answer.tag, known, packed=is_packed)
        if is_packed:
            answer.headers["Content-Encoding"] = "gzip"
            if isinstance(answer.body, bytes):
                answer.body = gzip.compress(answer.body, 1, mtime=0)  # the same bytes whenever, as its tag says

    def _tag(self, answer: ApiResponse, tag: str, known: str | None, *, packed: bool) -> bool:
        """Sets the ETag of an answer, and drops its body if the client has it; whether it is still to be packed."""
        had = known_as(tag, known)
        answer.headers["ETag"] = had or quoted(tag, packed=packed)
        if had:
            answer.status, answer.body = 304, b""
            answer.headers.pop("Content-Type", None)
        return packed and not had


async def has_succeeded(begun: Future[ApiResponse], seconds: float) -> bool:
    """Whether it has, once it has ended. What still waits after so many seconds is given up."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    begun.add_done_callback(lambda _: loop.is_closed() or loop.call_soon_threadsafe(_wake, ended))
    timer = loop.call_later(seconds, begun.cancel)
    try:
        await ended
    finally:
        timer.cancel()
        begun.cancel()  # if it waits still, nobody else does
    return not begun.cancelled() and begun.exception() is None


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def accepts_gzip(accepted: str) -> bool:
    """Whether a client with this `Accept-Encoding` takes gzip: it names it, or all, and not with a weight of 0."""
    weights = {}
    for each in accepted.lower().split(","):
        coding, _, weight = each.replace(" ", "").partition(";q=")
        weights[coding] = weight.strip("0.") != "" or not weight
    return weights.get("gzip", weights.get("*", False))


WELL_KNOWN: Final = "/.well-known/xregistry"
"""It lies outside the base path."""

HEALTH: Final = frozenset({"/healthz", "/readyz", "/.wirebook/healthz", "/.wirebook/readyz"})
ROUTES: Final = frozenset({*PATHS, *(path.strip("/") for path in (*HEALTH, PATH, METRICS_PATH))})


async def read_body(receive: Receive, most: int, received: Callable[[], None] = lambda: None) -> bytes | None:
    """The body; None if it is larger than it may be. `received` is called after each part that is not the last."""
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
        received()


async def read_slowly(receive: Receive, most: int, seconds: float, in_all: float) -> bytes | None:
    """As `read_body`. Raises: TimeoutError, when nothing comes for so many seconds, or not the whole of it `in_all`"""
    time = asyncio.get_running_loop().time
    end = time() + in_all
    async with asyncio.timeout(min(seconds, in_all)) as limit:
        return await read_body(receive, most, lambda: limit.reschedule(min(time() + seconds, end)))


def peer_of(scope: Scope) -> str | None:
    return scope["client"][0] if scope.get("client") else None


def raw_path(scope: Scope) -> bytes:
    """The path as it was sent."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0]


def closing(answer: ApiResponse) -> ApiResponse:
    """An answer that is the last on its connection: what is left of the request is not read."""
    answer.headers["Connection"] = "close"
    return answer


def not_ready() -> ApiResponse:
    return ApiResponse(503, b"not ready\n", {"Content-Type": PLAIN, "Retry-After": "1"})
