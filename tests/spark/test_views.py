"""Views of a target folder show staged rows together with the rows of files, in DuckDB and in Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import feather

from tests.landing.standin.everything import edges
from tests.landing.standin.extensions import load
from tests.landing.test_table_settings import PAID, PLACED, Shop, event, registry
from wirebook.landing.chunks import Chunk, Landed, TableInfo
from wirebook.landing.report.show import find_table, first_rows, tables_in
from wirebook.landing.tables.all_formats import FORMATS
from wirebook.problems import WirebookError
from wirebook.spark.views import view_statements

XID = "/messagegroups/g/messages/{}"


def shown(workspace: Any) -> dict[str, tuple[int, int]]:
    """Rows and staged rows of each table."""
    return {table.name: (table.rows, table.staged) for table in tables_in(workspace.to, with_staging=True)}


class Edges:
    """An engine that makes the same rows of every chunk: all types, for two tables."""

    def land(self, chunk: Chunk, *, may_defer: bool = False) -> Landed:
        lines_ = pa.array([1, 2, 3], pa.int64())
        place = {"_file": [chunk.file] * 3, "_line": lines_, "_index": pa.array([0] * 3, pa.int32())}
        rows = edges(pa.table(place))
        none = pa.table({"_file": pa.array([], pa.string()), "outcome": pa.array([], pa.string())})
        names = ("rare", "often") if chunk.file == "1" else ("often",)
        return Landed(
            tables=dict.fromkeys(names, rows),
            dead_letters=none,
            read=3 * len(names),
            outcomes={"matched": 3 * len(names)},
            info={name: TableInfo(XID.format(name)) for name in names},
        )


def land_edges(workspace: Any) -> None:
    """`rare` has staged rows, `often` staged rows and files."""
    workspace.settings.factory = lambda catalogue, options: Edges()
    workspace.settings.stage_below = 3 + 1
    for path in workspace.source.iterdir():
        path.unlink()
    for name in ("1", "2", "3"):
        workspace.write(name, name.encode() + b"\n")
        workspace.land()
    assert shown(workspace) == {"often": (9, 6), "rare": (3, 3), "staged": (9, 0)}


@pytest.mark.parametrize("table_format", list(FORMATS))
def test_duckdb_views_show_staged_and_file_rows(workspace: Any, table_format: str) -> None:
    workspace.settings.table_format = table_format
    land_edges(workspace)
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    load(connection, *{"delta": ["delta"], "iceberg": ["avro", "iceberg"]}.get(table_format, []))
    connection.execute("SET TimeZone = 'America/New_York'")
    for statement in view_statements(workspace.to, "duckdb"):
        connection.execute(statement)
    for name, files in (("rare", "1"), ("often", "123")):
        found = connection.execute(f"SELECT * FROM {name}").fetch_arrow_table()
        table = find_table(tables_in(workspace.to), name)
        if table_format == "delta":  # its partition is a column
            days = found["ce_time"].cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
            assert found["event_day"].equals(days)
            found = found.drop_columns(["event_day"])
        assert_same(found, first_rows(table, 100), FORMATS[table_format].column("_file"))
        assert len(found) == 3 * len(files)


def assert_same(found: pa.Table, rows: pa.Table, file_column: str) -> None:
    """The same columns and values in any order; a reader may spell a type otherwise (another time zone, say)."""
    keys = [(file_column, "ascending"), ("_line", "ascending")]
    assert found.column_names == rows.column_names
    found, rows = found.sort_by(keys), rows.sort_by(keys)
    for name in rows.column_names:
        left, right = found[name].combine_chunks(), rows[name].combine_chunks()
        assert repr(left.cast(right.type).to_pylist()) == repr(right.to_pylist())


SPARK = """
import sys
from pathlib import Path
import pyarrow.feather as feather
from wirebook.spark.session import session
from wirebook.spark.views import table, view_statements

spark = session()
for target in sorted(Path(sys.argv[1]).glob("*[[]*")):
    for name in ("rare", "often"):
        feather.write_feather(table(spark, target, name).toArrow(), target / "_wirebook" / f"{name}.table")
    assert table(spark, target, "/messagegroups/g/messages/rare").count() == 3
    if target.name.startswith("parquet"):
        for statement in view_statements(target, "spark"):
            spark.sql(statement)
        for name in ("rare", "often"):
            feather.write_feather(spark.table(name).toArrow(), target / "_wirebook" / f"{name}.view")
