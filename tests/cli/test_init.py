"""`wirebook init`: prompts and options; its catalogue passes lint and its message matches."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from wirebook.cli.app import run


def test_yes_writes_a_catalogue_that_passes_lint_and_a_message_that_matches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog, capture = tmp_path / "new" / "orders.xreg.json", tmp_path / "new" / "orders.jsonl"
    assert run(["init", str(tmp_path / "new"), "--yes"]) == 0
    assert run(["lint", str(catalog), "--fail-on", "warning"]) == 0
    capsys.readouterr()
    assert run(["match", str(capture), "--catalog", str(catalog), "--json"]) == 0
    assert '"outcome": "matched"' in capsys.readouterr().out.replace('":"', '": "')


def test_existing_file_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "orders.jsonl").write_text("mine")
    assert run(["init", str(tmp_path), "--yes"]) == 2
    assert "already exists" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["orders.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--yes", "--protocol", "kafak"], "did you mean 'KAFKA'?"),
        (["--yes", "--protocol", "none", "--envelope", "none"], "needs an envelope or a protocol"),
        ([], "--protocol is required"),
    ],
)
def test_invalid_choice_is_rejected(
    arguments: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", str(tmp_path), *arguments]) == 2
    assert text in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_terminal_prompts_for_choices(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from wirebook.cli import main; main()", "init", str(tmp_path), "--format", "avro"]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        os.write(ours, b"mqtt/5.0\nnothing\ncloudevents/1.0\n")
        output = process.communicate(timeout=120)[0].decode()
    os.close(theirs)
    os.close(ours)
    assert process.returncode == 0, output
    assert output.count("Envelope (") == 2, "an unknown answer is asked for again"
    assert '"MQTT/5.0"' in (tmp_path / "orders.xreg.json").read_text()
