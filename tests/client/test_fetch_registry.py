"""Reading registries from an HTTP server: collections, pages, documents, limits, and other origins."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from wirebook.catalog.load import load_registry
from wirebook.client.fetch import FetchLimits
from wirebook.client.registry import fetch_registry
from wirebook.problems import WirebookError

AVRO = {"type": "record", "name": "R", "fields": []}
PROTO = 'syntax = "proto3"; message M { int32 a = 1; }'
PAGE = 2


class Server(ThreadingHTTPServer):
    """A registry as a server shows it: collections by address, in pages of two, schema documents on their own.

    Shape: `inline` says whether the server knows ``?inline``; `answers` replace what it would say; `asked` are the
    requests it had.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/reg"
        self.inline: bool | int = True
        self.asked: list[str] = []
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.groups = {f"g{i}": {f"m{j}": {"name": f"{i}.{j}"} for j in range(i)} for i in range(5)}
        self.schemas: dict[str, dict[str, Any]] = {
            "x": {"1": AVRO},
            "y": {"1": {"type": "int"}, "2": {"type": "long"}},
            "z": {"1": PROTO},
        }

    def handle_error(self, *_: Any) -> None:
        """A client that went away is what some tests are about."""

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        split = urlsplit(path)
        where, query = split.path.removeprefix("/reg").strip("/"), parse_qs(split.query)
        if "inline" in query and not isinstance(self.inline, bool):
            return self.inline, {}, b"{}"
        found = self.find(where.split("/") if where else [], "inline" in query and self.inline)
        if found is None:
            return 404, {}, b"{}"
        if isinstance(found, (str, bytes)):
            return 200, {"Content-Type": "text/plain"}, found if isinstance(found, bytes) else found.encode()
        headers = {"Content-Type": "application/json", "Link": f"<{self.url}>;rel=xregistry-root"}
        if len(where.split("/")) % 2 and where:
            found, following = self.page(found, int(query.get("page", ["0"])[0]))
            if following is not None:
                more = "&inline=schema" if "inline" in query else ""
                headers["Link"] = f"<{self.url}/{where}?page={following}{more}>;rel=next;count=9, " + headers["Link"]
        return 200, headers, json.dumps(found).encode()

    @staticmethod
    def page(members: dict[str, Any], number: int) -> tuple[dict[str, Any], int | None]:
        part = dict(list(members.items())[number * PAGE : (number + 1) * PAGE])
        return part, number + 1 if (number + 1) * PAGE < len(members) else None

    def find(self, parts: list[str], inline: bool) -> Any:
        match parts:
            case []:
                return {
                    "specversion": "1.0-rc4", "registryid": "r", "self": f"{self.url}/", "xid": "/",
                    "messagegroupsurl": f"{self.url}/messagegroups", "messagegroupscount": 5,
                    "endpointsurl": f"{self.url}/endpoints", "endpointscount": 1,
                    "schemagroupsurl": f"{self.url}/schemagroups", "schemagroupscount": 1,
                }  # fmt: skip
            case ["messagegroups"]:
                return {name: self.group(name) for name in self.groups}
            case ["messagegroups", group] if group in self.groups:
                return self.group(group)
            case ["messagegroups", group, "messages"] if group in self.groups:
                return {name: self.message(group, name) for name in self.groups[group]}
            case ["endpoints"]:
                groups = ["/messagegroups/g1", f"{self.url}/messagegroups/g2"]
                return {"e": {"endpointid": "e", "usage": ["producer"], "messagegroups": groups, "messagescount": 0,
                              "messagesurl": f"{self.url}/endpoints/e/messages"}}  # fmt: skip
            case ["schemagroups"]:
                return {"s": {"schemagroupid": "s", "schemasurl": f"{self.url}/schemagroups/s/schemas"}}
            case ["schemagroups", "s", "schemas"]:
                return {name: self.schema(name, inline) for name in self.schemas}
            case ["schemagroups", "s", "schemas", name, "versions"]:
                return {key: self.version(name, key, inline) for key in self.schemas[name]}
            case ["schemagroups", "s", "schemas", name]:
                return next(reversed(self.schemas[name].values()))
            case ["schemagroups", "s", "schemas", name, "versions", key]:
                return self.schemas[name][key]
        return None

    def group(self, name: str) -> dict[str, Any]:
        address = f"{self.url}/messagegroups/{name}"
        return {
            "messagegroupid": name,
            "self": address,
            "xid": f"/messagegroups/{name}",
            "messagesurl": f"{address}/messages",
        }

    def message(self, group: str, name: str) -> dict[str, Any]:
        xid = f"/messagegroups/{group}/messages/{name}"
        more = (
            {"basemessage": f"{self.url}/messagegroups/g1/messages/m0"}
            if group != "g1"
            else {"datacontenttype": "text/plain"}
        )
        return {"messageid": name, "self": self.url + xid, "xid": xid, **more, **self.groups[group][name]}

    def version(self, name: str, key: str, inline: bool) -> dict[str, Any]:
        xid = f"/schemagroups/s/schemas/{name}/versions/{key}"
        found = {
            "schemaid": name,
            "versionid": key,
            "self": f"{self.url}{xid}$details",
            "xid": xid,
            "format": "Avro/1.9",
        }
        return found | ({"schema": self.schemas[name][key]} if inline else {})

    def schema(self, name: str, inline: bool) -> dict[str, Any]:
        key, address = list(self.schemas[name])[-1], f"{self.url}/schemagroups/s/schemas/{name}"
        return self.version(name, key, inline) | {
            "self": f"{address}$details", "xid": f"/schemagroups/s/schemas/{name}",
            "versionsurl": f"{address}/versions", "versionscount": len(self.schemas[name]),
        }  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        status, headers, body = self.server.answers.get(self.path) or self.server.answer(self.path)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing on standard error."""


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def refused(url: str, **limits: Any) -> str:
    with pytest.raises(WirebookError) as raised:
        fetch_registry(url, fetch_limits=FetchLimits(**limits))
    return raised.value.problems[0].code


@pytest.mark.parametrize("inline", [True, False, 400], ids=["inline", "ignored", "refused"])
def test_registry_is_read_with_all_its_pages(server: Server, inline: bool | int) -> None:
    server.inline = inline
    registry = load_registry(server.url)
    assert len(registry.messages) == 0 + 1 + 2 + 3 + 4
    assert all(message.attributes["datacontenttype"] == "text/plain" for message in registry.messages.values())
    assert registry.endpoints["/endpoints/e"].groups == ("/messagegroups/g1", "/messagegroups/g2")
    schemas = registry.document["schemagroups"]["s"]["schemas"]
    assert schemas["x"]["versions"]["1"]["schema"] == AVRO
    assert [schemas["y"]["versions"][key]["schema"]["type"] for key in "12"] == ["int", "long"]
    assert schemas["z"]["versions"]["1"]["schema"] == PROTO
    assert {problem.code for problem in registry.diagnostics} == {"old-reference-form"}
    assert len(server.asked) == len(set(server.asked)), "nothing is asked twice"


def test_single_group_is_read(server: Server) -> None:
    registry = load_registry(f"{server.url}/messagegroups/g3")
    assert list(registry.messages) == [f"/messagegroups/g3/messages/m{i}" for i in range(3)]
    assert {m.incomplete for m in registry.messages.values()} == {"/messagegroups/g1/messages/m0"}
    assert all("/messagegroups/g3" in path for path in server.asked)


def test_collection_of_groups_is_read(server: Server) -> None:
    assert len(load_registry(f"{server.url}/messagegroups").messages) == 10


def test_plain_document_is_read_as_json_and_yaml(server: Server) -> None:
    document = {"messagegroups": {"g": {"messages": {"m": {"datacontenttype": "text/plain"}}}}}
    server.answers["/a.json"] = (200, {}, json.dumps(document).encode())
    server.answers["/b"] = (
        200,
        {"Content-Type": "application/yaml"},
        b"messagegroups: {g: {messages: {m: {datacontenttype: text/plain}}}}",
    )
    server.answers["/c"] = (200, {"Content-Type": "application/cloudevents-registry+yaml"}, server.answers["/b"][2])
    root = server.url.removesuffix("/reg")
    assert all(load_registry(f"{root}/{name}").document == document for name in ("a.json", "b", "c"))


def test_other_origin_is_never_requested(server: Server) -> None:
    other = "http://localhost:9/messagegroups"
    body = {"specversion": "1.0-rc4", "messagegroupsurl": other, "endpoints": {}}
    server.answers["/reg"] = (200, {}, json.dumps(body).encode())
    registry = load_registry(server.url)
    problems = [(problem.code, problem.actual) for problem in registry.diagnostics]
    assert problems == [("foreign-origin", other), ("collection-elsewhere", other)]


@pytest.mark.parametrize("header", ["Location", "Link"])
def test_redirect_or_page_on_another_origin_is_rejected(server: Server, header: str) -> None:
    server.answers["/reg"] = {
        "Location": (302, {"Location": "http://localhost:9/"}, b""),
        "Link": (200, {"Link": "<http://localhost:9/>;rel=next"}, b'{"specversion": "1.0-rc4"}'),
    }[header]
    assert refused(server.url) == "fetch-failed"


def test_redirect_on_the_origin_is_followed(server: Server) -> None:
    server.answers["/old"] = (301, {"Location": "/reg"}, b"")
    assert len(load_registry(server.url.replace("/reg", "/old")).messages) == 10


def test_circular_redirects_and_pages_end(server: Server) -> None:
    server.answers["/a"] = (302, {"Location": "/a"}, b"")
    assert refused(server.url.replace("/reg", "/a")) == "fetch-failed"
    server.answers["/reg"] = (200, {"Link": f"<{server.url}>;rel=next"}, b'{"specversion": "1.0-rc4"}')
    assert fetch_registry(server.url).value == {"specversion": "1.0-rc4"}


@pytest.mark.parametrize("limits", [{"requests": 5}, {"size": 600}, {"seconds": 0.0}], ids=str)
def test_exceeded_limit_is_an_error(server: Server, limits: dict[str, Any]) -> None:
    assert refused(server.url, **limits) == "fetch-limit"


def test_endless_pages_end_at_the_limit(server: Server) -> None:
    class Endless(dict[str, Any]):
        def get(self, path: str, default: Any = None) -> Any:
            number = int(parse_qs(urlsplit(path).query).get("page", ["0"])[0])
            return 200, {"Link": f"</reg?page={number + 1}>;rel=next"}, json.dumps({f"x{number}": {}}).encode()

    server.answers = Endless()
    assert refused(server.url, requests=50) == "fetch-limit"
    assert len(server.asked) == 50


def test_failure_is_reported_as_a_problem(server: Server) -> None:
    server.answers["/reg/messagegroups/g3/messages"] = (500, {}, b"oops")
    assert refused(server.url) == "fetch-failed"
    server.answers["/reg"] = (200, {}, b'{"messagegroups": ')
    assert refused(server.url) == "syntax-error"
    assert refused(server.url + "/nope") == "fetch-failed"
    assert refused("http://127.0.0.1:9/") == "fetch-failed"
    assert refused("http://[::bad/") == "fetch-failed"


def test_failed_source_does_not_affect_others(server: Server) -> None:
    registry = load_registry(server.url + "/nope", {"messagegroups": {}})
    assert [problem.code for problem in registry.diagnostics] == ["fetch-failed"]


def test_slow_server_times_out(server: Server) -> None:
    class Slow(dict[str, Any]):
        def get(self, path: str, default: Any = None) -> Any:
            time.sleep(0.5)
            return None

    server.answers = Slow()
    assert refused(server.url, wait=0.1) == "fetch-failed"
