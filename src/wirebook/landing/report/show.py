"""Lists the tables of a target and reads their rows, without Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from wirebook.landing.runs.manifests import TableEntry
from wirebook.landing.runs.target import Target
from wirebook.landing.stores.locations import AnyPath, Location, location_of, parquet_source
from wirebook.landing.tables.all_formats import FORMATS
from wirebook.landing.tables.evolution import conform
from wirebook.landing.tables.formats import CommitFailed, TableFormat, unreadable_table
from wirebook.landing.tables.layout import NO_DEFINITION, STAGED
from wirebook.landing.tables.names import TablePlace
from wirebook.landing.tables.partitions import DayPartition
from wirebook.landing.tables.staged import read_staged, rows_by_table
from wirebook.problems import Problem, WirebookError

__all__ = ["TableSummary", "find_table", "first_rows", "in_order", "pieces_of", "tables_in"]


@dataclass(frozen=True)
class TableSummary:
    """One table.

    Shape: `definition` is None for the tables in `NO_DEFINITION`. `schema` is None if the files define it; older files
    may lack columns. `day` is the partition. `staged` is the number of its rows in `staged_files`, the files of the
    staging table. `problem` is set if the list of its files, or its staged rows, cannot be read.
    """

    name: str
    definition: str | None
    files: tuple[Location, ...]
    schema: pa.Schema | None = None
    staged: int = 0
    day: DayPartition | None = None
    staged_files: tuple[Location, ...] = ()
    problem: Problem | None = None

    @cached_property
    def rows(self) -> int:
        """The number of rows.

        Cost: reads the footer of every file.
        Raises: unreadable-table
        """
        self.check()
        with self.reading():
            counts: Iterator[int] = (pq.read_metadata(parquet_source(file)).num_rows for file in self.files)
            return sum(counts) + self.staged

    def check_rows(self) -> None:
        """Check that the footers can be read (see `rows`). Raises: unreadable-table"""
        _ = self.rows

    def check(self) -> None:
        """Raises: unreadable-table"""
        if self.problem is not None:
            raise WirebookError(self.problem)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Convert the exceptions of reading the files. Raises: unreadable-table"""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise WirebookError(unreadable_table(self.name, error)) from error


def tables_in(folder: AnyPath, *, with_staging: bool = False) -> list[TableSummary]:
    """The tables of a target folder by name, those without a definition last.

    Staged rows count for their tables. The staging table itself is included only with `with_staging`, or if it cannot
    be read. A table that cannot be read has a `problem`. Tables without files are left out.

    Cost: lists the files of every table, and reads one column of the staging table.
    Raises: no-target, missing-extra
    """
    root = location_of(folder)
    target = Target(root)
    target.check_exists()
    known = target.tables()
    table_format = FORMATS[target.format() or "parquet"]
    table_format.check(root)
    staging = _summary(TablePlace(root, STAGED), known.get(STAGED), table_format)
    try:
        with staging.reading():
            staged = rows_by_table(staging.files)
    except WirebookError as error:
        staging, staged = replace(staging, problem=error.problems[0]), {}
    others = [
        _summary(TablePlace(root, name), known.get(name), table_format, staged.get(name, 0), staging.files)
        for name in in_order((known.keys() | staged.keys()) - {STAGED})
    ]
    if staging.problem:
        incomplete = target.history().staged
        others = [replace(table, problem=staging.problem) if table.name in incomplete else table for table in others]
    tables = [*others, *([staging] if with_staging or staging.problem else [])]
    return [table for table in tables if table.files or table.staged or table.problem]


def in_order(names: Collection[str]) -> list[str]:
    """The names of tables, sorted; those without a definition are last."""
    last = {name: number for number, name in enumerate(NO_DEFINITION, 1)}
    return sorted(names, key=lambda name: (last.get(name, 0), name))


def _summary(
    place: TablePlace,
    entry: TableEntry | None,
    table_format: TableFormat,
    staged: int = 0,
    staged_files: tuple[Location, ...] = (),
) -> TableSummary:
    files: tuple[Location, ...] = ()
    problem = None
    try:
        files = tuple(table_format.files(place))
    except (CommitFailed, OSError) as error:
        mend = table_format.how_to_mend(place.name, str(error))
        problem = unreadable_table(place.name, error, mend=mend, folder=place.folder)
    definition, schema, day = (entry.xid, entry.schema, entry.traits.day) if entry else (None, None, None)
    return TableSummary(place.name, definition, files, schema, staged, day, staged_files if staged else (), problem)


def find_table(tables: Iterable[TableSummary], name: str) -> TableSummary:
    """The table with this name, or of the definition with this XID.

    Raises: unknown-table
    """
    names = {table.name: table for table in tables}
    by_xid = (table for table in names.values() if table.definition == name)
    if matching := names.get(name) or next(by_xid, None):
        return matching
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean '{near[0]}'?" if near else None
    raise WirebookError(Problem(code="unknown-table", message=f"unknown table '{name}'", hint=hint))


def first_rows(table: TableSummary, count: int) -> pa.Table:
    """The first rows of a table: staged rows first, then those of its files, in the order of batches.

    Raises: unreadable-table
    """
    parts: list[pa.Table] = []
    schema = table.schema
    for rows in pieces_of(table, max(count, 1)):
        schema = schema or rows.schema
        parts.append(conform(rows.slice(0, count), schema))
        count -= min(count, rows.num_rows)
        if count <= 0:
            break
    return pa.concat_tables(parts) if parts else (schema or pa.schema([])).empty_table()


def pieces_of(table: TableSummary, size: int = 1 << 16) -> Iterator[pa.Table]:
    """The rows of a table in pieces of at most `size` rows, staged rows first. Each piece has the columns of its file.

    Raises: unreadable-table
    """
    table.check()
    with table.reading():
        if table.schema is not None:
            yield from read_staged(table.staged_files, table.name, table.schema)
        for file in table.files:
            with pq.ParquetFile(parquet_source(file)) as parquet:
                for batch in parquet.iter_batches(size):
                    yield pa.Table.from_batches([batch]).replace_schema_metadata()
