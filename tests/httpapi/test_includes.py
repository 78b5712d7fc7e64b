"""Includes in models: of documents on other hosts, and of files beside the initial model of a registry."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.core.memory import NoFormats
from tests.httpapi.conftest import OFFER, Client
from tests.httpapi.servers import launch, serving
from wirebook.httpapi.http.fetching import IncludeFetcher
from wirebook.httpapi.http.hosts import AllowedHost, parse_allowed_host
from wirebook.httpapi.model_file import initial_model
from wirebook.httpapi.setup import make_registry, make_service
from wirebook.problems import WirebookError
from wirebook.problems.xregistry import Refused
from wirebook.storage.database import Database

STRING = {"type": "string"}
Source = dict[str, Any]


class Web(ThreadingHTTPServer):
    """Documents on a port: JSON by path, or (status, headers, bytes). `asked` are the paths that were asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.documents: dict[str, Any] = {}
        self.asked: list[str] = []
        self.gate = threading.Event()
        self.base = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Web

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        document = self.server.documents.get(self.path, (404, {}, b""))
        if self.path == "/slow":
            self.server.gate.wait(30)
        if self.path.startswith("/late"):
            time.sleep(0.8)
        status, headers, body = document if isinstance(document, tuple) else (200, {}, json.dumps(document).encode())
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):  # who asked may have gone
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def web() -> Iterator[Web]:
    server = Web()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.gate.set()
    server.shutdown()
    server.server_close()


def registry(database: Database, fetch: IncludeFetcher) -> Client:
    make_registry(database, "test", {}, OFFER)
    return Client(make_service(database, NoFormats(), OFFER, fetch=fetch), database)


@pytest.fixture
def client(database: Database, web: Web) -> Client:
    """A registry that may fetch from the test server."""
    return registry(database, IncludeFetcher((AllowedHost("127.0.0.1", web.server_port),), seconds=2, max_bytes=10_000))


@pytest.fixture
def empty(database: Database) -> Client:
    return registry(database, IncludeFetcher())


def model(client: Client, source: Source) -> Source:
    """The full model of a source. The registry stores the source unchanged."""
    reply = client.put("/modelsource", source)
    assert reply.status == 200, reply.body
    assert json.dumps(reply.json) == json.dumps(source) == json.dumps(client.get("/modelsource").json)
    full: Source = client.get("/model").json
    assert "$include" not in json.dumps(full)
    return full


def groups(**aspects: Any) -> Source:
    return {"groups": {"dirs": {"singular": "dir", **aspects}}}


def including(*references: str, **own: Any) -> Source:
    return groups(attributes={"$includes": [*references], **own})


def own(full: Source) -> Source:
    """The types of the extension attributes of Groups, by name."""
    attributes = full["groups"]["dirs"]["attributes"]
    return {name: attribute["type"] for name, attribute in attributes.items() if name in tuple("abcxyz")}


def refused(client: Client, source: Source) -> str:
    """The error for a model source, which is the same on both paths for it."""
    before = client.get("/?inline=model,modelsource").body
    reply = client.put("/modelsource", source)
    assert reply.error == (400, "model_error", "/model"), reply.body
    assert client.patch("/", {"modelsource": source}).error == reply.error
    assert client.get("/?inline=model,modelsource").body == before
    return str(reply.json["title"])


# -- documents elsewhere ----------------------------------------------------------------------------------------------


def test_c_mod_40_41_and_43_documents_elsewhere(client: Client, web: Web) -> None:
    web.documents["/models/one.json"] = {"$schema": "s", "x": STRING, "y": STRING}
    web.documents["/models/two.json"] = {"groups": {"g": {"attributes": {"y": {"type": "integer"}, "z": STRING}}}}
    two = f"{web.base}/models/two.json#/groups/g/attributes"
    full = model(client, including(f"{web.base}/models/one.json", two, x={"type": "boolean"}))
    assert own(full) == {"x": "boolean", "y": "string", "z": "string"}
    assert own(model(client, including(two, f"{web.base}/models/one.json"))) == {
        "x": "string",
        "y": "integer",
        "z": "string",
    }
    assert client.put("/dirs/d", {"x": "1", "y": 5, "z": "a"}).status == 201


