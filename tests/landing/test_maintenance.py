"""Upkeep: files become fewer, rows stay, and landing, replaying and reading go on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import IntegerType

from tests.landing.test_table_formats import forbid
from tests.landing.test_table_settings import BY_DAY, PAID, Shop, event, read, registry
from tests.landing.workspace import Workspace
from wirebook.cli.app import run
from wirebook.landing.maintenance import UpkeepOptions, maintain
from wirebook.landing.tables import iceberg_compaction
from wirebook.landing.tables.formats import Upkeep
from wirebook.landing.tables.iceberg_catalog import catalog_of
from wirebook.problems import WirebookError

NOW = UpkeepOptions(retain_hours=0)
OLD = time.time() - 30 * 24 * 3600


def lines(count: int, **members: Any) -> bytes:
    values = ({"protocol": "X", "t": "ab"[i % 2], "n": i, **members} for i in range(count))
    return b"".join(msgspec.json.encode(value) + b"\n" for value in values) + b"bad\n"


def land_often(workspace: Any, times: int = 4, **settings: Any) -> int:
    """Land one file after the other; returns the number of messages."""
    for number in range(times):
        workspace.write(f"f{number}", lines(10, pad=number))
        assert not workspace.land(**settings).problems
    return 11 * times


def upkeep_of(workspace: Any, options: UpkeepOptions = NOW, *tables: str) -> dict[str, Upkeep]:
    return {upkeep.table: upkeep for upkeep in maintain(workspace.to, options, tables)}


def delta_rows(workspace: Any) -> int:
    from deltalake import DeltaTable

    tables = (path.parent for path in workspace.to.glob("*/_delta_log"))
    return sum(DeltaTable(str(table)).to_pyarrow_dataset().count_rows() for table in tables)


def iceberg_table(workspace: Any, name: str = "a") -> Any:
    table = catalog_of(workspace.to).load(name)
    assert table is not None
    return table


def iceberg_rows(workspace: Any) -> int:
    """The rows of all tables. Fails if there is a row twice."""
    tables = [iceberg_table(workspace, name).scan().to_arrow().to_pylist() for name in ("a", "b", "dead_letters")]
    places = Counter((row["_source_file"], row["_line"], row["_index"]) for rows in tables for row in rows)
    assert set(places.values()) == {1}
    return places.total()


def test_delta_tables_are_compacted_and_their_old_files_deleted(workspace: Any) -> None:
    workspace.settings.table_format = "delta"
    expected = land_often(workspace)
    before = sorted(workspace.to.rglob("*"))
    planned = upkeep_of(workspace, UpkeepOptions(0, dry_run=True))
    assert {name: upkeep.compacted for name, upkeep in planned.items()} == {"a": 4, "b": 4, "dead_letters": 4}
    assert sorted(workspace.to.rglob("*")) == before
    done = upkeep_of(workspace)
    assert {name: (upkeep.compacted, upkeep.deleted) for name, upkeep in done.items()} == {
        "a": (4, 4),
        "b": (4, 4),
        "dead_letters": (4, 4),
    }
    assert [len(list((workspace.to / table).glob("*.parquet"))) for table in ("a", "b")] == [1, 1]
    assert delta_rows(workspace) == expected
    assert list((workspace.to / "a" / "_delta_log").glob("*.checkpoint.parquet"))
    workspace.write("more", lines(10, pad="more"))
    assert workspace.land().read == 11
    assert delta_rows(workspace) == expected + 11
    again = upkeep_of(workspace, UpkeepOptions(168))
    assert {upkeep.deleted for upkeep in again.values()} == {0}


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_dead_letters_are_replayed_after_upkeep(workspace: Any, table_format: str) -> None:
    workspace.settings.table_format = table_format
    land_often(workspace, engine={"unknown": ["b"]})
    assert upkeep_of(workspace)["dead_letters"].compacted == 4
    assert workspace.replay().landed == 20
    upkeep_of(workspace)
    assert workspace.replay().landed == 0


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_dead_letters_of_several_endpoints_stay_in_their_files(workspace: Any, table_format: str) -> None:
    workspace.settings.table_format = table_format
    workspace.write("1", lines(10))
    workspace.land(endpoint="/endpoints/one")
    workspace.write("2", lines(10, pad="x"))
    workspace.land(endpoint="/endpoints/two")
    done = upkeep_of(workspace)
    assert (done["a"].compacted, done["dead_letters"].compacted) == (2, 0)
    workspace.replay()


def test_only_old_files_that_no_version_has_are_deleted(workspace: Any) -> None:
    workspace.settings.table_format = "delta"
    expected = land_often(workspace, 2)
    (first,) = list((workspace.to / "a").glob("000001-*.parquet"))
    for name, modified in (("000009-killed.parquet", OLD), ("000010-running.parquet", time.time())):
        path = workspace.to / "a" / name
        path.write_bytes(first.read_bytes())
        os.utime(path, (modified, modified))
    done = upkeep_of(workspace, UpkeepOptions(168, compacts=False), "a")
    assert (done["a"].compacted, done["a"].deleted) == (0, 1)
    assert not (workspace.to / "a" / "000009-killed.parquet").exists()
    assert (workspace.to / "a" / "000010-running.parquet").exists()
    assert delta_rows(workspace) == expected


# -- Iceberg ---------------------------------------------------------------------------------------------------------


def figures(done: dict[str, Upkeep]) -> dict[str, tuple[int, int, int, int]]:
    return {name: (done[name].files, done[name].compacted, done[name].deleted, done[name].expired) for name in done}


def make_old(workspace: Any, *, snapshots: bool = True) -> None:
    """Set the times of all files of the table `a`, and of its snapshots, a month back."""
    metadata = Path(iceberg_table(workspace).metadata_location.removeprefix("file://"))
    document = json.loads(metadata.read_bytes())
    for entry in (*document["snapshots"], *document["snapshot-log"]) if snapshots else ():
        entry["timestamp-ms"] -= 30 * 24 * 3600 * 1000
    metadata.write_text(json.dumps(document))
    for path in (workspace.to / "a").rglob("*"):
        os.utime(path, (OLD, OLD))


def test_iceberg_tables_are_compacted_and_the_rest_deleted_later(workspace: Any) -> None:
    workspace.settings.table_format = "iceberg"
    expected = land_often(workspace)
    before = {path: path.read_bytes() for path in workspace.to.rglob("*") if path.is_file()}
    planned = upkeep_of(workspace, UpkeepOptions(0, dry_run=True))
    assert {path: path.read_bytes() for path in workspace.to.rglob("*") if path.is_file()} == before
    done = upkeep_of(workspace)
    # Deleted are the manifest lists of three snapshots; the fourth was current until the compaction.
    assert figures(planned) == figures(done) == dict.fromkeys(("a", "b", "dead_letters"), (4, 4, 3, 3))
    assert iceberg_rows(workspace) == expected
    snapshot = iceberg_table(workspace).current_snapshot()
    assert (snapshot.summary["operation"].value, snapshot.summary["wirebook.batch"]) == ("replace", "4")
    assert snapshot.summary["total-records"] == "20"
    (file,) = iceberg_table(workspace).inspect.files().to_pylist()
    assert (file["readable_metrics"]["_line"]["lower_bound"], file["record_count"]) == (1, 20)
    planned, done = upkeep_of(workspace, UpkeepOptions(0, dry_run=True)), upkeep_of(workspace)
    # Four data files, four manifests and a manifest list.
    assert figures(planned) == figures(done) == dict.fromkeys(("a", "b", "dead_letters"), (1, 0, 9, 1))
    assert [len(list((workspace.to / table).glob("*.parquet"))) for table in ("a", "b")] == [1, 1]
    assert iceberg_rows(workspace) == expected
    workspace.write("more", lines(10, pad="more"))
    assert workspace.land().read == 11
    assert iceberg_rows(workspace) == expected + 11


NESTED = pa.schema(
    [
        ("color-e", pa.int64()),
        (
            "parts",
            pa.list_(pa.struct([pa.field("name", pa.string(), nullable=False), ("sizes", pa.list_(pa.int32()))])),
        ),
        ("labels", pa.map_(pa.string(), pa.binary())),
    ]
)


def test_columns_that_iceberg_tables_got_later_are_kept_by_compaction(workspace: Any) -> None:
    workspace.settings.table_format = "iceberg"
    workspace.write("1", lines(4))
    workspace.land()
    with iceberg_table(workspace).update_schema() as update:
        update.union_by_name(NESTED)
    later = {"color-e": 7, "parts": [{"name": "n", "sizes": [1, None]}], "labels": [("k", b"v")], "_line": 9}
    new, folder = pa.schema([*NESTED, ("_line", pa.int64())]), workspace.to / "a"
    pq.write_table(pa.Table.from_pylist([later, {"_line": 10}], new), folder / "later.parquet")
    iceberg_table(workspace).add_files([f"file://{folder}/later.parquet"])
    before = pq.read_table(folder / "later.parquet").to_pylist()
    expected = sorted(iceberg_table(workspace).scan().to_arrow().drop(["parts"]).to_pylist(), key=str)
    assert upkeep_of(workspace, NOW, "a")["a"].compacted == 2
    assert sorted(iceberg_table(workspace).scan().to_arrow().drop(["parts"]).to_pylist(), key=str) == expected
    (file,) = folder.glob("compacted-*.parquet")
    assert pq.read_table(file).select(new.names).to_pylist()[-2:] == before
    with iceberg_table(workspace).update_schema() as update:
        update.rename_column("parts.element.name", "title")
    assert (
        iceberg_table(workspace).scan().to_arrow()["parts"].to_pylist().count([{"title": "n", "sizes": [1, None]}]) == 1
    )
    workspace.write("2", lines(4, pad="2"))
    assert not workspace.land().problems


def test_iceberg_files_from_before_a_column_was_renamed_or_dropped_are_left_alone(workspace: Any) -> None:
    workspace.settings.table_format = "iceberg"
    land_often(workspace, 2)
    assert upkeep_of(workspace, NOW, "a")["a"].compacted == 2
    with iceberg_table(workspace).update_schema() as update:
        update.rename_column("_line", "line")
        update.delete_column("_index")
    with iceberg_table(workspace).update_schema() as update:
        update.add_column("_index", IntegerType())
    rows = iceberg_table(workspace).scan().to_arrow()
    assert rows["_index"].null_count == 10
    iceberg_table(workspace).append(rows)
    assert upkeep_of(workspace, UpkeepOptions(0, dry_run=True), "a")["a"].compacted == 0
    done = upkeep_of(workspace, NOW, "a")["a"]
    assert (done.files, done.compacted) == (2, 0)
    with iceberg_table(workspace).update_schema() as update:
        update.rename_column("line", "_line")
    assert upkeep_of(workspace, NOW, "a")["a"].compacted == 0
    iceberg_table(workspace).append(iceberg_table(workspace).scan(limit=1).to_arrow())
    iceberg_table(workspace).append(iceberg_table(workspace).scan(limit=1).to_arrow())
    assert upkeep_of(workspace, NOW, "a")["a"].compacted == 2
    assert iceberg_table(workspace).scan().to_arrow()["_index"].null_count == 22


def test_iceberg_files_are_compacted_up_to_the_size(workspace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iceberg_compaction, "ROW_GROUP_BYTES", 1)
    workspace.settings.table_format = "iceberg"
    expected = land_often(workspace, 5)
    size = max(file["file_size_in_bytes"] for file in iceberg_table(workspace).inspect.files().to_pylist())
    assert upkeep_of(workspace, UpkeepOptions(0, target_bytes=2 * size), "a")["a"].compacted == 4
    assert upkeep_of(workspace, UpkeepOptions(0, target_bytes=size // 2), "a")["a"].compacted == 0
    assert upkeep_of(workspace, UpkeepOptions(0, compacts=False), "a")["a"].compacted == 0
    assert len(iceberg_table(workspace).inspect.files()) == 3
    assert iceberg_rows(workspace) == expected


def test_iceberg_files_of_a_day_are_compacted(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    for first in (1, 3, 5):
        events = [event(PAID, n, time=f"2026-05-0{1 + n % 2}T12:00:00Z") for n in (first, first + 1)]
        shop.land(registry(PAID), *events, tables=BY_DAY, table_format="iceberg")
    name = shop.names()[PAID]
    assert read(shop, name) == ([1, 2, 3, 4, 5, 6], 6)
    (done,) = maintain(shop.to, NOW, [name])
    assert (done.files, done.compacted) == (6, 6)
    assert read(shop, name) == ([1, 2, 3, 4, 5, 6], 2)
    assert read(shop, name, date(2026, 5, 1)) == ([2, 4, 6], 1)
    shop.land(registry(PAID), event(PAID, 7, time="2026-05-01T13:00:00Z"))
    assert read(shop, name, date(2026, 5, 1)) == ([2, 4, 6, 7], 2)


def test_snapshot_stays_as_long_as_it_was_current_within_the_retention(workspace: Any) -> None:
    workspace.settings.table_format = "iceberg"
    land_often(workspace, 2)
    make_old(workspace)
    workspace.write("new", lines(10, pad="new"))
    workspace.land()
    first, second, _ = iceberg_table(workspace).snapshots()
    done = upkeep_of(workspace, UpkeepOptions(24), "a")["a"]
    assert (done.compacted, done.deleted, done.expired) == (3, 1, 1)
    table = iceberg_table(workspace)
    assert table.snapshot_by_id(first.snapshot_id) is None
    assert table.scan(snapshot_id=second.snapshot_id).to_arrow().num_rows == 10
    assert upkeep_of(workspace, UpkeepOptions(24), "a")["a"].deleted == 0


def test_all_snapshots_within_the_retention_can_be_read(workspace: Any) -> None:
    """Not all of their lists of manifests are read to find the files that they have."""
    workspace.settings.table_format = "iceberg"
    land_often(workspace, 4)
    upkeep_of(workspace)
    for number in range(4):
        workspace.write(f"later{number}", lines(10, pad=f"later{number}"))
        workspace.land()
    rows = iceberg_table(workspace).scan().to_arrow()
    iceberg_table(workspace).overwrite(rows.slice(0, 7))
    iceberg_table(workspace).append(rows.slice(7))
    make_old(workspace, snapshots=False)
    snapshots = iceberg_table(workspace).snapshots()
    read = [iceberg_table(workspace).scan(snapshot_id=snapshot.snapshot_id).to_arrow() for snapshot in snapshots]
    (workspace.to / "a" / "orphan.parquet").write_bytes(b"PAR1")
    os.utime(workspace.to / "a" / "orphan.parquet", (OLD, OLD))
    done = upkeep_of(workspace, UpkeepOptions(24, compacts=False), "a")["a"]
    assert (done.deleted, done.expired, len(snapshots)) == (1, 0, 9)
    for snapshot, expected in zip(snapshots, read, strict=True):
        assert iceberg_table(workspace).scan(snapshot_id=snapshot.snapshot_id).to_arrow().equals(expected)


def test_snapshots_with_a_tag_and_tables_without_garbage_collection_stay(workspace: Any) -> None:
    workspace.settings.table_format = "iceberg"
    land_often(workspace, 3)
    first, *_ = iceberg_table(workspace).snapshots()
    iceberg_table(workspace).manage_snapshots().create_tag(first.snapshot_id, "report").commit()
    with iceberg_table(workspace, "b").transaction() as transaction:
        transaction.set_properties({"gc.enabled": "false"})
    done = upkeep_of(workspace)
    assert [(done[name].deleted, done[name].expired) for name in ("a", "b")] == [(1, 1), (0, 0)]
    assert iceberg_table(workspace).scan(snapshot_id=first.snapshot_id).to_arrow().num_rows == 5


def test_only_old_files_that_no_snapshot_of_iceberg_has_are_deleted(workspace: Any) -> None:
    workspace.settings.table_format = "iceberg"
    expected = land_often(workspace, 2)
    folder = workspace.to / "a"
    (first,) = list(folder.glob("000001-*.parquet"))
    make_old(workspace, snapshots=False)
    old = ["000009-killed.parquet", "metadata/snap-1-0-failed.avro", "metadata/00009-failed.metadata.json"]
    kept = ["notes.txt", "_temporary.parquet", f"elsewhere/{first.name.replace('-', '%252D')}"]
    young = ["000010-running.parquet", "metadata/running-m0.avro"]
    (folder / "elsewhere").mkdir()
    for name in (*old, *kept, *young):
        content = next(folder.glob("metadata/00000-*.json")) if name.endswith(".json") else first
        (folder / name).write_bytes(content.read_bytes())
        os.utime(folder / name, None if name in young else (OLD - 1, OLD - 1))
    before = {path for path in folder.rglob("*") if path.is_file()}
    for options in (UpkeepOptions(168, compacts=False, dry_run=True), UpkeepOptions(168, compacts=False)):
        assert upkeep_of(workspace, options, "a")["a"] == Upkeep("a", 2, deleted=3)
        assert options.dry_run == ({path for path in folder.rglob("*") if path.is_file()} == before)
    assert before - {*folder.rglob("*")} == {folder / name for name in old}
    assert iceberg_rows(workspace) == expected


def test_files_of_a_table_whose_catalogue_was_lost_stay(workspace: Any) -> None:
    workspace.settings.table_format = "iceberg"
    land_often(workspace, 2)
    iceberg = catalog_of(workspace.to)
    iceberg.catalog.drop_table(iceberg.identifier("a"))
    workspace.write("new", lines(10, pad="new"))
    assert not workspace.land().problems
    before = {*workspace.to.joinpath("a").rglob("*")}
    assert upkeep_of(workspace, UpkeepOptions(0, compacts=False), "a")["a"].deleted == 0
    assert before <= {*workspace.to.joinpath("a").rglob("*")}


LANDER = """
import sys
from pathlib import Path
from tests.landing.workspace import Workspace
from wirebook.cli.app import run

