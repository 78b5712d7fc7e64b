"""Iceberg tables in catalogues of a team: REST, SQL, Glue and Hive, on files and on S3, with other writers beside
Wirebook."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from socket import create_server
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from extensions import load

from tests.httpapi.postgres import MISSING, is_installed, running_postgresql
from tests.landing.test_table_settings import OTHER, PAID, PLACED, Shop, check_columns_follow, event, registry
from tests.landing.workspace import PROJECT, Workspace
from tests.spark.test_views import read_in_spark
from wirebook.landing.maintenance import UpkeepOptions, maintain
from wirebook.landing.report.show import find_table, first_rows, tables_in
from wirebook.landing.runs.target import Target
from wirebook.landing.tables import iceberg, iceberg_catalog
from wirebook.landing.tables.iceberg import IcebergFormat
from wirebook.landing.tables.iceberg_catalog import OWNER, catalog_of, place_for, place_of, uri_of
from wirebook.landing.tables.names import TablePlace
from wirebook.problems import WirebookError
from wirebook.spark.views import view_statements

pytestmark = pytest.mark.xdist_group("servers")

NUMBERS = count()
SECRET = "never-shown-4711"
OPEN: list[Any] = []
ONE_LEVEL = ("glue", "hive")  # of namespaces
LAKES = ("sql-file", "sql-s3", "rest-file", "rest-s3")
SLOW = pytest.param("hive-file", marks=pytest.mark.faults)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    if not is_installed():
        pytest.skip(MISSING)
    with running_postgresql() as address:
        yield address


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace whose tables are in a namespace of a catalogue, which has a name of its own in each test."""
    kind, _, store = getattr(request, "param", "sql-file").partition("-")
    number = next(NUMBERS)
    prefix = f"PYICEBERG_CATALOG__LAKE{number}__"
    if kind == "sql":
        address = request.getfixturevalue("postgresql")
        monkeypatch.setenv(
            f"{prefix}URI", address.replace("postgresql://tests@", f"postgresql+psycopg://tests:{SECRET}@")
        )
    elif kind == "glue":
        request.getfixturevalue("s3")  # moto has Glue too
        monkeypatch.setenv(f"{prefix}TYPE", "glue")
        monkeypatch.setenv(f"{prefix}GLUE__REGION", os.environ["AWS_REGION"])
    elif kind == "hive":
        monkeypatch.setenv(f"{prefix}URI", request.getfixturevalue("hive"))
        monkeypatch.setenv(f"{prefix}TYPE", "hive")
        monkeypatch.setenv(f"{prefix}HIVE__HIVE2_COMPATIBLE", "true")
    else:
        monkeypatch.setenv(f"{prefix}URI", request.getfixturevalue("rest"))
        monkeypatch.setenv(f"{prefix}TOKEN", SECRET)
    to = f"{request.getfixturevalue('bucket')}/tables" if store == "s3" else None
    workspace = Workspace(tmp_path, to)
    workspace.settings.iceberg_catalog = f"lake{number}"
    workspace.settings.iceberg_namespace = f"n{number}" if kind in ONE_LEVEL else f"shop.n{number}"
    yield workspace
    if iceberg_catalog._connected.cache_info().currsize:
        iceberg_catalog._connected(workspace.settings.iceberg_catalog).close()
    iceberg_catalog._connected.cache_clear()
    while OPEN:
        OPEN.pop().close()


def lines(number: int, table: str = "ab", **members: Any) -> bytes:
    values = ({"protocol": "X", "t": table[i % len(table)], "n": i, **members} for i in range(number))
    return b"".join(msgspec.json.encode(value) + b"\n" for value in values)


