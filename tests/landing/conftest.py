"""Fixtures of the tests of landing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.landing.s3 import make_bucket, s3_server
from tests.landing.workspace import Workspace

BUCKETS = count()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The address of an S3 server, to which the environment leads."""
    with s3_server() as environment:
        before = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)
        yield environment["AWS_ENDPOINT_URL"]
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture
def bucket(s3: str) -> str:
    """The URL of a new bucket."""
    name = f"bucket{next(BUCKETS)}"
    make_bucket(s3, name)
    return f"s3://{name}"
