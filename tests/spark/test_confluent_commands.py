"""`--confluent` on each command that reads messages: the same message with and without the prefix."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from wirebook.cli.app import run

PREFIX = b"\0\0\0\1\2"
PROTO = 'syntax = "proto3"; message Other { int32 o = 1; } message Order { string id = 1; uint64 total = 2; }'
VALUE = PREFIX + b"\x02\x02" + bytes.fromhex("0a0161" + "10ffffffffffffffffff01")
DEFINITION = {
    "protocol": "KAFKA",
    "protocoloptions": {"topic": "orders"},
    "dataschemaformat": "Protobuf/3",
    "dataschemauri": "/schemagroups/g/schemas/order:Order",
}
CATALOGUE = {
    "specversion": "1.0-rc4",
    "schemagroups": {
        "g": {"schemas": {"order": {"versions": {"1": {"format": "Protobuf/3", "schema": PROTO}}}}},
    },
    "messagegroups": {"g": {"messages": {"order": DEFINITION}}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "c.json").write_text(json.dumps(CATALOGUE))
    record = {"protocol": "KAFKA", "topic": "orders", "value": {"base64": base64.b64encode(VALUE).decode()}}
    (tmp_path / "orders.jsonl").write_text(f"{json.dumps(record)}\n" * 20)
    return tmp_path


def called(capsys: pytest.CaptureFixture[str], *arguments: Any) -> list[dict[str, Any]]:
    """The lines of JSON that a command prints."""
    assert run([*map(str, arguments), "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("option", [[], ["--confluent"]], ids=["without", "with"])
def test_match_and_explain_remove_the_prefix(
    folder: Path, capsys: pytest.CaptureFixture[str], option: list[str]
) -> None:
    given = [folder / "orders.jsonl", "--catalog", folder / "c.json", *option]
    expected = "matched" if option else "undecodable"
    assert {each["outcome"] for each in called(capsys, "match", *given)} == {expected}
    assert {each["outcome"] for each in called(capsys, "explain", *given)} == {expected}


def on_spark(environment: dict[str, str], *arguments: Any) -> dict[str, Any]:
    """The closing line of a command, run as a program."""
    command = [sys.executable, "-c", "from wirebook.cli import main; main()", *map(str, arguments), "--json"]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.spark
def test_land_and_replay_remove_the_prefix(folder: Path, one_java: dict[str, str]) -> None:
    """Landed without it the messages are dead letters; replay is told and lands them."""
    source, catalogue = folder / "orders.jsonl", ["--catalog", folder / "c.json"]
    line = on_spark(one_java, "land", source, *catalogue, "--to", folder / "with", "--confluent", "--no-report")
    assert (line["landed"], line["dead_lettered"]) == (20, 0)
    rows = pq.read_table(folder / "with" / "g__order").to_pylist()
    assert {(row["id"], int(row["total"])) for row in rows} == {("a", 2**64 - 1)}
    line = on_spark(one_java, "land", source, *catalogue, "--to", folder / "without", "--no-report")
    assert (line["landed"], line["dead_lettered"]) == (0, 20)
    line = on_spark(one_java, "replay", folder / "without", *catalogue, "--confluent")
    assert (line["landed"], line["dead_lettered"]) == (20, 0)
    assert pq.read_table(folder / "without" / "g__order").num_rows == 20
