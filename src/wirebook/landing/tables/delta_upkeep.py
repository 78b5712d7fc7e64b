"""Upkeep of Delta tables: compact small files, write a checkpoint of the log, and delete files that are no longer
needed.

Spec: docs/land.md#delta-lake; docs/how-to/maintain.md
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa

from wirebook.landing.tables.delta_append import WRITER_VERSION
from wirebook.landing.tables.delta_checkpoints import STORAGE, log_file, write_checkpoint
from wirebook.landing.tables.delta_reasons import short_reason
from wirebook.landing.tables.formats import CommitFailed, Upkeep, UpkeepOptions
from wirebook.landing.tables.names import TablePlace

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["maintain_table"]


def maintain_table(place: TablePlace, options: UpkeepOptions) -> Upkeep:
    """Implements `TableFormat.maintain` for Delta tables.

    Raises: CommitFailed, OSError, DeltaError
    """
    from deltalake import DeltaTable  # noqa: PLC0415
    from deltalake.exceptions import CommitFailedError  # noqa: PLC0415

    folder = place.folder
    if not DeltaTable.is_deltatable(str(folder), STORAGE):
        return Upkeep(place.name, 0)
    table = DeltaTable(str(folder), storage_options=STORAGE)
    _check_features(table, compacts=options.compacts)
    files, compacted = len(table.file_uris()), 0
    if options.compacts and options.dry_run:
        compacted = _small_files(table, options.target_bytes)
    elif options.compacts and _small_files(table, options.target_bytes):
        try:
            compacted = table.optimize.compact(target_size=options.target_bytes)["numFilesRemoved"]
        except CommitFailedError:  # another writer has replaced the files
            table.update_incremental()
    if not options.dry_run:
        write_checkpoint(table)
    if not options.deletes:
        return Upkeep(place.name, files, compacted)
    deleted = table.vacuum(options.retain_hours, options.dry_run, enforce_retention_duration=False, full=True)
    return Upkeep(place.name, files, compacted, len(deleted))


def _small_files(table: DeltaTable, target_bytes: int) -> int:
    """The number of files that compaction would replace: files smaller than `target_bytes` in partitions that have
    several of them."""
    actions = pa.table(table.get_add_actions(flatten=False))
    partitions = actions["partition"].to_pylist() if "partition" in actions.column_names else [None] * len(actions)
    sizes = zip(map(repr, partitions), actions["size_bytes"].to_pylist(), strict=True)
    small = Counter(partition for partition, size in sizes if size < target_bytes)
    return sum(count for count in small.values() if count > 1)


def _check_features(table: DeltaTable, *, compacts: bool) -> None:
    """Check that `deltalake` can write to a table with these features, and compact it. `deltalake` reports
    unsupported features only when it commits, so this commits to an empty table with the same features in a temporary
    folder.

    Raises: CommitFailed
    """
    from deltalake import DeltaTable  # noqa: PLC0415
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    protocol, metadata = table.protocol(), table.metadata()
    if protocol.min_writer_version <= WRITER_VERSION:
        return
    features = {"readerFeatures": protocol.reader_features, "writerFeatures": protocol.writer_features}
    versions = {"minReaderVersion": protocol.min_reader_version, "minWriterVersion": protocol.min_writer_version}
    description = {
        "id": str(metadata.id),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.schema().to_json(),
        "partitionColumns": metadata.partition_columns,
        "configuration": metadata.configuration,
    }
    actions = (
        {"protocol": versions | {name: value for name, value in features.items() if value is not None}},
        {"metaData": description},
    )
    with TemporaryDirectory() as folder:
        log = Path(folder) / "_delta_log"
        log.mkdir()
        log_file(log, 0).write_bytes(b"\n".join(map(orjson.dumps, actions)))
        try:
            empty = DeltaTable(folder)
            empty.create_write_transaction([], "append", empty.schema())
            if compacts:
                empty.optimize.compact()
        except DeltaError as error:
            raise CommitFailed(short_reason(error)) from error
