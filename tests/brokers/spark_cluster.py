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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from brokers import free_port
from killing.victims import Process, descendants

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


class Part:
    """A process of the cluster, with those that it starts: the master, or a worker with its executors and their
    Python processes."""

    def __init__(self, command: Sequence[str | Path], variables: Mapping[str, str], log: Path) -> None:
        self._command, self._variables, self._log = [*map(str, command)], variables, log
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, env=self._variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def below(self) -> list[Process]:
        """The processes that it has started, parents first."""
        return descendants(self.process.pid)[1:]

    def kill(self) -> None:
        """End it, and all that it has started."""
        for process in descendants(self.process.pid):
            process.kill(signal.SIGSTOP)  # none can start another one meanwhile
        for process in descendants(self.process.pid):
            process.kill(signal.SIGKILL)
        self.process.wait()


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster: the URL of its master, its workers, and the folder with what its parts print."""

    master: str
    workers: Sequence[Part]
    folder: Path

    def command(self, environment: Path, *arguments: str | Path, jars: Sequence[Path] = ()) -> list[str]:
        """The command that runs a program by spark-submit. Executors run Python in the packed `environment`."""
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.pyspark.driver.python": sys.executable,
            "spark.pyspark.python": "./environment/bin/python",
            "spark.ui.enabled": "false",
        }
        pairs = [text for name, value in settings.items() for text in ("--conf", f"{name}={value}")]
        if jars:
            pairs += ["--jars", ",".join(map(str, jars))]
        command = [SPARK_HOME / "bin" / "spark-submit", "--master", self.master, *pairs]
        command += ["--archives", f"{environment}#environment", *arguments]
        return [*map(str, command)]

    def submit(self, environment: Path, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program, as `command` says, until it ends."""
        command, environ = self.command(environment, *arguments), driver_environment() | variables
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)

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

        def start(name: str, command: Sequence[str | Path], variables: Mapping[str, str]) -> Part:
            part = Part(command, environment | variables, folder / f"{name}.log")
            stack.callback(part.kill)
            return part

        parts = [start("master", master, {"SPARK_HOME": str(SPARK_HOME)})]
        for name in ("worker1", "worker2"):
            work = folder / name
            work.mkdir()
            command = [*UNSHARE, "sh", "-euc", ISOLATED, "sh", SPARK_HOME, work, *hidden, "--", *worker]
            places = {"SPARK_HOME": "/mnt/spark", "SPARK_LOCAL_DIRS": "/mnt/work", "HOME": "/mnt/work"}
            parts.append(start(name, command, places | {**variables}))
        cluster = Cluster(address, parts[1:], folder)
        while alive_workers(page) < 2:
            assert all(part.process.poll() is None for part in parts), cluster.log()
            time.sleep(0.1)
        yield cluster


def alive_workers(page: int) -> int:
    """The number of workers that have registered with the master whose web page is at a port."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as response:
            return int(json.load(response)["aliveworkers"])
    except (urllib.error.URLError, ConnectionError):
        return 0


def packed_environment(folder: Path, *extras: str) -> Path:
    """Make and pack the environment of executors, as docs/how-to/cluster.md does, with the locked versions, further
    extras, and little compression."""
    uv = shutil.which("uv") or shutil.which("uv", path=PROJECT / ".tools" / "bin")
    if uv is None:
        pytest.skip("needs uv, which ./run setup installs")
    variables = {"UV_PROJECT_ENVIRONMENT": str(folder / "worker"), "UV_PYTHON_DOWNLOADS": "never"}
    variables |= {"UV_PYTHON": os.path.realpath(sys.executable), "UV_SYSTEM_CERTS": "1"}
    command = [uv, "sync", "--locked", "--no-default-groups", "--no-editable", "--extra", "worker"]
    command += [text for extra in extras for text in ("--extra", extra)]
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