"""


@pytest.mark.spark
def test_spark_views_show_staged_and_file_rows(workspace: Any, tmp_path: Path, one_java: dict[str, str]) -> None:
    """By the function, which needs no connector; by the views of Parquet, too."""
    targets = {table_format: tmp_path / f"{table_format} [a] 'target' {{is}}" for table_format in FORMATS}
    for table_format, target in targets.items():
        workspace.settings.table_format, workspace.to = table_format, target
        land_edges(workspace)
    command = [sys.executable, "-c", SPARK, str(tmp_path)]
    subprocess.run(command, env=os.environ | one_java, check=True, capture_output=True)
    for table_format, target in targets.items():
        for name in ("rare", "often"):
            rows = first_rows(find_table(tables_in(target), name), 100)
            for kind in ("table", "view") if table_format == "parquet" else ("table",):
                found = feather.read_table(target / "_wirebook" / f"{name}.{kind}")
                assert_same(found, rows, FORMATS[table_format].column("_file"))


READ = """
import json, os, sys
from pyspark.sql import SparkSession
from wirebook.spark.views import table, view_statements

builder = SparkSession.builder
for name, value in os.environ.items():
    if name.startswith("AWS_"):
        builder = builder.config(f"spark.executorEnv.{name}", value)
spark = builder.getOrCreate()
target, *tables = sys.argv[1:]
for name in tables:
    rows = table(spark, target, name).select("_line", "n").orderBy("_line").collect()
    print("found", json.dumps([list(row) for row in rows]))
if "://" not in target:
    for statement in view_statements(target, "spark"):
        spark.sql(statement)
    for name in tables:
        rows = spark.sql(f"SELECT _line, n FROM `{name}` ORDER BY 1").collect()
        print("found", json.dumps([list(row) for row in rows]))
"""


def read_in_spark(java: dict[str, str], target: str, *tables: str) -> list[Any]:
    """Line and number of the rows of tables, by the function, and by the views if the target is a folder."""
    command = [sys.executable, "-c", READ, target, *tables]
    done = subprocess.run(command, env=os.environ | java, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line[6:]) for line in done.stdout.splitlines() if line.startswith("found ")]


@pytest.mark.spark
def test_spark_reads_tables_in_an_object_store(tmp_path: Path, bucket: str, one_java: dict[str, str]) -> None:
    """Rows of files and staged ones, without a connector."""
    shop, catalogue = Shop(tmp_path), registry(PLACED, PAID)
    shop.to = f"{bucket}/lake"
    tables = {"tables": {PAID: {"name": "sales.payments"}}}
    for first in (1, 3):
        events = [event(PAID, first), event(PAID, first + 1), event(PLACED, first + 9)]
        shop.land(catalogue, *events, tables=tables, stage_below=2)
    assert {table.name: table.staged for table in tables_in(shop.to)} == {"sales.payments": 0, "shop_orders_placed": 2}
    found = read_in_spark(one_java, shop.to, "sales.payments", PLACED)
    assert found == [[[1, 1], [1, 3], [2, 2], [2, 4]], [[3, 10], [3, 12]]]


@pytest.mark.spark
def test_spark_views_of_names_with_levels(tmp_path: Path, one_java: dict[str, str]) -> None:
    shop, tables = Shop(tmp_path), {"tables": {PAID: {"name": "sales.eu.payments"}}}
    shop.land(registry(PAID), event(PAID, 7), tables=tables)
    assert read_in_spark(one_java, str(shop.to), "sales.eu.payments") == [[[1, 7]], [[1, 7]]]


def test_statements_for_an_object_store_have_the_urls_of_their_dialect(tmp_path: Path, bucket: str) -> None:
    shop = Shop(tmp_path)
    shop.to = f"{bucket}/lake"
    shop.land(registry(PAID), event(PAID, 7))
    folder = f"{bucket.removeprefix('s3')}/lake/shop_orders__paid"
    assert f"delta_scan('s3{folder}')" in view_statements(shop.to, "duckdb")[0]
    assert f"FROM delta.`s3a{folder}`" in view_statements(shop.to, "spark")[0]


@pytest.mark.xdist_group("servers")
@pytest.mark.parametrize("provider", ["credential_chain", "config, KEY_ID 'tests', SECRET 'never-shown'"])
def test_duckdb_reads_tables_in_an_object_store(tmp_path: Path, s3: str, bucket: str, provider: str) -> None:
    shop = Shop(tmp_path)
    shop.to = f"{bucket}/lake"
    shop.land(registry(PAID), event(PAID, 7), event(PAID, 8))
    (statement,) = view_statements(shop.to, "duckdb")
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        load(connection, "httpfs", "aws", "delta")
        place = f"REGION 'us-east-1', ENDPOINT '{s3.removeprefix('http://')}', URL_STYLE path, USE_SSL false"
        connection.execute(f"CREATE SECRET (TYPE s3, PROVIDER {provider}, {place})")
        connection.execute(statement)
        assert connection.execute("SELECT n FROM shop_orders__paid ORDER BY n").fetchall() == [(7,), (8,)]


def test_unknown_table_is_reported(workspace: Any) -> None:
    land_edges(workspace)
    with pytest.raises(WirebookError, match="unknown-table"):
        view_statements(workspace.to, "spark", ["offen"])
