"""Tables that cannot be read keep no others from being shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.landing.test_table_formats import iceberg_table
from wirebook.cli.app import run
from wirebook.landing.report.show import find_table, first_rows, tables_in
from wirebook.landing.runs.target import Target
from wirebook.problems import WirebookError
from wirebook.spark.views import view_statements


def truncate_log(to: Path, table: str) -> None:
    """Cut the last transaction of a Delta table."""
    log = max((to / table / "_delta_log").glob("*.json"))
    log.write_bytes(log.read_bytes()[:50])


def lose_log(to: Path, table: str) -> None:
    """Delete the first transaction of a Delta table."""
    min((to / table / "_delta_log").glob("*.json")).unlink()


def lose_metadata(to: Path, table: str) -> None:
    Path(iceberg_table(to, table).metadata_location.removeprefix("file://")).unlink()


def lose_manifests(to: Path, table: str) -> None:
    for file in (to / table / "metadata").glob("*.avro"):
        file.unlink()


def cut_file(to: Path, table: str) -> None:
    file = min((to / table).glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:100])


def lose_file(to: Path, table: str) -> None:
    min((to / table).glob("*.parquet")).unlink()


DAMAGE = [
    ("delta", truncate_log),
    ("delta", lose_log),
    ("delta", cut_file),
    ("delta", lose_file),
    ("iceberg", lose_metadata),
    ("iceberg", lose_manifests),
    ("iceberg", cut_file),
    ("iceberg", lose_file),
    ("parquet", cut_file),
]


def land(workspace: Any, table_format: str, **settings: Any) -> None:
    workspace.settings.table_format = table_format
    for number in range(2):
        values = ({"protocol": "X", "t": "abc"[i % 3], "n": number} for i in range(9))
        workspace.write(f"{number}", b"".join(msgspec.json.encode(value) + b"\n" for value in values))
        assert not workspace.land(**settings).problems


@pytest.mark.parametrize(("table_format", "damage"), DAMAGE)
def test_damaged_table_is_named_and_the_others_are_shown(
    workspace: Any, capsys: pytest.CaptureFixture[str], table_format: str, damage: Callable[[Path, str], None]
) -> None:
    land(workspace, table_format)
    damage(workspace.to, "b")
    assert run(["show", str(workspace.to), "--json"]) == 2
    out, err = capsys.readouterr()
    shown = json.loads(out)
    assert {name: table["rows"] for name, table in shown["tables"].items()} == {"a": 6, "c": 6}
    [problem] = shown["problems"]
    assert problem["code"] == "unreadable-table"
    assert problem["message"].startswith("the table 'b' cannot be read: ")
    assert problem["hint"].endswith("; then run the command again")
    assert "the table 'b' cannot be read" in err
    assert run(["show", str(workspace.to)]) == 2
    assert "the table 'b' cannot be read" in capsys.readouterr().err
    assert run(["show", str(workspace.to), "a"]) == 0
    assert run(["show", str(workspace.to), "b"]) == 2
    with pytest.raises(WirebookError, match="unreadable-table: the table 'b' cannot be read"):
        first_rows(find_table(tables_in(workspace.to), "b"), 20)


@pytest.mark.parametrize(("table_format", "damage"), [pair for pair in DAMAGE if pair[1] not in (cut_file, lose_file)])
def test_views_are_made_of_the_other_tables(
    workspace: Any, capsys: pytest.CaptureFixture[str], table_format: str, damage: Callable[[Path, str], None]
) -> None:
    land(workspace, table_format, engine={"columns": {table: {"n": "int32"} for table in "abc"}})
    damage(workspace.to, "b")
    for dialect in ("duckdb", "spark"):
        assert run(["views", str(workspace.to), "--dialect", dialect]) == 2
        out, err = capsys.readouterr()
        assert out.count("VIEW") == 2
        assert "the table 'b' cannot be read" in err
        assert run(["views", str(workspace.to), "a", "--dialect", dialect]) == 0
        assert capsys.readouterr().out.count("VIEW") == 1
        with pytest.raises(WirebookError, match="unreadable-table: the table 'b' cannot be read"):
            view_statements(workspace.to, dialect)


@pytest.mark.parametrize(("table_format", "damage"), DAMAGE)
def test_report_is_written_of_the_other_tables(
    workspace: Any, capsys: pytest.CaptureFixture[str], table_format: str, damage: Callable[[Path, str], None]
) -> None:
    land(workspace, table_format)
    damage(workspace.to, "b")
    assert run(["report", str(workspace.to)]) == 0
    page = Path(capsys.readouterr().out.strip()).read_text()
    assert "1 file of these batches is missing or cannot be read" in page or damage not in (cut_file, lose_file)


@pytest.mark.parametrize(("table_format", "damage"), DAMAGE)
def test_damaged_staging_table_is_named(
    workspace: Any, capsys: pytest.CaptureFixture[str], table_format: str, damage: Callable[[Path, str], None]
) -> None:
    land(workspace, table_format, stage_below=5)
    workspace.write("more", b'{"protocol":"X","t":"d"}\n' * 9)
    workspace.land(stage_below=5)
    damage(workspace.to, "staged")
    assert run(["show", str(workspace.to), "--json"]) == 2
    shown = json.loads(capsys.readouterr().out)
    assert {name: table["rows"] for name, table in shown["tables"].items()} == {"d": 9}
    assert run(["show", str(workspace.to), "a"]) == 2
    [problem] = shown["problems"]
    assert problem["message"].startswith("the table 'staged' cannot be read: ")
    assert problem["message"].endswith("tables with staged rows cannot be read either")


@pytest.mark.parametrize(("table_format", "damage"), DAMAGE)
@pytest.mark.parametrize("table", ["dead_letters", "resolved"])
def test_replay_names_a_damaged_table(
    workspace: Any, table_format: str, damage: Callable[[Path, str], None], table: str
) -> None:
    workspace.settings.table_format = table_format
    for name in "abc":
        workspace.write(name, b'{"protocol":"X","t":"%s"}\n' % name.encode())
        workspace.land(engine={"unknown": ["a", "b", "c"]})
    workspace.replay(engine={"unknown": ["b", "c"]})
    workspace.replay(engine={"unknown": ["c"]})
    damage(workspace.to, table)
    with pytest.raises(WirebookError, match=table) as raised:
        workspace.replay()
    codes = {"broken-target"} if table == "dead_letters" and damage in (cut_file, lose_file) else {"unreadable-table"}
    assert {problem.code for problem in raised.value.problems} == codes
    assert Target(workspace.to).next_batch() == 6
