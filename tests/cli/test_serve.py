"""`wirebook serve`: invalid options are rejected before the registry is created."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirebook.cli.app import run

WRONG = {
    "--registryid": ["a b", "", "-a", "x" * 129],
    "--base-path": ["x y", "/a//b", "/a?b", "//"],
    "--base-url": ["nope", "ftp://host/", "http://"],
    "--cors-origin": ["x y", "https://", "https://host/page"],
    "--events-sink": ["nope", "http://"],
    "--events-keep": ["x", "0s"],
    "--trusted-proxy": ["nonsense"],
    "--allow-fetch": ["a b"],
    "--allowed-host": ["a b", "", "host:", "host:0", "host:99999", "https://host", "::1"],
    "--host": ["0.0.0.0"],
}


@pytest.mark.parametrize(("option", "text"), [(option, text) for option, texts in WRONG.items() for text in texts])
def test_invalid_option_is_rejected(option: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "registry.db"
    assert run(["serve", "--port", "0", "--db", f"sqlite:///{file}", option, text]) == 2
    assert "bad-setting" in capsys.readouterr().err
    assert not file.exists()


@pytest.mark.parametrize("db", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///x.db?mode=ro"])
def test_database_without_a_file_is_an_error(
    db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """SQLite would make a temporary database, which nothing is left of when the server ends."""
    monkeypatch.chdir(tmp_path)
    assert run(["serve", "--port", "0", "--db", db]) == 2
    assert "bad-database" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["typo/wirebook.db", "a/b/wirebook.db", "file/wirebook.db"])
def test_missing_folder_of_a_database_is_an_error(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert run(["serve", "--port", "0", "--db", f"sqlite:///./{path}"]) == 2
    error = capsys.readouterr().err
    assert "bad-database" in error
    assert f"the folder '{Path(path).parent}' does not exist" in error
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
