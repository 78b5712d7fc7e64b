"""Landing and matching DataFrames on Spark: Kafka's columns, identified rows, streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.httpapi.servers import serving
from tests.spark.test_land_spark import CATALOGUE, event

pytestmark = pytest.mark.spark

PROGRAM = """
import json, sys
from pathlib import Path
import pyarrow.parquet as pq
from wirebook import Catalog
from wirebook.problems import WirebookError
from wirebook.spark import land, land_batch, match, replay
from wirebook.spark.session import session

folder, registry = Path(sys.argv[1]), sys.argv[2]
catalogue, spark = folder / "catalogue.json", session()
events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
results = {}

def kafka(numbers):
    rows = []
    for number in numbers:
        event = events[number]
        headers = [(f"ce_{name}", str(event[name]).encode()) for name in ("specversion", "id", "source", "type")]
        headers.append(("content-type", b"application/json"))
        value = json.dumps(event["data"]).encode()
        rows.append((str(number).encode(), value, "t", number % 2, number // 2, headers, f"note {number}"))
    schema = ("key binary, value binary, topic string, partition int, offset long, "
              "headers array<struct<key: string, value: binary>>, note string")
    return spark.createDataFrame(rows, schema).repartition(3)

def counts(report):
    return [report.read, report.landed, report.dead_lettered, report.skipped]

def rows_of(folder, table):
    return sorted((row["_file"], row["_line"]) for row in pq.read_table(folder / table, partitioning=None).to_pylist())

def failure(call):
    try:
        call()
    except WirebookError as error:
        return error.problems[0].code
    return None

matched = match(kafka(range(102)), str(catalogue)).collect()
results["matched"] = sorted((row["note"], row["outcome"]) for row in matched if row["outcome"] != "matched")
results["notes"] = len({row["note"] for row in matched})
results["taken"] = failure(lambda: match(kafka(range(2)).withColumnRenamed("note", "Outcome"), str(catalogue)))

few = kafka(range(99, 102))
document = json.loads(catalogue.read_text())
for name, given in {"file": catalogue, "loaded": Catalog.load(catalogue), "document": document,
                    "files": [catalogue, folder / "corrected.json"], "registry": registry,
                    "registry and file": [registry, folder / "corrected.json"]}.items():
    results[f"by {name}"] = [row["outcome"] for row in match(few, given).orderBy("note").collect()]

to = folder / "kafka"
results["kafka"] = [counts(land(kafka(numbers), catalogue, to)) for numbers in
                    (range(10, 50), range(10, 50), range(102), range(102))]
results["kafka rows"] = rows_of(to, "g__seen")
results["kafka dead"] = rows_of(to, "dead_letters")
results["twice"] = failure(lambda: land(kafka([*range(102)]).union(kafka([5])), catalogue, folder / "twice"))
results["twice left"] = [path.name for path in (folder / "twice").glob("[!_]*")]

lines = spark.read.text(str(folder / "events.jsonl"))
results["unidentified"] = failure(lambda: land(lines, catalogue, folder / "lines"))
numbered = [(json.dumps(event), "a", n) for n, event in enumerate(events)]
numbered = spark.createDataFrame(numbered, "body string, f string, n int")
results["lines"] = [counts(land(numbered, catalogue, folder / "lines", columns={"value": "body"}, identity=("f", "n")))
                    for _ in range(2)]
results["by URL"] = counts(land(few, registry, folder / "by-url"))
results["files by URL"] = counts(land(spark, folder / "events.jsonl", registry, folder / "by-url"))
results["replayed"] = counts(replay(spark, folder / "lines", folder / "corrected.json"))

source = folder / "stream"
source.mkdir()
for number in range(3):
    (source / f"{number}.txt").write_text("".join(json.dumps(event) + "\\n" for event in events[number * 34:][:34]))
    stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(source))
    query = land(stream, catalogue, folder / "streamed", trigger={"availableNow": True})
    query.awaitTermination()
    query_id = query.id
results["stream"] = [len(rows_of(folder / "streamed", table)) for table in ("g__seen", "dead_letters")]
again = land_batch(lines, 1, catalogue, folder / "streamed", query=query_id)
results["again"] = counts(again)
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, one_java: dict[str, str]) -> dict[str, Any]:
    """What the program prints: 100 events that match, one of an unknown type, and one with an invalid payload."""
    folder = tmp_path_factory.mktemp("frames")
    (folder / "catalogue.json").write_text(json.dumps(CATALOGUE))
    other = json.loads(json.dumps(CATALOGUE["messagegroups"]["g"]["messages"]["seen"]).replace('"seen"', '"other"'))
    corrected = {"messagegroups": {"g": {"messages": {"other": other}}}} | {"specversion": "1.0-rc4"}
    (folder / "corrected.json").write_text(json.dumps(corrected))
    events = [*map(event, range(100)), event(100, "other"), event(101) | {"data": {"n": "x"}}]
    (folder / "events.jsonl").write_text("".join(json.dumps(item) + "\n" for item in events))
    with serving(f"sqlite:///{folder}/registry.db", folder / "log") as (server,), server.client() as client:
        assert client.put("/messagegroups/g", json=CATALOGUE["messagegroups"]["g"]).status_code == 201
        command = [sys.executable, "-c", PROGRAM, str(folder), server.base]
        done = subprocess.run(command, env=os.environ | one_java, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_kafka_frame_matches_with_the_columns_of_the_caller(results: dict[str, Any]) -> None:
    assert results["matched"] == [["note 100", "unexpected"], ["note 101", "invalid-payload"]]
    assert results["notes"] == 102
    assert results["taken"] == "frame-columns"


@pytest.mark.parametrize("given", ["file", "loaded", "document", "files", "registry", "registry and file"])
def test_match_takes_what_a_catalogue_is_loaded_from(results: dict[str, Any], given: str) -> None:
    other = "matched" if given in ("files", "registry and file") else "unexpected"  # the second file has its definition
    assert results[f"by {given}"] == [other, "invalid-payload", "matched"]


def test_kafka_offsets_land_once_whatever_the_order_of_the_frames(results: dict[str, Any]) -> None:
    assert results["kafka"] == [[40, 40, 0, 0], [0, 0, 0, 40], [62, 60, 2, 40], [0, 0, 0, 102]]
    offsets = sorted((f"kafka:t/{number % 2}", number // 2) for number in range(100))
    assert [tuple(row) for row in results["kafka rows"]] == offsets
    assert results["kafka dead"] == [["kafka:t/0", 50], ["kafka:t/1", 50]]


def test_message_that_occurs_twice_in_a_frame_lands_nothing(results: dict[str, Any]) -> None:
    assert results["twice"] == "message-twice"
    assert results["twice left"] == []


def test_rows_need_an_identity_to_land(results: dict[str, Any]) -> None:
    assert results["unidentified"] == "frame-identity"
    assert results["lines"] == [[102, 100, 2, 0], [0, 0, 0, 102]]


def test_land_takes_the_url_of_a_registry(results: dict[str, Any]) -> None:
    assert results["by URL"] == [3, 1, 2, 0]
    assert results["files by URL"] == [102, 100, 2, 0]


def test_dead_letters_of_frames_are_replayed(results: dict[str, Any]) -> None:
    assert results["replayed"] == [2, 1, 1, 0]


def test_stream_lands_each_batch_once(results: dict[str, Any]) -> None:
    assert results["stream"] == [100, 2]
    assert results["again"] == [0, 0, 0, 34]


STORE = """
import json, sys
from pathlib import Path
from wirebook.problems import WirebookError
from wirebook.spark import land
from wirebook.spark.session import session
from wirebook.landing.report.show import tables_in
from wirebook.landing.stores.locations import location_of
from wirebook.spark.checkpoints import checkpoint_url

folder, bucket = Path(sys.argv[1]), sys.argv[2]
catalogue, spark = folder / "catalogue.json", session()
results = {"failures": [], "refused": []}

def run(source, to, **options):
    stream = spark.readStream.text(str(folder / source))
    land(stream, catalogue, to, trigger={"availableNow": True}, **options).awaitTermination()
    return {table.name: table.rows for table in tables_in(to)}

for to, name in ((bucket + "/lake", None), (bucket + "/lake", "orders"), ("a", "../x")):
    try:
        run("one", to, name=name)
    except WirebookError as error:
        problem = error.problems[0]
        results["failures"].append([problem.code, f"{problem.message}; {problem.hint}"])
for checkpoint in (bucket + "/progress", "S3A://user:hidden@bucket/progress", "az://container/progress"):
    try:
        run("one", folder / "none", checkpoint=checkpoint)
    except WirebookError as error:
        results["refused"].append([error.problems[0].code, str(error)])
results["is_created"] = (folder / "none").exists()
spark._jsc.hadoopConfiguration().set("fs.s3a.impl", "org.apache.hadoop.fs.LocalFileSystem")
results["urls"] = [checkpoint_url(spark, url) for url in ("s3://b/x", "S3n://b/x", "hdfs:/x", location_of("s3://b/x"))]
results["store"] = [run("one", bucket + "/lake", checkpoint=folder / "progress") for _ in range(2)]
results["named"] = [run(name, folder / "named", name=name) for name in ("one", "two", "one", "two")]
results["checkpoints"] = sorted(path.name for path in (folder / "named/_wirebook/checkpoints").iterdir())
print(json.dumps(results))
"""


def test_checkpoints_of_streams(tmp_path: Path, bucket: str, one_java: dict[str, str]) -> None:
    (tmp_path / "catalogue.json").write_text(json.dumps(CATALOGUE))
    for first, name in ((0, "one"), (10, "two")):
        (tmp_path / name).mkdir()
        lines = "".join(json.dumps(event(number)) + "\n" for number in range(first, first + 10))
        (tmp_path / name / "a.txt").write_text(lines)
    command = [sys.executable, "-c", STORE, str(tmp_path), bucket]
    done = subprocess.run(command, env=os.environ | one_java, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    (code, unnamed), (_, named), (setting, _) = results["failures"]
    assert (code, setting) == ("unsupported-store", "bad-setting")
    assert f"'s3a{bucket.removeprefix('s3')}/lake/_wirebook/checkpoint': it lacks Hadoop's file system" in unnamed
    assert f"{bucket.removeprefix('s3')}/lake/_wirebook/checkpoints/orders'" in named
    assert "name a folder that later runs see too as the checkpoint, such as '/var/lib/wirebook/orders'" in named
    assert [code for code, _ in results["refused"]] == ["unsupported-store"] * 3
    assert not any("hidden" in text for _, text in results["refused"])
    assert not results["is_created"]
    assert results["urls"] == ["s3a://b/x", "s3a://b/x", "hdfs:/x", "s3a://b/x"]
    assert results["store"] == [{"g__seen": 10}] * 2
    assert [tables["g__seen"] for tables in results["named"]] == [10, 20, 20, 20]
    assert results["checkpoints"] == ["one", "two"]
