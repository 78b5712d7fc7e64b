"""The interface between sources and the engine: chunks of records go in, rows of tables and dead letters come out.

Sources know files and lines but not messages; the engine knows messages but not files.
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
"""Maps the problem code of a chunk to the outcome of its dead letter."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records of one file, or of several chunks that were joined (`file` is then empty).

    Shape: `file_type` is ``capture``, ``events`` or ``parquet``. `lines` has the raw records as bytes, without line
    ends and blank lines; for Parquet it is None, and `batch` has the rows. `numbers` are line (or row) numbers, from 1.
    A chunk with a `problem` represents one dead letter: `lines` has its raw record, if there is one, and the problem
    has its line number.
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
        """The size of the records in bytes: of lines without line ends, or of Arrow rows in memory."""
        if self.lines is not None:
            return int(pc.sum(pc.binary_length(self.lines)).as_py() or 0)
        return 0 if self.batch is None else int(self.batch.nbytes)

    def only(self, chosen: npt.NDArray[np.bool_]) -> Chunk:
        """A chunk with only the records that the mask selects. A chunk with a problem is returned unchanged."""
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
    """What an engine knows about a table: the XID of its definition, the column descriptions in the payload schema, and
    whether its rows are CloudEvents."""

    definition: str | None = None
    descriptions: Mapping[str, str] = field(default_factory=dict)
    is_event: bool = False


UNKNOWN_TABLE = TableInfo()


@dataclass(frozen=True, slots=True)
class Landed:
    """The result of landing a chunk.

    Shape: `tables` maps each table to its rows. `info` describes tables, possibly more than those in `tables`: an
    engine returns the same mapping for every chunk and adds to it. `empty` counts records without a message. `outcomes`
    and `reasons` count messages by outcome and by problem code. `deferred` has the positions of records that have not
    landed yet and must land together with records of other chunks.
    Rule: `read` is the number of rows of all tables, repeats included, plus the number of dead letters; `read + empty`
    plus the number of deferred records is at least the number of records. In a replay, `read` is the number of dead
    letters that were tried, and no dead letters are returned.
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

    With `may_defer`, the engine may leave out some records (`Landed.deferred`). The caller collects these and lands
    them later, without `may_defer`.
    """

    def land(self, chunk: Chunk, *, may_defer: bool = False) -> Landed: ...


EngineFactory = Callable[[bytes, Mapping[str, Any]], Engine]
"""Returns an engine for a catalogue (JSON) and options, which include ``endpoint`` and ``catalogue`` (the fingerprint).
Engines are cached per process. See `wirebook.landing.runs.engine.engine_for`."""
