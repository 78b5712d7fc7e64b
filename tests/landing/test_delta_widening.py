"""Columns of Delta tables become wider by a rewrite, if the settings of tables allow it: no row is lost or changed."""

from __future__ import annotations

import base64
import io
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import fastavro
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, QueryBuilder, write_deltalake
from deltalake.schema import PrimitiveType, StructType
from extensions import load

from tests.brokers.faulty_store import Fault, faulty_store
from tests.landing.test_delta_append import Table
from tests.landing.workspace import PROJECT
from wirebook.landing import land, replay
from wirebook.landing.maintenance import UpkeepOptions, maintain
from wirebook.landing.report.show import find_table, first_rows, tables_in
from wirebook.landing.runs.target import Target
from wirebook.landing.stores.locations import location_of, parquet_source
from wirebook.landing.tables import delta_widening
from wirebook.landing.tables.delta import DeltaFormat
from wirebook.landing.tables.delta_checkpoints import STORAGE
from wirebook.landing.tables.evolution import conform
from wirebook.landing.tables.formats import CommitFailed, TableTraits

PAID, OTHER = "/messagegroups/shop/messages/paid", "/messagegroups/shop/messages/other"
DAYS = {"defaults": {"partition": "event-day"}}
REWRITE = {"defaults": {"partition": "event-day", "widen": "rewrite"}}
TIMES = ("2026-11-20T23:59:59Z", "2026-11-21T00:00:00Z", None)


def avro(integer: str, real: str, digits: int) -> dict[str, Any]:
    """A schema whose numbers are of these types, at any depth."""
    line = {"type": "record", "name": "Line", "fields": [{"name": "count", "type": integer}]}
    price = {"type": "bytes", "logicalType": "decimal", "precision": digits, "scale": 2}
    types = {
        "n": integer,
        "rate": real,
        "price": price,
        "line": line,
        "lines": {"type": "array", "items": "Line"},
        "by": {"type": "map", "values": ["null", integer]},
    }
    fields = [{"name": name, "type": type_, "doc": f"The {name}"} for name, type_ in types.items()]
    return {"type": "record", "name": "Paid", "fields": fields}


NARROW, WIDE = avro("int", "float", 4), avro("long", "double", 9)


def registry(schema: dict[str, Any], *xids: str) -> dict[str, Any]:
    messages = {
        xid.rpartition("/")[2]: {
            "description": "A payment",
            "envelope": "CloudEvents/1.0",
            "envelopemetadata": {"type": {"value": xid}},
            "dataschemaformat": "Avro/1.11",
            "dataschema": schema,
        }
        for xid in xids or (PAID,)
    }
    return {"specversion": "1.0-rc4", "registryid": "r", "messagegroups": {"shop": {"messages": messages}}}


def payload(n: int) -> dict[str, Any]:
    count = -n
    return {
        "n": n,
        "rate": n / 4,
        "price": Decimal(n % 10**9).scaleb(-2),
        "line": {"count": count},
        "lines": [{"count": count}, {"count": 0}],
        "by": {"one": count, "none": None},
    }


def event(schema: dict[str, Any], n: int, xid: str = PAID) -> str:
    """A Kafka record of an event with an Avro payload."""
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(schema), payload(n))
    time = TIMES[n % len(TIMES)]
    attributes = {"specversion": "1.0", "id": str(n), "source": "/s", "type": xid} | ({"time": time} if time else {})
    headers = [[f"ce_{name}", value] for name, value in attributes.items()]
    headers.append(["content-type", "application/avro"])
    value = {"base64": base64.b64encode(written.getvalue()).decode()}
    return json.dumps({"protocol": "KAFKA", "topic": "t", "headers": headers, "value": value})


