"""Table formats: how tasks write files of rows, and how the driver commits them, table by table.

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
    """A table cannot be read or changed: its transaction failed, or cannot be made."""


class TableTraits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a table has beside its columns: its partition, its properties, the description of its definition, and those
    of columns in the schema of the payload, as `comments`. The name of a table that `is_named` is in the settings, so
    that it may be a table of something else. A table without `adds_columns` keeps the columns that it has. One that
    `may_rewrite` is rewritten if a column becomes wider and the format cannot do so otherwise."""

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
    """The traits of a new table without a definition."""
    own = OWN_TABLES.get(table)
    return NO_TRAITS if own is None else TableTraits(description=own.contents.capitalize(), comments=own.comments)


class FileLayout(msgspec.Struct, frozen=True):
    """How the files of a table are written.

    Shape: rows of each file are sorted by the columns `sort`, unless there is none. A row group has at most
    `row_group_rows`. `descriptions` of columns become comments; None: no comments. `properties` are those that the
    settings give the table. Without `dictionaries`, texts that repeat are not encoded as such.
    """

    day: DayPartition | None = None
    sort: tuple[str, ...] = ()
    row_group_rows: int | None = None
    descriptions: Mapping[str, str] | None = None
    properties: Mapping[str, str] = NO_PROPERTIES
    dictionaries: bool = True


PLAIN: Final = FileLayout()


class StagedFile(msgspec.Struct, frozen=True):
    """Rows of one table in a file that is not committed; `path` is relative to the batch's staging folder, and `size`
    in bytes. `statistics` are what the log of the table says about the values, if a task has just written the file;
    manifests do not keep them."""

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
"""Seconds to wait after each attempt to commit that failed because another writer was faster."""


@dataclass(frozen=True, slots=True)
class UpkeepOptions:
    """What upkeep may do.

    Units: `retain_hours` is how long files are kept that the table no longer has, so that readers can go on and earlier
    versions can be read; `target_bytes` is the size of a file after compaction. Without `compacts`, small files stay,
    and without `deletes`, all do. A `dry_run` counts and changes nothing.
    """

    retain_hours: int = 168
    target_bytes: int = 128 << 20
    compacts: bool = True
    dry_run: bool = False
    deletes: bool = True

    def retained_since(self, now: float) -> int:
        """The beginning of the retention, in milliseconds, at the time `now`, in seconds: what is older may go."""
        return int((now - self.retain_hours * 3600) * 1000)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What upkeep did to a table, or would do.

    Shape: `compacted` counts files that were replaced by larger ones, `deleted` files that no version needs any more,
    and `expired` versions. `problem` is why the table could not be maintained.
    """

    table: str
    files: int
    compacted: int = 0
    deleted: int = 0
    expired: int = 0
    problem: Problem | None = None


class TableWriter(Protocol):
    """An open file of one table. Once complete, it has its `size` in bytes and `statistics` as in `StagedFile`."""

    size: int
    statistics: str

    def write(self, rows: pa.Table) -> None: ...

    def complete(self) -> None:
        """Write what follows the rows."""

    def close(self) -> None:
        """Complete the file if it is not, and make it durable, which is mostly waiting."""

    def abandon(self) -> None:
        """Let go of a file that does not count. An object of a store is not completed."""


class TableFormat(Protocol):
    """How rows are written to files, and how files become part of a table."""

    name: str
    suffix: str
    partition: Partition
    """How new tables are partitioned, unless the settings say so."""
    tables_at_once: int
    """How many tables of a folder may be committed at once; most of the time of a commit is waiting for the disk."""

    def own_name(self, root: Location, name: str) -> str:
        """The name of a table in a target, without a catalogue and a namespace that are those of the target anyway.

        Raises: WirebookError (table-settings), if it names another catalogue
        """

    def namespace(self, root: Location) -> str:
        """The namespace of the tables of a target whose names have none; empty if the format has no namespaces."""

    def check(self, root: Location) -> None:
        """Check that the packages of the format are installed, and that it can be written to `root`.

        Raises: WirebookError (missing-extra, unsupported-store)
        """

    def check_properties(self, properties: Mapping[str, str]) -> str | None:
        """Why tables of this format cannot have these properties; None if they can."""

    def column(self, name: str) -> str:
        """The name of a column in this format, which may reserve some names."""

    def fit(self, schema: pa.Schema) -> pa.Schema:
        """The columns with types that the format supports, without loss."""

    def can_widen(self, old: pa.DataType, new: pa.DataType, *, may_rewrite: bool = False) -> bool:
        """Whether a column can change its type: while files with the old type are in the table, or because the table
        `may_rewrite`."""

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
        """Make the staged files of a batch part of the table, which has the columns `schema` from then on.

        Runs on the driver. Idempotent; batches arrive in the order of their numbers.

        Raises: OSError, CommitFailed
        """

    def wait(self) -> None:
        """Wait for the work that commits have left to other threads."""

    def files(self, place: TablePlace) -> list[Location]:
        """The files that are part of the table, sorted by name, which is batch order.

        Raises: OSError, CommitFailed, store-failed, iceberg-catalog-failed
        """

    def deleted_rows(self, place: TablePlace) -> dict[str, pa.Int64Array]:
        """The positions of rows that are in files of the table and have been deleted from it by other files, in
        ascending order, by name of file. Wirebook itself deletes none.

        Raises: unreadable-deletions, OSError, CommitFailed, iceberg-catalog-failed
        """

    def how_to_mend(self, table: str, reason: str) -> str | None:
        """What removes the reason of a `CommitFailed`, for a table of this name; None if the reason says it itself."""

    def maintain(self, place: TablePlace, options: UpkeepOptions) -> Upkeep:
        """Do the upkeep that the format offers. Safe beside runs.

        Raises: OSError, CommitFailed, store-failed
        """


def unreadable_table(
    table: str, error: Exception, *, mend: str | None = None, folder: Location | None = None
) -> Problem:
    """The problem of a table, or of a file of it, that cannot be read. `mend` is what the format has against it."""
    message = f"the table '{table}' cannot be read: {error}"
    if table == STAGED:
        message += "; tables with staged rows cannot be read either"
    hint = f"{mend or 'restore its missing or damaged files, or correct the table'}; then run the command again"
    return Problem("unreadable-table", message, file=None if folder is None else str(folder), hint=hint)


def by_table(files: Iterable[StagedFile]) -> Iterator[tuple[str, list[StagedFile]]]:
    """The files of each table."""
    grouped: dict[str, list[StagedFile]] = {}
    for file in files:
        grouped.setdefault(file.table, []).append(file)
    return iter(sorted(grouped.items()))
