"""Spark's own readers open what was landed: Delta Lake and Iceberg by their connectors.

The connectors are jars that Spark fetches from Maven Central, so this runs only when WIREBOOK_SPARK_PACKAGES is set.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wirebook.spark.session import find_java

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif("WIREBOOK_SPARK_PACKAGES" not in os.environ, reason="set WIREBOOK_SPARK_PACKAGES to fetch jars"),
]

PACKAGES = (
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.xerial:sqlite-jdbc:3.50.3.0",
)
PROGRAM = """
import json, sys
from pyspark.sql import SparkSession

root, packages = sys.argv[1:]
settings = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.jars.packages": packages,
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.catalog.wirebook": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.wirebook.type": "jdbc",
    "spark.sql.catalog.wirebook.uri": f"jdbc:sqlite:{root}/iceberg/_wirebook/iceberg.db",
    "spark.sql.catalog.wirebook.warehouse": f"file://{root}/iceberg",
}
spark = SparkSession.builder.config(map=settings).getOrCreate()
frames = {
    "parquet": spark.read.option("mergeSchema", True).parquet(f"{root}/parquet/a"),
    "delta": spark.read.format("delta").load(f"{root}/delta/a"),
    "iceberg": spark.table("wirebook.wirebook.a"),
}
for name, frame in frames.items():
    frame = frame.withColumnRenamed("_source_file", "_file")
    rows = frame.orderBy("_file").selectExpr("_file", "_line", "v", "new", "s.a", "s.b", "`odd, name`").collect()
    print("found", json.dumps([name, [list(row) for row in rows]]))
"""


def test_spark_reads_all_table_formats(workspace: Any, tmp_path: Path) -> None:
    expected = []
    for form in ("parquet", "delta", "iceberg"):
        workspace.settings.table_format, workspace.to = form, tmp_path / form
        workspace.write("1", b'{"protocol":"X","t":"a","v":1,"s":{"a":1},"odd, name":"o"}\n')
        workspace.write("2", b"")
        columns = {"v": "int32", "s": "struct<a>", "odd, name": "string"}
        workspace.land(engine={"columns": {"a": columns}})
        workspace.write("2", b'{"protocol":"X","t":"a","v":2,"s":{"a":2,"b":["b"]},"new":"n"}\n')
        workspace.land(engine={"columns": {"a": columns | {"s": "struct<a,b>", "new": "string"}}})
        expected.append([form, [["1", 1, 1, None, 1, None, "o"], ["2", 1, 2, "n", 2, ["b"], None]]])
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), ",".join(PACKAGES)]
    environment = (
        os.environ | find_java().environment | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    )
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = [json.loads(line[6:]) for line in done.stdout.splitlines() if line.startswith("found ")]
    said = [line for line in done.stderr.splitlines() if "Exception" in line or line.startswith("Caused")]
    assert found == expected, "\n".join(said)