def other_catalog(lake: Workspace) -> Any:
    """The catalogue as any other program opens it."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.utils.config import Config

    name = str(lake.settings.iceberg_catalog)
    settings: dict[str, Any] = dict(Config().get_catalog_config(name) or {})
    if not isinstance(lake.to, Path):
        settings |= {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"], "s3.region": os.environ["AWS_REGION"]}
    OPEN.append(load_catalog(name, **settings))
    return OPEN[-1]


def opened(lake: Workspace, table: str) -> Any:
    """A table for another program."""
    return other_catalog(lake).load_table(f"{lake.settings.iceberg_namespace}.{table}")


def rows(lake: Workspace, table: str) -> list[dict[str, Any]]:
    return opened(lake, table).scan().to_arrow().rename_columns({"_source_file": "_file"}).to_pylist()


def check(lake: Workspace, expected: int, tables: tuple[str, ...] = ("a", "b", "dead_letters")) -> None:
    """Every message once, for PyIceberg."""
    places = Counter((row["_file"], row["_line"], row["_index"]) for table in tables for row in rows(lake, table))
    assert set(places.values()) == {1}
    assert places.total() == expected


def later(lake: Workspace) -> dict[str, None]:
    """The settings of a later run: the target remembers its catalogue."""
    return {"iceberg_catalog": None, "iceberg_namespace": None}


# -- landing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lake", [*LAKES, "glue-s3", "hive-file", "hive-s3"], indirect=True)
def test_catalogue_is_named_once(lake: Workspace) -> None:
    lake.write("one", lines(20) + b"bad\n")
    assert lake.land().read == 21
    lake.write("two", lines(4))
    report = lake.land(engine={"unknown": ["b"]}, **later(lake))
    assert (report.read, report.dead_lettered, report.problems) == (4, 2, [])
    assert lake.replay(**later(lake)).landed == 2
    places = Counter((row["_file"], row["_line"]) for table in ("a", "b") for row in rows(lake, table))
    assert (set(places.values()), places.total()) == ({1}, 24)
    summaries = tables_in(lake.to)
    assert {table.name: table.rows for table in summaries} == {"a": 12, "b": 12, "dead_letters": 3, "resolved": 2}
    assert first_rows(find_table(summaries, "a"), 20).num_rows == 12
    assert opened(lake, "a").location() == ("" if "s3://" in str(lake.to) else "file://") + f"{lake.to}/a"
    upkeep = {done.table: (done.compacted, done.expired) for done in maintain(lake.to, UpkeepOptions(retain_hours=0))}
    assert upkeep == {"a": (2, 1), "b": (2, 1), "dead_letters": (2, 1), "resolved": (0, 0)}
    assert [snapshot.summary["operation"].value for snapshot in opened(lake, "a").snapshots()] == ["append", "replace"]
    assert Target(lake.to).format() == "iceberg"
    metadata = opened(lake, "a").metadata_location
    name, namespace = lake.settings.iceberg_catalog, str(lake.settings.iceberg_namespace)
    assert f"iceberg_scan('{metadata}')" in view_statements(str(lake.to), "duckdb", ["a"])[0]
    spark = ".".join(f"`{part}`" for part in (name, *namespace.split("."), "a"))
    assert view_statements(str(lake.to), "spark", ["a"])[0].endswith(f"FROM {spark}")


def test_duckdb_reads_what_landed(lake: Workspace) -> None:
    import duckdb

    lake.write("one", lines(20))
    lake.land()
    (statement,) = view_statements(str(lake.to), "duckdb", ["a"])
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        load(connection, "avro", "iceberg")
        connection.execute(statement)
        assert connection.execute("SELECT count(*), count(DISTINCT _line) FROM a").fetchall() == [(10, 10)]


class TeamShop(Shop):
    """A shop whose tables are in a catalogue of a team."""

    def __init__(self, lake: Workspace) -> None:
        (lake.root / "shop").mkdir()
        super().__init__(lake.root / "shop")
        self.to, self.catalog = str(lake.to), str(lake.settings.iceberg_catalog)
        self.namespace = str(lake.settings.iceberg_namespace)

    def land(self, catalogue: dict[str, Any], *events: dict[str, Any], **options: Any) -> Any:
        place = {"iceberg_catalog": self.catalog, "iceberg_namespace": self.namespace}
        return super().land(catalogue, *events, **place | options)


@pytest.mark.parametrize("lake", LAKES, indirect=True)
def test_levels_of_names_are_namespaces(lake: Workspace) -> None:
    shop, other = TeamShop(lake), other_catalog(lake)
    sales = f"sales_{shop.catalog}"
    names = {PAID: f"{sales}.eu.payments", PLACED: f"{shop.catalog}.{sales}.orders", OTHER: f"{shop.namespace}.others"}
    settings = {"tables": {xid: {"name": name} for xid, name in names.items()}}
    events = [event(PAID, 1), event(PLACED, 2), event(OTHER, 3), {"bad": 1}]
    assert not shop.land(registry(*names), *events, tables=settings).problems
    assert not shop.land(registry(*names), event(PAID, 4), tables=settings, **later(lake)).problems
    assert not shop.land(registry(*names), event(PAID, 5), **later(lake)).problems
    own = {PAID: f"{sales}.eu.payments", PLACED: f"{sales}.orders", OTHER: "others", None: "dead_letters"}
    assert shop.names() == own
    payments = other.load_table(f"{sales}.eu.payments")
    assert sorted(payments.scan().to_arrow()["n"].to_pylist()) == [1, 4, 5]
    assert payments.location().endswith(f"/{sales}/eu/payments")
    assert other.load_table(f"{sales}.orders").scan().to_arrow()["n"].to_pylist() == [2]
    assert other.load_table(f"{shop.namespace}.others").scan().to_arrow()["n"].to_pylist() == [3]
    (statement,) = view_statements(shop.to, "spark", [PAID])
    assert statement.startswith(f"CREATE OR REPLACE TEMPORARY VIEW `{sales}.eu.payments` AS")
    assert statement.endswith(f"FROM `{shop.catalog}`.`{sales}`.`eu`.`payments`")
    assert {done.table for done in maintain(shop.to, UpkeepOptions())} == {*own.values()}


def test_namespace_that_another_program_creates_meanwhile(lake: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.write("1", b"bad\n")
    lake.land()
    catalog, space = catalog_of(lake.to), (f"busy_{lake.settings.iceberg_catalog}",)
    exists = catalog.catalog.namespace_exists
    answers = iter([False])
    other_catalog(lake).create_namespace(space)
    monkeypatch.setattr(
        catalog.catalog, "namespace_exists", lambda level: next(answers, None) is None and exists(level)
    )
    monkeypatch.setattr(catalog.catalog, "create_namespace_if_not_exists", catalog.catalog.create_namespace)
    catalog.create_namespace(space)


def test_table_in_another_catalogue_is_refused(lake: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = TeamShop(lake)
    monkeypatch.setenv("PYICEBERG_CATALOG__MART__URI", "sqlite://")
    with pytest.raises(WirebookError, match="would be in the catalogue 'mart'; those of the target are in") as raised:
        shop.land(registry(PAID), event(PAID, 1), tables={"tables": {PAID: {"name": "mart.payments"}}})
    (problem,) = raised.value.problems
    assert (problem.code, problem.expected, problem.actual) == ("table-settings", shop.catalog, "mart")
    assert f"write '{shop.catalog}.mart.payments' if 'mart' is a namespace" in str(problem.hint)
    in_full = {"tables": {PAID: {"name": f"{shop.catalog}.mart.payments"}}}
    assert not shop.land(registry(PAID), tables=in_full).problems
    assert other_catalog(lake).load_table("mart.payments").scan().to_arrow().num_rows == 1
    assert not shop.land(registry(PAID), event(PAID, 2)).problems  # with the settings that the target keeps
    assert shop.names() == {PAID: "mart.payments"}


def test_rule_that_gives_the_namespace_of_the_target(lake: Workspace) -> None:
    lake.settings.iceberg_namespace = f"shop_orders_{lake.settings.iceberg_catalog}"
    shop = TeamShop(lake)
    settings = {"defaults": {"name": f"{{group}}_{shop.catalog}.{{message}}"}}
    assert not shop.land(registry(PAID), event(PAID, 1), tables=settings).problems
    assert shop.names() == {PAID: "paid"}
    assert opened(lake, "paid").scan().to_arrow().num_rows == 1


@pytest.mark.parametrize("lake", ["sql-s3", "rest-file", "hive-file", "hive-s3"], indirect=True)
def test_table_of_the_team_takes_rows_if_the_settings_name_it(lake: Workspace) -> None:
    shop, other = TeamShop(lake), other_catalog(lake)
    name = f"mart_{shop.catalog}.payments"
    other.create_namespace(name.partition(".")[0])
    rows = pa.table({"n": pa.array([0], pa.int64()), "country": ["SE"]})
    table = other.create_table(name, rows.schema, location=f"{uri_of(lake.to)}/theirs")
    with table.update_spec() as update:
        update.add_identity("country")
    table.append(rows)
    settings = {"tables": {PAID: {"name": name}}}
    assert not shop.land(registry(PAID), event(PAID, 1), tables=settings).problems
    assert not shop.land(registry(PAID), event(PAID, 2)).problems
    found = sorted(
        other.load_table(name).scan().to_arrow().select(["n", "country"]).to_pylist(), key=lambda row: row["n"]
    )
    assert found == [{"n": 0, "country": "SE"}, {"n": 1, "country": None}, {"n": 2, "country": None}]
    assert (find_table(tables_in(shop.to), PAID).rows, other.load_table(name).properties[OWNER]) == (3, place_id(lake))
    second = TeamShop(Workspace(make(lake.root / "second"), str(lake.to) + "2"))
    second.catalog, second.namespace = shop.catalog, f"second_{shop.catalog}"
    (problem,) = second.land(registry(PAID), event(PAID, 3), tables=settings).problems
    assert f"another target writes to it, '{place_id(lake)}'" in problem.message


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder


def place_id(lake: Workspace) -> str:
    place = place_of(lake.to)
    assert place is not None
    return place.target


@pytest.mark.spark
@pytest.mark.parametrize("lake", ["rest-s3"], indirect=True)
def test_spark_reads_without_a_connector(lake: Workspace, one_java: dict[str, str]) -> None:
    shop, name = TeamShop(lake), f"sales_{lake.settings.iceberg_catalog}.payments"
    shop.land(registry(PAID), event(PAID, 1), event(PAID, 2), tables={"tables": {PAID: {"name": name}}}, stage_below=2)
    shop.land(registry(PAID), event(PAID, 3))
    assert read_in_spark(one_java, shop.to, name) == [[[1, 1], [1, 3], [2, 2]]]


# -- other writers ---------------------------------------------------------------------------------------------------


def interrupt(monkeypatch: pytest.MonkeyPatch, action: Callable[[Any], None]) -> list[str]:
    """Run an action between the moment at which a table is read and the commit to it, once for each table; returns the
    names of the tables, one for each attempt to commit."""
    attempts: list[str] = []
    add = iceberg._add

    def interrupted(table: Any, *arguments: Any, **options: Any) -> None:
        attempts.append(table.name()[-1])
        if attempts.count(attempts[-1]) == 1:
            action(table)
        add(table, *arguments, **options)

    monkeypatch.setattr(iceberg, "_add", interrupted)
    return attempts


@pytest.mark.parametrize("lake", ["sql-file", "rest-file", "hive-file"], indirect=True)
def test_commit_of_another_writer_loses_and_doubles_nothing(lake: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.write("1", lines(20))
    lake.land()

    def compact(table: Any) -> None:
        beside = opened(lake, table.name()[-1])
        beside.overwrite(beside.scan().to_arrow())

    attempts = interrupt(monkeypatch, compact)
    lake.write("2", lines(20, pad="2"))
    assert not lake.land().problems
    assert attempts == ["a", "a", "b", "b"]
    check(lake, 40, ("a", "b"))
    summaries = [snapshot.summary for snapshot in opened(lake, "a").snapshots()]
    assert [batch for summary in summaries if (batch := summary["wirebook.batch"])] == ["1", "2"]


def test_batch_that_another_run_adds_meanwhile_is_not_added_again(
    lake: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was overtaken while it stood still, with the same files."""

    def overtake(table: Any) -> None:
        name, target = table.name()[-1], Target(lake.to)
        (manifest,) = target.manifests()
        schema = next(entry.schema for entry in manifest.tables if entry.table == name)
        files = {target.staging(1) / file.path: file for file in manifest.files if file.table == name}
        IcebergFormat().commit(TablePlace(lake.to, name), 1, files, schema)

    attempts = interrupt(monkeypatch, overtake)
    lake.write("1", lines(20))
    assert not lake.land().problems
    assert attempts == ["a", "a", "b", "b"]
    check(lake, 20, ("a", "b"))


