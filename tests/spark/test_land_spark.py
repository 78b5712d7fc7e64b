"""Landing on Spark: from the command line, on a given session, and by spark-submit."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
import pytest

from wirebook.spark.session import find_java

pytestmark = pytest.mark.spark

CATALOGUE = {
    "specversion": "1.0-rc4",
    "registryid": "test",
    "messagegroups": {
        "g": {
            "messagegroupid": "g",
            "messages": {
                "seen": {
                    "messageid": "seen",
                    "envelope": "CloudEvents/1.0",
                    "envelopemetadata": {
                        "type": {"type": "string", "value": "seen", "required": True},
                        "source": {"type": "uritemplate", "value": "/plants/{plant}", "required": True},
                    },
                    "dataschemaformat": "JsonSchema/draft-07",
                    "dataschema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
                }
            },
        }
    },
}

SUBMITTED = """
import json, sys
from pyspark.sql import SparkSession
from wirebook.spark import land

spark = SparkSession.builder.getOrCreate()
source, catalogue, target = sys.argv[1:]
for _ in range(2):
    report = land(spark, source, catalogue, target)
    print("closing line", json.dumps(report.closing_line()))
"""


def event(number: int, type_: str = "seen") -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": f"{number}",
        "source": f"/plants/p{number % 3}",
        "type": type_,
        "data": {"n": number},
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A catalogue, and events per line: 100 that land, 2 that do not."""
    source = tmp_path / "source"
    source.mkdir()
    (tmp_path / "catalogue.json").write_text(json.dumps(CATALOGUE))
    events = [*map(event, range(100)), event(100, "other"), event(101) | {"data": {"n": "x"}}]
    (source / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))
    return tmp_path


