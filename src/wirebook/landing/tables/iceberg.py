"""The Apache Iceberg table format, through the package `pyiceberg`: tasks write Parquet files; the driver adds them
in a snapshot.

Each snapshot and the table record the batch number, so that a batch is never added twice. A commit succeeds only if
the table is unchanged since it was read, so concurrent writers, such as a compaction, lose nothing.

Spec: docs/land.md#apache-iceberg; docs/decisions/0060, 0204
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from wirebook.landing.stores.locations import Location, location_of
from wirebook.landing.stores.objects import ObjectPath
from wirebook.landing.tables.comments import with_comments
from wirebook.landing.tables.evolution import widens
from wirebook.landing.tables.existing import check_columns, check_values, rows_in
from wirebook.landing.tables.file_placement import place_files, staged_or_placed, sync_new
from wirebook.landing.tables.formats import (
    NO_TRAITS,
    PAUSES,
    CommitFailed,
    StagedFile,
    TableTraits,
    Upkeep,
    UpkeepOptions,
)
from wirebook.landing.tables.iceberg_catalog import (
    OWNER,
    TargetCatalog,
    catalog_of,
    place_of,
    reason_of,
    redacted,
    uri_of,
)
from wirebook.landing.tables.iceberg_orphans import delete_files, files_before, find_orphans
from wirebook.landing.tables.names import TablePlace
from wirebook.landing.tables.parquet import ParquetFormat
from wirebook.landing.tables.partitions import Partition
from wirebook.problems import Problem, WirebookError
from wirebook.problems.extras import library, missing_extra

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.types import NestedField

__all__ = ["IcebergFormat", "full_name", "newest_metadata"]

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

BATCH = "wirebook.batch"
VERSION = "format-version"
WRITTEN_VERSION = "2"
REQUEST = re.compile("^When .*?: (?=AWS Error )")
"""The prefix with which Arrow's S3 file system names the object of a failed request."""


class IcebergFormat(ParquetFormat):
    """A folder of Parquet files with ``metadata``, which lists the files of the table."""

    name = "iceberg"
    partition: Partition = "event-day"
    tables_at_once = 1  # the catalogue may be an SQLite file

    def check(self, root: Location) -> None:
        """Also check that an external catalogue responds. Raises: also iceberg-catalog-failed"""
        library("pyiceberg.catalog.sql")
        if isinstance(root, ObjectPath) or place_of(root, again=True) is not None:
            catalog_of(root).check()

    def check_properties(self, properties: Mapping[str, str]) -> str | None:
        version = properties.get(VERSION, WRITTEN_VERSION)
        if version != WRITTEN_VERSION:  # PyIceberg would store it as a property without effect
            written = f"PyIceberg writes tables of format version {WRITTEN_VERSION} alone"
            return f"{written}, so '{VERSION}' cannot be '{version}'"
        own = [name for name in properties if name.startswith("wirebook.")]
        return f"'{own[0]}' is a property that Wirebook sets" if own else None

    def column(self, name: str) -> str:
        return RESERVED.get(name, name)

    def fit(self, schema: pa.Schema) -> pa.Schema:
        return pa.schema([(field.name, _fit(field.type)) for field in schema])

    def can_widen(self, old: pa.DataType, new: pa.DataType, *, may_rewrite: bool = False) -> bool:  # noqa: ARG002
        """Type promotion of the format: int to long, float to double, decimals to more digits of the same scale."""
        return widens(old, new) and (not pa.types.is_decimal(old) or old.scale == new.scale)

    def own_name(self, root: Location, name: str) -> str:
        return catalog_of(root.absolute()).own_name(name)

    def namespace(self, root: Location) -> str:
        return ".".join(catalog_of(root.absolute()).namespace)

    def commit(
        self,
        place: TablePlace,
        batch: int,
        files: Mapping[Location, StagedFile],
        schema: pa.Schema,
        traits: TableTraits = NO_TRAITS,
    ) -> None:
        """Raises: also iceberg-catalog-failed, store-failed"""
        started, folder = time.time(), place.folder
        catalog, commented = catalog_of(place.root.absolute()), with_comments(schema, traits.comments, b"doc")
        _add_once(catalog, place, batch, files, commented, traits=traits)
        if isinstance(folder, Path) and (folder / "metadata").is_dir():
            sync_new(folder / "metadata", started)

    def files(self, place: TablePlace) -> list[Location]:
        """Raises: also iceberg-catalog-failed"""
        table = _load(place)
        if table is None:
            return []
        with _table_failures(place):
            return sorted(_location(task.file.file_path) for task in table.scan().plan_files())

    def deleted_rows(self, place: TablePlace) -> dict[str, pa.Int64Array]:
        """Return nothing, or raise if the table has delete files: PyIceberg applies them only when it reads rows, and
        does not support all kinds of them."""
        table = _load(place)
        if table is None:
            return {}
        try:
            has_deletes = any(task.delete_files for task in table.scan().plan_files())
        except ValueError:  # equality deletes
            has_deletes = True
        if not has_deletes:
            return {}
        name = full_name(place)
        message = f"the table '{place.name}' has rows that another program has deleted by delete files only"
        options = "map('rewrite-all', 'true', 'remove-dangling-deletes', 'true')"
        call = f"CALL {name[0]}.system.rewrite_data_files(table => '{'.'.join(name)}', options => {options})"
        hint = f"remove the deleted rows from the data files with Spark (`{call}`); then run the command again"
        raise WirebookError(Problem("unreadable-deletions", message, file=str(place.folder), hint=hint))

    def maintain(self, place: TablePlace, options: UpkeepOptions) -> Upkeep:
        """Compact small files, expire snapshots that have not been current within the retention period, and delete
        files that no other snapshot refers to, including files that killed runs left.

        Raises: also iceberg-catalog-failed
        """
        folder, started = place.folder, time.time()
        limit = options.retained_since(started)
        with _table_failures(place):
            table = _read_table(place)
            if table is None:
                return Upkeep(place.name, 0)
            files = len(list(table.scan().plan_files()))
            is_kept = table.properties.get("gc.enabled", "true").lower() == "false"
            # List files before the table is read again, so that those of a concurrent commit are known to belong to it.
            listed = files_before(folder, limit) if options.deletes and not is_kept else {}
            compacted = self._compact(place, options) if options.compacts else 0
            table, expired = (table, set[int]()) if is_kept else _expire(place, limit, dry_run=options.dry_run)
            orphans = find_orphans(table, listed, expired, limit) if listed else []
        if not options.dry_run:
            if isinstance(folder, Path) and (folder / "metadata").is_dir():
                sync_new(folder / "metadata", started)
            delete_files(orphans)
        return Upkeep(place.name, files, compacted, len(orphans), len(expired))

    def _compact(self, place: TablePlace, options: UpkeepOptions) -> int:
        """Replace small files with larger ones. Returns the number of files that are replaced, or would be in a dry
        run."""
        from wirebook.landing.tables.iceberg_compaction import compact  # noqa: PLC0415 (an extra)

        load = partial(_read_table, place)
        return compact(load, place.folder, options, open_file=self.open, pauses=PAUSES, batch_property=BATCH)