@pytest.mark.parametrize("is_done", [True, False])
def test_lost_answer_of_the_catalogue(lake: Workspace, monkeypatch: pytest.MonkeyPatch, is_done: bool) -> None:
    from pyiceberg.exceptions import CommitStateUnknownException

    lake.write("1", lines(20))
    lake.land()
    catalog, lost = catalog_of(lake.to).catalog, []
    commit = catalog.commit_table

    def commit_without_answer(table: Any, *arguments: Any) -> Any:
        result = commit(table, *arguments) if is_done or table.name() in lost else None
        if table.name() not in lost:
            lost.append(table.name())
            raise CommitStateUnknownException("no answer")
        return result

    monkeypatch.setattr(catalog, "commit_table", commit_without_answer)
    lake.write("2", lines(20, pad="2"))
    assert not lake.land().problems
    assert len(lost) == 2
    check(lake, 40, ("a", "b"))


STORM = """
import sys
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException

catalog = load_catalog(sys.argv[1])
table = catalog.load_table(sys.argv[2])
row = table.scan(limit=1).to_arrow()
print(flush=True)
for number in range(6):
    table.append(row.set_column(row.schema.get_field_index("_line"), "_line", [[-1 - number]]))
"""


@pytest.mark.parametrize("lake", ["rest-file", SLOW], indirect=True)
def test_landing_beside_a_busy_writer(lake: Workspace) -> None:
    lake.write("1", lines(20))
    lake.land()
    command = [sys.executable, "-c", STORM, lake.settings.iceberg_catalog, f"{lake.settings.iceberg_namespace}.a"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=PROJECT) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline()
        for name in ("2", "3", "4", "5"):
            lake.write(name, lines(10, "a", pad=name))
        assert not lake.land(batch_bytes=1).problems
    assert writer.returncode == 0
    check(lake, 10 + 40 + 6, ("a",))


