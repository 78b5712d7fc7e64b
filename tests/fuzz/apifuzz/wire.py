"""Send requests as raw bytes, so that they may be invalid HTTP."""

from __future__ import annotations

import gzip
import re
import shlex
import socket
import time
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from urllib.parse import urlsplit

from apifuzz.rules import NO_HTTP

Headers = tuple[tuple[str, str], ...]
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True)
class Request:
    """A request. `target` is the path with its query, as it goes over the wire."""

    method: str
    target: str
    headers: Headers = ()
    body: bytes = b""

    @property
    def is_http(self) -> bool:
        """Whether the values of its headers are some."""
        return not any(CONTROL.search(value) for _, value in self.headers)

    def to_bytes(self, host: str) -> bytes:
        lines = [f"{self.method} {self.target} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.body or self.method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + self.body

    def curl(self, base: str) -> str:
        """The request as a command. A body that is no text is piped into it."""
        words = ["curl", "-i", "-X", self.method, "--path-as-is", base + self.target]
        for name, value in self.headers:
            words += ["-H", f"{name}: {value}" if value else f"{name};"]
        try:
            text = self.body.decode()
        except UnicodeDecodeError:
            text = "\0"
        if not self.body:
            return shlex.join(words)
        if "\0" not in text:
            return shlex.join([*words, "--data-binary", text])
        octal = "".join(f"\\{byte:03o}" for byte in self.body)
        return f"printf '{octal}' | {shlex.join([*words, '--data-binary', '@-'])}"


@dataclass(frozen=True)
class Reply:
    """An answer; `seconds` it took. `status` 0: there was none, and why is the body."""

    status: int
    headers: dict[str, str]
    body: bytes
    seconds: float


@dataclass
class Connection:
    """A connection that is made again whenever it is gone."""

    base: str
    timeout: float
    _socket: socket.socket | None = field(default=None, init=False)

    def send(self, request: Request) -> Reply:
        started = time.monotonic()
        try:
            status, headers, body = self._exchange(request)
        except (OSError, EOFError, HTTPException) as error:
            self.close()
            if isinstance(error, ConnectionError) and not request.is_http:  # nobody reads the rest of it
                return Reply(NO_HTTP[0], {}, NO_HTTP[1], time.monotonic() - started)
            return Reply(0, {}, f"{type(error).__name__}: {error}".encode(), time.monotonic() - started)
        return Reply(status, headers, body, time.monotonic() - started)

    def _exchange(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(self.base)
        if self._socket is None:
            self._socket = socket.create_connection((parts.hostname or "", parts.port or 80), self.timeout)
        self._socket.sendall(request.to_bytes(parts.netloc))
        answer = HTTPResponse(self._socket, method=request.method)
        answer.begin()
        body = answer.read()
        if answer.will_close:
            self.close()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, headers, gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
