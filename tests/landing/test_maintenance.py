"""Upkeep: files become fewer, rows stay, and landing, replaying and reading go on."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.landing.workspace import Workspace
from wirebook.landing.maintenance import UpkeepOptions, maintain
from wirebook.landing.tables.formats import Upkeep
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


def test_dead_letters_are_replayed_after_upkeep(workspace: Any) -> None:
    workspace.settings.table_format = "delta"
    land_often(workspace, engine={"unknown": ["b"]})
    upkeep_of(workspace)
    assert workspace.replay().landed == 20
    upkeep_of(workspace)
    assert workspace.replay().landed == 0


def test_dead_letters_of_several_endpoints_stay_in_their_files(workspace: Any) -> None:
    workspace.settings.table_format = "delta"
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


def test_snapshots_of_iceberg_expire(workspace: Any) -> None:
    workspace.settings.table_format = "iceberg"
    land_often(workspace)
    assert upkeep_of(workspace, UpkeepOptions(0, dry_run=True), "a")["a"].expired == 3
    assert upkeep_of(workspace, NOW, "a")["a"].expired == 3
    assert upkeep_of(workspace, NOW, "a")["a"].expired == 0
    workspace.write("more", lines(10, pad="more"))
    assert workspace.land().read == 11


def test_plain_parquet_is_left_alone(workspace: Any) -> None:
    land_often(workspace)
    before = sorted(workspace.to.rglob("*"))
    assert {upkeep.files for upkeep in upkeep_of(workspace).values()} == {4}
    assert sorted(workspace.to.rglob("*")) == before


def test_upkeep_beside_landing_loses_and_disturbs_nothing(workspace: Any) -> None:
    workspace.settings.table_format = "delta"
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
    assert delta_rows(workspace) == expected
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