@pytest.mark.parametrize("lake", ["rest-s3", "glue-s3", "hive-file"], indirect=True)
def test_kill_loses_and_doubles_nothing(lake: Workspace) -> None:
    expected = lake.write_two_files()
    named = {"iceberg_catalog": lake.settings.iceberg_catalog, "iceberg_namespace": lake.settings.iceberg_namespace}
    lake.die("moved", **named)
    report = lake.land(name="new", batch_bytes=1, **later(lake))
    assert report.read + report.skipped == expected
    check(lake, expected)


# -- upkeep ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lake", ["rest-s3", "sql-s3"], indirect=True)
def test_files_of_a_killed_run_are_deleted_after_the_retention(lake: Workspace) -> None:
    named = {"iceberg_catalog": lake.settings.iceberg_catalog, "iceberg_namespace": lake.settings.iceberg_namespace}
    lake.write("1", lines(20))
    lake.land()
    lake.write("2", lines(20, pad="2"))
    lake.die("staged", **named)
    lake.land(**later(lake))
    young = {done.table: done.deleted for done in maintain(lake.to, UpkeepOptions(1, compacts=False))}
    assert young == {"a": 0, "b": 0}
    dry = {done.table: done.deleted for done in maintain(lake.to, UpkeepOptions(0, compacts=False, dry_run=True))}
    done = {done.table: done.deleted for done in maintain(lake.to, UpkeepOptions(0, compacts=False))}
    assert dry == done == {"a": 2, "b": 2}  # a data file, and the list of manifests of the first snapshot
    check(lake, 40, ("a", "b"))


