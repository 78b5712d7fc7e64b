"""Checkpoints that are extended without `deltalake`: the table is the same when it is read from them alone."""

from __future__ import annotations

import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from wirebook.landing.tables import delta_checkpoints
from wirebook.landing.tables.delta import DeltaFormat
from wirebook.landing.tables.delta_checkpoints import Checkpoints, extend_checkpoint, has_checkpoint, log_file
from wirebook.landing.tables.formats import StagedFile, TableTraits
from wirebook.landing.tables.names import TablePlace
from wirebook.landing.tables.partitions import DayPartition

SCHEMA = pa.schema({"n": pa.int64(), "t": pa.string()})
DAY = 24 * 3600


class Table:
    """A Delta table to which batches of two files are committed."""

    def __init__(self, folder: Path, traits: TableTraits) -> None:
        self.folder, self.log, self._traits = folder / "table", folder / "table" / "_delta_log", traits
        self._staging, self._format = folder / "staging", DeltaFormat()
        self._staging.mkdir(parents=True)

    def commit(self, batch: int) -> None:
        days = ("-day-2026-05-01", "-day-none") if self._traits.day else ("", "")
        files = [self._staging / f"{batch:06d}-{place}{day}.parquet" for place, day in enumerate(days)]
        for file in files:
            pq.write_table(pa.Table.from_pylist([{"n": batch, "t": f'é"{batch}'}], SCHEMA), file)
        staged = {file: StagedFile("table", file.name, 1) for file in files}
        self._format.commit(TablePlace(self.folder.parent, "table"), batch, staged, SCHEMA, self._traits)
        self._format.wait()

    @property
    def version(self) -> int:
        return DeltaTable(self.folder).version()

    def checkpoint(self) -> None:
        DeltaTable(self.folder).create_checkpoint()

    def extend(self) -> bool:
        return extend_checkpoint(self.log, self.version)

    def state(self) -> dict[str, Any]:
        """What `deltalake` reads of the table."""
        table = DeltaTable(self.folder)
        files = pa.table(table.get_add_actions(flatten=False)).sort_by("path").to_pylist()
        return {
            "files": files,
            "transaction": table.transaction_version("wirebook"),
            "schema": table.schema().to_json(),
            "configuration": table.metadata().configuration,
            "rows": sorted(map(str, table.to_pyarrow_table().to_pylist())),
        }

    def without_earlier_log(self) -> dict[str, Any]:
        """The same read from the last checkpoint alone."""
        version = orjson.loads((self.log / "_last_checkpoint").read_bytes())["version"]
        copy = self.folder.with_name("copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.folder, copy)
        for number in range(version + 1):
            log_file(copy / "_delta_log", number).unlink()
        other = Table.__new__(Table)
        other.folder = copy
        return other.state()


@pytest.fixture(params=[TableTraits(), TableTraits(day=DayPartition("at", "day"))], ids=["plain", "days"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """A table with the checkpoint of its fourth version, and three more versions."""
    table = Table(tmp_path, request.param)
    for batch in range(1, 5):
        table.commit(batch)
    table.checkpoint()
    for batch in range(5, 8):
        table.commit(batch)
    return table


def test_extended_checkpoint_is_the_table(table: Table) -> None:
    expected = table.state()
    assert table.extend()
    assert table.without_earlier_log() == expected
    for batch in range(8, 11):
        table.commit(batch)
    expected = table.state()
    assert table.extend()
    assert table.without_earlier_log() == expected
    assert (len(expected["files"]), expected["transaction"]) == (20, 10)


def test_actions_that_are_not_in_memory_at_once(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_checkpoints, "ACTIONS_AT_ONCE", 3)
    for batch in range(8, 11):
        expected = table.state()
        assert table.extend()
        assert table.without_earlier_log() == expected
        table.commit(batch)
    assert pq.ParquetFile(last_checkpoint(table)).num_row_groups > 3


def test_transactions_of_other_writers_stay(table: Table) -> None:
    lines = [orjson.dumps({"txn": {"appId": "other", "version": 3, "lastUpdated": 5}})]
    log_file(table.log, table.version + 1).write_bytes(b"\n".join(lines))
    assert table.extend()
    table.commit(8)
    assert table.extend()
    assert DeltaTable(table.folder).transaction_version("other") == 3
    assert table.without_earlier_log() == table.state()


def test_compacted_table_is_left_to_deltalake_until_it_has_a_checkpoint(table: Table) -> None:
    DeltaTable(table.folder).optimize.compact()
    assert not table.extend()
    table.checkpoint()
    table.commit(8)
    expected = table.state()
    assert table.extend()
    assert table.without_earlier_log() == expected
    assert len(pq.read_table(last_checkpoint(table)).column("remove").drop_null())  # files that vacuum may delete


def test_first_checkpoint_is_left_to_deltalake(tmp_path: Path) -> None:
    table = Table(tmp_path, TableTraits())
    table.commit(1)
    assert not table.extend()
    assert not list(table.log.glob("*checkpoint*"))


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.logRetentionDuration": "interval 1 days"},
        {"delta.checkpoint.writeStatsAsStruct": "true"},
        {"delta.enableExpiredLogCleanup": "false"},
    ],
    ids=lambda properties: next(iter(properties)),
)
def test_table_with_settings_for_checkpoints_is_left_to_deltalake(table: Table, properties: dict[str, str]) -> None:
    DeltaTable(table.folder).alter.set_table_properties(properties)
    assert not table.extend()
    table.checkpoint()
    table.commit(8)
    assert not table.extend()


@pytest.mark.parametrize("stated", ["0", "-5", "often", ""])
def test_interval_that_delta_lake_refuses_is_not_used(stated: str) -> None:
    assert checkpoints({"delta.checkpointInterval": stated}) == checkpoints({})
    assert len(checkpoints({"delta.checkpointInterval": "10"})) == 100


def checkpoints(configuration: dict[str, str]) -> list[int]:
    return [version for version in range(1, 1001) if has_checkpoint("t", version, configuration)]


def test_log_that_is_due_for_cleanup_is_left_to_deltalake(table: Table) -> None:
    first = log_file(table.log, 0)
    os.utime(first, (0, time.time() - 30.5 * DAY))
    assert table.extend()
    os.utime(first, (0, time.time() - 31.5 * DAY))
    table.commit(8)
    assert not table.extend()
    for version in range(4):  # those before the checkpoint
        log_file(table.log, version).unlink()
    assert table.extend()


@pytest.mark.parametrize("content", [None, b"", b"{", b"{}", b'{"version":2}', b'{"version":3,"parts":2}'])
def test_unknown_last_checkpoint_is_left_to_deltalake(table: Table, content: bytes | None) -> None:
    path = table.log / "_last_checkpoint"
    path.unlink() if content is None else path.write_bytes(content)
    assert not table.extend()


def test_later_checkpoint_of_another_program_stays(table: Table) -> None:
    table.checkpoint()
    before = (table.log / "_last_checkpoint").read_bytes()
    assert extend_checkpoint(table.log, table.version - 1)
    assert (table.log / "_last_checkpoint").read_bytes() == before


def test_threads_request_checkpoints_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are committed by several threads."""
    monkeypatch.setattr(delta_checkpoints, "_checkpoint", lambda *_: None)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    checkpoints = Checkpoints()
    try:
        with ThreadPoolExecutor(8) as threads:
            requests = [threads.submit(checkpoints.request, Path(f"t{number % 50}")) for number in range(20_000)]
        assert [request.exception() for request in requests if request.exception()] == []
        checkpoints.wait()
    finally:
        sys.setswitchinterval(interval)


def test_file_added_again_is_listed_once(table: Table) -> None:
    """As other programs do to change the statistics of a file."""
    lines = log_file(table.log, 0).read_bytes().splitlines()
    (add, *_) = [action["add"] for action in map(orjson.loads, lines) if "add" in action]
    known = {name: add[name] for name in ("path", "partitionValues", "size", "modificationTime", "dataChange")}
    log_file(table.log, table.version + 1).write_bytes(orjson.dumps({"add": known | {"stats": '{"numRecords":1}'}}))
    expected = table.state()
    assert table.extend()
    assert table.without_earlier_log() == expected


def test_columns_added_by_another_writer(table: Table) -> None:
    """Metadata changes, which only `deltalake` may put into a checkpoint."""
    rows = pa.table({"n": [8], "t": ["x"], "more": [1.5]})
    partition = {"day": pa.array([None], pa.date32())} if "day" in str(table.state()["schema"]) else {}
    rows = pa.table({**dict(zip(rows.column_names, rows.columns, strict=True)), **partition})
    write_deltalake(table.folder, rows, mode="append", schema_mode="merge")
    assert not table.extend()


def last_checkpoint(table: Table) -> Path:
    return max(table.log.glob("*.checkpoint.parquet"))
