"""The Spark session of the command line: the active one, or a quiet local one."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from wirebook.problems import Problem, WirebookError
from wirebook.problems.extras import library
from wirebook.spark.class_archive import archive_of, create_in_background, java_options
from wirebook.spark.java import JAVA_OPTIONS, Java, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Java", "find_java", "is_connect", "is_remote", "is_submitted", "session"]

REMOTE = "SPARK_REMOTE"
"""The environment variable with the address of a Spark Connect server."""
SERVER_SECONDS = 20
"""How long to wait for a Spark Connect server."""
SUBMITTED = ("PYSPARK_GATEWAY_PORT", REMOTE)
"""Environment variables that are set if the program was started by spark-submit or for a Spark Connect server."""


def session(
    app_name: str = "wirebook", *, cores: int | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """The active session, the one that spark-submit prepared, or a new local one on `cores` cores (default: all).

    `settings` are further settings of a new local session.

    Cost: 2-6 seconds for a new local session. After the first one has ended, an archive of Spark's classes is created
    in the background (`wirebook.spark.class_archive`), with which the next ones start faster.
    Raises: no-java, missing-extra, spark-failed if there is no Spark Connect server
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 (half a second)

    if is_remote():
        library("grpc_status.rpc_status")

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = SparkSession.builder.appName(app_name)
    if os.environ.get(REMOTE, "").startswith("sc:"):
        _check_server(os.environ[REMOTE])
        remote: Any = builder.getOrCreate()
        atexit.register(remote.client.set_retry_policies, [])  # else PySpark retries its cleanup for ten minutes
        return cast("SparkSession", remote)
    if is_submitted():
        return builder.getOrCreate()
    java = find_java()
    archive = archive_of(java)
    with _environment(local_environment(java)), _killing_java_on_failure():
        _silence_accumulator_server()
        spark = builder.config(map={**local_settings(java_options(archive), cores), **(settings or {})}).getOrCreate()
    create_in_background(archive)
    return spark


def is_submitted() -> bool:
    """Whether spark-submit or a Spark Connect server provides the session, with settings and jars of its own."""
    return any(name in os.environ for name in SUBMITTED)


def is_remote() -> bool:
    """Whether a Spark Connect server provides the session of the command line."""
    return REMOTE in os.environ


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect."""
    return not hasattr(spark, "sparkContext")


def _check_server(url: str) -> None:
    """Check that a Spark Connect server answers. PySpark itself would retry for ten minutes.

    Raises: spark-failed
    """
    import grpc  # noqa: PLC0415 (of the extra)
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415

    builder = DefaultChannelBuilder(url)
    channel = builder.toChannel()
    try:
        grpc.channel_ready_future(channel).result(SERVER_SECONDS)
    except grpc.FutureTimeoutError:
        message = f"the Spark Connect server at {builder.endpoint} did not answer within {SERVER_SECONDS} seconds"
        hint = f"check the address in {REMOTE}, and whether the server needs TLS (use_ssl=true)"
        raise WirebookError(Problem("spark-failed", message, hint=hint)) from None
    finally:
        channel.close()


def local_settings(archive_options: Sequence[str] = (), cores: int | None = None) -> dict[str, str]:
    """The settings of a local session. On a cluster, the operator chooses them. `archive_options` are the Java options
    for the class archive."""
    return {
        "spark.master": f"local[{cores or '*'}]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": f"{_driver_memory_mib()}m",
        "spark.driver.extraJavaOptions": " ".join([*JAVA_OPTIONS, *archive_options]),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores or os.cpu_count() or 2),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.python.daemon.module": "wirebook.spark.daemon",
        "spark.python.unix.domain.socket.enabled": "true",
    }


def local_environment(java: Java) -> dict[str, str]:
    """Return the environment variables for Spark's scripts: this Python, this PySpark (not another Spark on the
    machine) and this Java."""
    import pyspark  # noqa: PLC0415

    return java.environment | {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextmanager
def _killing_java_on_failure() -> Iterator[None]:
    """Kill the Java process if starting the session fails or is interrupted.

    Without this, the Java process would keep running: PySpark deletes the folder into which Java writes its port, and
    a Java process that does not find the folder neither exits nor notices that its parent process is gone.
    """
    from pyspark import java_gateway  # noqa: PLC0415

    gateway: Any = java_gateway
    popen, started = gateway.Popen, []

    def start(*args: Any, **options: Any) -> Any:
        with _deferring_interrupts():  # else Ctrl-C may arrive before the process is in the list
            started.append(popen(*args, **options))
        return started[-1]

    gateway.Popen = start
    try:
        yield
    except BaseException:
        for process in started:
            process.kill()
            process.wait()
        raise
    finally:
        gateway.Popen = popen


@contextmanager
def _deferring_interrupts() -> Iterator[None]:
    """Defer a SIGINT to the end of the block. Has no effect in other threads, which receive no signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if received:
            signal.raise_signal(signal.SIGINT)


def _silence_accumulator_server() -> None:
    """Keep PySpark's accumulator server from printing a traceback when Java ends; the caller gets an exception."""
    from pyspark import accumulators  # noqa: PLC0415

    server: Any
    for server in (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer):
        server.handle_error = _handle_error


def _handle_error(*_: object) -> None:
    if not isinstance(sys.exception(), EOFError | OSError):
        traceback.print_exc()


def _driver_memory_mib() -> int:
    """A quarter of the memory, between 1 and 4 GiB. Python workers and Arrow need the rest."""
    memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return min(max(memory_mib // 4, 1024), 4096)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables inside the block and restore them afterwards."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
