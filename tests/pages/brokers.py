"""Brokers for examples and tests: that of Kafka which librdkafka has within it, and NATS, a package of the environment.

`tests/brokers/kafka.py` runs Apache Kafka itself.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Producer

SECONDS = 60


@contextlib.contextmanager
def kafka_broker() -> Iterator[int]:
    """Run the broker that librdkafka has within it, and give the port that it listens at."""
    producer = Producer({"test.mock.num.brokers": 1})
    (broker,) = producer.list_topics(timeout=10).brokers.values()
    yield broker.port


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


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.2)
    raise AssertionError(f"nothing listens at port {port}")
