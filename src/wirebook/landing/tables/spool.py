"""The spool of a task: buffers rows in memory, by table, until they are written to files or to the staging table."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.landing.chunks import UNKNOWN_TABLE, Numbers, TableBlock, TableInfo
from wirebook.landing.stores.locations import Location, is_file_system
from wirebook.landing.tables.comments import with_comments
from wirebook.landing.tables.formats import PLAIN, FileLayout, StagedFile, TableFormat, TableWriter
from wirebook.landing.tables.layout import STAGED, STAGED_SCHEMA
from wirebook.landing.tables.names import TablePlace
from wirebook.landing.tables.partitions import day_suffix, rows_by_day
from wirebook.landing.tables.staged import StagingPolicy, encode_rows

__all__ = ["NO_STAGING", "TableSpool"]

NO_STAGING = StagingPolicy()

MAX_STAGED = 1 << 20
"""Maximum bytes of a table's rows in a task that are staged. Above it, they get a file, however few rows they are."""

STAGED_PIECE = 4 << 20
"""Bytes of staged rows per write, and so per row group, so that readers of one table can skip the others."""

MAX_DAYS = 400
"""Maximum number of days of a table that get files in a task."""

CLOSED_AT_ONCE = 8
"""Number of threads that close files at the end of a task."""

CLOSED_IN_TURN = 4
"""Number of files that are passed to these threads together. Passing each file alone takes 3 to 5 % of the time of a
task of a stream."""


class _OpenFile(NamedTuple):
    """A file that is being written, the number of its rows, and the sort columns of the last row if the file is
    sorted."""

    table: str
    writer: TableWriter
    path: Location
    rows: int
    last: pa.Table | None = None


