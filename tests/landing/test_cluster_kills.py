"""Landing and streaming on a cluster into a store while Python workers, executors and whole workers of the cluster are
killed: Delta Lake and Iceberg, files, JetStream and Kafka."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from brokers import KafkaBroker, NatsServer
from killing.rows import landed_rows

from tests.brokers.spark_cluster import Cluster, driver_environment, spark_cluster
from tests.landing.s3 import CREDENTIALS
from tests.spark.test_jetstream import Plants
from tests.spark.test_kafka_stream import Topic
from tests.spark.test_land_spark import CATALOGUE, event
from wirebook.landing.stores.locations import Location, location_of
from wirebook.spark.jars import KAFKA, class_path, locked_jars

KILLS = int(os.environ.get("WIREBOOK_KILLS", "0"))
"""Kills of each kind, for each source and format; 0: a few of them."""
pytestmark = [
    pytest.mark.faults,
    pytest.mark.spark,
    pytest.mark.xdist_group("servers"),
    pytest.mark.timeout(900 * max(KILLS, 1)),
]
SECONDS = 300
SOURCES = ("files", "jetstream", "kafka")
ALL = [(source, form, ("python", "executor", "node")) for form in ("delta", "iceberg") for source in SOURCES]
FEW = [
    ("files", "delta", ("python", "node")),
    ("jetstream", "iceberg", ("python", "executor")),
    ("kafka", "delta", ("executor", "node")),
]
DRIVER = """
import json, sys
from wirebook.cli import main

for line in open(sys.argv[1]):
    try:
        main(json.loads(line))
    except SystemExit as exit:
        print(f"exit code {exit.code}", flush=True)