@pytest.mark.parametrize("lake", ["rest-file", SLOW], indirect=True)
def test_upkeep_beside_a_busy_writer(lake: Workspace) -> None:
    for name in ("1", "2", "3"):
        lake.write(name, lines(10, "a", pad=name))
        lake.land()
    compacted = 0
    command = [sys.executable, "-c", STORM, lake.settings.iceberg_catalog, f"{lake.settings.iceberg_namespace}.a"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=PROJECT) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline()
        while writer.poll() is None:
            (done,) = maintain(lake.to, UpkeepOptions(1), ["a"])
            compacted += done.compacted
    assert writer.returncode == 0
    assert compacted >= 3
    check(lake, 30 + 6, ("a",))


@pytest.mark.parametrize("lake", ["sql-file", "rest-file", "hive-file"], indirect=True)
@pytest.mark.parametrize("replaces", [False, True])
def test_compaction_after_the_commit_of_another_writer(
    lake: Workspace, monkeypatch: pytest.MonkeyPatch, replaces: bool
) -> None:
    """It is tried again, unless the other has replaced the same files."""
    for name in ("1", "2"):
        lake.write(name, lines(10, "a", pad=name))
        lake.land()
    catalog, interrupted = catalog_of(lake.to).catalog, []
    commit = catalog.commit_table

    def commit_later(table: Any, *arguments: Any) -> Any:
        if not interrupted:
            interrupted.append(table.name())
            beside = opened(lake, "a")
            if replaces:
                beside.overwrite(beside.scan().to_arrow())
            else:
                row = beside.scan(limit=1).to_arrow()
                beside.append(row.set_column(row.schema.get_field_index("_line"), "_line", [[-1]]))
        return commit(table, *arguments)

    monkeypatch.setattr(catalog, "commit_table", commit_later)
    (done,) = maintain(lake.to, UpkeepOptions(1), ["a"])
    assert (len(interrupted), done.compacted) == (1, 0 if replaces else 2)
    check(lake, 20 if replaces else 21, ("a",))
    assert len(opened(lake, "a").inspect.files()) == (1 if replaces else 2)