def full_name(place: TablePlace) -> tuple[str, ...]:
    """The fully qualified name of a table: its catalogue, the levels of its namespace, and the name of the table."""
    catalog = catalog_of(place.root.absolute())
    return catalog.name, *catalog.identifier(place.name)


def newest_metadata(place: TablePlace) -> str:
    """The path of the current metadata file, which readers without the Iceberg catalogue need.

    Raises: unknown-table
    """
    table = _load(place)
    if table is None:
        raise WirebookError(Problem("unknown-table", f"the Iceberg catalogue has no table '{place.name}'"))
    location: str = table.metadata_location
    return location


def _expire(place: TablePlace, limit: int, *, dry_run: bool) -> tuple[Table, set[int]]:
    """Expire the snapshots that were last current before `limit` (milliseconds), except those of branches and tags.
    Returns the table after that, and the ids of the snapshots. Nothing expires if other writers always commit first.

    Raises: those of `pyiceberg`
    """
    from pyiceberg.exceptions import CommitFailedException  # noqa: PLC0415

    for pause in PAUSES:
        table = _read_table(place)
        assert table is not None
        kept = {reference.snapshot_id for reference in table.refs().values()}
        until = {entry.snapshot_id: successor.timestamp_ms for entry, successor in pairwise(table.history())}
        old = (
            snapshot.snapshot_id
            for snapshot in table.snapshots()
            if until.get(snapshot.snapshot_id, snapshot.timestamp_ms) < limit
        )
        expired = {number for number in old if number not in kept}
        if dry_run or not expired:
            return table, expired
        try:
            expiry = table.maintenance.expire_snapshots()
            expiry._snapshot_ids_to_expire |= expired  # `by_ids` copies the metadata of the table for each id
            expiry.commit()
        except CommitFailedException:  # another writer has committed first
            time.sleep(pause)
        else:
            return table.refresh(), expired
    assert table is not None
    return table.refresh(), set()


