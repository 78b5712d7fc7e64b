"""The default of `--catalog`: the environment, then `[tool.wirebook]` of the closest pyproject.toml."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from wirebook.cli.app import run

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
BIKES = EXAMPLES / "bikes.xreg.json"
CAPTURE = str(EXAMPLES / "captures" / "kafka.jsonl")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a catalogue; the working folder is below it."""
    shutil.copy(BIKES, tmp_path / "bikes.xreg.json")
    (tmp_path / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "src" / "deep")
    monkeypatch.delenv("WIREBOOK_CATALOG", raising=False)
    return tmp_path


def matched(capsys: pytest.CaptureFixture[str]) -> bool:
    code = run(["match", CAPTURE])
    return code == 0 and "2 matched" in capsys.readouterr().err


@pytest.mark.parametrize(
    "table",
    [
        'catalog = "bikes.xreg.json"',
        'catalog = ["bikes.xreg.json"]',
        f'catalog = "{BIKES}"',
        'catalog = "."',
    ],
)
def test_catalogue_of_pyproject_is_relative_to_its_folder(
    table: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "pyproject.toml").write_text(f"[tool.wirebook]\n{table}\n")
    (project / "src" / "pyproject.toml").write_text("[tool.other]\n")  # has no table: the search goes on
    assert matched(capsys)


def test_catalogue_of_the_environment_is_used(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WIREBOOK_CATALOG", "../../bikes.xreg.json")
    assert matched(capsys)


def test_option_precedes_environment_precedes_pyproject(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "pyproject.toml").write_text('[tool.wirebook]\ncatalog = "bikes.xreg.json"\n')
    monkeypatch.setenv("WIREBOOK_CATALOG", "missing.json")
    assert run(["match", CAPTURE]) == 2
    assert "missing.json" in capsys.readouterr().err
    assert run(["match", CAPTURE, "--catalog", str(BIKES)]) == 0
    monkeypatch.setenv("WIREBOOK_CATALOG", "")
    assert matched(capsys)


def test_closest_table_is_used(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text('[tool.wirebook]\ncatalog = "missing.json"\n')
    (project / "src" / "pyproject.toml").write_text('[tool.wirebook]\ncatalog = "../bikes.xreg.json"\n')
    assert matched(capsys)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.wirebook]\ncatalogue = 'a'\nx = 1\n", "unknown keys: 'catalogue', 'x'; allowed: 'catalog'"),
        ("[tool.wirebook]\ncatalog = 1\n", "tool.wirebook.catalog must be a string or an array of strings; got 1"),
        ("[tool.wirebook]\ncatalog = []\n", "tool.wirebook.catalog must be a string or an array of strings; got []"),
        ("[tool]\nwirebook = 'a'\n", "tool.wirebook must be a table; got 'a'"),
        ("[tool.wirebook\n", "is not valid TOML: "),
        ("[tool.wirebook]\n", "no catalogue: --catalog is missing"),
        ("", "add --catalog CATALOGUE, set WIREBOOK_CATALOG, or add 'catalog' to [tool.wirebook]"),
    ],
)
def test_unusable_pyproject_is_an_error(
    text: str, message: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "pyproject.toml").write_text(text)
    assert run(["match", CAPTURE]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "bad-setting" in err


def test_help_needs_no_catalogue(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text("[tool.wirebook\n")
    assert run(["match", "--help"]) == 0
    assert "WIREBOOK_CATALOG" in capsys.readouterr().out
