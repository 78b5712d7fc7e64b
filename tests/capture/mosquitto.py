"""A Mosquitto broker for a test, which is skipped without the program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

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