def run(*arguments: str | Path, environment: dict[str, str] | None = None, code: int = 0) -> str:
    """What a program prints; what it says on standard error when another exit code than 0 is expected."""
    command = [str(argument) for argument in arguments]
    done = subprocess.run(command, env=os.environ | (environment or {}), capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def wirebook(environment: dict[str, str], *arguments: str | Path) -> Any:
    return json.loads(run(*PROGRAM, *arguments, "--json", environment=environment))


REMEDY = "complete or replace the file and run again to land the rest"
PROGRAM = (sys.executable, "-c", "from wirebook.cli import main; main()")
FIRST = {
    "read": 102,
    "landed": 100,
    "dead_lettered": 2,
    "skipped": 0,
    "empty": 0,
    "tables": {"g__seen": {"definition": "/messagegroups/g/messages/seen", "rows": 100}},
    "outcomes": {"invalid-payload": 1, "matched": 100, "unexpected": 1},
}
SECOND = {"read": 0, "landed": 0, "dead_lettered": 0, "skipped": 102, "empty": 0, "tables": {}, "outcomes": {}}


def test_command_line_lands_and_shows(folder: Path, one_java: dict[str, str]) -> None:
    land = ("land", folder / "source", "--catalog", folder / "catalogue.json", "--to", folder / "tables")
    assert wirebook(one_java, *land, "--dry-run") == FIRST
    assert not (folder / "tables").exists()
    assert wirebook(one_java, *land) == FIRST
    assert wirebook(one_java, *land) == SECOND
    assert wirebook(one_java, "show", folder / "tables")["tables"] == {
        "g__seen": {"definition": "/messagegroups/g/messages/seen", "rows": 100},
        "dead_letters": {"definition": None, "rows": 2},
    }
    shown = wirebook(one_java, "show", folder / "tables", "g__seen", "--rows", "2")
    assert [(row["_line"], row["ctx_plant"], row["n"]) for row in shown["first"]] == [(1, "p0", 0), (2, "p1", 1)]
    rows = pq.read_table(folder / "tables" / "g__seen", partitioning=None)
    assert Counter(rows["n"].to_pylist()) == Counter(range(100))
    pinned = {path.stem for path in (folder / "tables" / "_wirebook" / "catalogues").iterdir()}
    assert set(rows["_catalogue"].to_pylist()) == pinned
    (folder / "source" / "events.jsonl").write_text(json.dumps(event(0)) + "\n")
    assert "events.jsonl: error: 'events.jsonl' has changed since it landed" in run(
        *PROGRAM, *land, environment=one_java, code=2
    )
    assert "[unknown-table]; did you mean 'g__seen'?" in run(*PROGRAM, "show", folder / "tables", "g_seen", code=2)
    assert "[no-target]" in run(*PROGRAM, "show", folder / "source", code=2)


def test_incomplete_file_is_reported_by_each_run_on_spark(folder: Path, one_java: dict[str, str]) -> None:
    """Without Spark, the same problem is printed."""
    lines = b"".join(json.dumps(event(number)).encode() + b"\n" for number in range(1000, 1500))
    whole = gzip.compress(lines)
    (folder / "source" / "cut.gz").write_bytes(whole[: len(whole) // 2])
    land = ("land", folder / "source", "--catalog", folder / "catalogue.json", "--no-report")

    def errors(to: str, *options: str) -> list[str]:
        printed = run(*PROGRAM, *land, "--to", folder / to, *options, environment=one_java, code=2)
        return [line for line in printed.splitlines() if ": error: " in line]

    first = errors("tables")
    assert [line.endswith("[truncated-file]; " + REMEDY) for line in first] == [True]
    assert errors("tables") == first  # without Spark: nothing is read
    assert errors("local", "--local") == first
    (folder / "source" / "cut.gz").write_bytes(whole)
    wirebook(one_java, *land, "--to", folder / "tables")
    rows = pq.read_table(folder / "tables" / "g__seen", partitioning=None)
    assert Counter(rows["n"].to_pylist()) == Counter([*range(100), *range(1000, 1500)])


@pytest.mark.parametrize("form", ["parquet", "delta", "iceberg"])
def test_landing_without_spark_writes_the_same_files(folder: Path, one_java: dict[str, str], form: str) -> None:
    land = ("land", folder / "source", "--catalog", folder / "catalogue.json", "--format", form)
    assert wirebook(one_java, *land, "--to", folder / "tables") == FIRST
    assert wirebook({}, *land, "--to", folder / "local", "--local") == FIRST
    written = [
        sorted(
            (file.relative_to(folder / to).parent, file.read_bytes())
            for file in (folder / to).glob("[!_]*/**/*.parquet")
        )
        for to in ("tables", "local")
    ]
    assert len(written[0]) == 2
    assert written[0] == written[1]


FAULTS = """
import logging, os, signal, sys, time
import wirebook.landing.job as job
from wirebook.cli.app import run
logging.getLogger().addHandler(logging.NullHandler())  # as main does: libraries log what the command reports
def raising(document, options):
    raise ValueError("one\\ntwo")
def dying(document, options):
    os.kill(os.getpid(), signal.SIGKILL)
def orphaned(document, options):
    java = int(open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[1])
    os.kill(java, signal.SIGKILL)
    time.sleep(60)
for job.engine_for in raising, dying, orphaned:
    print(run(sys.argv[1:]))
"""


def test_worker_fault_is_one_line(folder: Path) -> None:
    land = ("land", folder / "source", "--catalog", folder / "catalogue.json", "--to", folder / "tables")
    command = [str(argument) for argument in (sys.executable, "-c", FAULTS, *land)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    hint = "run the command again to continue where it stopped; WIREBOOK_SPARK_LOG=error shows Spark's messages"
    assert done.stdout == "2\n2\n2\n"
    progress = re.compile(r"(starting Spark|landing)\b.*\(\d+ s\)")
    assert [line for line in done.stderr.splitlines() if not progress.fullmatch(line)] == [
        "error: ValueError: one\\ntwo (while reading 'events.jsonl' from line 1) [internal-error]; "
        "set WIREBOOK_DEBUG=1 to print a traceback",
        "error: Spark stopped: a Python worker ended unexpectedly; it was killed or ran out of memory "
        f"[spark-failed]; {hint}",
        f"error: Spark stopped: its Java process ended or cannot be reached [spark-failed]; {hint}",
    ]


@pytest.mark.faults
def test_spark_submit_lands_on_its_own_session(folder: Path) -> None:
    (folder / "job.py").write_text(SUBMITTED)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    environment = find_java().environment | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(submit.parents[1]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    arguments = [folder / "job.py", folder / "source", folder / "catalogue.json", folder / "tables"]
    out = run(submit, "--master", "local[2]", "--conf", "spark.ui.enabled=false", *arguments, environment=environment)
    closing = [line.removeprefix("closing line ") for line in out.splitlines() if line.startswith("closing line")]
    assert [json.loads(line) for line in closing] == [FIRST, SECOND]


def test_command_line_replays(folder: Path, one_java: dict[str, str]) -> None:
    tables = folder / "tables"
    wirebook(one_java, "land", folder / "source", "--catalog", folder / "catalogue.json", "--to", tables)
    (folder / "corrected.json").write_text(json.dumps(CATALOGUE).replace('"value": "seen"', '"value": "{kind}"'))
    replay = ("replay", tables, "--catalog", folder / "corrected.json")
    assert "[unknown-code]; did you mean 'payload-invalid'?" in run(
        *PROGRAM, *replay, "--code", "payload-invald", environment=one_java, code=2
    )
    assert wirebook(one_java, *replay, "--code", "mismatch") == SECOND | {
        "read": 1,
        "dead_lettered": 0,
        "landed": 1,
        "skipped": 1,
        "tables": {"g__seen": {"definition": "/messagegroups/g/messages/seen", "rows": 1}},
        "outcomes": {"matched": 1},
    }
