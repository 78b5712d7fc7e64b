"""Landing on a cluster whose workers share no folder with the driver: through an object store alone.

The program runs by spark-submit, and as a client of a Spark Connect server.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from brokers import KafkaBroker, NatsServer

from tests.brokers.spark_cluster import Cluster, spark_cluster
from tests.landing.s3 import CREDENTIALS
from tests.landing.workspace import Workspace
from tests.spark.stream_commands import Watched, started
from tests.spark.stream_commands import run as run_stream
from tests.spark.test_jetstream import Plants
from tests.spark.test_kafka_stream import Topic
from tests.spark.test_land_spark import CATALOGUE, event
from wirebook.landing.job import land
from wirebook.landing.stores.locations import location_of
from wirebook.spark.jars import KAFKA, class_path, locked_jars

pytestmark = [pytest.mark.faults, pytest.mark.spark, pytest.mark.xdist_group("servers")]

FILES, EVENTS = 40, 50
PROGRAM = """
import json, sys
from wirebook.cli import main

code = 0
for command in json.loads(sys.argv[1]):
    try:
        main(command)
    except SystemExit as exit:
        code = exit.code
    print(f"exit code {code}", flush=True)

from pyspark.sql import SparkSession

def places(batches):
    import sys, wirebook, pyarrow
    for batch in batches:
        yield pyarrow.RecordBatch.from_pydict({"place": [f"{sys.prefix} {wirebook.__file__}"]})

