"""`wirebook demo`, as it is typed: what it lands, what it says, and that what it suggests works."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from wirebook.demo.traffic import messages

PROGRAM = (sys.executable, "-c", "from wirebook.cli import main; main()")

COUNT = 2_000
pytestmark = pytest.mark.spark


def run(*arguments: str | Path, environment: dict[str, str], code: int = 0) -> str:
    """What the command line prints; what it says on standard error when another exit code than 0 is expected."""
    command = [*PROGRAM, *map(str, arguments)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def demo(folder: Path, *more: str, environment: dict[str, str], count: int = COUNT, code: int = 0) -> str:
    return run("demo", "--messages", str(count), "--to", folder, *more, environment=environment, code=code)


class Landed(NamedTuple):
    """A folder where the demonstration has run once, and the line that closed it."""

    folder: Path
    closing: dict[str, Any]


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory, one_java: dict[str, str]) -> Landed:
    folder = tmp_path_factory.mktemp("demo") / "it"
    return Landed(folder, json.loads(demo(folder, "--json", environment=one_java)))


def test_all_messages_land_or_are_dead_letters(landed: Landed) -> None:
    closing = landed.closing
    made = list(messages(COUNT))
    assert (closing["read"], closing["skipped"]) == (COUNT, 0)
    assert closing["dead_lettered"] == sum(each.fault is not None for each in made)
    rows = Counter(each.message_type.definition for each in made if each.fault is None)
    assert {table["definition"]: table["rows"] for table in closing["tables"].values()} == dict(rows)
    outcomes = Counter(each.fault.outcome for each in made if each.fault is not None)
    assert closing["outcomes"] == {"matched": rows.total(), **outcomes}


def test_second_run_lands_nothing(landed: Landed, one_java: dict[str, str]) -> None:
    out = demo(landed.folder, environment=one_java)
    assert f"Nothing new: all {COUNT:,} messages have landed before." in out
    assert "kestrel_orders_placed" in out
    suggested = [shlex.split(line) for line in out.partition("Try next:\n")[2].splitlines() if line.startswith("  ")]
    commands = [words[1:] for words in suggested if words[0] == "wirebook"]
    assert [words[0] for words in commands] == ["show", "show", "lint", "match", "land"]
    for words in commands:
        run(*words, environment=one_java)
    (query,) = (words for words in suggested if words[1] == "-c")
    counted = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    assert "unexpected" in counted


def test_other_size_needs_another_folder(landed: Landed, one_java: dict[str, str]) -> None:
    assert "[foreign-folder]" in demo(landed.folder, environment=one_java, count=10, code=2)
