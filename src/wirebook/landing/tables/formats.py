"""Table formats and the files of tables: tasks stage files of rows, the driver commits them, table by table.

A commit is idempotent per table and batch: repeating it, completely or in part, adds nothing.
"""

from __future__ import annotations

import math
import os
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirebook.landing.chunks import UNKNOWN_TABLE, Numbers, TableBlock, TableInfo
from wirebook.landing.stores.locations import (
    Location,
    folders_in,
    is_file_system,
    move,
    open_output,
    parquet_source,
    size_and_time,
)
from wirebook.landing.stores.objects import ObjectPath
from wirebook.landing.stores.records import sync_folder
from wirebook.landing.tables.comments import with_comments
from wirebook.landing.tables.evolution import widens
from wirebook.landing.tables.layout import STAGED, STAGED_SCHEMA
from wirebook.landing.tables.names import TablePlace
from wirebook.landing.tables.partitions import NO_DAY, DayPartition, day_in_name, day_suffix, rows_by_day
from wirebook.landing.tables.staged import StagingPolicy, encode_rows
from wirebook.problems import Problem, WirebookError

__all__ = [
    "HIVE_NULL",
    "NO_TRAITS",
    "PAUSES",
    "CommitFailed",
    "FileLayout",
    "ParquetFormat",
    "StagedFile",
    "TableFormat",
    "TableSpool",
    "TableTraits",
    "TableWriter",
    "Upkeep",
    "UpkeepOptions",
    "by_table",
    "clear_aside",
    "move_aside",
    "place_files",
    "staged_or_placed",
    "sync_new",
]

NO_STAGING = StagingPolicy()
MAX_STAGED = 1 << 20
"""Bytes of a table's rows in a task above which they get a file, however few they are."""
STAGED_PIECE = 4 << 20
"""Bytes of staged rows per write, so that readers of one table can skip the others."""
MAX_DAYS = 400
"""Days of a table that get files in a task."""
CLOSED_AT_ONCE = 8
"""Files that are closed at once at the end of a task."""
MIN_DICTIONARY_ROWS = 1000
"""A file with fewer rows has no dictionaries, which save at most 4 % of its size and take a quarter of the time."""
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


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


class FileLayout(msgspec.Struct, frozen=True):
    """How the files of a table are written.

    Shape: rows of each file are sorted by the columns `sort`, unless there is none. A row group has at most
    `row_group_rows`. `descriptions` of columns become comments; None: no comments.
    """

    day: DayPartition | None = None
    sort: tuple[str, ...] = ()
    row_group_rows: int | None = None
    descriptions: Mapping[str, str] | None = None


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


class TableFormat(Protocol):
    """How rows are written to files, and how files become part of a table."""

    name: str
    suffix: str
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

    def open(self, path: Location, schema: pa.Schema, row_group_rows: int | None = None) -> TableWriter:
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
        """The files that are part of the table, sorted by name, which is batch order."""

    def maintain(self, place: TablePlace, options: UpkeepOptions) -> Upkeep:
        """Do the upkeep that the format offers. Safe beside runs.

        Raises: OSError, CommitFailed, store-failed
        """


