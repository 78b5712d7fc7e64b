"""The interface between sources and the engine: chunks of records go in, rows of tables and dead letters come out.

Sources know files and lines but no messages; the engine knows messages but no files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.problems import Problem

__all__ = [
    "PROBLEM_OUTCOMES",
    "UNKNOWN_TABLE",
    "BlockTables",
    "Chunk",
    "Engine",
    "EngineFactory",
    "Landed",
    "Numbers",
    "TableBlock",
    "TableInfo",
]

Numbers = npt.NDArray[np.int64]

PROBLEM_OUTCOMES = {"truncated-file": "malformed", "unreadable-file": "malformed", "too-large": "oversized"}
"""The outcome of the dead letter that a chunk with a problem becomes, by problem code."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records of one file.

    Shape: `file_type` is ``capture``, ``events`` or ``parquet``. `lines` are raw bytes without line ends and without
    blank lines; for Parquet it is None, and `batch` has the rows. `numbers` are line (or row) numbers, from 1. With a
    `problem`, the chunk stands for one dead letter: `lines` has its raw record, if there is one, and the problem has
    its line.
    """

    file: str
    file_type: str
    lines: pa.LargeBinaryArray | None = None
    numbers: Numbers | None = None
    batch: pa.RecordBatch | None = None
    problem: Problem | None = None

    def __len__(self) -> int:
        """The number of records; a problem counts as one."""
        if self.problem is not None:
            return 1
        return len(self.numbers) if self.numbers is not None else 0

    @property
    def size(self) -> int:
        """The bytes of the records: of lines without line ends, of Arrow rows in memory."""
        if self.lines is not None:
            return int(pc.sum(pc.binary_length(self.lines)).as_py() or 0)
        return 0 if self.batch is None else int(self.batch.nbytes)

    def only(self, chosen: npt.NDArray[np.bool_]) -> Chunk:
        """The chunk with only the records that the mask selects."""
        if self.problem is not None or self.numbers is None or chosen.all():
            return self
        indices = pa.array(np.flatnonzero(chosen), pa.int64())
        lines = None if self.lines is None else self.lines.take(indices)
        batch = None if self.batch is None else self.batch.take(indices)
        return replace(self, lines=lines, batch=batch, numbers=self.numbers[chosen])


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Rows of several tables that have the same columns, sorted by table.

    Shape: the rows of table `names[i]` are `rows[bounds[i]:bounds[i + 1]]`.
    """

    names: tuple[str, ...]
    bounds: Numbers
    rows: pa.Table

    @staticmethod
    def of(name: str, rows: pa.Table) -> TableBlock:
        """A block with the rows of one table."""
        return TableBlock((name,), np.array([0, len(rows)]), rows)

    @property
    def counts(self) -> list[int]:
        """The number of rows of each table."""
        counts: list[int] = np.diff(self.bounds).tolist()
        return counts

    def split(self) -> Iterator[tuple[str, pa.Table]]:
        """The name and the rows of each table."""
        for name, start, count in zip(self.names, self.bounds[:-1].tolist(), self.counts, strict=True):
            yield name, self.rows if len(self.names) == 1 else self.rows.slice(start, count)


class BlockTables(Mapping[str, pa.Table]):
    """Maps table names to rows that are stored in blocks. Blocks are split by table on first access."""

    def __init__(self, blocks: Sequence[TableBlock]) -> None:
        self.blocks = blocks

    @cached_property
    def _tables(self) -> dict[str, pa.Table]:
        rows_of: dict[str, list[pa.Table]] = {}
        for name, rows in (pair for block in self.blocks for pair in block.split()):
            rows_of.setdefault(name, []).append(rows)
        return {name: rows[0] if len(rows) == 1 else pa.concat_tables(rows) for name, rows in rows_of.items()}

    def __getitem__(self, name: str) -> pa.Table:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


@dataclass(frozen=True, slots=True)
class TableInfo:
    """What an engine knows about a table: the XID of its definition, the descriptions of its columns in the schema of
    the payload, and whether its rows are CloudEvents."""

    definition: str | None = None
    descriptions: Mapping[str, str] = field(default_factory=dict)
    is_event: bool = False


UNKNOWN_TABLE = TableInfo()


@dataclass(frozen=True, slots=True)
class Landed:
    """What a chunk became.

    Shape: `tables` has the rows of each table. `info` has what is known about tables, maybe about more than these: an
    engine returns the same mapping for each chunk and adds to it. `outcomes` and `reasons` count messages by outcome
    and by problem code. `deferred` are the positions of the records that have to land with those of another chunk.
    Rule: `read` is the number of rows of all tables, that of repeats among them, plus the number of dead letters; `read
    + empty` plus the number of deferred records is at least the number of records. In a replay, `read` is the number of
    dead letters that were tried, and no dead letters are returned.
    """

    tables: Mapping[str, pa.Table]
    dead_letters: pa.Table
    read: int
    empty: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    info: Mapping[str, TableInfo] = field(default_factory=dict)
    deferred: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def blocks(self) -> Sequence[TableBlock]:
        """The rows as blocks: as the engine produced them, or one block per table."""
        if isinstance(self.tables, BlockTables):
            return self.tables.blocks
        return [TableBlock.of(name, rows) for name, rows in self.tables.items()]


class Engine(Protocol):
    """Matches, validates and decodes the messages of a chunk; each becomes a row of a table or a dead letter.

    If it `may_defer`, it can leave records for later, which the caller collects and lands without this permission.
    """

    def land(self, chunk: Chunk, *, may_defer: bool = False) -> Landed: ...


EngineFactory = Callable[[bytes, Mapping[str, Any]], Engine]
"""Creates an engine from a catalogue (JSON) and options (``endpoint``, ``catalogue``: its fingerprint). Cached per
process."""
