"""Brokers for examples and tests.

Of Kafka it is Apache Kafka where `KAFKA_HOME` names a folder of it (with its jars in `libs`) and there is a Java, else
the broker that librdkafka has within it. NATS is its own server, a package of the environment.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Producer

SECONDS = 60
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={folder}/log
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
"""


@contextlib.contextmanager
def kafka_broker(port: int) -> Iterator[int]:
    """Run a broker, and give the port that it listens at."""
    home = os.environ.get("KAFKA_HOME")
    if home and shutil.which("java"):
        with apache_kafka(Path(home), port) as listening:
            yield listening
    else:
        producer = Producer({"test.mock.num.brokers": 1})
        (broker,) = producer.list_topics(timeout=10).brokers.values()
        yield broker.port


@contextlib.contextmanager
def apache_kafka(home: Path, port: int) -> Iterator[int]:
    with tempfile.TemporaryDirectory(prefix="wirebook-kafka-") as folder:
        settings = Path(folder) / "server.properties"
        settings.write_text(SETTINGS.format(port=port, controller=port_beside(port), folder=folder))
        java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{home}/libs/*"]
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        form = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
        subprocess.run(form, check=True, capture_output=True)
        with (
            open(f"{folder}/out", "w") as log,
            subprocess.Popen([*java, "kafka.Kafka", settings], stdout=log, stderr=log) as run,
        ):
            try:
                wait_for(port, run)
                yield port
            finally:
                run.kill()


@contextlib.contextmanager
def nats_server(port: int) -> Iterator[int]:
    """Run a NATS server, and give the port that it listens at."""
    command = [f"{Path(sys.executable).parent}/nats-server", "--addr", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as run:
        try:
            wait_for(port, run)
            yield port
        finally:
            run.kill()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def port_beside(port: int) -> int:
    return port + 1 if port < 65_535 else port - 1


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.2)
    raise AssertionError(f"nothing listens at port {port}")
