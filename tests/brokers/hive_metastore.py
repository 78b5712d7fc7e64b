"""Hive's metastore 2.3 for tests, from the jars of PySpark, and Hadoop's file system of S3, from those of a lock file.

PyIceberg 0.12 calls `get_table`, which metastores of Hive 4.0.1 and later do not have. Tests are skipped if the jars
cannot be fetched, or if there is no Java.
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

GROUP = "hadoop-s3"
OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dlog4j2.contextSelector=org.apache.logging.log4j.core.selector.ClassLoaderContextSelector",
)
SETTINGS = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName={folder}/database;create=true",
    "datanucleus.schema.autoCreateAll": "true",
    "datanucleus.connectionPoolingType": "none",  # PySpark does not contain the others
    "hive.metastore.schema.verification": "false",
    "hive.metastore.warehouse.dir": "{folder}/warehouse",
    "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "fs.s3a.endpoint": "{s3[AWS_ENDPOINT_URL]}",
    "fs.s3a.endpoint.region": "{s3[AWS_REGION]}",
    "fs.s3a.path.style.access": "true",
}
# Hive's schema tool, which PySpark does not contain, would create these.
LOCKS = """
connect 'jdbc:derby:{folder}/database;create=true';
CREATE TABLE NEXT_LOCK_ID (NL_NEXT bigint NOT NULL);
INSERT INTO NEXT_LOCK_ID VALUES (1);
CREATE TABLE AUX_TABLE (
    MT_KEY1 varchar(128) NOT NULL, MT_KEY2 bigint NOT NULL, MT_COMMENT varchar(255), PRIMARY KEY (MT_KEY1, MT_KEY2)
);
CREATE TABLE TXNS (
    TXN_ID bigint PRIMARY KEY, TXN_STATE char(1) NOT NULL, TXN_STARTED bigint NOT NULL,
    TXN_LAST_HEARTBEAT bigint NOT NULL, TXN_USER varchar(128) NOT NULL, TXN_HOST varchar(128) NOT NULL
);
CREATE TABLE HIVE_LOCKS (
    HL_LOCK_EXT_ID bigint NOT NULL, HL_LOCK_INT_ID bigint NOT NULL, HL_TXNID bigint, HL_DB varchar(128) NOT NULL,
    HL_TABLE varchar(128), HL_PARTITION varchar(767), HL_LOCK_STATE char(1) NOT NULL, HL_LOCK_TYPE char(1) NOT NULL,
    HL_LAST_HEARTBEAT bigint NOT NULL, HL_ACQUIRED_AT bigint, HL_USER varchar(128) NOT NULL,
    HL_HOST varchar(128) NOT NULL, HL_HEARTBEAT_COUNT integer, HL_AGENT_INFO varchar(128),
    HL_BLOCKEDBY_EXT_ID bigint, HL_BLOCKEDBY_INT_ID bigint, PRIMARY KEY (HL_LOCK_EXT_ID, HL_LOCK_INT_ID)
);
"""


@contextlib.contextmanager
def hive_metastore(folder: Path, s3: Mapping[str, str]) -> Iterator[str]:
    """Run a server that keeps its tables in a Derby database in a folder, and reaches an S3 server by the variables
    `s3`. Yields its URL."""
    try:
        java, of_s3 = find_java().executable, class_path(locked_jars(GROUP, LOCK))
    except WirebookError as error:
        pytest.skip(f"needs Hadoop's file system of S3 and Java: {error}")
    properties = "".join(
        f"<property><name>{name}</name><value>{value.format(folder=folder, s3=s3)}</value></property>"
        for name, value in SETTINGS.items()
    )
    (folder / "hive-site.xml").write_text(f"<configuration>{properties}</configuration>")
    pyspark = find_spec("pyspark")
    jars = Path(str(pyspark and pyspark.origin)).parent / "jars"
    port = free_port()
    command = [str(java), *OPTIONS, f"-Djava.io.tmpdir={folder}", "-cp", f"{folder}:{jars}/*:{of_s3}"]
    (folder / "locks.sql").write_text(LOCKS.format(folder=folder))
    ij = [*command, "org.apache.derby.tools.ij", str(folder / "locks.sql")]
    subprocess.run(ij, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    command.append("org.apache.hadoop.hive.metastore.HiveMetaStore")
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            [*command, "-p", str(port)],
            cwd=folder,
            env={**os.environ, **s3},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        ) as process,
    ):
        try:
            wait_for(port, process)
            yield f"thrift://127.0.0.1:{port}"
        finally:
            process.kill()
