"""`wirebook registry`: a Resource is locked against clients, and capabilities are reset, in the database.

Spec: core/spec.md#readonly-attribute
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.httpapi.conftest import postgresql as postgresql
from tests.httpapi.postgres import new_database
from tests.httpapi.servers import serving
from wirebook.cli.app import run
from wirebook.httpapi.options import ServerOptions
from wirebook.httpapi.server import open_service

XID = "/messagegroups/g/messages/m"


def test_resource_is_made_read_only_and_writable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db, log = f"sqlite:///{tmp_path / 'r.db'}", tmp_path / "log"
    with serving(db, log) as (server,), server.client() as client:
        assert client.put(XID, json={"name": "one"}).status_code == 201
        meta = client.get(f"{XID}/meta").json()
    assert run(["registry", "readonly", XID, "on", "--db", db]) == 0
    assert run(["registry", "readonly", XID, "on", "--db", db]) == 0
    assert capsys.readouterr().out == f"{XID} is now read-only\n{XID} was already read-only\n"
    with serving(db, log) as (server,), server.client() as client:
        locked = client.get(f"{XID}/meta").json()
        assert (locked["readonly"], locked["epoch"]) == (True, meta["epoch"] + 1)
        for method, path in (("PATCH", ""), ("PUT", ""), ("DELETE", ""), ("PATCH", "/meta"), ("POST", "/versions")):
            answer = client.request(method, XID + path, json={})
            assert (answer.status_code, answer.json()["type"].rpartition("#")[2]) == (400, "readonly"), method
        assert client.get(XID).json()["name"] == "one"
        client.patch(f"{XID}/meta", json={"readonly": False})
        assert client.get(f"{XID}/meta").json() == {**locked, **_urls(client.get(f"{XID}/meta").json())}
    assert run(["registry", "readonly", XID, "off", "--db", db]) == 0
    with serving(db, log) as (server,), server.client() as client:
        assert client.get(f"{XID}/meta").json()["epoch"] == meta["epoch"] + 2
        assert client.patch(XID, json={"name": "two"}).json()["name"] == "two"


def _urls(meta: dict[str, str]) -> dict[str, str]:
    """What differs from server to server."""
    return {name: meta[name] for name in ("self", "defaultversionurl")}


@pytest.mark.parametrize("xid", ["/", "/messagegroups/g", XID, f"{XID}/meta", f"{XID}/versions/1", "/no/g/no/m", "x"])
def test_xid_of_no_resource_is_rejected(xid: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_service(ServerOptions(database=f"sqlite:///{tmp_path / 'r.db'}")):
        pass
    assert run(["registry", "readonly", xid, "on", "--db", f"sqlite:///{tmp_path / 'r.db'}"]) == 2
    assert "not-a-resource" in capsys.readouterr().err


def test_missing_database_is_not_created(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["registry", "readonly", XID, "on", "--db", f"sqlite:///{tmp_path / 'typo.db'}"]) == 2
    assert "the file does not exist" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_database_without_a_registry_stays_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (a)")
    for arguments in (["readonly", XID, "on"], ["capabilities"], ["capabilities", "--reset"]):
        assert run(["registry", *arguments, "--db", f"sqlite:///{path}"]) == 2
        assert "it has no registry" in capsys.readouterr().err
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("other",)]


def test_database_in_use_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = f"sqlite:///{tmp_path / 'r.db'}"
    with serving(db, tmp_path / "log"):
        assert run(["registry", "readonly", XID, "on", "--db", db]) == 2
    assert "database-in-use" in capsys.readouterr().err


LOCKED_OUT = {"available": {"entities": {"mutable": False}}, "flags": [], "pagination": False}


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_reset_restores_default_capabilities(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    db, log = f"sqlite:///{tmp_path / 'r.db'}", tmp_path / "log"
    if database == "postgresql":
        db = new_database(request.getfixturevalue("postgresql"), "locked")
    with serving(db, log) as (server,), server.client() as client:
        assert client.put(XID, json={"name": "one"}).status_code == 201
        default = client.get("/capabilities").json()
        assert client.put("/capabilities", json=LOCKED_OUT).status_code == 200
        for path, status in (("/capabilities", 400), ("/", 405)):
            assert client.patch(path, json={}).status_code == status
        epoch = client.get("/").json()["epoch"]
        if database == "postgresql":  # a running server notices
            _reset_twice(db, capsys)
            assert client.get("/capabilities").json() == default
            assert client.patch(XID, json={"name": "two"}).status_code == 200
    if database == "sqlite":
        _reset_twice(db, capsys)
    with serving(db, log) as (server,), server.client() as client:
        assert client.get("/capabilities").json() == default
        assert client.get("/").json()["epoch"] == epoch + 1
        assert client.patch("/", json={"name": "three"}).status_code == 200
    assert run(["registry", "capabilities", "--db", db]) == 0
    assert json.loads(capsys.readouterr().out) == default


def _reset_twice(db: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["registry", "capabilities", "--reset", "--db", db]) == 0
    assert capsys.readouterr().out.startswith("capabilities reset: available, ")
    assert run(["registry", "capabilities", "--reset", "--db", db]) == 0
    assert capsys.readouterr().out == "the registry already has the default capabilities\n"


def test_reset_of_a_served_file_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = f"sqlite:///{tmp_path / 'r.db'}"
    with serving(db, tmp_path / "log"):
        assert run(["registry", "capabilities", "--reset", "--db", db]) == 2
    assert "database-in-use" in capsys.readouterr().err
    assert run(["registry", "capabilities", "--reset", "--db", f"sqlite:///{tmp_path / 'typo.db'}"]) == 2
    assert "the file does not exist" in capsys.readouterr().err
