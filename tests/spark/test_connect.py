"""Landing and matching over Spark Connect: a server in a process of its own, and a program that is its client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.brokers.spark_connect import connect_server
from tests.spark.test_land_spark import CATALOGUE, FIRST, SECOND, event
from wirebook.problems import WirebookError
from wirebook.spark.session import session

pytestmark = pytest.mark.spark

PROGRAM = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
from wirebook.cli import main
from wirebook.problems import WirebookError
from wirebook.spark import land, land_batch, match, replay, table

folder = Path(sys.argv[1])
catalogue, results = str(folder / "catalogue.json"), {}
command = ["land", str(folder / "source"), "--catalog", catalogue, "--to", str(folder / "command"), "--json"]
for _ in range(2):
    try:
        main(command)
    except SystemExit as exit:
        assert exit.code == 0

def counts(report):
    return [report.read, report.landed, report.dead_lettered, report.skipped]

def failure(call):
    try:
        call()
    except WirebookError as error:
        return error.problems[0].code

spark = SparkSession.builder.getOrCreate()
results["session"] = type(spark).__module__
results["land"] = [counts(land(spark, folder / "source", catalogue, folder / "files")) for _ in range(2)]
results["table"] = table(spark, folder / "files", "/messagegroups/g/messages/seen").count()
results["replay"] = counts(replay(spark, folder / "files", catalogue))
texts = (folder / "source" / "events.jsonl").read_text().splitlines()
frame = spark.createDataFrame([(text, "f", n) for n, text in enumerate(texts)], "value string, f string, n int")
results["match"] = sorted(map(list, match(frame, catalogue).groupBy("outcome").count().collect()))
results["types"] = failure(lambda: match(frame.selectExpr("n as value"), catalogue))
results["frame"] = [counts(land(frame, catalogue, folder / "frame", identity=("f", "n"))) for _ in range(2)]
results["unnamed"] = failure(lambda: land_batch(frame, 0, catalogue, folder / "batches"))

stream = spark.readStream.text(str(folder / "source"))
results["stream"] = failure(lambda: land(stream, catalogue, folder / "stream"))
results["started"] = (folder / "stream").exists()
matched = match(stream, catalogue).groupBy("outcome").count().writeStream.outputMode("complete").format("memory")
matched.queryName("matched").trigger(availableNow=True).start().awaitTermination()
results["stream match"] = sorted(map(list, spark.table("matched").collect()))
to = str(folder / "batches")

def land_on_the_server(batch, number):
    from wirebook.spark import land_batch

    land_batch(batch, number, catalogue, to, query="events")

writer = stream.writeStream.foreachBatch(land_on_the_server).option("checkpointLocation", str(folder / "checkpoint"))
query = writer.trigger(availableNow=True).start()
query.awaitTermination()
results["batch"] = counts(land_batch(frame, 0, catalogue, to, query="events"))
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server on this machine."""
    with connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


def test_spark_connect_lands_what_a_session_of_this_machine_lands(server: str, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "catalogue.json").write_text(json.dumps(CATALOGUE))
    events = [*map(event, range(100)), event(100, "other"), event(101) | {"data": {"n": "x"}}]
    (tmp_path / "source" / "events.jsonl").write_text("".join(json.dumps(item) + "\n" for item in events))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(
        command, env=os.environ | {"SPARK_REMOTE": server}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    first, second, *_, last = done.stdout.splitlines()
    assert (json.loads(first), json.loads(second)) == (FIRST, SECOND)
    results: dict[str, Any] = json.loads(last)
    assert results == {
        "session": "pyspark.sql.connect.session",
        "land": [[102, 100, 2, 0], [0, 0, 0, 102]],
        "table": 100,
        "replay": [2, 0, 2, 0],
        "match": [["invalid-payload", 1], ["matched", 100], ["unexpected", 1]],
        "types": "frame-columns",
        "frame": [[102, 100, 2, 0], [0, 0, 0, 102]],
        "unnamed": "frame-identity",
        "stream": "frame-identity",
        "started": False,
        "stream match": [["invalid-payload", 1], ["matched", 100], ["unexpected", 1]],
        "batch": [0, 0, 0, 102],
    }


def test_missing_packages_of_spark_connect_name_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "grpc_status.rpc_status", None)
    with pytest.raises(WirebookError, match="missing-extra") as error:
        session()
    assert error.value.problems[0].hint == "pip install 'wirebook[connect]'"