class Shop:
    """A source of Kafka records, and a target with Delta tables in a folder or a store."""

    def __init__(self, root: Path, to: str) -> None:
        self.source, self.to = root / "source", location_of(to)
        self.source.mkdir(exist_ok=True)

    def write(self, schema: dict[str, Any], *numbers: int, xid: str = PAID) -> None:
        lines = "".join(event(schema, n, xid) + "\n" for n in numbers)
        (self.source / f"{len([*self.source.iterdir()]):03}.jsonl").write_text(lines)

    def land(self, schema: dict[str, Any], *numbers: int, tables: Any = None, **options: Any) -> Any:
        if numbers:
            self.write(schema, *numbers)
        options = {"table_format": "delta"} | options
        return land(self.source, registry(schema), self.to, tables=tables, **options)

    @property
    def folder(self) -> Any:
        return self.to / "shop__paid"

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(str(self.folder), storage_options=STORAGE)

    def rows(self) -> list[dict[str, Any]]:
        result = QueryBuilder().register("t", self.table).execute("SELECT * FROM t ORDER BY n").read_all()
        return pa.table(result).to_pylist()

    def numbers(self) -> list[int]:
        return [row["n"] for row in self.rows()]

    def types(self) -> set[pa.DataType]:
        """The types of the column `n` in all files of the table."""
        return {pq.read_schema(parquet_source(file)).field("n").type for file in self.files()}

    def files(self) -> tuple[Any, ...]:
        return find_table(tables_in(str(self.to)), PAID).files


SERVERS = pytest.mark.xdist_group("servers")
BUCKET, HDFS = pytest.param("bucket", marks=SERVERS), pytest.param("directory", marks=SERVERS)


@pytest.fixture(params=["tmp_path", BUCKET])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    return Shop(tmp_path, f"{request.getfixturevalue(request.param)}/lake")


@pytest.fixture
def local(tmp_path: Path) -> Shop:
    return Shop(tmp_path, str(tmp_path / "lake"))


def check(shop: Shop, *numbers: int) -> None:
    """The table has these rows, with the values of their messages and the wide types, in files and in its log."""
    rows = shop.rows()
    assert [row["n"] for row in rows] == sorted(numbers)
    for row in rows:
        expected = payload(row["n"])
        found = {name: row[name] for name in expected} | {"by": dict(row["by"])}
        assert found == expected
        time = TIMES[row["n"] % len(TIMES)]
        assert str(row["event_day"]) == (time or "None")[:10]
    assert shop.types() == {pa.int64()}
    columns = {field.name: field for field in shop.table.schema().fields}
    assert columns["n"].type == PrimitiveType("long")
    assert columns["price"].type == PrimitiveType("decimal(9,2)")
    assert columns["n"].metadata == {"comment": "The n"}
    assert shop.table.metadata().description == "A payment"
    assert shop.table.metadata().partition_columns == ["event_day"]
    entry = Target(shop.to).tables()["shop__paid"]
    assert (entry.columns["n"], entry.columns["line"]) == ("int64", "struct<count: int64>")


def test_avro_int_that_becomes_long_is_widened_and_dead_letters_are_replayed(shop: Shop) -> None:
    shop.land(NARROW, 1, 2, 3, tables=DAYS)
    shop.land(NARROW, 4)
    report = shop.land(WIDE, 2**40)
    assert (report.landed, report.reasons) == (0, {"columns-changed": 1})
    before = shop.table.version()
    assert replay(shop.to, registry(WIDE), tables=REWRITE).landed == 1
    check(shop, 1, 2, 3, 4, 2**40)
    assert shop.table.version() == before + 2  # the rewrite and the batch
    assert shop.table.history()[1]["userMetadata"] == "columns widened: n, rate, price, line, lines, by"
    assert DeltaTable(str(shop.folder), before, storage_options=STORAGE).schema().fields != shop.table.schema().fields
    assert shop.table.transaction_version("wirebook") == 4
    assert shop.land(WIDE, 5, 2**41).problems == []
    assert shop.land(NARROW, 6).problems == []  # rows are widened
    check(shop, 1, 2, 3, 4, 2**40, 5, 2**41, 6)
    assert shop.land(WIDE).read == 0
    assert replay(shop.to, registry(WIDE)).landed == 0
    assert shop.table.version() == before + 4
    summary = find_table(tables_in(str(shop.to)), PAID)
    assert (summary.rows, sorted(first_rows(summary, 99)["n"].to_pylist())) == (8, shop.numbers())


