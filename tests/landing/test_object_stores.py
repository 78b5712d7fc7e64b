"""Sources and targets in an object store, on servers of each kind: the guarantees of a folder hold there too."""

from __future__ import annotations

import gc
import gzip
import re
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.landing.s3 import write_old_object
from tests.landing.test_table_settings import PAID, TIMES, Shop, check_columns_follow, event, registry
from tests.landing.workspace import Workspace
from wirebook.landing.report.html import write_report
from wirebook.landing.report.run_statistics import run_statistics
from wirebook.landing.report.show import first_rows, tables_in
from wirebook.landing.runs.target import Target
from wirebook.landing.sources import byte_streams
from wirebook.landing.sources.lines import Sizes
from wirebook.landing.sources.splits import split_file
from wirebook.landing.stores import records
from wirebook.landing.stores.locations import is_file_system, location_of
from wirebook.landing.stores.objects import ObjectChanged, ObjectPath, ObjectReader, is_refusal
from wirebook.landing.tables.settings import TableOptions, TableSettings
from wirebook.problems import WirebookError

pytestmark = pytest.mark.xdist_group("servers")
OTHER_LEASE = records.Lease(id="1", process=1, host="elsewhere", place="elsewhere")


@pytest.fixture
def remote(tmp_path: Path, store: str) -> Workspace:
    """A workspace whose target is in an object store."""
    return Workspace(tmp_path, f"{store}/lake/tables")


def upload(workspace: Any, to: Any) -> None:
    for path in workspace.source.iterdir():
        (to / path.name).write_bytes(path.read_bytes())


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [8, 25 << 20])
def test_file_is_not_written_if_its_writer_is_left_by_an_exception(store: str, s3: str, size: int) -> None:
    """Neither does the store keep the parts that it has."""
    path = location_of(f"{store}/lake/a")
    assert isinstance(path, ObjectPath)
    with pytest.raises(ZeroDivisionError), path.open_output() as file:  # noqa: PT012
        file.write(bytes(size))
        raise ZeroDivisionError
    assert file.closed
    assert not [*path.parent.below()]
    if store.startswith("s3:"):
        assert b"<Upload>" not in httpx.get(f"{s3}/{store[5:]}?uploads", trust_env=False).content


def test_file_is_not_written_if_its_writer_is_dropped(bucket: str) -> None:
    file = location_of(f"{bucket}/lake/a").open_output()  # type: ignore[union-attr]
    file.write(b"1")
    del file
    gc.collect()
    assert not [*location_of(f"{bucket}/lake").below()]  # type: ignore[union-attr]


# -- targets ---------------------------------------------------------------------------------------------------------


def test_land_and_read_again(remote: Any) -> None:
    expected = remote.write_two_files()
    report = remote.land()
    assert (report.read, report.landed, report.dead_lettered) == (42, 40, 2)
    remote.check_conserved(expected)
    assert (remote.land().read, remote.land().skipped) == (0, expected)
    assert Target(remote.to).format() == "delta"


def test_tables_report_and_statistics_of_a_target(remote: Any) -> None:
    remote.write_two_files()
    remote.land()
    tables = {table.name: table for table in tables_in(str(remote.to))}
    assert {name: table.rows for name, table in tables.items()} == {"a": 20, "b": 20, "dead_letters": 2}
    assert first_rows(tables["a"], 3).num_rows == 3
    assert run_statistics(str(remote.to)).landed == 40
    path = write_report(str(remote.to))
    assert b"<html" in path.read_bytes()
    assert str(path).endswith("/_wirebook/reports/1.html")


