"""`wirebook maintain` in processes of its own, again and again beside a stream that lands into a folder or into S3: no
message is lost or landed twice, and neither command fails."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from brokers import NatsServer
from killing.rows import landed_rows
from killing.stores import ICEBERG_URI, target_options

from tests.landing.s3 import write_old_object
from tests.spark.stream_commands import Watched, producing, started
from tests.spark.test_jetstream import Plants
from wirebook.landing.stores.locations import Location, files_in, location_of

pytestmark = [pytest.mark.faults, pytest.mark.spark, pytest.mark.xdist_group("servers")]

TIMES = 8
RETAIN_SECONDS = 5
"""How long `EXPIRE` keeps snapshots: longer than a batch takes."""
HOUR = 3600
MAINTAIN = "from wirebook.cli import main; main()"
EXPIRE = f"""
import json, sys
from dataclasses import asdict
from wirebook.landing.maintenance import UpkeepOptions, maintain

upkeep = maintain(sys.argv[2], UpkeepOptions(retain_hours={RETAIN_SECONDS / HOUR}))
print(json.dumps({{"tables": [asdict(done) for done in upkeep]}}))
"""
"""As `maintain`, with a retention that the command does not permit: no snapshot is an hour old."""
PROGRAMS = {"delta": MAINTAIN, "iceberg": EXPIRE}


@pytest.fixture
def plants(tmp_path: Path) -> Iterator[Plants]:
    server = NatsServer("--jetstream", "--store_dir", str(tmp_path / "jetstream"))
    yield Plants(server, tmp_path)
    server.kill()


@dataclass
class Lake:
    """Where a stream lands, and the options that say so."""

    table_format: str
    target: Location
    options: list[str]

    def leave_file_of_killed_run(self, number: int) -> Location:
        """A file of rows that the log of a table does not name, as a run leaves it that was killed two hours ago."""
        table, age = self.target / "g__seen", 2 * HOUR
        name = min(name for name in files_in(table) if name.endswith(".parquet"))
        left, data = table / f"000000-killed{number}.parquet", (table / name).read_bytes()
        if isinstance(left, Path):
            left.write_bytes(data)
            os.utime(left, (time.time() - age, time.time() - age))
        else:
            write_old_object(os.environ["AWS_ENDPOINT_URL"], str(left), data, age)
        return left


@pytest.fixture(params=["delta-file", "delta-s3", "iceberg-file", "iceberg-rest-s3"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Tables in a folder, or in an S3 server; those of Iceberg there are in a REST catalogue."""
    table_format, *places = request.param.split("-")
    target = location_of(f"{request.getfixturevalue('bucket')}/tables") if "s3" in places else tmp_path / "tables"
    if "rest" in places:
        monkeypatch.setenv(ICEBERG_URI, request.getfixturevalue("rest"))
    return Lake(table_format, target, target_options(table_format, target))


def maintain(program: str, target: Location) -> list[dict[str, Any]]:
    command = [sys.executable, "-c", program, "maintain", str(target), "--retain", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return json.loads(done.stdout)["tables"]


def test_maintenance_beside_a_stream_loses_and_disturbs_nothing(
    plants: Plants, one_java: dict[str, str], lake: Lake
) -> None:
    done, left = Counter[str](), list[Location]()
    with started(one_java, plants.arguments("--interval", "0", *lake.options)) as process:
        stream = Watched(process)
        numbers = itertools.count()
        with producing(lambda: plants.send([next(numbers) for _ in range(5)]), 0.2):
            stream.wait_for(lambda: stream.read() >= 20)
            while len(left) < TIMES or (lake.table_format == "iceberg" and done["expired"] < TIMES):
                before = len(stream.batches)
                left.append(lake.leave_file_of_killed_run(len(left)))
                for upkeep in maintain(PROGRAMS[lake.table_format], lake.target):
                    done.update({name: upkeep[name] for name in ("compacted", "deleted", "expired")})
                stream.wait_for(lambda before=before: len(stream.batches) > before)
        stream.wait_for(lambda: stream.read() == len(plants.acknowledged))
        assert stream.end(signal.SIGTERM) == 0
    assert not [note for note in stream.notes if "error" in note or "warning" in note]
    assert not (lake.target / "_wirebook" / "aside").is_dir()
    assert done["compacted"] >= TIMES
    assert done["deleted"] >= len(left)
    assert not [file for file in left if file.exists()]
    places = Counter((file, line) for _, file, line, _ in landed_rows(lake.table_format, lake.target).elements())
    assert places == {("nats:PLANTS", sequence): 1 for sequence in plants.acknowledged}
