"""Output on a terminal: colours, and tables that never break an XID."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
BIKES = EXAMPLES / "bikes.xreg.json"
CAPTURES = str(EXAMPLES / "captures")
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
LONG = "/messagegroups/com.example.logistics.warehouse/messages/com.example.logistics.warehouse.pallet.moved"


def on_terminal(*arguments: str, **environment: str) -> str:
    """What a command prints on a terminal, both streams."""
    main, side = pty.openpty()
    clean = {name: text for name, text in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-c", "from wirebook.cli import main; main()", *arguments]
    env = clean | {"TERM": "xterm-256color", "COLUMNS": "80"} | environment
    with subprocess.Popen(command, stdin=side, stdout=side, stderr=side, env=env):
        os.close(side)
        text = b""
        try:
            while block := os.read(main, 1 << 16):
                text += block
        except OSError:  # Linux: the other side is closed
            pass
    os.close(main)
    return text.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"FORCE_COLOR": "0"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
    ],
)
def test_terminal_has_colours_unless_disabled(environment: dict[str, str], coloured: bool) -> None:
    text = on_terminal("match", CAPTURES, "--catalog", str(BIKES), **environment)
    assert ("\x1b[32mmatched" in text) is coloured
    assert ("\x1b" in text) is coloured


@pytest.mark.parametrize("forced", ["", "1"])
def test_pipe_has_colours_only_if_forced(forced: str) -> None:
    command = [
        sys.executable,
        "-c",
        "from wirebook.cli import main; main()",
        "explain",
        CAPTURES,
        "--catalog",
        str(BIKES),
    ]
    environment = {name: text for name, text in os.environ.items() if name != "NO_COLOR"} | {"FORCE_COLOR": forced}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ("\x1b[31mWRONG\x1b[0m" in done.stdout) is bool(forced)


def test_severity_is_coloured(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(BIKES.read_text().replace("CloudEvents/1.0", "CloudEvents 1.0"))
    assert "\x1b[31merror\x1b[0m" in on_terminal("lint", str(tmp_path / "a.json"))
    assert "\x1b[31merror\x1b[0m" in on_terminal("match", "missing", "--catalog", str(BIKES))


@pytest.mark.parametrize("columns", ["80", "40", "200"])
def test_xid_is_never_folded(columns: str, tmp_path: Path) -> None:
    group, message = LONG.split("/")[2], LONG.split("/")[4]
    definition = {"protocol": "KAFKA", "protocoloptions": {"topic": "pallets.{site}"}}
    catalogue = {"specversion": "1.0-rc4", "messagegroups": {group: {"messages": {message: definition}}}}
    (tmp_path / "catalogue.json").write_text(json.dumps(catalogue))
    topics = ["pallets.lund", "pallet.lund " + "with a long name " * 10]
    lines = [json.dumps({"protocol": "KAFKA", "topic": topic}) for topic in topics]
    (tmp_path / "capture.jsonl").write_text("\n".join(lines))
    for command in ("match", "explain"):
        arguments = [command, str(tmp_path / "capture.jsonl"), "--catalog", str(tmp_path / "catalogue.json")]
        text = ESCAPE.sub("", on_terminal(*arguments, COLUMNS=columns))
        assert text.count(LONG) == 2, text


def test_lines_fold_between_words(tmp_path: Path) -> None:
    text = ESCAPE.sub("", on_terminal("match", CAPTURES, "--catalog", str(BIKES)))
    outcomes = json.loads(BIKES.read_text())["messagegroups"]
    xids = [
        f"/messagegroups/{group}/messages/{name}" for group, outcome in outcomes.items() for name in outcome["messages"]
    ]
    assert all(len(line) <= 80 for line in text.splitlines()), text
    assert any(xid in text for xid in xids)
