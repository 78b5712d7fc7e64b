"""The web server of the application: uvicorn with limits for slow clients and an orderly stop."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Final

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD: Final = 64 * 1024
"""Size limit of the request line and the headers, in bytes. It is checked after each read, so a head that ends in the
same read may be larger."""

HEAD_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)
METHOD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,40}) (?:/|https?://)", re.IGNORECASE)
PARSED_METHODS: Final = frozenset((b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE"))
ABSOLUTE_TARGET: Final = re.compile(rb"https?://([^/?#]*)", re.IGNORECASE)

DISCARD_BYTES: Final = 64 * 1024 * 1024
DISCARD_SECONDS: Final = 10
DISCARD_IDLE_SECONDS: Final = 1
"""How much of a rejected body is read (bytes), for how long, and how long the client may pause (seconds)."""

BODY_COMPLETE: Final = "wirebook.body_complete"
"""Key in the state of an ASGI scope: the whole request was received."""

AUTHORITY: Final = "wirebook.authority"
"""Key in the state of an ASGI scope: host and port of a request target in absolute form."""


def authority_of(scope: Scope) -> str | None:
    """Return the host and port of a request target in absolute form, which replace the Host header (RFC 9112#3.2.2)."""
    authority: str | None = scope.get("state", {}).get(AUTHORITY)
    return authority


def is_body_complete(scope: Scope) -> bool:
    """Return whether the whole request was received, so that reading its body does not wait."""
    return BODY_COMPLETE in scope.get("state", {})


async def send_before_close(scope: Scope, receive: Receive, send: Send, body: bytes) -> None:
    """Send the body of a response after which the connection is closed.

    The rest of the request is read and dropped before the close: closing a socket with unread bytes resets the
    connection, and the client loses the response (RFC 9112#9.6).
    """
    await send({"type": "http.response.body", "body": body, "more_body": True})
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            more, size = not is_body_complete(scope), 0
            while more and size < DISCARD_BYTES:
                async with asyncio.timeout(DISCARD_IDLE_SECONDS):
                    message = await receive()
                more, size = message.get("more_body", False), size + len(message.get("body", b""))
    await send({"type": "http.response.body", "body": b""})


class ClientConnection(HttpToolsProtocol):
    """A connection that is closed if a request head is slow or too large, or if the client does not read the response.

    `head_since` is the time since which a request head is awaited or incomplete, `full_since` the time since which the
    client has not read; both are None otherwise. `method` is a method that httptools does not know (see
    `data_received`).
    """

    head_since: float | None = None
    head_size = 0
    full_since: float | None = None
    is_between_requests = True
    method: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.head_since = self.loop.time()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.head_since, self.head_size, self.is_between_requests = self.loop.time(), 0, False

    def on_headers_complete(self) -> None:
        """Start the request.

        uvicorn expects a path in `self.url` and fails for an absolute form without a path (`GET http://host HTTP/1.1`).
        Servers must accept that form (RFC 9112#3.2.2), so the authority is moved from the URL to the scope.
        """
        self.head_since = None
        if len(self.url) >= MAX_HEAD:  # httptools cannot parse longer URLs
            self._reject_head()
            return
        if match := ABSOLUTE_TARGET.match(self.url):
            self.scope["state"][AUTHORITY] = match[1].decode("latin-1")
            rest = self.url[match.end() :]
            self.url = rest if rest.startswith(b"/") else b"/" + rest
        super().on_headers_complete()
        if self.method is not None:
            self.scope["method"], self.method = self.method, None

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self.is_between_requests = True
        self.scope["state"][BODY_COMPLETE] = True

    def data_received(self, data: bytes) -> None:
        """Parse bytes.

        httptools rejects unknown methods with a plain 400, where xRegistry requires 405
        (core/http.md#http-api-patterns), and it has no option to change that. So an unknown method is parsed as TRACE,
        and `on_headers_complete` restores it.
        """
        match = METHOD.match(data) if self.is_between_requests else None
        if match and match[1] not in PARSED_METHODS:
            self.method, data = match[1].decode(), b"TRACE" + data[match.end(1) :]
        super().data_received(data)
        if self.head_since is not None:
            self.head_size += len(data)
            if self.head_size > MAX_HEAD:
                self._reject_head()

    def _reject_head(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(HEAD_TOO_LARGE)
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.full_since = self.loop.time()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.full_since = None

    def check_timeouts(self, head_seconds: float, reader_seconds: float) -> None:
        """Close the connection if its client is too slow."""
        now = self.loop.time()
        if self.head_since is not None and now - self.head_since > head_seconds:
            self.transport.close()
        elif self.full_since is not None and now - self.full_since > reader_seconds:
            self.transport.abort()


class WebServer(uvicorn.Server):
    """A uvicorn server.

    It calls `on_ready` when it listens, and `on_stop` after a signal to stop, before it waits for open requests.

    Units: seconds. `grace_seconds` limits that wait, `head_seconds` the time for the head of a request, and
    `reader_seconds` how long a client may leave a response unread.
    """

    def __init__(
        self,
        app: Any,
        *,
        grace_seconds: float,
        head_seconds: float,
        reader_seconds: float,
        on_ready: Callable[[], None],
        on_stop: Callable[[], None],
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                http=ClientConnection,
                loop="uvloop",
                lifespan="off",
                ws="none",
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=int(grace_seconds),
            )
        )
        self._head_seconds, self._reader_seconds = head_seconds, reader_seconds
        self._on_ready, self._on_stop = on_ready, on_stop

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:  # every second
            for connection in list(self.server_state.connections):
                if isinstance(connection, ClientConnection):
                    connection.check_timeouts(self._head_seconds, self._reader_seconds)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: Any = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop the server on a signal.

        After the stop, uvicorn raises the signals again that its own handler received, which would kill the process.
        SIGTERM is an orderly stop with exit code 0, so only Ctrl-C is passed on to uvicorn.
        """
        if sig == signal.SIGTERM:
            self.should_exit = True
        else:
            super().handle_exit(sig, frame)
