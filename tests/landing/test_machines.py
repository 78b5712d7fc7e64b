"""Commands on several machines that land into one target in an object store: each message lands once.

A machine is a host name and a space of process numbers of its own. Tests are skipped if namespaces are not permitted.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from killing.rows import landed_rows
from killing.victims import descendants

from tests.spark.test_land_spark import CATALOGUE, event
from wirebook.landing.stores.locations import location_of

pytestmark = [pytest.mark.faults, pytest.mark.xdist_group("servers")]

CATALOGUE_VARIABLE = "PYICEBERG_CATALOG__LAKE__URI"
UNSHARE = ("unshare", *(() if os.geteuid() == 0 else ("--map-root-user",)), "--uts", "--pid", "--fork", "--kill-child")
BOOT = """
hostname "$1"
number=0
while [ "$number" -lt "$2" ]; do (:); number=$((number + 1)); done
shift 2
"$@"
exit $?
"""
"""A shell script that runs a program on a machine: HOSTNAME PROCESSES PROGRAM ARGUMENTS... So many processes have run
there before."""
PROGRAM = (sys.executable, "-c", "from wirebook.cli import main; main()")
HOSTS = ("ann", "bob", "cid")
HELD = re.compile(r"another run \(process \d+ on (\w+)\) is writing .*\[target-locked\]")
SECONDS = 300


class Lake:
    """Files of events and a target in a bucket. `namespace` is that of its tables in an Iceberg catalogue, which
    PyIceberg knows as ``lake``."""

    def __init__(self, bucket: str, folder: Path, namespace: str | None) -> None:
        self.source, self.target, self.namespace = f"{bucket}/raw", f"{bucket}/tables", namespace
        self.written: set[tuple[str, int]] = set()
        self._catalogue = folder / "catalogue.json"
        self._catalogue.write_text(json.dumps(CATALOGUE))

    def write(self, files: int, events: int = 4000) -> None:
        """Write files for several batches; every fiftieth event has no definition."""
        for _ in range(files):
            numbers = range(first := len(self.written), first + events)
            data = (json.dumps(event(n, "seen" if n % 50 else "other")).encode() + b"\n" for n in numbers)
            (location_of(self.source) / f"{first}.jsonl").write_bytes(b"".join(data))
            self.written.update((f"{first}.jsonl", line) for line in range(1, events + 1))

    def command(self) -> list[str]:
        command = ["land", self.source, "--catalog", str(self._catalogue), "--to", self.target, "--local", "--json"]
        command += ["--batch-size", "1", "--no-report"]
        if self.namespace:
            command += ["--format", "iceberg", "--iceberg-catalog", "lake", "--iceberg-namespace", self.namespace]
        return command

    def check_landed(self) -> None:
        """For readers of the tables, every message is in one table or in the dead letters, once."""
        assert self._places() == dict.fromkeys(self.written, 1)

    def _places(self) -> Counter[tuple[str, int]]:
        if self.namespace is None:
            return Counter(
                (file, line) for _, file, line, _ in landed_rows("delta", location_of(self.target)).elements()
            )
        from pyiceberg.catalog import load_catalog

        places = Counter[tuple[str, int]]()
        settings = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"], "s3.region": os.environ["AWS_REGION"]}
        catalog = load_catalog("lake", uri=os.environ[CATALOGUE_VARIABLE], **settings)  # PyIceberg reads variables once
        for name in catalog.list_tables(self.namespace):
            rows = catalog.load_table(name).scan(selected_fields=("_source_file", "_line")).to_arrow()
            places.update(zip(rows["_source_file"].to_pylist(), rows["_line"].to_pylist(), strict=True))
        return places


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    permitted = subprocess.run(
        ["sh", "-c", f"{' '.join(UNSHARE)} hostname {HOSTS[0]}"], capture_output=True, check=False
    )
    if permitted.returncode:
        pytest.skip(f"needs namespaces of host names and processes: {permitted.stderr.decode().strip()}")
    if request.param == "delta":
        return Lake(bucket, tmp_path, None)
    monkeypatch.setenv(CATALOGUE_VARIABLE, request.getfixturevalue("rest"))
    return Lake(bucket, tmp_path, f"machines.{bucket.rpartition('/')[2]}")


@contextmanager
def started(host: str, arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A command that runs on a machine; it is killed at the end."""
    command = [*UNSHARE, "sh", "-c", BOOT, "sh", host, str(10 * HOSTS.index(host)), *PROGRAM, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def land_until_done(host: str, lake: Lake, pause: float = 0) -> tuple[dict[str, Any], list[str]]:
    """Repeat a landing as long as the target is locked. Returns what it prints, and the errors before."""
    errors = list[str]()
    while True:
        with started(host, lake.command()) as process:
            out, err = process.communicate(timeout=SECONDS)
        if process.returncode == 0:
            return json.loads(out), errors
        check_refused(process.returncode, out, err, "target-locked")
        errors.append(err)
        time.sleep(pause)


def check_refused(code: int, out: str, err: str, *codes: str) -> None:
    assert (code, out) == (2, ""), err
    assert any(f"[{code}]" in err for code in codes), err
    assert "Traceback" not in err, err


def test_machines_that_land_at_once_land_every_message_once(lake: Lake) -> None:
    """Until two of them have landed something, and two have found the target held by another one."""
    landed, refused = Counter[str](), Counter[str]()
    with ThreadPoolExecutor(len(HOSTS)) as pool:
        for _ in range(20):
            lake.write(files=3)
            results = [*pool.map(lambda host: land_until_done(host, lake), HOSTS)]
            for host, (result, errors) in zip(HOSTS, results, strict=True):
                landed[host] += result["read"]
                holders = {holder for error in errors for holder in HELD.findall(error)}
                assert holders <= {*HOSTS} - {host}
                refused[host] += len(holders)
            assert landed.total() == len(lake.written)
            if len(+landed) > 1 and len(+refused) > 1:
                break
    assert len(+landed) > 1
    assert len(+refused) > 1
    lake.check_landed()


def test_machine_that_stands_still_is_overtaken_and_changes_nothing_afterwards(lake: Lake) -> None:
    dice, batches = random.Random(time.time_ns()), location_of(lake.target) / "_wirebook" / "batches"
    lake.write(files=12)
    with started("ann", lake.command()) as process:
        while not [*batches.below()]:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        time.sleep(dice.uniform(0, 0.5))
        stopped = descendants(process.pid)
        for one in stopped:
            one.kill(signal.SIGSTOP)
        result, errors = land_until_done("bob", lake, pause=2)
        assert result["read"]
        assert {holder for error in errors for holder in HELD.findall(error)} == {"ann"}
        for one in stopped:
            one.kill(signal.SIGCONT)
        out, err = process.communicate(timeout=SECONDS)
        # A request that was under way has failed.
        check_refused(process.returncode, out, err, "target-locked", "store-failed")
    lake.check_landed()
    assert land_until_done("ann", lake)[0]["read"] == 0
