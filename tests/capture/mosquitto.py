"""A Mosquitto broker that keeps its sessions on disk and can be restarted."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from brokers import free_port, make_certificates, wait_for

from tests.pages.fences import search_path

CONFIGURATION = """
listener {port} 127.0.0.1
{tls}
persistence true
persistence_location {folder}/
max_queued_messages 0
max_inflight_messages 20
user root
{access}
"""


class Mosquitto:
    """A broker in a folder. `password` is that of the user `gateway`; without it, everyone may connect. With `tls`, its
    certificate is that of localhost, by the authority in `certificate`."""

    def __init__(self, folder: Path, password: str | None = None, *, tls: bool = False) -> None:
        self.port, self._folder, self.certificate = free_port(), folder, folder / "ca.pem"
        files = ""
        if tls:
            make_certificates(folder)
            files = f"certfile {folder}/cert.pem\nkeyfile {folder}/key.pem"
        access = "allow_anonymous true"
        if password is not None:
            users = folder / "users"
            subprocess.run(["mosquitto_passwd", "-b", "-c", users, "gateway", password], check=True)
            access = f"allow_anonymous false\npassword_file {users}"
        text = CONFIGURATION.format(port=self.port, folder=folder, access=access, tls=files)
        (folder / "mosquitto.conf").write_text(text)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [program("mosquitto"), "-c", self._folder / "mosquitto.conf"], stdout=log, stderr=log
            )
        wait_for(self.port, self._process)

    def stop(self) -> None:
        """Stop the broker; it saves sessions and messages."""
        assert self._process
        self._process.terminate()
        self._process.wait(60)


@contextlib.contextmanager
def mosquitto(folder: Path, password: str | None = None, *, tls: bool = False) -> Iterator[Mosquitto]:
    if shutil.which("mosquitto", path=search_path()) is None or (tls and shutil.which("openssl") is None):
        pytest.skip("needs mosquitto" + " and openssl" * tls)
    folder.mkdir()
    broker = Mosquitto(folder, password, tls=tls)
    try:
        yield broker
    finally:
        broker.stop()


def program(name: str) -> str:
    found = shutil.which(name, path=search_path())
    assert found
    return found
