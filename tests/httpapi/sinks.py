"""A sink for events: an HTTP server that accepts events, rejects them, or responds late."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class Sink:
    """`events` are those that it accepted, `offered` all that it was sent. `status` says what the next is answered; 0
    leaves without an answer."""

    def __init__(self, port: int = 0) -> None:
        self.events: list[dict[str, Any]] = []
        self.offered: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.status: Callable[[], int] = lambda: 204
        self.server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/take"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        sink = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                sink.take(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler

    def take(self, request: BaseHTTPRequestHandler) -> None:
        event = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        self.offered.append(event)
        self.paths.append(request.path)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        status = self.status()
        if status == 0:
            request.close_connection = True
            return
        if 200 <= status < 300:
            self.events.append(event)
        with suppress(OSError):
            request.send_response(status)
            request.send_header("Content-Length", "0" if status == 204 else "4")
            if 300 <= status < 400:
                request.send_header("Location", self.url)
            request.end_headers()
            request.wfile.write(b"" if status == 204 else b"well")

    @property
    def ids(self) -> list[str]:
        return [event["id"] for event in self.events]

    def wait_for(self, count: int, seconds: float = 20) -> list[dict[str, Any]]:
        """So many events, and no more than these."""
        until = time.monotonic() + seconds
        while len(self.events) < count and time.monotonic() < until:
            time.sleep(0.01)
        assert len(self.events) == count, [event["subject"] for event in self.events]
        return self.events


@contextmanager
def sink() -> Iterator[Sink]:
    server = Sink()
    thread = Thread(target=server.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server
    server.server.shutdown()
    server.server.server_close()
