"""An S3 server for the tests: moto's, in a process of its own, with its objects in memory."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from socket import socket

AGE = "x-amz-meta-age"
"""An object with this header is so many seconds older than it is; no S3 server lets clients set the time."""
PROGRAM = f"""
from datetime import timedelta
from moto.s3.models import FakeKey
from moto.server import main

set_metadata = FakeKey.set_metadata

def set_metadata_and_age(key, *arguments, **options):
    set_metadata(key, *arguments, **options)
    key.last_modified -= timedelta(seconds=int(key.metadata.get("{AGE}", 0)))

FakeKey.set_metadata = set_metadata_and_age
main()
"""
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "never-shown", "AWS_REGION": "us-east-1"}
VARIABLES = (*CREDENTIALS, "AWS_ENDPOINT_URL")
"""The environment variables by which programs reach the server."""


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """Run a server; yields the environment in which clients reach it."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", PROGRAM, "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        while process.poll() is None:
            try:
                urllib.request.urlopen(f"{address}/moto-api/", timeout=5).close()
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        assert process.poll() is None, "the S3 server does not start"
        yield CREDENTIALS | {"AWS_ENDPOINT_URL": address}
    finally:
        process.kill()
        process.wait()


def make_bucket(address: str, name: str) -> None:
    urllib.request.urlopen(urllib.request.Request(f"{address}/{name}", method="PUT")).close()


def write_old_object(address: str, url: str, data: bytes, age: int) -> None:
    """Write an object as if that had been `age` seconds ago."""
    place = f"{address}/{url.removeprefix('s3://')}"
    headers = {AGE: str(age), "Content-Type": "application/octet-stream"}  # moto hangs if it seems to be a form
    urllib.request.urlopen(urllib.request.Request(place, data, headers, method="PUT"), timeout=60).close()
