"""The ASGI application: health, metrics, limits and logs.

Spec: docs/registry.md#watching-a-server; docs/registry.md#limits.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.httpapi.conftest import Client
from wirebook.httpapi.app import App
from wirebook.httpapi.http.responses import accepts_gzip
from wirebook.httpapi.logs import JsonLines
from wirebook.httpapi.options import ServerOptions

HOST = "http://registry.test"


class Web:
    """Sends requests to an application, without a socket between. It is not on loopback unless `options` say so."""

    def __init__(self, registry: Client, **options: Any) -> None:
        self.app = App(registry.service, ServerOptions(**{"host": "192.0.2.1", **options}))
        registry.database.observe = self.app.metrics.transaction

    def send(
        self, method: str, url: str, content: Any = None, peer: str = "127.0.0.1", **headers: Any
    ) -> httpx.Response:
        return self.send_lines(method, url, [(n.replace("_", "-"), v) for n, v in headers.items()], content, peer)

    def send_lines(
        self, method: str, url: str, headers: list[tuple[str, Any]], content: Any = None, peer: str = "127.0.0.1"
    ) -> httpx.Response:
        """As `send`, with headers of which some may have the same name."""

        async def run() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, client=(peer, 1))
            async with httpx.AsyncClient(transport=transport, base_url=HOST) as client:
                return await client.request(method, url, content=content, headers=headers)

        return asyncio.run(run())

    def get(self, url: str, **headers: Any) -> httpx.Response:
        return self.send("GET", url, **headers)

    def metric(self, name: str, **labels: str) -> float:
        """The value of a metric whose labels are those."""
        text = self.get(f"{self.app.options.prefix}/.wirebook/metrics").text
        for line in text.splitlines():
            match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if match and match[1] == name and dict(re.findall(r'(\w+)="([^"]*)"', match[2] or "")) == labels:
                return float(match[3])
        return 0.0


@pytest.fixture
def web(registry: Client) -> Web:
    return Web(registry)


# -- metrics ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/", "/"),
        ("/dirs", "/{groups}"),
        ("/dirs/secret", "/{groups}/{group}"),
        ("/dirs/secret/files", "/{groups}/{group}/{resources}"),
        ("/dirs/secret/files/f", "/{groups}/{group}/{resources}/{resource}"),
        ("/dirs/secret/files/f$details", "/{groups}/{group}/{resources}/{resource}"),
        ("/dirs/secret/files/f/meta", "/{groups}/{group}/{resources}/{resource}/meta"),
        ("/dirs/secret/files/f/versions", "/{groups}/{group}/{resources}/{resource}/versions"),
        ("/dirs/secret/files/f/versions/v", "/{groups}/{group}/{resources}/{resource}/versions/{version}"),
        ("/dirs/secret/files/f/other", "other"),
        ("/dirs/secret/files/f/other/v", "other"),
        ("/dirs/secret/files/f/versions/v/w", "other"),
        ("/.secret", "other"),
        ("/model", "/model"),
        ("/export", "/export"),
        ("/healthz", "/healthz"),
        ("/.wirebook/metrics", "/.wirebook/metrics"),
        ("/.well-known/xregistry", "/.well-known/xregistry"),
    ],
)
def test_request_metric_has_the_route_pattern(web: Web, path: str, route: str) -> None:
    status = str(web.get(path).status_code)
    count = web.metric("wirebook_http_requests_total", method="GET", route=route, status=status)
    assert count >= 1
    assert web.metric("wirebook_http_request_seconds_count", method="GET", route=route) >= 1
    assert "secret" not in web.get("/.wirebook/metrics").text


def test_write_not_begun_in_time_is_rejected_as_busy(registry: Client) -> None:
    web = Web(registry, request_timeout=0.5)
    is_busy, may_continue = threading.Event(), threading.Event()

    def hold(_: Any) -> None:
        is_busy.set()
        assert may_continue.wait(20)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(registry.service.write, hold)
        assert is_busy.wait(20)
        refused = web.send("PUT", "/dirs/late", "{}")
        may_continue.set()
        first.result()
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert refused.json()["type"].endswith("#server_busy")
    assert web.send("PUT", "/dirs/next", "{}").status_code == 201
    assert web.get("/dirs/late").status_code == 404


def test_unknown_methods_share_one_metric_label(web: Web) -> None:
    for method in ("FOO", "BAR"):
        web.send(method, "/")
    assert web.metric("wirebook_http_requests_total", method="other", route="/", status="405") == 2


def test_transaction_metrics_count_reads_and_writes(web: Web) -> None:
    reads, writes = (web.metric("wirebook_db_seconds_count", kind=kind) for kind in ("read", "write"))
    web.send("PUT", "/dirs/d", "{}")
    web.get("/dirs/d")
    assert web.metric("wirebook_db_seconds_count", kind="write") == writes + 1
    assert web.metric("wirebook_db_seconds_count", kind="read") >= reads + 1
    assert web.metric("wirebook_db_seconds_sum", kind="write") > 0


# -- health -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/.wirebook/healthz", "/.wirebook/readyz"])
def test_health_paths_return_ok(web: Web, path: str) -> None:
    assert (web.get(path).status_code, web.get(path).text) == (200, "ok\n")
    head = web.send("HEAD", path)
    assert (head.status_code, head.content) == (200, b"")


def test_stopping_server_is_not_ready(web: Web) -> None:
    web.app.stopping.set()
    assert (web.get("/readyz").status_code, web.get("/healthz").status_code) == (503, 200)


def test_group_type_named_like_a_server_path_replaces_it(registry: Client) -> None:
    groups = {"groups": {"healthz": {"singular": "health"}}}
    assert registry.put("/modelsource", groups).status == 200
    web = Web(registry)
    assert web.send("PUT", "/healthz/h", "{}").status_code == 201
    assert list(web.get("/healthz").json()) == ["h"]
    assert web.get("/.wirebook/healthz").text == "ok\n"


# -- limits -------------------------------------------------------------------------------------------------------


def test_body_above_the_limit_is_413(registry: Client) -> None:
    web = Web(registry, max_body=100)
    declared = web.send("PUT", "/dirs/d", b" " * 101)
    assert (declared.status_code, declared.headers["connection"]) == (413, "close")

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 65_536

    undeclared = web.send("PUT", "/dirs/d", endless())
    assert (undeclared.status_code, undeclared.json()["title"]) == (413, "The body is larger than 100 bytes.")
    assert web.get("/dirs/d").status_code == 404
    assert web.send("PUT", "/dirs/d", b"{}" + b" " * 98).status_code == 201


def test_body_that_stalls_is_408(registry: Client) -> None:
    web = Web(registry, request_timeout=0.05)

    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(5)
        yield b"}"

    answer = web.send("PUT", "/dirs/d", slow())
    assert (answer.status_code, answer.headers["connection"]) == (408, "close")
    assert web.get("/dirs/d").status_code == 404


def test_body_that_drips_is_408(registry: Client) -> None:
    web = Web(registry, request_timeout=5, stream_timeout=0.2)

    async def dripping() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.01)

    assert web.send("PUT", "/dirs/d", dripping()).status_code == 408


@pytest.mark.parametrize("depth", [101, 5_000, 200_000])
@pytest.mark.parametrize("brackets", ["[]", '{"a":}'])
def test_body_nested_too_deeply_is_a_parsing_error(web: Web, depth: int, brackets: str) -> None:
    opening, closing = brackets[:-1], brackets[-1]
    body = opening * depth + "0" + closing * depth
    answer = web.send("PUT", "/dirs/d", body)
    assert (answer.status_code, answer.json()["type"].rpartition("#")[2]) == (400, "parsing_data")
    assert web.get("/dirs/d").status_code == 404


def test_thousands_of_query_parameters_are_accepted(web: Web) -> None:
    assert web.get("/?" + "&".join(f"a{n}=1" for n in range(3000))).status_code < 500


# -- the base path ------------------------------------------------------------------------------------------------


def test_path_outside_the_base_path_is_not_found(registry: Client) -> None:
    web = Web(registry, base_path="/reg")
    assert web.get("/reg").json()["self"] == f"{HOST}/reg/"
    assert web.get("/reg/dirs").status_code == 200
    for path in ("/", "/dirs", "/regdirs", "/healthz", "/.wirebook/metrics"):
        assert web.get(path).status_code == 404, path
    assert web.get("/.well-known/xregistry").json() == {"registries": [f"{HOST}/reg"]}
    assert web.get("/reg/healthz").text == "ok\n"
    assert web.metric("wirebook_http_requests_total", method="GET", route="/{groups}", status="200") == 1


# -- logs ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def lines() -> Iterator[list[dict[str, Any]]]:
    """The lines of the JSON log."""
    records: list[dict[str, Any]] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(json.loads(self.format(record)))

    handler = Lines()
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("wirebook")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    yield records
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_access_log_contains_no_secrets(registry: Client, lines: list[dict[str, Any]]) -> None:
    web = Web(registry, write_token="hush")
    web.send("PUT", "/dirs/d?key=hush", '{"name": "hush"}', authorization="Bearer hush", cookie="hush=1")
    (line,) = [line for line in lines if line["logger"] == "wirebook.access"]
    assert {name: line[name] for name in ("method", "path", "status", "peer", "level")} == {
        "method": "PUT",
        "path": "/dirs/d",
        "status": 201,
        "peer": "127.0.0.1",
        "level": "info",
    }
    assert line["bytes"] > 100
    assert line["seconds"] > 0
    assert "hush" not in json.dumps(lines)


def test_path_with_line_breaks_stays_on_its_log_line(web: Web, lines: list[dict[str, Any]]) -> None:
    web.get("/dirs/d%0a%0dGET%20/forged%1b[2J")
    (line,) = lines
    assert line["path"] == "/dirs/d%0a%0dGET%20/forged%1b[2J"


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("*", True),
        ("gzip;q=0", False),
        ("*, gzip; q=0.0", False),
        ("", False),
    ],
)
def test_accept_encoding_decides_compression(accepted: str, takes: bool) -> None:
    assert accepts_gzip(accepted) == takes


def test_blanks_around_a_header_value_are_ignored(web: Web) -> None:
    headers = {"content_type": "text/plain \t", "xregistry_name": " \tblue bikes\t "}
    created = web.send("PUT", "/dirs/d/files/f", b"x", **headers)
    assert created.status_code == 201, created.text
    details = web.get("/dirs/d/files/f$details").json()
    assert (details["contenttype"], details["name"]) == ("text/plain", "blue bikes")
    assert web.get("/", host="registry.test ").status_code == 200
    tag = web.get("/dirs").headers["etag"]
    assert web.get("/dirs", if_none_match=f"{tag} ").status_code == 304
