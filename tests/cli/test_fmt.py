"""`wirebook fmt`: the files that it writes, and those that it leaves unchanged."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest
import yaml

from wirebook.cli.app import run

GROUPS = '{"b": {}, "a": {"envelope": "CloudEvents/1.0", "messagegroupid": "a"}}'
MIXED = f'{{"messagegroups": {GROUPS}, "specversion": "1.0-rc4"}}'


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text(MIXED, "utf-8")
    Path("b.yaml").write_text("messagegroups: {}\n# first\nspecversion: 1.0-rc4\n", "utf-8")


def test_formatted_file_is_not_written_again(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_target_of_a_link_is_written() -> None:
    Path("link.json").symlink_to("a.json")
    assert run(["fmt", "link.json"]) == 0
    assert Path("link.json").is_symlink()
    assert Path("a.json").read_text("utf-8") != MIXED


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("cut.json", '{"messagegroups": ', "syntax-error"),
        ("other.json", '{"openapi": "3.1.0"}', "not-a-registry"),
        ("twice.json", '{"messagegroups": {"g": {}}, "messagegroups": {}}', "duplicate-member"),
        (
            "anchor.yaml",
            "messagegroups:\n  b: &x {envelope: X/1}\n  a: *x\n",
            "not-orderable",
        ),
    ],
)
def test_document_that_cannot_be_reordered_is_unchanged(
    name: str, text: str, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_text(text, "utf-8")
    assert run(["fmt", name]) == 2
    assert Path(name).read_text("utf-8") == text
    assert f"[{code}]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "written"),
    [
        (
            "twice.json",
            '{"messagegroups": {"g": {"epoch": 1, "epoch": 1.0}}, "messagegroups": {"g": {"epoch": 1}}}',
            '{\n  "messagegroups": {\n    "g": {\n      "epoch": 1\n    }\n  }\n}\n',
        ),
        (
            "twice.yaml",
            "messagegroups:\n  g:\n    name: x\n    # again\n    name: x\n    envelope: X/1\n",
            "messagegroups:\n  g:\n    name: x\n    envelope: X/1\n",
        ),
    ],
)
def test_member_that_occurs_twice_is_written_once_and_reported(
    name: str, text: str, written: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_text(text, "utf-8")
    assert run(["fmt", name]) == 0
    assert Path(name).read_text("utf-8") == written
    assert "duplicate-member" in capsys.readouterr().err
    assert run(["fmt", "--check", name]) == 0
    assert "duplicate-member" not in capsys.readouterr().err


def test_other_files_of_a_folder_are_unchanged() -> None:
    Path("package.json").write_text('{"version": "1", "name": "x"}', "utf-8")
    assert run(["fmt", "."]) == 0
    assert Path("package.json").read_text("utf-8") == '{"version": "1", "name": "x"}'


KEPT = {
    "numbers": ("json", '{"messagegroups": {"g": {"a": 1.0, "b": 1E-7, "c": 12345678901234567890123, "d": -0}}}'),
    "texts": ("json", '{"messagegroups": {"g": {"name": "\\u00e4\\ud83d\\ude00\\/\\u2028"}}}'),
    "long texts": ("json", '{"messagegroups": {"g": {"description": "' + "long " * 2000 + '"}}}'),
    "null and empty": ("json", '{"messagegroups": {"g": {"b": null, "a": {}, "c": [], "d": [{}, [1]]}}}'),
    "numbers of YAML": ("yaml", "messagegroups:\n  g:\n    b: 1e3\n    a: 1.0\n    c: 12345678901234567890123\n"),
    "line ends of Windows": ("yaml", "messagegroups:\r\n  b: {}\r\n  # c\r\n  a: {}\r\n"),
    "old line ends": ("yaml", "messagegroups:\r  b: {}\r  a: {}\r"),
    "no last line end": ("yaml", "messagegroups:\n  b: {}\n  a:\n    name: x"),
    "marks of documents": ("yaml", "%YAML 1.2\n---\n# top\nmessagegroups:\n  b: {}\n  a: {}\n...\n"),
    "anchor before its use": ("yaml", "messagegroups:\n  a: &x\n    protocol: KAFKA\n  b: *x\nname: x\n"),
    "merge": ("yaml", "messagegroups:\n  c: &x\n    protocol: KAFKA\n  d:\n    <<: *x\n    a: b\nname: x\n"),
    "blocks": ("yaml", "messagegroups:\n  g:\n    b: >-\n      c\n    description: |\n      b: 1\n\n      a\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_comments_and_values_are_preserved(name: str) -> None:
    """Numbers and texts mean the same to the last digit, lines of YAML stay whole; once is enough."""
    kind, text = KEPT[name]
    file = Path(f"kept.{kind}")
    file.write_bytes(text.encode())
    assert run(["fmt", "--check", str(file)]) == 1
    assert file.read_bytes() == text.encode()
    assert run(["fmt", str(file)]) == 0
    once = file.read_bytes().decode()
    assert run(["fmt", "--check", str(file)]) == 0
    if kind == "json":
        exact = {"parse_int": str, "parse_float": str}
        assert json.loads(once, **exact) == json.loads(text, **exact)
    else:
        assert yaml.safe_load(once) == yaml.safe_load(text)
        assert sorted(once.splitlines()) == sorted(text.splitlines())
        assert set(re.findall(r"\r\n|\r|\n", once)) == set(re.findall(r"\r\n|\r|\n", text))