def test_table_keeps_what_others_have_set(local: Shop) -> None:
    properties = {"delta.checkpointInterval": "9"}
    local.land(NARROW, 1, 2, tables={"defaults": DAYS["defaults"] | {"properties": properties}})
    local.table.alter.add_columns([Field("note", PrimitiveType("string"), metadata={"comment": "theirs"})])
    local.table.alter.add_constraint({"few": "ce_id <> '7'"})
    local.table.alter.set_table_name("payments")
    log = local.folder / "_delta_log"
    metadata = msgspec.json.decode((log / f"{3:020}.json").read_bytes().splitlines()[-1])
    columns = msgspec.json.decode(metadata["metaData"]["schemaString"])
    line = next(field for field in columns["fields"] if field["name"] == "line")
    line["type"]["fields"][0]["metadata"] = {"comment": "How many"}
    metadata["metaData"]["schemaString"] = msgspec.json.encode(columns).decode()
    (log / f"{4:020}.json").write_bytes(msgspec.json.encode(metadata) + b"\n")
    before = local.table.metadata()
    assert local.land(WIDE, 2**40, tables=REWRITE).problems == []
    check(local, 1, 2, 2**40)
    after = local.table.metadata()
    assert (after.id, after.name, after.created_time) == (before.id, "payments", before.created_time)
    assert after.configuration == before.configuration == properties | {"delta.constraints.few": "ce_id != '7'"}
    fields = {field.name: field for field in local.table.schema().fields}
    assert fields["note"].metadata == {"comment": "theirs"}
    assert isinstance(line_type := fields["line"].type, StructType)
    assert line_type.fields[0].metadata == {"comment": "How many"}
    [problem] = local.land(WIDE, 7).problems
    assert "failed validation check" in problem.message
    check(local, 1, 2, 2**40)


def test_duckdb_reads_a_widened_table(local: Shop) -> None:
    local.land(NARROW, 1, 2, 3, tables=REWRITE)
    local.land(WIDE, 2**40)
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as database:
        load(database, "delta")
        query = f"SELECT n, rate, price, line.count, lines[1].count FROM delta_scan('{local.folder}') ORDER BY n"
        rows = [(n, n / 4, payload(n)["price"], -n, -n) for n in (1, 2, 3, 2**40)]
        assert database.execute(query).fetchall() == rows
        query = f"SELECT n FROM delta_scan('{local.folder}') WHERE event_day = DATE '2026-11-21' AND n < 100"
        assert database.execute(query).fetchall() == [(1,)]


# -- other writers -----------------------------------------------------------------------------------------------------


@contextmanager
def faster(meanwhile: Callable[[], None], times: int = 1) -> Iterator[None]:
    """Run another writer between the reading of a table and the transaction that replaces its files."""
    left = times

    class Slow(DeltaTable):
        def create_write_transaction(self, actions: Any, mode: str, *arguments: Any, **options: Any) -> None:
            nonlocal left
            if mode == "overwrite" and left:
                left -= 1
                meanwhile()
            super().create_write_transaction(actions, mode, *arguments, **options)

    with mock.patch("deltalake.DeltaTable", Slow):
        yield
    assert not left


def append(shop: Shop) -> None:
    """Another program repeats the rows of the table, with other numbers."""
    query = "SELECT * EXCEPT (n), CAST(n + 100 AS INT) AS n FROM t WHERE n < 100"
    rows = QueryBuilder().register("t", shop.table).execute(query).read_all()
    write_deltalake(shop.table, rows, mode="append")


def compact(shop: Shop) -> None:
    assert shop.table.optimize.compact()["numFilesRemoved"]


def delete(shop: Shop) -> None:
    assert shop.table.delete("n = 1")["num_deleted_rows"]


@pytest.mark.parametrize(
    ("other", "expected"), [(append, {1, 2, 3, 4, 101, 102, 103, 104}), (compact, {1, 2, 3, 4}), (delete, {2, 3, 4})]
)
def test_rows_of_faster_writers_are_kept(shop: Shop, other: Callable[[Shop], None], expected: set[int]) -> None:
    shop.land(NARROW, 1, 2, 3, tables=REWRITE)
    shop.land(NARROW, 4)
    with faster(lambda: other(shop)):
        assert shop.land(WIDE, 2**40).problems == []
    assert shop.numbers() == sorted({*expected, 2**40})
    assert shop.types() == {pa.int64()}
    assert shop.land(WIDE, 5).problems == []
    assert shop.numbers() == sorted({*expected, 5, 2**40})