def test_partitioned_table_with_settings_that_the_target_keeps(tmp_path: Path, store: str) -> None:
    shop, to = Shop(tmp_path), f"{store}/lake/shop"
    shop.to = location_of(to)
    settings = {"tables": {PAID: {"name": "payments", "partition": "event-day"}}}
    shop.land(registry(PAID), event(PAID, 1, TIMES[0]), event(PAID, 2, TIMES[1]), tables=settings)
    shop.land(registry(PAID), event(PAID, 3, TIMES[1]), event(PAID, 4, None))
    [summary] = tables_in(to)
    assert (summary.name, sorted(first_rows(summary, 9)["n"].to_pylist())) == ("payments", [1, 2, 3, 4])
    table = DeltaTable(f"{to}/payments", storage_options={"allow_http": "true"})
    days = {partition["event_day"] for partition in table.partitions()}
    assert days == {"2026-11-20", "2026-11-21", None}


def test_columns_follow_the_catalogue(tmp_path: Path, store: str) -> None:
    shop, to = Shop(tmp_path), f"{store}/lake/evolving"
    shop.to = location_of(to)
    check_columns_follow(shop, lambda: first_rows(next(one for one in tables_in(to) if one.definition == PAID), 9))


@pytest.mark.parametrize("table_format", ["parquet", "iceberg"])
def test_format_that_the_store_cannot_have_is_refused_before_anything_is_written(
    remote: Any, table_format: str
) -> None:
    if is_file_system(remote.to) and table_format == "parquet":
        pytest.skip("HDFS renames files, so it can have tables of Parquet files: test_hdfs.py")
    remote.write_two_files()
    with pytest.raises(WirebookError, match="unsupported-store"):
        remote.land(table_format=table_format)
    with pytest.raises(WirebookError, match="table-settings"):
        remote.land(table_settings=TableSettings(defaults=TableOptions(properties={"no.such": "1"})))
    with pytest.raises(WirebookError, match=r"iceberg-catalog-failed|unsupported-store: PyIceberg reaches HDFS"):
        remote.land(table_format="iceberg", iceberg_catalog="nosuch")
    assert not [*remote.to.below()]


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
    assert not [name for name in Target(remote.to).records.names("batches") if "begin" in name]


@pytest.mark.parametrize("point", ["staged", "moved"])
def test_kill_a_replay(remote: Any, point: str) -> None:
    remote.write("a", b"".join(b'{"protocol":"X","t":"later","n":%d}\n' % i for i in range(10)))
    assert remote.land(engine={"unknown": ["later"]}).dead_lettered in (0, 10)
    remote.die(point, run="replay", name="c2")
    remote.replay(name="c2")
    report = remote.replay(name="c2")
    assert report.read == 0
    places = [place for table in ("later", "dead_letters") for place in remote.places(table)]
    assert len(set(places)) == 10


def test_table_that_refuses_rows_does_not_block_the_others(remote: Any) -> None:
    expected = remote.write_two_files()
    remote.land()
    action = {
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["clustering", "domainMetadata"]}
    }
    commit = remote.to / "a" / "_delta_log" / f"{1:020}.json"
    commit.write_bytes(msgspec.json.encode(action) + b"\n")
    remote.write("c", (remote.source / "a").read_bytes().replace(b'"n": "a', b'"n": "c'))
    report = remote.land()
    assert [problem.code for problem in report.problems] == ["table-set-aside"]
    commit.unlink()
    assert remote.land().recovered.total() == 10
    remote.check_conserved(expected + 21)
    assert not (remote.to / "_wirebook" / "aside").is_dir()


def test_second_run_is_refused_while_the_first_runs(remote: Any) -> None:
    remote.write_two_files()
    with Target(remote.to).locked(), pytest.raises(WirebookError, match=r"target-locked: another run .* is writing"):
        remote.land()
    assert remote.land().read == 42


