"""Widen the columns of a Delta table: rewrite its files with the wider types, and replace its files and columns in
one transaction.

Delta Lake can also widen columns without a rewrite, by the table feature `typeWidening`, but `deltalake` can neither
read nor write tables with this feature. Earlier versions of the table can be read until upkeep deletes their files.

Spec: docs/how-to/table-settings.md#wider-columns; docs/decisions/0221
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

from wirebook.landing.stores.locations import Location, parquet_source
from wirebook.landing.stores.records import sync_folder
from wirebook.landing.tables.evolution import ColumnConflict, conform, evolve, widens
from wirebook.landing.tables.formats import PAUSES, CommitFailed, TableWriter
from wirebook.landing.tables.partitions import DayPartition

if TYPE_CHECKING:
    from deltalake import DeltaTable, Field, Schema
    from deltalake.schema import DataType
    from deltalake.transaction import AddAction

__all__ = ["widen_columns"]

OpenFile = Callable[[Location, pa.Schema], TableWriter]

FEATURES: Final = frozenset({
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "generatedColumns",
    "invariants",
    "timestampNtz",
})  # fmt: skip
"""Table features that store nothing about single files, so that a rewrite loses nothing."""
MAX_ROWS: Final = 1 << 16
"""Maximum number of rows in memory at a time."""
_one_at_a_time: Final = Lock()
"""Held during a rewrite. The tables of a batch are committed concurrently, but rewritten one at a time."""


def widen_columns(
    table: DeltaTable, folder: Location, schema: pa.Schema, day: DayPartition | None, open_file: OpenFile
) -> None:
    """Rewrite a table if columns of `schema` are wider than those of the table. The table then has all columns of
    `schema`.

    The transaction succeeds only as the version that follows the one that was read. If another writer commits first,
    its new files are rewritten, too, and the transaction is retried, so no row is lost.

    Cost: reads and writes all rows of the table; the old files stay until upkeep deletes them.

    Raises: CommitFailed, if the table is not one that Wirebook may rewrite or rewriting fails; DeltaError
    """
    from deltalake import CommitProperties, PostCommitHookProperties  # noqa: PLC0415 (an extra)
    from deltalake.exceptions import CommitFailedError  # noqa: PLC0415

    if _wider(table, schema) is None:
        return
    with _one_at_a_time:
        rewritten: dict[str, AddAction] = {}
        for pause in PAUSES:
            wider = _wider(table, schema)
            if wider is None:
                return
            columns, narrow = wider
            if obstacle := _obstacle(table, schema.names[0], day):
                column, before, now = narrow[0].column, narrow[0].before, narrow[0].now
                message = f"its column '{column}' has the type {before}, and the rows have {now}, but {obstacle}"
                raise CommitFailed(message)
            version, current = table.version(), pa.table(table.get_add_actions(flatten=True)).to_pylist()
            new = [action for action in current if action["path"] not in rewritten]
            rewritten |= _rewritten(folder, new, columns, day, open_file)
            try:
                table.create_write_transaction(
                    [rewritten[action["path"]] for action in current],
                    "overwrite",
                    columns,
                    partition_by=table.metadata().partition_columns or None,
                    commit_properties=CommitProperties(
                        {"userMetadata": f"columns widened: {', '.join(conflict.column for conflict in narrow)}"},
                        max_commit_retries=0,
                    ),
                    post_commithook_properties=PostCommitHookProperties(
                        create_checkpoint=False, cleanup_expired_logs=False
                    ),
                )
            except CommitFailedError:
                table.update_incremental()
                if table.version() == version:  # no other writer has committed
                    raise
                time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 (keeps competing writers out of step)
            else:
                table.update_incremental()
        if _wider(table, schema) is not None:
            raise CommitFailed("its columns cannot be widened, because other writers always commit first")


def _wider(table: DeltaTable, schema: pa.Schema) -> tuple[Schema, list[ColumnConflict]] | None:
    """The columns of a table after it is widened to `schema`, and the columns that are too narrow now. None if no
    column is too narrow, or if a column conflicts in another way."""
    from deltalake import Schema  # noqa: PLC0415

    before, now = (pa.schema(columns.to_arrow()) for columns in (table.schema(), Schema.from_arrow(schema)))
    _, narrow = evolve(before, now, lambda *_: False)
    merged, conflicts = evolve(before, now, widens)
    if not narrow or conflicts:
        return None
    return Schema(_with_details(table.schema().fields, Schema.from_arrow(merged).fields)), narrow


def _with_details(before: Collection[Field], now: Collection[Field]) -> list[Field]:
    """The fields `now`, with the nullability and the metadata, such as comments, of the fields `before`."""
    from deltalake import Field  # noqa: PLC0415

    known = {field.name: field for field in before}
    fields = []
    for field in now:
        old = known.get(field.name, field)
        type_ = _type_with_details(old.type, field.type)
        fields.append(Field(field.name, type_, nullable=old.nullable, metadata=old.metadata))
    return fields


def _type_with_details(before: DataType, now: DataType) -> DataType:
    from deltalake.schema import ArrayType, MapType, StructType  # noqa: PLC0415

    if isinstance(before, StructType) and isinstance(now, StructType):
        return StructType(_with_details(before.fields, now.fields))
    if isinstance(before, ArrayType) and isinstance(now, ArrayType):
        return ArrayType(_type_with_details(before.element_type, now.element_type), contains_null=before.contains_null)
    if isinstance(before, MapType) and isinstance(now, MapType):
        value = _type_with_details(before.value_type, now.value_type)
        return MapType(before.key_type, value, value_contains_null=before.value_contains_null)
    return now


def _obstacle(table: DeltaTable, first: str, day: DayPartition | None) -> str | None:
    """The reason why a table must not be rewritten; None if it may be. A table whose first column is not `first` was
    made by another program: all tables of Wirebook begin with this column, and columns that are added later come
    last."""
    metadata, protocol = table.metadata(), table.protocol()
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    if table.schema().fields[0].name != first:
        return "Wirebook does not rewrite tables that it did not make: change the type of the column"
    if metadata.partition_columns != ([day.column] if day else []):
        return "Wirebook does not rewrite tables that others have partitioned: change the type of the column"
    if metadata.configuration.get("delta.appendOnly") == "true":
        return "'delta.appendOnly' forbids a rewrite: remove this property, or change the definition"
    if protocol.min_reader_version == 2 or features - FEATURES:
        names = ", ".join(sorted(features - FEATURES)) or "columnMapping"
        return f"Wirebook does not rewrite tables with the table features {names}: change the type of the column"
    return None


def _rewritten(
    folder: Location,
    actions: Collection[dict[str, Any]],
    columns: Schema,
    day: DayPartition | None,
    open_file: OpenFile,
) -> dict[str, AddAction]:
    """Rewrite the files that `actions` added. Returns the actions that add the new files, by path of the original
    file. After an `OSError` or an Arrow error, the new files are deleted; after store-failed, upkeep deletes them
    later.

    Raises: CommitFailed, store-failed
    """
    from deltalake.transaction import AddAction  # noqa: PLC0415

    schema = pa.schema([field for field in pa.schema(columns.to_arrow()) if day is None or field.name != day.column])
    added: dict[str, AddAction] = {}
    written: list[Location] = []
    try:
        for action in actions:
            source = unquote(urlparse(action["path"]).path)
            stem = source.rpartition("/")[2].removesuffix(".parquet")
            written.append(folder / f"{stem}-{uuid.uuid4().hex[:8]}.parquet")
            file = _rewrite(folder / source, written[-1], schema, open_file)
            value = action[f"partition.{day.column}"] if day else None
            values = {day.column: value and value.isoformat()} if day else {}
            now = time.time_ns() // 1_000_000
            added[action["path"]] = AddAction(written[-1].name, file.size, values, now, True, file.statistics)
        if isinstance(folder, Path):
            sync_folder(folder)
    except (OSError, pa.ArrowException) as error:
        for path in written:
            with suppress(FileNotFoundError):
                path.unlink()
        raise CommitFailed(f"its columns cannot be widened: {error}") from error
    return added


def _rewrite(source: Location, to: Location, schema: pa.Schema, open_file: OpenFile) -> TableWriter:
    """Copy the rows of a file to a new file with the columns `schema`. Returns the closed writer. Row groups are not
    larger than those of the original file.

    Raises: OSError, ArrowException, store-failed
    """
    with pq.ParquetFile(parquet_source(source), coerce_int96_timestamp_unit="us") as parquet:
        groups = (parquet.metadata.row_group(number).num_rows for number in range(parquet.num_row_groups))
        writer = open_file(to, schema)
        for batch in parquet.iter_batches(max(1, min(MAX_ROWS, max(groups, default=0)))):
            writer.write(conform(pa.Table.from_batches([batch]).replace_schema_metadata(), schema))
        writer.close()
    return writer
