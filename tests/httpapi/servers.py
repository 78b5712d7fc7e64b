"""Runs servers as processes: `wirebook serve` on a free port."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

PROGRAM = "from wirebook.cli import main; main()"
READY = 60
"""Seconds within which a server must start, on a busy machine."""


@dataclass
class Server:
    """A running server. `log` is the file of its standard error."""

    process: subprocess.Popen[str]
    base: str
    log: Path

    def client(self, **settings: Any) -> httpx.Client:
        return httpx.Client(base_url=self.base, timeout=60, trust_env=False, **settings)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, seconds: float = 30) -> int:
        """Stop the server. Returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)


def launch(db: str, log: Path, *options: str) -> subprocess.Popen[str]:
    """Start a server."""
    command = [sys.executable, "-c", PROGRAM, "serve", "--port", "0", "--db", db, *options]
    with log.open("a") as errors:
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)


def when_ready(process: subprocess.Popen[str], log: Path) -> Server:
    """Wait for the line with the URL of the server."""
    timer = threading.Timer(READY, process.kill)
    timer.start()
    assert process.stdout
    line = process.stdout.readline()
    timer.cancel()
    if not line.startswith("listening on "):
        process.kill()
        raise AssertionError(f"the server did not start ({process.wait()}): {log.read_text()}")
    return Server(process, line.split()[2].rstrip("/"), log)


@contextmanager
def serving(db: str, log: Path, *options: str, count: int = 1) -> Iterator[list[Server]]:
    """Servers on one database, started together and killed at the end."""
    processes = [launch(db, log, *options) for _ in range(count)]
    try:
        yield [when_ready(process, log) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


class Follower(threading.Thread):
    """Reads an event stream until it ends. `events` are the received events, `ids` their ids."""

    def __init__(self, base: str, last: str | None = None) -> None:
        super().__init__(daemon=True)
        self.base, self.last = base, last
        self.events: list[dict[str, Any]] = []
        self.ids: list[str] = []
        self.is_open = threading.Event()
        self.start()

    def run(self) -> None:
        with suppress(httpx.TransportError):  # the server was killed
            self._follow()

    def _follow(self) -> None:
        headers = {"Last-Event-ID": self.last} if self.last is not None else {}
        with (
            httpx.Client(timeout=60, trust_env=False) as client,
            client.stream("GET", f"{self.base}/.wirebook/events", headers=headers) as answer,
        ):
            assert answer.status_code == 200, answer.read()
            for line in answer.iter_lines():
                self.is_open.set()
                name, _, value = line.partition(": ")
                if name == "id":
                    self.ids.append(value)
                elif name == "data":
                    self.events.append(json.loads(value))