def test_lease_that_nobody_renews_expires(remote: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    remote.write_two_files()
    remote.land()
    (remote.to / "_wirebook" / "leases" / "7.json").write_bytes(msgspec.json.encode(OTHER_LEASE))
    with pytest.raises(WirebookError, match="process 1 on elsewhere") as error:
        remote.land()
    assert re.search(r"the target is free in \d+ s", str(error.value.problems[0].hint))
    monkeypatch.setattr(records, "LEASE_SECONDS", 0)
    assert remote.land().skipped == 42


def test_lease_that_is_deleted_after_it_was_listed_is_held_by_another_run(
    remote: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.write_two_files()
    remote.land()
    found = records.ObjectRecords(remote.to)._leases()
    remote.land()
    monkeypatch.setattr(records.ObjectRecords, "_leases", lambda _: found)
    assert Target(remote.to).records.holder() == records.Holder("another run", None)
    with pytest.raises(WirebookError, match="target-locked: another run is writing to"):
        remote.land()


def test_lease_with_a_lower_number_than_another_one_is_given_up(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a run is about to create lease 2, others take and release lease 2, take lease 3, and delete lease 2."""
    root = location_of(f"{store}/lake/tables")
    assert isinstance(root, ObjectPath)
    with records.ObjectRecords(root).locked():
        pass
    create, other, lease_3 = type(root).create, records.ObjectRecords(root), ExitStack()

    def create_late(path: ObjectPath, data: bytes) -> None:
        monkeypatch.setattr(type(root), "create", create)
        with records.ObjectRecords(root).locked():
            pass
        lease_3.enter_context(other.locked())
        create(path, data)

    monkeypatch.setattr(type(root), "create", create_late)
    with lease_3:
        with (
            pytest.raises(WirebookError, match="target-locked: another run is writing to"),
            records.ObjectRecords(root).locked(),
        ):
            pass
        assert [path.name for path, _ in (root / "_wirebook" / "leases").below()] == ["3.json"]
        other.check_lock()
    with records.ObjectRecords(root).locked():
        pass


@pytest.mark.parametrize("deleted", [False, True])
def test_lease_that_is_renewed_after_it_was_listed_is_held(
    bucket: str, monkeypatch: pytest.MonkeyPatch, deleted: bool
) -> None:
    """A store that hardly answers does not make a lease older than it is."""
    root = location_of(f"{bucket}/lake/tables")
    lease, content = root / "_wirebook" / "leases" / "1.json", msgspec.json.encode(OTHER_LEASE)
    lease.write_bytes(content)
    read = records.ObjectRecords._read_lease

    def read_slowly(self: records.ObjectRecords, number: int) -> records.Lease | None:
        found = read(self, number)
        time.sleep(3)
        if deleted:
            lease.unlink()
        else:
            lease.write_bytes(content)
        return found

    monkeypatch.setattr(records, "LEASE_SECONDS", 2)
    monkeypatch.setattr(records.ObjectRecords, "_read_lease", read_slowly)
    with (
        pytest.raises(WirebookError, match=r"target-locked: another run .*is writing"),
        records.ObjectRecords(root).locked(),  # type: ignore[arg-type]
    ):
        pass


def test_lease_that_is_replaced_while_it_is_read_is_held(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In HDFS, a file that is replaced loses its blocks."""
    root = location_of(f"{bucket}/lake/tables")
    (root / "_wirebook" / "leases" / "1.json").write_bytes(msgspec.json.encode(OTHER_LEASE))

    def replaced(path: ObjectPath) -> bytes:
        raise ObjectChanged(f"'{path}' has been replaced")

    monkeypatch.setattr(ObjectPath, "read_bytes", replaced)
    waiting = records.ObjectRecords(root)  # type: ignore[arg-type]
    with pytest.raises(WirebookError, match="target-locked: another run is writing"), waiting.locked():
        pass
    assert waiting.holder() == records.Holder("another run", None)


@pytest.mark.parametrize("failure", [FileNotFoundError, FileExistsError, RuntimeError])
def test_run_whose_renewal_failed_still_finds_out_that_it_was_taken_over(
    bucket: str, monkeypatch: pytest.MonkeyPatch, failure: type[Exception]
) -> None:
    monkeypatch.setattr(records, "LEASE_SECONDS", 0.2)
    root, write, has_failed = location_of(f"{bucket}/lake/tables"), ObjectPath.write_bytes, threading.Event()
    run = records.ObjectRecords(root)  # type: ignore[arg-type]

    def fail_once(path: ObjectPath, data: bytes) -> None:
        monkeypatch.setattr(ObjectPath, "write_bytes", write)
        has_failed.set()
        raise failure(path, data)

    with run.locked():
        monkeypatch.setattr(ObjectPath, "write_bytes", fail_once)
        assert has_failed.wait(20)
        run.check_lock()
        (root / "_wirebook" / "leases" / "2.json").write_bytes(b"")
        with pytest.raises(WirebookError, match="target-locked: another run has taken over"):  # noqa: PT012
            for _ in range(200):
                run.check_lock()
                time.sleep(0.1)


def test_lease_that_could_not_be_released_is_free_for_this_process(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = location_of(f"{bucket}/lake/tables")

    def fail(path: ObjectPath, data: bytes) -> None:
        raise FileExistsError(path, data)

    with monkeypatch.context() as patch, records.ObjectRecords(root).locked():  # type: ignore[arg-type]
        patch.setattr(ObjectPath, "write_bytes", fail)
    with records.ObjectRecords(root).locked():  # type: ignore[arg-type]
        pass


def test_run_that_was_taken_over_commits_nothing(remote: Any) -> None:
    """A run that stands still for longer than its lease lasts finds its batch number taken."""
    remote.write_two_files()

    def overtaken(point: str) -> None:
        if point == "staged":
            for path, _ in (remote.to / "_wirebook" / "leases").below():
                path.unlink()
            assert Workspace(remote.root, str(remote.to)).land().read == 42

    with pytest.raises(WirebookError, match=r"target-locked: another run has taken over .* batch 1"):
        remote.land(at=overtaken)
    remote.check_conserved(42)
    assert remote.land().skipped == 42


def test_many_runs_at_once_land_every_message_once(remote: Any) -> None:
    expected = remote.write_two_files()
    refused: list[str] = []

    def run() -> None:
        try:
            Workspace(remote.root, str(remote.to)).land(batch_bytes=1)
        except WirebookError as error:
            refused.append(error.problems[0].code)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) < 6
    assert set(refused) <= {"target-locked"}
    remote.land()
    remote.check_conserved(expected)


def test_store_that_does_not_answer_is_one_error_without_secrets(tmp_path: Path, s3: str) -> None:
    workspace = Workspace(tmp_path, "s3://no-such-bucket/tables")
    workspace.write_two_files()
    with pytest.raises(WirebookError, match="store-failed: the store of 's3://no-such-bucket") as error:
        workspace.land()
    assert "never-shown" not in str(error.value)


# -- sources ---------------------------------------------------------------------------------------------------------


def test_source_in_a_store(workspace: Any, store: str) -> None:
    expected = workspace.write_two_files()
    workspace.write("c.gz", gzip.compress(b'{"protocol":"X","t":"a","n":1}\n' * 5))
    workspace.write("_hidden", b"{}\n")
    source = location_of(f"{store}/raw")
    upload(workspace, source)
    report = workspace.land(source)
    assert (report.read, report.files) == (expected + 5, 3)
    workspace.check_conserved(expected + 5)
    assert {file for file, _ in workspace.places()} == {"a", "b", "c.gz"}
    (source / "d").write_bytes(b'{"protocol":"X","t":"a","n":1}')
    report = workspace.land(source)
    assert (report.read, report.skipped, report.skipped_files) == (1, expected + 5, 3)


def test_rows_are_those_of_the_same_files_in_a_folder(workspace: Any, store: str, tmp_path: Path) -> None:
    workspace.write_two_files()
    workspace.write("e", b'{"protocol":"X","t":"a","n":1}\n\n  \n{"protocol":"X","t":"a","n":"unfinished"')
    pq.write_table(pa.table({"protocol": ["X"] * 9, "t": list("aba" * 3)}), workspace.source / "f", row_group_size=2)
    upload(workspace, location_of(f"{store}/raw"))
    workspace.land()
    other = tmp_path / "other"
    other.mkdir()
    remote = Workspace(other)
    remote.land(location_of(f"{store}/raw"))
    unfinished = ("e", 4)  # an object does not grow, so its last line is complete as it is
    assert [row for row in remote.rows() if (row["_file"], row["_line"]) != unfinished] == workspace.rows()
    assert (unfinished in remote.places("dead_letters")) != store.startswith("hdfs:")


def test_object_that_is_replaced_is_an_error_and_lands_nothing(workspace: Any, store: str) -> None:
    expected = workspace.write_two_files()
    source = location_of(f"{store}/raw")
    upload(workspace, source)
    workspace.land(source)
    (source / "a").write_bytes(b'{"protocol":"X","t":"a","n":"new"}\n')
    (problem,) = workspace.land(source).problems
    assert problem.code == "source-changed"
    what = "its first bytes differ" if store.startswith("hdfs:") else "it was replaced or appended to"
    assert what in problem.message
    workspace.check_conserved(expected)


def test_object_that_is_replaced_during_the_run(workspace: Any, store: str) -> None:
    workspace.write_two_files()
    source = location_of(f"{store}/raw")
    upload(workspace, source)
    content = (source / "a").read_bytes()
    workspace.runner.before = lambda: (source / "a").write_bytes(content + b'{"protocol":"X","t":"a","n":"new"}\n')
    report = workspace.land(source)
    if store.startswith("hdfs:"):  # where the content is compared, and the new one begins with what was planned
        assert (report.read, report.problems) == (42, [])
    else:
        assert (report.read, [problem.code for problem in report.problems]) == (21, ["source-changed"])
    workspace.runner.before = lambda: None
    assert workspace.land(source).read == 43 - report.read
    workspace.check_conserved(43)


def test_parquet_object_that_is_replaced_or_deleted_during_the_run_is_not_damaged(workspace: Any, store: str) -> None:
    source = location_of(f"{store}/raw")
    for name in ("f", "g"):
        pq.write_table(pa.table({"protocol": ["X"] * 3, "t": [name] * 3}), workspace.source / name)
    upload(workspace, source)

    def change() -> None:
        pq.write_table(pa.table({"protocol": ["X"] * 4, "t": ["b"] * 4}), workspace.source / "f")
        (source / "f").write_bytes((workspace.source / "f").read_bytes())
        (source / "g").unlink()

    workspace.runner.before = change
    report = workspace.land(source)
    assert (report.read, [problem.code for problem in report.problems]) == (0, ["source-changed"] * 2)
    workspace.runner.before = lambda: None
    assert (workspace.land(source).read, workspace.places("b")) == (4, [("f", line) for line in range(1, 5)])


def test_last_line_of_an_object_over_the_limit_is_a_dead_letter(workspace: Any, bucket: str) -> None:
    source, sizes = location_of(f"{bucket}/raw"), Sizes(chunk=64, line=200, head=100)
    (source / "a").write_bytes(b'{"protocol":"X","t":"a","n":1}\n{"protocol":"X","t":"a","n":2}' + b" " * 300)
    for read, skipped in ((2, 0), (0, 2)):
        report = workspace.land(source, sizes=sizes)
        assert (report.read, report.skipped, report.dead_lettered) == (read, skipped, read // 2)
    assert [row["outcome"] for row in workspace.rows("dead_letters")] == ["oversized"]


def test_compressed_object_that_is_deleted_while_it_is_read_is_not_damaged(
    workspace: Any, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = location_of(f"{bucket}/raw")
    lines = b"".join(b'{"protocol":"X","t":"a","n":%d}\n' % i for i in range(5000))
    (source / "a.gz").write_bytes(gzip.compress(lines))
    monkeypatch.setattr(byte_streams, "OBJECT_READ_SIZE", 1000)
    read = ObjectReader.read

    def read_and_delete(self: ObjectReader, size: int | None = -1, /) -> bytes:
        data = read(self, size)
        if size == 1000:
            (source / "a.gz").unlink()
        return data

    workspace.runner.before = lambda: monkeypatch.setattr(ObjectReader, "read", read_and_delete)
    report = workspace.land(source)
    assert (report.dead_lettered, [problem.code for problem in report.problems]) == (0, ["source-changed"])


def test_parquet_object_that_is_deleted_before_its_footer_is_read_is_not_damaged(
    workspace: Any, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = location_of(f"{bucket}/raw")
    pq.write_table(pa.table({"protocol": ["X"] * 3, "t": ["a"] * 3}), workspace.source / "f")
    upload(workspace, source)

    def delete_and_split(*arguments: Any) -> Any:
        (source / "f").unlink()
        return split_file(*arguments)

    monkeypatch.setattr("wirebook.landing.runs.plan.split_file", delete_and_split)
    report = workspace.land(source)
    assert (report.read, [problem.code for problem in report.problems]) == (0, ["source-changed"])


def test_damaged_object_that_is_replaced_by_the_whole_one(workspace: Any, store: str) -> None:
    source = location_of(f"{store}/raw")
    lines = b"".join(b'{"protocol":"X","t":"a","n":%d}\n' % i for i in range(5000))
    whole = gzip.compress(lines)
    (source / "a.gz").write_bytes(whole[: len(whole) // 2])
    report = workspace.land(source)
    assert report.reasons == {"truncated-file": 1}
    (source / "a.gz").write_bytes(whole)
    assert workspace.land(source).read + report.read == 5001
    assert sorted(workspace.places("a")) == [("a.gz", line) for line in range(1, 5001)]


def test_single_object_and_missing_object(workspace: Any, store: str) -> None:
    location_of(f"{store}/raw/x.jsonl").write_bytes(b'{"protocol":"X","t":"a","n":1}\n')
    assert workspace.land(location_of(f"{store}/raw/x.jsonl")).read == 1
    with pytest.raises(WirebookError, match=r"unreadable-file: cannot read '.*/nothing': there is no such object"):
        workspace.land(location_of(f"{store}/nothing"))


def test_key_with_an_empty_segment_is_an_error_that_names_it(workspace: Any, s3: str, bucket: str) -> None:
    write_old_object(s3, f"{bucket}/raw/day//a.jsonl", b"{}", 0)
    with pytest.raises(WirebookError, match=r"raw/day//a\.jsonl") as error:
        workspace.land(location_of(f"{bucket}/raw"))
    (problem,) = error.value.problems
    assert (problem.code, is_refusal(problem)) == ("store-failed", True)
    assert "rename the object" in str(problem.hint)


def test_target_inside_its_source(store: str, tmp_path: Path) -> None:
    remote = Workspace(tmp_path, f"{store}/lake/tables")
    expected = remote.write_two_files()
    source = location_of(f"{store}/lake")
    upload(remote, source)
    remote.land(source)
    assert remote.land(source).read == 0
    remote.check_conserved(expected)


def test_manifests_are_packed(remote: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirebook.landing.runs.target.PACK_SIZE", 3)
    monkeypatch.setattr("wirebook.landing.runs.packed_manifests.PACK_SIZE", 3)
    for number in range(14):
        remote.write(f"{number}.jsonl", b'{"t": "a", "n": %d}\n' % number)
        assert remote.land().read == 1
    names = {name for folder in ("batches", "packs") for name in Target(remote.to).records.names(folder)}
    assert names == {*(f"{number}.jsonl.gz" for number in (3, 6, 9)), *(f"{n}.json" for n in (6, 9, *range(7, 15)))}
    assert (remote.land().read, remote.land().skipped) == (0, 14)
    assert [manifest.batch for manifest in Target(remote.to).manifests()] == [*range(1, 15)]
    remote.check_conserved(14)