def test_c_mod_43_references_are_of_the_document_they_stand_in(client: Client, web: Web) -> None:
    web.documents["/models/one.json"] = {"all": {"$include": "../other/two.json#/some"}, "x": STRING}
    web.documents["/other/two.json"] = {"some": {"$includes": ["#/more", "three.json"]}, "more": {"a": STRING}}
    web.documents["/other/three.json"] = {"b": {"type": "integer"}}
    assert own(model(client, including(f"{web.base}/models/one.json#/all"))) == {"a": "string", "b": "integer"}
    assert own(model(client, including(f"{web.base}/other/two.json#more"))) == {"a": "string"}


def test_c_mod_40_anywhere_in_a_model(client: Client, web: Web) -> None:
    web.documents["/all.json"] = groups(resources={"files": {"singular": "file", "maxversions": 3}})
    full = model(client, {"$include": f"{web.base}/all.json"})
    assert full["groups"]["dirs"]["resources"]["files"]["maxversions"] == 3
    group = f"{web.base}/all.json#/groups/dirs"
    full = model(client, {"groups": {"dirs": {"$include": group}, "boxes": {"$include": group, "singular": "box"}}})
    assert full["groups"]["boxes"]["resources"]["files"]["maxversions"] == 3
    assert full["groups"]["boxes"]["singular"] == "box"


def test_c_mod_44_documents_are_read_when_the_model_is_sent(client: Client, web: Web) -> None:
    web.documents["/a"] = {"x": STRING}
    source = including(f"{web.base}/a")
    assert own(model(client, source)) == {"x": "string"}
    web.documents["/a"] = {"y": STRING}
    assert own(client.get("/model").json) == {"x": "string"}
    assert client.put("/dirs/d", {"x": "1"}).status == 201
    client.delete("/dirs")
    assert own(model(client, source)) == {"y": "string"}
    web.documents.clear()
    assert "the response has status 404" in refused(client, source)
    assert own(client.get("/model").json) == {"y": "string"}


def test_include_is_fetched_once_per_request(client: Client, web: Web) -> None:
    web.documents["/a"] = {"one": {"x": STRING}, "two": {"y": STRING}}
    model(client, including(f"{web.base}/a#/one", f"{web.base}/a#/two"))
    assert web.asked == ["/a"]
    assert client.patch("/", {"modelsource": including(f"{web.base}/a#/one")}).status == 200
    assert own(client.get("/model").json) == {"x": "string"}
    assert web.asked == ["/a", "/a"]


def test_c_mod_42_what_cannot_be_included(client: Client, web: Web) -> None:
    web.documents |= {
        "/circle": {"x": {"$include": "/round#/x"}},
        "/round": {"x": {"$include": "/circle#/x"}},
        "/list": [STRING],
        "/text": (200, {}, b"<html>"),
        "/large": {"x": {"type": "string", "description": "a" * 20_000}},
        "/deep": (200, {}, b'{"a":' * 200 + b"1" + b"}" * 200),
        "/error": (500, {}, b""),
        "/twice": (200, {}, b'{"a": {"b": 1, "b": 2}}'),
        "/both": {"$include": "/a", "$includes": []},
    }
    expected = {
        "/circle#/x": "includes itself",
        "/list": "leads to an array",
        "/text": "it is not valid JSON",
        "/large": "it is larger than",
        "/deep": "nested deeper",
        "/twice": "duplicate member 'b' at '/a/b'",
        "/error": "the response has status 500",
        "/none": "the response has status 404",
        "/list#/x": "leads to nothing",
        "/both": "must not have both",
    }
    for path, why in expected.items():
        assert why in refused(client, including(f"{web.base}{path}")), path