def _load(place: TablePlace) -> Table | None:
    """The table; None if nothing has landed in it. Raises: CommitFailed, iceberg-catalog-failed"""
    if not _has_catalog(place.root.absolute()):
        return None
    with _table_failures(place):
        return _read_table(place)


def _read_table(place: TablePlace) -> Table | None:
    """The table; None if nothing has landed in it. Raises: those of `pyiceberg`"""
    root = place.root.absolute()
    return catalog_of(root).load(place.name) if _has_catalog(root) else None


def _has_catalog(root: Location) -> bool:
    """Whether the target at `root` has a catalogue."""
    is_folder = isinstance(root, Path)
    return not is_folder or place_of(root) is not None or (root / "_wirebook" / "iceberg.db").exists()


@contextmanager
def _table_failures(place: TablePlace) -> Iterator[None]:
    """Convert the exceptions of `pyiceberg`: to `CommitFailed` if the table is the cause, or to a `WirebookError` if
    the catalogue or the store does not respond.

    Raises: CommitFailed, iceberg-catalog-failed, store-failed, missing-extra
    """
    catalog = catalog_of(place.root.absolute())
    try:
        with catalog.outages():
            yield
    except (CommitFailed, WirebookError):
        raise
    except ImportError as error:
        raise missing_extra(error) or CommitFailed(reason_of(catalog.name, error)) from error
    except Exception as error:
        failure = _store_failure(catalog, place, error)
        raise failure or CommitFailed(reason_of(catalog.name, error)) from error


def _store_failure(catalog: TargetCatalog, place: TablePlace, error: Exception) -> WirebookError | None:
    """Convert the error of a request to the object store of a table; None if the error has another cause."""
    is_of_table = not isinstance(error, OSError) or isinstance(error, (FileNotFoundError, PermissionError))
    if is_of_table or isinstance(place.folder, Path):
        return None
    return place.folder.failed(REQUEST.sub("", redacted(catalog.name, str(error))))


def _add_once(
    catalog: TargetCatalog,
    place: TablePlace,
    batch: int,
    files: Collection[Location],
    schema: pa.Schema,
    *,
    traits: TableTraits,
) -> None:
    """Add a batch to a table, unless the table already has it. Retry while other writers commit first.

    If it is unknown whether a commit succeeded, the next attempt reads the table to find out. If the catalogue
    carries out the commit late, either that commit or the next attempt fails, so the batch is not added twice.

    Raises: CommitFailed, OSError, iceberg-catalog-failed, store-failed
    """
    from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException  # noqa: PLC0415

    failure: Exception | None = None
    for pause in PAUSES:
        try:
            with catalog.outages():
                try:
                    table = catalog.load(place.name) or catalog.create(place, schema)
                except FileNotFoundError as error:
                    raise CommitFailed(f"the metadata that the catalogue names is missing: {error}") from error
                is_free = OWNER not in table.properties and traits.is_named
                if not is_free and not catalog.owns(table):
                    raise CommitFailed(_not_owned(catalog, table))
                if int(table.properties.get(BATCH, "0")) < batch:
                    owner = {OWNER: catalog.owner} if catalog.owner else {}
                    _add(table, files, place.folder, schema, traits=traits, properties=owner | {BATCH: str(batch)})
                return
        except (CommitFailedException, CommitStateUnknownException) as error:
            failure = error
            time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 (keeps competing writers out of step)
        except (CommitFailed, WirebookError):
            raise
        except OSError as error:
            if (store_failure := _store_failure(catalog, place, error)) is None:
                raise
            raise store_failure from error
        except Exception as error:  # any reason why a catalogue or `pyiceberg` rejects the table
            raise CommitFailed(reason_of(catalog.name, error)) from error
    assert failure is not None
    raise CommitFailed(reason_of(catalog.name, failure)) from failure


def _not_owned(catalog: TargetCatalog, table: Table) -> str:
    name, owner = ".".join(table.name()), table.properties.get(OWNER)
    whose = f"another target writes to it, '{owner}'" if owner else "it was not made by Wirebook"
    return (
        f"'{name}' in the catalogue '{catalog.name}' is not a table of this target: {whose}. Rename it"
        + (
            f", or set its property '{OWNER}' to '{catalog.owner}'"
            if owner
            else ", or name it in the settings of tables"
        )
        + " so that the rows are added to it"
    )


