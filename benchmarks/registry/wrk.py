"""Runs wrk, which simulates many clients on a core of its own, and parses its report."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from servers import CLIENT_CORE

UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}
MISSING = "the registry benchmarks need wrk; install it (Debian: apt-get install wrk)"

READS = """
local targets = %s
local next = 0
local count = 0
request = function()
  next = next %% #targets + 1
  count = count + 1
  local tag = targets[next][2]
  return wrk.format("GET", targets[next][1], {["If-None-Match"] = tag and tag:gsub("COUNT", count)})
end
"""
CREATES = """
local next = 0
local body = %s
request = function()
  next = next + 1
  return wrk.format("PUT", string.format(%s, next), {["Content-Type"] = "application/json"}, body)
end
"""


@dataclass(frozen=True)
class Load:
    """The result of wrk. `p50` and `p99` are in milliseconds; `failed` counts errors and broken responses."""

    rate: float
    p50: float
    p99: float
    failed: int
    count: int


def reads(url: str, targets: Sequence[tuple[str, str | None]], folder: Path, seconds: int, clients: int) -> Load:
    """Send GETs of the paths in a cycle, each with its ETag for If-None-Match, or None. COUNT in an ETag becomes a
    unique number."""
    rows = ",".join(f"{{{json.dumps(path)},{json.dumps(tag) if tag else 'nil'}}}" for path, tag in targets)
    return _run(url, READS % f"{{{rows}}}", folder, seconds, clients)


def creates(url: str, path: str, body: bytes, folder: Path, seconds: int, *, clients: int) -> Load:
    """Send PUTs of new entities to `path`, in which %d becomes a number."""
    return _run(url, CREATES % (json.dumps(body.decode()), json.dumps(path)), folder, seconds, clients)


def _run(url: str, script: str, folder: Path, seconds: int, clients: int) -> Load:
    (folder / "load.lua").write_text(script)
    wrk = shutil.which("wrk")
    if wrk is None:
        raise SystemExit(MISSING)
    pin = ["taskset", "-c", CLIENT_CORE] if shutil.which("taskset") else []
    how = ["--latency", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "20s", "-s", folder / "load.lua"]
    done = subprocess.run([*pin, wrk, *how, url], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise SystemExit(f"wrk failed: {done.stderr.strip() or done.stdout.strip()}")
    return parse(done.stdout)


def parse(text: str) -> Load:
    """Parse the report of wrk."""
    failed = sum(map(int, re.findall(r"Non-2xx or 3xx responses: (\d+)", text)))
    failed += sum(
        sum(map(int, counts)) for counts in re.findall(r"connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    )
    rate = float(re.findall(r"Requests/sec:\s+([\d.]+)", text)[0])
    count = int(re.findall(r"(\d+) requests in", text)[0])
    return Load(rate, _time(text, "50"), _time(text, "99"), failed, count)


def _time(text: str, percent: str) -> float:
    number, unit = re.findall(rf"^\s+{percent}%\s+([\d.]+)(us|ms|s|m)$", text, re.MULTILINE)[0]
    return float(number) * UNITS[unit]
