"""The servers of the benchmarks, as processes on one core: the registry, a bare uvicorn, PostgreSQL."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

CORE, CLIENT_CORE = "0", "1"
"""The cores of servers and of clients."""

BARE = """
import sys, uvicorn
body = open(sys.argv[1], "rb").read()
head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})
config = uvicorn.Config(app, port=0, log_config=None, access_log=False, http="httptools", loop="uvloop", lifespan="off")
listener = config.bind_socket()
listener.listen(2048)
print("listening on http://127.0.0.1:%d/" % listener.getsockname()[1], flush=True)
uvicorn.Server(config).run(sockets=[listener])
"""
TICK = os.sysconf("SC_CLK_TCK")


class Server:
    """A running server. `url` is its root without a trailing slash; `ready` is the startup time in seconds."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        started = time.perf_counter()
        pinned = [*(["taskset", "-c", CORE] if shutil.which("taskset") else []), *command]
        with log.open("ab") as errors:
            self._process = subprocess.Popen(pinned, stdout=subprocess.PIPE, stderr=errors, text=True)  # noqa: S603
        assert self._process.stdout
        line = self._process.stdout.readline()
        self.ready = time.perf_counter() - started
        address = re.search(r"http://\S+", line)
        if not address:
            raise SystemExit(f"a server did not start: {line} (see {log})")
        self.url = address[0].rstrip("/")

    @property
    def memory(self) -> int:
        """Current memory in bytes; shared pages count proportionally (PSS)."""
        text = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text()
        return int(re.findall(r"^Pss:\s+(\d+)", text, re.MULTILINE)[0]) * 1024

    @property
    def anonymous(self) -> int:
        """Bytes of `memory` that no file backs, which the operating system cannot drop."""
        text = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text()
        return int(re.findall(r"^Pss_Anon:\s+(\d+)", text, re.MULTILINE)[0]) * 1024

    @property
    def cpu(self) -> float:
        """CPU seconds since the start."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def registry(database: str, folder: Path) -> Iterator[Server]:
    wirebook = Path(sys.executable).with_name("wirebook")
    server = Server([wirebook, "serve", "--port", "0", "--db", database], folder / "server.log")
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def bare(body: bytes, folder: Path) -> Iterator[Server]:
    """uvicorn with the settings of the registry and a constant response."""
    (folder / "body").write_bytes(body)
    server = Server([sys.executable, "-c", BARE, folder / "body"], folder / "bare.log")
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def postgresql() -> Iterator[str | None]:
    """Yield the URL of a temporary PostgreSQL with default durability; None if it is not installed."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not binaries:
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="wirebook-bench-postgresql-"))
    data, user = folder / "data", []
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
        user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]

    def run(*command: str | Path) -> None:
        subprocess.run([*user, *command], check=True, cwd=folder, stdout=subprocess.DEVNULL)  # noqa: S603

    run(binaries[-1] / "initdb", "-D", data, "-U", "bench", "-A", "trust")
    options = f"-c listen_addresses='' -c unix_socket_directories={folder}"
    run(binaries[-1] / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
    try:
        yield f"postgresql://bench@/postgres?host={folder}"
    finally:
        run(binaries[-1] / "pg_ctl", "-D", data, "-m", "fast", "stop")
        shutil.rmtree(folder, ignore_errors=True)