class ParquetFormat:
    """A folder of Parquet files. Renaming a staged file into the folder adds it to the table."""

    name = "parquet"
    suffix = ".parquet"
    tables_at_once = 8

    def own_name(self, root: Location, name: str) -> str:  # noqa: ARG002
        return name

    def namespace(self, root: Location) -> str:  # noqa: ARG002
        return ""

    def check(self, root: Location) -> None:
        if not is_file_system(root):
            message = f"tables of Parquet files need a file system that renames files, which '{root}' is not"
            hint = "choose another format, as in --format delta"
            raise WirebookError(Problem("unsupported-store", message, expected="delta", actual=self.name, hint=hint))

    def check_properties(self, properties: Mapping[str, str]) -> str | None:
        return "folders of Parquet files have no properties" if properties else None

    def column(self, name: str) -> str:
        return name

    def fit(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def can_widen(self, old: pa.DataType, new: pa.DataType, *, may_rewrite: bool = False) -> bool:  # noqa: ARG002
        return widens(old, new)

    def open(self, path: Location, schema: pa.Schema, row_group_rows: int | None = None) -> TableWriter:
        return ParquetWriter(path, schema, row_group_rows)

    def count(self, path: Location) -> int:
        return int(pq.read_metadata(parquet_source(path)).num_rows)

    def commit(
        self,
        place: TablePlace,
        batch: int,  # noqa: ARG002
        files: Mapping[Location, StagedFile],
        schema: pa.Schema,  # noqa: ARG002
        traits: TableTraits = NO_TRAITS,
    ) -> None:
        """Place the files, whose names are unique: those of a partition in its folder, as Hive names it."""
        folder, by_folder = place.folder, dict[Location, list[Location]]()
        for file in files:
            day = day_in_name(file.name)
            column = traits.day and day and traits.day.column
            value = HIVE_NULL if day == NO_DAY else day
            by_folder.setdefault(folder / f"{column}={value}" if column else folder, []).append(file)
        for subfolder, placed in by_folder.items():
            place_files(subfolder, placed)

    def wait(self) -> None:
        pass

    def files(self, place: TablePlace) -> list[Location]:
        folder = place.folder
        if isinstance(folder, Path):
            files: list[Location] = [*folder.glob("*.parquet"), *folder.glob("*=*/*.parquet")]
        else:
            below = (path for path, _ in folder.below() if path.name.endswith(".parquet"))
            files = [path for path in below if folder in (path.parent, path.parent.parent)]
        return sorted(files, key=lambda path: (path.name, str(path)))

    def maintain(self, place: TablePlace, options: UpkeepOptions) -> Upkeep:  # noqa: ARG002
        """Nothing: a folder has no transactions in which files could be replaced."""
        return Upkeep(place.name, len(self.files(place)))


class ParquetWriter:
    """A Parquet file."""

    def __init__(self, path: Location, schema: pa.Schema, row_group_rows: int | None) -> None:
        self._file, self._row_group_rows, self._schema = open_output(path), row_group_rows, schema
        self._writer: pq.ParquetWriter | None = None
        self._footers: list[pq.FileMetaData] = []
        self.size, self.statistics = 0, ""

    def write(self, rows: pa.Table) -> None:
        if self._writer is None:
            self._writer = self._started(rows.num_rows)
        self._writer.write_table(rows, self._row_group_rows)

    def complete(self) -> None:
        if not self._footers:
            (self._writer or self._started(0)).close()
            self.size, self.statistics = self._file.tell(), self._summary(self._footers[0])

    def close(self) -> None:
        self.complete()
        self._file.close()

    def _summary(self, footer: pq.FileMetaData) -> str:  # noqa: ARG002
        """What the log of a table says about the values of the file."""
        return ""

    def _started(self, rows: int) -> pq.ParquetWriter:
        """Begin the file. Its first piece has so many rows, and mostly there is no other."""
        paths = [path for field in self._schema for path in _text_paths(field)] if rows >= MIN_DICTIONARY_ROWS else []
        return pq.ParquetWriter(
            self._file,
            self._schema,
            compression="snappy",
            use_dictionary=paths,
            metadata_collector=self._footers,
        )


class SummarisedParquetWriter(ParquetWriter):
    """A Parquet file whose statistics `summarise` makes from its footer, and from the paths of floats without NaN."""

    def __init__(
        self,
        path: Location,
        schema: pa.Schema,
        row_group_rows: int | None,
        summarise: Callable[[pq.FileMetaData, Collection[tuple[str, ...]]], str],
    ) -> None:
        super().__init__(path, schema, row_group_rows)
        self._summarise = summarise
        self._without_nan = {path for field in schema for path in _float_paths(field)}

    def write(self, rows: pa.Table) -> None:
        super().write(rows)
        self._without_nan -= {path for path in self._without_nan if _may_have_nan(rows, path)}

    def _summary(self, footer: pq.FileMetaData) -> str:
        return self._summarise(footer, self._without_nan)


def _may_have_nan(rows: pa.Table, path: tuple[str, ...]) -> bool:
    """Whether NaN may be among some floats: their sum is NaN then, or if they are infinite."""
    column = rows.column(path[0])
    total = pc.sum(pc.struct_field(column, path[1:]) if len(path) > 1 else column).as_py()
    return total is not None and math.isnan(total)


def _float_paths(field: pa.Field) -> Iterator[tuple[str, ...]]:
    """The names that lead to each float in a column, or in structs within it."""
    if pa.types.is_struct(field.type):
        for member in field.type:
            yield from ((field.name, *path) for path in _float_paths(member))
    elif pa.types.is_float32(field.type) or pa.types.is_float64(field.type):
        yield (field.name,)


def _text_paths(field: pa.Field, path: str = "") -> Iterator[str]:
    """The Parquet paths of the texts in a column. Only these have dictionaries: numbers and times seldom repeat, and to
    look up each of them costs a fifth of the time to write a file."""
    kinds, type_, path = pa.types, field.type, f"{path}{field.name}"
    if kinds.is_string(type_):
        yield path
    elif kinds.is_struct(type_):
        for member in type_:
            yield from _text_paths(member, f"{path}.")
    elif kinds.is_list(type_):
        yield from _text_paths(type_.value_field.with_name("element"), f"{path}.list.")
    elif kinds.is_map(type_):
        yield from _text_paths(type_.key_field.with_name("key"), f"{path}.key_value.")
        yield from _text_paths(type_.item_field.with_name("value"), f"{path}.key_value.")


def place_files(folder: Location, files: Iterable[Location]) -> None:
    """Move staged files into the folder of their table, unless they are there already. Objects were written there,
    unless they have been set aside.

    Raises: OSError, store-failed
    """
    if not is_file_system(folder):
        _copy_objects(files, folder)
        return
    if isinstance(folder, Path):
        folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        try:
            move(file, folder / file.name)
        except FileNotFoundError:  # moved by an earlier attempt, or else lost
            size_and_time(folder / file.name)
    if isinstance(folder, Path):
        sync_folder(folder)


def staged_or_placed(file: Location, folder: Location) -> Location:
    """Where a staged file is, which an earlier attempt may have moved into the folder of its table."""
    return file if not is_file_system(file) or file.exists() else folder / file.name


def move_aside(aside: Location, files: Iterable[Location], folder: Location) -> None:
    """Move staged files, which the table in `folder` does not take, to the folder `aside`, unless they are there.

    Raises: OSError, store-failed
    """
    if not is_file_system(aside):
        _copy_objects(files, aside)
        return
    if isinstance(aside, Path):
        aside.mkdir(parents=True, exist_ok=True)
    for file in files:
        days = (folder / name / file.name for name in folders_in(folder) if "=" in name)
        for place in (file, folder / file.name, *days):
            if place != aside / file.name and place.exists():  # HDFS refuses to move a file to its own place
                move(place, aside / file.name)
    if isinstance(aside, Path):
        sync_folder(aside)


def _copy_objects(files: Iterable[Location], folder: Location) -> None:
    """Copy objects to a folder, unless they are in it. Raises: OSError, store-failed"""
    for file in files:
        to = folder / file.name
        if isinstance(file, ObjectPath) and isinstance(to, ObjectPath) and file != to:
            file.copy_to(to)


def clear_aside(aside: Location) -> None:
    """Delete a folder whose files have become part of their table."""
    if isinstance(aside, ObjectPath):
        for path, _ in aside.below():
            path.unlink()
        return
    with suppress(OSError):  # another table has files there
        for folder in (aside, *aside.parents):
            folder.rmdir()


def sync_new(folder: Location, since: float) -> None:
    """Flush files of a folder that were written since a moment, so that they survive a power failure.

    Raises: OSError
    """
    if isinstance(folder, ObjectPath):
        return
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # another writer has deleted what a failed commit left
            if path.stat().st_mtime >= since - 1:
                with path.open("rb") as file:
                    os.fsync(file.fileno())
    sync_folder(folder)


class HeldRows(NamedTuple):
    """Rows of a block of tables, which stays in memory as long as they are kept.

    Shape: the rows of the table with the number `tables[i]` are `counts[i]` rows from `starts[i]` on; the number is -1
    once they are written or staged.
    """

    block: pa.Table
    tables: Numbers
    starts: Numbers
    counts: Numbers

    def take(self, rank: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """The rank, start and count of the rows of the selected tables, which are not kept any longer. `rank` maps the
        number of a table to its rank, or to -1 if it is not selected; its last item, -1, is for rows already taken."""
        ranks = rank[self.tables]
        chosen = np.flatnonzero(ranks >= 0)
        self.tables[chosen] = -1
        return ranks[chosen], self.starts[chosen], self.counts[chosen]

    def compact(self) -> HeldRows:
        """The rows that are kept, in memory of their own."""
        kept = np.flatnonzero(self.tables >= 0)
        counts = self.counts[kept]
        rows = self.block.take(pa.array(_places(self.starts[kept], counts))).combine_chunks()
        return HeldRows(rows, self.tables[kept], np.cumsum(counts) - counts, counts)


def _places(starts: Numbers, counts: Numbers) -> Numbers:
    """The places of some runs of rows."""
    return np.arange(counts.sum()) + np.repeat(starts - np.cumsum(counts) + counts, counts)


class TableSpool:
    """Buffers the rows of a task by table and writes them to files: one file per table, unless too many are open, and
    one file for all tables that the staging policy selects. The paths of the files are relative to `base`.

    Units: bytes. A table with `flush` bytes of rows is written to its file; if more than `budget` are buffered, the
    largest tables are. At most `max_open` files are open. `staged` counts the staged rows by table. `options_of`
    returns how the files of a table (name, XID, columns) are written. Of a table that is partitioned by day, at most
    `MAX_DAYS` days of a task have files; the rows of further days, those with the fewest rows, are staged.
    """

    def __init__(
        self,
        table_format: TableFormat,
        folder: Location,
        prefix: str,
        *,
        base: str = "",
        options_of: Callable[[str, str | None, pa.Schema], FileLayout] = lambda *_: PLAIN,
        staging_policy: StagingPolicy = NO_STAGING,
        flush: int = 32 << 20,
        budget: int = 96 << 20,
    ) -> None:
        self.files: list[StagedFile] = []
        self.staged: Counter[str] = Counter()
        self.max_open = 64
        self._format, self._folder, self._prefix, self._base = table_format, folder, prefix, base
        self._options_of = options_of
        self._options: dict[str, FileLayout] = {}
        self._days: dict[str, set[str]] = {}
        self._flush, self._budget, self._staging_policy = flush, budget, staging_policy
        self._names: list[str] = []  # of tables, by number
        self._numbers: dict[str, int] = {}
        self._definitions: dict[str, str] = {}
        self._schemas: dict[pa.Schema, int] = {}
        self._schema_of = np.zeros(0, np.int64)  # by number of a table, as the rest
        self._sizes = np.zeros(0, np.float64)
        self._rows = np.zeros(0, np.int64)
        self._written: set[str] = set()
        self._blocks: list[HeldRows] = []
        self._held = 0  # bytes of the blocks: one stays in memory until all of its rows are written
        self._open: dict[tuple[str, str | None], tuple[TableWriter, Location, int]] = {}
        self._created = 0
        self._pool: ThreadPoolExecutor | None = None
        self._closing: deque[Future[StagedFile]] = deque()

    @cached_property
    def staged_schema(self) -> pa.Schema:
        """The columns of the staging table in this format."""
        named = pa.schema([field.with_name(self._format.column(field.name)) for field in STAGED_SCHEMA])
        return self._format.fit(named)

    def add(self, table: str, rows: pa.Table, definition: str | None = None) -> None:
        """Add rows of a table. Only rows with a `definition` (an XID) may be staged."""
        self.add_block(TableBlock.of(table, rows), {table: TableInfo(definition)})

    def add_block(self, block: TableBlock, info: Mapping[str, TableInfo]) -> None:
        """Add rows of several tables. Only rows with a definition may be staged."""
        if not block.rows.num_rows:
            return
        numbers = self._numbers_of(block.names, info)
        counts, size = np.diff(block.bounds), block.rows.nbytes
        self._schema_of[numbers] = self._schemas.setdefault(block.rows.schema, len(self._schemas))
        np.add.at(self._rows, numbers, counts)
        np.add.at(self._sizes, numbers, counts * (size / block.rows.num_rows))
        self._blocks.append(HeldRows(block.rows, numbers, block.bounds[:-1], counts))
        self._held += size
        if len(large := np.flatnonzero(self._sizes >= self._flush)):
            self._write(large)
        if self._held > self._budget:
            self._make_room()

    def finish(self) -> list[StagedFile]:
        """Write and close everything; returns the files of the task."""
        self._stage_small()
        with ThreadPoolExecutor(CLOSED_AT_ONCE) as self._pool:
            staged = self._numbers_of([STAGED], {})
            own = np.flatnonzero(self._rows)
            self._write(own[own != staged], is_last=True)  # may stage some of the rows
            self._write(staged)
            self._close_all()
            self.files += [file.result() for file in self._closing]
        return self.files

    def _numbers_of(self, tables: Sequence[str], info: Mapping[str, TableInfo]) -> Numbers:
        """The numbers of tables. New tables get one."""
        for table in tables:
            if table not in self._numbers:
                self._numbers[table] = len(self._names)
                self._names.append(table)
                if (definition := info.get(table, UNKNOWN_TABLE).definition) is not None:
                    self._definitions[table] = definition
        if (new := len(self._names) - len(self._rows)) > 0:
            self._schema_of, self._sizes, self._rows = (
                np.concatenate([of_tables, np.zeros(new, of_tables.dtype)])
                for of_tables in (self._schema_of, self._sizes, self._rows)
            )
        return np.fromiter(map(self._numbers.__getitem__, tables), np.int64, len(tables))

    def _make_room(self) -> None:
        """Write until half of the budget is free, and copy the rest so that the memory of its blocks is released."""
        self._stage_small()
        by_size = np.argsort(-self._sizes, kind="stable")
        rest = self._sizes.sum() - np.cumsum(self._sizes[by_size])  # bytes left after writing each
        count = np.count_nonzero(rest + self._sizes[by_size] >= self._budget // 2)
        self._write(by_size[:count])
        self._blocks = [block.compact() for block in self._blocks]
        self._held = int(self._sizes.sum())
        pa.default_memory_pool().release_unused()

    def _stage_small(self) -> None:
        """Move the rows of tables that the staging policy selects to the staging table."""
        small = np.flatnonzero((self._rows > 0) & (self._sizes <= MAX_STAGED)).tolist()
        names = ((self._names[number], number) for number in small)
        known = {name: number for name, number in names if name in self._definitions and name not in self._written}
        counts = {name: int(self._rows[number]) + self.staged[name] for name, number in known.items()}
        alike: dict[int, list[int]] = {}
        for table in self._staging_policy.choose(counts):
            alike.setdefault(int(self._schema_of[known[table]]), []).append(known[table])
        for tables in alike.values():
            self._stage(np.array(tables))

    def _stage(self, tables: Numbers) -> None:
        """Move all rows of tables that have the same columns to the staging table, in pieces."""
        counts = self._rows[tables]
        self._stage_rows([self._names[number] for number in tables], counts, self._gathered(tables))

    def _stage_rows(self, tables: Sequence[str], counts: Numbers, rows: pa.Table) -> None:
        """Move rows, `counts` of each table, to the staging table."""
        self.staged.update(dict(zip(tables, counts.tolist(), strict=True)))
        owners = pa.array(np.repeat(np.arange(len(tables)), counts))
        names = pa.array(tables, pa.string()).take(owners)
        definitions = pa.array([self._definitions[table] for table in tables], pa.string()).take(owners)
        encoded = encode_rows(rows, names, definitions, self.staged_schema)
        step = max(1, STAGED_PIECE * len(encoded) // max(encoded.nbytes, 1))
        for piece in (encoded.slice(start, step) for start in range(0, len(encoded), step)):
            self._keep_staged(piece)

    def _keep_staged(self, rows: pa.Table) -> None:
        """Add rows of the staging table, and write its rows if they are a piece."""
        number, size = self._numbers_of([STAGED], {}), rows.nbytes
        self._rows[number] += len(rows)
        self._sizes[number] += size
        self._held += size
        self._blocks.append(HeldRows(rows, number.copy(), np.zeros(1, np.int64), np.array([len(rows)])))
        if self._sizes[number[0]] >= STAGED_PIECE:
            self._write(number)

    def _rank(self, tables: Numbers) -> Numbers:
        """The place of each table in `tables`, or -1, as `HeldRows.take` expects it. Their rows are not counted any
        longer."""
        rank = np.full(len(self._names) + 1, -1)
        rank[tables] = np.arange(len(tables))
        self._rows[tables] = self._sizes[tables] = 0
        return rank

    def _drop_blocks(self) -> None:
        """Drop blocks of which no rows are kept. `_held` counts them until room is made."""
        self._blocks = [block for block in self._blocks if (block.tables >= 0).any()]

    def _gathered(self, tables: Numbers) -> pa.Table:
        """The rows of some tables that have the same columns, table after table.

        Cost: two copies of the rows, or three of those in blocks that have other rows too. Concatenating the slices
        costs 4 µs for each slice and column, which is more than the rows if thousands of tables have two or three rows
        in each block.
        """
        rank = self._rank(tables)
        parts, owners = [], []
        for held in self._blocks:
            ranks, starts, counts = held.take(rank)
            if len(ranks):
                is_whole = counts.sum() == len(held.block)
                parts.append(held.block if is_whole else held.block.take(pa.array(_places(starts, counts))))
                owners.append(np.repeat(ranks, counts))
        self._drop_blocks()
        order = np.argsort(np.concatenate(owners), kind="stable")
        return pa.concat_tables(parts).combine_chunks().take(pa.array(order)).combine_chunks()

    def _write(self, tables: Numbers, *, is_last: bool = False) -> None:
        """Write the rows of tables to their files, or to a file for each day. Close the files if `is_last`."""
        rank = self._rank(tables)
        slices: list[list[pa.Table]] = [[] for _ in tables]
        for held in self._blocks:
            for place, start, count in zip(*map(np.ndarray.tolist, held.take(rank)), strict=True):
                slices[place].append(held.block.slice(start, count))
        self._drop_blocks()
        for number, of_table in zip(tables.tolist(), slices, strict=True):
            if of_table:
                self._write_table(self._names[number], pa.concat_tables(of_table).combine_chunks())
                if is_last:
                    self._close_all(self._names[number])

    def _write_table(self, table: str, rows: pa.Table) -> None:
        self._written.add(table)
        if table not in self._options:
            self._options[table] = self._options_of(table, self._definitions.get(table), rows.schema)
        options = self._options[table]
        if options.day is None:
            self._write_rows((table, None), rows, options)
            return
        days = self._days.setdefault(table, set())
        late = []
        for day, rows_of_day in rows_by_day(rows, options.day):
            if day in days or len(days) < MAX_DAYS:
                days.add(day)
                self._write_rows((table, day), rows_of_day, options)
            else:
                late.append(rows_of_day)
        if late:
            self._stage_rows([table], np.array([sum(map(len, late))]), pa.concat_tables(late).combine_chunks())

    def _write_rows(self, key: tuple[str, str | None], rows: pa.Table, options: FileLayout) -> None:
        """Write rows of a table, and of a day if the table is partitioned."""
        columns = [self._format.column(name) for name in options.sort]
        sortable = {field.name for field in rows.schema if not pa.types.is_nested(field.type)}
        if order := [(name, "ascending") for name in columns if name in sortable]:
            rows = rows.take(pc.sort_indices(rows, order))
        writer, path, count = self._open.pop(key) if key in self._open else self._create(key, rows.schema, options)
        writer.write(rows)
        self._open[key] = (writer, path, count + rows.num_rows)  # the most recently used
        if order:  # what is written later is sorted by itself
            self._close(key)

    def _create(
        self, key: tuple[str, str | None], schema: pa.Schema, options: FileLayout
    ) -> tuple[TableWriter, Location, int]:
        table, day = key
        if len(self._open) >= self.max_open:
            self._close(next(iter(self._open)))
        is_staged = is_file_system(self._folder)
        folder = self._folder if is_staged else TablePlace(self._folder, table).folder
        if isinstance(folder, Path):
            folder.mkdir(parents=True, exist_ok=True)
        of_day = "" if day is None else day_suffix(day)
        path = folder / f"{self._prefix}-{self._created}{of_day}{self._format.suffix}"
        self._created += 1
        if options.descriptions is not None:
            schema = with_comments(schema, options.descriptions, b"comment")
        return self._format.open(path, schema, options.row_group_rows), path, 0

    def _close(self, key: tuple[str, str | None]) -> None:
        """Close a file; at the end of the task in another thread, which only waits for the disk or the store: work of
        Python in it would hold up the next files."""
        writer, path, rows = self._open.pop(key)
        if self._pool is None:
            self.files.append(self._closed(key, writer, path, rows))
            return
        writer.complete()
        self._closing.append(self._pool.submit(self._closed, key, writer, path, rows))
        if len(self._closing) > self.max_open:
            self.files.append(self._closing.popleft().result())

    def _closed(self, key: tuple[str, str | None], writer: TableWriter, path: Location, rows: int) -> StagedFile:
        writer.close()
        place = path.name if is_file_system(path) else str(path).removeprefix(f"{self._folder}/")
        return StagedFile(key[0], f"{self._base}{place}", rows, writer.size, writer.statistics)

    def _close_all(self, table: str | None = None) -> None:
        """Close the files of a table, or all."""
        for key in [key for key in self._open if table in (None, key[0])]:
            self._close(key)


def by_table(files: Iterable[StagedFile]) -> Iterator[tuple[str, list[StagedFile]]]:
    """The files of each table."""
    grouped: dict[str, list[StagedFile]] = {}
    for file in files:
        grouped.setdefault(file.table, []).append(file)
    return iter(sorted(grouped.items()))
