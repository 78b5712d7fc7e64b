"""Apache Kafka itself for tests."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from brokers import KafkaBroker

from wirebook.problems import WirebookError


@contextlib.contextmanager
def running_kafka(folder: Path, *, tls: bool = False) -> Iterator[KafkaBroker]:
    """Run a broker in a folder; skips the test if that is not possible on this machine."""
    if tls and not shutil.which("openssl"):
        pytest.skip("needs openssl on the PATH")
    try:
        broker = KafkaBroker(folder, tls=tls)
    except WirebookError as error:
        pytest.skip(f"needs Kafka and Java: {error}")
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()
