"""The interface of table formats: tasks write files of rows, and the driver commits them, table by table.

A commit is idempotent per table and batch: repeating it, completely or in part, adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec
import pyarrow as pa

from wirebook.landing.stores.locations import Location
from wirebook.landing.tables.layout import OWN_TABLES, STAGED
from wirebook.landing.tables.names import TablePlace
from wirebook.landing.tables.partitions import DayPartition, Partition
from wirebook.problems import Problem

__all__ = [
    "NO_PROPERTIES",
    "NO_TRAITS",
    "PAUSES",
    "PLAIN",
    "CommitFailed",
    "FileLayout",
    "StagedFile",
    "TableFormat",
    "TableTraits",
    "TableWriter",
    "Upkeep",
    "UpkeepOptions",
    "by_table",
    "own_traits",
    "unreadable_table",
]


class CommitFailed(Exception):
    """A table cannot be read or changed: a transaction failed, or is not possible."""


class TableTraits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a table has besides its columns.

    Shape: `day` is the partition; `properties` are those of the table format; `description` is that of the
    definition; `comments` are the descriptions of columns in the payload schema. If `is_named`, the settings give the
    name of the table, so another program may have made it. Without `adds_columns`, no columns are added to it. If
    `may_rewrite`, it is rewritten when a column becomes wider and the format cannot widen it in place.
    """

    day: DayPartition | None = None
    properties: dict[str, str] = {}
    description: str | None = None
    comments: dict[str, str] = {}
    is_named: bool = False
    adds_columns: bool = True
    may_rewrite: bool = False


NO_TRAITS: Final = TableTraits()
NO_PROPERTIES: Final[Mapping[str, str]] = {}


def own_traits(table: str) -> TableTraits:
    """The traits of a new table without a definition, such as `dead_letters`."""
    own = OWN_TABLES.get(table)
    return NO_TRAITS if own is None else TableTraits(description=own.contents.capitalize(), comments=own.comments)


class FileLayout(msgspec.Struct, frozen=True):
    """How the files of a table are written.

    Shape: `day` is the partition. The rows of each file are sorted by the columns `sort`, if there are any. A row
    group has at most `row_group_rows` rows. `descriptions` of columns become comments; None: no comments.
    `properties` are the table properties in the settings. Without `dictionaries`, strings are not dictionary-encoded.
    """

    day: DayPartition | None = None
    sort: tuple[str, ...] = ()
    row_group_rows: int | None = None
    descriptions: Mapping[str, str] | None = None
    properties: Mapping[str, str] = NO_PROPERTIES
    dictionaries: bool = True


PLAIN: Final = FileLayout()


class StagedFile(msgspec.Struct, frozen=True):
    """A file with rows of one table that is written but not committed yet. (Staged *rows* are something else: rows of
    the staging table; see `tables.staged`.)

    Shape: `path` is relative to the staging folder of the batch, and `size` is in bytes. `statistics` are those of
    the file in the log of the table, if the format has them and a task has just written the file; manifests do not
    keep them.
    """

    table: str
    path: str
    rows: int
    size: int = 0
    statistics: str = ""

    @property
    def name(self) -> str:
        """The name of the file in the folder of its table."""
        return self.path.rpartition("/")[2]


PAUSES: Final = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 6.4)
"""Seconds to wait after each attempt to commit that failed because another writer committed first."""


