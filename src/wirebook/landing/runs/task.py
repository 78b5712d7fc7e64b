"""A task: reads its units, gives the chunks to the engine, stages the rows, and hands back one small summary.

It runs in a Python worker of Spark and knows nothing of Spark. A task may run twice or be killed: what it staged is in
a folder of its own, and counts only if the driver commits it.
"""

from __future__ import annotations

import os
import time
import traceback
import uuid
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from wirebook.core.collector import without_collector
from wirebook.landing.runs.dead_letters import Letters, MessageTwice, read_letters, resolve
from wirebook.landing.runs.target import load_tables
from wirebook.landing.sources.batches import Chunk, Engine, EngineFactory, Landed, TableBlock
from wirebook.landing.sources.byte_streams import SourceChanged
from wirebook.landing.sources.lines import DEFAULT_SIZES, Sizes
from wirebook.landing.sources.reading import Progress, read_unit
from wirebook.landing.sources.splits import Split
from wirebook.landing.tables.evolution import EvolvingEngine
from wirebook.landing.tables.formats import NEVER, RowSpool, StagedFile
from wirebook.landing.tables.layout import DEAD_LETTERS, RESOLVED, STAGED
from wirebook.landing.tables.names import FORMATS
from wirebook.landing.tables.staged import Rare

__all__ = ["DEAD_LETTERS", "Job", "Letters", "TaskResult", "UnitResult", "run_task"]

PROGRESS_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Job:
    """What all tasks of a batch share. `staging` is None for a dry run; `marks` is where they say how far they are;
    `tables` is the list of the tables that are there, `rare` says which are not worth files. With `letters` the units
    are pieces of files of dead letters."""

    factory: EngineFactory
    catalogue: bytes
    options: Mapping[str, Any]
    batch: int = 0
    staging: str | None = None
    marks: str | None = None
    format: str = "parquet"
    tables: str | None = None
    rare: Rare = NEVER
    sizes: Sizes = DEFAULT_SIZES
    letters: Letters | None = None

    @staticmethod
    def pack(catalogue: bytes) -> bytes:
        return zlib.compress(catalogue, 3)

    def unpack(self) -> bytes:
        return zlib.decompress(self.catalogue)


class UnitResult(msgspec.Struct, kw_only=True):
    """A unit and how far it was read; `changed` says why nothing of its file may land."""

    unit: Split
    progress: Progress
    messages: int = 0
    changed: str | None = None


class TaskResult(msgspec.Struct, kw_only=True):
    """What a task did. `read` is the engine's count of messages, `files` have the rows as they were written,
    `columns` are Arrow schemas; `rows` are those of each table, of which `staged` are in the staging table. Of a
    replay, `unresolved` counts dead letters that were read and did not land.

    `fault` is the problem that stopped the task, code and message; `trace` is where, for a fault of Wirebook's own.
    """

    files: list[StagedFile] = []
    units: list[UnitResult] = []
    definitions: dict[str, str] = {}
    columns: dict[str, bytes] = {}
    rows: dict[str, int] = {}
    staged: dict[str, int] = {}
    read: int = 0
    unresolved: int = 0
    empty: int = 0
    outcomes: dict[str, int] = {}
    reasons: dict[str, int] = {}
    fault: tuple[str, str] | None = None
    trace: str = ""


class TaskError(Exception):
    """A task cannot go on: code and message of the problem."""


@dataclass(slots=True)
class _Tally:
    """Running counts of a task."""

    read: int = 0
    unresolved: int = 0
    empty: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    definitions: dict[str, str] = field(default_factory=dict)
    columns: dict[str, bytes] = field(default_factory=dict)

    def add(self, landed: Landed) -> None:
        self.read += landed.read
        self.empty += landed.empty
        self.rows.update(landed.counts)
        self.rows[DEAD_LETTERS] += landed.dead_letters.num_rows
        self.outcomes.update(landed.outcomes)
        self.reasons.update(landed.reasons)
        self.definitions.update(landed.definitions)
        for block in (*landed.blocks, TableBlock.of(DEAD_LETTERS, landed.dead_letters)):
            new = [name for name in block.names if name not in self.columns]
            if new:
                self.columns |= dict.fromkeys(new, block.rows.schema.serialize().to_pybytes())

    def totals(self) -> dict[str, Any]:
        """The counts as members of a `TaskResult`."""
        counts = {name: getattr(self, name) for name in self.__slots__}
        return {name: dict(value) if isinstance(value, dict) else value for name, value in counts.items()}


def run_task(job: Job, units: list[Split], number: int = 0) -> TaskResult:
    """Lands `units`, as task `number` of its batch.

    Stops at the first unit whose file is not as planned: the driver then goes on without it.
    """
    results: list[UnitResult] = []
    task = _Task(job, number)
    try:
        for unit in units:
            results.append(task.replay(unit, job.letters) if job.letters else task.land(unit))
            if results[-1].changed:
                break
        return task.finish(results)
    except TaskError as fault:
        return TaskResult(fault=fault.args)
    except OSError as error:
        return TaskResult(fault=("unwritable-target", f"cannot write to '{job.staging}': {error}"))
    except Exception as error:  # not left to Spark, which would try it again and lose where it was
        message = f"{type(error).__name__}: {error} (while reading {task.place})"
        return TaskResult(fault=("internal-error", message), trace=traceback.format_exc())


