"""Hadoop's file system of S3 beside Wirebook: checkpoints of streams, and Spark's own reader of Delta Lake.

The reader, and the file system with the whole SDK of AWS, are fetched from Maven Central (640 MB): they are tested only
when WIREBOOK_SPARK_PACKAGES is set.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from brokers import LOCK

from tests.brokers.hive_metastore import GROUP as HADOOP_S3
from tests.spark.test_land_spark import CATALOGUE, event
from wirebook.landing.stores.locations import location_of
from wirebook.spark.jars import class_path, locked_jars

pytestmark = [pytest.mark.faults, pytest.mark.spark, pytest.mark.xdist_group("servers")]

PACKAGES = {
    "spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.4.2,io.delta:delta-spark_4.1_2.13:4.4.0",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
}
PROGRAM = """
import json, os, signal, sys
from wirebook.spark import land
from wirebook.spark.session import session
from wirebook.spark.views import view_statements
from wirebook.landing.report.show import tables_in
from wirebook.landing.stores.locations import location_of

source, catalogue, to, jars, dies = sys.argv[1:]
settings = json.loads(jars) | {
    "spark.hadoop.fs.s3a.endpoint": os.environ["AWS_ENDPOINT_URL"],
    "spark.hadoop.fs.s3a.endpoint.region": os.environ["AWS_REGION"],
    "spark.hadoop.fs.s3a.path.style.access": "true",
}
spark = session(cores=2, settings=settings)
stream = spark.readStream.option("maxFilesPerTrigger", 1).text(source)
at = location_of(to) / "_wirebook" / "checkpoint"

import wirebook.spark.job as job
land_batch = job.land_batch

def land_and_die(batch, number, *rest, **options):
    land_batch(batch, number, *rest, **options)
    if number == int(dies):
        os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

job.land_batch = land_and_die
land(stream, catalogue, to, trigger={"availableNow": True}).awaitTermination()
results = {
    "rows": {table.name: table.rows for table in tables_in(to)},
    "checkpoint": sorted({str(path)[len(str(at)) + 1:].split("/")[0] for path, _ in at.below()}),
}
if "spark.sql.extensions" in settings:
    for statement in view_statements(to, "spark", ["g__seen"]):
        spark.sql(statement)
    results["view"] = spark.table("g__seen").selectExpr("count(*)", "count(DISTINCT _file, _line)").collect()[0]
print("found", json.dumps(results))
"""


@pytest.fixture(params=["file system", "packages"])
def jars(request: pytest.FixtureRequest) -> dict[str, str]:
    """The settings by which a session has Hadoop's file system, and with `packages` a reader of Delta Lake."""
    if request.param == "file system":
        jars = class_path(locked_jars(HADOOP_S3, LOCK)).split(os.pathsep)
        return {"spark.jars": ",".join(jars)}  # after those of Spark, some of which are newer
    if "WIREBOOK_SPARK_PACKAGES" not in os.environ:
        pytest.skip("set WIREBOOK_SPARK_PACKAGES to fetch jars")
    return PACKAGES


def run(
    source: Path, catalogue: Path, to: str, jars: dict[str, str], dies: int = -1
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, str(source), str(catalogue), to, json.dumps(jars), str(dies)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def found(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    lines = [line for line in done.stdout.splitlines() if line.startswith("found ")]
    assert lines, done.stderr[-5000:]
    return dict(json.loads(lines[0][6:]))


def test_killed_stream_continues_from_its_checkpoint_in_the_store(
    tmp_path: Path, bucket: str, jars: dict[str, str]
) -> None:
    source, catalogue, to = tmp_path / "source", tmp_path / "catalogue.json", f"{bucket}/lake"
    source.mkdir()
    catalogue.write_text(json.dumps(CATALOGUE))
    for number in range(3):
        events = [event(number * 10 + n) for n in range(10)]
        (source / f"{number}.txt").write_text("".join(json.dumps(item) + "\n" for item in events))
    # What a process leaves behind that is killed while it writes the offsets of the first batch.
    (location_of(to) / "_wirebook" / "checkpoint" / "offsets" / ".0.0d1c-4f.tmp").write_bytes(b"v1\n")
    done = run(source, catalogue, to, jars, dies=1)
    assert done.returncode == -9, done.stderr[-5000:]
    results = found(run(source, catalogue, to, jars))
    assert results["rows"] == {"g__seen": 30}
    assert results.get("view", [30, 30]) == [30, 30]
    assert {"commits", "metadata", "offsets", "sources"} <= {*results["checkpoint"]}
