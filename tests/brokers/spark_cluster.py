"""A standalone Spark cluster for tests, with two workers that share no folder with the driver or with each other.

Each worker is in a mount namespace of its own. It sees the system, Spark, Java, and a work folder; empty folders hide
the project, its environment and all temporary files. So is a Spark Connect server. Tests are skipped if namespaces are
not permitted.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from brokers import free_port, wait_for
from killing.victims import Process, descendants

from tests.pages.fences import fences
from wirebook.problems import WirebookError
from wirebook.spark.java import LAUNCHER, find_java

PROJECT = Path(__file__).resolve().parents[2]
SPARK_HOME = Path(str((pyspark := find_spec("pyspark")) and pyspark.origin)).parent
UNSHARE = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--map-root-user", "--mount")
ISOLATED = """
mount -t tmpfs tmpfs /mnt
for place in spark java launcher work; do
  mkdir "/mnt/$place"
  mount --bind "$1" "/mnt/$place"
  shift
done
while [ "$1" != -- ]; do [ ! -d "$1" ] || mount -t tmpfs tmpfs "$1"; shift; done
shift
cd /mnt/work
exec "$@"
"""
"""A shell script that runs a program in a namespace: SPARK JAVA LAUNCHER WORK HIDDEN... -- PROGRAM ARGUMENTS..."""
ISOLATED_VARIABLES = {
    "PATH": "/mnt/spark/bin:/usr/bin:/bin",
    "HOME": "/mnt/work",
    "JAVA_HOME": "/mnt/launcher",
    "WIREBOOK_JAVA": "/mnt/java/bin/java",
    "SPARK_HOME": "/mnt/spark",
    "SPARK_LOCAL_DIRS": "/mnt/work",
    "SPARK_LOCAL_IP": "127.0.0.1",
}
"""The variables of such a program."""
DAEMONS = {
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""The variables of the master and the workers."""
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
}
"""The settings of drivers."""
Isolation = Callable[[Path], list[str]]
"""The beginning of a command that runs a program in a namespace, in which the folder is ``/mnt/work``."""
PAGE = PROJECT / "docs" / "how-to" / "cluster.md"


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
    isolation: Isolation

    def command(self, environment: Path, *arguments: str | Path, jars: Sequence[Path] = ()) -> list[str]:
        """The command that runs a program by spark-submit. Executors run Python in the packed `environment`."""
        settings = SETTINGS | {
            "spark.pyspark.driver.python": sys.executable,
            "spark.pyspark.python": "./environment/bin/python",
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

    @contextlib.contextmanager
    def connect_server(self, environment: Path, jars: Sequence[Path] = ()) -> Iterator[str]:
        """Run a Spark Connect server by the command of the page, which sees no file of its clients. Yields its URL."""
        port, work = free_port(), self.folder / "server"
        (work / "conf").mkdir(parents=True)
        os.link(environment, work / "worker.tar.gz")
        settings = SETTINGS | {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
        }
        if jars:
            settings["spark.jars"] = ",".join(f"/mnt/work/{Path(shutil.copy(jar, work)).name}" for jar in jars)
        (work / "conf" / "spark-defaults.conf").write_text("".join(f"{name} {settings[name]}\n" for name in settings))
        command = on_page("SparkConnectServer").replace("spark://master.example.com:7077", self.master)
        variables = ISOLATED_VARIABLES | {"SPARK_CONF_DIR": "/mnt/work/conf"}
        part = Part([*self.isolation(work), "sh", "-euc", command], variables, self.folder / "server.log")
        try:
            wait_for(port, part.process)
            yield f"sc://127.0.0.1:{port}"
        finally:
            part.kill()

    def log(self) -> str:
        """The ends of what the parts of the cluster and its executors printed."""
        files = [*self.folder.glob("*.log"), *self.folder.glob("worker*/app-*/*/stderr")]
        return "\n".join(f"== {file}\n{file.read_text()[-3000:]}" for file in files)


def driver_environment() -> dict[str, str]:
    """The variables under which Spark's scripts start Java for a driver."""
    return os.environ | find_java().environment | {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}


def isolation(folder: Path) -> Isolation:
    """How programs are run in namespaces that do not see `folder`; skips the test if that is not possible."""
    hidden = [*dict.fromkeys(map(str, (PROJECT, Path(sys.prefix), Path(tempfile.gettempdir()), folder)))]
    try:
        java = find_java().executable.resolve().parents[1]
    except WirebookError as error:
        pytest.skip(f"needs Java: {error}")
    permitted = subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
    if not shutil.which("unshare") or permitted.returncode:
        pytest.skip(f"needs mount namespaces, as root has them: {permitted.stderr.decode().strip()}")

    def command(work: Path) -> list[str]:
        places = (SPARK_HOME, java, LAUNCHER, work)
        return [*UNSHARE, "sh", "-euc", ISOLATED, "sh", *map(str, places), *hidden, "--"]

    return command


@contextlib.contextmanager
def spark_cluster(folder: Path, variables: Mapping[str, str]) -> Iterator[Cluster]:
    """Run a master and two workers of one core each, which have only `variables` in their environment."""
    isolated = isolation(folder)
    port, page = free_port(), free_port()
    address = f"spark://127.0.0.1:{port}"
    master = [SPARK_HOME / "bin" / "spark-class", "org.apache.spark.deploy.master.Master"]
    master += ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)]
    worker = ["spark-class", "org.apache.spark.deploy.worker.Worker", address]
    worker += ["--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", "/mnt/work"]
    with contextlib.ExitStack() as stack:

        def start(name: str, command: Sequence[str | Path], variables: Mapping[str, str]) -> Part:
            part = Part(command, DAEMONS | variables, folder / f"{name}.log")
            stack.callback(part.kill)
            return part

        home = {"PATH": "/usr/bin:/bin", "SPARK_HOME": str(SPARK_HOME)}
        parts = [start("master", master, home | find_java().environment)]
        # Executors read shuffle files of others on the same host from disk, so each worker has an address of its own.
        for name, host in (("worker1", "127.0.0.2"), ("worker2", "127.0.0.3")):
            (folder / name).mkdir()
            its_variables = ISOLATED_VARIABLES | {**variables, "SPARK_LOCAL_IP": host}
            parts.append(start(name, [*isolated(folder / name), *worker, "--host", host], its_variables))
        cluster = Cluster(address, parts[1:], folder, isolated)
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


def on_page(text: str) -> str:
    """The first commands of docs/how-to/cluster.md that contain a text."""
    return next(fence.body for fence in fences(PAGE.read_text()) if text in fence.body)


def packed_environment(folder: Path, *extras: str) -> Path:
    """Make and pack the environment of executors by the commands of docs/how-to/cluster.md, in a copy of the project,
    with the Python of this process and further extras."""
    programs = os.pathsep.join([os.environ["PATH"], str(PROJECT / ".tools" / "bin")])
    if shutil.which("uv", path=programs) is None:
        pytest.skip("needs uv, which ./run setup installs")
    for name in ("pyproject.toml", "uv.lock", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, folder)
    shutil.copytree(PROJECT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    commands = on_page("tar -czf worker.tar.gz")
    commands = commands.replace("/usr/bin/python3", os.path.realpath(sys.executable))
    commands = commands.replace("--extra worker", " ".join(f"--extra {extra}" for extra in ("worker", *extras)))
    variables = {"PATH": programs, "UV_PYTHON_DOWNLOADS": "never", "UV_SYSTEM_CERTS": "1"}
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"} | variables
    made = subprocess.run(
        ["sh", "-euc", commands], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    return folder / "worker.tar.gz"
