"""The rows of a target in every table format, as other readers see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from killing.stores import iceberg_catalogue
from wirebook.landing.stores.locations import Location, folders_in, location_of, parquet_source

PLACE = ["_file", "_line", "_index"]
Rows = Counter[tuple[str, str, int, int]]
"""The number of rows of each message: by table, file, line and index."""


def _parquet_tables(target: Any) -> Iterator[tuple[str, pa.Table]]:
    """Read all Parquet files in the folder of a table, committed or not."""
    return ((file.parent.name, pq.ParquetFile(file).read(_columns(file.parent))) for file in target.glob("*/*.parquet"))


def _delta_tables(target: Location) -> Iterator[tuple[str, pa.Table]]:
    from deltalake import DeltaTable  # noqa: PLC0415

    if not isinstance(target, Path):
        for name in (name for name in folders_in(target) if name != "_wirebook"):
            table = DeltaTable(f"{target}/{name}", storage_options={"allow_http": "true"})
            for path in table.file_uris():
                yield name, pq.read_table(parquet_source(location_of(path)), columns=_columns(Path(name)))
        return
    for folder in sorted(log.parent for log in target.glob("*/_delta_log")):
        files = SubTreeFileSystem(str(folder), LocalFileSystem())  # Arrow's file system; docs/land.md explains why
        yield folder.name, DeltaTable(str(folder)).to_pyarrow_table(columns=_columns(folder), filesystem=files)


def _iceberg_tables(target: Location) -> Iterator[tuple[str, pa.Table]]:
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415

    if not isinstance(target, Path):
        catalog = iceberg_catalogue()
    elif (target / "_wirebook" / "iceberg.db").exists():
        catalog = load_catalog("wirebook", type="sql", uri=f"sqlite:///{target}/_wirebook/iceberg.db")
    else:
        return
    for name in catalog.list_tables("wirebook") if catalog.list_namespaces() else ():
        _, *others = _columns(Path(name[-1]))
        rows = catalog.load_table(name).scan(selected_fields=("_source_file", *others)).to_arrow()
        yield name[-1], rows.rename_columns({"_source_file": "_file"})


def _columns(folder: Path) -> list[str]:
    """Return the columns that identify the message of a row, and the table of a staged row."""
    return [*PLACE, "table"] if folder.name == "staged" else PLACE


READERS = {"parquet": _parquet_tables, "delta": _delta_tables, "iceberg": _iceberg_tables}


def landed_rows(form: str, target: Location) -> Rows:
    """The rows that a reader of the tables sees."""
    return Counter(_places(form, target))


def _places(form: str, target: Location) -> Iterator[tuple[str, str, int, int]]:
    for table, rows in READERS[form](target):
        names = [table] * len(rows) if table != "staged" else rows["table"].to_pylist()
        yield from zip(names, *(rows[name].to_pylist() for name in PLACE), strict=True)