@dataclass(frozen=True, slots=True)
class UpkeepOptions:
    """Options of the upkeep of a table: compaction, and the deletion of versions and files that are no longer needed.

    Units: `retain_hours` is how long files are kept that no longer belong to the table, for running queries and for
    readers of earlier versions; `target_bytes` is the size of a file after compaction. Without `compacts`, small
    files are not compacted; without `deletes`, no files are deleted. A `dry_run` only counts and changes nothing.
    """

    retain_hours: int = 168
    target_bytes: int = 128 << 20
    compacts: bool = True
    dry_run: bool = False
    deletes: bool = True

    def retained_since(self, now: float) -> int:
        """The start of the retention period, in milliseconds, at the time `now`, in seconds. Older files may be
        deleted."""
        return int((now - self.retain_hours * 3600) * 1000)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The result of the upkeep of a table, or of a dry run.

    Shape: `files` counts the files of the table before the upkeep, `compacted` files that were replaced with larger
    ones, `deleted` files that were deleted, and `expired` versions. `problem` is the reason why the table could not
    be maintained.
    """

    table: str
    files: int
    compacted: int = 0
    deleted: int = 0
    expired: int = 0
    problem: Problem | None = None


class TableWriter(Protocol):
    """An open file of one table. Once complete, it has its `size` in bytes and its `statistics`, as in `StagedFile`."""

    size: int
    statistics: str

    def write(self, rows: pa.Table) -> None: ...

    def complete(self) -> None:
        """Write everything that follows the rows, such as the Parquet footer."""

    def close(self) -> None:
        """Complete the file if necessary, and make it durable, which mostly waits for the disk or the store."""

    def abandon(self) -> None:
        """Release a file that will not be committed. In an object store, the object is not completed."""


class TableFormat(Protocol):
    """How rows are written to files, and how files become part of a table."""

    name: str
    suffix: str
    partition: Partition
    """How new tables are partitioned, unless the settings specify it."""
    tables_at_once: int
    """How many tables in a folder may be committed concurrently. A commit mostly waits for the disk."""

    def own_name(self, root: Location, name: str) -> str:
        """The name of a table within a target: without a catalogue and a namespace that are those of the target.

        Raises: WirebookError (table-settings), if it names another catalogue
        """

    def namespace(self, root: Location) -> str:
        """The namespace of tables of a target whose names have no levels; empty if the format has no namespaces."""

    def check(self, root: Location) -> None:
        """Check that the packages of the format are installed, and that the format can be written to `root`.

        Raises: WirebookError (missing-extra, unsupported-store)
        """

    def check_properties(self, properties: Mapping[str, str]) -> str | None:
        """The reason why tables of this format cannot have these properties; None if they can."""

    def column(self, name: str) -> str:
        """The name of a column in this format, which may reserve some names."""

    def fit(self, schema: pa.Schema) -> pa.Schema:
        """The columns, with their types converted to types that the format supports, without loss."""

    def can_widen(self, old: pa.DataType, new: pa.DataType, *, may_rewrite: bool = False) -> bool:
        """Whether a column can change its type from `old` to `new`: without changing existing files, or because the
        table `may_rewrite`."""

    def open(self, path: Location, schema: pa.Schema, layout: FileLayout = PLAIN) -> TableWriter:
        """Open a staged file for writing, in a task."""

    def count(self, path: Location) -> int:
        """The number of rows of a staged file, read from the file itself, on the driver."""

    def commit(
        self,
        place: TablePlace,
        batch: int,
        files: Mapping[Location, StagedFile],
        schema: pa.Schema,
        traits: TableTraits = NO_TRAITS,
    ) -> None:
        """Add the staged files of a batch to the table, which has the columns `schema` from then on.

        Runs on the driver. Idempotent. Batches are committed in the order of their numbers.

        Raises: OSError, CommitFailed
        """

    def wait(self) -> None:
        """Wait for work that commits have left to other threads, such as checkpoints."""

    def files(self, place: TablePlace) -> list[Location]:
        """The files that are part of the table, sorted by name, which is batch order.

        Raises: OSError, CommitFailed, store-failed, iceberg-catalog-failed
        """

    def deleted_rows(self, place: TablePlace) -> dict[str, pa.Int64Array]:
        """The positions of rows that are still in data files of the table but are marked as deleted by other files,
        in ascending order, by file name. Wirebook itself deletes no rows.

        Raises: unreadable-deletions, OSError, CommitFailed, iceberg-catalog-failed
        """

    def how_to_mend(self, table: str, reason: str) -> str | None:
        """How to fix the cause of a `CommitFailed` for a table of this name; None if the reason says it itself."""

    def maintain(self, place: TablePlace, options: UpkeepOptions) -> Upkeep:
        """Do the upkeep that the format supports. Safe while runs write to the table.

        Raises: OSError, CommitFailed, store-failed
        """


def unreadable_table(
    table: str, error: Exception, *, mend: str | None = None, folder: Location | None = None
) -> Problem:
    """The problem of a table, or of one of its files, that cannot be read. `mend` is the advice of
    `TableFormat.how_to_mend`."""
    message = f"the table '{table}' cannot be read: {error}"
    if table == STAGED:
        message += "; tables with staged rows cannot be read either"
    hint = f"{mend or 'restore its missing or damaged files, or correct the table'}; then run the command again"
    return Problem("unreadable-table", message, file=None if folder is None else str(folder), hint=hint)


def by_table(files: Iterable[StagedFile]) -> Iterator[tuple[str, list[StagedFile]]]:
    """The files of each table, sorted by table."""
    grouped: dict[str, list[StagedFile]] = {}
    for file in files:
        grouped.setdefault(file.table, []).append(file)
    return iter(sorted(grouped.items()))
