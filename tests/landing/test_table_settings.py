"""Settings of tables: their names, what a user may write, and what the target keeps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.landing.test_table_formats import forbid, iceberg_table
from tests.landing.workspace import LocalRunner as HereRunner
from wirebook.cli.app import run
from wirebook.landing import land, replay
from wirebook.landing.job import catalogue_of, load_catalog, run_settings
from wirebook.landing.maintenance import UpkeepOptions, maintain
from wirebook.landing.report.html import write_report
from wirebook.landing.report.run_statistics import run_statistics
from wirebook.landing.report.show import find_table, first_rows, tables_in
from wirebook.landing.runs.land import land_files
from wirebook.landing.runs.target import Target
from wirebook.landing.tables import spool
from wirebook.landing.tables.all_formats import FORMATS
from wirebook.landing.tables.formats import NO_TRAITS, FileLayout
from wirebook.landing.tables.layout import NO_DEFINITION, OWN_TABLES
from wirebook.landing.tables.names import assign_names, readable_name
from wirebook.landing.tables.partitions import DayPartition, rows_by_day
from wirebook.landing.tables.settings import read_table_settings
from wirebook.landing.watch.status import target_status
from wirebook.problems import WirebookError
from wirebook.spark.views import view_statements

PLACED, PAID = "/messagegroups/shop.orders/messages/shop.orders.placed", "/messagegroups/shop.orders/messages/paid"
OTHER = "/messagegroups/shop-orders/messages/paid"


def registry(*xids: str, **schema: Any) -> dict[str, Any]:
    groups: dict[str, Any] = {}
    for xid in xids:
        _, _, group, _, name = xid.split("/")
        message = {
            "messageid": name,
            "envelope": "CloudEvents/1.0",
            "envelopemetadata": {"type": {"value": f"{group}/{name}"}},
            "dataschemaformat": "JSONSchema/draft-07",
            "dataschema": {"type": "object", "properties": {"n": {"type": "integer"}}, **schema},
        }
        groups.setdefault(group, {"messagegroupid": group, "messages": {}})["messages"][name] = message
    return {"specversion": "1.0-rc4", "registryid": "r", "messagegroups": groups}


def event(xid: str, number: int, time: str | None = "2026-11-22T23:30:00Z", **data: Any) -> dict[str, Any]:
    _, _, group, _, name = xid.split("/")
    attributes = {"specversion": "1.0", "id": str(number), "source": "/s", "type": f"{group}/{name}"}
    return attributes | ({"time": time} if time else {}) | {"data": {"n": number} | data}


class Stopped(Exception):
    """A run was stopped at a point of its commit."""


class Shop:
    """A folder of events and a target."""

    def __init__(self, root: Path) -> None:
        self.source = root / "source"
        self.to: Any = root / "target"
        self.source.mkdir()
        self._files = 0

    def land(self, catalogue: dict[str, Any], *events: dict[str, Any], **options: Any) -> Any:
        self._files += 1
        lines = "".join(json.dumps(one) + "\n" for one in events)
        (self.source / f"{self._files}.jsonl").write_text(lines)
        return land(self.source, catalogue, self.to, **options)

    def names(self) -> dict[str | None, str]:
        return {table.definition: table.name for table in tables_in(self.to)}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def read(shop: Shop, name: str, day: date | None = None) -> tuple[list[int], int]:
    """The numbers of the events in a table, or of a day, for a reader of its format, and how many files it reads."""
    folder = shop.to / name
    if (folder / "_delta_log").exists():
        from deltalake import DeltaTable

        table = DeltaTable(str(folder))
        actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        files = [action for action in actions if day in (None, action.get("partition.event_day"))]
        filters = [("event_day", "=", day)] if day else None
        return sorted(table.to_pyarrow_table(filters=filters)["n"].to_pylist()), len(files)
    if (folder / "metadata").exists():
        loaded = iceberg_table(shop.to, name)
        condition = f"ce_time >= '{day}T00:00:00+00:00' and ce_time <= '{day}T23:59:59.999999+00:00'"
        scan = loaded.scan(row_filter=condition) if day else loaded.scan()
        return sorted(scan.to_arrow()["n"].to_pylist()), len(list(scan.plan_files()))
    import duckdb

    source = f"read_parquet('{folder}/**/*.parquet', hive_partitioning = true, filename = true)"
    condition = f"event_day = '{day}'" if day else "true"
    rows = duckdb.sql(f"SELECT n, filename FROM {source} WHERE {condition}").fetchall()
    return sorted(row[0] for row in rows), len({row[1] for row in rows})


def check_columns_follow(shop: Shop, read_table: Callable[[], pa.Table], **options: Any) -> None:
    """A field that is added becomes a column; values of a type that the column does not take are dead letters."""
    number = {"n": {"type": "integer"}}
    shop.land(registry(PAID), event(PAID, 1), **options)
    shop.land(registry(PAID, properties=number | {"weight": {"type": "number"}}), event(PAID, 2, weight=1.5))
    report = shop.land(registry(PAID, properties={"n": {"type": "string"}}), event(PAID, 3, n="three"))
    assert (report.landed, report.reasons) == (0, {"columns-changed": 1})
    landed = read_table().select(["n", "weight"]).to_pylist()
    assert sorted(landed, key=lambda row: row["n"]) == [{"n": 1, "weight": None}, {"n": 2, "weight": 1.5}]


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("xid", "name"),
    [
        ("/messagegroups/orders/messages/placed", "orders__placed"),
        (PLACED, "shop_orders_placed"),
        ("/endpoints/Shop/messages/Order-Placed", "shop__order_placed"),
        ("/messagegroups/order/messages/orders.placed", "order__orders_placed"),
        ("/messagegroups/日本/messages/Größe", "grosse"),
        ("/messagegroups/日本/messages/日", "message"),
    ],
)
def test_readable_names(xid: str, name: str) -> None:
    assert readable_name(xid) == name


def test_colliding_definitions_all_get_a_suffix() -> None:
    names = assign_names([PLACED, PAID, OTHER], {})
    assert names.keys() == {PAID, OTHER}
    assert len(set(names.values())) == 2
    assert all(name.startswith("shop_orders__paid_") and len(name) == 26 for name in names.values())
    assert names == assign_names([OTHER, PAID, PLACED], {})


def test_table_keeps_its_name_when_another_definition_wants_it() -> None:
    assert assign_names([PAID, OTHER], {PAID: "shop_orders__paid"}).keys() == {OTHER}
    assert assign_names([OTHER], {PAID: "SHOP_orders__paid"}).keys() == {OTHER}


def test_no_definition_gets_the_name_of_the_dead_letters() -> None:
    xid = "/messagegroups/dead/messages/dead.letters"
    assert assign_names([xid], {})[xid].startswith("dead_letters_")


def test_name_that_looks_like_one_with_a_suffix_is_not_taken() -> None:
    suffixed = assign_names([PAID, OTHER], {})[PAID]
    thief = f"/messagegroups/shop.orders/messages/paid.{suffixed.rpartition('_')[2]}"
    names = assign_names([PAID, OTHER, thief], {})
    assert readable_name(thief) == f"shop_orders__{thief.rpartition('/')[2].replace('.', '_')}" == suffixed
    assert len({*names.values(), suffixed}) == 3
    assert thief not in names


def test_runs_with_different_catalogues_agree_on_names(shop: Shop) -> None:
    shop.land(registry(PAID), event(PAID, 1))
    shop.land(registry(PAID, OTHER), event(PAID, 2), event(OTHER, 3))
    other = shop.names()[OTHER]
    assert shop.names() == {PAID: "shop_orders__paid", OTHER: other}
    assert other != "shop_orders__paid"
    shop.land(registry(OTHER), event(OTHER, 4))  # alone, its name would be free of a suffix
    assert shop.names() == {PAID: "shop_orders__paid", OTHER: other}


def test_tables_of_an_earlier_version_keep_their_names(shop: Shop) -> None:
    shop.land(registry(PLACED), event(PLACED, 1), tables={"tables": {PLACED: {"name": "shop_orders_placed_acce065b"}}})
    shop.land(registry(PLACED), event(PLACED, 2), tables={})
    assert shop.names() == {PLACED: "shop_orders_placed_acce065b"}


# -- settings ---------------------------------------------------------------------------------------------------------


def test_names_are_chosen_by_definition_by_pattern_and_by_default(shop: Shop, tmp_path: Path) -> None:
    settings = tmp_path / "tables.yaml"
    settings.write_text(f"""\
