"""Rows enter tables that others made, with columns, partitions and constraints of their own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from extensions import load
from pyiceberg.types import LongType

from tests.landing.test_table_settings import PAID, Shop, event, registry
from wirebook.landing.job import catalogue_of, load_catalog, run_settings
from wirebook.landing.report.html import write_report
from wirebook.landing.report.show import find_table, first_rows, tables_in
from wirebook.landing.runs.land import land_files
from wirebook.landing.runs.target import Target
from wirebook.spark.views import view_statements

NAMED = {"tables": {PAID: {"name": "sales.payments"}}}
ARROW = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "timestamp[us, tz=UTC]": pa.timestamp("us", "UTC"),
    "bool": pa.bool_(),
}
OWN = pa.schema([("n", pa.int64()), ("country", pa.string()), ("amount", pa.float64())])
ROW = pa.table({"n": [0], "country": ["SE"], "amount": [1.5]}, OWN)


class Delta:
    """A Delta table that another program made in the folder of a target."""

    name = "delta"

    def __init__(self, shop: Shop) -> None:
        self.folder = str(shop.to / "sales" / "payments")

    def make(self, rows: pa.Table = ROW, by: str | None = None) -> None:
        from deltalake import write_deltalake

        write_deltalake(self.folder, rows, partition_by=[by] if by else None, description="theirs")

    def rows(self) -> list[dict[str, Any]]:
        return sorted(self.loaded.to_pyarrow_table().to_pylist(), key=lambda row: row["n"])

    @property
    def loaded(self) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(self.folder)

    def comment(self) -> str | None:
        return str(self.loaded.metadata().description)

    def add(self, name: str, type_: str) -> None:
        from deltalake import Field, Schema

        schema = Schema.from_arrow(pa.schema([(name, ARROW.get(type_, pa.string()))]))
        self.loaded.alter.add_columns([Field(name, schema.fields[0].type)])


class Iceberg:
    """An Iceberg table that another program made in the catalogue of a target."""

    name = "iceberg"

    def __init__(self, shop: Shop) -> None:
        self.root: Path = shop.to

    @property
    def catalog(self) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        uri = f"sqlite:///{self.root}/_wirebook/iceberg.db"
        return SqlCatalog("wirebook", uri=uri, warehouse=f"file://{self.root}/elsewhere")

    def make(self, rows: pa.Table = ROW, by: str | None = None, transform: str = "identity") -> None:
        (self.root / "_wirebook").mkdir(parents=True, exist_ok=True)
        self.catalog.create_namespace_if_not_exists("sales")
        table = self.catalog.create_table("sales.payments", rows.schema, properties={"comment": "theirs"})
        if by:
            with table.update_spec() as update:
                update.add_field(by, transform)
        table.append(rows)

    def rows(self) -> list[dict[str, Any]]:
        return sorted(self.loaded.scan().to_arrow().to_pylist(), key=lambda row: row["n"])

    @property
    def loaded(self) -> Any:
        return self.catalog.load_table("sales.payments")

    def comment(self) -> str | None:
        return str(self.loaded.properties["comment"])

    def add(self, name: str, type_: str) -> None:
        with self.loaded.update_schema() as update:
            update.union_by_name(pa.schema([(name, ARROW.get(type_, pa.string()))]))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.fixture(params=[Delta, Iceberg])
def theirs(request: pytest.FixtureRequest, shop: Shop) -> Any:
    return request.param(shop)


def land(shop: Shop, theirs: Any, *numbers: int, tables: Any = NAMED, **options: Any) -> Any:
    events = [event(PAID, number) for number in numbers]
    catalogue = registry(PAID)
    catalogue["messagegroups"]["shop.orders"]["messages"]["paid"]["description"] = "A payment"
    return shop.land(catalogue, *events, tables=tables, table_format=theirs.name, **options)


def numbers(theirs: Any) -> list[int]:
    return [row["n"] for row in theirs.rows()]


def test_file_with_two_hours_enters_an_iceberg_table_by_hour(shop: Shop) -> None:
    theirs, time = Iceberg(shop), pa.timestamp("us", "UTC")
    theirs.make(pa.table({"n": [0], "ce_time": pa.array([0], time)}), by="ce_time", transform="hour")
    events = [event(PAID, number, f"2026-01-01T0{number}:30:00Z") for number in (1, 1, 2)]
    assert not shop.land(registry(PAID), *events, tables=NAMED, table_format="iceberg").problems
    assert numbers(theirs) == [0, 1, 1, 2]
    parts = theirs.loaded.inspect.partitions().to_pylist()
    assert sorted(part["record_count"] for part in parts) == [1, 1, 2]


@pytest.mark.parametrize("by", [None, "country"])
def test_rows_enter_a_table_with_other_columns_and_partitions(shop: Shop, theirs: Any, by: str | None) -> None:
    theirs.make(by=by)
    assert not land(shop, theirs, 1, 2).problems
    assert not land(shop, theirs, 3).problems
    rows = theirs.rows()
    assert [(row["n"], row["country"], row["amount"]) for row in rows] == [
        (0, "SE", 1.5),
        *((number, None, None) for number in (1, 2, 3)),
    ]
    assert (rows[0]["ce_id"], rows[1]["ce_id"]) == (None, "1")
    assert theirs.comment() == "theirs"
    summary = find_table(tables_in(shop.to), PAID)
    assert (summary.name, summary.rows) == ("sales.payments", 4)
    assert sorted(first_rows(summary, 9)["n"].to_pylist()) == [0, 1, 2, 3]
    assert "sales.payments" in write_report(shop.to).read_text()
    assert land(shop, theirs).read == 0


@pytest.mark.parametrize("point", ["staged", "committed", "moved", "tabled"])
def test_rows_enter_once_when_a_run_is_stopped(shop: Shop, theirs: Any, point: str) -> None:
    theirs.make(by="country")
    land(shop, theirs, 1)

    class Stopped(Exception):
        pass

    def stop(reached: str) -> None:
        if reached == point:
            raise Stopped

    (shop.source / "2.jsonl").write_text((shop.source / "1.jsonl").read_text().replace('"n": 1', '"n": 2'))
    loaded = load_catalog(registry(PAID))
    with pytest.raises(Stopped):
        land_files(run_settings(loaded, None, {}), shop.source, catalogue_of(loaded), Target(shop.to, stop))
    shop._files = 3
    assert not land(shop, theirs).problems
    assert numbers(theirs) == [0, 1, 2]


def test_wider_types_of_the_table_stay(shop: Shop, theirs: Any) -> None:
    rows = pa.table({"n": pa.array([0], pa.int64()), "_index": pa.array([0], pa.int64())})
    theirs.make(rows)
    assert not land(shop, theirs, 1).problems
    assert not land(shop, theirs, 2).problems
    assert [(row["n"], row["_index"]) for row in theirs.rows()] == [(0, 0), (1, 0), (2, 0)]
    kinds = (
        {str(field.type) for field in pa.schema(theirs.loaded.schema().to_arrow())} if theirs.name == "delta" else {}
    )
    assert "int32" not in kinds
    assert find_table(tables_in(shop.to), PAID).rows == 3


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (pa.table({"n": ["zero"]}), "n"),
        (pa.table({"N": [0]}), "its column 'N' differs from 'n' of the rows only in case: rename it"),
        (
            pa.table(
                {"n": [0], "country": ["SE"]}, pa.schema([("n", pa.int64()), pa.field("country", pa.string(), False)])
            ),
            "its column 'country' is required, but the rows have no value for it: make it nullable",
        ),
    ],
)
def test_table_that_cannot_take_the_rows_is_named(shop: Shop, theirs: Any, rows: pa.Table, reason: str) -> None:
    theirs.make(rows)
    report = land(shop, theirs, 1)
    [problem] = report.problems
    assert (problem.code, problem.file) == ("table-set-aside", str(shop.to / "sales" / "payments"))
    assert reason in problem.message
    assert len(theirs.loaded.history()) == 1


def test_columns_are_added_only_if_the_team_allows(shop: Shop, theirs: Any) -> None:
    theirs.make()
    tables = {"tables": {PAID: {"name": "sales.payments", "add_columns": False}}}
    [problem] = land(shop, theirs, 1, tables=tables).problems
    place = "_file" if theirs.name == "delta" else "_source_file"
    assert f"it lacks the columns {place} (string), _line (int64), " in problem.message
    assert "add them, or remove 'add_columns: false' from its settings" in problem.message
    assert numbers(theirs) == [0]
    assert land(shop, theirs, 2).recovered == {"sales.payments": 1}
    assert numbers(theirs) == [0, 1, 2]


def test_columns_that_the_team_has_added_suffice(shop: Shop, theirs: Any) -> None:
    theirs.make()
    tables = {"tables": {PAID: {"name": "sales.payments", "add_columns": False}}}
    land(shop, theirs, 1, tables=tables)
    for name, type_ in Target(shop.to).tables()["sales.payments"].columns.items():
        if name != "n":
            theirs.add(name, type_)
    report = land(shop, theirs, tables=tables)
    assert (report.problems, report.recovered) == ([], {"sales.payments": 1})
    assert numbers(theirs) == [0, 1]


def test_table_is_adopted_once_the_settings_name_it(shop: Shop) -> None:
    """In an embedded catalogue of Iceberg, all tables are those of the target."""
    theirs = Delta(shop)
    theirs.make()
    xid = "/messagegroups/shop.orders/messages/pay"
    for number, tables in ((1, {"tables": {xid: {"name": "sales.{message}ments"}}}), (2, None)):
        [problem] = shop.land(registry(xid), event(xid, number), tables=tables, table_format="delta").problems
        assert "it was not made by Wirebook. To add rows to it, name it in the table settings" in problem.message
    assert numbers(theirs) == [0]
    named = {"tables": {xid: {"name": "sales.payments"}}}
    assert shop.land(registry(xid), tables=named).recovered == {"sales.payments": 2}
    assert numbers(theirs) == [0, 1, 2]


def test_day_is_a_column_of_a_delta_table_without_such_a_partition(shop: Shop) -> None:
    import duckdb

    theirs = Delta(shop)
    theirs.make(by="country")
    tables = {"tables": {PAID: {"name": "sales.payments", "partition": "event-day"}}}
    assert not land(shop, theirs, 1, tables=tables).problems
    assert not land(shop, theirs, 2, tables=tables).problems
    assert [str(row["event_day"]) for row in theirs.rows()] == ["None", "2026-11-22", "2026-11-22"]
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as database:
        load(database, "delta")
        for statement in view_statements(shop.to, "duckdb"):
            database.execute(statement)
        query = "SELECT n, country FROM sales.payments WHERE event_day = DATE '2026-11-22' ORDER BY n"
        assert database.execute(query).fetchall() == [(1, None), (2, None)]


def test_constraints_of_a_delta_table_hold(shop: Shop) -> None:
    theirs = Delta(shop)
    theirs.make()
    theirs.loaded.alter.add_constraint({"few": "n < 3"})
    assert not land(shop, theirs, 1, 2).problems
    [problem] = land(shop, theirs, 3).problems
    assert problem.message.endswith(
        "Invalid data found: 1 rows failed validation check. Its constraints are: few (n < 3)"
    )
    record = next((shop.to / "_wirebook" / "batches").glob("*.aside.json")).read_text()
    assert not re.search("ce_id|Preview|cloudevents", record, re.IGNORECASE)
    assert numbers(theirs) == [0, 1, 2]


def test_column_that_must_have_a_value(shop: Shop, theirs: Any) -> None:
    required = pa.schema([pa.field("n", pa.int64(), nullable=False), ("country", pa.string())])
    theirs.make(pa.table({"n": [0], "country": ["SE"]}, required))
    assert not land(shop, theirs, 1, 2).problems
    assert numbers(theirs) == [0, 1, 2]
    without = event(PAID, 3) | {"data": {"other": 3}}
    [problem] = shop.land(registry(PAID), without, event(PAID, 4)).problems
    assert "its column 'n' must have a value, which some rows lack: let it be null" in problem.message
    assert numbers(theirs) == [0, 1, 2]
    fields = (
        pa.schema(theirs.loaded.schema().to_arrow()) if theirs.name == "delta" else theirs.loaded.schema().as_arrow()
    )
    assert not fields.field("n").nullable


def nested_event(number: int, **data: Any) -> dict[str, Any]:
    return event(PAID, number, o={"x": number}, **data)


@pytest.mark.parametrize(
    ("column", "new_name", "reason"),
    [
        ("n", "number", "its column 'n' was renamed to 'number': rename it back"),
        ("n", None, "its column 'n' was dropped: add it to the table again"),
        ("o.x", "y", "its column 'o.x' was renamed to 'o.y': rename it back"),
        ("o.x", None, "its column 'o.x' was dropped: add it to the table again"),
        ("o", "p", "its column 'o' was renamed to 'p': rename it back"),
    ],
)
def test_iceberg_column_that_was_renamed_or_dropped_is_not_added_again(
    shop: Shop, column: str, new_name: str | None, reason: str
) -> None:
    members = {"n": {"type": "integer"}, "o": {"type": "object", "properties": {"x": {"type": "integer"}}}}
    catalogue = registry(PAID, properties=members)
    named = {"tables": NAMED, "table_format": "iceberg"}
    assert not shop.land(catalogue, nested_event(1), **named).problems
    theirs = Iceberg(shop)
    with theirs.loaded.update_schema() as update:
        if new_name:
            update.rename_column(column, new_name)
        else:
            update.delete_column(column)
    columns = theirs.loaded.schema().column_names
    [problem] = shop.land(catalogue, nested_event(2), **named).problems
    assert problem.code == "table-set-aside"
    assert reason in problem.message
    assert theirs.loaded.schema().column_names == columns

    with theirs.loaded.update_schema() as update:
        if new_name:
            parent, _, name = column.rpartition(".")
            update.rename_column(f"{parent}.{new_name}" if parent else new_name, name)
        else:
            update.add_column(tuple(column.split(".")), LongType())
    members["new"] = {"type": "integer"}
    assert shop.land(registry(PAID, properties=members), nested_event(3, new=1), **named).recovered.total() == 1
    assert sorted(theirs.loaded.scan().to_arrow()["ce_id"].to_pylist()) == ["1", "2", "3"]
