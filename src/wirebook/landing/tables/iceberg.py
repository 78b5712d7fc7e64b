"""Apache Iceberg, by the package `pyiceberg`: tasks write Parquet files; the driver adds them in a snapshot.

The Iceberg catalogue is an SQLite file in the target folder. Each snapshot and the table carry the batch number; a
batch that the table already has is not added again.

Spec: docs/land.md#apache-iceberg; docs/decisions/0060
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

from wirebook.landing.stores.locations import Location
from wirebook.landing.tables.evolution import widens
from wirebook.landing.tables.formats import CommitFailed, ParquetFormat, Upkeep, UpkeepOptions, place_files, sync_new
from wirebook.problems.extras import library

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.table import Table

__all__ = ["IcebergFormat", "newest_metadata"]

RESERVED = {
    "_file": "_source_file",
    **{
        name: f"{name}_"
        for name in (
            "_pos",
            "_deleted",
            "_spec_id",
            "_partition",
            "_row_id",
            "_last_updated_sequence_number",
            "_change_type",
            "_change_ordinal",
            "_commit_snapshot_id",
        )
    },
}
"""Column names that the format reserves and that readers reject, with their replacements."""

NAMESPACE = "wirebook"
BATCH = "wirebook.batch"


class IcebergFormat(ParquetFormat):
    """A folder of Parquet files with ``metadata``, which lists the files of the table."""

    name = "iceberg"

    def check(self, root: Location) -> None:
        super().check(root)
        library("pyiceberg.catalog.sql")

    def column(self, name: str) -> str:
        return RESERVED.get(name, name)

    def fit(self, schema: pa.Schema) -> pa.Schema:
        return pa.schema([(field.name, _fit(field.type)) for field in schema])

    def can_widen(self, old: pa.DataType, new: pa.DataType) -> bool:
        """Type promotion of the format: int to long, float to double, decimals to more digits of the same scale."""
        return widens(old, new) and (not pa.types.is_decimal(old) or old.scale == new.scale)

    def commit(self, folder: Location, batch: int, files: Sequence[Location], schema: pa.Schema) -> None:
        from pyiceberg.exceptions import CommitFailedException  # noqa: PLC0415 (an extra)

        started = time.time()
        assert isinstance(folder, Path)  # `check` refuses other stores
        place_files(folder, files)
        catalog = _catalog(folder.parent.absolute())
        table = catalog.create_table_if_not_exists((NAMESPACE, folder.name), schema, location=_uri(folder))
        try:
            if int(table.properties.get(BATCH, "0")) < batch:
                _add(table, batch, [folder / file.name for file in files], schema)
        except (CommitFailedException, ValueError, NotImplementedError) as error:
            raise CommitFailed(str(error)) from error
        sync_new(folder / "metadata", started)

    def files(self, folder: Location) -> list[Location]:
        if not isinstance(folder, Path) or not (folder / "metadata").is_dir():
            return []
        table = _catalog(folder.parent.absolute()).load_table((NAMESPACE, folder.name))
        uris = (task.file.file_path for task in table.scan().plan_files())
        return sorted(Path(unquote(urlparse(uri).path)) for uri in uris)

    def maintain(self, folder: Location, options: UpkeepOptions) -> Upkeep:
        """Expire snapshots that are older than the retention. `pyiceberg` neither compacts nor deletes files."""
        if not isinstance(folder, Path) or not (folder / "metadata").is_dir():
            return Upkeep(folder.name, 0)
        table = _catalog(folder.parent.absolute()).load_table((NAMESPACE, folder.name))
        limit = datetime.now(UTC) - timedelta(hours=options.retain_hours)
        current = table.current_snapshot()
        expired = [
            snapshot.snapshot_id
            for snapshot in table.snapshots()
            if snapshot != current and snapshot.timestamp_ms < limit.timestamp() * 1000
        ]
        if expired and not options.dry_run:
            table.maintenance.expire_snapshots().by_ids(expired).commit()
        return Upkeep(folder.name, len(self.files(folder)), expired=len(expired))


def newest_metadata(folder: Path) -> str:
    """The path of the current metadata file, which readers without the Iceberg catalogue need."""
    location: str = _catalog(folder.parent.absolute()).load_table((NAMESPACE, folder.name)).metadata_location
    return location


def _add(table: Table, batch: int, files: list[Path], schema: pa.Schema) -> None:
    """Add columns, files and the batch number in one commit. Into a table with partitions, the rows of the files are
    written anew, because a file must not have rows of several partitions."""
    properties = {BATCH: str(batch)}
    with table.transaction() as transaction:
        with transaction.update_schema() as update:
            update.union_by_name(schema)
        transaction.set_properties(properties)
        if table.spec().is_unpartitioned():
            transaction.add_files([_uri(file) for file in files], snapshot_properties=properties)
            return
        for file in files:
            transaction.append(pq.read_table(file, partitioning=None), snapshot_properties=properties)
    for file in files:
        file.unlink()


@lru_cache(maxsize=4)
def _catalog(root: Path) -> SqlCatalog:
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415

    catalog = SqlCatalog("wirebook", uri=f"sqlite:///{root}/_wirebook/iceberg.db", warehouse=_uri(root))
    catalog.create_namespace_if_not_exists(NAMESPACE)
    return catalog


def _uri(path: Path) -> str:
    return f"file://{path.absolute()}"


def _fit(type_: pa.DataType) -> pa.DataType:
    """Integers become 32 or 64 bits wide."""
    if pa.types.is_integer(type_):
        return pa.int64() if type_.bit_width == 64 else pa.int32()
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, _fit(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(_fit(type_.value_type))
    return pa.map_(type_.key_type, _fit(type_.item_type)) if pa.types.is_map(type_) else type_
