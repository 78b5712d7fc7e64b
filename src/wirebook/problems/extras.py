"""Optional dependencies: the extra of the package that installs a library, and the error for a missing one."""

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
    "grpc_tools": "protobuf",
    "httptools": "serve",
    "lxml": "xml",
    "nats": "nats",
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
"""Top-level module to the extra in pyproject.toml that installs it."""


def missing_extra(error: ImportError) -> WirebookError | None:
    """The error ``missing-extra`` with the command that installs the library, or None for any other module."""
    package = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(package)
    if extra is None:
        return None
    message = f"the package '{package}' is not installed"
    return WirebookError(Problem("missing-extra", message, actual=error.name, hint=f"pip install 'wirebook[{extra}]'"))


def library(module: str) -> ModuleType:
    """Import a module of an optional dependency. Raises: WirebookError (``missing-extra``)."""
    try:
        return import_module(module)
    except ImportError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        raise missing from error
