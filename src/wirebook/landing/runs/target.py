"""The target folder: batches are begun, committed and finished by one run at a time; a crash loses nothing.

A batch is *begun* (a record lists its splits and its catalogue; nothing is read before), its files are *staged*, it is
*committed* (its manifest is written; this decides), its files are moved into their tables, and it is *finished* (its
begin record is deleted). The ledger is the sum of all manifests.

    DIR/<table>/*.parquet                    committed rows only
    DIR/_wirebook/lock                       held by the current run
    DIR/_wirebook/tables.json                XID, name and columns of every table
    DIR/_wirebook/catalogues/<print>.json    catalogues by fingerprint, as batches were begun with them
    DIR/_wirebook/batches/<n>.begin.json     what a batch reads; only until it is finished
    DIR/_wirebook/batches/<n>.json           the manifest of a committed batch
    DIR/_wirebook/staging/<n>/               files of an unfinished batch

Spec: docs/land.md#the-target-folder; docs/decisions/0013
"""

from __future__ import annotations

import base64
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from wirebook.definitions.match.options import DEFAULT_OPTIONS, MatchOptions
from wirebook.landing.runs.ledger import Ledger, LedgerEntry
from wirebook.landing.runs.offsets import Offsets
from wirebook.landing.sources.splits import FileSplit
from wirebook.landing.tables.all_formats import FORMATS
from wirebook.landing.tables.formats import CommitFailed, StagedFile, TableFormat, by_table, sync_folder
from wirebook.landing.tables.layout import RESOLVED
from wirebook.problems import Problem, WirebookError

__all__ = [
    "DeadLetterFilter",
    "FrameBatch",
    "Manifest",
    "PendingBatch",
    "TableEntry",
    "Target",
    "load_tables",
    "write_atomically",
]

T = TypeVar("T")


class DeadLetterFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters to replay: those with a problem with one of the `codes`, and those of or near one of the
    `definitions` (XIDs). An empty list selects all."""

    codes: list[str] = []
    definitions: list[str] = []


class FrameBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A DataFrame that lands: the query and the number of a streaming batch, both None for any other."""

    query: str | None = None
    batch_id: int | None = None


class PendingBatch(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch reads, written before anything is read, so that an interrupted batch can be run again.

    Shape: `tasks` are lists of splits; `entries` are the ledger entries of their files after the batch. `stage_below`
    as in `StagingPolicy`. In a replay the splits are row groups of dead-letter files, and `chosen` selects the rows. A
    batch of a `frame` has no tasks: it is not run again, but its caller lands the frame once more.
    """

    batch: int
    catalogue: str
    endpoint: str | None = None
    options: MatchOptions = DEFAULT_OPTIONS
    format: str = "parquet"
    stage_below: int | None = 0
    chosen: DeadLetterFilter | None = None
    frame: FrameBatch | None = None
    tasks: list[list[FileSplit]]
    entries: list[LedgerEntry]


class TableEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A table in `tables.json`.

    Shape: `xid` is the XID of its definition, None for `dead_letters`, `resolved` and `staged`. `columns` maps names to
    types for readers; `arrow` is the serialised Arrow schema as base64.
    """

    table: str
    xid: str | None
    columns: dict[str, str]
    arrow: str

    @staticmethod
    def of(table: str, xid: str | None, arrow: bytes) -> TableEntry:
        """The entry of a table, from its serialised Arrow schema."""
        columns, encoded = _described(arrow)
        return TableEntry(table=table, xid=xid, columns=columns, arrow=encoded)

    @staticmethod
    def encoded(arrow: bytes) -> str:
        """A serialised Arrow schema as it stands in `arrow`."""
        return base64.b64encode(arrow).decode()

    @property
    def schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.arrow)))


