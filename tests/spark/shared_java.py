"""One Java process for several programs that use Spark one after the other.

Starting Java and loading Spark's classes takes four times the CPU time of a small landing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from wirebook.spark.class_archive import archive_of, java_options
from wirebook.spark.session import find_java, local_environment, local_settings

STOPPING = Path(__file__).parent / "stopping"


@contextmanager
def shared_java(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[dict[str, str]]:
    """Start Java in `folder`, in which the programs must run too. Yields their environment variables. `settings` are
    further settings of Spark.

    A program finds Spark as under spark-submit: at an address, with the settings of a local session. It stops its
    session when it ends, as `STOPPING` arranges, because a Java process runs one session at a time.
    """
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    path = os.pathsep.join(filter(None, [str(STOPPING), os.environ.get("PYTHONPATH")]))
    java = find_java()
    environment = local_environment(java) | {"PYTHONPATH": path}
    all_settings = local_settings(java_options(archive_of(java))) | {**(settings or {})}
    configuration = SparkConf(loadDefaults=False).setAll([*all_settings.items()])
    with mock.patch.dict(os.environ, environment):
        gateway = launch_gateway(configuration, {"cwd": folder})
    address = gateway.gateway_parameters
    try:
        yield environment | {"PYSPARK_GATEWAY_PORT": str(address.port), "PYSPARK_GATEWAY_SECRET": address.auth_token}
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
