"""A task: reads its splits, passes the chunks to the engine, stages the rows, and returns a small summary.

It runs in a Python worker of Spark but does not depend on Spark. A task may run twice or be killed, so each execution
stages files under names of its own. They count only after the driver commits them.
"""

from __future__ import annotations

import os
import time
import traceback
import uuid
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.core.collector import without_collector
from wirebook.landing.chunks import UNKNOWN_TABLE, Chunk, Engine, EngineFactory, Landed, TableBlock, TableInfo
from wirebook.landing.runs.dead_letters import MessageTwice, ReplaySelection, read_dead_letters, resolve
from wirebook.landing.runs.joined_chunks import ChunkQueue, JoinedChunks
from wirebook.landing.runs.manifests import TableEntry
from wirebook.landing.runs.offsets import Offsets
from wirebook.landing.runs.repeats import RepeatFinder, RepeatSearch
from wirebook.landing.runs.target import load_tables
from wirebook.landing.sources.byte_streams import SourceChanged
from wirebook.landing.sources.lines import DEFAULT_SIZES, Sizes
from wirebook.landing.sources.reading import UNSEEN, Progress, read_split
from wirebook.landing.sources.splits import FileSplit
from wirebook.landing.stores.locations import Location, is_file_system
from wirebook.landing.tables.all_formats import FORMATS
from wirebook.landing.tables.evolution import EvolvingEngine, raw_records
from wirebook.landing.tables.formats import NO_PROPERTIES, FileLayout, StagedFile, own_traits
from wirebook.landing.tables.layout import DEAD_LETTERS, RESOLVED, STAGED
from wirebook.landing.tables.partitions import default_sort
from wirebook.landing.tables.settings import NO_SETTINGS, TableSettings
from wirebook.landing.tables.spool import NO_STAGING, TableSpool
from wirebook.landing.tables.staged import StagingPolicy
from wirebook.problems import WirebookError

__all__ = [
    "DEAD_LETTERS",
    "Job",
    "ReplaySelection",
    "SplitResult",
    "Task",
    "TaskError",
    "TaskResult",
    "guarded",
    "run_task",
]

PROGRESS_SECONDS = 0.25
MAX_ENDPOINTS: Final = 1000
"""Maximum number of endpoints for which a task counts dead letters; records can name any number of endpoints."""
SHARED_TARGET = (
    "choose a target that the driver and all workers reach: an object store, or a folder that all of them mount under "
    "the same path"
)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Job:
    """The input that all tasks of a batch share.

    Shape: `catalogue` is compressed JSON; it is empty if `options` contains the compiled catalogue. `staging` is where
    tasks write files, None in a dry run. `progress_folder` is where they write their progress. `tables` is the file
    that lists the tables of the target. `names` has the table names of definitions without a table, as in
    `assign_names`; None leaves naming to the engine. `table_settings` are those of the batch. `staging_policy` selects
    the tables whose rows go to the staging table. With `dead_letters`, the splits are row groups of dead-letter files.
    With `repeats`, events that have already landed go to the table of repeats.
    """

    factory: EngineFactory
    catalogue: bytes
    options: Mapping[str, Any]
    batch: int = 0
    staging: Location | None = None
    progress_folder: str | None = None
    format: str = "parquet"
    tables: Location | None = None
    names: Mapping[str, str] | None = None
    table_settings: TableSettings = NO_SETTINGS
    staging_policy: StagingPolicy = NO_STAGING
    sizes: Sizes = DEFAULT_SIZES
    dead_letters: ReplaySelection | None = None
    repeats: RepeatSearch | None = None

    @staticmethod
    def pack(catalogue: bytes) -> bytes:
        return zlib.compress(catalogue, 3)

    def unpack(self) -> bytes:
        return zlib.decompress(self.catalogue) if self.catalogue else b""


class SplitResult(msgspec.Struct, kw_only=True):
    """The progress of a split. `changed` is the reason why its file must not land; `is_missing` is true if this machine
    does not see the file."""

    split: FileSplit
    progress: Progress
    messages: int = 0
    changed: str | None = None
    is_missing: bool = False


