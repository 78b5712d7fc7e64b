"""Fixtures of the tests of landing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.brokers.spark_cluster import packed_environment
from tests.landing.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture(scope="session")
def worker_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packed environment of executors, which lands files and reads JetStream."""
    return packed_environment(tmp_path_factory.mktemp("environment"), "nats")
