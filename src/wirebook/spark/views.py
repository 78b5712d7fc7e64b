"""Views of the tables in a target folder. A view has all rows of a table: those in its own files, and staged ones.

`view_statements` returns statements for Spark SQL and DuckDB, and `table` a Spark DataFrame of one table.

Spec: docs/staging.md#views; docs/decisions/0075
"""

# ruff: noqa: S608 (names and paths are quoted; the statements are printed, or run by the caller)

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from wirebook.landing.report.show import TableSummary, find_table, tables_in
from wirebook.landing.runs.target import Target
from wirebook.landing.stores.locations import Location, location_of, parquet_source
from wirebook.landing.stores.objects import ObjectPath
from wirebook.landing.tables.evolution import conform
from wirebook.landing.tables.iceberg import full_name, newest_metadata
from wirebook.landing.tables.layout import STAGED
from wirebook.landing.tables.names import TablePlace
from wirebook.landing.tables.partitions import DayPartition
from wirebook.landing.tables.sqltypes import (
    duck_members,
    duck_name,
    duck_text,
    duck_value,
    spark_ddl,
    spark_members,
    spark_name,
    spark_text,
)
from wirebook.landing.tables.staged import own_columns
from wirebook.problems import Problem, WirebookError
from wirebook.spark.hadoop import hadoop_url

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["table", "view_statements", "view_statements_and_problems"]

ROW: Final = "_row"
MAX_TASKS: Final = 200
"""The maximum number of tasks that read the files of a table in an object store."""


class Views:
    """Creates the statements for one target."""

    def __init__(self, root: Location) -> None:
        self.tables = {field.name: field for field in tables_in(root, with_staging=True)}
        self._format = Target(root).format() or "parquet"
        self._root = root.absolute()

    @property
    def _staged(self) -> pa.Schema:
        schema = self.tables[STAGED].schema
        assert schema is not None
        return schema

    def in_spark(self, table: TableSummary) -> Iterator[str]:
        """Yield statements for temporary views, because a session may have no catalog that stores views."""
        schema = _schema_of(table)
        day = table.day if self._format != "iceberg" else None
        partition = [] if day is None else [pa.field(day.column, pa.date32())]
        names = ", ".join(spark_name(name) for name in (*schema.names, *(field.name for field in partition)))
        parts = []
        if table.files:
            place = TablePlace(self._root, table.name)
            if self._format == "delta":
                source = "delta.`{}`".format(hadoop_url(place.folder).replace("`", "``"))
            elif self._format == "iceberg":
                source = ".".join(map(spark_name, full_name(place)))
            else:
                source = spark_name(f"_files_of_{table.name}")
                path = spark_text(_escaped(place.folder))
                columns = spark_ddl([*schema, *partition])
                yield f"{_temporary(source)} ({columns}) USING parquet OPTIONS (path {path})"
            parts.append(f"SELECT {names} FROM {source}")
        if table.staged:
            parts.append(self._spark_staged(table.name, schema, day))
        yield f"{_temporary(spark_name(table.name))} AS\n" + "\nUNION ALL\n".join(parts)

    def _spark_staged(self, name: str, schema: pa.Schema, day: DayPartition | None) -> str:
        own = {field.name for field in own_columns(schema, self._staged)}
        columns = ", ".join((f"{ROW}." if field in own else "") + spark_name(field) for field in schema.names)
        if day:
            columns += f", to_date(to_utc_timestamp({spark_name(day.source)}, current_timezone())) AS {day.column}"
        members = spark_members(own_columns(schema, self._staged), "`row`") if own else "NULL"
        chosen = f"SELECT *, {members} AS {ROW} FROM `{STAGED}` WHERE `table` = {spark_text(name)}"
        return f"SELECT {columns} FROM ({chosen})"

    def in_duckdb(self, table: TableSummary) -> Iterator[str]:
        """Yield statements for views of a DuckDB database, in a schema if the name of the table has levels."""
        schema = _schema_of(table)
        levels, _, name = table.name.rpartition(".")
        parts = []
        if levels:
            yield f"CREATE SCHEMA IF NOT EXISTS {duck_name(levels)}"
        if table.staged:
            parts.append(self._duck_staged(table.name, schema, table.day if self._format != "iceberg" else None))
        if table.files:
            # A row without a time is in the partition __HIVE_DEFAULT_PARTITION__.
            day = table.day if self._format == "parquet" else None
            columns = f"* REPLACE (TRY_CAST({day.column} AS DATE) AS {day.column})" if day else "*"
            parts.append(f"SELECT {columns} FROM {self._duck_source(table.name, day)}")
        view = f"{duck_name(levels)}.{duck_name(name)}" if levels else duck_name(name)
        yield f"CREATE OR REPLACE VIEW {view} AS\n" + "\nUNION ALL BY NAME\n".join(parts)

    def _duck_source(self, name: str, day: DayPartition | None) -> str:
        place = TablePlace(self._root, name)
        if self._format == "delta":
            return f"delta_scan({duck_text(str(place.folder))})"
        if self._format == "iceberg":
            return f"iceberg_scan({duck_text(newest_metadata(place))})"
        hive = f"true, hive_types = {{{day.column}: VARCHAR}}" if day else "false"
        files = duck_text(f"{place.folder}/{'*/' if day else ''}*.parquet")
        return f"read_parquet({files}, union_by_name = true, hive_partitioning = {hive})"

    def _duck_staged(self, name: str, schema: pa.Schema, day: DayPartition | None) -> str:
        own = {field.name for field in own_columns(schema, self._staged)}
        columns = ", ".join(
            f"{duck_value(f'{ROW}.{duck_name(field.name)}', field.type)} AS {duck_name(field.name)}"
            if field.name in own
            else duck_name(field.name)
            for field in schema
        )
        if day:
            columns += f", ({duck_name(day.source)} AT TIME ZONE 'UTC')::DATE AS {day.column}"
        members = duck_members(own_columns(schema, self._staged), '"row"::JSON') if own else "NULL"
        chosen = f'SELECT *, {members} AS {ROW} FROM {STAGED} WHERE "table" = {duck_text(name)}'
        return f"SELECT {columns} FROM ({chosen})"