spark = SparkSession.builder.getOrCreate()
rows = spark.range(0, 4, 1, 4).mapInArrow(places, "place string").collect()
print(json.dumps(sorted({row["place"] for row in rows})))
sys.exit(code)
"""


def land_command(source: Any, catalogue: Path, to: Any) -> list[str]:
    return ["land", str(source), "--catalog", str(catalogue), "--to", str(to), "--json", "--no-report"]


def submit(cluster: Cluster, environment: Path, program: Path, commands: str) -> subprocess.CompletedProcess[str]:
    """Run a program by spark-submit, which prints both streams of Python on standard output."""
    return cluster.submit(environment, program, commands)


def connect(cluster: Cluster, environment: Path, program: Path, commands: str) -> subprocess.CompletedProcess[str]:
    """Run a program as a client of a Spark Connect server, with both streams on standard output."""
    with cluster.connect_server(environment) as url:
        return subprocess.run(
            [sys.executable, program, commands],
            env=os.environ | {"SPARK_REMOTE": url},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


@pytest.mark.parametrize("run", [submit, connect])
def test_workers_without_a_shared_folder(
    tmp_path: Path,
    bucket: str,
    worker_environment: Path,
    run: Callable[[Cluster, Path, Path, str], subprocess.CompletedProcess[str]],
) -> None:
    """All of a source lands once, as with --local; folders that workers do not see are one error each."""
    local, catalogue, program = tmp_path / "local", tmp_path / "catalogue.json", tmp_path / "program.py"
    local.mkdir()
    catalogue.write_text(json.dumps(CATALOGUE))
    program.write_text(PROGRAM)
    source = location_of(f"{bucket}/raw")
    for number in range(FILES):
        events = [event(number * EVENTS + n, "other" if n == 7 else "seen") for n in range(EVENTS)]
        data = "".join(json.dumps(item) + "\n" for item in events).encode()
        name, data = (f"{number}.jsonl.gz", gzip.compress(data)) if number % 10 == 0 else (f"{number}.jsonl", data)
        (source / name).write_bytes(data)
        (local / name).write_bytes(data)
    commands = [
        land_command(source, catalogue, f"{bucket}/tables"),
        land_command(source, catalogue, f"{bucket}/tables"),
        land_command(local, catalogue, f"{bucket}/unread"),
        land_command(source, catalogue, f"{bucket}/unread"),
        land_command(source, catalogue, tmp_path / "unwritten"),
    ]
    variables = CREDENTIALS | {"AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"]}
    with spark_cluster(tmp_path, variables) as cluster:
        done = run(cluster, worker_environment, program, json.dumps(commands))
        log = cluster.log()
    assert done.returncode == 2, f"{done.stdout}\n{done.stderr}\n{log}"
    printed = done.stdout.splitlines()
    assert [line for line in printed if "exit code" in line] == [f"exit code {number}" for number in (0, 0, 2, 0, 2)]
    first, second, third = (json.loads(line) for line in printed if line.startswith("{"))
    assert (first["read"], first["dead_lettered"]) == (third["read"], FILES) == (FILES * EVENTS, FILES)
    assert (second["read"], second["skipped"]) == (0, FILES * EVENTS)
    errors = [line for line in printed if "[not-shared]" in line]
    assert ["workers do not see 40 of the source files" in line for line in errors] == [True, False]
    assert f"a worker cannot access '{tmp_path}/unwritten/" in errors[1]
    assert all("object store" in line for line in errors)
    assert "never-shown" not in f"{done.stdout}{done.stderr}{log}"
    assert not [*(tmp_path / "unwritten").rglob("*.parquet"), *(tmp_path / "unwritten").glob("_wirebook/batches/*")]

    places = json.loads(printed[-1])  # both executors ran, with nothing but the packed environment
    assert len(places) == 2
    assert all(place.startswith("/mnt/work/") and "/environment/lib/" in place for place in places)

    land(str(source), catalogue, f"{bucket}/local")
    expected = rows(tmp_path, f"{bucket}/local")
    assert len({(row["_file"], row["_line"]) for row in expected}) == len(expected) == FILES * EVENTS
    assert rows(tmp_path, f"{bucket}/tables") == rows(tmp_path, f"{bucket}/unread") == expected


def test_streams_over_spark_connect(tmp_path: Path, bucket: str, worker_environment: Path, kafka: KafkaBroker) -> None:
    """A topic and a stream of JetStream land through a server that has the connector and no Wirebook, by workers that
    have the packed environment. The client is killed between two runs."""
    nats = NatsServer("--jetstream", "--store_dir", str(tmp_path / "jetstream"))
    try:
        topic, plants = Topic(kafka, new_folder(tmp_path, "topic")), Plants(nats, new_folder(tmp_path, "plants"))
        topic.send_events(range(200))
        plants.send(range(100))
        variables = CREDENTIALS | {"AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"]}
        jars = [Path(jar) for jar in class_path(locked_jars(KAFKA)).split(os.pathsep)]
        of_topic = [*topic.arguments("--max-per-batch", "70"), "--format", "delta", "--to", f"{bucket}/topic"]
        of_plants = [*plants.arguments("--max-per-batch", "70"), "--format", "delta", "--to", f"{bucket}/plants"]
        with spark_cluster(tmp_path, variables) as cluster, cluster.connect_server(worker_environment, jars) as url:
            environment = {"SPARK_REMOTE": url}
            try:
                with started(environment, [*of_topic, "--interval", "0"]) as process:
                    stream = Watched(process)
                    stream.wait_for(lambda: stream.read() >= 70)
                    process.kill()
                lines, _ = run_stream(environment, [*of_topic, "--once"])
                assert 0 < lines[-1]["read"] <= 130
                lines, _ = run_stream(environment, [*of_plants, "--available-now"])
                assert [line["read"] for line in lines] == [70, 30, 100]
            except BaseException:
                print(cluster.log())
                raise
    finally:
        nats.kill()
    sequences = {("nats:PLANTS", number) for number in plants.acknowledged}
    for target, expected in (("topic", topic.acknowledged), ("plants", sequences)):
        landed = Counter((row["_file"], row["_line"]) for row in rows(tmp_path, f"{bucket}/{target}"))
        assert landed == dict.fromkeys(expected, 1)


def new_folder(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def rows(folder: Path, target: str) -> list[dict[str, Any]]:
    """What a reader of Delta Lake finds in a target, by file and line."""
    return Workspace(folder, target).rows()
