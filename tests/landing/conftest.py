"""Fixtures of the tests of landing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers.hive_metastore import hive_metastore
from tests.brokers.spark_cluster import packed_environment
from tests.landing.s3 import VARIABLES
from tests.landing.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture(scope="session")
def worker_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packed environment of executors, which lands files and reads JetStream."""
    return packed_environment(tmp_path_factory.mktemp("environment"), "nats")


@pytest.fixture(scope="session")
def hive(s3: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a metastore of Hive."""
    with hive_metastore(tmp_path_factory.mktemp("hive"), {name: os.environ[name] for name in VARIABLES}) as url:
        yield url
