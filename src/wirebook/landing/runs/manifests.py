"""The manifests of a target: what each committed batch has landed, and what all of them say together.

A target keeps the manifest of every batch. Those of the last batches have files of their own; earlier ones are packed,
a hundred to a file, and summed up, so that what a batch costs does not grow with the age of a stream:

    DIR/_wirebook/batches/<n>.json           the manifest of a committed batch
    DIR/_wirebook/packs/<n>.jsonl.gz         manifests up to that of batch n, one per line
    DIR/_wirebook/packs/<n>.json             the history of the target up to batch n

A pack counts once its history is there. A file is deleted when the pack after that of its manifest is made.

Spec: docs/land.md#the-target-folder; docs/decisions/0214
"""

from __future__ import annotations

import base64
import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import lru_cache
from typing import Final, TypeVar

import msgspec
import pyarrow as pa

from wirebook.definitions.match.options import DEFAULT_OPTIONS, MatchOptions
from wirebook.landing.runs.ledger import Ledger, LedgerEntry
from wirebook.landing.runs.offsets import Interval, Offsets, add_offsets, fill_offsets
from wirebook.landing.runs.repeats import SeenEvents
from wirebook.landing.stores.locations import Location
from wirebook.landing.stores.objects import OBJECTS_AT_ONCE
from wirebook.landing.stores.records import Records
from wirebook.landing.tables.formats import NO_TRAITS, StagedFile, TableTraits
from wirebook.landing.tables.layout import RESOLVED, STAGED
from wirebook.landing.tables.settings import TableSettings
from wirebook.problems import Problem, WirebookError

__all__ = [
    "PACK_SIZE",
    "BatchRun",
    "FrameBatch",
    "History",
    "Manifest",
    "Manifests",
    "TableEntry",
    "broken_target",
    "load_records",
    "read_columns",
]

T = TypeVar("T")

PACK_SIZE: Final = 100
"""How many batches are packed at a time. At least twice so many of the last ones keep files of their own."""


class FrameBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A DataFrame that lands: the query and the number of a streaming batch, both None for any other. `is_whole`: the
    batches of the query have all messages of their files, so that lines between theirs have none."""

    query: str | None = None
    batch_id: int | None = None
    is_whole: bool = False

    def is_same(self, other: FrameBatch) -> bool:
        """Whether both are the same batch of a query."""
        return (self.query, self.batch_id) == (other.query, other.batch_id)


class TableEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A table in `tables.json`.

    Shape: `xid` is the XID of its definition, None for the tables in `NO_DEFINITION`. `columns` maps names to types for
    readers; `arrow` is the serialised Arrow schema as base64. `traits` are what the table has beside columns.
    """

    table: str
    xid: str | None
    columns: dict[str, str]
    arrow: str
    traits: TableTraits = NO_TRAITS

    @staticmethod
    def of(table: str, xid: str | None, arrow: bytes, traits: TableTraits = NO_TRAITS) -> TableEntry:
        """The entry of a table, from its serialised Arrow schema."""
        columns, encoded = _described(arrow)
        return TableEntry(table=table, xid=xid, columns=columns, arrow=encoded, traits=traits)

    @staticmethod
    def encoded(arrow: bytes) -> str:
        """A serialised Arrow schema as it stands in `arrow`."""
        return base64.b64encode(arrow).decode()

    @property
    def schema(self) -> pa.Schema:
        return read_columns(base64.b64decode(self.arrow))


@lru_cache(maxsize=1024)
def read_columns(arrow: bytes) -> pa.Schema:
    """A serialised schema. Cached, because many tables have the same columns, and a stream asks for them in each
    batch."""
    return pa.ipc.read_schema(pa.py_buffer(arrow))


@lru_cache(maxsize=1024)
def _described(arrow: bytes) -> tuple[dict[str, str], str]:
    """The columns of a serialised schema, and the schema as base64. Cached, because many tables have the same
    columns."""
    columns = {column.name: str(column.type) for column in read_columns(arrow)}
    return columns, TableEntry.encoded(arrow)


class BatchRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a batch ran.

    Units: `seconds` are those from `started` (UTC) to the commit of the batch; its files enter their tables after that.
    `bytes_read` and `bytes_written` as in `Report`.
    Shape: `reasons` counts dead letters by problem code. `name` and `epoch` are those of the catalogue. `unread` are
    the files and bytes of the source that the run was still to read.
    """

    started: datetime
    seconds: float
    bytes_read: int = 0
    bytes_written: int = 0
    reasons: dict[str, int] = {}
    name: str | None = None
    epoch: int | None = None
    unread: tuple[int, int] | None = None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A committed batch: its files, its staged rows by table, the tables that are new or changed, its ledger entries
    or the offsets of its `frame`, and its counts. `table_settings` is None if they have not changed. `seen` are the
    events that the target remembers from this batch on, None if they have not changed. `endpoints` has the landed
    messages by endpoint, as far as it is known: that of the run, or the only one that has the definition. `late` counts
    events that landed without being compared, because they are older than what the target remembers. Earlier versions
    of Wirebook wrote neither `outcomes` nor `run`."""

    batch: int
    catalogue: str
    endpoint: str | None = None
    options: MatchOptions = DEFAULT_OPTIONS
    format: str = "parquet"
    table_settings: TableSettings | None = None
    files: list[StagedFile] = []
    staged: dict[str, int] = {}
    tables: list[TableEntry] = []
    entries: list[LedgerEntry] = []
    frame: FrameBatch | None = None
    offsets: Offsets = {}
    seen: SeenEvents | None = None
    read: int = 0
    empty: int = 0
    outcomes: dict[str, int] = {}
    endpoints: dict[str, int] = {}
    late: int = 0
    run: BatchRun | None = None

    @property
    def rows(self) -> Counter[str]:
        """The rows by table."""
        rows = Counter(self.staged)
        for file in self.files:
            if file.table != STAGED:
                rows[file.table] += file.rows
        return rows

    @property
    def is_replay(self) -> bool:
        """Whether the messages that were read are dead letters."""
        return any(file.table == RESOLVED for file in self.files)


class History(msgspec.Struct, kw_only=True):
    """What the committed batches of a target say together.

    Shape: `numbers` are those of the batches; `format` is None if they have no files. `read` counts the messages,
    without those of replays, `rows` the rows of each table, and `late` as in `Manifest`. `with_files` are tables with
    files of their own; `staged` has the staged rows of each table. `frames` has the numbers of the landed batches of
    each streaming query; `has_frames` says whether any DataFrame has landed, and `offsets` are the identified rows of
    those. `read_up_to` has the last line of each file, by streaming query whose batches are whole. `table_settings` are
    the last. `seen` are the events that are remembered.
    """

    numbers: list[Interval] = []
    format: str | None = None
    read: int = 0
    late: int = 0
    rows: dict[str, int] = {}
    table_settings: TableSettings = TableSettings()
    with_files: set[str] = set()
    staged: dict[str, int] = {}
    ledger: Ledger = {}
    has_frames: bool = False
    frames: Offsets = {}
    offsets: Offsets = {}
    read_up_to: dict[str, dict[str, int]] = {}
    seen: SeenEvents = SeenEvents()

    @property
    def last(self) -> int:
        """The number of the last batch; 0 before the first."""
        return self.numbers[-1][1] if self.numbers else 0

    def has_landed(self, frame: FrameBatch) -> bool:
        """Whether a batch of a streaming query has landed."""
        if frame.query is None or frame.batch_id is None:
            return False
        return any(first <= frame.batch_id <= last for first, last in self.frames.get(frame.query, ()))

    def add(self, manifest: Manifest) -> None:
        """Add the batch that follows the last."""
        _add_number(self.numbers, manifest.batch)
        self.format = self.format or (manifest.format if manifest.files else None)
        self.read += 0 if manifest.is_replay else manifest.read
        self.late += manifest.late
        for table, rows in manifest.rows.items():
            self.rows[table] = self.rows.get(table, 0) + rows
        self.table_settings = manifest.table_settings or self.table_settings
        self.seen = manifest.seen or self.seen
        self.with_files.update(file.table for file in manifest.files)
        for table, rows in manifest.staged.items():
            self.staged[table] = self.staged.get(table, 0) + rows
        self.ledger.update({entry.file: entry for entry in manifest.entries})
        if manifest.frame is not None:
            self.has_frames = True
            if manifest.frame.query is not None and manifest.frame.batch_id is not None:
                number = manifest.frame.batch_id
                add_offsets(self.frames, manifest.frame.query, [(number, number)])
        for file, intervals in manifest.offsets.items():
            add_offsets(self.offsets, file, intervals)
            if intervals and manifest.frame and manifest.frame.is_whole and manifest.frame.query is not None:
                self._fill(manifest.frame.query, file, intervals)

    def _fill(self, query: str, file: str, intervals: list[Interval]) -> None:
        """Close the gaps within and before what a query has read: Kafka's transactions leave one each, and a topic that
        is compacted many, so that a stream would know more and more intervals."""
        read_up_to = self.read_up_to.setdefault(query, {})
        first, last = intervals[0][0], intervals[-1][1]
        fill_offsets(self.offsets, file, min(first, read_up_to.get(file, first)), last)
        read_up_to[file] = last


def _add_number(numbers: list[Interval], number: int) -> None:
    if numbers and numbers[-1][1] == number - 1:
        numbers[-1] = (numbers[-1][0], number)
    else:
        numbers.append((number, number))


