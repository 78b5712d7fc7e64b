"""A Google Cloud Storage server for the tests: fake-gcs-server, if it is on the PATH, behind a translator."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection, socket

import msgspec

PROGRAM = shutil.which("fake-gcs-server")
TRANSLATOR = Path(__file__).with_name("gcs_translator.py")


@contextmanager
def gcs_server() -> Iterator[dict[str, str]]:
    """Run a server, with its objects in memory; yields the environment in which clients reach it."""
    assert PROGRAM is not None
    with socket() as first, socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        server, port = first.getsockname()[1], second.getsockname()[1]
    options = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(server), "-backend", "memory"]
    commands = {
        server: [PROGRAM, *options, "-public-host", f"127.0.0.1:{server}"],
        port: [sys.executable, str(TRANSLATOR), str(port), str(server)],
    }
    output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = {port: subprocess.Popen(command, **output) for port, command in commands.items()}
    try:
        for address, process in processes.items():
            wait_for(address, process)
        address = f"http://127.0.0.1:{port}"
        # GOOGLE_SKIP_SIGNATURE is of no use: `object_store` 0.13 asks for a token for each write nevertheless.
        account = {"gcs_base_url": address, "disable_oauth": True, "client_email": "", "private_key": ""}
        yield {"GOOGLE_SERVICE_ACCOUNT_KEY": msgspec.json.encode(account | {"private_key_id": ""}).decode()}
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionError:
            time.sleep(0.1)
    raise AssertionError("the server of Google Cloud Storage does not start")


def address_in(environment: dict[str, str]) -> str:
    """The address of the server to which an environment leads."""
    return str(msgspec.json.decode(environment["GOOGLE_SERVICE_ACCOUNT_KEY"])["gcs_base_url"])


def make_bucket(address: str, name: str) -> None:
    body = msgspec.json.encode({"name": name})
    url = f"{address}/storage/v1/b?project=tests"
    urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"})).close()
