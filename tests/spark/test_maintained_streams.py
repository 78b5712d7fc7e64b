"""`wirebook maintain` in processes of its own, again and again beside a stream that lands: no message is lost or landed
twice, and neither command fails."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from brokers import NatsServer
from killing.rows import landed_rows

from tests.spark.stream_commands import Watched, started
from tests.spark.test_jetstream import Plants

pytestmark = [pytest.mark.faults, pytest.mark.spark, pytest.mark.xdist_group("servers")]

TIMES = 8
HOURS = 3600
MAINTAIN = "from wirebook.cli import main; main()"
EXPIRE_ALL = """
import json, sys
from dataclasses import asdict
from wirebook.landing.maintenance import UpkeepOptions, maintain

print(json.dumps({"tables": [asdict(upkeep) for upkeep in maintain(sys.argv[2], UpkeepOptions(retain_hours=0))]}))
"""
"""As `maintain`, with a retention that the command does not permit: no snapshot is an hour old."""
PROGRAMS = {"delta": MAINTAIN, "iceberg": EXPIRE_ALL}


@pytest.fixture
def plants(tmp_path: Path) -> Iterator[Plants]:
    server = NatsServer("--jetstream", "--store_dir", str(tmp_path / "jetstream"))
    yield Plants(server, tmp_path)
    server.kill()


@contextmanager
def producing(plants: Plants) -> Iterator[None]:
    """Send messages all the time."""
    is_over, numbers = threading.Event(), itertools.count()

    def produce() -> None:
        while not is_over.wait(0.2):
            plants.send([next(numbers) for _ in range(5)])

    producer = threading.Thread(target=produce)
    producer.start()
    try:
        yield
    finally:
        is_over.set()
        producer.join()


def leave_file_of_killed_run(table: Path, number: int) -> Path:
    """A file of rows that the log of a table does not name, as a run leaves it that was killed two hours ago."""
    (path, *_) = sorted(table.glob("*.parquet"))
    left, then = table / f"000000-killed{number}.parquet", time.time() - 2 * HOURS
    shutil.copyfile(path, left)
    os.utime(left, (then, then))
    return left


def maintain(program: str, target: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-c", program, "maintain", str(target), "--retain", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return json.loads(done.stdout)["tables"]


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_maintenance_beside_a_stream_loses_and_disturbs_nothing(
    plants: Plants, one_java: dict[str, str], table_format: str
) -> None:
    table, done, left = plants.target / "g__seen", Counter[str](), list[Path]()
    arguments = plants.arguments("--interval", "0", "--format", table_format)
    with started(one_java, arguments) as process:
        stream = Watched(process)
        with producing(plants):
            stream.wait_for(lambda: stream.read() >= 20)
            for number in range(TIMES):
                before = len(stream.batches)
                if table_format == "delta":
                    left.append(leave_file_of_killed_run(table, number))
                for upkeep in maintain(PROGRAMS[table_format], plants.target):
                    done.update({name: upkeep[name] for name in ("compacted", "deleted", "expired")})
                stream.wait_for(lambda before=before: len(stream.batches) > before)
        stream.wait_for(lambda: stream.read() == len(plants.acknowledged))
        assert stream.end(signal.SIGTERM) == 0
    assert not [note for note in stream.notes if "error" in note or "warning" in note]
    assert not (plants.target / "_wirebook" / "aside").exists()
    if table_format == "delta":
        assert done["compacted"] >= TIMES
        assert done["deleted"] == len(left)
        assert not [path for path in left if path.exists()]
    else:
        assert done["expired"] >= TIMES
    places = Counter((file, line) for _, file, line, _ in landed_rows(table_format, plants.target).elements())
    assert places == {("nats:PLANTS", sequence): 1 for sequence in plants.acknowledged}