class _Task:
    """One task on its way: the engine, the rows not yet staged, the counts."""

    def __init__(self, job: Job, number: int) -> None:
        name = uuid.uuid4().hex
        self.place = "the catalogue"
        self._job = job
        self._sizes, self._tally, self._mark = job.sizes, _Tally(), Mark(job.marks, name)
        self._spool: RowSpool | None = None
        if job.staging:
            prefix = f"{job.batch:06d}-{number:04d}-{name[:8]}"
            self._spool = RowSpool(FORMATS[job.format], Path(job.staging, name), prefix, rare=job.rare)

    @cached_property
    def _engine(self) -> Engine:
        """What lands chunks; the columns that are there stay as they are while the batch is going on."""
        job = self._job
        tables = load_tables(Path(job.tables)) if job.tables else {}

        def existing(name: str) -> pa.Schema | None:
            return tables[name].schema if name in tables else None

        return EvolvingEngine(job.factory(job.unpack(), job.options), existing, FORMATS[job.format])

    def land(self, unit: Split) -> UnitResult:
        result = UnitResult(unit=unit, progress=Progress(lines=max(unit.line - 1, unit.after)))
        chunks = read_unit(unit, result.progress, self._sizes)
        while (chunk := _next(chunks, result)) is not None:
            self.place = _place(chunk)
            with without_collector():
                landed = self._engine.land(chunk)
            _check(chunk, landed)
            self._tally.add(landed)
            self._stage(landed)
            result.messages += 0 if _is_notice(chunk) else landed.read
            self._mark.add(result.progress.position, landed.read)
        self._mark.end(unit.weight)
        return result

    def replay(self, unit: Split, letters: Letters) -> UnitResult:
        """Lands what can be landed now of a piece of a file of dead letters."""
        result = UnitResult(unit=unit, progress=Progress(lines=0))
        self.place = f"dead letters in '{unit.file}'"
        try:
            for records in read_letters(unit, letters, self._sizes):
                with without_collector():
                    landed = resolve(self._engine, records, self._job.options["catalogue"], letters.file)
                self._tally.add(landed)
                self._tally.unresolved += landed.read - landed.tables[RESOLVED].num_rows
                self._stage(landed)
                result.progress.position += records.size
                self._mark.add(result.progress.position, landed.read)
        except MessageTwice as error:
            raise TaskError("not-conserved", f"{self.place}: {error}") from error
        self._mark.end(unit.weight)
        return result

    def _stage(self, landed: Landed) -> None:
        if self._spool:
            for block in landed.blocks:
                self._spool.add_block(block, landed.definitions)
            self._spool.add(DEAD_LETTERS, landed.dead_letters)

    def finish(self, units: list[UnitResult]) -> TaskResult:
        files = self._spool.finish() if self._spool else []
        staged = self._spool.staged if self._spool else Counter()
        if self._spool and staged:
            self._tally.columns[STAGED] = self._spool.staged_schema.serialize().to_pybytes()
        self._mark.flush()
        return TaskResult(files=files, units=units, staged=dict(staged), **self._tally.totals())


def _next(chunks: Iterator[Chunk], result: UnitResult) -> Chunk | None:
    """The next chunk; None at the end, and where the file turns out not to be the one that was planned."""
    try:
        return next(chunks, None)
    except (SourceChanged, OSError) as error:
        result.changed = str(error)
        return None


def _is_notice(chunk: Chunk) -> bool:
    """Whether a dead letter stands for what could not be read, not for a message."""
    return chunk.problem is not None and chunk.problem.code != "too-large"


def _check(chunk: Chunk, landed: Landed) -> None:
    """Conservation, chunk by chunk: no record and no message may get lost in the engine."""
    rows = sum(block.rows.num_rows for block in landed.blocks)
    dead = landed.dead_letters.num_rows
    if landed.read == rows + dead and landed.read + landed.empty >= len(chunk):
        return
    counts = (
        f"{len(chunk)} records, {landed.read} messages read, {landed.empty} empty, {rows} landed, {dead} dead letters"
    )
    raise TaskError("not-conserved", f"{_place(chunk)}: {counts}")


def _place(chunk: Chunk) -> str:
    return f"'{chunk.file}' from line {chunk.numbers[0] if chunk.numbers is not None and len(chunk) else '?'}"


class Mark:
    """How far a task is, in a small file that the driver looks at; nothing depends on it."""

    def __init__(self, folder: str | None, name: str) -> None:
        self._path = os.path.join(folder, name) if folder else None
        self._done = self._position = self._messages = 0
        self._next = 0.0

    def add(self, position: int, messages: int) -> None:
        self._position, self._messages = position, self._messages + messages
        if self._path and time.monotonic() >= self._next:
            self.flush()

    def end(self, weight: int) -> None:
        self._done, self._position = self._done + weight, 0

    def flush(self) -> None:
        self._next = time.monotonic() + PROGRESS_SECONDS
        if self._path:
            with suppress(OSError), open(self._path, "w") as file:
                file.write(f"{self._done + self._position} {self._messages}\n")