@pytest.mark.parametrize("is_done", [True, False])
def test_lost_answer_to_a_compaction(lake: Workspace, monkeypatch: pytest.MonkeyPatch, is_done: bool) -> None:
    from pyiceberg.exceptions import CommitStateUnknownException

    for name in ("1", "2"):
        lake.write(name, lines(10, "a", pad=name))
        lake.land()
    catalog, lost = catalog_of(lake.to).catalog, []
    commit = catalog.commit_table

    def commit_without_answer(table: Any, *arguments: Any) -> Any:
        result = commit(table, *arguments) if is_done or lost else None
        if not lost:
            lost.append(table.name())
            raise CommitStateUnknownException("no answer")
        return result

    monkeypatch.setattr(catalog, "commit_table", commit_without_answer)
    assert [done.compacted for done in maintain(lake.to, UpkeepOptions(1), ["a"])] == [2]
    check(lake, 20, ("a",))
    assert len(opened(lake, "a").snapshots()) == 3


# -- tables that do not take their rows ------------------------------------------------------------------------------


def test_table_of_something_else_is_left_alone(lake: Workspace) -> None:
    catalog, name = other_catalog(lake), f"{lake.settings.iceberg_namespace}.a"
    catalog.create_namespace_if_not_exists(lake.settings.iceberg_namespace)
    schema = pa.schema([("_line", pa.string()), ("own", pa.string())])
    table = catalog.create_table(name, schema, location=f"file://{lake.root}/elsewhere")
    table.append(pa.Table.from_pylist([{"own": "row"}], schema))
    lake.write("1", lines(20))
    (problem,) = lake.land().problems
    assert problem.code == "table-set-aside"
    assert "it was not made by Wirebook" in problem.message
    assert str(lake.root / "elsewhere") not in str(problem)
    assert (len(rows_of(table)), len(rows(lake, "b"))) == (1, 10)
    # Adopted, but a column has another type.
    owner = place_of(lake.to)
    assert owner is not None
    table.refresh().transaction().set_properties({OWNER: owner.target}).commit_transaction()
    (problem,) = lake.land(**later(lake)).problems
    assert "_line" in problem.message
    with table.refresh().update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("_line")
    report = lake.land(**later(lake))
    assert (report.problems, report.recovered) == ([], {"a": 10})
    assert len(rows_of(table.refresh())) == 11
    assert {summary.name: summary.rows for summary in tables_in(lake.to)} == {"a": 11, "b": 10}


def rows_of(table: Any) -> list[dict[str, Any]]:
    return table.scan().to_arrow().to_pylist()


