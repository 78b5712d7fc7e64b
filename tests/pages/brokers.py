"""Brokers for examples and tests: that of Kafka which librdkafka has within it, and NATS, a package of the environment.

`scripts/brokers.py` runs Apache Kafka itself.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from brokers import wait_for
from confluent_kafka import Producer


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
