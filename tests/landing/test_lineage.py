"""Events of OpenLineage, received by an HTTP server, and servers that fail."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.brokers.lineage import LineageServer, faults, lineage_server, rows
from wirebook.cli.app import run
from wirebook.landing.runs.report import Report
from wirebook.landing.watch import lineage as module
from wirebook.landing.watch.lineage import Dataset, RunLineage, file_source, is_configured

NO_LINEAGE = {"OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE_DISABLED", "OPENLINEAGE_NAMESPACE"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """An environment of the test's own, because the client of OpenLineage sets variables."""
    variables = {name: value for name, value in os.environ.items() if name not in NO_LINEAGE} | {"HOME": str(tmp_path)}
    monkeypatch.setattr(os, "environ", variables)
    monkeypatch.chdir(tmp_path)
    return variables


@pytest.fixture
def server(environment: dict[str, str]) -> Iterator[LineageServer]:
    with lineage_server() as received:
        environment["OPENLINEAGE_URL"] = received.url
        yield received


def land(folder: Path, *more: str) -> int:
    if not (folder / "orders.jsonl").exists():
        assert run(["init", str(folder), "--yes"]) == 0
        (folder / "orders.jsonl").write_text((folder / "orders.jsonl").read_text() * 3 + '{"protocol": "KAFKA"}\n')
    arguments = ["land", str(folder / "orders.jsonl"), "--catalog", str(folder / "orders.xreg.json")]
    return run([*arguments, "--to", str(folder / "t"), "--local", "--no-report", "--json", *more])


def test_events_name_sources_tables_columns_and_rows(tmp_path: Path, server: LineageServer) -> None:
    assert land(tmp_path) == 0
    server.check()
    assert server.kinds() == ["START", "RUNNING", "COMPLETE"]
    start, running, complete = server.events
    assert start["inputs"] == [
        {"namespace": "file", "name": str(tmp_path / "orders.jsonl"), "facets": {}, "inputFacets": {}}
    ]
    assert start["outputs"] == []
    assert rows(running) == rows(complete)
    assert sorted(rows(complete).values()) == [1, 3]
    assert {output["namespace"] for output in complete["outputs"]} == {"file"}
    (table,) = (output for output in complete["outputs"] if not output["name"].endswith("dead_letters"))
    assert Path(table["name"]).is_dir()
    fields = {field["name"]: field["type"] for field in table["facets"]["schema"]["fields"]}
    assert (fields["_line"], fields["ce_id"]) == ("int64", "string")
    assert (start["job"]["namespace"], start["job"]["name"]) == ("wirebook", "land.t")
    assert start["job"]["facets"]["jobType"]["processingType"] == "BATCH"


def test_schema_of_events_finds_faults(tmp_path: Path, server: LineageServer) -> None:
    assert land(tmp_path) == 0
    complete = json.dumps(server.events[-1])
    for right, wrong in (
        ('"runId": "', '"runId": "no-'),
        ('"_producer"', '"_product"'),
        ('"rowCount"', '"rows"'),
        ('"COMPLETE"', '"DONE"'),
        ('"fields"', '"columns"'),
        ('"eventTime": "', '"eventTime": "at '),
    ):
        assert right in complete
        assert faults(json.loads(complete.replace(right, wrong))), right


def test_run_without_new_messages_completes_without_tables(tmp_path: Path, server: LineageServer) -> None:
    assert land(tmp_path) == land(tmp_path) == 0
    assert server.kinds()[3:] == ["START", "COMPLETE"]
    assert server.events[-1]["outputs"] == []


def test_replay_reads_dead_letters(tmp_path: Path, server: LineageServer) -> None:
    catalog = tmp_path / "orders.xreg.json"
    assert run(["init", str(tmp_path), "--yes"]) == 0
    right = catalog.read_text()
    catalog.write_text(right.replace("/shops/{shop}", "/shoops/{shop}"))
    assert land(tmp_path) == 0
    catalog.write_text(right)
    server.events.clear()
    replay = ["replay", str(tmp_path / "t"), "--catalog", str(catalog), "--local", "--no-report"]
    assert run([*replay, "--dry-run"]) == 0
    assert server.kinds() == []
    assert run(replay) == 0
    server.check()
    assert server.kinds() == ["START", "RUNNING", "COMPLETE"]
    assert server.events[0]["job"]["name"] == "replay.t"
    assert [source["name"] for source in server.events[0]["inputs"]] == [str(tmp_path / "t" / "dead_letters")]
    assert list(rows(server.events[-1]).values()) == [1]