defaults: {{name: "raw_{{group}}_{{message}}"}}
tables:
  {PLACED}: {{name: Orders}}
  /messagegroups/shop-orders/messages/*: {{name: "other_{{message}}"}}
""")
    catalogue = registry(PLACED, PAID, OTHER)
    shop.land(catalogue, event(PLACED, 1), event(PAID, 2), event(OTHER, 3), tables=settings)
    assert shop.names() == {PLACED: "Orders", PAID: "raw_shop_orders_paid", OTHER: "other_paid"}


def test_target_keeps_its_settings_for_later_runs_and_replays(shop: Shop) -> None:
    settings = {"tables": {PAID: {"name": "paid"}}}
    shop.land(registry(PLACED), event(PLACED, 1), event(PAID, 2), tables=settings)
    replay(shop.to, registry(PLACED, PAID))
    assert shop.names() | {None: ""} == {PLACED: "shop_orders_placed", PAID: "paid", None: ""}


def test_new_rule_does_not_rename_existing_tables(shop: Shop) -> None:
    shop.land(registry(PAID), event(PAID, 1))
    shop.land(registry(PAID, PLACED), event(PAID, 2), event(PLACED, 3), tables={"defaults": {"name": "x_{message}"}})
    assert shop.names() == {PAID: "shop_orders__paid", PLACED: "x_shop_orders_placed"}


def test_name_with_levels_is_in_folders(shop: Shop, table_format: str) -> None:
    catalogue = registry(PLACED, PAID)
    settings = {"defaults": {"name": "{group}.{message}"}, "tables": {PAID: {"name": "sales.eu.payments"}}}
    shop.land(catalogue, event(PLACED, 1), event(PAID, 2), {"bad": 1}, tables=settings, table_format=table_format)
    shop.land(catalogue, event(PLACED, 3), event(PAID, 4))
    names = {PLACED: "shop_orders.shop_orders_placed", PAID: "sales.eu.payments", None: "dead_letters"}
    assert shop.names() == names
    assert {path.name for path in shop.to.iterdir()} == {"_wirebook", "dead_letters", "sales", "shop_orders"}
    payments = find_table(tables_in(shop.to), "sales.eu.payments")
    assert sorted(first_rows(payments, 9)["n"].to_pylist()) == [2, 4]
    assert {Path(str(file)).parent for file in payments.files} == {shop.to / "sales" / "eu" / "payments"}
    assert {done.table for done in maintain(shop.to, UpkeepOptions())} == {*names.values()}
    assert len([*maintain(shop.to, UpkeepOptions(), ["sales.eu.payments"])]) == 1
    assert "sales.eu.payments" in write_report(shop.to).read_text()
    assert [table.gone for table in run_statistics(shop.to).tables] == [0, 0]
    assert target_status(shop.to).landed == 4
    with pytest.raises(WirebookError, match="unknown-table"):
        find_table(tables_in(shop.to), "sales.eu")
    if table_format == "iceberg":
        assert iceberg_table(shop.to, "payments", "sales.eu").scan().to_arrow().num_rows == 2


def test_duckdb_views_of_names_with_levels_are_in_schemas(shop: Shop) -> None:
    import duckdb

    settings = {"tables": {PAID: {"name": "sales.eu.payments"}, PLACED: {"name": "sales.orders"}}}
    options = {"tables": settings, "stage_below": 2}
    shop.land(registry(PLACED, PAID), event(PLACED, 1), event(PAID, 2), event(PAID, 3), **options)
    with duckdb.connect() as database:
        for statement in view_statements(shop.to, "duckdb"):
            database.execute(statement)
        query = 'SELECT n FROM "sales.eu".payments UNION ALL SELECT n FROM sales.orders ORDER BY 1'
        assert database.execute(query).fetchall() == [(1,), (2,), (3,)]


def test_rows_of_names_with_levels_are_set_aside_and_recovered(shop: Shop) -> None:
    settings = {"tables": {PAID: {"name": "sales.payments"}}}
    shop.land(registry(PAID), event(PAID, 1), tables=settings, table_format="delta")
    commit = forbid(shop.to / "sales" / "payments")
    [problem] = shop.land(registry(PAID), event(PAID, 2)).problems
    assert (problem.code, problem.file) == ("table-set-aside", str(shop.to / "sales" / "payments"))
    assert [*target_status(shop.to).aside] == ["sales.payments"]
    commit.unlink()
    assert shop.land(registry(PAID)).recovered == {"sales.payments": 1}
    assert read(shop, "sales/payments")[0] == [1, 2]
    assert not (shop.to / "_wirebook" / "aside").exists()


def test_table_is_in_the_folder_of_no_other(shop: Shop) -> None:
    found = sorted(problems({"tables": {PAID: {"name": "sales"}, PLACED: {"name": "Sales.orders"}}}, shop))
    assert len(found) == 2
    assert f"of the tables of '{PAID}', 'sales', and '{PLACED}', one would be in the folder of the other" in found[0]
    shop.land(registry(PAID), event(PAID, 1))
    [problem] = problems({"tables": {PLACED: {"name": "shop_orders__paid.placed"}}}, shop)
    assert "one would be in the folder of the other" in problem


@pytest.mark.parametrize("order", [(PAID, PLACED, OTHER), (OTHER, PLACED, PAID)])
def test_rules_put_no_table_into_the_folder_of_another(order: tuple[str, ...]) -> None:
    rules = {PAID: "sales", PLACED: "Sales.orders", OTHER: "dead_letters.paid"}
    names = assign_names(order, {}, rule=rules.get)
    assert names[PLACED] == "Sales.orders"
    assert re.fullmatch(r"sales_[0-9a-f]{8}", names[PAID])
    assert re.fullmatch(r"dead_letters_[0-9a-f]{8}\.paid", names[OTHER])
    names = assign_names([PLACED], {PAID: "sales"}, rule=rules.get)
    assert re.fullmatch(r"Sales_[0-9a-f]{8}\.orders", names[PLACED])
    assert re.fullmatch(r"sales_[0-9a-f]{8}", assign_names([PAID], {PLACED: "SALES.x"}, rule=rules.get)[PAID])


def test_levels_that_a_rule_leaves_empty_get_a_name() -> None:
    settings = read_table_settings({"defaults": {"name": "{group}.{group}_{message}"}})
    assert settings.rule("/messagegroups/日本/messages/wirebook") == "message.wirebook"


def test_levels_that_a_rule_would_begin_with_a_digit_get_a_prefix() -> None:
    settings = read_table_settings({"defaults": {"name": "{group}.{message}"}})
    assert settings.rule("/messagegroups/2026/messages/1st") == "t_2026.t_1st"
    long = settings.rule(f"/messagegroups/a/messages/{'1' * 128}")
    assert long == f"a.t_{'1' * 98}"


def problems(tables: Any, shop: Shop | None = None) -> list[str]:
    use = partial(shop.land, registry(PAID, PLACED), event(PAID, 9), tables=tables) if shop else read_table_settings
    with pytest.raises(WirebookError) as raised:
        use(**({} if shop else {"settings": tables}))
    assert {problem.code for problem in raised.value.problems} == {"table-settings"}
    return [f"{problem.line}: {problem.message} ({problem.hint})" for problem in raised.value.problems]


def test_renaming_an_existing_table_is_refused(shop: Shop) -> None:
    shop.land(registry(PAID), event(PAID, 1))
    [problem] = problems({"tables": {PAID: {"name": "payments"}}}, shop)
    assert f"the definition '{PAID}' has the table 'shop_orders__paid', which cannot be renamed" in problem
    assert shop.names() == {PAID: "shop_orders__paid"}


@pytest.mark.parametrize("name", ["orders", "ORDERS"])
def test_two_definitions_with_one_name_are_refused(shop: Shop, name: str) -> None:
    [*found] = problems({"tables": {PAID: {"name": "orders"}, PLACED: {"name": name}}}, shop)
    assert len(found) == 2
    assert "would have the same name" in found[0]
    assert not shop.to.joinpath("orders").exists()


def test_settings_that_apply_to_no_definition_are_warnings(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong, pattern = PAID.replace("paid", "payd"), "/messagegroups/nowhere/messages/*"
    tables = {wrong: {"name": "payments"}, pattern: {"sort": ["n"]}, PAID: {}, "/messagegroups/shop*": {}}
    report = shop.land(registry(PAID, PLACED), event(PAID, 1), tables={"tables": tables})
    assert not report.has_errors
    assert [(problem.code, problem.actual) for problem in report.problems] == [
        ("unused-table-settings", wrong),
        ("unused-table-settings", pattern),
    ]
    assert report.problems[0].hint == f"did you mean '{PAID}'?"
    assert shop.names() == {PAID: "shop_orders__paid"}
    assert shop.land(registry(PLACED), event(PLACED, 1), tables={"tables": {PAID: {"sort": ["n"]}}}).problems == []
    assert shop.land(registry(PLACED), event(PLACED, 2)).problems == []
    catalogue, settings = tmp_path / "c.json", tmp_path / "settings.json"
    catalogue.write_text(json.dumps(registry(PLACED)))
    settings.write_text(json.dumps({"tables": {wrong: {"name": "payments"}}}))
    command = ["land", str(shop.source), "--catalog", str(catalogue), "--to", str(shop.to), "--tables", str(settings)]
    assert run([*command, "--local", "--no-report"]) == 0
    assert f"no definition with a table has the XID '{wrong}'" in capsys.readouterr().err


def test_name_of_another_table_is_refused(shop: Shop) -> None:
    shop.land(registry(PAID), event(PAID, 1))
    [problem] = problems({"tables": {PLACED: {"name": "shop_orders__paid"}}}, shop)
    assert f"'{PLACED}' and '{PAID}'" in problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tabels: {}", "1: unknown member 'tabels' in the settings of tables (did you mean 'tables'?)"),
        ("tables:\n  orders: {name: x}", "2: the key must be the XID of a message definition"),
        ("tables:\n  /messagegroups/g/messages/m: {nmae: x}", "2: unknown member 'nmae'"),
        ("tables:\n  /messagegroups/g/messages/m: {name: 7}", "2: 'name' must be Expected"),
        ("tables:\n  /messagegroups/g/messages/m: {name: a b}", "2: the name of a table must be"),
        ("tables:\n  /messagegroups/g/messages/m: {name: _x}", "2: the name of a table must be"),
        ("tables:\n  /messagegroups/g/messages/m: {name: Dead_Letters}", "2: 'Dead_Letters' is the name of a table"),
        ('tables:\n  /messagegroups/g/messages/m: {name: "{grp}_x"}', "2: the placeholder '{grp}' must be"),
        ("tables:\n  /messagegroups/g/messages/m: {name: a..b}", "2: the name of a table must be"),
        ("tables:\n  /messagegroups/g/messages/m: {name: ../b}", "2: the name of a table must be"),
        ("tables:\n  /messagegroups/g/messages/m: {name: _wirebook.b}", "2: the name of a table must be"),
        ("tables:\n  /messagegroups/g/messages/m: {name: a.b.c.d.e.f}", "2: the name of a table must be"),
        ("tables:\n  /messagegroups/g/messages/m: {name: staged.b}", "2: 'staged' is the name of a table"),
        ("tables:\n  /messagegroups/g/messages/m: {add_columns: 1}", "2: 'add_columns' must be Expected"),
        ("defaults: {widen: always}", "1: 'widen' must be Invalid enum value 'always'"),
        ("defaults: {name: orders}", "1: the default name must be a rule with {message}"),
        ("[]", "1: the settings of tables must be an object"),
        ("tables: []", "1: 'tables' must be an object"),
    ],
)
def test_mistakes_are_reported_with_their_place(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "tables.yaml"
    path.write_text(text)
    [problem] = problems(path)
    assert problem.startswith(expected)


def test_missing_settings_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(WirebookError, match=r"cannot read the table settings .*No such file"):
        read_table_settings(tmp_path / "none.yaml")


# -- partitions -------------------------------------------------------------------------------------------------------

BY_DAY = {"defaults": {"partition": "event-day"}}
TIMES = ("2026-11-20T23:59:59.999999Z", "2026-11-21T00:00:00Z", "2026-11-21T23:30:00-02:00", None)
"""The day before midnight, the day after it, the next day by UTC alone, and no time."""


@pytest.fixture(params=["parquet", "delta", "iceberg"])
def table_format(request: pytest.FixtureRequest) -> Any:
    return request.param


LAST_DAY = datetime(9999, 12, 31)


@given(
    st.lists(
        st.sampled_from((None, LAST_DAY)) | st.datetimes(datetime(1969, 12, 30), datetime(1970, 1, 3)),
        min_size=1,
        max_size=8,
    )
)
def test_rows_are_grouped_by_their_day(times: list[datetime | None]) -> None:
    rows = pa.table({"ce_time": pa.array(times, pa.timestamp("us", "UTC")), "n": range(len(times))})
    expected: dict[str, list[int]] = {}
    for number, time in enumerate(times):
        expected.setdefault(time.date().isoformat() if time else "none", []).append(number)
    grouped = rows_by_day(rows, DayPartition("ce_time", "event_day"))
    assert {day: of_day["n"].to_pylist() for day, of_day in grouped} == expected


def test_readers_skip_the_files_of_other_days(shop: Shop, table_format: str) -> None:
    events = [event(PAID, number, TIMES[number % 4]) for number in range(8)]
    shop.land(registry(PAID), *events, tables=BY_DAY, table_format=table_format)
    shop.land(registry(PAID), event(PAID, 8, TIMES[1]))
    name = "shop_orders__paid"
    assert read(shop, name) == ([*range(9)], 5)
    assert read(shop, name, date(2026, 11, 20)) == ([0, 4], 1)
    assert read(shop, name, date(2026, 11, 21)) == ([1, 5, 8], 2)
    assert read(shop, name, date(2026, 11, 22)) == ([2, 6], 1)
    [summary] = tables_in(shop.to)
    assert sorted(first_rows(summary, 99)["n"].to_pylist()) == [*range(9)]


@pytest.mark.parametrize("point", ["begun", "staged", "committed", "moved", "tabled"])
def test_partitioned_rows_land_once_when_a_run_is_stopped(shop: Shop, table_format: str, point: str) -> None:
    catalogue = registry(PAID)
    shop.land(catalogue, event(PAID, 0, TIMES[0]), tables=BY_DAY, table_format=table_format)

    def stop(reached: str) -> None:
        if reached == point:
            raise Stopped

    lines = (json.dumps(event(PAID, number, TIMES[number % 4])) for number in range(1, 8))
    (shop.source / "more.jsonl").write_text("\n".join(lines) + "\n")
    loaded = load_catalog(catalogue)
    with pytest.raises(Stopped):
        land_files(run_settings(loaded, None, {}), shop.source, catalogue_of(loaded), Target(shop.to, stop))
    shop.land(catalogue)
    assert read(shop, "shop_orders__paid")[0] == [*range(8)]


def test_existing_table_stays_without_partition(shop: Shop, table_format: str) -> None:
    none = {"defaults": {"partition": "none"}}
    shop.land(registry(PAID), event(PAID, 1), tables=none, table_format=table_format)
    shop.land(registry(PAID, PLACED), event(PAID, 2), event(PLACED, 3), tables=BY_DAY)
    assert {table.name: table.day is not None for table in tables_in(shop.to)} == {
        "shop_orders__paid": False,
        "shop_orders_placed": True,
    }
    assert read(shop, "shop_orders__paid")[0] == [1, 2]
    [problem] = problems({"tables": {PAID: {"partition": "event-day"}}}, shop)
    assert "'shop_orders__paid' is not partitioned, so its partition cannot become 'event-day'" in problem


def test_lakehouse_tables_are_partitioned_by_the_day_of_the_event_by_default(shop: Shop, table_format: str) -> None:
    events = [event(PAID, number, f"2026-01-0{number}T23:00:00Z") for number in (1, 2, 2)]
    fixed = {"tables": {PLACED: {"name": "placed"}}}
    shop.land(registry(PAID, PLACED), *events, event(PLACED, 4), tables=fixed, table_format=table_format)
    days = {table.name: table.day and table.day.source for table in tables_in(shop.to)}
    assert days == {"shop_orders__paid": None if table_format == "parquet" else "ce_time", "placed": None}
    files = [len(table.files) for table in tables_in(shop.to) if table.name == "shop_orders__paid"]
    assert files == [1 if table_format == "parquet" else 2]
    assert read(shop, "shop_orders__paid")[0] == [1, 2, 2]


def captured(day: int, content_type: str, body: dict[str, Any]) -> dict[str, Any]:
    """A message that was received on a day of January."""
    record = {"protocol": "HTTP", "received": f"2026-01-{day:02}T23:59:59.5Z", "method": "POST"}
    return record | {"headers": [["content-type", content_type]], "body": json.dumps(body)}


@pytest.mark.parametrize("is_event", [True, False])
def test_tables_are_partitioned_by_the_day_of_receipt(shop: Shop, table_format: str, is_event: bool) -> None:
    """Events if the settings say so, and messages that are no events also if these ask for the day of the event."""
    catalogue, setting = registry(PAID), "receipt-day" if is_event else "event-day"
    if is_event:
        bodies = [("application/cloudevents+json", event(PAID, number)) for number in range(4)]
    else:
        message = catalogue["messagegroups"]["shop.orders"]["messages"]["paid"]
        del message["envelope"], message["envelopemetadata"]
        message |= {"protocol": "HTTP", "protocoloptions": {"method": "POST"}}
        bodies = [("application/json", {"n": number}) for number in range(4)]
    records = [captured(1 + number // 2, *body) for number, body in enumerate(bodies)]
    shop.land(catalogue, *records, tables={"defaults": {"partition": setting}}, table_format=table_format)
    [table] = tables_in(shop.to)
    assert table.day is not None
    assert (table.day.source, table.rows) == ("_received", 4)
    times = [pq.read_table(str(file), columns=["_received"], partitioning=None)["_received"] for file in table.files]
    assert sorted([moment.day for moment in column.to_pylist()] for column in times) == [[1, 1], [2, 2]]
    if table_format == "delta":
        from deltalake import DeltaTable

        assert DeltaTable(str(shop.to / table.name)).metadata().partition_columns == ["receipt_day"]


def test_days_beyond_the_limit_are_staged(shop: Shop, table_format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "MAX_DAYS", 3)
    events = [event(PAID, number, f"2026-01-{1 + number // 2:02}T00:00:00Z") for number in range(19)]
    report = shop.land(registry(PAID), *events, tables=BY_DAY, table_format=table_format, runner=HereRunner())
    assert report.staged == {"shop_orders__paid": 13}
    [summary] = tables_in(shop.to)
    assert (summary.rows, summary.staged, len(summary.files)) == (19, 13, 3)
    assert sorted(first_rows(summary, 99)["n"].to_pylist()) == [*range(19)]


def test_views_have_the_day_also_of_staged_rows(shop: Shop) -> None:
    import duckdb

    shop.land(registry(PAID), *(event(PAID, n, TIMES[n % 4]) for n in range(8)), tables=BY_DAY, stage_below=4)
    shop.land(registry(PAID), *(event(PAID, n, TIMES[n % 4]) for n in range(8, 10)), stage_below=4)
    shop.land(registry(PAID, PLACED), event(PLACED, 1, TIMES[2]), stage_below=4)
    with duckdb.connect() as database:
        for statement in view_statements(shop.to, "duckdb"):
            database.execute(statement)
        query = "SELECT event_day, count(*) FROM shop_orders__paid GROUP BY 1 ORDER BY 1 NULLS LAST"
        days = [date(2026, 11, 20), date(2026, 11, 21), date(2026, 11, 22), None]
        assert database.execute(query).fetchall() == [*zip(days, (3, 3, 2, 2), strict=True)]
        assert database.execute("SELECT event_day, n FROM shop_orders_placed").fetchall() == [(days[2], 1)]
        one_day = "EXPLAIN ANALYZE SELECT n FROM shop_orders__paid WHERE event_day = DATE '2026-11-20'"
        assert "Scanning Files: 2/6" in database.execute(one_day).fetchall()[0][1]


def test_field_with_the_name_of_the_partition_gets_the_name(shop: Shop, table_format: str) -> None:
    dated = registry(PAID, properties={"n": {"type": "integer"}, "event_day": {"type": "string"}})
    shop.land(dated, event(PAID, 1, event_day="Sunday"), tables=BY_DAY, table_format=table_format)
    [summary] = tables_in(shop.to)
    assert summary.day == DayPartition("ce_time", "event_day_")
    assert first_rows(summary, 1)["event_day"].to_pylist() == ["Sunday"]


def test_field_that_gets_the_name_of_the_partition_later_conflicts(shop: Shop, table_format: str) -> None:
    shop.land(registry(PAID), event(PAID, 1), tables=BY_DAY, table_format=table_format)
    dated = registry(PAID, properties={"n": {"type": "integer"}, "event_day": {"type": "string"}})
    report = shop.land(dated, event(PAID, 2, event_day="Sunday"))
    assert report.reasons == {"columns-changed": 1}


# -- files and properties ---------------------------------------------------------------------------------------------


def test_rows_are_sorted_and_row_groups_limited(shop: Shop, table_format: str) -> None:
    events = [event(PAID, number * 7 % 10, f"2026-11-20T0{number * 3 % 10}:00:00Z") for number in range(10)]
    options = {"sort": ["ce_time", "_file", "unknown"], "row_group_rows": 4}
    shop.land(registry(PAID), *events, tables={"defaults": options}, table_format=table_format)
    [file] = tables_in(shop.to)[0].files
    times = pq.read_table(file, partitioning=None)["ce_time"].to_pylist()
    assert times == sorted(times)
    metadata = pq.read_metadata(file)
    assert [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)] == [4, 4, 2]


@pytest.mark.parametrize("sort", [None, []])
def test_rows_of_a_partition_are_sorted_by_its_time(shop: Shop, table_format: str, sort: list[str] | None) -> None:
    moments = [f"2026-11-2{number % 2}T0{number * 7 % 10}:00:00Z" for number in range(10)]
    options = BY_DAY["defaults"] | ({} if sort is None else {"sort": sort})
    events = [event(PAID, number, moment) for number, moment in enumerate(moments)]
    shop.land(registry(PAID), *events, tables={"defaults": options}, table_format=table_format)
    columns = [pq.read_table(str(file), columns=["n"], partitioning=None)["n"] for file in tables_in(shop.to)[0].files]
    by_day = [[*range(0, 10, 2)], [*range(1, 10, 2)]]
    if sort is None:
        by_day = [sorted(numbers, key=moments.__getitem__) for numbers in by_day]
    assert sorted(column.to_pylist() for column in columns) == sorted(by_day)


@pytest.mark.parametrize(
    ("pieces", "files"),
    [
        ([[1, 3], [3, 4, None], [None]], [[1, 3, 3, 4, None, None]]),
        ([[4, 1], [3, 5], [9, 6]], [[1, 4], [3, 5, 6, 9]]),
        ([[2, None], [1]], [[2, None], [1]]),
    ],
)
def test_rows_that_precede_those_of_a_sorted_file_get_another(
    tmp_path: Path, pieces: list[list[int | None]], files: list[list[int | None]]
) -> None:
    layout = FileLayout(sort=("n",))
    sorted_files = spool.TableSpool(FORMATS["parquet"], tmp_path, "1", layout_of=lambda *_: layout, flush=1)
    for numbers in pieces:
        sorted_files.add("t", pa.table({"n": pa.array(numbers, pa.int64())}))
    paths = [tmp_path / file.path for file in sorted_files.finish()]
    assert [pq.read_table(path)["n"].to_pylist() for path in paths] == files


def test_properties_are_set_and_changed(shop: Shop) -> None:
    from deltalake import DeltaTable

    name, folder = "delta.deletedFileRetentionDuration", shop.to / "shop_orders__paid"
    for hours in (30, 40):
        settings = {"defaults": {"properties": {name: f"interval {hours} days"}}}
        shop.land(registry(PAID), event(PAID, hours), tables=settings, table_format="delta")
        assert DeltaTable(str(folder)).metadata().configuration == {name: f"interval {hours} days"}
    assert read(shop, "shop_orders__paid")[0] == [30, 40]


def test_iceberg_properties_are_set(shop: Shop) -> None:
    settings = {"tables": {PAID: {"properties": {"write.target-file-size-bytes": "1000000"}}}}
    shop.land(registry(PAID), event(PAID, 1), tables=settings, table_format="iceberg")
    assert iceberg_table(shop.to, "shop_orders__paid").properties["write.target-file-size-bytes"] == "1000000"
    shop.land(registry(PAID), event(PAID, 2), tables={"defaults": {"properties": {"format-version": "2"}}})
    assert iceberg_table(shop.to, "shop_orders__paid").format_version == 2


@pytest.mark.parametrize(
    ("table_format", "properties", "reason"),
    [
        ("parquet", {"a": "b"}, "folders of Parquet files have no properties"),
        ("delta", {"delta.enableTypeWidening": "true"}, "deltalake cannot write tables with these properties"),
        ("delta", {"delta.columnMapping.mode": "name"}, "'delta.columnMapping.mode' cannot be set"),
        ("iceberg", {"format-version": "3"}, "version 2 alone, so 'format-version' cannot be '3'"),
        ("iceberg", {"format-version": "1"}, "version 2 alone, so 'format-version' cannot be '1'"),
        ("iceberg", {"wirebook.batch": "9"}, "'wirebook.batch' is a property that Wirebook sets"),
    ],
)
def test_impossible_properties_are_refused(shop: Shop, table_format: str, properties: Any, reason: str) -> None:
    tables = {"defaults": {"properties": properties}}
    with pytest.raises(WirebookError, match="table-settings") as raised:
        shop.land(registry(PAID), event(PAID, 1), tables=tables, table_format=table_format)
    assert reason in raised.value.problems[0].message
    assert not (shop.to / "shop_orders__paid").exists()


# -- comments ---------------------------------------------------------------------------------------------------------


def comments(shop: Shop, name: str) -> tuple[str | None, dict[str, str | None]]:
    """The comments of a table and of its columns, for a reader of its format."""
    folder = shop.to / name
    if (folder / "_delta_log").exists():
        from deltalake import DeltaTable

        table = DeltaTable(str(folder))
        return table.metadata().description, {
            field.name: field.metadata.get("comment") for field in table.schema().fields
        }
    if (folder / "metadata").exists():
        loaded = iceberg_table(shop.to, name)
        return loaded.properties.get("comment"), {field.name: field.doc for field in loaded.schema().fields}
    newest = max(folder.glob("*.parquet"))
    fields = pq.read_schema(newest)
    return None, {field.name: (field.metadata or {}).get(b"comment", b"").decode() or None for field in fields}


def described(table: str | None, **columns: str) -> dict[str, Any]:
    properties = {name: {"type": "integer", "description": text} for name, text in columns.items()}
    catalogue = registry(PAID, properties={"n": {"type": "integer"}} | properties)
    if table:
        catalogue["messagegroups"]["shop.orders"]["messages"]["paid"]["description"] = table
    return catalogue


def test_comments_follow_the_catalogue(shop: Shop, table_format: str) -> None:
    has_table_comments, name = table_format != "parquet", "shop_orders__paid"
    shop.land(described("A payment.\n Final.", n="Its number"), event(PAID, 1), table_format=table_format)
    table, columns = comments(shop, name)
    assert table == ("A payment. Final." if has_table_comments else None)
    assert (columns["n"], columns["ce_type"]) == ("Its number", "CloudEvents attribute 'type'")
    assert None not in columns.values()
    changed = described("Paid.", n="The number", m="Another number")
    shop.land(changed, event(PAID, 2, m=3))
    table, columns = comments(shop, name)
    assert table == ("Paid." if has_table_comments else None)
    assert (columns["n"], columns["m"]) == ("The number", "Another number")
    versions = len([*(shop.to / name).glob("_delta_log/*.json")])
    shop.land(changed, event(PAID, 4, m=5))
    assert len([*(shop.to / name).glob("_delta_log/*.json")]) == versions + (table_format == "delta")
    assert read(shop, name)[0] == [1, 2, 4]


def land_all_tables(shop: Shop, number: int, **options: Any) -> None:
    """A row for each table without a definition, of which the rows of definitions are staged."""
    wrong = event(PLACED, number, n2="x") | {"type": "unknown"}
    options = {"deduplicate": timedelta(hours=1), "stage_below": 1000} | options
    shop.land(registry(PLACED), event(PLACED, number), event(PAID, number), wrong, **options)
    shop.land(registry(PLACED), event(PLACED, number) | {"subject": "s"}, **options)
    replay(shop.to, registry(PLACED, PAID), stage_below=1000, runner=HereRunner())


def test_tables_without_a_definition_have_comments(shop: Shop, table_format: str) -> None:
    land_all_tables(shop, 1, table_format=table_format)
    for name in NO_DEFINITION:
        table, columns = comments(shop, name)
        assert None not in columns.values(), columns
        assert table == (OWN_TABLES[name].contents.capitalize() if table_format != "parquet" else None)
    assert comments(shop, "dead_letters")[1]["raw"] == "Record of the message, from which it can be read again"
    land_all_tables(shop, 2)
    for name in NO_DEFINITION:
        assert None not in comments(shop, name)[1].values()


def test_existing_tables_without_a_definition_stay_as_they_are(
    shop: Shop, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        for module in ("run_tables", "task"):
            earlier.setattr(f"wirebook.landing.runs.{module}.own_traits", lambda _: NO_TRAITS)
        land_all_tables(shop, 1, table_format=table_format, runner=HereRunner())
    before = {name: comments(shop, name) for name in NO_DEFINITION}
    assert before["dead_letters"][1]["raw"] is None
    land_all_tables(shop, 2, runner=HereRunner())
    assert {name: comments(shop, name) for name in NO_DEFINITION} == before


def test_table_without_comments_gets_them(shop: Shop, table_format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        module = "spool" if table_format == "parquet" else table_format
        earlier.setattr(f"wirebook.landing.tables.{module}.with_comments", lambda schema, *_: schema)
        shop.land(registry(PAID), event(PAID, 1), table_format=table_format, runner=HereRunner())
    shop.land(described("A payment", n="Its number"), event(PAID, 2))
    assert comments(shop, "shop_orders__paid")[1]["n"] == "Its number"
    assert comments(shop, "shop_orders__paid")[1]["_file" if table_format != "iceberg" else "_source_file"]
    assert read(shop, "shop_orders__paid")[0] == [1, 2]
