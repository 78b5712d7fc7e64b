"""A Mosquitto broker for a test, which is skipped without the program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from brokers import MissingProgram, MosquittoBroker


@contextlib.contextmanager
def mosquitto(folder: Path, password: str | None = None, *, tls: bool = False) -> Iterator[MosquittoBroker]:
    try:
        broker = MosquittoBroker(folder, password, tls=tls)
    except MissingProgram as missing:
        pytest.skip(str(missing))
    try:
        yield broker
    finally:
        broker.stop()


@contextlib.contextmanager
def connected(client: mqtt.Client) -> Iterator[mqtt.Client]:
    """A client whose thread ends with the test: one that is left connects again while other tests run."""
    client.loop_start()
    try:
        yield client
    finally:
        client.disconnect()
        client.loop_stop()
