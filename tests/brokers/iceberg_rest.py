"""Iceberg's REST catalogue for tests: the server of its own conformance tests, from the jars of a lock file.

Hadoop's classes, which it needs for files of this machine, are those of PySpark. Tests are skipped if the jars cannot
be fetched, or if there is no Java.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from brokers import LOCK, free_port, wait_for

from wirebook.problems import WirebookError
from wirebook.spark.jars import class_path, locked_jars
from wirebook.spark.java import find_java

GROUP = "iceberg-rest"
OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@contextlib.contextmanager
def rest_catalog(folder: Path, s3: Mapping[str, str]) -> Iterator[str]:
    """Run a server that keeps its list of tables in a folder, and reaches an S3 server by the variables `s3`.

    Yields its URL.
    """
    try:
        java, jars = find_java().executable, class_path(locked_jars(GROUP, LOCK))
    except WirebookError as error:
        pytest.skip(f"needs Iceberg's REST catalogue and Java: {error}")
    pyspark = find_spec("pyspark")
    folder_of_jars = Path(str(pyspark and pyspark.origin)).parent / "jars"
    hadoop = sorted(folder_of_jars.glob("hadoop-client-*.jar"))
    port = free_port()
    variables = {
        "CATALOG_REST_PORT": str(port),
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
        "CATALOG_WAREHOUSE": str(folder),
        "CATALOG_IO__IMPL": "org.apache.iceberg.io.ResolvingFileIO",
        "CATALOG_S3_ENDPOINT": s3["AWS_ENDPOINT_URL"],
        "CATALOG_S3_PATH__STYLE__ACCESS": "true",
        "CATALOG_HTTP__CLIENT_TYPE": "urlconnection",
    }
    command = [str(java), *OPTIONS, "-cp", os.pathsep.join([jars, *map(str, hadoop)])]
    command += ["org.apache.iceberg.rest.RESTCatalogServer"]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            command, env={**os.environ, **s3, **variables}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        ) as process,
    ):
        try:
            wait_for(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