def test_forbidden_table_does_not_block_the_others(lake: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyiceberg.exceptions import ForbiddenError

    lake.write("1", lines(20))
    lake.land()
    catalog = catalog_of(lake.to).catalog
    commit = catalog.commit_table

    def forbid(table: Any, *arguments: Any) -> Any:
        if table.name()[-1] == "a":
            raise ForbiddenError("ForbiddenException: not authorised to write")
        return commit(table, *arguments)

    lake.write("2", lines(20, pad="2"))
    with monkeypatch.context() as patch:
        patch.setattr(catalog, "commit_table", forbid)
        (problem,) = lake.land().problems
    assert (problem.code, problem.file) == ("table-set-aside", str(lake.to / "a"))
    assert "not authorised to write" in problem.message
    assert (len(rows(lake, "a")), len(rows(lake, "b"))) == (10, 20)
    assert lake.land().recovered == {"a": 10}
    check(lake, 40, ("a", "b"))


@pytest.mark.parametrize("lake", ["sql-s3", "rest-s3"], indirect=True)
def test_columns_follow_the_catalogue(lake: Workspace) -> None:
    shop = Shop(make(lake.root / "shop"))
    shop.to, settings = lake.to, lake.settings
    names = {"iceberg_catalog": settings.iceberg_catalog, "iceberg_namespace": settings.iceberg_namespace}

    def landed() -> pa.Table:
        return opened(lake, "shop_orders__paid").scan().to_arrow()

    check_columns_follow(shop, landed, table_format="iceberg", **names)


@pytest.mark.parametrize("lake", ["rest-s3"], indirect=True)
def test_partitions_are_kept(lake: Workspace) -> None:
    lake.write("1", lines(20))
    lake.land()
    with opened(lake, "a").update_spec() as update:
        update.add_identity("_line")
    lake.write("2", lines(20, pad="2"))
    assert not lake.land().problems
    check(lake, 40, ("a", "b"))
    assert len({task.file.partition for task in opened(lake, "a").scan().plan_files()}) == 11


def test_namespace_of_another_target_is_refused(lake: Workspace, tmp_path: Path) -> None:
    lake.write("1", b"bad\n")
    lake.land()
    (tmp_path / "other").mkdir()
    other = Workspace(tmp_path / "other")
    other.write("1", b"bad\n")
    named = {"iceberg_catalog": lake.settings.iceberg_catalog, "iceberg_namespace": lake.settings.iceberg_namespace}
    with pytest.raises(WirebookError, match=r"iceberg-catalog-differs: .* has the table 'dead_letters' of something"):
        other.land(**named)
    assert place_of(other.to) is None
    assert not list((other.to / "_wirebook").glob("batches/*"))


def test_target_that_this_process_deleted_is_forgotten(lake: Workspace, tmp_path: Path) -> None:
    lake.write("1", lines(20))
    lake.land()
    shutil.rmtree(lake.to)
    problems = lake.land().problems  # not one batch that the tables seem to have
    assert [problem.code for problem in problems] == ["table-set-aside", "table-set-aside"]
    embedded = Workspace(tmp_path, str(tmp_path / "embedded"))
    for _ in range(2):
        shutil.rmtree(embedded.to, ignore_errors=True)
        embedded.land(table_format="iceberg")
        with closing(sqlite3.connect(embedded.to / "_wirebook" / "iceberg.db")) as database:
            found = database.execute("SELECT table_name FROM iceberg_tables ORDER BY 1").fetchall()
        assert found == [("a",), ("b",)]


# -- settings --------------------------------------------------------------------------------------------------------


def test_contradiction_is_an_error(lake: Workspace, workspace: Workspace, tmp_path: Path) -> None:
    lake.write("1", lines(2))
    lake.land()
    for changes, what in (
        ({"iceberg_catalog": "other"}, f"the catalogue '{lake.settings.iceberg_catalog}', not in 'other'"),
        ({"iceberg_namespace": "other"}, f"the namespace '{lake.settings.iceberg_namespace}', not in 'other'"),
    ):
        with pytest.raises(WirebookError, match=f"iceberg-catalog-differs: .*{what}"):
            lake.land(**later(lake) | changes)
    with pytest.raises(WirebookError, match="format-differs"):
        lake.land(**later(lake), table_format="delta")
    for settings, code in (
        ({"table_format": "delta", "iceberg_catalog": "x"}, "bad-setting"),
        ({"table_format": "iceberg", "iceberg_namespace": "x"}, "bad-setting"),
        ({"iceberg_catalog": "x", "iceberg_namespace": "a..b"}, "bad-setting"),
        (
            {"iceberg_catalog": "nowhere"},
            "iceberg-catalog-failed: PyIceberg's configuration has no catalogue 'nowhere'",
        ),
    ):
        with pytest.raises(WirebookError, match=code):
            Workspace(tmp_path, str(tmp_path / "new")).land(**settings)
    embedded = Workspace(tmp_path, str(tmp_path / "embedded"))
    embedded.land(table_format="iceberg")
    with pytest.raises(WirebookError, match=r"iceberg-catalog-differs: .* in the catalogue of its folder"):
        embedded.land(iceberg_catalog=lake.settings.iceberg_catalog)


def test_scheme_that_pyiceberg_does_not_know_is_refused(workspace: Workspace) -> None:
    lake = Workspace(workspace.root, "az://container/tables")
    with pytest.raises(WirebookError, match="unsupported-store: PyIceberg does not know"):
        place_for(lake.to, "lake", None, has_tables=False)


def test_no_secret_of_the_configuration_is_in_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also one within a setting, of a header, and of the environment."""
    (tmp_path / ".pyiceberg.yaml").write_text(
        "catalog:\n  deep:\n    uri: x\n    auth:\n      basic:\n        password: first-4711\n"
        "    header.X-Api: second-4711\n"
    )
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "third-4711")
    text = "refused first-4711, second-4711 and third-4711 of http://name:fourth-4711@host/x"
    shown = iceberg_catalog.reason_of("deep", ValueError(text))
    assert shown == "ValueError: refused ..., ... and ... of http://host/x"


def test_catalogue_that_does_not_answer_is_one_error(lake: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    name = str(lake.settings.iceberg_catalog)
    lake.write("1", lines(2))
    for address in (
        f"postgresql+psycopg://user:{SECRET}@127.0.0.1:1/lake",
        f"http://user:{SECRET}@127.0.0.1:1",
        f"strange://user:{SECRET}@127.0.0.1:1",
    ):
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{name.upper()}__URI", address)
        with pytest.raises(WirebookError, match=f"iceberg-catalog-failed: the Iceberg catalogue '{name}'") as error:
            lake.land()
        assert SECRET not in str(error.value)
    assert not list((lake.to / "_wirebook").glob("*/*"))


def test_catalogue_that_is_silent_is_not_awaited_for_ever(lake: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/v1/config"):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'{"defaults":{},"overrides":{}}')
            else:
                released.wait()

        do_HEAD = do_GET

        def log_message(self, *arguments: Any) -> None:
            pass

    released = threading.Event()
    monkeypatch.setattr(iceberg_catalog, "ANSWER_SECONDS", 0.2)
    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        threading.Thread(target=server.serve_forever).start()
        monkeypatch.setenv(variable_of(lake, "URI"), f"http://127.0.0.1:{server.server_port}")
        lake.write("1", lines(2))
        with pytest.raises(WirebookError, match=r"iceberg-catalog-failed: .*Timeout"):
            lake.land()
        released.set()
        server.shutdown()


def variable_of(lake: Workspace, name: str) -> str:
    """The environment variable of a property of the catalogue."""
    return f"PYICEBERG_CATALOG__{str(lake.settings.iceberg_catalog).upper()}__{name}"


@pytest.mark.parametrize("lake", ["hive-file"], indirect=True)
def test_metastore_that_is_silent_is_not_awaited_for_ever(lake: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iceberg_catalog, "ANSWER_SECONDS", 0.2)
    with create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv(variable_of(lake, "URI"), f"thrift://127.0.0.1:{server.getsockname()[1]}")
        lake.write("1", lines(2))
        with pytest.raises(WirebookError, match=r"iceberg-catalog-failed: .*read timeout"):
            lake.land()


@pytest.mark.parametrize("lake", ["hive-file"], indirect=True)
def test_table_that_a_killed_process_has_locked_takes_its_rows_later(
    lake: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hive_metastore.ttypes import UnlockRequest

    monkeypatch.setenv(variable_of(lake, "LOCK_CHECK_MAX_WAIT_TIME"), "0.2")
    lake.write("1", lines(20))
    lake.land()
    monkeypatch.setattr(iceberg, "PAUSES", (0.1, 0.1))
    other = other_catalog(lake)
    with other._client as client:
        lock = client.lock(other._create_lock_request(lake.settings.iceberg_namespace, "a"))
    lake.write("2", lines(20, pad="2"))
    (problem,) = lake.land().problems
    assert problem.code == "table-set-aside"
    assert "Failed to acquire lock" in problem.message
    with other._client as client:
        client.unlock(UnlockRequest(lockid=lock.lockid))
    assert lake.land().recovered == {"a": 10}
    check(lake, 40, ("a", "b"))


@pytest.mark.parametrize("lake", ["hive-file"], indirect=True)
def test_namespace_with_levels_in_a_metastore_is_an_error(lake: Workspace) -> None:
    lake.settings.iceberg_namespace = "shop.eu"
    lake.write("1", lines(2))
    with pytest.raises(WirebookError, match=r"iceberg-catalog-failed: .*hierarchical namespaces are not supported"):
        lake.land()


def test_outage_while_a_batch_enters_its_tables(lake: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy.exc import OperationalError

    lake.write("1", lines(20))
    lake.land()
    lake.write("2", lines(20, pad="2"))

    def fail(*arguments: Any) -> None:
        raise OperationalError("UPDATE iceberg_tables", {}, Exception(f"connection lost: postgresql://u:{SECRET}@h"))

    with monkeypatch.context() as patch:
        patch.setattr(catalog_of(lake.to).catalog, "commit_table", fail)
        with pytest.raises(WirebookError, match="iceberg-catalog-failed") as error:
            lake.land()
    assert SECRET not in str(error.value)
    assert lake.land().recovered == {"a": 10, "b": 10}
    check(lake, 40, ("a", "b"))


def test_dry_run_changes_nothing(lake: Workspace) -> None:
    lake.write("1", lines(20))
    assert lake.land(dry_run=True).landed == 20
    assert not lake.to.exists()
    assert not other_catalog(lake).namespace_exists(lake.settings.iceberg_namespace)


def test_no_secret_is_stored(lake: Workspace) -> None:
    lake.write("1", lines(20))
    lake.land()
    for path in lake.to.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()