def _add(
    table: Table,
    files: Collection[Location],
    folder: Location,
    schema: pa.Schema,
    *,
    traits: TableTraits,
    properties: dict[str, str],
) -> None:
    """Add columns, files and properties, including the batch number, in one commit. The rows of the files are
    rewritten if another program has partitioned the table, because a file must not have rows of several partitions,
    or if the table has other types or required columns.

    Raises: CommitFailed, OSError, and those of `pyiceberg`
    """
    from pyiceberg.io.pyarrow import schema_to_pyarrow  # noqa: PLC0415

    fields = {field.name: field for field in table.schema().fields}
    check_columns({name: field.required for name, field in fields.items()}, schema, traits)
    schema = pa.schema([_kept(column, fields.get(column.name), traits) for column in schema])
    _check_lost_columns(table, schema)
    # Disable the retries of `pyiceberg`, which do not check whether another run has added the batch.
    table.metadata.properties["commit.retry.num-retries"] = "0"
    with table.transaction() as transaction:
        with transaction.update_schema() as update:
            update.union_by_name(schema)
        if traits.day and table.current_snapshot() is None and table.spec().is_unpartitioned():
            with transaction.update_spec() as spec:
                spec.add_field(traits.day.source, "day", traits.day.column)
        has_comment = traits.is_named and "comment" in table.properties
        comment = {"comment": traits.description} if traits.description and not has_comment else {}
        transaction.set_properties(comment | traits.properties | properties)
        metadata = transaction.table_metadata
        partitions, snapshot = [field.name for field in metadata.spec().fields], {BATCH: properties[BATCH]}
        is_own_spec = not partitions or bool(traits.day and partitions == [traits.day.column])
        if is_own_spec and not _differing(metadata.schema(), schema):
            place_files(folder, files)
            paths = [uri_of(folder / file.name) for file in files]
            transaction.add_files(paths, snapshot_properties=snapshot, check_duplicate_files=False)
            return
        written = [staged_or_placed(file, folder) for file in files]
        check_values(written, [column.name for column in schema if not column.nullable])
        others = schema_to_pyarrow(metadata.schema(), include_field_ids=False)  # may include the partitions
        every = pa.schema([*schema, *(field for field in others if field.name not in schema.names)])
        for rows in rows_in(written, every):
            transaction.append(rows, snapshot_properties=snapshot)
    for file in written:
        file.unlink()


def _check_lost_columns(table: Table, schema: pa.Schema) -> None:
    """Check that no column of the rows, or member of a column, was renamed or dropped after Wirebook first wrote to
    the table. Adding it again would split its values over two columns, or bring dropped values back: files without
    field ids are read by the names of columns.

    Raises: CommitFailed
    """
    from pyiceberg.catalog import Catalog  # noqa: PLC0415
    from pyiceberg.schema import index_by_name  # noqa: PLC0415

    current = table.schema()
    lacking = index_by_name(Catalog._convert_schema_if_needed(schema)).keys() - index_by_name(current).keys()
    if not lacking or BATCH not in table.properties:
        return
    earlier = {name: number for old in table.schemas().values() for name, number in index_by_name(old).items()}
    lost = sorted(lacking & earlier.keys(), key=lambda name: (name.count("."), name))
    if lost:
        now = current.find_column_name(earlier[lost[0]])
        change = f"renamed to '{now}': rename it back" if now else "dropped: add it to the table again"
        raise CommitFailed(f"its column '{lost[0]}' was {change}")


def _kept(column: pa.Field, field: NestedField | None, traits: TableTraits) -> pa.Field:
    """A column of the rows, with the nullability of the `field` in the table. A table that the settings name keeps
    its own comment, because another program may have made it."""
    if field is None:
        return column
    return (column.remove_metadata() if traits.is_named and field.doc else column).with_nullable(not field.required)


def _differing(columns: Schema, schema: pa.Schema) -> bool:
    """Whether a column of `schema` has another type in the table, or is required there."""
    from pyiceberg.catalog import Catalog  # noqa: PLC0415

    own = Catalog._convert_schema_if_needed(schema)
    types = {field.name: (field.required, field.field_type) for field in columns.fields}
    for field in own.fields:
        required, type_ = types[field.name]
        if required or (type_.is_primitive and type_ != field.field_type):
            return True
    return False


def _location(uri: str) -> Location:
    """The location of a data file. Iceberg does not percent-encode paths."""
    return location_of(uri) if "://" in uri and not uri.startswith("file:") else Path(re.sub("^file:(//)?", "", uri))


def _fit(type_: pa.DataType) -> pa.DataType:
    """The type with integers of 32 or 64 bits, the only ones in Iceberg."""
    if pa.types.is_integer(type_):
        return pa.int64() if type_.bit_width == 64 else pa.int32()
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, _fit(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(_fit(type_.value_type))
    return pa.map_(type_.key_type, _fit(type_.item_type)) if pa.types.is_map(type_) else type_