@SERVERS
def test_lost_answers_of_a_store_change_nothing(
    s3: str, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write takes effect and is answered with an error, so the client repeats it."""
    with faulty_store(s3) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        shop = Shop(tmp_path, f"{bucket}/lake")
        shop.land(NARROW, 1, 2, 3, tables=REWRITE)
        proxy.fail(Fault(500, is_done=True, once=True))
        assert shop.land(WIDE, 2**40).problems == []
        assert proxy.recover() > 5
        check(shop, 1, 2, 3, 2**40)
        assert shop.table.version() == 2


def test_table_that_always_changes_is_set_aside(local: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_widening, "PAUSES", (0, 0, 0))
    local.land(NARROW, 1, tables=REWRITE)
    with faster(lambda: append(local), times=3):
        [problem] = local.land(WIDE, 2**40).problems
    assert "its columns cannot be widened, because other writers always commit first" in problem.message
    assert local.types() == {pa.int32()}
    assert local.land(WIDE, 2).recovered == {"shop__paid": 1}
    assert {1, 2, 101, 2**40} <= set(local.numbers())
    assert local.types() == {pa.int64()}


def test_writers_that_are_slower_fail(local: Shop) -> None:
    local.land(NARROW, 1, 2, tables=REWRITE)
    stale = local.table
    local.land(WIDE, 2**40)
    row = pa.table(QueryBuilder().register("t", stale).execute("SELECT * FROM t").read_all())
    with pytest.raises(Exception, match="Metadata changed since last commit"):
        write_deltalake(stale, row, mode="append")
    check(local, 1, 2, 2**40)


def test_upkeep_goes_on_if_the_files_are_replaced_meanwhile(local: Shop) -> None:
    local.land(NARROW, 1, 4, tables=REWRITE)
    local.land(NARROW, 7)

    class Slow(DeltaTable):
        @property
        def optimize(self) -> Any:
            local.land(WIDE, 2**40)
            return super().optimize

    with mock.patch("deltalake.DeltaTable", Slow):
        done = {upkeep.table: upkeep.compacted for upkeep in maintain(local.to, UpkeepOptions())}
    assert done == {"shop__paid": 0}
    check(local, 1, 4, 7, 2**40)
    assert [upkeep.deleted for upkeep in maintain(local.to, UpkeepOptions(retain_hours=0))] != [0]
    check(local, 1, 4, 7, 2**40)


# -- runs that are killed ----------------------------------------------------------------------------------------------


def land_until(root: str, to: str, point: str) -> None:
    """Land in a process that ends without handlers at a point of the commit."""

    def at(reached: str) -> None:
        if reached == point:
            os._exit(7)

    class Killed(DeltaTable):
        def create_write_transaction(self, actions: Any, mode: str, *arguments: Any, **options: Any) -> None:
            at(f"before {mode}")
            super().create_write_transaction(actions, mode, *arguments, **options)
            at(f"after {mode}")

    opened, rewrite = itertools.count(1), delta_widening._rewrite

    def rewriting(source: Any, to: Any, schema: pa.Schema, open_file: Any) -> Any:
        def opening(*arguments: Any) -> Any:
            writer = open_file(*arguments)
            at(f"file {next(opened)}")
            return writer

        return rewrite(source, to, schema, opening)

    with mock.patch("deltalake.DeltaTable", Killed), mock.patch.object(delta_widening, "_rewrite", rewriting):
        Shop(Path(root), to).land(WIDE)


POINTS = ("file 1", "file 3", "before overwrite", "after overwrite", "before append", "after append")


@pytest.mark.parametrize(
    ("shop", "point"),
    [
        *(("tmp_path", point) for point in POINTS),
        *(pytest.param("bucket", point, marks=(SERVERS, pytest.mark.faults)) for point in POINTS[2:4]),
    ],
    indirect=["shop"],
)
def test_kill_at_each_point_leaves_the_old_or_the_new_table(shop: Shop, tmp_path: Path, point: str) -> None:
    shop.land(NARROW, 1, 2, 3, tables=REWRITE)
    shop.land(NARROW, 4)
    shop.write(WIDE, 5, 2**40)
    program = (
        "import sys; from tests.landing import workspace; from tests.landing.test_delta_widening import land_until; "
        "land_until(*sys.argv[1:])"
    )
    command = [sys.executable, "-c", program, str(tmp_path), str(shop.to), point]
    assert subprocess.run(command, cwd=PROJECT, check=False).returncode == 7
    is_wide, is_there = point not in ("file 1", "file 3", "before overwrite"), point == "after append"
    assert shop.types() == {pa.int64() if is_wide else pa.int32()}
    assert shop.numbers() == [1, 2, 3, 4, *([5, 2**40] if is_there else [])]
    assert shop.land(WIDE).recovered == {"shop__paid": 2}
    check(shop, 1, 2, 3, 4, 5, 2**40)
    versions = shop.table.version()
    assert shop.land(WIDE).recovered == {}
    assert shop.table.version() == versions == 3


# -- tables that are not rewritten -------------------------------------------------------------------------------------


def test_only_tables_that_the_settings_select_are_rewritten(local: Shop) -> None:
    tables = {"defaults": {"widen": "rewrite"}, "tables": {OTHER: {"widen": "in-place"}}}
    for number, schema in enumerate((NARROW, WIDE)):
        local.write(schema, number, xid=PAID)
        local.write(schema, number, xid=OTHER)
        report = land(local.source, registry(schema, PAID, OTHER), local.to, tables=tables, table_format="delta")
    assert (report.landed, report.reasons) == (1, {"columns-changed": 1})
    columns = {entry.table: entry.columns["n"] for entry in Target(local.to).tables().values() if entry.xid}
    assert columns == {"shop__paid": "int64", "shop__other": "int32"}


def test_other_changes_stay_dead_letters(local: Shop) -> None:
    local.land(avro("int", "float", 9), 1, tables=REWRITE)
    assert local.land(avro("int", "float", 4), 2).problems == []
    before = local.table.version()
    report = local.land(avro("double", "double", 9), 3)
    assert (report.landed, report.reasons) == (0, {"columns-changed": 1})
    assert (local.numbers(), local.table.version()) == ([1, 2], before)


def test_tables_of_other_programs_are_not_rewritten(local: Shop) -> None:
    write_deltalake(local.folder, pa.table({"country": ["SE"], "n": pa.array([0], pa.int32())}))
    tables = {"tables": {PAID: {"name": "shop__paid", "widen": "rewrite"}}}
    assert local.land(NARROW, 1, tables=tables).problems == []
    [problem] = local.land(WIDE, 2**40).problems
    entry = Target(local.to).tables()["shop__paid"]
    assert problem.code == "table-set-aside"
    assert (
        "its column 'n' has the type int32, and the rows have int64, but Wirebook does not rewrite tables that it did "
        "not make: change the type of the column"
    ) in problem.message
    columns = dict(zip(entry.schema.names, entry.schema.types, strict=True))
    rows = local.table.to_pyarrow_table()
    wider = pa.schema([(field.name, columns.get(field.name, field.type)) for field in rows.schema])
    write_deltalake(local.folder, conform(rows, wider), mode="overwrite", schema_mode="overwrite")
    assert local.land(WIDE).recovered == {"shop__paid": 1}
    assert local.numbers() == [0, 1, 2**40]


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"delta.appendOnly": "true"}, "'delta.appendOnly' forbids a rewrite: remove this property"),
        ({"delta.enableDeletionVectors": "true"}, "Wirebook does not rewrite tables with the table features deletionV"),
    ],
)
def test_obstacles_are_named_and_nothing_is_written(local: Shop, properties: dict[str, str], reason: str) -> None:
    tables = {"defaults": REWRITE["defaults"] | {"properties": properties}}
    local.land(NARROW, 1, 2, tables=tables)
    files = sorted(local.folder.rglob("*"))
    [problem] = local.land(WIDE, 2**40).problems
    assert reason in problem.message
    assert sorted(local.folder.rglob("*")) == files
    assert local.numbers() == [1, 2]


def test_file_that_cannot_be_read_stops_the_rewrite_alone(local: Shop) -> None:
    local.land(NARROW, 1, 2, 3, tables=REWRITE)
    broken = max(local.folder.glob("*.parquet"))
    content = broken.read_bytes()
    broken.write_bytes(content[:100])
    files = sorted(local.folder.rglob("*"))
    [problem] = local.land(WIDE, 2**40).problems
    assert (problem.code, "its columns cannot be widened: " in problem.message) == ("table-set-aside", True)
    assert sorted(local.folder.rglob("*")) == files
    broken.write_bytes(content)
    assert local.land(WIDE, 5).recovered == {"shop__paid": 1}
    check(local, 1, 2, 3, 5, 2**40)


@pytest.mark.parametrize("table_format", ["parquet", "iceberg"])
def test_formats_that_widen_in_place_rewrite_nothing(local: Shop, table_format: str) -> None:
    local.land(NARROW, 1, 2, tables=REWRITE, table_format=table_format)
    before = local.files()
    report = local.land(WIDE, 2**40, table_format=table_format)
    assert (report.landed, report.problems) == (1, [])
    assert set(before) < set(local.files())
    assert Target(local.to).tables()["shop__paid"].columns["n"] == "int64"


# -- rows that were set aside, and further batches ---------------------------------------------------------------------


@pytest.mark.parametrize("shop", ["tmp_path", BUCKET, HDFS], indirect=True)
def test_rows_set_aside_before_the_types_changed_are_widened(shop: Shop) -> None:
    shop.land(NARROW, 1, tables=REWRITE)
    action = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["clustering"]}}
    commit = shop.folder / "_delta_log" / f"{1:020}.json"
    commit.write_bytes(msgspec.json.encode(action) + b"\n")
    assert [shop.land(schema, n).problems[0].code for schema, n in ((NARROW, 2), (WIDE, 2**40), (WIDE, 3))] == [
        "table-set-aside"
    ] * 3
    commit.unlink()
    assert shop.land(WIDE, 4).recovered == {"shop__paid": 3}
    check(shop, 1, 2, 3, 4, 2**40)
    assert shop.land(WIDE).recovered == {}


@pytest.mark.parametrize("is_other_run", [False, True])
def test_appends_go_on_with_the_wide_types(tmp_path: Path, is_other_run: bool) -> None:
    narrow, wide = pa.schema({"n": pa.int32(), "t": pa.string()}), pa.schema({"n": pa.int64(), "t": pa.string()})
    table, traits = Table(tmp_path), TableTraits(may_rewrite=True)
    for batch in (1, 2, 3):
        table.commit(batch, narrow)
    run = table.format
    if is_other_run:
        table.format = DeltaFormat()
    table.commit(4, wide, traits)
    table.format = run
    table.commit(5, wide, traits)
    loads = table.loads
    table.commit(6, wide, traits)
    table.commit(7, wide, traits)
    assert table.loads == loads
    assert table.numbers() == [1, 2, 3, 4, 5, 6, 7]
    types = {pq.read_schema(file).field("n").type for file in DeltaTable(table.folder).file_uris()}
    assert types == {pa.int64()}


def test_table_is_not_rewritten_unless_it_may_be(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.commit(1, pa.schema({"n": pa.int32(), "t": pa.string()}))
    with pytest.raises(CommitFailed, match="its column 'n' has the type int32, and the rows have int64: change"):
        table.commit(2, pa.schema({"n": pa.int64(), "t": pa.string()}))
    assert (table.numbers(), DeltaTable(table.folder).version()) == ([1], 0)


@pytest.mark.parametrize(("group_rows", "expected"), [(None, [10, 10, 5]), (4, [4, 4, 4, 4, 4, 4, 1])])
def test_few_rows_are_in_memory_and_row_groups_do_not_grow(
    local: Shop, monkeypatch: pytest.MonkeyPatch, group_rows: int | None, expected: list[int]
) -> None:
    monkeypatch.setattr(delta_widening, "MAX_ROWS", 10)
    options = {"widen": "rewrite", "partition": "none"} | ({"row_group_rows": group_rows} if group_rows else {})
    local.land(NARROW, *range(25), tables={"defaults": options})
    [before] = local.files()
    local.land(WIDE, 2**40)
    after = next(file for file in local.files() if file.name.startswith(before.stem))
    metadata = pq.read_metadata(after)
    assert [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)] == expected
    assert pq.read_table(after)["n"].to_pylist() == [*range(25)]


def test_staged_rows_are_widened(local: Shop) -> None:
    local.land(NARROW, 1, 2, tables=REWRITE, stage_below=4)
    local.land(WIDE, 2**40, stage_below=4)
    assert not local.folder.exists()
    rows = first_rows(find_table(tables_in(local.to), PAID), 9)
    assert (rows.schema.field("n").type, sorted(rows["n"].to_pylist())) == (pa.int64(), [1, 2, 2**40])
