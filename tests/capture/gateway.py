"""A gateway as a process of its own, and the messages in its segments."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx

from wirebook.landing.stores.locations import Location, files_in

KILLS = int(os.environ.get("WIREBOOK_KILLS", "2"))
"""How often a fault test kills; the long run sets more."""
Action = Callable[[], object]


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
        assert self.process.stderr
        err = self.process.stderr.read()  # `communicate` would lose what the stream has read ahead
        return self.process.wait(timeout=120), err


def command(catalog: Path, folder: Path | str, *arguments: str) -> list[str]:
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from wirebook.cli import main; main()"
    return [sys.executable, "-c", program, "capture", "--catalog", str(catalog), "--to", str(folder), *arguments]


@contextlib.contextmanager
def full_disk(catalog: Path, folder: Path, *arguments: str) -> Iterator[GatewayProcess]:
    """Run a gateway whose files cannot grow beyond 500 bytes, until `make_room` is called, to the end of the block."""
    arguments_ = command(catalog, folder, *arguments)
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (500, resource.RLIM_INFINITY))"
    arguments_[2] = f"import resource; {limit}\n" + arguments_[2]
    process = subprocess.Popen(arguments_, stderr=subprocess.PIPE, text=True)
    try:
        yield GatewayProcess(process)
    finally:
        process.kill()
        process.communicate()


def make_room(process: GatewayProcess) -> None:
    """Let the files of a gateway grow."""
    resource.prlimit(process.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def pending_bytes(metrics: str) -> int:
    """The bytes in the memory of a gateway that are not durable; `metrics` is its address of metrics."""
    return int(httpx.get(f"http://{metrics}/readyz", trust_env=False).json()["pending_bytes"])


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


def lines_in(folder: Location) -> list[dict[str, Any]]:
    """The records in segments, also in the one under way. One that is completed meanwhile may be left out."""
    records = list[dict[str, Any]]()
    for name in files_in(folder):
        if name.endswith((".jsonl", ".partial")):
            with contextlib.suppress(FileNotFoundError):
                lines = (folder / name).read_bytes().splitlines(keepends=True)
                records += [json.loads(line) for line in lines if line.endswith(b"}\n")]
    return records


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


class Clients:
    """Threads that post numbered messages to a gateway for HTTP until they are stopped.

    `acknowledged` are the bodies that it has acknowledged, `others` those that it may have captured.
    """

    def __init__(self, port: int, threads: int = 6) -> None:
        self.acknowledged, self.others = set[str](), set[str]()
        self._url, self._stop = f"http://127.0.0.1:{port}/hooks", threading.Event()
        self._threads = [threading.Thread(target=self._post, args=(number,)) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def _post(self, thread: int) -> None:
        with httpx.Client(trust_env=False, timeout=60) as client:
            for number in itertools.count():
                if self._stop.wait(0.01):
                    return
                body = f"{thread}.{number}.{'x' * random.randrange(2000)}"
                try:
                    answer = client.post(self._url, content=body)
                except httpx.TransportError:
                    self.others.add(body)
                    time.sleep(0.05)
                else:
                    (self.acknowledged if answer.status_code == 202 else self.others).add(body)

    def check_none_acknowledged(self) -> set[str]:
        """Check that the gateway acknowledges nothing now; returns what it has acknowledged."""
        time.sleep(0.5)  # answers that are under way
        before = set(self.acknowledged)
        time.sleep(1)
        assert self.acknowledged == before
        return before

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def check_captured(self, bodies: list[str]) -> None:
        """Check the bodies in segments: every acknowledged message once, and nothing that was not sent."""
        assert self.acknowledged
        assert len(bodies) == len(set(bodies))
        assert self.acknowledged <= set(bodies) <= self.acknowledged | self.others


def kill_often(run: Callable[[], AbstractContextManager[GatewayProcess]], stop: Action, start: Action) -> None:
    """Kill gateways at random moments; every second time, the broker has been stopped and started before."""
    for number in range(KILLS):
        with run() as process:
            time.sleep(random.uniform(0.02, 1.5))
            if number % 2:
                stop()
                time.sleep(random.uniform(0, 0.5))
                start()
                time.sleep(random.uniform(0, 1.5))
            process.process.send_signal(signal.SIGKILL)
            process.process.wait()


def wait_for_all(accepted: Callable[[], set[str]], folder: Location, member: str) -> None:
    """Wait until all accepted messages are captured, as long as some arrive within a minute."""
    missing = accepted()
    while missing:
        before, end = len(missing), time.monotonic() + 60
        while len(missing) == before:
            assert time.monotonic() < end, f"{len(missing)} messages do not arrive, such as {min(missing)}"
            time.sleep(0.5)
            missing = accepted() - {record[member] for record in lines_in(folder)}