def test_include_of_a_forbidden_address_is_rejected(client: Client, web: Web) -> None:
    port = web.server_port
    for address in (
        f"http://localhost:{port}/a",
        "http://127.0.0.1/a",
        f"http://127.0.0.1:{port - 1}/a",
        f"http://user:word@127.0.0.1:{port}/a",
        f"http://[::1]:{port}/a",
        f"ftp://127.0.0.1:{port}/a",
        "file:///etc/passwd",
        "other.json",
        "/etc/passwd",
        f"//127.0.0.1:{port}/a",
        "http://127.0.0.1:99999/a",
        "http://",
        "http://[::1/a",
        "data:application/json,{}",
    ):
        assert "cannot be included" in refused(client, including(address)), address
    assert web.asked == []


def test_include_redirect_to_a_forbidden_host_is_rejected(client: Client, web: Web) -> None:
    web.documents["/a"] = {"x": STRING}
    web.documents["/to-a"] = (302, {"Location": "/a"}, b"")
    assert own(model(client, including(f"{web.base}/to-a"))) == {"x": "string"}
    asked = len(web.asked)
    web.documents["/away"] = (302, {"Location": f"http://localhost:{web.server_port}/a"}, b"")
    web.documents["/file"] = (301, {"Location": "file:///etc/passwd"}, b"")
    web.documents["/again"] = (307, {"Location": "/again"}, b"")
    assert "is not allowed by --allow-fetch" in refused(client, including(f"{web.base}/away"))
    assert "is not an http or https URL" in refused(client, including(f"{web.base}/file"))
    assert web.asked[asked:] == ["/away", "/away", "/file", "/file"]
    assert "more than 5" in refused(client, including(f"{web.base}/again"))


def test_include_count_is_limited(client: Client, web: Web) -> None:
    web.documents |= {f"/{n}": {"x": STRING} for n in range(21)}
    model(client, including(*(f"{web.base}/{n}" for n in range(20))))
    assert "more than 20" in refused(client, including(*(f"{web.base}/{n}" for n in range(21))))


def test_other_writes_do_not_wait_for_includes(client: Client, web: Web) -> None:
    model(client, groups())
    web.documents["/slow"] = {"x": STRING}
    replies: list[int] = []
    thread = threading.Thread(
        target=lambda: replies.append(client.put("/modelsource", including(f"{web.base}/slow")).status)
    )
    thread.start()
    while not web.asked:
        time.sleep(0.01)
    assert client.put("/dirs/d", {}).status == 201
    assert replies == []
    web.gate.set()
    thread.join()
    assert replies == [200]
    assert client.put("/dirs/d", {"x": "a"}).status == 200


def test_failing_include_is_rejected(client: Client, web: Web) -> None:
    started = time.monotonic()
    assert "it cannot be fetched" in refused(client, including(f"{web.base}/slow"))
    assert time.monotonic() - started < 10


def test_redirects_count_for_the_time_limit(client: Client, web: Web) -> None:
    for number in range(4):
        web.documents[f"/late{number}"] = (302, {"Location": f"/late{number + 1}"}, b"")
    assert "fetching it takes longer than 2 s" in refused(client, including(f"{web.base}/late0"))


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("Example.COM", AllowedHost("example.com", None)),
        ("10.0.0.1:8080", AllowedHost("10.0.0.1", 8080)),
        ("[::1]:80", AllowedHost("::1", 80)),
        ("[::1]", AllowedHost("::1", None)),
    ],
)
def test_allowed_host_is_parsed(text: str, allowed: AllowedHost) -> None:
    assert parse_allowed_host(text) == allowed


@pytest.mark.parametrize("text", ["", "http://h", "h:", "h:0", "h:99999", "h/path", "*", "::1", "a b"])
def test_invalid_allowed_host_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is not HOST or HOST:PORT"):
        parse_allowed_host(text)


def test_allowed_host_without_a_port_allows_all_ports(database: Database, web: Web) -> None:
    web.documents["/a"] = {"x": STRING}
    client = registry(database, IncludeFetcher((AllowedHost("127.0.0.1", None),)))
    assert own(model(client, including(f"{web.base}/a"))) == {"x": "string"}


# -- the first model of a registry ------------------------------------------------------------------------------------