class HeldRows(NamedTuple):
    """Buffered rows of several tables, in one block. The block stays in memory until all of these rows are taken.

    Shape: the rows of the table with the number `tables[i]` are `counts[i]` rows of the block from `starts[i]` on.
    The number becomes -1 when they are taken, to be written or staged.
    """

    block: pa.Table
    tables: Numbers
    starts: Numbers
    counts: Numbers

    def take(self, rank: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Take the rows of the selected tables out of the buffer. Returns the rank, start and count of each run of
        rows. `rank` maps the number of a table to its rank, or to -1 if it is not selected. Its last item, which the
        number -1 selects, is -1, for rows already taken."""
        ranks = rank[self.tables]
        chosen = np.flatnonzero(ranks >= 0)
        self.tables[chosen] = -1
        return ranks[chosen], self.starts[chosen], self.counts[chosen]

    def compact(self) -> HeldRows:
        """Copy the rows that are still buffered, so that the memory of the block can be released."""
        kept = np.flatnonzero(self.tables >= 0)
        counts = self.counts[kept]
        rows = self.block.take(pa.array(_places(self.starts[kept], counts))).combine_chunks()
        return HeldRows(rows, self.tables[kept], np.cumsum(counts) - counts, counts)


def _places(starts: Numbers, counts: Numbers) -> Numbers:
    """The indices of the rows in runs with these starts and counts."""
    return np.arange(counts.sum()) + np.repeat(starts - np.cumsum(counts) + counts, counts)


def _sort(rows: pa.Table, order: list[tuple[str, str]]) -> pa.Table:
    places = pc.sort_indices(rows, order)  # stable
    return rows if (np.diff(places.to_numpy()) == 1).all() else rows.take(places)


def _follows(rows: pa.Table, last: pa.Table, order: list[tuple[str, str]]) -> bool:
    """Whether sorted rows can follow the last row of a sorted file."""
    first = rows.select(last.column_names).slice(0, 1)
    return bool(pc.sort_indices(pa.concat_tables([last, first]), order)[0].as_py() == 0)  # stable


class TableSpool:
    """Buffers the rows of a task by table and writes them to files: one file per table, unless too many are open, and
    one file for all tables that the staging policy selects. `base` is the path of `folder` in the staging folder of
    the batch, which is prepended to the paths of the files.

    Units: bytes. A table with `flush` bytes of buffered rows is written to its file. If all buffered rows exceed
    `budget`, the largest tables are written. At most `max_open` files are open. `staged` counts the staged rows by
    table. `layout_of` returns how the files of a table (name, XID, columns) are written. A table that is partitioned
    by day gets files for at most `MAX_DAYS` days in a task; the rows of further days, those with the fewest rows, are
    staged.
    """

    def __init__(
        self,
        table_format: TableFormat,
        folder: Location,
        prefix: str,
        *,
        base: str = "",
        layout_of: Callable[[str, str | None, pa.Schema], FileLayout] = lambda *_: PLAIN,
        staging_policy: StagingPolicy = NO_STAGING,
        flush: int = 32 << 20,
        budget: int = 96 << 20,
    ) -> None:
        self.files: list[StagedFile] = []
        self.staged: Counter[str] = Counter()
        self.max_open = 64
        self._format, self._folder, self._prefix, self._base = table_format, folder, prefix, base
        self._layout_of = layout_of
        self._layouts: dict[str, FileLayout] = {}
        self._days: dict[str, set[str]] = {}
        self._flush, self._budget, self._staging_policy = flush, budget, staging_policy
        self._names: list[str] = []  # of tables, by number
        self._numbers: dict[str, int] = {}
        self._definitions: dict[str, str] = {}
        self._schemas: dict[pa.Schema, int] = {}
        self._schema_of = np.zeros(0, np.int64)  # by number of a table, like the next two
        self._sizes = np.zeros(0, np.float64)
        self._rows = np.zeros(0, np.int64)
        self._written: set[str] = set()
        self._blocks: list[HeldRows] = []
        self._held = 0  # bytes of the blocks: one stays in memory until all of its rows are written
        self._open: dict[tuple[str, str | None], _OpenFile] = {}
        self._created = 0
        self._unclosed = set[TableWriter]()
        self._pool: ThreadPoolExecutor | None = None
        self._complete: list[_OpenFile] = []
        self._closing: deque[Future[list[StagedFile]]] = deque()

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
            self._close_complete()
            for files in self._closing:
                self.files += files.result()
        return self.files

    def abandon(self) -> None:
        """Abandon the files that are not closed, after a failure."""
        for writer in self._unclosed:
            writer.abandon()

    def _numbers_of(self, tables: Sequence[str], info: Mapping[str, TableInfo]) -> Numbers:
        """The numbers of tables. New tables are assigned one."""
        for table in sorted(set(tables).difference(self._numbers)):
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
        """Buffer rows of the staging table, and write them once they have the size of a piece."""
        number, size = self._numbers_of([STAGED], {}), rows.nbytes
        self._rows[number] += len(rows)
        self._sizes[number] += size
        self._held += size
        self._blocks.append(HeldRows(rows, number.copy(), np.zeros(1, np.int64), np.array([len(rows)])))
        if self._sizes[number[0]] >= STAGED_PIECE:
            self._write(number)

    def _rank(self, tables: Numbers) -> Numbers:
        """The index of each table in `tables`, or -1, as `HeldRows.take` expects it. Resets the counts of their rows
        and bytes."""
        rank = np.full(len(self._names) + 1, -1)
        rank[tables] = np.arange(len(tables))
        self._rows[tables] = self._sizes[tables] = 0
        return rank

    def _drop_blocks(self) -> None:
        """Drop blocks without buffered rows. `_held` includes them until `_make_room` runs."""
        self._blocks = [block for block in self._blocks if (block.tables >= 0).any()]

    def _gathered(self, tables: Numbers) -> pa.Table:
        """Take the rows of some tables that have the same columns, sorted by table.

        Cost: two copies of the rows, or three of those in blocks that have other rows, too. Concatenating slices
        instead would cost 4 µs for each slice and column, which is more than copying the rows if thousands of tables
        have two or three rows in each block.
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
        if table not in self._layouts:
            self._layouts[table] = self._layout_of(table, self._definitions.get(table), rows.schema)
        layout = self._layouts[table]
        if layout.day is None:
            self._write_rows((table, None), rows, layout)
            return
        days = self._days.setdefault(table, set())
        late = []
        for day, rows_of_day in rows_by_day(rows, layout.day):
            if day in days or len(days) < MAX_DAYS:
                days.add(day)
                self._write_rows((table, day), rows_of_day, layout)
            else:
                late.append(rows_of_day)
        if late:
            self._stage_rows([table], np.array([sum(map(len, late))]), pa.concat_tables(late).combine_chunks())

    def _write_rows(self, key: tuple[str, str | None], rows: pa.Table, layout: FileLayout) -> None:
        """Write rows of a table, or of one day if it is partitioned. Rows that would break the order of a sorted file
        get a new file."""
        order = self._order(rows.schema, layout)
        if order:
            rows = _sort(rows, order)
            last = self._open[key].last if key in self._open else None
            if last is not None and not _follows(rows, last, order):
                self._close(key)
        file = self._open.pop(key) if key in self._open else self._create(key, rows.schema, layout)
        file.writer.write(rows)
        last = rows.select([name for name, _ in order]).take([len(rows) - 1]) if order else None
        self._open[key] = file._replace(rows=file.rows + rows.num_rows, last=last)  # the most recently used

    def _order(self, schema: pa.Schema, layout: FileLayout) -> list[tuple[str, str]]:
        """The sort keys of a file with these columns."""
        columns = [self._format.column(name) for name in layout.sort]
        sortable = {field.name for field in schema if not pa.types.is_nested(field.type)}
        return [(name, "ascending") for name in columns if name in sortable]

    def _create(self, key: tuple[str, str | None], schema: pa.Schema, layout: FileLayout) -> _OpenFile:
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
        if layout.descriptions is not None:
            schema = with_comments(schema, layout.descriptions, b"comment")
        writer = self._format.open(path, schema, layout)
        self._unclosed.add(writer)
        return _OpenFile(table, writer, path, 0)

    def _close(self, key: tuple[str, str | None]) -> None:
        """Close a file. At the end of the task, another thread does so, which only waits for the disk or the store:
        Python work in that thread would delay the next files."""
        file = self._open.pop(key)
        if self._pool is None:
            self.files.append(self._closed(file))
            return
        file.writer.complete()
        self._complete.append(file)
        if len(self._complete) >= CLOSED_IN_TURN:
            self._close_complete()

    def _close_complete(self) -> None:
        """Pass the complete files to a thread, which closes them."""
        assert self._pool is not None
        files, self._complete = self._complete, []
        self._closing.append(self._pool.submit(lambda: list(map(self._closed, files))))
        if len(self._closing) * CLOSED_IN_TURN > self.max_open:
            self.files += self._closing.popleft().result()

    def _closed(self, file: _OpenFile) -> StagedFile:
        file.writer.close()
        self._unclosed.discard(file.writer)
        path = file.path
        place = path.name if is_file_system(path) else str(path).removeprefix(f"{self._folder}/")
        return StagedFile(file.table, f"{self._base}{place}", file.rows, file.writer.size, file.writer.statistics)

    def _close_all(self, table: str | None = None) -> None:
        """Close the files of a table, or all."""
        for key in [key for key in self._open if table in (None, key[0])]:
            self._close(key)