class TaskResult(msgspec.Struct, kw_only=True):
    """The summary of a task.

    Shape: `read` is the number of messages that the engine counted. `files` are the staged files. `schemas` are
    serialised Arrow schemas, which many tables share; `columns` maps each table to the position of its schema in them.
    `descriptions` has the column descriptions of tables for which they have changed. `rows` counts rows by table;
    `staged` counts those of them in the staging table. In a replay, `unresolved` counts dead letters that were read and
    did not land. `bytes_read` is the size of the records, as in `Chunk.size`. For a DataFrame, `offsets` are the
    identified rows that are new to the target, and `skipped` counts those that had already landed. `events` are those
    that do not repeat an event of an earlier batch, as in `EVENT_SCHEMA`, if the task searched for repeats; `late` is
    as in `Manifest`. `dead_letter_endpoints` counts dead letters by the endpoint that their record names, for at most
    `MAX_ENDPOINTS`; it is empty if the run has an endpoint. `fault` is the (code, message, hint) of the problem that
    stopped the task; `trace` is its traceback if it is an internal error.
    """

    files: list[StagedFile] = []
    splits: list[SplitResult] = []
    definitions: dict[str, str] = {}
    descriptions: dict[str, dict[str, str]] = {}
    schemas: list[bytes] = []
    columns: dict[str, int] = {}
    rows: dict[str, int] = {}
    staged: dict[str, int] = {}
    read: int = 0
    unresolved: int = 0
    empty: int = 0
    bytes_read: int = 0
    skipped: int = 0
    offsets: Offsets = {}
    events: bytes = b""
    late: int = 0
    outcomes: dict[str, int] = {}
    reasons: dict[str, int] = {}
    dead_letter_endpoints: dict[str, int] = {}
    fault: tuple[str, str, str | None] | None = None
    trace: str = ""


class TaskError(Exception):
    """A task cannot continue. The arguments are the problem's code, its message, and optionally its hint."""


@dataclass(slots=True)
class _Tally:
    """Running counts of a task."""

    read: int = 0
    unresolved: int = 0
    empty: int = 0
    bytes_read: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    dead_letter_endpoints: Counter[str] = field(default_factory=Counter)
    schemas: dict[bytes, int] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)
    info: dict[str, TableInfo] = field(default_factory=dict)

    def add(self, landed: Landed) -> None:
        self.read += landed.read
        self.empty += landed.empty
        self.outcomes.update(landed.outcomes)
        self.reasons.update(landed.reasons)
        for block in (*landed.blocks, TableBlock.of(DEAD_LETTERS, landed.dead_letters)):
            for table, count in zip(block.names, block.counts, strict=True):
                self.rows[table] += count
            if new := sorted(set(block.names).difference(self.columns)):
                self.note_columns(new, block.rows.schema)
                self.info |= {table: landed.info[table] for table in new if table in landed.info}

    def count_endpoints(self, dead_letters: pa.Table) -> None:
        """Count dead letters by the endpoint that their record names."""
        if not len(dead_letters) or "endpoint" not in dead_letters.column_names:
            return
        for item in pc.value_counts(dead_letters["endpoint"]).to_pylist():
            endpoint, count = item["values"], item["counts"]
            if endpoint in self.dead_letter_endpoints or (endpoint and len(self.dead_letter_endpoints) < MAX_ENDPOINTS):
                self.dead_letter_endpoints[endpoint] += count

    def note_columns(self, tables: Iterable[str], schema: pa.Schema) -> None:
        """Record the columns of tables that have none recorded yet."""
        number = self.schemas.setdefault(schema.serialize().to_pybytes(), len(self.schemas))
        self.columns |= dict.fromkeys(tables, number)

    def totals(self) -> dict[str, Any]:
        """The counts as fields of a `TaskResult`."""
        counts = {name: getattr(self, name) for name in self.__slots__ if name != "info"}
        plain = {name: dict(value) if isinstance(value, dict) else value for name, value in counts.items()}
        definitions = {table: info.definition for table, info in self.info.items() if info.definition is not None}
        return plain | {"schemas": list(self.schemas), "definitions": definitions}


