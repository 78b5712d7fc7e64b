"""HDFS for tests: a NameNode and three DataNodes in a Java process, from the jars of a lock file and those of PySpark.

Tests are skipped if the jars cannot be fetched, or if there is no Java.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from brokers import LOCK, LOGGING, SECONDS, free_port, wait_for
from hdfs_native import Client, WriteOptions

from wirebook.problems import WirebookError
from wirebook.spark.jars import class_path, locked_jars
from wirebook.spark.java import find_java

GROUP = "hdfs"
MAIN = "org.apache.hadoop.test.MiniDFSClusterManager"
DATANODES = 3
"""With fewer, clients wait half a second each time that they close a file (docs/decisions/0216)."""
OPTIONS = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@contextlib.contextmanager
def running_hdfs(folder: Path) -> Iterator[str]:
    """Run HDFS with its data in a folder; yields its URL."""
    try:
        java, jars = find_java().executable, class_path(locked_jars(GROUP, LOCK))
    except WirebookError as error:
        pytest.skip(f"needs HDFS and Java: {error}")
    pyspark = find_spec("pyspark")
    of_spark = Path(str(pyspark and pyspark.origin)).parent / "jars" / "*"
    (folder / "log4j2.properties").write_text(LOGGING)
    port = free_port()
    command = [str(java), *OPTIONS, f"-Dtest.build.data={folder}"]
    command += ["-cp", os.pathsep.join([str(folder), jars, str(of_spark)]), MAIN]
    command += ["-format", "-datanodes", str(DATANODES), "-nnport", str(port)]
    url = f"hdfs://127.0.0.1:{port}"
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process,
    ):
        try:
            wait_for(port, process)
            _wait_for_datanodes(url)
            yield url
        finally:
            process.kill()


def _wait_for_datanodes(url: str) -> None:
    client, end = Client(url), time.monotonic() + SECONDS
    while True:
        try:
            with client.create("/ready", WriteOptions(overwrite=True)) as file:
                file.write(b"1")
        except (OSError, RuntimeError):
            assert time.monotonic() < end, "no DataNode takes blocks"
            time.sleep(0.2)
        else:
            client.delete("/ready")
            return