def test_failed_run_has_the_problem(tmp_path: Path, server: LineageServer) -> None:
    assert land(tmp_path) == 0
    server.events.clear()
    assert land(tmp_path, "--format", "delta") == 2
    server.check()
    assert server.kinds() == ["START", "FAIL"]
    assert "have the format 'parquet'" in server.events[-1]["run"]["facets"]["errorMessage"]["message"]


def test_interrupted_run_is_aborted(tmp_path: Path, server: LineageServer) -> None:
    with pytest.raises(KeyboardInterrupt), RunLineage("j", [], tmp_path, pytest.fail):
        raise KeyboardInterrupt
    assert server.kinds() == ["START", "ABORT"]


def test_counts_are_those_since_the_start(tmp_path: Path, server: LineageServer, workspace: Any) -> None:
    workspace.write_two_files()
    with RunLineage("j", [Dataset("kafka://a:1", "t")], workspace.to, pytest.fail, is_streaming=True) as lineage:
        workspace.land(batch_bytes=1, on_batch=lambda batch: lineage.add(batch.report))
    server.check()
    counts = [rows(event) for event in server.events]
    assert counts == [{}, {"a": 10, "b": 10, "dead_letters": 1}, *[{"a": 20, "b": 20, "dead_letters": 2}] * 2]
    assert [(one["namespace"], one["name"]) for one in server.events[0]["inputs"]] == [("kafka://a:1", "t")]


@pytest.mark.parametrize("status", [400, 401])
def test_server_that_refuses_stops_nothing(
    tmp_path: Path, server: LineageServer, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    server.status = status
    assert land(tmp_path) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "OpenLineage" in line]
    assert notes == [f"OpenLineage: an event was not sent: HTTPError (HTTP {status})"]


def test_slow_server_does_not_hold_the_run(
    tmp_path: Path, server: LineageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.2)
    monkeypatch.setattr(module, "MAX_EVENTS", 3)
    server.delay, notes = 2.0, list[str]()
    with RunLineage("j", [], tmp_path, notes.append) as lineage:
        for _ in range(10):
            lineage.add(Report())
    assert any("were not sent, because the server is too slow" in note for note in notes)


def test_wrong_configuration_stops_nothing(
    tmp_path: Path, environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "openlineage.yml").write_text("transport: {type: unheard-of}")
    assert land(tmp_path) == 0
    assert "OpenLineage: an event was not sent: " in capsys.readouterr().err


def test_missing_package_is_noted(
    tmp_path: Path, server: LineageServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "openlineage", None)
    monkeypatch.setitem(sys.modules, "openlineage.client", None)
    assert land(tmp_path) == 0
    assert "pip install 'wirebook[openlineage]'" in capsys.readouterr().err
    assert server.events == []


def test_configuration_is_found_where_the_client_looks(tmp_path: Path, environment: dict[str, str]) -> None:
    assert not is_configured()
    (tmp_path / ".openlineage").mkdir()
    (tmp_path / ".openlineage" / "openlineage.yml").touch()
    assert is_configured()
    environment["OPENLINEAGE_DISABLED"] = "true"
    assert not is_configured()


def test_without_configuration_nothing_is_sent(tmp_path: Path) -> None:
    with RunLineage("j", [], tmp_path, pytest.fail) as lineage:
        lineage.add(Report())


def test_names_of_datasets(bucket: str) -> None:
    scheme, _, rest = bucket.partition("://")
    assert file_source(f"{bucket}/lake/tables") == Dataset(f"{scheme}://{rest.split('/')[0]}", "lake/tables")
    assert file_source("/a/b") == Dataset("file", "/a/b")