"""


class Driver:
    """A program of spark-submit that runs one command after the other."""

    def __init__(self, process: subprocess.Popen[str], commands: Any) -> None:
        self._process, self._commands = process, commands
        self._lines, self._seen = list[str](), 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout
        self._lines += (line for line in self._process.stdout)

    def start(self, command: list[str]) -> None:
        self._commands.write(json.dumps(command) + "\n")
        self._commands.flush()

    def finish(self) -> tuple[int, list[str]]:
        """Wait until the command ends; returns its exit code and what it printed."""
        end = time.monotonic() + SECONDS
        while True:
            new = self._lines[self._seen :]
            ends = (place for place, line in enumerate(new) if line.startswith("exit code "))
            if (last := next(ends, None)) is not None:
                self._seen += last + 1
                return int(new[last].split()[-1]), new[:last]
            assert self._process.poll() is None, new
            assert time.monotonic() < end, new
            time.sleep(0.1)


@contextmanager
def driver_of(cluster: Cluster, environment: Path, folder: Path, variables: dict[str, str]) -> Iterator[Driver]:
    program, pipe = folder / "driver.py", folder / "commands"
    program.write_text(DRIVER)
    os.mkfifo(pipe)
    (folder / "environment").symlink_to(sys.prefix)  # Spark runs this Python on the driver, too, to plan with JetStream
    jars = [Path(jar) for jar in class_path(locked_jars(KAFKA)).split(os.pathsep)]
    command = cluster.command(environment, program, pipe, jars=jars)
    with (
        (folder / "driver.log").open("wb") as log,
        subprocess.Popen(
            command, cwd=folder, env=driver_environment() | variables, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            with pipe.open("w") as commands:
                yield Driver(process, commands)
        finally:
            process.kill()


def kill(cluster: Cluster, kind: str, dice: random.Random) -> bool:
    """Kill a Python process, an executor or a worker of the cluster, which starts again; False if there is none."""
    part = dice.choice(cluster.workers)
    if kind == "node":
        part.kill()
        part.start()
        return True
    name = "java" if kind == "executor" else "python"
    below = [process for worker in cluster.workers for process in worker.below() if process.name.startswith(name)]
    for process in (chosen := below and [dice.choice(below)]):
        process.kill(9)
    return bool(chosen)


def rows_of(target: Location, namespace: str | None, catalogue: str) -> Counter[tuple[str, int]]:
    """How often each message is in the tables and dead letters."""
    if namespace is None:
        rows = landed_rows("delta", target)
        return Counter((file, line) for _, file, line, _ in rows.elements())
    from pyiceberg.catalog.sql import SqlCatalog

    places = Counter[tuple[str, int]]()
    settings = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"], "s3.region": os.environ["AWS_REGION"]}
    catalog = SqlCatalog("lake", uri=catalogue, **settings)
    for name in catalog.list_tables(namespace):
        rows = catalog.load_table(name).scan(selected_fields=("_source_file", "_line")).to_arrow()
        places.update(zip(*(rows[column].to_pylist() for column in ("_source_file", "_line")), strict=True))
    catalog.close()
    return places


def test_killed_processes_of_the_cluster(
    tmp_path: Path, bucket: str, worker_environment: Path, kafka: KafkaBroker
) -> None:
    """Commands are started with new messages, and some of the cluster is killed. A command lands them all the same, or
    ends with one error; the next one completes."""
    dice, source = random.Random(time.time_ns()), location_of(f"{bucket}/raw")
    (tmp_path / "catalogue.json").write_text(json.dumps(CATALOGUE))
    for name in ("jetstream-endpoint", "kafka-endpoint"):
        (tmp_path / name).mkdir()
    server = NatsServer("--jetstream", "--store_dir", str(tmp_path / "jetstream"))
    database = f"sqlite:///{tmp_path}/lake.db"
    written, sent, killed = set[tuple[str, int]](), iter(range(10**9)), Counter[str]()

    def add_files() -> None:
        for _ in range(4):
            numbers = range(first := len(written), first + 500)
            events = [event(number, "other" if number % 50 == 0 else "seen") for number in numbers]
            name = f"{first}.jsonl"
            (source / name).write_bytes(b"".join(json.dumps(item).encode() + b"\n" for item in events))
            written.update((name, line) for line in range(1, 501))

    variables = CREDENTIALS | {"AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"]}
    land = ["land", str(source), "--catalog", str(tmp_path / "catalogue.json"), "--no-report", "--json"]
    try:
        plants, topic = Plants(server, tmp_path / "jetstream-endpoint"), Topic(kafka, tmp_path / "kafka-endpoint")
        limits = ("--available-now", "--max-per-batch", "100")
        commands = {
            "files": (land, add_files, lambda: written),
            "jetstream": (
                plants.arguments(*limits),
                lambda: plants.send([next(sent) for _ in range(300)]),
                lambda: {("nats:PLANTS", sequence) for sequence in plants.acknowledged},
            ),
            "kafka": (
                topic.arguments(*limits),
                lambda: topic.send_events([next(sent) for _ in range(300)]),
                lambda: {*topic.acknowledged},
            ),
        }
        with (
            spark_cluster(tmp_path, variables) as cluster,
            driver_of(
                cluster, worker_environment, tmp_path, variables | {"PYICEBERG_CATALOG__LAKE__URI": database}
            ) as driver,
        ):

            def run(name: str, command: list[str], produce: Callable[[], None], kinds: list[str]) -> None:
                """Run a command with new messages until each kind of process was killed, and once more in peace."""
                while kinds:
                    produce()
                    driver.start(command)
                    time.sleep(dice.uniform(0.2, 3))
                    if kill(cluster, kinds[-1], dice):
                        killed[f"{name}: {kinds.pop()}"] += 1
                    code, printed = driver.finish()
                    assert code in (0, 2), printed
                    assert code == 0 or sum("error: " in line for line in printed) == 1, printed
                    assert not [line for line in printed if "Traceback" in line or "\tat " in line]
                driver.start(command)
                code, printed = driver.finish()
                assert code == 0, f"{printed}\n{cluster.log()}"

            for name, table_format, kinds in ALL if KILLS else FEW:
                command, produce, expected = commands[name]
                to, namespace = f"{bucket}/{name}-{table_format}", name if table_format == "iceberg" else None
                options = ["--format", table_format, "--to", to]
                if namespace:
                    options += ["--iceberg-catalog", "lake", "--iceberg-namespace", namespace]
                run(name, [*command, *options], produce, [*kinds] * max(KILLS, 1))
                assert rows_of(location_of(to), namespace, database) == dict.fromkeys(expected(), 1)
    finally:
        server.kill()
    print(dict(killed))
