"""A server as a process: start, stop, logs, and clients that are slow or send too much.

Spec: docs/registry.md#watching-a-server; docs/registry.md#limits.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.httpapi.servers import Follower, Server, launch, serving, when_ready


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "token").write_text("hush\n")
    options = ("--request-timeout", "2s", "--stream-timeout", "3s", "--max-body", "1", "--access-log")
    options += ("--log-format", "json", "--write-token-file", str(folder / "token"))
    with serving(f"sqlite:///{folder}/registry.db", folder / "log", *options) as running:
        yield running[0]


def connect(server: Server) -> socket.socket:
    address = urlsplit(server.base)
    assert address.hostname
    assert address.port
    return socket.create_connection((address.hostname, address.port), timeout=30)


def read_all(connection: socket.socket) -> bytes:
    """The bytes that a server sends until it closes the connection."""
    parts = []
    while part := _receive(connection):
        parts.append(part)
    return b"".join(parts)


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""


def test_slow_request_head_is_closed(server: Server) -> None:
    with connect(server) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        started = time.monotonic()
        assert read_all(slow) == b""
        assert 1 < time.monotonic() - started < 20


def test_idle_connection_is_closed(server: Server) -> None:
    with connect(server) as silent:
        assert read_all(silent) == b""


def test_request_head_above_the_limit_is_431(server: Server) -> None:
    with connect(server) as large:
        large.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        for number in range(40):
            try:
                large.sendall(b"X-%d: " % number + b"x" * 8000 + b"\r\n")
            except OSError:
                break
            time.sleep(0.01)
        assert read_all(large).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("size", [65_530, 65_540, 150_000])
def test_request_target_above_the_limit_is_431(server: Server, size: int) -> None:
    with connect(server) as large:
        target = b"/messagegroups?filter=name=" + b"x" * size
        large.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert read_all(large).startswith(b"HTTP/1.1 431 ")
    assert "Traceback" not in server.log.read_text()


def test_missing_body_is_408(server: Server) -> None:
    with connect(server) as slow:
        slow.sendall(b"PUT /messagegroups/slow HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer hush\r\n")
        slow.sendall(b"Content-Length: 10\r\n\r\n{")
        assert read_all(slow).startswith(b"HTTP/1.1 408 ")


def test_large_body_is_413(server: Server) -> None:
    """The client reads the response after it has sent all: a connection closed before that is reset."""
    size = 16 << 20
    with connect(server) as client:
        client.sendall(b"PUT /messagegroups/large HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer hush\r\n")
        client.sendall(f"Content-Length: {size}\r\n\r\n".encode() + b" " * size)
        answer = read_all(client).lower()
    assert answer.startswith(b"http/1.1 413 ")
    assert b"connection: close\r\n" in answer
    with server.client() as reader:
        assert reader.get("/messagegroups/large").status_code == 404


@pytest.mark.parametrize(
    "rubbish", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n", b"\r\n" * 5 + b"?"]
)
def test_bytes_that_are_not_http_are_400(server: Server, rubbish: bytes) -> None:
    with connect(server) as strange:
        strange.sendall(rubbish)
        assert b"HTTP/1.1 200" not in read_all(strange)
    with server.client() as client:
        assert client.get("/healthz").text == "ok\n"


def _token(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def test_server_token_is_required_for_writes_only(server: Server) -> None:
    with server.client() as client:
        for headers in ({}, _token("hus"), _token("hush "[:-1] + "x"), {"Authorization": "Basic hush"}):
            for method in ("PUT", "PATCH", "POST", "DELETE"):
                assert client.request(method, "/messagegroups/g", headers=headers, json={}).status_code == 401
        assert client.put("/messagegroups/g", headers=_token("hush"), json={}).status_code == 201
        assert client.get("/messagegroups/g").status_code == 200


def test_json_log_contains_no_secrets(server: Server) -> None:
    with server.client() as client:
        client.put("/messagegroups/logged?key=hush", headers=_token("hush"), json={"name": "hush"})
        client.get("/healthz")  # a request is logged after its answer was sent
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert any(line.get("path") == "/messagegroups/logged" for line in lines)
    assert "hush" not in server.log.read_text()


def test_sigterm_finishes_requests_and_exits_with_0(tmp_path: Path) -> None:
    """The event stream ends, the writes are stored, and the exit code is 0."""
    db = f"sqlite:///{tmp_path / 'registry.db'}"
    with serving(db, tmp_path / "log") as (server,):
        follower = Follower(server.base)
        assert follower.is_open.wait(30)
        with server.client() as client:
            client.put("/messagegroups/g", json={})
            assert client.get("/readyz").text == "ok\n"
            assert server.stop() == 0
        follower.join(10)
        assert not follower.is_alive()
    with serving(db, tmp_path / "log") as (server,), server.client() as client:
        assert client.get("/messagegroups/g").status_code == 200


def test_second_server_on_one_file_fails(tmp_path: Path) -> None:
    db, log = f"sqlite:///{tmp_path / 'registry.db'}", tmp_path / "second"
    with serving(db, tmp_path / "log") as (first,):
        second = launch(db, log)
        assert second.wait(60) == 2
        assert "database-in-use" in log.read_text()
        _close(second)
        first.kill()
    third = when_ready(launch(db, log), log)  # also after a kill
    third.kill()
    _close(third.process)


def _close(process: subprocess.Popen[str]) -> None:
    assert process.stdout
    process.stdout.close()


def exchange(server: Server, request: bytes) -> bytes:
    """The response to a request that is sent byte by byte."""
    with connect(server) as connection:
        connection.sendall(request)
        return read_all(connection)


CLOSE = b"Connection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"200"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHOST: attacker.example\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost:99999\r\n", b"400"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n", b"400"),
        (b"GET /.wirebook/events HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n", b"400"),
        (b"GET /healthz HTTP/1.0\r\n", b"200"),
        (b"GET http://localhost:1/ HTTP/1.1\r\nHost: attacker.example\r\n", b"200"),
        (b"GET HTTP://LOCALHOST HTTP/1.1\r\nHost: attacker.example\r\n", b"200"),
        (b"GET http://localhost?inline HTTP/1.1\r\nHost: attacker.example\r\n", b"200"),
        (b"GET http://attacker.example/ HTTP/1.1\r\nHost: localhost\r\n", b"400"),
        (b"PUT http://attacker.example/messagegroups/g HTTP/1.1\r\nHost: localhost\r\n", b"400"),
        (b"GET http://user@localhost/ HTTP/1.1\r\nHost: localhost\r\n", b"400"),
        (b"GET http:/// HTTP/1.1\r\nHost: localhost\r\n", b"400"),
        (b"GET http://attacker.example/healthz HTTP/1.1\r\nHost: attacker.example\r\n", b"200"),
        (b"FOO http://localhost/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer hush\r\n", b"405"),
    ],
)
def test_host_of_a_request_is_checked(server: Server, head: bytes, status: bytes) -> None:
    answer = exchange(server, head + CLOSE)
    assert answer.partition(b"\r\n")[0].split()[1] == status, answer


def test_absolute_request_target_replaces_host(server: Server) -> None:
    answer = exchange(server, b"GET http://127.0.0.1:99/?doc HTTP/1.1\r\nHost: localhost\r\n" + CLOSE)
    assert b"<http://127.0.0.1:99>;rel=xregistry-root" in answer
    assert b'"self":"#/"' in answer
