"""Optional dependencies: the extra that installs each library, and the error for a library that is not installed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Final

from wirebook.problems import Problem, WirebookError

EXTRAS: Final = {
    "aiomqtt": "aiomqtt",
    "alembic": "serve",
    "cloudevents": "cloudevents",
    "confluent_kafka": "kafka",
    "deltalake": "delta",
    "elementpath": "xml",
    "fastavro": "spark",
    "google": "protobuf",
    "grpc": "connect",
    "grpc_status": "connect",
    "grpc_tools": "protobuf",
    "hdfs_native": "hdfs",
    "httptools": "serve",
    "lxml": "xml",
    "nats": "nats",
    "obstore": "stores",
    "openlineage": "openlineage",
    "paho": "mqtt",
    "pandas": "spark",
    "prometheus_client": "serve",
    "proton": "amqp",
    "psycopg": "postgres",
    "pyiceberg": "iceberg",
    "pyspark": "spark",
    "sqlalchemy": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
    "xmlschema": "xml",
}
"""The extra of pyproject.toml that installs each top-level module."""


BUILDS: Final = {
    "amqp": "; for Linux it has no wheels, and building it needs a C compiler and the headers of C and Python (Debian: "
    "apt-get install gcc libc6-dev python3-dev)",
}
"""Text added to the hint for an extra whose package may have to be built from source."""


def missing_extra(error: ImportError) -> WirebookError | None:
    """Return the error ``missing-extra`` with the command that installs the library. None if no extra has it."""
    package = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(package)
    if extra is None:
        return None
    message = f"the package '{package}' is not installed"
    hint = f"pip install 'wirebook[{extra}]'{BUILDS.get(extra, '')}"
    return WirebookError(Problem("missing-extra", message, actual=error.name, hint=hint))


def library(module: str) -> ModuleType:
    """Import and return a module of an optional dependency. Raises: WirebookError (``missing-extra``)"""
    try:
        return import_module(module)
    except ImportError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        raise missing from error
