"""A Spark Connect server for tests, in a process of its own, with two workers in the same process."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from brokers import free_port, wait_for

from tests.brokers.spark_cluster import SPARK_HOME, driver_environment


@contextlib.contextmanager
def connect_server(folder: Path, jars: str = "") -> Iterator[str]:
    """Run a server, which logs into a folder; yields its URL. `jars` is a class path."""
    port, log = free_port(), folder / "log"
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]"]
    command += [text for name, value in settings.items() for text in ("--conf", f"{name}={value}")]
    command += ["--jars", jars.replace(":", ",")] if jars else []
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = driver_environment() | {"PYSPARK_PYTHON": sys.executable}
    with log.open("wb") as output, subprocess.Popen(command, env=environment, stdout=output, stderr=output) as process:
        try:
            wait_for(port, process)
            yield f"sc://127.0.0.1:{port}"
        except BaseException:
            print(log.read_text()[-3000:])
            raise
        finally:
            process.terminate()