workspace = Workspace(Path(sys.argv[1]))
for number in range(10):
    text = "".join(f'{{"protocol": "X", "t": "{"ab"[line % 2]}", "n": "{number}-{line}"}}\\n' for line in range(10))
    workspace.write(f"p{number}", text.encode())
    report = workspace.land(table_format="iceberg")
    assert (report.problems, report.read) == ([], 10), report
"""


def test_upkeep_beside_a_process_that_commits_all_the_time(workspace: Any) -> None:
    """Everything but what the process writes is older than the retention, so that upkeep deletes beside it."""
    workspace.settings.table_format = "iceberg"
    expected, deleted = land_often(workspace, 2), 0
    upkeep_of(workspace)
    make_old(workspace)
    with subprocess.Popen(
        [sys.executable, "-c", LANDER, str(workspace.root)], cwd=Path(__file__).parents[2]
    ) as process:
        while process.poll() is None:
            done = upkeep_of(workspace, UpkeepOptions(1))
            deleted += done["a"].deleted
    assert process.returncode == 0
    assert deleted == 5  # two data files, their manifests, and the list of these
    assert iceberg_rows(workspace) == expected + 100
    assert workspace.land().read == 0


def test_plain_parquet_is_left_alone(workspace: Any) -> None:
    land_often(workspace)
    before = sorted(workspace.to.rglob("*"))
    assert {upkeep.files for upkeep in upkeep_of(workspace).values()} == {4}
    assert sorted(workspace.to.rglob("*")) == before


@pytest.mark.parametrize(("table_format", "rows"), [("delta", delta_rows), ("iceberg", iceberg_rows)])
def test_upkeep_beside_landing_loses_and_disturbs_nothing(
    workspace: Any, table_format: str, rows: Callable[[Any], int]
) -> None:
    workspace.settings.table_format = table_format
    expected = land_often(workspace, 2)
    done, failures = threading.Event(), []

    def keep_up() -> None:
        try:
            while not done.is_set():
                upkeep_of(workspace, UpkeepOptions(1))
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=keep_up)
    thread.start()
    for number in range(12):
        workspace.write(f"g{number}", lines(10, pad=f"g{number}"))
        report = workspace.land()
        assert not report.problems
        expected += report.read
    done.set()
    thread.join()
    assert not failures
    assert rows(workspace) == expected
    assert workspace.land().read == 0


def test_unknown_table_and_missing_target(workspace: Any, tmp_path: Path) -> None:
    land_often(workspace, 1)
    with pytest.raises(WirebookError, match="unknown-table"):
        upkeep_of(workspace, NOW, "c")
    with pytest.raises(WirebookError, match="no-target"):
        list(maintain(tmp_path / "nothing", NOW))


@pytest.mark.xdist_group("servers")
def test_files_of_killed_runs_in_a_store_are_deleted(tmp_path: Path, bucket: str) -> None:
    remote = Workspace(tmp_path, f"{bucket}/tables")
    remote.write("1", lines(10))
    remote.die("staged")
    remote.land()
    done = {upkeep.table: upkeep for upkeep in maintain(str(remote.to), NOW)}
    assert {name: upkeep.deleted for name, upkeep in done.items()} == {"a": 1, "b": 1, "dead_letters": 1}
    remote.check_conserved(11)


@pytest.mark.xdist_group("servers")
def test_files_of_a_batch_that_the_next_run_finishes_stay(tmp_path: Path, bucket: str) -> None:
    remote = Workspace(tmp_path, f"{bucket}/tables")
    remote.write("1", lines(10))
    remote.land()
    remote.write("2", lines(10, pad="x"))
    remote.die("moved")
    assert {upkeep.deleted for upkeep in maintain(str(remote.to), NOW)} == {0}
    assert remote.land().recovered.total() == 11
    remote.check_conserved(22)


# -- tables that cannot be maintained ----------------------------------------------------------------------------------


def map_columns(folder: Path) -> None:
    """Give the columns of a Delta table a mapping, which `deltalake` does not support when it compacts."""
    log = folder / "_delta_log"
    entries = [msgspec.json.decode(line) for line in (log / f"{0:020}.json").read_bytes().splitlines()]
    metadata = next(entry["metaData"] for entry in entries if "metaData" in entry)
    schema = msgspec.json.decode(metadata["schemaString"])
    for number, field in enumerate(schema["fields"], 1):
        field["metadata"] |= {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": field["name"]}
    count = str(len(schema["fields"]))
    metadata["configuration"] = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": count}
    metadata["schemaString"] = msgspec.json.encode(schema).decode()
    actions = ({"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, {"metaData": metadata})
    commit = log / f"{len(list(log.glob('*.json'))):020}.json"
    commit.write_bytes(b"\n".join(map(msgspec.json.encode, actions)) + b"\n")


def damage(folder: Path) -> None:
    log = folder / "_delta_log"
    (log / f"{len(list(log.glob('*.json'))):020}.json").write_text("{broken\n")


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("change", "reason", "hint"),
    [
        (map_columns, "Column mapping is not supported", "'delta.columnMapping.mode' = 'none'"),
        (forbid, "Unsupported table features required: [ClusteredTable", "recreate the table"),
        (damage, "Json error: Encountered unexpected 'b' whilst parsing object", "correct the table"),
    ],
)
def test_delta_table_that_cannot_be_maintained_does_not_block_the_others(
    workspace: Any,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Path], Any],
    reason: str,
    hint: str,
    dry_run: bool,
) -> None:
    workspace.settings.table_format = "delta"
    land_often(workspace, 2)
    change(workspace.to / "a")
    before = sorted((workspace.to / "a").rglob("*"))
    done = upkeep_of(workspace, UpkeepOptions(0, dry_run=dry_run))
    problem = done["a"].problem
    assert problem is not None
    assert (problem.code, problem.file) == ("unwritable-target", str(workspace.to / "a"))
    assert problem.message.startswith(f"the table 'a' cannot be maintained: {reason}" if change != damage else "the")
    assert problem.message.endswith(reason) or change != damage
    assert hint in str(problem.hint)
    assert sorted((workspace.to / "a").rglob("*")) == before
    assert (done["a"].compacted, done["b"].compacted, done["b"].problem) == (0, 2, None)
    assert run(["maintain", str(workspace.to), "--json"]) == 2
    out, err = capsys.readouterr()
    printed = json.loads(out)
    assert [row["table"] for row in printed["tables"]] == ["b", "dead_letters"]
    assert [problem["code"] for problem in printed["problems"]] == ["unwritable-target"]
    assert "the table 'a' cannot be maintained" in err


def test_iceberg_table_without_its_metadata_does_not_block_the_others(workspace: Any) -> None:
    workspace.settings.table_format = "iceberg"
    land_often(workspace, 2)
    Path(iceberg_table(workspace).metadata_location.removeprefix("file://")).unlink()
    done = upkeep_of(workspace)
    assert done["a"].problem is not None
    assert "the table 'a' cannot be maintained: FileNotFoundError" in done["a"].problem.message
    assert (done["b"].compacted, done["b"].problem) == (2, None)


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_dry_run_counts_the_files_of_each_partition(tmp_path: Path, table_format: str) -> None:
    shop = Shop(tmp_path)
    for number, days in enumerate(([1, 2], [2], [2, 3])):
        events = [event(PAID, 10 * number + day, f"2026-11-0{day}T00:00:00Z") for day in days]
        assert not shop.land(registry(PAID), *events, tables=BY_DAY, table_format=table_format).problems
    [planned] = maintain(shop.to, UpkeepOptions(dry_run=True))
    [done] = maintain(shop.to, UpkeepOptions())
    assert (planned.compacted, done.compacted) == (3, 3)