def run_task(job: Job, splits: list[FileSplit], number: int = 0) -> TaskResult:
    """Land `splits` as task `number` of its batch.

    If a file has changed, the driver runs the batch again without it. The remaining splits are therefore read, to find
    all changed files, but they do not land.
    """
    task = Task(job, number)

    def run() -> TaskResult:
        results: list[SplitResult] = []
        has_changed = False
        for split in splits:
            result = task.replay(split, job.dead_letters) if job.dead_letters else task.land(split, dry=has_changed)
            has_changed |= result.changed is not None
            results.append(result)
        return task.finish(results)

    return guarded(task, run)


def guarded(task: Task, run: Callable[[], R]) -> R | TaskResult:
    """Run a part of a task. An exception becomes the fault of the task's result, with the place where it occurred."""
    try:
        task.check_target_is_shared()
        return run()
    except Exception as error:  # Spark would retry the task and lose the place
        task.abandon()
        return _failed(task, error)


def _failed(task: Task, error: Exception) -> TaskResult:
    """The result of a task that failed with an exception. Must be called while the exception is handled."""
    if isinstance(error, TaskError):
        code, message, *hint = error.args
        return TaskResult(fault=(code, message, next(iter(hint), None)))
    if isinstance(error, WirebookError):
        problem = error.problems[0]
        return TaskResult(fault=(problem.code, problem.message, problem.hint))
    if isinstance(error, OSError) and task.staging is not None:
        return TaskResult(fault=("unwritable-target", f"cannot write to '{task.staging}': {error}", None))
    message = f"{type(error).__name__}: {error} (while reading {task.place})"
    return TaskResult(fault=("internal-error", message, None), trace=traceback.format_exc())


