"""HDFS, on a real NameNode, where it differs from object stores: files grow, and tables can be Parquet files."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hdfs_native import Client

from tests.landing.test_table_settings import PAID, TIMES, Shop, event, registry
from tests.landing.workspace import Workspace
from wirebook.cli.app import run
from wirebook.landing.report.show import first_rows, tables_in
from wirebook.landing.runs.target import Target
from wirebook.landing.stores import hdfs as hdfs_module
from wirebook.landing.stores import records
from wirebook.landing.stores.hdfs import COPYING, TEMPORARY, HdfsPath
from wirebook.landing.stores.locations import location_of
from wirebook.landing.stores.objects import is_refusal
from wirebook.landing.stores.segments import ObjectSegments
from wirebook.problems import WirebookError

pytestmark = pytest.mark.xdist_group("servers")
EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
LINE = b'{"protocol":"X","t":"a","n":%d}\n'


@pytest.fixture
def source(directory: str) -> HdfsPath:
    path = location_of(f"{directory}/raw")
    assert isinstance(path, HdfsPath)
    return path


@pytest.fixture
def append(hdfs: str) -> Callable[[HdfsPath, bytes], None]:
    """A function that appends to a file."""

    def append_to(path: HdfsPath, data: bytes) -> None:
        with Client(hdfs).append(f"/{path.key}") as file:
            file.write(data)

    return append_to


@pytest.fixture
def remote(tmp_path: Path, directory: str) -> Workspace:
    """A workspace whose target is in HDFS and has tables of Parquet files."""
    workspace = Workspace(tmp_path, f"{directory}/tables")
    workspace.settings = replace(workspace.settings, table_format="parquet")
    return workspace


# -- files -----------------------------------------------------------------------------------------------------------


def test_file_is_created_once_and_never_seen_in_part(source: HdfsPath) -> None:
    file = source / "sub" / "x"
    file.create(b"first")
    file.create(b"first")  # as after an answer that was lost
    with pytest.raises(FileExistsError):
        file.create(b"other")
    before = file.status()
    file.write_bytes(b"second")
    assert file.read_bytes(version=file.status().version) == b"second"
    with pytest.raises(OSError, match="has been replaced"):
        file.read_bytes(version=before.version)
    assert (file.read_bytes(2, 4), file.read_bytes(9), source.folders()) == (b"co", b"", ["sub"])
    assert [(path, status.size) for path, status in source.below()] == [(file, 6)]
    assert [path.name for path, _ in HdfsPath(source.bucket, "").below() if path.name.startswith(TEMPORARY)] == []
    assert (source.exists(), source.is_dir(), (file / "below").exists(), (file / "below").is_dir()) == (
        False,
        True,
        False,
        False,
    )
    file.unlink()
    file.unlink()
    assert not source.is_dir()


def test_file_that_is_replaced_while_it_is_opened_is_read_whole(
    source: HdfsPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, read = source / "a", Client.read
    file.write_bytes(b"the first content")

    def read_and_replace(client: Client, path: str) -> Any:
        reader = read(client, path)
        monkeypatch.setattr(Client, "read", read)
        file.write_bytes(b"the second one")
        return reader

    monkeypatch.setattr(Client, "read", read_and_replace)
    assert file.read_bytes() == b"the second one"


def test_folder_that_is_deleted_while_files_are_listed_hides_no_other_files(source: HdfsPath) -> None:
    for name in ("a/1", "b/1", "b/sub/2", "c/1"):
        (source / name).write_bytes(b"")
    listing = source.below()
    first = next(listing)
    (source / "b").unlink()
    assert {path for path, _ in (first, *listing)} == {source / "a/1", source / "c/1"}


@pytest.mark.parametrize("content", [None, b"other"])
def test_file_that_is_replaced_or_deleted_while_it_is_written_is_one_error(
    source: HdfsPath, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    """The answer to the rename is lost, and another process is faster than the client, which repeats it."""
    rename = HdfsPath.rename_to

    def rename_twice(self: HdfsPath, other: HdfsPath, *, overwrite: bool = True) -> None:
        monkeypatch.setattr(HdfsPath, "rename_to", rename)
        self.rename_to(other, overwrite=overwrite)
        if content is None:
            other.unlink()
        else:
            other.write_bytes(content)
        self.rename_to(other, overwrite=overwrite)

    monkeypatch.setattr(HdfsPath, "rename_to", rename_twice)
    with pytest.raises(WirebookError, match=r"store-failed: .* another process replaced or deleted") as error:
        (source / "a").write_bytes(b"1")
    assert not is_refusal(error.value.problems[0])
    assert [path.read_bytes() for path, _ in source.below()] == ([content] if content else [])


def test_namenode_that_does_not_answer_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(hdfs_module.ATTEMPTS, "dfs.client.failover.max.attempts", "2")
    workspace = Workspace(tmp_path, "hdfs://127.0.0.1:1/tables")
    workspace.write_two_files()
    with pytest.raises(WirebookError, match=r"store-failed: the store of 'hdfs://127\.0\.0\.1:1") as error:
        workspace.land()
    assert "HADOOP_CONF_DIR" in str(error.value.problems[0].hint)


def test_path_that_hdfs_refuses_is_an_error_without_the_stack_of_the_server(tmp_path: Path, directory: str) -> None:
    workspace = Workspace(tmp_path, f"{directory}/a:b")
    workspace.write_two_files()
    with pytest.raises(WirebookError, match="InvalidPathException: Invalid path name") as error:
        workspace.land()
    assert "FSNamesystem" not in str(error.value)


# -- sources ---------------------------------------------------------------------------------------------------------


def test_new_lines_of_a_file_that_grows_land(
    workspace: Any, source: HdfsPath, append: Callable[[HdfsPath, bytes], None]
) -> None:
    file = source / "a"
    file.write_bytes(LINE % 1 + LINE % 2 + b'{"protocol":')
    report = workspace.land(source)
    assert (report.read, [problem.code for problem in report.problems]) == (2, ["unfinished-line"])
    append(file, b'"X","t":"a","n":3}\n' + LINE % 4)
    assert (workspace.land(source).read, workspace.land(source).read) == (2, 0)
    append(file, LINE % 5)
    assert (workspace.land(source).read, workspace.land(source).skipped) == (1, 5)
    assert workspace.places("a") == [("a", line) for line in range(1, 6)]
    file.write_bytes(LINE % 9 * 5)
    assert [problem.code for problem in workspace.land(source).problems] == ["source-changed"]


def test_compressed_file_that_grows(
    workspace: Any, source: HdfsPath, append: Callable[[HdfsPath, bytes], None]
) -> None:
    file = source / "a.gz"
    file.write_bytes(gzip.compress(LINE % 1))
    assert workspace.land(source).read == 1
    append(file, gzip.compress(LINE % 2))
    assert workspace.land(source).read == 1
    assert workspace.places("a") == [("a.gz", 1), ("a.gz", 2)]


def test_file_that_grows_during_the_run(
    workspace: Any, source: HdfsPath, append: Callable[[HdfsPath, bytes], None]
) -> None:
    file = source / "a"
    file.write_bytes(LINE % 1)
    workspace.runner.before = lambda: append(file, LINE % 2)
    assert workspace.land(source).read == 1
    workspace.runner.before = lambda: None
    assert workspace.land(source).read == 1
    workspace.check_conserved(2)


def test_file_that_has_landed_is_not_read_again(
    workspace: Any, source: HdfsPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "a").write_bytes(LINE % 1)
    (source / "b.gz").write_bytes(gzip.compress(LINE % 2))
    assert workspace.land(source).read == 2
    monkeypatch.delattr(HdfsPath, "open_input")
    assert (workspace.land(source).read, workspace.land(source).skipped) == (0, 2)


def test_file_is_known_by_its_content(hdfs: str, workspace: Any, source: HdfsPath) -> None:
    """Neither a new name of the same content lands, nor is other content skipped that has the same size and time."""
    (source / "a").write_bytes(LINE % 1)
    assert workspace.land(source).read == 1
    (source / "a").rename_to(source / "moved" / "b")
    report = workspace.land(source)
    assert (report.read, report.skipped) == (0, 1)
    (source / "c").write_bytes(LINE % 2)
    (source / "d").write_bytes(LINE % 3)
    for name in ("c", "d"):
        Client(hdfs).set_times(f"/{(source / name).key}", 1_700_000_000_000, 1_700_000_000_000)
    assert workspace.land(source).read == 2


def test_file_that_is_being_copied_is_left_alone(workspace: Any, source: HdfsPath) -> None:
    (source / f"a{COPYING}").write_bytes(LINE % 1)
    (source / "b").write_bytes(LINE % 2)
    assert workspace.land(source).files == 1


# -- targets of Parquet files ----------------------------------------------------------------------------------------


def test_parquet_tables(remote: Workspace) -> None:
    expected = remote.write_two_files()
    report = remote.land()
    assert (report.read, report.landed, report.dead_lettered) == (42, 40, 2)
    remote.check_conserved(expected)
    assert (remote.land().read, remote.land().skipped, Target(remote.to).format()) == (0, expected, "parquet")
    tables = {table.name: table.rows for table in tables_in(str(remote.to))}
    assert tables == {"a": 20, "b": 20, "dead_letters": 2}
    remote.write("c", LINE.replace(b'"a"', b'"later"') % 1)
    assert remote.land(engine={"unknown": ["later"]}).dead_lettered == 1
    assert remote.replay().landed == 1
    assert remote.places("later") == [("c", 1)]
    assert not (remote.to / "_wirebook" / "staging").is_dir()


def test_parquet_table_with_partitions(tmp_path: Path, directory: str) -> None:
    shop, to = Shop(tmp_path), f"{directory}/shop"
    shop.to = location_of(to)
    settings = {"tables": {PAID: {"name": "payments", "partition": "event-day"}}}
    events = event(PAID, 1, TIMES[0]), event(PAID, 2, TIMES[1]), event(PAID, 3, None)
    shop.land(registry(PAID), *events, tables=settings, table_format="parquet")
    [summary] = tables_in(to)
    assert sorted(first_rows(summary, 9)["n"].to_pylist()) == [1, 2, 3]
    assert len(location_of(f"{to}/payments").folders()) == 3  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("point", "times"), [("locked", 0), ("begun", 1), ("staged", 0), ("committed", 1), ("moved", 1), ("tabled", 0)]
)
def test_kill_at_each_point_loses_and_duplicates_nothing(remote: Any, point: str, times: int) -> None:
    expected = remote.write_two_files()
    remote.die(point, times)
    report = remote.land(name="new", batch_bytes=1)
    remote.check_conserved(expected)
    assert report.read + report.skipped == expected
    assert (remote.land().read, remote.land().skipped) == (0, expected)
    kept = {str(path).rpartition("_wirebook/")[2].split("/")[0] for path, _ in (remote.to / "_wirebook").below()}
    assert kept == {"batches", "catalogues", "leases", "tables"}


def test_run_that_was_taken_over_commits_nothing(remote: Any) -> None:
    """The other run commits the batch number of a run that stands still."""
    remote.write_two_files()

    def overtaken(point: str) -> None:
        if point == "staged":
            for path, _ in (remote.to / "_wirebook" / "leases").below():
                path.unlink()
            other = Workspace(remote.root, str(remote.to))
            other.settings = remote.settings
            assert other.land().read == 42

    with pytest.raises(WirebookError, match=r"target-locked: another run has taken over .* batch 1"):
        remote.land(at=overtaken)
    remote.check_conserved(42)
    assert remote.land().skipped == 42


def test_run_that_lost_its_lease_may_still_commit_what_it_has_staged(remote: Any) -> None:
    """Another run that only begins does not delete its files."""
    expected = remote.write_two_files()

    def overtaken(point: str) -> None:
        if point == "staged":
            for path, _ in (remote.to / "_wirebook" / "leases").below():
                path.unlink()
            Target(remote.to).recover()

    assert remote.land(at=overtaken).read == expected
    remote.check_conserved(expected)
    assert remote.land().skipped == expected


# -- commands --------------------------------------------------------------------------------------------------------


def wirebook(*arguments: str) -> int:
    return run([*arguments])


def test_commands_on_a_target(directory: str, source: HdfsPath, capsys: pytest.CaptureFixture[str]) -> None:
    catalogue = str(EXAMPLES / "bikes.xreg.json")
    for path in sorted((EXAMPLES / "captures").iterdir()):
        (source / path.name).write_bytes(path.read_bytes())
    to = f"{directory}/lake"
    assert wirebook("land", str(source), "--catalog", catalogue, "--to", to, "--local") == 0
    assert f"Next: wirebook show {to}" in capsys.readouterr().out
    assert wirebook("status", to, "--json") == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["read"], status["landed"], status["format"]) == (5, 3, "delta")
    for arguments in (["maintain", to, "--dry-run"], ["show", to], ["replay", to, "--catalog", catalogue, "--local"]):
        assert wirebook(*arguments) == 0
    assert "rides__started" in capsys.readouterr().out
    with Target(location_of(to)).locked():
        assert wirebook("land", str(source), "--catalog", catalogue, "--to", to, "--local") == 2
    assert "[target-locked]" in capsys.readouterr().err
    assert wirebook("land", str(source), "--catalog", catalogue, "--to", f"{to}2", "--format", "iceberg") == 2
    assert "[unsupported-store]; choose another format" in capsys.readouterr().err


def test_lease_of_another_machine_expires(remote: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    remote.write_two_files()
    lease = records.Lease(id="1", process=1, host="elsewhere", place="elsewhere")
    (remote.to / "_wirebook" / "leases" / "7.json").write_bytes(records.msgspec.json.encode(lease))
    with pytest.raises(WirebookError, match="process 1 on elsewhere"):
        remote.land()
    monkeypatch.setattr(records, "LEASE_SECONDS", 0)
    assert remote.land().read == 42


def test_segments_of_captured_messages(workspace: Any, source: HdfsPath) -> None:
    segments = ObjectSegments(source, 0.1)
    segments.write([LINE.strip() % 1, LINE.strip() % 2])
    segments.write([LINE.strip() % 3])
    segments.close()
    again = ObjectSegments(source, 0.1)
    again.close()
    assert again.identity == segments.identity
    assert (workspace.land(source).read, workspace.land(source).skipped) == (3, 3)


@pytest.mark.spark
def test_spark_lands_from_hdfs_into_hdfs(directory: str, source: HdfsPath, one_java: dict[str, str]) -> None:
    for path in sorted((EXAMPLES / "captures").iterdir()):
        (source / path.name).write_bytes(path.read_bytes())
    to = f"{directory}/lake"
    command = [str(Path(sys.executable).parent / "wirebook"), "land", str(source), "--to", to, "--json"]
    command += ["--catalog", str(EXAMPLES / "bikes.xreg.json")]
    for expected in ((5, 3), (0, 0)):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | one_java)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout.splitlines()[-1])
        assert (report["read"], report["landed"]) == expected
    assert DeltaTable(f"{to}/rides__started").to_pyarrow_table().num_rows == 1


def test_table_that_refuses_its_rows_again_stops_no_run(tmp_path: Path, directory: str) -> None:
    shop = Shop(tmp_path)
    shop.to = location_of(f"{directory}/lake")
    write_deltalake(f"{shop.to}/payments", pa.table({"n": ["zero"]}))
    tables = {"tables": {PAID: {"name": "payments"}}}
    for number in (1, 2):
        report = shop.land(registry(PAID), event(PAID, number), tables=tables, table_format="delta")
        assert [problem.code for problem in report.problems] == ["table-set-aside"]
    write_deltalake(f"{shop.to}/payments", pa.table({"n": [0]}), mode="overwrite", schema_mode="overwrite")
    assert shop.land(registry(PAID)).recovered == {"payments": 2}
