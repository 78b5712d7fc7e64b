"""The Delta Lake table format, through the package `deltalake`: tasks write Parquet files; the driver adds them to a
table in one transaction.

The transaction records the batch number in a ``txn`` action, so that a batch is never added twice.

Spec: docs/land.md#delta-lake; docs/decisions/0059
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlparse

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirebook.landing.stores.locations import Location, parquet_source, size_and_time
from wirebook.landing.tables.comments import with_comments
from wirebook.landing.tables.delta_append import APPLICATION, LogEnd
from wirebook.landing.tables.delta_checkpoints import STORAGE, Checkpoints, has_checkpoint
from wirebook.landing.tables.delta_reasons import how_to_mend, short_reason
from wirebook.landing.tables.delta_statistics import IndexedColumns, bounded_columns, file_statistics
from wirebook.landing.tables.delta_upkeep import maintain_table
from wirebook.landing.tables.delta_widening import widen_columns
from wirebook.landing.tables.evolution import evolve, widens
from wirebook.landing.tables.existing import check_columns, check_values, rows_in
from wirebook.landing.tables.file_placement import place_files, staged_or_placed, sync_new
from wirebook.landing.tables.formats import (
    NO_TRAITS,
    PLAIN,
    CommitFailed,
    FileLayout,
    StagedFile,
    TableTraits,
    TableWriter,
    Upkeep,
    UpkeepOptions,
)
from wirebook.landing.tables.names import TablePlace
from wirebook.landing.tables.parquet import ParquetFormat, SummarisedParquetWriter
from wirebook.landing.tables.partitions import NO_DAY, Partition, day_in_name
from wirebook.problems import Problem, WirebookError
from wirebook.problems.extras import library

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["DeltaFormat"]

GUARDS: Final = {"delta.invariants", "delta.generationExpression"}
"""Metadata keys of columns whose values must be checked or computed on write."""
DELETION_VECTORS: Final = "deletionVectors"
"""The table feature that marks single rows of data files as deleted."""
CONSTRAINT: Final = "delta.constraints."
NOT_OURS: Final = "it was not made by Wirebook. To add rows to it, name it in the table settings"


class _Addition(NamedTuple):
    """The staged `files` of a batch, to be added to the table in `folder`. After the commit, the table has the
    columns `schema` and the `traits`."""

    folder: Location
    batch: int
    files: Mapping[Location, StagedFile]
    schema: pa.Schema
    traits: TableTraits

    def place_files(self, configuration: Mapping[str, str]) -> list[dict[str, Any]]:
        """Move the files into the folder. Returns the log actions that add them to a table with the properties
        `configuration`."""
        place_files(self.folder, self.files)
        return _actions(self.folder, self.files, self.traits, configuration)


class DeltaFormat(ParquetFormat):
    """A folder of Parquet files with a ``_delta_log``, which lists the files of the table."""

    name = "delta"
    partition: Partition = "event-day"

    def __init__(self) -> None:
        self._ends: dict[Location, LogEnd] = {}
        self._checkpoints = Checkpoints()

    def check(self, root: Location) -> None:  # noqa: ARG002 (any)
        library("deltalake")

    def check_properties(self, properties: Mapping[str, str]) -> str | None:
        """Create an empty table with these properties in a temporary folder, because some properties require table
        features that `deltalake` does not support."""
        from deltalake import DeltaTable, Schema  # noqa: PLC0415
        from deltalake.exceptions import DeltaError  # noqa: PLC0415

        if "delta.columnMapping.mode" in properties:
            return "Wirebook writes the names of columns into files, so 'delta.columnMapping.mode' cannot be set"
        columns = Schema.from_arrow(pa.schema([("a", pa.int64())]))
        with TemporaryDirectory() as folder:
            try:
                table = DeltaTable.create(folder, columns, configuration=dict(properties))
                table.create_write_transaction([], "append", columns)
            except DeltaError as error:
                return f"deltalake cannot write tables with these properties: {error}"
        return None

    def open(self, path: Location, schema: pa.Schema, layout: FileLayout = PLAIN) -> TableWriter:
        positions = IndexedColumns.of(layout.properties).positions(schema)
        return SummarisedParquetWriter(path, schema, layout, partial(_statistics, positions=positions))

    def can_widen(self, old: pa.DataType, new: pa.DataType, *, may_rewrite: bool = False) -> bool:
        """Only if the table may be rewritten: widening in place is a table feature that few readers support."""
        return may_rewrite and widens(old, new)

    def commit(
        self,
        place: TablePlace,
        batch: int,
        files: Mapping[Location, StagedFile],
        schema: pa.Schema,
        traits: TableTraits = NO_TRAITS,
    ) -> None:
        from deltalake.exceptions import DeltaError  # noqa: PLC0415 (an extra)

        added, folder, started = _Addition(place.folder, batch, files, schema, traits), place.folder, time.time()
        end = self._ends.pop(folder, None)
        try:
            if end is not None and end.append(batch, added.place_files(end.configuration), schema, traits):
                self._ends[folder] = end
                if end.has_checkpoint:
                    self._checkpoints.request(folder, end.version)
                return
            end = self._commit_by_library(added)
        except (DeltaError, OSError) as error:
            if not _has_batch(folder, batch):
                raise _failure(folder, error) from error
            end = None  # the commit succeeded; only the response of the store was lost
        sync_new(folder / "_delta_log", started)
        if end is not None:
            self._ends[folder] = end

    def _commit_by_library(self, added: _Addition) -> LogEnd | None:
        """Add the files of a batch through `deltalake`, unless the table already has the batch. Returns the end of
        the log, or None if the next batch must be added through `deltalake`, too.

        Raises: CommitFailed, OSError, DeltaError
        """
        from deltalake import DeltaTable  # noqa: PLC0415
        from deltalake.exceptions import TableNotFoundError  # noqa: PLC0415

        folder = added.folder
        try:
            table = DeltaTable(str(folder), storage_options=STORAGE)
        except TableNotFoundError:
            _create(added)
            return None
        if (table.transaction_version(APPLICATION) or 0) >= added.batch:
            return None
        gets_checkpoint = has_checkpoint(folder.name, table.version() + 1, table.metadata().configuration)
        is_plain = _append(table, added, self.open)
        if gets_checkpoint:
            self._checkpoints.request(folder)
        if not is_plain or not isinstance(folder, Path):
            return None
        table.update_incremental()
        return LogEnd.of(folder / "_delta_log", table, added.batch, added.schema, added.traits)

    def wait(self) -> None:
        self._checkpoints.wait()

    def files(self, place: TablePlace) -> list[Location]:
        table = _opened(place.folder)
        if table is None:
            return []
        paths = pa.table(table.get_add_actions(flatten=True))["path"].to_pylist()
        return sorted(place.folder / unquote(urlparse(path).path) for path in paths)

    def deleted_rows(self, place: TablePlace) -> dict[str, pa.Int64Array]:
        """The rows that deletion vectors mark as deleted."""
        from deltalake.exceptions import DeltaError  # noqa: PLC0415

        table = _opened(place.folder)
        if table is None or DELETION_VECTORS not in (table.protocol().reader_features or ()):
            return {}
        try:
            vectors = pa.table(table.deletion_vectors())
        except (DeltaError, OSError) as error:
            message = f"the deletion vectors of the table '{place.name}' cannot be read: {short_reason(error)}"
            hint = f"remove the deleted rows from the files with Spark (`REORG TABLE {place.name} APPLY (PURGE)`)"
            raise WirebookError(Problem("unreadable-deletions", message, file=str(place.folder), hint=hint)) from error
        return {
            unquote(path.rpartition("/")[2]): pc.indices_nonzero(pc.invert(kept.values)).cast(pa.int64())
            for path, kept in zip(vectors["filepath"].to_pylist(), vectors["selection_vector"], strict=True)
        }

    def how_to_mend(self, table: str, reason: str) -> str | None:
        return how_to_mend(table, reason)

    def maintain(self, place: TablePlace, options: UpkeepOptions) -> Upkeep:
        """Compact small files, write a checkpoint of the log, and delete files that are neither in the current
        version nor in one within the retention period, including files that killed runs left."""
        from deltalake.exceptions import DeltaError  # noqa: PLC0415

        try:
            return maintain_table(place, options)
        except (DeltaError, OSError) as error:
            raise _failure(place.folder, error) from error


def _opened(folder: Location) -> DeltaTable | None:
    """The table in a folder; None if the folder has no table. Raises: CommitFailed, OSError, store-failed"""
    from deltalake import DeltaTable  # noqa: PLC0415
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    try:
        return (
            DeltaTable(str(folder), storage_options=STORAGE) if DeltaTable.is_deltatable(str(folder), STORAGE) else None
        )
    except (DeltaError, OSError) as error:
        raise _failure(folder, error) from error


def _failure(folder: Location, error: Exception) -> Exception:
    """The exception to raise for a failed operation on a table: `CommitFailed` for a `DeltaError`, which concerns the
    table; otherwise an error of the store or the operating system."""
    reason = short_reason(error)
    if not isinstance(error, OSError):
        return CommitFailed(reason)
    if isinstance(folder, Path) or isinstance(error, (FileNotFoundError, PermissionError)):
        return type(error)(reason)
    return folder.failed(reason)


def _has_batch(folder: Location, batch: int) -> bool:
    """Whether a table has a batch; False if the table cannot be read."""
    from deltalake import DeltaTable  # noqa: PLC0415
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    try:
        table = DeltaTable(str(folder), storage_options=STORAGE)
        return (table.transaction_version(APPLICATION) or 0) >= batch
    except (DeltaError, OSError):
        return False


def _create(added: _Addition) -> None:
    from deltalake import Schema  # noqa: PLC0415
    from deltalake.transaction import create_table_with_add_actions  # noqa: PLC0415

    traits, day = added.traits, added.traits.day
    actions = added.place_files(traits.properties)
    columns = with_comments(added.schema, traits.comments, b"comment")
    if day is not None:
        comment = f"UTC day of '{day.source}'"
        columns = columns.append(pa.field(day.column, pa.date32(), metadata={"comment": comment}))
    create_table_with_add_actions(
        str(added.folder),
        Schema.from_arrow(columns),
        _add_actions(actions),
        partition_by=None if day is None else [day.column],
        configuration=traits.properties or None,
        description=traits.description,
        storage_options=STORAGE,
        commit_properties=_properties(added.batch),
    )


def _append(table: DeltaTable, added: _Addition, open_file: Callable[..., TableWriter]) -> bool:
    """Add the files of a batch that the table does not have yet. Wider types, new columns, comments and properties
    are committed first, in transactions of their own, so these may succeed even if adding the files fails.

    Returns False if the rows are rewritten through `deltalake` instead of adding the files unchanged. This is
    necessary if another program has set partitions or constraints of the table, or if types in the files and in the
    table differ.

    Raises: CommitFailed, OSError, DeltaError
    """
    folder, schema, traits = added.folder, added.schema, added.traits
    if not traits.is_named and table.transaction_version(APPLICATION) is None:
        raise CommitFailed(NOT_OURS)
    is_required = {field.name: not field.nullable for field in table.schema().fields}
    check_columns(is_required, schema, traits)
    if traits.may_rewrite:
        configuration = table.metadata().configuration | traits.properties
        widen_columns(
            table, folder, schema, traits.day, partial(open_file, layout=FileLayout(properties=configuration))
        )
    columns = _columns_of(table, schema)
    is_plain = not _is_guarded(table, traits) and columns.types == _as_delta(schema).types
    is_plain = is_plain and not _have_other_types(added.files, folder, schema)
    if not is_plain and traits.day:  # rewritten rows contain the day as an ordinary column
        columns = _columns_of(table, schema.append(pa.field(traits.day.column, pa.date32())))
    _alter(table, columns, traits)
    if is_plain:
        table.create_write_transaction(
            _add_actions(added.place_files(table.metadata().configuration | traits.properties)),
            "append",
            table.schema(),
            partition_by=table.metadata().partition_columns or None,
            **_commit_options(added.batch),
        )
    else:
        _write_rows(table, added, columns, [name for name in schema.names if is_required.get(name)])
    return is_plain


def _write_rows(table: DeltaTable, added: _Addition, columns: pa.Schema, required: Sequence[str]) -> None:
    """Rewrite the rows of staged files through `deltalake`, with the column types of the table, and delete the files.
    The `required` columns must not contain nulls.

    Raises: CommitFailed, OSError, DeltaError
    """
    from deltalake import write_deltalake  # noqa: PLC0415
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    files = [staged_or_placed(file, added.folder) for file in added.files]
    check_values(files, required)
    table.update_incremental()
    parts = (part for rows in rows_in(files, columns, added.traits.day) for part in rows.to_batches())
    reader = pa.RecordBatchReader.from_batches(columns, parts)
    try:
        write_deltalake(table, reader, mode="append", schema_mode="merge", **_commit_options(added.batch))
    except DeltaError as error:
        raise _violation(table, error) or error from error
    for file in files:
        file.unlink()


def _violation(table: DeltaTable, error: Exception) -> CommitFailed | None:
    """Convert a constraint violation to a failure that lists the constraints of the table, because `error` does not
    name the violated one. Returns None for any other error."""
    configuration = table.metadata().configuration
    constraints = [
        f"{name.removeprefix(CONSTRAINT)} ({expression})"
        for name, expression in configuration.items()
        if name.startswith(CONSTRAINT)
    ]
    if "failed validation check" not in str(error) or not constraints:
        return None
    return CommitFailed(f"{short_reason(error)} Its constraints are: {', '.join(constraints)}")


def _have_other_types(files: Mapping[Location, StagedFile], folder: Location, schema: pa.Schema) -> bool:
    """Whether the types of any file differ from `schema`. Only files that were staged before their table changed can
    differ. Files with statistics are not read, because a task has just written them."""
    known = dict(zip(schema.names, schema.types, strict=True))
    return any(
        not field.type.equals(known.get(field.name, field.type))
        for file, staged in files.items()
        if not staged.statistics
        for field in pq.read_schema(parquet_source(staged_or_placed(file, folder)))
    )


def _alter(table: DeltaTable, columns: pa.Schema, traits: TableTraits) -> None:
    """Add missing columns and comments to a table, and set its description and properties. If the settings name the
    table, another program may own it: its existing comments and description stay.

    Raises: DeltaError
    """
    from deltalake import Field, Schema  # noqa: PLC0415

    known = {field.name: field for field in table.schema().fields}
    added = []
    for field in Schema.from_arrow(with_comments(columns, traits.comments, b"comment")).fields:
        old, comment = known.get(field.name), field.metadata.get("comment")
        if old is not None and traits.is_named:
            comment = old.metadata.get("comment", comment)
        if old is None or old.type != field.type or (comment and "comment" not in old.metadata):
            # `add_columns` merges metadata, and fails if a key has different values.
            merged = field.metadata | (old.metadata if old else {})
            added.append(Field(field.name, field.type, nullable=old is None or old.nullable, metadata=merged))
        if old is not None and comment and old.metadata.get("comment", comment) != comment:
            table.alter.set_column_metadata(field.name, old.metadata | {"comment": comment})
    if added:
        table.alter.add_columns(added)
    current = table.metadata()
    has_description = traits.is_named and current.description
    if traits.description and not has_description and current.description != traits.description:
        table.alter.set_table_description(traits.description)
    if changed := {
        name: value for name, value in traits.properties.items() if current.configuration.get(name) != value
    }:
        table.alter.set_table_properties(changed)


def _as_delta(schema: pa.Schema) -> pa.Schema:
    """The columns with the types that they get in a Delta table."""
    from deltalake import Schema  # noqa: PLC0415

    return pa.schema(Schema.from_arrow(schema).to_arrow())


def _columns_of(table: DeltaTable, schema: pa.Schema) -> pa.Schema:
    """The columns of the rows to add, with the types of the table.

    Raises: CommitFailed, if a type of the table does not hold the values
    """
    merged, conflicts = evolve(pa.schema(table.schema().to_arrow()), _as_delta(schema), lambda *_: False)
    if conflicts:
        conflict = conflicts[0]
        message = (
            f"its column '{conflict.column}' has the type {conflict.before}, and the rows have {conflict.now}: change "
            "the column or the definition"
        )
        raise CommitFailed(message)
    theirs = {field.name: field.nullable for field in table.schema().fields}  # else they would become nullable
    return pa.schema([pa.field(name, merged.field(name).type, theirs.get(name, True)) for name in schema.names])


def _is_guarded(table: DeltaTable, traits: TableTraits) -> bool:
    """Whether rows must be written through `deltalake`, because the table has partitions, constraints, required
    columns or generated columns that another program has set."""
    metadata = table.metadata()
    own = [traits.day.column] if traits.day else []
    return (
        metadata.partition_columns != own
        or any(name.startswith(CONSTRAINT) for name in metadata.configuration)
        or any(not field.nullable or GUARDS & field.metadata.keys() for field in table.schema().fields)
    )


def _commit_options(batch: int) -> dict[str, Any]:
    """The options of a transaction that adds the rows of a batch."""
    from deltalake import PostCommitHookProperties  # noqa: PLC0415

    hooks = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
    return {"commit_properties": _properties(batch), "post_commithook_properties": hooks}


def _properties(batch: int) -> Any:
    from deltalake import CommitProperties, Transaction  # noqa: PLC0415

    return CommitProperties(app_transactions=[Transaction(APPLICATION, batch)])


def _add_actions(actions: list[dict[str, Any]]) -> list[Any]:
    from deltalake.transaction import AddAction  # noqa: PLC0415

    return [
        AddAction(
            unquote(action["path"]),
            action["size"],
            action["partitionValues"],
            action["modificationTime"],
            action["dataChange"],
            action["stats"],
        )
        for action in actions
    ]


def _statistics(
    metadata: pq.FileMetaData,
    without_nan: Collection[tuple[str, ...]] = (),
    positions: Collection[int] | None = None,
) -> str:
    """The statistics of a file as JSON text for the log. Characters outside ASCII are not escaped, because some
    readers misread such escapes."""
    return orjson.dumps(file_statistics(metadata, without_nan, positions), default=_number).decode()


def _number(value: Decimal) -> orjson.Fragment:
    """A decimal as a JSON number with all its digits."""
    return orjson.Fragment(format(value, "f"))


def _actions(
    folder: Location, files: Mapping[Location, StagedFile], traits: TableTraits, configuration: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The log actions that add files to a table with the properties `configuration`. The footer of a file is read if
    its statistics are unknown or cover other columns: the task that wrote it knows the properties in `traits`, but
    not those that other programs have set."""
    actions, now, day = [], time.time_ns() // 1_000_000, traits.day
    indexed = IndexedColumns.of(configuration)
    is_known = indexed == IndexedColumns.of(traits.properties)
    for file, staged in files.items():
        size, modified, statistics = staged.size, now, staged.statistics
        if not statistics:
            size, modified = size_and_time(folder / file.name)
        if not statistics or not is_known:
            footer = pq.read_metadata(parquet_source(folder / file.name))
            without_nan = set(bounded_columns(orjson.loads(statistics)["minValues"])) if statistics else ()
            statistics = _statistics(footer, without_nan, indexed.positions(footer.schema.to_arrow_schema()))
        value = day_in_name(file.name)
        actions.append({
            "path": quote(file.name),
            "partitionValues": {} if day is None else {day.column: None if value == NO_DAY else value},
            "size": size,
            "modificationTime": modified,
            "dataChange": True,
            "stats": statistics,
        })  # fmt: skip
    return actions