class Task:
    """A running task: its engine, its staged rows and its counts."""

    def __init__(self, job: Job, number: int) -> None:
        name = uuid.uuid4().hex
        self.place = "the catalogue"
        self.staging = job.staging
        self._job = job
        self._sizes, self._tally, self._progress_file = job.sizes, _Tally(), ProgressFile(job.progress_folder, name)
        self._name, self._prefix = name, f"{job.batch:06d}-{number:04d}-{name[:8]}"
        self._repeats = RepeatFinder(job.repeats, FORMATS[job.format].column) if job.repeats else None
        self._waiting: ChunkQueue[SplitResult | None] = ChunkQueue()
        self._deferred: ChunkQueue[SplitResult | None] = ChunkQueue()  # of records that match no definition

    def check_target_is_shared(self) -> None:
        """If the target is a folder, check that this machine sees what the driver has written to it.

        This machine may have a different folder with the same path, but it cannot have the progress folder, whose name
        is random.

        Raises: TaskError (not-shared)
        """
        job = self._job
        places = [job.staging, job.tables]
        if isinstance(job.staging, Path) and job.progress_folder:
            places.append(Path(job.progress_folder))
        if any(isinstance(place, Path) and not place.exists() for place in places):
            message = f"a worker cannot access '{job.staging or job.tables}', which the driver has written"
            raise TaskError("not-shared", message, SHARED_TARGET)

    @cached_property
    def _spool(self) -> TableSpool | None:
        """The staged rows; None in a dry run."""
        job = self._job
        if job.staging is None:
            return None
        has_folder = is_file_system(job.staging)  # objects are written to the folders of their tables
        return TableSpool(
            FORMATS[job.format],
            job.staging / self._name if has_folder else job.staging,
            self._prefix,
            base=f"{self._name}/" if has_folder else "",
            layout_of=self._layout,
            staging_policy=job.staging_policy,
        )

    @cached_property
    def _tables(self) -> dict[str, TableEntry]:
        """The existing tables, which do not change while a batch runs."""
        return load_tables(self._job.tables)

    def abandon(self) -> None:
        """Abandon the files that the task was writing, because it has failed."""
        if self._spool:
            self._spool.abandon()

    def _layout(self, table: str, xid: str | None, schema: pa.Schema) -> FileLayout:
        """How the files of a table are written."""
        if xid is None:
            traits = self._tables[table].traits if table in self._tables else own_traits(table)
            repeats = table != STAGED  # its JSON texts differ, so dictionaries of them would cost time and space
            return FileLayout(descriptions=traits.comments or None, dictionaries=repeats)
        settings, table_format = self._job.table_settings, FORMATS[self._job.format]
        options, known = settings.of(xid), self._tables.get(table)
        day = known.traits.day if known else settings.new_partition(xid, table_format.partition, schema)
        info = self._tally.info.get(table, UNKNOWN_TABLE)
        sort = default_sort(day) if options.sort is None else tuple(options.sort)
        properties = options.properties or NO_PROPERTIES
        return FileLayout(day, sort, options.row_group_rows, info.descriptions, properties)

    @cached_property
    def _engine(self) -> Engine:
        """The engine, adapted to the existing tables of the target."""
        job, tables = self._job, self._tables

        def existing(name: str) -> pa.Schema | None:
            return tables[name].schema if name in tables else None

        def may_rewrite(name: str) -> bool:
            xid = tables[name].xid
            return xid is not None and job.table_settings.of(xid).widen == "rewrite"

        known = {entry.xid: entry.table for entry in tables.values() if entry.xid is not None}
        names = None if job.names is None else dict(job.names) | known
        partitions = {entry.table: entry.traits.day.column for entry in tables.values() if entry.traits.day}
        engine, table_format = job.factory(job.unpack(), job.options), FORMATS[job.format]
        return EvolvingEngine(engine, existing, table_format, names, partitions, may_rewrite=may_rewrite)

    def land(self, split: FileSplit, *, dry: bool = False) -> SplitResult:
        """Land the messages of a split. Some may land later, together with those of the next splits. If `dry`, only
        read the split.

        Raises: TaskError (not-conserved)
        """
        result = SplitResult(split=split, progress=Progress(lines=max(split.line - 1, split.after)))
        chunks = read_split(split, result.progress, self._sizes)
        while (chunk := _next(chunks, result)) is not None:
            if dry:
                continue
            is_content = chunk.problem is None or chunk.problem.code == "too-large"
            self.add(chunk, result if is_content else None)
            self._progress_file.add(result.progress.position, self._tally.read)
        self._progress_file.end(split.weight)
        return result

    def add(self, chunk: Chunk, result: SplitResult | None = None) -> None:
        """Land a chunk, or queue it to land together with the next ones. Its messages are counted in `result`.

        Raises: TaskError (not-conserved)
        """
        self._tally.bytes_read += chunk.size
        if before := self._waiting.add(chunk, result):
            self._land(before, may_defer=True)

    def _land(self, waiting: JoinedChunks[SplitResult | None], *, may_defer: bool = False) -> None:
        """Land chunks as one. Records that the engine defers are queued, to land together with those of later chunks.

        Raises: TaskError (not-conserved)
        """
        chunk, place = waiting.joined(), _place(waiting.chunks)
        self.place = place
        with without_collector():
            landed = self._engine.land(chunk, may_defer=may_defer)
        self._check(chunk, landed)
        for part, result in waiting.only(landed.deferred):
            if before := self._deferred.add(part, result):
                self._land(before)
                self.place = place
        read = landed
        landed, messages = waiting.restored(landed, FORMATS[self._job.format].column("_file"))
        if self._repeats:
            landed = self._repeats.separate(landed, read, partial(raw_records, chunk))
        self._tally.add(landed)
        if self._job.options.get("endpoint") is None:
            self._tally.count_endpoints(landed.dead_letters)
        self._stage(landed)
        for result, count in zip(waiting.results, messages, strict=True):
            if result is not None:
                result.messages += count

    def _check(self, chunk: Chunk, landed: Landed) -> None:
        """Raise if the engine lost a record or a message."""
        rows = sum(block.rows.num_rows for block in landed.blocks)
        dead = landed.dead_letters.num_rows
        deferred = len(landed.deferred)
        if landed.read != rows + dead or landed.read + landed.empty + deferred < len(chunk):
            counts = (
                f"{len(chunk)} records, {landed.read} messages read, {landed.empty} empty, "
                f"{rows} landed, {dead} dead letters, {deferred} deferred"
            )
            raise TaskError("not-conserved", f"{self.place}: {counts}")

    def replay(self, split: FileSplit, dead_letters: ReplaySelection) -> SplitResult:
        """Land the dead letters of a split that now match."""
        result = SplitResult(split=split, progress=Progress(lines=0))
        self.place = f"dead letters in '{split.file}'"
        try:
            for records in self._readable(read_dead_letters(split, dead_letters, self._sizes)):
                with without_collector():
                    landed = resolve(self._engine, records, self._job.options["catalogue"], dead_letters.file)
                self._tally.add(landed)
                self._tally.bytes_read += records.size
                self._tally.unresolved += landed.read - landed.tables[RESOLVED].num_rows
                self._stage(landed)
                result.progress.position += records.size
                self._progress_file.add(result.progress.position, self._tally.read)
        except MessageTwice as error:
            raise TaskError("not-conserved", f"{self.place}: {error}") from error
        self._progress_file.end(split.weight)
        return result

    def _readable(self, records: Iterator[R]) -> Iterator[R]:
        """Yield records from a table of the target, and convert errors. Raises: TaskError (broken-target)"""
        try:
            yield from records
        except (OSError, pa.ArrowException) as error:
            raise TaskError("broken-target", f"cannot read the {self.place}: {error}") from error

    def _stage(self, landed: Landed) -> None:
        if self._spool:
            for block in landed.blocks:
                self._spool.add_block(block, landed.info)
            self._spool.add(DEAD_LETTERS, landed.dead_letters)

    def finish(self, splits: list[SplitResult], **counts: Any) -> TaskResult:
        """Land the queued chunks and write the staged rows. `counts` are further fields of the result.

        Raises: TaskError (not-conserved)
        """
        if last := self._waiting.take():
            self._land(last, may_defer=not self._deferred.is_empty)  # with none queued, they would land alone
        if deferred := self._deferred.take():
            self._land(deferred)
        files = self._spool.finish() if self._spool else []
        staged = self._spool.staged if self._spool else Counter()
        if self._spool and staged:
            self._tally.note_columns([STAGED], self._spool.staged_schema)
        counts["descriptions"] = {  # only those that are not in the target yet
            table: info.descriptions
            for table, info in self._tally.info.items()
            if table not in self._tables or self._tables[table].traits.comments != info.descriptions
        }
        if self._repeats:
            counts |= {"events": self._repeats.encoded(), "late": self._repeats.late}
        self._progress_file.finish(self._tally.read)
        return TaskResult(files=files, splits=splits, staged=dict(staged), **self._tally.totals(), **counts)


