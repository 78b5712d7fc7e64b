"""`wirebook import`: into a database without a server, and into a running registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.httpapi.servers import Server, serving
from wirebook.cli.app import run

FILE = {
    "specversion": "1.0-rc2",
    "messagegroups": {
        "g": {"messages": {"m": {"basemessageurl": "#/messagegroups/g/messages/n", "createdat": "2024-01-01T00:00:00"}}}
    },
}
BAD = {"messagegroups": {"g": {"messages": {"m": {"name": "x"}, "n": {"name": "y", "colour": "red"}}}}}
DATABASE = ["--database", "sqlite:///r.db"]


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {"good": FILE, "bad": BAD}.items():
        Path(f"{name}.json").write_text(json.dumps(value, indent=1), "utf-8")
    Path("cut.json").write_text('{"messagegroups": {', "utf-8")
    Path("other.json").write_text('{"messagegroups": {"g": {"messages": {"m": {"name": "other"}}}}}', "utf-8")
    Path("token").write_text("secret", "utf-8")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(f"sqlite:///{tmp_path / 's.db'}", tmp_path / "log", "--write-token-file", "token") as servers:
        yield servers[0]


def test_import_into_a_database(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", "good.json", *DATABASE, "--dry-run"]) == 0
    assert capsys.readouterr().out == "Would import 4 entities (5 notes)\n"
    assert run(["import", "good.json", *DATABASE]) == 0
    out, err = capsys.readouterr()
    assert out == "Imported 4 entities (5 notes)\n"
    assert "good.json:8:6: warning guessed-time-zone" in err
    assert "good.json:7:" in err
    assert run(["import", "good.json", *DATABASE, "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert "/messagegroups/g/messages/m" in output["changed"]
    assert {"old-base-name", "guessed-time-zone"} <= {diagnostic["code"] for diagnostic in output["diagnostics"]}


def test_rejected_entity_is_reported_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", "bad.json", *DATABASE]) == 2
    err = capsys.readouterr().err
    assert err.startswith("bad.json:8:5 /messagegroups/g/messages/n/versions/1: error: ")
    assert "unknown attribute (colour)" in err
    assert "[import-refused]" in err


def test_rejected_import_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for files in (["good.json", "bad.json"], ["good.json", "cut.json"], ["good.json", "nope.json"]):
        assert run(["import", *files, *DATABASE]) == 2
    assert run(["import", "good.json", "other.json", *DATABASE]) == 2
    assert "conflicting-documents" in capsys.readouterr().err
    assert run(["import", "good.json", *DATABASE, "--dry-run", "--json"]) == 0
    assert "/messagegroups/g" in json.loads(capsys.readouterr().out)["changed"]


@pytest.mark.parametrize("options", [[], [*DATABASE, "--registry", "http://localhost"], ["--database", "mysql://x"]])
def test_exactly_one_target_is_required(options: list[str]) -> None:
    assert run(["import", "good.json", *options]) == 2


def test_import_into_a_registry(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    here = ["--registry", server.base]
    assert run(["import", "good.json", *here]) == 2
    assert "add --token-file FILE" in capsys.readouterr().err
    with_token = [*here, "--token-file", "token"]
    assert run(["import", "bad.json", *with_token]) == 2
    assert capsys.readouterr().err.startswith("bad.json:8:5 ")
    assert run(["import", "good.json", *with_token, "--dry-run"]) == 0
    with server.client() as client:
        assert client.get("/messagegroups").json() == {}
        assert run(["import", "good.json", *with_token]) == 0
        assert client.get("/messagegroups/g/messages/m").json()["createdat"] == "2024-01-01T00:00:00Z"
    assert run(["import", "good.json", "--registry", f"{server.base}/nowhere", "--token-file", "token"]) == 2
    assert "\n/nowhere: error: " in capsys.readouterr().err


def test_unreachable_registry_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", "good.json", "--registry", "http://127.0.0.1:9"]) == 2
    assert "[fetch-failed]" in capsys.readouterr().err
