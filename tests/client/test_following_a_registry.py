"""Catalogues of a running registry: few requests, reloaded only after changes, clear errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.httpapi.servers import Server, serving
from wirebook import Catalog
from wirebook.catalog.load import load_registry
from wirebook.cli.app import run
from wirebook.client.fetch import Cache, Fetcher

GROUPS = 30
TYPES = {"1": "string", "2": "long"}
RECORD = {"protocol": "KAFKA", "topic": "t1", "headers": [], "value": "{}"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("registry")
    with serving(f"sqlite:///{folder / 'r.db'}", folder / "log") as servers:
        groups = {f"g{i}": {"messages": {"m": message(f"t{i}")}} for i in range(GROUPS)}
        versions = {key: {"format": "Avro/1.9", "schema": {"type": name}} for key, name in TYPES.items()}
        meta = {"defaultversionid": "1", "defaultversionsticky": True}
        schemas = {"s": {"schemas": {"x": {"versions": versions, "meta": meta}}}}
        with servers[0].client() as client:
            assert client.post("/", json={"messagegroups": groups, "schemagroups": schemas}).status_code == 200
        yield servers[0]


def message(topic: str) -> dict[str, object]:
    return {"protocol": "KAFKA", "protocoloptions": {"topic": topic}}


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs that are requested, in order."""
    urls: list[str] = []
    stream = httpx.Client.stream

    def record(self: httpx.Client, method: str, url: str, **options: Any) -> Any:
        urls.append(url)
        return stream(self, method, url, **options)

    monkeypatch.setattr(httpx.Client, "stream", record)
    return urls


def test_whole_registry_takes_two_requests(server: Server, requested: list[str]) -> None:
    registry = load_registry(server.base)
    assert len(registry.messages) == GROUPS
    schema = registry.document["schemagroups"]["s"]["schemas"]["x"]
    assert {key: version["schema"]["type"] for key, version in schema["versions"].items()} == TYPES
    assert requested == [server.base, f"{server.base}?inline=%2A"]


@pytest.mark.parametrize("path", ["messagegroups", "messagegroups/g1"])
def test_part_of_a_registry_takes_two_requests(server: Server, path: str, requested: list[str]) -> None:
    registry = load_registry(f"{server.base}/{path}")
    assert "/messagegroups/g1/messages/m" in registry.messages
    assert len(requested) == 2


def test_result_equals_the_export(server: Server) -> None:
    with server.client() as client:
        exported = Catalog.load(client.get("/export").json())
    fetched = Catalog.load(server.base)
    assert fetched.definitions.keys() == exported.definitions.keys()
    assert fetched.match(RECORD).definition == exported.match(RECORD).definition == "/messagegroups/g1/messages/m"
    assert not [problem for problem in fetched.diagnostics if problem.code != "old-reference-form"]


def test_unchanged_registry_is_not_loaded_again(server: Server) -> None:
    catalog = Catalog.load(server.base)
    assert catalog.refreshed() is catalog
    with server.client() as client:
        assert client.put("/messagegroups/new/messages/m", json=message("new")).status_code == 201
        changed = catalog.refreshed()
        assert changed.match({**RECORD, "topic": "new"}).definition == "/messagegroups/new/messages/m"
        assert catalog.match({**RECORD, "topic": "new"}).definition is None
        assert client.delete("/messagegroups/new").status_code == 204
    assert "/messagegroups/new/messages/m" not in changed.refreshed().definitions


def test_unchanged_response_is_not_transferred(server: Server) -> None:
    cache: Cache = {}
    for requests in (1, 2):
        with Fetcher(f"{server.base}/messagegroups", cache=cache) as fetcher:
            first = fetcher.get(f"{server.base}/messagegroups")
            assert (fetcher.size == 0) == (requests == 2)
            assert json.loads(first.body).keys() >= {"g1"}


def test_changed_file_is_loaded_again(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text('{"messagegroups": {"g": {"messages": {"m": {"name": "a"}}}}}')
    catalog = Catalog.load(file)
    assert catalog.refreshed() is catalog
    file.write_text('{"messagegroups": {"g": {"messages": {"n": {"name": "a"}}}}}')
    assert list(catalog.refreshed().definitions) == ["/messagegroups/g/messages/n"]


@pytest.mark.parametrize(
    ("path", "message"),
    [("/nowhere", "400: An unknown Group type"), ("/messagegroups/none", "404: The targeted entity")],
)
def test_unreadable_url_is_reported(
    server: Server, path: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lint", f"{server.base}{path}"]) == 2
    err = capsys.readouterr().err
    assert f"{server.base}{path}" in err
    assert message in err


def test_commands_read_a_registry(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = tmp_path / "c.jsonl"
    capture.write_text(json.dumps(RECORD) + "\n")
    assert run(["lint", server.base]) == 0
    for command in (["match", str(capture)], ["explain", str(capture)], ["build", "/messagegroups/g1/messages/m"]):
        assert run([*command, "--catalog", server.base]) == 0
    assert "/messagegroups/g1/messages/m" in capsys.readouterr().out
