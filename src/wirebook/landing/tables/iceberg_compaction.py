"""Compaction of Iceberg tables, which `pyiceberg` lacks: small files of a partition are replaced with a larger one.

The new file is written first, and replaces the small ones in a commit that succeeds only if the table is unchanged
since it was read. If another writer commits first, the commit is retried, as long as the table still has the small
files.

Spec: docs/how-to/maintain.md
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    pyarrow_to_schema,
    schema_to_pyarrow,
)
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.typedef import EMPTY_DICT

from wirebook.landing.stores.locations import Location, parquet_source
from wirebook.landing.stores.objects import OBJECTS_AT_ONCE
from wirebook.landing.stores.records import sync_folder
from wirebook.landing.tables.evolution import conform, evolve, widens
from wirebook.landing.tables.formats import TableWriter, UpkeepOptions
from wirebook.landing.tables.iceberg_catalog import uri_of
from wirebook.problems import Problem, WirebookError

__all__ = ["compact"]

Loader = Callable[[], Table | None]
OpenFile = Callable[[Location, pa.Schema], TableWriter]

MAX_VERSION: Final = 2
"""The last version of the format without row ids. A rewritten row must keep its id."""
ROW_GROUP_BYTES: Final = 64 << 20
"""Bytes of rows that are buffered before they are written."""


class _SmallFiles:
    """Finds the files of a table that are smaller than `target_bytes`. Manifests never change, so each is read only
    once: if each attempt to commit read thousands of them, a stream would always commit first."""

    def __init__(self, target_bytes: int) -> None:
        self._target_bytes = target_bytes
        self._entries: dict[str, list[ManifestEntry]] = {}

    def of(self, table: Table) -> dict[str, DataFile]:
        """The small files of the current snapshot by path. Empty if the table has delete files or row ids, because
        its files cannot be rewritten then. Files with an earlier partition spec are left out."""
        snapshot = table.current_snapshot()
        manifests = [] if snapshot is None else snapshot.manifests(table.io)
        has_deletes = any(manifest.content == ManifestContent.DELETES for manifest in manifests)
        if has_deletes or table.format_version > MAX_VERSION:
            return {}
        manifests = [manifest for manifest in manifests if manifest.partition_spec_id == table.metadata.default_spec_id]
        unread = [manifest for manifest in manifests if manifest.manifest_path not in self._entries]
        with ThreadPoolExecutor(OBJECTS_AT_ONCE) as pool:
            read = pool.map(lambda manifest: manifest.fetch_manifest_entry(table.io), unread)
            for manifest, entries in zip(unread, read, strict=True):
                has_small = any(self._is_small(entry.data_file) for entry in entries)
                self._entries[manifest.manifest_path] = entries if has_small else []
        files = (entry.data_file for manifest in manifests for entry in self.entries(manifest))
        return {file.file_path: file for file in files if self._is_small(file)}

    def _is_small(self, file: DataFile) -> bool:
        return file.file_size_in_bytes < self._target_bytes and file.file_format == FileFormat.PARQUET

    def entries(self, manifest: ManifestFile) -> list[ManifestEntry]:
        """The entries of a manifest that lists at least one small file; empty for any other manifest."""
        return self._entries.get(manifest.manifest_path, [])


class _Rewrite(_OverwriteFiles):
    """Replaces files with others that have the same rows, in a snapshot with the operation `replace`. Readers of
    changes skip such a snapshot, but stop at an `overwrite`, the only operation that `pyiceberg` supports for
    this."""

    small: _SmallFiles

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        summary = super()._summary(snapshot_properties)
        return Summary(Operation.REPLACE, **summary.additional_properties)

    def _deleted_entries(self) -> list[ManifestEntry]:
        replaced = (entry for manifest in self._parent_manifests() for entry in self.small.entries(manifest))
        status = ManifestEntryStatus.DELETED
        deleted = [
            self._with_status(entry, status, self.snapshot_id)
            for entry in replaced
            if entry.data_file in self._deleted_data_files
        ]
        self._validate_required_deletes(deleted)
        return deleted

    def _existing_manifests(self) -> list[ManifestFile]:
        """The manifests of the table. Those that list replaced files are rewritten without them."""
        manifests = []
        for manifest in self._parent_manifests():
            entries = self.small.entries(manifest)
            others = [entry for entry in entries if entry.data_file not in self._deleted_data_files]
            if len(others) == len(entries):
                manifests.append(manifest)
            elif others:
                with self.new_manifest_writer(self.spec(manifest.partition_spec_id)) as writer:
                    for entry in others:
                        status = ManifestEntryStatus.EXISTING
                        writer.add_entry(self._with_status(entry, status, entry.snapshot_id))
                manifests.append(writer.to_manifest_file())
        return manifests

    def _parent_manifests(self) -> list[ManifestFile]:
        """The manifests of the parent snapshot that list files of the table, not only deleted ones."""
        parent = self._transaction.table_metadata.current_snapshot()
        manifests = [] if parent is None else parent.manifests(self._io)
        return [manifest for manifest in manifests if manifest.has_added_files() or manifest.has_existing_files()]

    @staticmethod
    def _with_status(entry: ManifestEntry, status: ManifestEntryStatus, snapshot: int | None) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=status,
            snapshot_id=snapshot,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )


def compact(
    load: Loader,
    folder: Location,
    options: UpkeepOptions,
    *,
    open_file: OpenFile,
    pauses: Sequence[float],
    batch_property: str,
) -> int:
    """Replace small files of a table with larger ones in `folder`. Returns the number of files that are replaced, or
    would be in a dry run. `load` returns the current state of the table.

    There is one attempt to commit for each of the `pauses`, which are the seconds to wait after a failed attempt. If
    all of them fail, the small files stay, and the new file belongs to no snapshot.

    Raises: OSError, store-failed, broken-target, and those of `pyiceberg`
    """
    planned, small, compacted = load(), _SmallFiles(options.target_bytes), 0
    for group in _groups(planned, small.of(planned).values(), options.target_bytes) if planned else ():
        table = planned if options.dry_run else load()
        if table is None or planned is None or table.schema() != planned.schema():
            break
        if not options.dry_run:
            new = _merged(table, group, folder / f"compacted-{uuid.uuid4()}.parquet", open_file)
            if not _replace(load, small, group, new, pauses=pauses, batch_property=batch_property):
                continue
        compacted += len(group)
    return compacted


def _groups(table: Table, files: Collection[DataFile], target_bytes: int) -> list[list[DataFile]]:
    """Groups of at least two files of the same partition, which together are not larger than `target_bytes`."""
    with ThreadPoolExecutor(OBJECTS_AT_ONCE) as pool:
        are_alike = pool.map(lambda file: _has_columns_of(table, file), files)
        alike = [file for file, is_alike in zip(files, are_alike, strict=True) if is_alike]
    groups: list[list[DataFile]] = []
    last: dict[tuple[object, ...], tuple[list[DataFile], int]] = {}
    for file in sorted(alike, key=lambda file: file.file_path):
        partition = tuple(file.partition[number] for number in range(len(file.partition)))
        group, size = last.get(partition, ([], 0))
        if not group or size + file.file_size_in_bytes > target_bytes:
            group, size = [], 0
            groups.append(group)
        group.append(file)
        last[partition] = (group, size + file.file_size_in_bytes)
    return [group for group in groups if len(group) > 1]


def _has_columns_of(table: Table, file: DataFile) -> bool:
    """Whether a file can be rewritten with the columns of the table. Its columns must have the ids and names of
    columns of the table, so none was renamed or dropped since, and types that are the same or can be widened. It must
    have the partition columns, because the values of a migrated file may be only in the metadata."""
    columns = _columns(table)
    with table.io.new_input(file.file_path).open() as stream:
        of_file = pq.read_schema(stream)
    try:
        names = _names(pyarrow_to_schema(of_file, table.name_mapping()))
    except (TypeError, ValueError):  # a type that Iceberg lacks, or a column without an id
        return False
    if not names.items() <= _names(table.schema()).items():
        return False
    evolved, conflicts = evolve(columns, _as_landed(of_file), widens)
    return (
        not conflicts and evolved.equals(columns) and {field.source_id for field in table.spec().fields} <= names.keys()
    )


def _names(schema: Schema) -> dict[int, str | None]:
    """The full names of the columns, members and elements by id."""
    return {number: schema.find_column_name(number) for number in schema.field_ids}


def _columns(table: Table) -> pa.Schema:
    """The columns of a table. Their ids are written to files, so that the columns can be renamed later."""
    return _as_landed(schema_to_pyarrow(table.schema()))


def _as_landed(schema: pa.Schema) -> pa.Schema:
    """Columns with the types that landing writes: `pyiceberg` uses types with 64-bit offsets for strings, binary and
    lists."""
    return pa.schema([field.with_type(_small(field.type)) for field in schema])


def _small(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_small(field.type)) for field in type_])
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(type_.value_field.with_type(_small(type_.value_type)))
    if pa.types.is_map(type_):
        return pa.map_(*(field.with_type(_small(field.type)) for field in (type_.key_field, type_.item_field)))
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(type_, type_)


def _merged(table: Table, files: Sequence[DataFile], path: Location, open_file: OpenFile) -> DataFile:
    """Write the rows of files of one partition to a new file, which is durable when this returns. `pyiceberg` is not
    used to read them, because it reads null lists as empty ones.

    Raises: broken-target
    """
    columns = _columns(table)
    writer = open_file(path, columns)
    held: list[pa.Table] = []
    size = 0
    for rows in _rows_of(table, files):
        held.append(conform(rows, columns))
        size += held[-1].nbytes
        if size >= ROW_GROUP_BYTES:
            writer.write(pa.concat_tables(held))
            held, size = [], 0
    if held:
        writer.write(pa.concat_tables(held))
    writer.close()
    if isinstance(path, Path):
        sync_folder(path.parent)
    footer, expected = pq.read_metadata(parquet_source(path)), sum(file.record_count for file in files)
    if footer.num_rows != expected:
        message = f"files of the table have {footer.num_rows} rows, but its metadata counts {expected}"
        raise WirebookError(Problem("broken-target", message, file=str(path.parent)))
    statistics = data_file_statistics_from_parquet_metadata(
        footer,
        compute_statistics_plan(table.schema(), table.properties),
        parquet_path_to_id_mapping(table.schema()),
    )
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=uri_of(path),
        file_format=FileFormat.PARQUET,
        partition=files[0].partition,
        file_size_in_bytes=writer.size,
        sort_order_id=None,
        spec_id=table.metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def _rows_of(table: Table, files: Iterable[DataFile]) -> Iterable[pa.Table]:
    """The rows of files in batches. Only one batch is in memory at a time."""
    for file in files:
        with table.io.new_input(file.file_path).open() as stream, pq.ParquetFile(stream) as parquet:
            yield from (pa.Table.from_batches([rows]) for rows in parquet.iter_batches())


def _replace(
    load: Loader,
    small: _SmallFiles,
    replaced: Sequence[DataFile],
    new: DataFile,
    *,
    pauses: Sequence[float],
    batch_property: str,
) -> bool:
    """Commit the replacement of files with a new one. Returns whether the table has the new file.

    The snapshot has the batch number of the table, as snapshots of landing do. If it is unknown whether a commit
    succeeded, the next attempt reads the table to find out. If the catalogue carries out the commit late, either that
    commit or the next attempt fails.
    """
    attempts: list[int] = []
    for pause in pauses:
        table = load()
        if table is None:
            return False
        if any(table.snapshot_by_id(attempt) for attempt in attempts):
            return True
        current = small.of(table)
        if any(file.file_path not in current for file in replaced):
            return False
        table.metadata.properties["commit.retry.num-retries"] = "0"  # retries of `pyiceberg` check other conditions
        batch = table.properties.get(batch_property)
        properties = {} if batch is None else {batch_property: batch}
        transaction = table.transaction()
        try:
            rewrite = _Rewrite(Operation.OVERWRITE, transaction, table.io, snapshot_properties=properties)
            rewrite.small = small
            attempts.append(rewrite.snapshot_id)
            with rewrite:
                for file in replaced:
                    rewrite.delete_data_file(file)
                rewrite.append_data_file(new)
            transaction.commit_transaction()
        except (CommitFailedException, CommitStateUnknownException):
            time.sleep(pause)
        else:
            return True
    return False
