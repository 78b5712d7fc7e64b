"""A gateway as a process of its own, and the messages in its segments."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

KILLS = int(os.environ.get("WIREBOOK_KILLS", "2"))
"""How often a fault test kills; the long run sets more."""


class GatewayProcess:
    """A running gateway. `notes` are the lines that it printed before it was ready."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process, self.notes = process, list[str]()
        assert process.stderr
        for line in process.stderr:
            self.notes.append(line.rstrip())
            if "capturing /" in line:
                return
        raise AssertionError("the gateway ended: " + "\n".join(self.notes))

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Stop the gateway; its exit code, and what it printed since it was ready."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        _, err = self.process.communicate(timeout=120)
        return self.process.returncode, err


def command(catalog: Path, folder: Path | str, *arguments: str) -> list[str]:
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from wirebook.cli import main; main()"
    return [sys.executable, "-c", program, "capture", "--catalog", str(catalog), "--to", str(folder), *arguments]


@contextlib.contextmanager
def gateway(
    catalog: Path, folder: Path | str, *arguments: str, env: dict[str, str] | None = None
) -> Iterator[GatewayProcess]:
    """Run a gateway until the end of the block."""
    process = subprocess.Popen(
        command(catalog, folder, *arguments), stderr=subprocess.PIPE, text=True, env=os.environ | (env or {})
    )
    try:
        yield GatewayProcess(process)
    finally:
        process.kill()
        process.communicate()


def write_catalog(folder: Path, endpoints: dict[str, dict[str, Any]]) -> Path:
    """A catalogue with these endpoints: usage, protocol and options of each."""
    document = {
        "specversion": "1.0-rc4",
        "endpoints": {name: {"endpointid": name, **endpoint} for name, endpoint in endpoints.items()},
    }
    path = folder / "catalog.xreg.json"
    path.write_text(json.dumps(document))
    return path


def captured(folder: Path) -> list[dict[str, Any]]:
    """The records of all complete segments."""
    files = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    return [json.loads(line) for path in files for line in path.read_bytes().splitlines()]


def lines_in(folder: Path) -> list[dict[str, Any]]:
    """The records in segments, also in the one under way."""
    files = [*folder.glob("*.jsonl"), *folder.glob(".*.partial")]
    lines = [line for path in files for line in path.read_bytes().splitlines(keepends=True)]
    return [json.loads(line) for line in lines if line.endswith(b"}\n")]


def wait_until(is_met: Callable[[], bool]) -> None:
    """Wait for what happens in another process; a minute at most."""
    end = time.monotonic() + 60
    while not is_met():
        assert time.monotonic() < end, "waited a minute"
        time.sleep(0.05)


def wait_for_note(process: GatewayProcess, text: str) -> str:
    """Wait until the gateway prints a line with a text; returns the line."""
    assert process.process.stderr
    while text not in (line := process.process.stderr.readline()):
        assert line, "the gateway ended"
    return line