@lru_cache(maxsize=1024)
def _described(arrow: bytes) -> tuple[dict[str, str], str]:
    """The columns of a serialised schema, and the schema as base64. Cached, because many tables have the same
    columns."""
    columns = {column.name: str(column.type) for column in pa.ipc.read_schema(pa.py_buffer(arrow))}
    return columns, TableEntry.encoded(arrow)


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A committed batch: its files, its staged rows by table, the tables that are new or changed, its ledger entries
    or the offsets of its `frame`, and its counts."""

    batch: int
    catalogue: str
    endpoint: str | None = None
    options: MatchOptions = DEFAULT_OPTIONS
    format: str = "parquet"
    files: list[StagedFile] = []
    staged: dict[str, int] = {}
    tables: list[TableEntry] = []
    entries: list[LedgerEntry] = []
    frame: FrameBatch | None = None
    offsets: Offsets = {}
    read: int = 0
    empty: int = 0
    outcomes: dict[str, int] = {}


def no_stop(point: str) -> None:
    """Called at each named point of a commit. Tests pass a function that ends the process at one of them."""


class Target:
    """A target folder. `at` is called with the name of each point at which a run may be killed."""

    def __init__(self, root: Path, at: Callable[[str], None] = no_stop) -> None:
        self.root = root
        self.home = root / "_wirebook"
        self.batches = self.home / "batches"
        self.table_list = self.home / "tables.json"
        self.at = at

    @property
    def exists(self) -> bool:
        """Whether something has landed in the folder."""
        return self.home.is_dir()

    def staging(self, batch: int) -> Path:
        """The staging folder of a batch."""
        return self.home / "staging" / str(batch)

    # -- reading the folder --------------------------------------------------------------------------------------

    def manifests(self) -> Iterator[Manifest]:
        """Committed batches, oldest first."""
        return (_load(path, Manifest) for path in sorted(self.batches.glob("*[0-9].json"), key=_number))

    def ledger(self) -> Ledger:
        """How far each file has landed."""
        return {entry.file: entry for manifest in self.manifests() for entry in manifest.entries}

    def tables(self) -> dict[str, TableEntry]:
        """The tables by name."""
        return load_tables(self.table_list)

    def format(self) -> str | None:
        """The table format; None if nothing has landed."""
        begun = self.pending()
        if begun:
            return begun.format
        return next((manifest.format for manifest in self.manifests() if manifest.files), None)

    def resolved(self) -> list[Path]:
        """The files that list dead letters which have landed since."""
        return FORMATS[self.format() or "parquet"].files(self.root / RESOLVED)

    def next_batch(self) -> int:
        """The number of the next batch."""
        return max((_number(path) for path in self.batches.glob("*.json")), default=0) + 1

    def pending(self) -> PendingBatch | None:
        """The batch that was begun and not finished."""
        begun = sorted(self.batches.glob("*.begin.json"), key=_number)
        return _load(begun[-1], PendingBatch) if begun else None

    def catalogue(self, fingerprint: str) -> bytes:
        """The catalogue that a batch was begun with.

        Raises: broken-target
        """
        path = self._catalogue_path(fingerprint)
        try:
            return path.read_bytes()
        except OSError as error:
            raise WirebookError(_broken(path, error)) from error

    def _catalogue_path(self, fingerprint: str) -> Path:
        return self.home / "catalogues" / f"{fingerprint}.json"

    # -- lock ----------------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder and hold its lock. The lock is released when the process ends, however it ends.

        Raises: target-locked, unwritable-target
        """
        try:
            self.batches.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise WirebookError(_unwritable(self.root, error)) from error
        try:
            _take_lock(fd, self.root)
            self.at("locked")
            yield
        finally:
            os.close(fd)

    # -- steps of a batch ----------------------------------------------------------------------------------------

    def begin(self, begun: PendingBatch, catalogue: bytes) -> None:
        """Record what a batch reads and its catalogue, before anything is read."""
        path = self._catalogue_path(begun.catalogue)
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, catalogue)
        self.at("pinned")
        write_atomically(self._begin_path(begun.batch), msgspec.json.encode(begun))
        self.at("begun")

    def clear_staging(self, batch: int | None = None) -> None:
        """Delete the staged files of one batch, or of all."""
        shutil.rmtree(self.staging(batch) if batch else self.home / "staging", ignore_errors=True)

    def commit(self, manifest: Manifest) -> None:
        """Commit a batch: from here on it counts. Its staged files must be on disk."""
        self.at("staged")
        write_atomically(self.batches / f"{manifest.batch}.json", msgspec.json.encode(manifest))
        self.at("committed")

    def finish(self, manifest: Manifest) -> None:
        """Move a committed batch into its tables. Can be repeated after a crash."""
        table_format: TableFormat = FORMATS[manifest.format]
        tables = self.tables() | {table.table: table for table in manifest.tables}
        for table, files in by_table(manifest.files):
            paths = [self.staging(manifest.batch) / file.path for file in files]
            try:
                table_format.commit(self.root / table, manifest.batch, paths, tables[table].schema)
            except (OSError, CommitFailed) as error:
                raise WirebookError(_broken(self.root / table, error)) from error
            self.at("moved")
        if manifest.tables:
            entries = [tables[name] for name in sorted(tables)]
            write_atomically(self.table_list, msgspec.json.format(msgspec.json.encode(entries)))
        sync_folder(self.root)
        self.at("tabled")
        self.abandon(manifest.batch)
        self.at("finished")

    def abandon(self, batch: int) -> None:
        """Delete the begin record and the staged files of a batch that is finished or has nothing left to read."""
        self._begin_path(batch).unlink(missing_ok=True)
        self.clear_staging(batch)

    def recover(self) -> list[int]:
        """Finish committed batches and delete staged files of uncommitted ones. Returns the numbers of the finished
        batches."""
        finished = [m for m in self.manifests() if self._begin_path(m.batch).exists()]
        for manifest in finished:
            self.finish(manifest)
        self.clear_staging()
        return [manifest.batch for manifest in finished]

    def _begin_path(self, batch: int) -> Path:
        return self.batches / f"{batch}.begin.json"


def load_tables(path: Path) -> dict[str, TableEntry]:
    """The tables of a target by name.

    Raises: broken-target
    """
    tables: list[TableEntry] = _load(path, list[TableEntry]) if path.exists() else []
    return {table.table: table for table in tables}


def _take_lock(fd: int, root: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = os.pread(fd, 100, 0).decode(errors="replace").strip() or "unknown"
        message = f"another run (process {owner}) is writing to '{root}'"
        raise WirebookError(Problem(code="target-locked", message=message, hint="wait until it has ended")) from error
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()} on {os.uname().nodename}\n".encode(), 0)


def _unwritable(root: Path, error: OSError) -> Problem:
    return Problem(code="unwritable-target", message=f"cannot write to '{root}': {error.strerror or error}")


def _broken(path: Path, error: Exception) -> Problem:
    return Problem(
        code="broken-target", file=str(path), message=f"cannot read or write '{path}' in the target folder: {error}"
    )


def _number(path: Path) -> int:
    return int(path.name.partition(".")[0])


def _load(path: Path, type_: type[T] | Any) -> T:
    """Raises: broken-target"""
    try:
        return msgspec.json.decode(path.read_bytes(), type=type_)
    except (OSError, msgspec.DecodeError) as error:
        raise WirebookError(_broken(path, error)) from error


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file to disk completely or not at all.

    Raises: unwritable-target
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(partial, path)
        sync_folder(path.parent)
    except OSError as error:
        raise WirebookError(_unwritable(path, error)) from error
