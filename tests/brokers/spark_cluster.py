"""A standalone Spark cluster for tests, with two workers that share no folder with the driver or with each other.

Each worker is in a mount namespace of its own. It sees the system, its Java, a copy of Spark, and a work folder; empty
folders hide the project, its environment and all temporary files. Tests are skipped if namespaces are not permitted.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from brokers import free_port

from wirebook.problems import WirebookError
from wirebook.spark.java import find_java

PROJECT = Path(__file__).resolve().parents[2]
SPARK_HOME = Path(str((pyspark := find_spec("pyspark")) and pyspark.origin)).parent
UNSHARE = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--map-root-user", "--mount")
ISOLATED = """
mount -t tmpfs tmpfs /mnt
mkdir /mnt/spark /mnt/work
mount --bind "$1" /mnt/spark
mount --bind "$2" /mnt/work
shift 2
while [ "$1" != -- ]; do [ ! -d "$1" ] || mount -t tmpfs tmpfs "$1"; shift; done
shift
cd /mnt/work
exec "$@"
"""
"""A shell script that runs a program in a namespace: SPARK WORK HIDDEN... -- PROGRAM ARGUMENTS..."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster: the URL of its master, and the folder with what its parts print."""

    master: str
    folder: Path

    def submit(self, environment: Path, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program by spark-submit. Executors run Python in the packed `environment`."""
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.pyspark.driver.python": sys.executable,
            "spark.pyspark.python": "./environment/bin/python",
            "spark.ui.enabled": "false",
        }
        pairs = [text for name, value in settings.items() for text in ("--conf", f"{name}={value}")]
        command = [SPARK_HOME / "bin" / "spark-submit", "--master", self.master, *pairs]
        command += ["--archives", f"{environment}#environment", *arguments]
        return subprocess.run(
            [*map(str, command)], env=driver_environment() | variables, capture_output=True, text=True, check=False
        )

    def log(self) -> str:
        """The ends of what the parts of the cluster and its executors printed."""
        files = [*self.folder.glob("*.log"), *self.folder.glob("worker*/app-*/*/stderr")]
        return "\n".join(f"== {file}\n{file.read_text()[-3000:]}" for file in files)


def driver_environment() -> dict[str, str]:
    """The variables under which Spark's scripts start Java for a driver."""
    return os.environ | find_java().environment | {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}


@contextlib.contextmanager
def spark_cluster(folder: Path, variables: Mapping[str, str]) -> Iterator[Cluster]:
    """Run a master and two workers of one core each, which have only `variables` in their environment."""
    hidden = [*dict.fromkeys(map(str, (PROJECT, Path(sys.prefix), Path(tempfile.gettempdir()), folder)))]
    try:
        java = find_java().executable.resolve()
    except WirebookError as error:
        pytest.skip(f"needs Java: {error}")
    if any(java.is_relative_to(place) for place in hidden):
        pytest.skip(f"needs a Java of the system: workers do not see {java}")
    permitted = subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
    if not shutil.which("unshare") or permitted.returncode:
        pytest.skip(f"needs mount namespaces, as root has them: {permitted.stderr.decode().strip()}")
    environment = {
        "PATH": "/usr/bin:/bin",
        "JAVA_HOME": str(java.parents[1]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    port, page = free_port(), free_port()
    address = f"spark://127.0.0.1:{port}"
    master = [SPARK_HOME / "bin" / "spark-class", "org.apache.spark.deploy.master.Master"]
    master += ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)]
    worker = ["/mnt/spark/bin/spark-class", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1"]
    worker += ["--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", "/mnt/work", address]
    with contextlib.ExitStack() as stack:

        def start(name: str, command: list[str | Path], variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            process = subprocess.Popen(
                [*map(str, command)],
                env=environment | variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # the executors of a worker end with it
            )
            stack.callback(stop, process)
            return process

        processes = [start("master", master, {"SPARK_HOME": str(SPARK_HOME)})]
        for name in ("worker1", "worker2"):
            work = folder / name
            work.mkdir()
            command = [*UNSHARE, "sh", "-euc", ISOLATED, "sh", SPARK_HOME, work, *hidden, "--", *worker]
            places = {"SPARK_HOME": "/mnt/spark", "SPARK_LOCAL_DIRS": "/mnt/work", "HOME": "/mnt/work"}
            processes.append(start(name, command, places | {**variables}))
        cluster = Cluster(address, folder)
        while alive_workers(page) < 2:
            assert all(process.poll() is None for process in processes), cluster.log()
            time.sleep(0.1)
        yield cluster


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a part of the cluster and what it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def alive_workers(page: int) -> int:
    """The number of workers that have registered with the master whose web page is at a port."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as response:
            return int(json.load(response)["aliveworkers"])
    except (urllib.error.URLError, ConnectionError):
        return 0


def packed_environment(folder: Path) -> Path:
    """Make and pack the environment of executors, as docs/how-to/cluster.md does, with the locked versions and with
    little compression."""
    uv = shutil.which("uv") or shutil.which("uv", path=PROJECT / ".tools" / "bin")
    if uv is None:
        pytest.skip("needs uv, which ./run setup installs")
    variables = {"UV_PROJECT_ENVIRONMENT": str(folder / "worker"), "UV_PYTHON_DOWNLOADS": "never"}
    variables |= {"UV_PYTHON": os.path.realpath(sys.executable), "UV_SYSTEM_CERTS": "1"}
    command = [uv, "sync", "--locked", "--no-default-groups", "--extra", "worker", "--no-editable"]
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    made = subprocess.run(
        command, cwd=PROJECT, env=environment | variables, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    packed = folder / "worker.tar.gz"
    subprocess.run(
        ["tar", "-c", "-I", "gzip -1", "--exclude=tests", "-f", packed, "-C", folder / "worker", "."], check=True
    )
    return packed
