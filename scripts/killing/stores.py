"""An S3 server and an Iceberg catalogue for targets of the long runs that kill landings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from killing.victims import descendants
from tests.landing.s3 import make_bucket, s3_server
from wirebook.landing.stores.locations import Location

ICEBERG_CATALOG = "kills"
"""The Iceberg catalogue of targets in an object store, by PyIceberg's settings."""
ICEBERG_URI = f"PYICEBERG_CATALOG__{ICEBERG_CATALOG.upper()}__URI"
"""The environment variable that has its address."""


@contextmanager
def running_store(bucket: str) -> Iterator[tuple[str, int]]:
    """Run an S3 server, to which the environment leads; yields the URL of a bucket and the process id of the server."""
    with s3_server() as environment:
        os.environ.update(environment)
        make_bucket(environment["AWS_ENDPOINT_URL"], bucket)
        yield f"s3://{bucket}", descendants(os.getpid())[1].pid


def set_iceberg_catalogue(database: Path) -> None:
    """Keep the catalogue in a database from now on."""
    os.environ[ICEBERG_URI] = f"sqlite:///{database}"


def iceberg_catalogue() -> Any:
    """Open the catalogue. PyIceberg reads the environment only once in a process."""
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415

    store = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"], "s3.region": os.environ["AWS_REGION"]}
    return load_catalog(ICEBERG_CATALOG, uri=os.environ[ICEBERG_URI], **store)


def target_options(form: str, target: Location) -> list[str]:
    """The options of a command that lands into a target: in an object store, Iceberg needs a catalogue."""
    options = ["--to", str(target), "--format", form]
    if form == "iceberg" and not isinstance(target, Path):
        options += ["--iceberg-catalog", ICEBERG_CATALOG, "--iceberg-namespace", "wirebook"]
    return options
