"""`wirebook fmt` as a command: what it writes, and what it leaves alone."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from wirebook.cli.app import run

GROUPS = '{"b": {}, "a": {"envelope": "CloudEvents/1.0", "messagegroupid": "a"}}'
MIXED = f'{{"messagegroups": {GROUPS}, "specversion": "1.0-rc4"}}'


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text(MIXED, "utf-8")
    Path("b.yaml").write_text("messagegroups: {}\n# first\nspecversion: 1.0-rc4\n", "utf-8")


def test_it_writes_once(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.json").chmod(0o640)
    assert run(["fmt", "--check", "a.json", "b.yaml"]) == 1
    assert Path("a.json").read_text("utf-8") == MIXED
    assert capsys.readouterr().out == "not in order: a.json\nnot in order: b.yaml\n"
    assert run(["fmt", "a.json", "b.yaml"]) == 0
    assert Path("b.yaml").read_text("utf-8") == "# first\nspecversion: 1.0-rc4\nmessagegroups: {}\n"
    assert (
        Path("a.json")
        .read_text("utf-8")
        .startswith('{\n  "specversion": "1.0-rc4",\n  "messagegroups": {\n    "a": {\n')
    )
    assert json.loads(Path("a.json").read_text("utf-8")) == json.loads(MIXED)
    assert stat.S_IMODE(Path("a.json").stat().st_mode) == 0o640
    assert run(["fmt", "--check", "."]) == 0


def test_a_link_stays_a_link() -> None:
    Path("link.json").symlink_to("a.json")
    assert run(["fmt", "link.json"]) == 0
    assert Path("link.json").is_symlink()
    assert Path("a.json").read_text("utf-8") != MIXED


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("cut.json", '{"messagegroups": ', "syntax-error"),
        ("other.json", '{"openapi": "3.1.0"}', "not-a-registry"),
        ("twice.json", '{"messagegroups": {}, "messagegroups": {}}', "duplicate-member"),
        (
            "anchor.yaml",
            "messagegroups:\n  b: &x {envelope: X/1}\n  a: *x\n",
            "not-orderable",
        ),
    ],
)
def test_what_cannot_be_put_in_order_is_left(
    name: str, text: str, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_text(text, "utf-8")
    assert run(["fmt", name]) == 2
    assert Path(name).read_text("utf-8") == text
    assert f"[{code}]" in capsys.readouterr().err


def test_other_files_of_a_folder_are_left() -> None:
    Path("package.json").write_text('{"version": "1", "name": "x"}', "utf-8")
    assert run(["fmt", "."]) == 0
    assert Path("package.json").read_text("utf-8") == '{"version": "1", "name": "x"}'
