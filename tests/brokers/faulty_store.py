"""A proxy in front of an S3 server that makes requests fail as real stores and networks do, and notes who signed them.

It is a process of its own: some functions of `deltalake` keep other threads from running while they wait for an answer.

python -m tests.brokers.faulty_store URL    reads commands from standard input, a line of JSON each, and answers them
"""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

__all__ = ["NO_FAULT", "Fault", "FaultyStore", "faulty_store"]

PROJECT = Path(__file__).resolve().parents[2]
PER_CONNECTION = {"connection", "transfer-encoding", "content-length", "date", "server"}
ACCESS_KEY = re.compile(r"Credential=([^/]+)/")
CODES = {400: "InvalidRequest", 403: "AccessDenied", 404: "NoSuchBucket", 503: "SlowDown"}
ERROR = "<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>injected</Message></Error>"


@dataclass(frozen=True)
class Fault:
    """Which requests fail, and how.

    Shape: requests that write fail, all of them or those of a number from `first` to `last`, every `nth`; of each
    address, with its query, only the first one if `once`; requests that read too if `reads`; only those whose address
    contains `path`. They are answered with `status` (403 and 400 are not repeated by clients), or the connection is
    closed if it is 0; they take effect before if `is_done`.
    """

    status: int
    is_done: bool = False
    first: int = 0
    last: int = 1 << 60
    nth: int = 1
    once: bool = False
    reads: bool = False
    path: str = ""


NO_FAULT = Fault(0, first=1 << 60)


class FaultyStore:
    """The running proxy; its address is `url`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.url = str(self._ask("url"))

    def _ask(self, command: str, **arguments: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([command, arguments]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def fail(self, fault: Fault) -> None:
        """Let requests fail from now on; those of an earlier fault no longer do."""
        self._ask("fail", **asdict(fault))

    def recover(self) -> int:
        """Pass on all requests; returns how many have failed since `fail`."""
        failed = self.failed
        self.fail(NO_FAULT)
        return failed

    @property
    def failed(self) -> int:
        """The number of requests that have failed since `fail`."""
        return int(self._ask("failed"))

    @property
    def writes(self) -> int:
        """The number of requests that write, so far: the number of the next one."""
        return int(self._ask("writes"))

    @property
    def signers(self) -> list[tuple[str, str]]:
        """The access key and the session token of each request so far; both are empty if it was not signed."""
        return [(key, token) for key, token in self._ask("signers")]

    def refuse(self) -> None:
        """Refuse connections, and close those that are open."""
        self._ask("refuse")

    def listen(self) -> None:
        """Accept connections again."""
        self._ask("listen")

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Answer no request during the block, and all of them after it."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)


@contextmanager
def faulty_store(server: str) -> Iterator[FaultyStore]:
    """Run a proxy in front of the S3 server at an address."""
    command, pipe = [sys.executable, "-m", __name__, server], subprocess.PIPE
    with subprocess.Popen(command, cwd=PROJECT, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield FaultyStore(process)
        finally:
            process.kill()


# -- the process -----------------------------------------------------------------------------------------------------


class Proxy:
    """What the proxy does, by the names of its commands."""

    def __init__(self, server: str) -> None:
        self._server = urlsplit(server).netloc
        self._lock, self._fault = threading.Lock(), NO_FAULT
        self._writes = self._failed = self._port = 0
        self._paths = set[str]()
        self._signers = list[tuple[str, str]]()
        self.listen()

    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def writes(self) -> int:
        return self._writes

    def failed(self) -> int:
        return self._failed

    def signers(self) -> list[tuple[str, str]]:
        return self._signers

    def fail(self, **fault: Any) -> None:
        with self._lock:
            self._fault, self._failed = Fault(**fault), 0
            self._paths.clear()

    def listen(self) -> None:
        """Listen at the same port each time."""
        proxy = self

        class Handler(_Handler):
            def decide(self) -> Fault | None:
                return proxy.decide(self.command, self.path)

            def pass_on(self, headers: Mapping[str, str], body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
                return proxy.pass_on(self.command, self.path, headers, body)

        self._listener = _Listener(("127.0.0.1", self._port), Handler)
        self._port = self._listener.server_port
        threading.Thread(target=self._listener.serve_forever, args=(0.02,), daemon=True).start()

    def refuse(self) -> None:
        self._listener.shutdown()
        self._listener.close_all()

    def decide(self, method: str, path: str) -> Fault | None:
        """The fault of a request, if it fails."""
        with self._lock:
            fault, number, writes = self._fault, self._writes, method not in ("GET", "HEAD")
            self._writes += writes
            fails = fault.first <= number <= fault.last and number % fault.nth == 0 and (writes or fault.reads)
            fails = fails and fault.path in path and not (fault.once and path in self._paths)
            if writes:
                self._paths.add(path)
            self._failed += fails
            return fault if fails else None

    def pass_on(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        key = ACCESS_KEY.search(headers.get("authorization") or "")
        self._signers.append((key[1] if key else "", headers.get("x-amz-security-token") or ""))
        connection = http.client.HTTPConnection(self._server, timeout=60)
        try:
            kept = {name: value for name, value in headers.items() if name.lower() != "transfer-encoding"}
            connection.request(method, path, body, kept)
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()
        finally:
            connection.close()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, *arguments: Any) -> None:
        self._connections: set[Any] = set()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def close_all(self) -> None:
        self.server_close()
        for connection in [*self._connections]:
            self.shutdown_request(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients close connections, and so does the proxy."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet for an answer, which no delayed acknowledgement holds up

    def decide(self) -> Fault | None:
        raise NotImplementedError

    def pass_on(self, headers: Mapping[str, str], body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        raise NotImplementedError

    def handle_expect_100(self) -> bool:
        """Clients wait for a second for this answer."""
        goes_on = super().handle_expect_100()
        self.wfile.flush()
        return goes_on

    def _body(self) -> Iterator[bytes]:
        if self.headers.get("transfer-encoding") != "chunked":
            yield self.rfile.read(int(self.headers.get("content-length") or 0))
            return
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _serve(self) -> None:
        body = b"".join(self._body())
        fault = self.decide()
        status, headers, answer = 0, list[tuple[str, str]](), b""
        if fault is None or fault.is_done:
            status, headers, answer = self.pass_on(self.headers, body)
        if fault is not None:
            self.close_connection = True
            if not fault.status:
                return
            status, headers = fault.status, []
            answer = ERROR.format(code=CODES.get(status, "InternalError")).encode()
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in PER_CONNECTION:
                self.send_header(name, value)
        length = next((value for name, value in headers if name.lower() == "content-length"), len(answer))
        self.send_header("content-length", str(length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    proxy = Proxy(sys.argv[1])
    for line in sys.stdin:
        command, arguments = json.loads(line)
        print(json.dumps(getattr(proxy, command)(**arguments)), flush=True)


if __name__ == "__main__":
    main()
