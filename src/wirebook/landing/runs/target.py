"""The target: the folder or object store prefix where messages land. One run at a time begins, commits and finishes
batches; a crash loses nothing.

A batch is *begun* (a record lists its splits and its catalogue, before anything is read), its files are *staged*, it is
*committed* (its manifest is written; from then on it counts), its files become part of their tables, and it is
*finished* (its begin record is deleted). The ledger is the aggregate of all manifests.

    DIR/<table>/*.parquet                    files of rows; in an object store also those of uncommitted batches
    DIR/<level>/<table>/*.parquet            the same, for a table whose name has levels
    DIR/_wirebook/lock                       held by the current run
    DIR/_wirebook/leases/<k>.json            the same in an object store
    DIR/_wirebook/tables.json                XID, name and columns of every table
    DIR/_wirebook/tables/<n>.json            the same in an object store, as of batch n
    DIR/_wirebook/catalogues/<print>.json    catalogues that batches were begun with, by fingerprint
    DIR/_wirebook/batches/<n>.begin.json     the input of a batch; deleted when it is finished
    DIR/_wirebook/batches/<n>.json           the manifest of a committed batch (see `manifests`)
    DIR/_wirebook/packs/                     the manifests of earlier batches (see `packed_manifests`)
    DIR/_wirebook/batches/<n>.aside.json     the tables that did not accept their files of a batch, and why
    DIR/_wirebook/events/<n>-<random>.keys   keys of landed events, if runs search for repeats
    DIR/_wirebook/streams/<query>.json       the statistics of the last batch of a streaming query
    DIR/_wirebook/aside/<n>/<table>/         the files that a table did not accept
    DIR/_wirebook/staging/<n>/               files of an unfinished batch; not in an object store

Spec: docs/land.md#the-target-folder; docs/decisions/0013, 0195
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from wirebook.definitions.match.options import DEFAULT_OPTIONS, MatchOptions
from wirebook.landing.runs.history import History
from wirebook.landing.runs.ledger import LedgerEntry
from wirebook.landing.runs.manifests import FrameBatch, Manifest, TableEntry
from wirebook.landing.runs.packed_manifests import PACK_SIZE, Manifests
from wirebook.landing.runs.repeats import Deduplication
from wirebook.landing.runs.target_records import broken_target, load_records
from wirebook.landing.sources.splits import FileSplit
from wirebook.landing.stores.locations import Location, files_in, folders_in, is_file_system, size_and_time
from wirebook.landing.stores.objects import OBJECTS_AT_ONCE, ObjectPath
from wirebook.landing.stores.records import records_of, sync_folder
from wirebook.landing.tables.all_formats import FORMATS
from wirebook.landing.tables.file_placement import clear_aside, move_aside
from wirebook.landing.tables.formats import (
    CommitFailed,
    StagedFile,
    TableFormat,
    TableTraits,
    by_table,
    unreadable_table,
)
from wirebook.landing.tables.layout import DEAD_LETTERS, RESOLVED
from wirebook.landing.tables.names import TablePlace, levels_above
from wirebook.landing.tables.settings import TableSettings
from wirebook.problems import Problem, WirebookError

__all__ = [
    "DeadLetterFilter",
    "PendingBatch",
    "Target",
    "load_tables",
]


class DeadLetterFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the dead letters to replay: those that have a problem with one of the `codes`, and whose definition or
    near misses include one of the `definitions` (XIDs). An empty list selects all."""

    codes: list[str] = []
    definitions: list[str] = []


class PendingBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The begin record of a batch: its input, written before anything is read, so that an interrupted batch can run
    again.

    Shape: `tasks` are lists of splits; `entries` are the ledger entries of their files after the batch. `stage_below`
    is as in `StagingPolicy`, `names` as in `assign_names`. In a replay the splits are row groups of dead-letter files,
    and `chosen` selects the rows. A batch of a `frame` has no tasks and cannot be resumed; its caller lands the frame
    again. `deduplication` has the settings of the search for repeats; None turns it off.
    """

    batch: int
    catalogue: str
    endpoint: str | None = None
    options: MatchOptions = DEFAULT_OPTIONS
    format: str = "parquet"
    stage_below: int | None = 0
    table_settings: TableSettings = TableSettings()
    names: dict[str, str] | None = None
    chosen: DeadLetterFilter | None = None
    frame: FrameBatch | None = None
    deduplication: Deduplication | None = None
    tasks: list[list[FileSplit]]
    entries: list[LedgerEntry]


def no_stop(point: str) -> None:
    """Do nothing at a named step of a run; the default of `Target`. Tests pass a function that kills the process at one
    step."""


class Target:
    """The target at `root`. `at` is called with the name of each step; see `no_stop`."""

    def __init__(self, root: Location, at: Callable[[str], None] = no_stop) -> None:
        self.root = root
        self.records = records_of(root)
        self.at = at
        self._blocked: dict[str, str] = {}
        self._is_known = False
        self._manifests = Manifests(self.records, self.at)

    @property
    def exists(self) -> bool:
        """Whether the target has been created. A positive answer is cached."""
        self._is_known = self._is_known or self.records.exists()
        return self._is_known

    def check_exists(self) -> None:
        """Raises: no-target"""
        if not self.exists:
            message = f"'{self.root}' is not a target folder: nothing has landed there"
            raise WirebookError(Problem("no-target", message))

    # -- files of rows -------------------------------------------------------------------------------------------

    def staging(self, batch: int) -> Location:
        """Where tasks write the files of a batch: a folder of the batch, or in an object store the folders of the
        tables."""
        return self.records.location(f"staging/{batch}") if is_file_system(self.root) else self.root

    def clear_staging(self, batch: int | None = None) -> None:
        """Delete the staged files of one batch, or of all batches.

        In an object store they stay in the folders of the tables until table upkeep deletes them. In HDFS, the files of
        a batch stay until a batch with its number is committed: a slow run that has lost its lease may still commit
        them.
        """
        staging = self.records.location("staging")
        if isinstance(staging, Path):
            shutil.rmtree(staging / str(batch) if batch else staging, ignore_errors=True)
        elif is_file_system(staging):
            last = max(self.batch_numbers(), default=0)
            for name in folders_in(staging):
                if name.isdigit() and int(name) <= last and batch in (None, int(name)):
                    (staging / name).unlink()

    # -- reading the records -------------------------------------------------------------------------------------

    def batch_numbers(self) -> list[int]:
        """The numbers of the committed batches, in ascending order."""
        return self._manifests.numbers()

    def manifests(self, *, newest_first: bool = False) -> Iterator[Manifest]:
        """The manifests of committed batches, oldest first by default."""
        return reversed(self._manifests) if newest_first else iter(self._manifests)

    def history(self) -> History:
        """The current aggregate of all manifests."""
        return self._manifests.history()

    def table_list(self) -> Location | None:
        """The file that lists the tables. It does not change while a batch runs. None before the first batch."""
        if not isinstance(self.root, ObjectPath):
            path = self.records.location("tables.json")
            return path if path.exists() else None
        numbers = [int(name.partition(".")[0]) for name in self.records.names("tables")]
        return self.records.location(f"tables/{max(numbers)}.json") if numbers else None

    def tables(self) -> dict[str, TableEntry]:
        """The tables by name."""
        return load_tables(self.table_list())

    def format(self) -> str | None:
        """The table format; None if nothing has landed."""
        begun = self.pending()
        if begun:
            return begun.format
        return self.history().format

    def resolved(self) -> list[Location]:
        """The files that list the dead letters that replays have landed. Raises: unreadable-table"""
        with self._reading(RESOLVED) as (table_format, place):
            return table_format.files(place)

    def dead_letters(self) -> list[Location]:
        """The files of dead letters. Raises: unreadable-table"""
        with self._reading(DEAD_LETTERS) as (table_format, place):
            return table_format.files(place)

    def deleted_dead_letters(self) -> dict[str, pa.Int64Array]:
        """The positions, by file name, of dead letters that another program has deleted without rewriting their files.

        Raises: unreadable-deletions, unreadable-table
        """
        with self._reading(DEAD_LETTERS) as (table_format, place):
            return table_format.deleted_rows(place)

    def can_go_on(self, replay: PendingBatch) -> bool:
        """Whether an unfinished replay can be resumed: all files of dead letters that it was begun with must still be
        in the table. Another program may have deleted dead letters since.

        Raises: store-failed, iceberg-catalog-failed
        """
        read = {split.file.rpartition("/")[2] for task in replay.tasks for split in task}
        try:
            self.deleted_dead_letters()
            return read <= {file.name for file in self.dead_letters()}
        except WirebookError as error:
            if error.problems[0].code not in ("unreadable-deletions", "unreadable-table"):
                raise
            return False

    @contextmanager
    def _reading(self, table: str) -> Iterator[tuple[TableFormat, TablePlace]]:
        """Yield the format and the place of a table, and convert errors of reading it. Raises: unreadable-table"""
        table_format, place = FORMATS[self.format() or "parquet"], TablePlace(self.root, table)
        try:
            yield table_format, place
        except (CommitFailed, OSError) as error:
            mend = table_format.how_to_mend(table, str(error))
            raise WirebookError(unreadable_table(table, error, mend=mend, folder=place.folder)) from error

    def record_stream(self, query: str, figures: Mapping[str, Any]) -> None:
        """Record the statistics of the last batch of a streaming query. Only this query writes its record.

        Raises: unwritable-target, store-failed
        """
        self.records.write(f"streams/{query}.json", msgspec.json.encode(figures))

    def streams(self) -> list[dict[str, Any]]:
        """The statistics of the last batch of each streaming query, sorted by name."""
        names = sorted(f"streams/{name}" for name in self.records.names("streams"))
        return list(load_records(self.records, names, dict[str, Any]))

    def next_batch(self) -> int:
        """The number of the next batch."""
        return max([self.history().last, *self._begun()]) + 1

    def pending_number(self) -> int | None:
        """The number of the unfinished batch; None if there is none."""
        return max(self._begun(), default=None)

    def unfinished_since(self) -> int | None:
        """When the oldest unfinished batch was begun, in milliseconds since 1970; None if there is none."""
        times = []
        for number in self._begun():
            with suppress(FileNotFoundError):  # a run has just finished it
                times.append(size_and_time(self.records.location(f"batches/{number}.begin.json"))[1])
        return min(times, default=None)

    def _begun(self) -> set[int]:
        """The numbers of batches that are not finished."""
        return self._numbers("begin.json")

    def _numbers(self, suffix: str) -> set[int]:
        """The numbers of the batches that have a record with this suffix."""
        names = (name.partition(".") for name in self.records.names("batches"))
        return {int(number) for number, _, rest in names if rest == suffix}

    def pending(self) -> PendingBatch | None:
        """The unfinished batch; None if there is none. A run of another process may finish it at any time."""
        while begun := self._begun():
            name = f"batches/{max(begun)}.begin.json"
            try:
                return next(load_records(self.records, [name], PendingBatch))
            except WirebookError:
                if self.records.location(name).exists():
                    raise
        return None

    def catalogue(self, fingerprint: str) -> bytes:
        """The catalogue that a batch was begun with.

        Raises: broken-target
        """
        path = self.records.location(f"catalogues/{fingerprint}.json")
        try:
            return path.read_bytes()
        except OSError as error:
            raise WirebookError(broken_target(path, error)) from error

    # -- steps of a batch ----------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the target if it does not exist, and lock it against other runs.

        Raises: target-locked, unwritable-target, store-failed
        """
        with self.records.locked():
            self.at("locked")
            yield

    def begin(self, begun: PendingBatch, catalogue: bytes) -> None:
        """Record the input of a batch and its catalogue, before anything is read."""
        name = f"catalogues/{begun.catalogue}.json"
        if not self.records.location(name).exists():
            self.records.write(name, catalogue)
        self.at("pinned")
        self.records.write(f"batches/{begun.batch}.begin.json", msgspec.json.encode(begun))
        self.at("begun")

    def commit(self, manifest: Manifest) -> None:
        """Commit a batch by writing its manifest. Its staged files must already be on disk.

        Raises: target-locked if another run has committed a batch of this number
        """
        self.at("staged")
        self.records.check_lock()
        try:
            self._manifests.create(manifest)
        except FileExistsError as error:
            message = f"another run has taken over '{self.root}' and committed batch {manifest.batch}"
            hint = "run the command again once the other has ended"
            raise WirebookError(Problem("target-locked", message, hint=hint)) from error
        self.at("committed")

    def finish(self, manifest: Manifest, written: Iterable[StagedFile] | None = None, *, again: bool = False) -> None:
        """Make the files of a committed batch part of their tables. Idempotent; `again` means that it may have been
        done in part before a crash.

        `written` are the files of the batch with their statistics; if it is None, the statistics are read from the
        files.

        A table that does not accept its files does not block the others. Its files are set aside, and so are those of
        later batches, because batches enter a table in order. `problems` has the reasons; the next run tries again.

        Raises: broken-target if a file is lost, or the list of resolved dead letters cannot be written
        """
        tables = self.tables() | {table.table: table for table in manifest.tables}
        files = dict(by_table(manifest.files if written is None else written))
        is_store = isinstance(self.root, ObjectPath)
        at_once = OBJECTS_AT_ONCE if is_store else FORMATS[manifest.format].tables_at_once
        with ThreadPoolExecutor(at_once) as pool:
            run = pool.map if at_once > 1 else map
            for _ in run(lambda table: self._enter(manifest, tables[table], files[table], again=again), files):
                self.at("moved")
        if manifest.tables:
            entries = [tables[name] for name in sorted(tables)]
            name = f"tables/{manifest.batch}.json" if isinstance(self.root, ObjectPath) else "tables.json"
            self.records.write(name, msgspec.json.format(msgspec.json.encode(entries)))
        if not isinstance(self.root, ObjectPath):
            above = dict.fromkeys(level.replace(".", "/") for table in files for level in levels_above(table))
            for folder in (*(self.root / level for level in above), self.root):
                if folder.exists():  # else no table below it accepted its files
                    sync_folder(folder)
        self.at("tabled")
        blocked = {table: self._blocked[table] for table in sorted(self._blocked.keys() & files.keys())}
        if blocked or again:
            self._write_aside(manifest.batch, blocked)
        self.abandon(manifest.batch)
        if manifest.batch % PACK_SIZE == 0:
            self._manifests.pack(manifest.batch - PACK_SIZE)
        self.at("finished")

    def wait(self) -> None:
        """Wait for the background work of this process's commits, such as checkpoints."""
        for table_format in FORMATS.values():
            table_format.wait()

    def _finish_aside(self, traits_of: Callable[[TableEntry], TableTraits], *, but: set[int]) -> Counter[str]:
        """Try to commit the files that were set aside, except those of the batches in `but`. Return the number of
        landed rows by table."""
        aside = {batch: reasons for batch, reasons in self._read_aside() if batch not in but}
        waiting: dict[str, list[int]] = {}  # the batches of each table, in ascending order
        for batch, reasons in aside.items():
            for table in reasons:
                waiting.setdefault(table, []).append(batch)
        landed: Counter[str] = Counter()
        left = {batch: dict(reasons) for batch, reasons in aside.items()}
        entries = self.tables() if waiting else {}
        for table, batches in waiting.items():
            entry = msgspec.structs.replace(entries[table], traits=traits_of(entries[table]))
            for batch, files in self._enter_aside(entry, batches):
                landed += self._landed(files)
                del left[batch][table]
            if table in self._blocked:
                oldest = next(batch for batch in batches if table in left[batch])
                left[oldest][table] = self._blocked[table]
        for batch, reasons in left.items():
            if reasons != aside[batch]:
                self._write_aside(batch, reasons)
        return landed

    def _enter_aside(self, entry: TableEntry, batches: list[int]) -> Iterator[tuple[int, list[StagedFile]]]:
        """Commit the files that were set aside to a table, batch by batch, and yield those that it accepts.

        If the table still accepts none, only the manifest of the first batch is read, however many there are.
        """
        for part in filter(None, (batches[:1], batches[1:])):
            for manifest in self._manifests.of(set(part)):
                files = [file for file in manifest.files if file.table == entry.table]
                self._enter(manifest, entry, files, again=True)
                if entry.table in self._blocked:
                    return
                yield manifest.batch, files

    def _landed(self, files: Iterable[StagedFile]) -> Counter[str]:
        """The number of rows, by table, of the files that their tables have accepted."""
        landed: Counter[str] = Counter()
        for file in files:
            if file.table not in self._blocked:
                landed[file.table] += file.rows
        return landed

    def _enter(self, manifest: Manifest, entry: TableEntry, files: list[StagedFile], *, again: bool) -> None:
        """Commit files to a table, or set them aside. With `again`, they may have been set aside before.

        Raises: broken-target
        """
        table, place = entry.table, TablePlace(self.root, entry.table)
        staging = self.staging(manifest.batch)
        aside = TablePlace(self.records.location(f"aside/{manifest.batch}"), table).folder
        kept = files_in(aside) if again else []
        paths = {aside / file.name if file.name in kept else staging / file.path: file for file in files}
        if table not in self._blocked:
            try:
                FORMATS[manifest.format].commit(place, manifest.batch, paths, entry.schema, entry.traits)
            except (CommitFailed, PermissionError) as error:
                if table == RESOLVED:  # dead letters would land twice
                    raise WirebookError(broken_target(place.folder, error)) from error
                self._blocked[table] = str(error)
            except OSError as error:
                raise WirebookError(broken_target(place.folder, error)) from error
        if table in self._blocked:
            move_aside(aside, paths, place.folder)
        elif kept:
            clear_aside(aside)

    def _write_aside(self, batch: int, reasons: Mapping[str, str]) -> None:
        """Record which tables lack their files of a batch, and why. If there are none, delete the record."""
        if reasons:
            self.records.write(_aside_name(batch), msgspec.json.encode(reasons))
        else:
            self.records.delete(_aside_name(batch))

    def _read_aside(self) -> Iterator[tuple[int, dict[str, str]]]:
        """The batches with files that were set aside, in ascending order, each with the tables that lack them and the
        reasons."""

        def read(batch: int) -> bytes:
            try:
                return self.records.location(_aside_name(batch)).read_bytes()
            except FileNotFoundError:  # a run has just finished the batch
                return b"{}"

        batches = sorted(self._numbers("aside.json"))
        with ThreadPoolExecutor(OBJECTS_AT_ONCE) as pool:
            contents = pool.map(read, batches) if isinstance(self.root, ObjectPath) else map(read, batches)
            for batch, content in zip(batches, contents, strict=True):
                noted = msgspec.json.decode(content, type=dict[str, str] | list[str])
                if isinstance(noted, list):
                    noted = dict.fromkeys(noted, "an earlier version did not record the reason")
                yield batch, noted

    def set_aside(self) -> dict[str, dict[int, str]]:
        """The batches whose files each table lacks, and why. The reason of the oldest batch applies to all later ones,
        because it is tried first. Reads only the records."""
        tables: dict[str, dict[int, str]] = {}
        for batch, reasons in self._read_aside():
            for table, reason in reasons.items():
                batches = tables.setdefault(table, {})
                batches[batch] = next(iter(batches.values()), reason)
        return tables

    @property
    def problems(self) -> list[Problem]:
        """The problems of the tables that did not accept their files."""
        return [self.aside_problem(table, reason) for table, reason in sorted(self._blocked.items())]

    def aside_problem(self, table: str, reason: str) -> Problem:
        """The problem of a table that did not accept its files."""
        message = f"the table '{table}' cannot take its rows, so they were set aside: {reason}"
        mend = FORMATS[self.format() or "parquet"].how_to_mend(table, reason) or "correct the table"
        hint = f"{mend}; then run the command again: the rows that were set aside land first"
        return Problem("table-set-aside", message, file=str(TablePlace(self.root, table).folder), hint=hint)

    def abandon(self, batch: int) -> None:
        """Delete the begin record and the staged files of a batch that is finished or dropped."""
        self.records.delete(f"batches/{batch}.begin.json")
        self.clear_staging(batch)

    def recover(self, traits_of: Callable[[TableEntry], TableTraits] = attrgetter("traits")) -> Counter[str]:
        """Finish committed batches, commit files that were set aside, and delete staged files of uncommitted batches.

        `traits_of` returns the current traits of a table, because new settings may allow what the old ones did not.
        Return the number of landed rows by table.
        """
        self._blocked.clear()
        begun = self._begun()
        landed = self._finish_aside(traits_of, but=begun)
        for manifest in self._manifests.of(begun):  # of the last batch
            self.finish(manifest, again=True)
            landed += self._landed(manifest.files)
        self.clear_staging()
        return landed


def _aside_name(batch: int) -> str:
    return f"batches/{batch}.aside.json"


def load_tables(path: Location | None) -> dict[str, TableEntry]:
    """The tables of a target by name.

    Raises: broken-target
    """
    if path is None:
        return {}
    try:
        tables = msgspec.json.decode(path.read_bytes(), type=list[TableEntry])
    except (OSError, msgspec.DecodeError) as error:
        raise WirebookError(broken_target(path, error)) from error
    return {table.table: table for table in tables}
