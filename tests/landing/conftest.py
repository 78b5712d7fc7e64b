"""Fixtures of the tests of landing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers.iceberg_rest import rest_catalog
from tests.brokers.spark_cluster import packed_environment
from tests.landing.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture(scope="session")
def worker_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packed environment of executors, which lands files and reads JetStream."""
    return packed_environment(tmp_path_factory.mktemp("environment"), "nats")


@pytest.fixture(scope="session")
def rest(s3: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of Iceberg's REST catalogue."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL")
    with rest_catalog(tmp_path_factory.mktemp("rest"), {name: os.environ[name] for name in names}) as url:
        yield url