def write(folder: Path, **documents: Any) -> Path:
    """Files of a folder, by their names without `.json`; the path of the one that is called model."""
    for name, document in documents.items():
        path = folder / f"{name.replace('__', '/')}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document if isinstance(document, str) else json.dumps(document))
    return folder / "model.json"


def test_model_file_includes_files_below_its_folder(tmp_path: Path) -> None:
    source = {"$schema": "s", "groups": {"dirs": {"singular": "dir", "attributes": {"$include": "parts/a.json"}}}}
    path = write(tmp_path, model=source, parts__a={"x": {"$include": "b.json"}}, parts__b=STRING)
    model = initial_model(path, IncludeFetcher())
    assert model == {"$schema": "s", **groups(attributes={"x": STRING})}


def test_model_file_without_included_files_is_unchanged(tmp_path: Path) -> None:
    source = {"groups": {"dirs": {"singular": "dir"}, "boxes": {"$include": "#/groups/dirs", "singular": "box"}}}
    assert initial_model(write(tmp_path, model=source), IncludeFetcher()) == source


def test_model_file_cannot_include_files_outside_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    write(tmp_path, secret={"x": STRING})
    folder.mkdir()
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    for reference in ("../secret.json", "link.json", "file:///etc/passwd", "none.json", "http://127.0.0.1:1/a"):
        path = write(folder, model=groups(attributes={"$include": reference}))
        with pytest.raises(Refused, match="cannot be included"):
            initial_model(path, IncludeFetcher())


DUPLICATE = '{"groups": {"dirs": {"singular": "dir", "singular": "dir"}}}'


def test_file_that_includes_duplicate_members_is_rejected(tmp_path: Path) -> None:
    path = write(
        tmp_path, model=groups(attributes={"$include": "part.json"}), part='{"x": {"type": "string"}, "x": {}}'
    )
    with pytest.raises(Refused, match="duplicate member 'x' at '/x'"):
        initial_model(path, IncludeFetcher())


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "syntax-error"),
        ("[]", "bad-model"),
        (None, "unreadable-file"),
        (DUPLICATE, "duplicate-member"),
    ],
)
def test_invalid_model_file_is_rejected(tmp_path: Path, text: str | None, code: str) -> None:
    path = write(tmp_path, **({} if text is None else {"model": text}))
    with pytest.raises(WirebookError) as error:
        initial_model(path, IncludeFetcher())
    assert [problem.code for problem in error.value.problems] == [code]


def test_server_keeps_its_model_and_rejects_another(tmp_path: Path, web: Web) -> None:
    """The same model file is accepted again, another one is rejected."""
    web.documents["/a"] = {"y": STRING}
    attributes = {"$includes": ["parts.json", f"{web.base}/a"]}
    path = write(tmp_path, model=groups(attributes=attributes), parts={"x": STRING})
    db, log = f"sqlite:///{tmp_path / 'registry.db'}", tmp_path / "log"
    allow = ("--allow-fetch", web.base.removeprefix("http://"))
    with serving(db, log, "--model", str(path), *allow) as [server], server.client() as http:
        assert own(http.get("/model").json()) == {"x": "string", "y": "string"}
        assert http.get("/").json()["epoch"] == 1
        assert http.put("/modelsource", content=http.get("/modelsource").content).status_code == 200
        assert http.put("/modelsource", json=including(f"{web.base}/a")).status_code == 200
        assert http.put("/modelsource", json=groups(attributes={"x": STRING, "y": STRING})).status_code == 200
    with serving(db, log, "--model", str(path), *allow) as [server]:
        assert server.process.poll() is None
    for options in (("--model", "empty"), ("--allow-fetch", "http://h")):
        process = launch(db, log, *options)
        assert process.wait(60) == 2
        process.stdout and process.stdout.close()
    assert "another model" in log.read_text()
    assert "is not HOST or HOST:PORT" in log.read_text()
    with serving(f"sqlite:///{tmp_path / 'empty.db'}", log, "--model", "empty") as [server], server.client() as http:
        assert (http.get("/modelsource").json(), http.get("/").json()["epoch"]) == ({}, 1)
        assert "groups" not in http.get("/model").json()
