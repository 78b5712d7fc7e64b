"""Fixtures of the tests of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from brokers import KafkaBroker

from tests.brokers.kafka import running_kafka
from tests.landing.workspace import Workspace
from tests.spark.shared_java import shared_java
from wirebook.spark.jars import KAFKA, class_path, locked_jars


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker of Apache Kafka, plain and with SASL_SSL."""
    with running_kafka(tmp_path_factory.mktemp("kafka"), tls=True) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_java(kafka: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """As `one_java`, with Spark's Kafka connector."""
    settings = {"spark.driver.extraClassPath": class_path(locked_jars(KAFKA))}
    with shared_java(tmp_path_factory.mktemp("kafka-java"), settings) as variables:
        yield variables
