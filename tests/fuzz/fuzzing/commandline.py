"""Fuzz the command line: any files and arguments. It exits with 0, 1 or 2, and reports errors without a traceback."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from synthesis.dice import Dice

from fuzzing import documents, junk, messages, stock
from fuzzing.case import Input, check
from wirebook.cli.app import run as run_wirebook
from wirebook.problems import CODES, Problem

COMMANDS = ("lint", "fmt", "upgrade", "match", "explain", "build", "transform", "show", "report")
WORDS = (
    "--json",
    "--check",
    "--format",
    "sarif",
    "--full",
    "--failed",
    "--line",
    "--limit",
    "--endpoint",
    "--set",
    "--data",
    "--for",
    "--mode",
    "--as",
    "--to",
    "--nope",
    "-",
    "--",
    "--catalog",
)
CODE = re.compile(r"\b(internal-error|Traceback \(most recent)")
SAID = re.compile(r"[a-z]+(?:-[a-z]+)+")


def make(dice: Dice) -> Input:
    command = dice.choice(COMMANDS)
    kind = documents.make_yaml if dice.random() < 0.3 else documents.make
    document = kind(dice)
    name, _ = dice.choice(stock.documents()[:20])
    good = junk.json_of(dict(stock.documents())[name])
    capture = messages.make_file(dice)
    files = {
        document["name"]: document["text"] if dice.random() < 0.4 else good,
        f"c/{capture['name']}": capture["bytes"],
        "data.json": junk.noise(dice),
    }
    catalogue = document["name"] if dice.random() < 0.9 else dice.choice(("nope.json", "c", ".", "", "\0", "x" * 300))
    return {
        "files": files,
        "arguments": [command, *_arguments(command, catalogue, good, dice)],
        "stdin": junk.noise(dice),
    }


def _arguments(command: str, catalogue: str, document: bytes, dice: Dice) -> list[str]:
    xids = _definitions(document)
    xid = dice.choice([*xids, "nope", "/messagegroups/x/messages/y"])
    capture = dice.choice(("c", "c", "c", "-", "nope", "data.json"))
    value = dice.choice([text for text in junk.VALUES if isinstance(text, str) and "\0" not in text])
    arguments = {
        "lint": [catalogue], "fmt": [catalogue], "upgrade": [catalogue], "match": [capture, "--catalog", catalogue],
        "explain": [capture, "--catalog", catalogue], "show": ["c"], "report": ["c"],
        "build": [xid, "--catalog", catalogue, "--set", f"{dice.choice(('a', 'b', ''))}={value}", "--data", dice.choice(("data.json", "-", "nope"))],
        "transform": [capture, "--catalog", catalogue, "--to", xid, "--set", value],
    }[command]  # fmt: skip
    for _ in range(dice.choice((0, 0, 1, 1, 3))):
        arguments.insert(dice.randint(0, len(arguments)), dice.choice((*WORDS, value)))
    return [text.encode("utf-8", "replace").decode() for text in arguments]


def _definitions(document: bytes) -> list[str]:
    parsed = json.loads(document)
    groups = parsed.get("messagegroups", {}) if isinstance(parsed, dict) else {}
    return [
        f"/messagegroups/{group}/messages/{name}"
        for group, members in groups.items()
        for name in members.get("messages", {})
    ]


def leads_outside(argument: str) -> bool:
    """Might it name anything but the files of the case: another folder of this machine, or an address?"""
    value = argument.rpartition("=")[2]
    is_xid = value.startswith(("/messagegroups/", "/endpoints/"))
    return ".." in value or "://" in value or value.startswith("~") or (value.startswith("/") and not is_xid)


def run(case: Input) -> Iterator[Any]:
    if any(map(leads_outside, case["arguments"])):
        return
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, contextlib.chdir(folder):
        for name, content in case["files"].items():
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_bytes(content)
        code, out, err = _called(case["arguments"], case["stdin"])
        check(code in (0, 1, 2), f"the exit code is {code}")
        check(not CODE.search(err), f"a fault of its own: {err[-500:]}")
        check(case["arguments"][0] == "fmt" or not CODE.search(out), f"a fault of its own: {out[-500:]}")
        written = {
            name: Path(name).read_bytes() for name, old in case["files"].items() if Path(name).read_bytes() != old
        }
        check(not written or case["arguments"][0] == "fmt", f"{sorted(written)} changed")
        yield [Problem(code_name) for code_name in SAID.findall(err + out) if code_name in CODES]
        yield code, _settled(out, folder), _settled(err, folder), written


def _called(arguments: list[str], stdin: bytes) -> tuple[int, str, str]:
    out, err, stdin_before = _Stream(), _Stream(), sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), errors="backslashreplace")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run_wirebook(arguments)
    finally:
        sys.stdin = stdin_before
    return code, out.text(), err.text()


class _Stream(io.TextIOWrapper):
    """Standard output or error as `main` sets them up."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)

    def text(self) -> str:
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined, no-any-return]


RANDOM = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|20\d\d-\d\d-\d\dT[\d:.]+Z|capture-\w+"
)


def _settled(text: str, folder: str) -> str:
    """Without what is new each time: ids and times of what is built, names of temporary files."""
    return RANDOM.sub("~", text.replace(folder, "."))
