"""The manifest of a batch: a file that records what the batch landed. Writing it commits the batch.

Spec: docs/land.md#the-target-folder
"""

from __future__ import annotations

import base64
from collections import Counter
from datetime import datetime
from functools import lru_cache

import msgspec
import pyarrow as pa

from wirebook.definitions.match.options import DEFAULT_OPTIONS, MatchOptions
from wirebook.landing.runs.ledger import LedgerEntry
from wirebook.landing.runs.offsets import Offsets
from wirebook.landing.runs.seen_events import SeenEvents
from wirebook.landing.tables.formats import NO_TRAITS, StagedFile, TableTraits
from wirebook.landing.tables.layout import RESOLVED, STAGED
from wirebook.landing.tables.settings import TableSettings

__all__ = ["BatchRun", "FrameBatch", "Manifest", "TableEntry", "read_columns"]


class FrameBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Identifies a DataFrame: the streaming query and the number of its batch, both None for any other DataFrame.

    `is_whole` is true if the query reads all messages of its files (such as Kafka partitions), so that the gaps between
    the lines that it reads contain no messages.
    """

    query: str | None = None
    batch_id: int | None = None
    is_whole: bool = False

    def is_same(self, other: FrameBatch) -> bool:
        """Whether both are the same batch of a query."""
        return (self.query, self.batch_id) == (other.query, other.batch_id)


class TableEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A table in `tables.json`.

    Shape: `xid` is the XID of its definition, None for the tables in `NO_DEFINITION`. `columns` maps names to types and
    is meant for people who read the file; `arrow` is the serialised Arrow schema as base64. `traits` are the other
    properties of the table, such as its partition.
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
        """Encode a serialised Arrow schema for `arrow`."""
        return base64.b64encode(arrow).decode()

    @property
    def schema(self) -> pa.Schema:
        return read_columns(base64.b64decode(self.arrow))


@lru_cache(maxsize=1024)
def read_columns(arrow: bytes) -> pa.Schema:
    """Deserialise an Arrow schema. Cached, because many tables have the same columns, and a stream needs them in each
    batch."""
    return pa.ipc.read_schema(pa.py_buffer(arrow))


@lru_cache(maxsize=1024)
def _described(arrow: bytes) -> tuple[dict[str, str], str]:
    """The columns of a serialised schema, and the schema as base64. Cached, because many tables have the same
    columns."""
    columns = {column.name: str(column.type) for column in read_columns(arrow)}
    return columns, TableEntry.encoded(arrow)


class BatchRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Statistics of the execution of a batch.

    Units: `seconds` is the time from `started` (UTC) to the commit of the batch; its files become part of their tables
    after that. `bytes_read` and `bytes_written` are as in `Report`.
    Shape: `reasons` counts dead letters by problem code. `name` and `epoch` are those of the catalogue. `unread` is the
    number of files and of bytes of the source that the run still had to read after this batch.
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
    or the offsets of its `frame`, and its counts.

    Shape: `table_settings` is None if they have not changed. `seen` are the events that the target remembers from this
    batch on, None if they have not changed. `endpoints` counts landed messages by endpoint, if it is known: that of the
    run, or the only one that has the definition. `late` counts events that landed without a search for repeats, because
    they are older than the events that the target remembers. Earlier versions of Wirebook wrote neither `outcomes` nor
    `run`.
    """

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
        """The number of rows by table; staged rows count for their own tables."""
        rows = Counter(self.staged)
        for file in self.files:
            if file.table != STAGED:
                rows[file.table] += file.rows
        return rows

    @property
    def is_replay(self) -> bool:
        """Whether the messages that were read are dead letters."""
        return any(file.table == RESOLVED for file in self.files)
