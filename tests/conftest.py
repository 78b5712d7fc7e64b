"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from brokers import KafkaBroker
from hypothesis import settings

from tests.brokers.hdfs import running_hdfs
from tests.brokers.iceberg_rest import rest_catalog
from tests.brokers.kafka import running_kafka
from tests.landing import azure as azure_store
from tests.landing import gcs as google_store
from tests.landing.s3 import VARIABLES, make_bucket, s3_server
from tests.scheduling import ChunkScheduling
from tests.spark.shared_java import shared_java
from wirebook.spark.jars import KAFKA, class_path, locked_jars

# No test is timed. In CI the examples are the same each time; elsewhere they are new ones.
settings.register_profile("wirebook", deadline=None, max_examples=50, derandomize=bool(os.environ.get("CI")))
settings.load_profile("wirebook")

# Java compiles fast instead of well: the tests run each piece of code a few times only.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")

BUCKETS = count()
GROUPS = ("servers", "kafka")
"""The groups of tests that take longest. Those of `servers` share a Java process, stores and catalogues."""
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real catalogues, texts and events beside the project; tests that need it skip aloud without it."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"needs the folder '{folder.name}' beside the project: real catalogues, texts and events")
    return folder


@pytest.fixture(scope="session")
def one_java_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working directory of `one_java`."""
    return tmp_path_factory.mktemp("java")


@pytest.fixture(scope="session")
def one_java(s3: str, one_java_folder: Path) -> Iterator[dict[str, str]]:
    """The environment variables of programs that share one Java process, whose Python workers reach the S3 server. The
    programs must use absolute paths or run in `one_java_folder`."""
    with shared_java(one_java_folder) as variables:
        yield variables


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker of Apache Kafka, plain and with SASL_SSL."""
    with running_kafka(tmp_path_factory.mktemp("kafka"), tls=True) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_java_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working directory of `kafka_java`."""
    return tmp_path_factory.mktemp("kafka-java")


@pytest.fixture(scope="session")
def kafka_java(s3: str, kafka_java_folder: Path) -> Iterator[dict[str, str]]:
    """As `one_java`, with Spark's Kafka connector."""
    with shared_java(kafka_java_folder, {"spark.driver.extraClassPath": class_path(locked_jars(KAFKA))}) as variables:
        yield variables


@contextmanager
def variables_set(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    yield
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The address of an S3 server, to which the environment leads."""
    with s3_server() as environment, variables_set(environment):
        yield environment["AWS_ENDPOINT_URL"]


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An Azure Blob server, to which the environment leads."""
    if azure_store.PROGRAM is None:
        pytest.skip("needs `azurite-blob` on the PATH (npm install -g azurite)")
    with azure_store.azure_server(tmp_path_factory.mktemp("azure")), variables_set(azure_store.ENVIRONMENT):
        yield


@pytest.fixture(scope="session")
def gcs() -> Iterator[str]:
    """The address of a Google Cloud Storage server, to which the environment leads."""
    if google_store.PROGRAM is None:
        pytest.skip("needs `fake-gcs-server` on the PATH (go install github.com/fsouza/fake-gcs-server@v1.56.1)")
    with google_store.gcs_server() as environment, variables_set(environment):
        yield google_store.address_in(environment)


@pytest.fixture
def bucket(s3: str) -> str:
    """The URL of a new bucket."""
    name = f"bucket{next(BUCKETS)}"
    make_bucket(s3, name)
    return f"s3://{name}"


@pytest.fixture(scope="session")
def rest(s3: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of Iceberg's REST catalogue."""
    with rest_catalog(tmp_path_factory.mktemp("rest"), {name: os.environ[name] for name in VARIABLES}) as url:
        yield url


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of HDFS."""
    with running_hdfs(tmp_path_factory.mktemp("hdfs")) as url:
        yield url


@pytest.fixture
def directory(hdfs: str) -> str:
    """The URL of a new folder of HDFS."""
    return f"{hdfs}/folder{next(BUCKETS)}"


@pytest.fixture
def container(azure: None) -> str:
    """The URL of a new container of Azure."""
    name = f"bucket{next(BUCKETS)}"
    azure_store.make_container(name)
    return f"abfss://{name}@{azure_store.ACCOUNT}.dfs.core.windows.net"


@pytest.fixture
def google_bucket(gcs: str) -> str:
    """The URL of a new bucket of Google Cloud Storage."""
    name = f"bucket{next(BUCKETS)}"
    google_store.make_bucket(gcs, name)
    return f"gs://{name}"


@pytest.fixture(params=["bucket", "container", "google_bucket", "directory"])
def store(request: pytest.FixtureRequest) -> str:
    """The URL of a bucket of S3, a container of Azure, a bucket of Google Cloud Storage, or a folder of HDFS."""
    return str(request.getfixturevalue(request.param))


def pytest_collection_finish() -> None:
    """Exempt what lives as long as the process, modules and tests, from garbage collection, which takes a fifth of the
    time of the tests otherwise."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests that share a Java process in one of pytest-xdist's processes, and start with those that take long:
    the groups of tests that share servers, tests of Spark, and the examples of the documentation."""
    for item in items:
        if "one_java" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("servers"))
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    group = item.get_closest_marker("xdist_group")
    if group is not None:
        name = group.args[0]
        return GROUPS.index(name) if name in GROUPS else len(GROUPS)
    is_slow = item.get_closest_marker("spark") is not None or item.path.name == "test_docs.py"
    return len(GROUPS) + (1 if is_slow else 2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    return ChunkScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None
