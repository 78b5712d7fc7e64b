"""The web server around the application: clients that are slow or endless, and an end that lets requests finish."""

from __future__ import annotations

import asyncio
import logging
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LOG: Final = logging.getLogger("wirebook.registry")
MAX_HEAD: Final = 64 * 1024
"""Bytes of a request's line and headers, at least; a client may send what fits in one read beyond them."""

HEAD_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)
METHOD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,40}) (?:/|https?://)", re.IGNORECASE)
USUAL: Final = frozenset((b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE"))
COME: Final = "wirebook.come"
"""In the state of a request: all of it is there."""


AUTHORITY: Final = "wirebook.authority"
"""In the state of a request: the host and port of a request target in absolute form."""

ABSOLUTE: Final = re.compile(rb"https?://([^/?#]*)", re.IGNORECASE)


def authority_of(scope: Scope) -> str | None:
    """The host and port of the request target, if that is in absolute form: they count, and not the header Host."""
    found: str | None = scope.get("state", {}).get(AUTHORITY)
    return found


def has_come(scope: Scope) -> bool:
    """Whether all of a request is there: none of it is waited for."""
    return COME in scope.get("state", {})


class Connection(HttpToolsProtocol):
    """A connection that is closed when a request's head takes too long or is too large, or nobody reads the answer.

    `head_since` is when a head was begun that is not complete, `full_since` when the answer last had to wait for its
    reader; both None if that is not so. `method` is one that the parser may not know, and takes for a TRACE.
    """

    head_since: float | None = None
    head_size = 0
    full_since: float | None = None
    is_between = True
    method: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.head_since = self.loop.time()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.head_since, self.head_size, self.is_between = self.loop.time(), 0, False

    def on_headers_complete(self) -> None:
        self.head_since = None
        if len(self.url) >= MAX_HEAD:  # the parser of URLs reads no more
            self._refuse_head()
            return
        if found := ABSOLUTE.match(self.url):
            self.scope["state"][AUTHORITY] = found[1].decode("latin-1")
            rest = self.url[found.end() :]
            self.url = rest if rest.startswith(b"/") else b"/" + rest
        super().on_headers_complete()
        if self.method is not None:
            self.scope["method"], self.method = self.method, None

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self.is_between = True
        self.scope["state"][COME] = True

    def data_received(self, data: bytes) -> None:
        found = METHOD.match(data) if self.is_between else None
        if found and found[1] not in USUAL:
            self.method, data = found[1].decode(), b"TRACE" + data[found.end(1) :]
        super().data_received(data)
        if self.head_since is not None:
            self.head_size += len(data)
            if self.head_size > MAX_HEAD:
                self._refuse_head()

    def _refuse_head(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(HEAD_TOO_LARGE)
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.full_since = self.loop.time()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.full_since = None

    def check(self, head_seconds: float, reader_seconds: float) -> None:
        """Closes a connection that waits for its client for too long."""
        now = self.loop.time()
        if self.head_since is not None and now - self.head_since > head_seconds:
            self.transport.close()
        elif self.full_since is not None and now - self.full_since > reader_seconds:
            self.transport.abort()


class WebServer(uvicorn.Server):
    """Calls `ready` when it listens, and `stop` when it was told to end and before it waits for open requests."""

    def __init__(
        self,
        app: Any,
        *,
        grace: float,
        head_seconds: float,
        reader_seconds: float,
        ready: Callable[[], None],
        stop: Callable[[], None],
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                http=Connection,
                loop="uvloop",
                lifespan="off",
                ws="none",
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=int(grace),
            )
        )
        self._head_seconds, self._reader_seconds = head_seconds, reader_seconds
        self._ready, self._stop = ready, stop

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:  # each second
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.check(self._head_seconds, self._reader_seconds)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: Any = None) -> None:
        self._stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A server that was asked to end and did has done well: only Ctrl-C is passed on."""
        with super().capture_signals():
            try:
                yield
            finally:
                self._captured_signals = [
                    captured_signal for captured_signal in self._captured_signals if captured_signal != signal.SIGTERM
                ]
