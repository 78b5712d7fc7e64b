"""What is in a target folder: its tables and their first rows. No Spark: footers and a few row groups are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from wirebook.problems import Problem, WirebookError
from wirebook.spark.evolution import conform
from wirebook.spark.formats import TableFormat
from wirebook.spark.layout import DEAD_LETTERS, RESOLVED
from wirebook.spark.tableformats import FORMATS
from wirebook.spark.target import TableEntry, Target

__all__ = ["TableSummary", "first_rows", "tables_in"]


@dataclass(frozen=True, slots=True)
class TableSummary:
    """One table: the XID of its definition (None for dead letters and the resolved), its rows, its files and its
    columns (None: those of its files), which older files may have in part."""

    name: str
    definition: str | None
    rows: int
    files: tuple[Path, ...]
    schema: pa.Schema | None = None


def tables_in(folder: Path) -> list[TableSummary]:
    """The tables of a target folder by name, the dead letters and the resolved last.

    Cost: reads the footer of every file.
    Raises: no-target, missing-extra
    """
    target = Target(folder)
    if not target.exists:
        raise WirebookError(Problem(code="no-target", message=f"'{folder}' is no folder that was landed into"))
    known = target.tables()
    form = FORMATS[target.format() or "parquet"]
    form.check()
    found = (_summary(path, known.get(path.name), form) for path in _folders(folder))
    return sorted(
        (each for each in found if each.files), key=lambda each: (each.name in (DEAD_LETTERS, RESOLVED), each.name)
    )


def _folders(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(("_", ".")))


def _summary(path: Path, entry: TableEntry | None, form: TableFormat) -> TableSummary:
    files = tuple(form.files(path))
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    return TableSummary(path.name, entry.xid if entry else None, rows, files, entry.schema if entry else None)


def find_table(tables: list[TableSummary], name: str) -> TableSummary:
    """The table of that name. Raises: unknown-table"""
    names = {table.name: table for table in tables}
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"did you mean '{near[0]}'?" if near else None
        raise WirebookError(Problem(code="unknown-table", message=f"there is no table '{name}'", hint=hint))
    return names[name]


def first_rows(table: TableSummary, count: int) -> pa.Table:
    """The first rows of a table, oldest batch first."""
    parts: list[pa.Table] = []
    for file in table.files:
        with pq.ParquetFile(file) as parquet:
            schema = table.schema or parquet.schema_arrow.remove_metadata()
            for batch in parquet.iter_batches(max(count, 1)):
                parts.append(conform(pa.Table.from_batches([batch]).slice(0, count).replace_schema_metadata(), schema))
                count -= min(count, batch.num_rows)
                if count <= 0:
                    return pa.concat_tables(parts)
    return pa.concat_tables(parts) if parts else schema.empty_table()