def _next(chunks: Iterator[Chunk], result: SplitResult) -> Chunk | None:
    """The next chunk; None at the end, or if the file turns out to have changed."""
    try:
        return next(chunks, None)
    except (SourceChanged, OSError) as error:
        result.is_missing = isinstance(error, UNSEEN)
        result.changed = str(error)
        return None


def _place(chunks: Sequence[Chunk]) -> str:
    first = chunks[0]
    line = first.numbers[0] if first.numbers is not None and len(first) else "?"
    others = f" and {len(chunks) - 1} further files or parts" if len(chunks) > 1 else ""
    return f"'{first.file}' from line {line}{others}"


class ProgressFile:
    """A small file that reports the progress of a task to the driver. It is used only for display."""

    def __init__(self, folder: str | None, name: str) -> None:
        self._path = os.path.join(folder, name) if folder else None
        self._done = self._position = self._messages = 0
        self._next = 0.0

    def add(self, position: int, messages: int) -> None:
        """Set the position in the current split, and the number of messages that the task has read so far."""
        self._position, self._messages = position, messages
        if self._path and time.monotonic() >= self._next:
            self.flush()

    def end(self, weight: int) -> None:
        self._done, self._position = self._done + weight, 0

    def finish(self, messages: int) -> None:
        self._messages = messages
        self.flush()

    def flush(self) -> None:
        self._next = time.monotonic() + PROGRESS_SECONDS
        if self._path:
            with suppress(OSError), open(self._path, "w") as file:
                file.write(f"{self._done + self._position} {self._messages}\n")