def view_statements(folder: str | PathLike[str], dialect: str, tables: Collection[str] = ()) -> list[str]:
    """Return `CREATE VIEW` statements for some or all tables, without semicolons, in the order in which they must run.

        for statement in view_statements("tables/", "spark"):
            spark.sql(statement)

    `dialect` is ``duckdb`` or ``spark``. Paths are absolute, and URLs have the form that the dialect expects. DuckDB
    views of Iceberg tables show the current snapshot.

    Raises: WirebookError (no-target, missing-extra, unknown-table, unreadable-table)
    """
    statements, problems = view_statements_and_problems(folder, dialect, tables)
    if problems:
        raise WirebookError(*problems)
    return statements


def view_statements_and_problems(
    folder: str | PathLike[str], dialect: str, tables: Collection[str] = ()
) -> tuple[list[str], list[Problem]]:
    """Return the statements as `view_statements` does, for all readable tables, and the problems of the others.

    Raises: WirebookError (no-target, missing-extra, unknown-table)
    """
    views = Views(location_of(folder))
    selected = [find_table(views.tables.values(), name) for name in tables] or [
        field for field in views.tables.values() if field.name != STAGED
    ]
    staging = views.tables.get(STAGED)
    if staging and (staging.problem or any(field.staged for field in selected)):
        selected.insert(0, staging)
    make = views.in_spark if dialect == "spark" else views.in_duckdb
    statements: dict[str, None] = {}
    problems: list[Problem] = []
    for summary in selected:
        try:
            summary.check()
            statements |= dict.fromkeys(make(summary))
        except WirebookError as error:
            problems += [problem for problem in error.problems if problem not in problems]
    return list(statements), problems


def table(spark: SparkSession, folder: str | PathLike[str], name: str) -> DataFrame:
    """Return a table of a target folder with all of its current rows: those in its own files, and staged ones.

        rides = table(spark, "tables/", "rides__started")
        table(spark, "tables/", "dead_letters").createOrReplaceTempView("dead_letters")

    `name` is the name of the table, or the XID of its definition. The files of every table format are read as Parquet,
    so that no connector is needed. Files in an object store are read completely by the Python workers, with the
    credentials in their environment.

    Raises: WirebookError (no-target, missing-extra, unknown-table, unreadable-table)
    """
    tables = {field.name: field for field in tables_in(location_of(folder), with_staging=True)}
    summary = find_table(tables.values(), name)
    summary.check()
    schema = _schema_of(summary)
    frames = [_read(spark, summary.files, schema)] if summary.files else []
    if summary.staged:
        staged = _schema_of(tables[STAGED])
        frames.append(_unstaged(_read(spark, summary.staged_files, staged), summary.name, schema, staged))
    return frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])


def _read(spark: SparkSession, files: Collection[Location], schema: pa.Schema) -> DataFrame:
    if any(isinstance(file, ObjectPath) for file in files):
        tasks = min(len(files), MAX_TASKS)
        numbers = spark.range(0, len(files), 1, tasks)
        return numbers.mapInArrow(partial(_read_objects, tuple(files), schema), spark_ddl(schema))
    return spark.read.schema(spark_ddl(schema)).parquet(*(_escaped(file.absolute()) for file in files))


def _read_objects(
    files: tuple[Location, ...], schema: pa.Schema, numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the files whose indexes are in `numbers`, in a Python worker."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            with pq.ParquetFile(parquet_source(files[number])) as parquet:
                for rows in parquet.iter_batches():
                    table = pa.Table.from_batches([rows]).replace_schema_metadata()
                    yield from conform(table, schema).to_batches()


def _unstaged(staged: DataFrame, name: str, schema: pa.Schema, columns: pa.Schema) -> DataFrame:
    own = own_columns(schema, columns)
    names = {field.name for field in own}
    chosen = staged.where(f"`table` = {spark_text(name)}")
    if own:
        chosen = chosen.selectExpr("*", f"{spark_members(own, '`row`')} AS {ROW}")
    picked = ((f"{ROW}." if field in names else "") + spark_name(field) for field in schema.names)
    return chosen.selectExpr(*(f"{field}" for field in picked))


def _schema_of(table: TableSummary) -> pa.Schema:
    """Raises: broken-target"""
    if table.schema is None:
        message = f"the table '{table.name}' is missing in _wirebook/tables.json"
        raise WirebookError(Problem(code="broken-target", message=message))
    return table.schema


def _temporary(name: str) -> str:
    return f"CREATE OR REPLACE TEMPORARY VIEW {name}"


def _escaped(path: Location) -> str:
    """Escape the characters of a path that Spark would interpret as a glob pattern."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path))