class Manifests:
    """The manifests of a target, oldest first. `at` is called with the name of each point at which a run may be killed.

    Raises, everywhere: broken-target, store-failed
    """

    def __init__(self, records: Records, at: Callable[[str], None]) -> None:
        self._records, self._at = records, at
        self._history = History()

    def __iter__(self) -> Iterator[Manifest]:
        packs, files = self._list()
        for number in packs:
            yield from self._in_pack(number)
        yield from self._in_files(files)

    def __reversed__(self) -> Iterator[Manifest]:
        packs, files = self._list()
        for number in reversed(files):
            yield from self._in_files([number])  # one at a time: most readers want few
        for number in reversed(packs):
            yield from reversed(self._in_pack(number))

    def of(self, numbers: Collection[int]) -> Iterator[Manifest]:
        """Those of some batches."""
        packs, files = self._list()
        for number, before in zip(packs, [0, *packs], strict=False):
            if any(before < batch <= number for batch in numbers):
                yield from (manifest for manifest in self._in_pack(number) if manifest.batch in numbers)
        yield from self._in_files([number for number in files if number in numbers])

    def numbers(self) -> list[int]:
        """The numbers of the batches. Reads no manifest."""
        packs, files = self._list()
        packed = self._history_up_to(packs[-1]).numbers if packs else []
        return [*(number for first, last in packed for number in range(first, last + 1)), *files]

    def history(self) -> History:
        """The sum of all manifests. This object reads each of them once, so a stream that keeps it stays fast."""
        packs, files = self._list()
        if packs and packs[-1] > self._history.last:
            self._history = self._history_up_to(packs[-1])
        for manifest in self._in_files([number for number in files if number > self._history.last]):
            self._history.add(manifest)
        return self._history

    def create(self, manifest: Manifest) -> None:
        """Write the manifest of a batch.

        Raises: FileExistsError if another batch has its number; unwritable-target
        """
        name = _name(manifest.batch)
        self._records.create(name, msgspec.json.encode(manifest))
        packs, _ = self._list()
        if packs and packs[-1] >= manifest.batch:  # the file of the other batch is deleted
            self._records.delete(name)
            raise FileExistsError(name)

    def pack(self, last: int) -> None:
        """Pack the manifests up to that of batch `last`, which is finished. Files that this makes needless are deleted
        by the next pack, so that a reader who has just listed them still finds them.

        Raises: unwritable-target
        """
        packs, files = self._list()
        packed = packs[-1] if packs else 0
        numbers = [number for number in files if number <= last]
        history = self._history_up_to(packed) if packed else History()
        for start in range(0, len(numbers), PACK_SIZE):
            manifests = list(self._in_files(numbers[start : start + PACK_SIZE]))
            for manifest in manifests:
                history.add(manifest)
            lines = b"\n".join(map(msgspec.json.encode, manifests))
            self._records.write(f"packs/{history.last}.jsonl.gz", gzip.compress(lines, mtime=0))
        self._at("packed")
        if numbers:
            self._records.write(f"packs/{history.last}.json", msgspec.json.encode(history))
        self._at("summed")
        obsolete = [_name(number) for number in self._numbers_of("batches", "json") if number <= packed]
        obsolete += [f"packs/{number}.json" for number in self._numbers_of("packs", "json") if number < packed]
        with ThreadPoolExecutor(OBJECTS_AT_ONCE) as pool:
            list(pool.map(self._records.delete, obsolete))

    def _list(self) -> tuple[list[int], list[int]]:
        """The numbers of the packs, and those of the batches that are in none, in ascending order."""
        files = self._numbers_of("batches", "json")  # before the packs: a file is deleted after it is packed
        packed = max(self._numbers_of("packs", "json"), default=0)
        packs = (number for number in self._numbers_of("packs", "jsonl.gz") if number <= packed)
        return sorted(packs), sorted(number for number in files if number > packed)

    def _numbers_of(self, folder: str, suffix: str) -> list[int]:
        names = (name.partition(".") for name in self._records.names(folder))
        return [int(number) for number, _, rest in names if rest == suffix]

    def _in_files(self, numbers: Iterable[int]) -> Iterator[Manifest]:
        return load_records(self._records, map(_name, numbers), Manifest)

    def _in_pack(self, number: int) -> list[Manifest]:
        name = f"packs/{number}.jsonl.gz"
        try:
            lines = gzip.decompress(next(self._records.read([name]))).splitlines()
            manifests = [msgspec.json.decode(line, type=Manifest) for line in lines]
            if not manifests or manifests[-1].batch != number:
                raise EOFError("it ends too early")
        except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:
            raise WirebookError(broken_target(self._records.location(name), error)) from error
        return manifests

    def _history_up_to(self, packed: int) -> History:
        return next(load_records(self._records, [f"packs/{packed}.json"], History))


def _name(batch: int) -> str:
    return f"batches/{batch}.json"


def load_records(records: Records, names: Iterable[str], type_: type[T]) -> Iterator[T]:
    """The contents of records. Raises: broken-target, store-failed"""
    chosen = list(names)
    contents = records.read(chosen)
    for name in chosen:
        try:
            yield msgspec.json.decode(next(contents), type=type_)
        except (OSError, msgspec.DecodeError) as error:
            raise WirebookError(broken_target(records.location(name), error)) from error


def broken_target(path: Location, error: Exception) -> Problem:
    """The problem of a record or table that cannot be read or written."""
    message = f"cannot read or write '{path}' in the target folder: {error}"
    return Problem(code="broken-target", file=str(path), message=message)
