"""What goes into the engine and what comes out: a chunk of records, and the rows they became.

The reader knows files and lines and no message; the engine knows messages and no file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirebook.problems import Problem

__all__ = ["PROBLEM_OUTCOMES", "BlockTables", "Chunk", "Engine", "EngineFactory", "Landed", "Numbers", "TableBlock"]

Numbers = npt.NDArray[np.int64]

PROBLEM_OUTCOMES = {"truncated-file": "malformed", "unreadable-file": "malformed", "too-large": "oversized"}
"""The outcome of the one dead letter that a chunk with a problem becomes, by the problem's code."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records of one file.

    Shape: `kind` is ``capture``, ``events`` or ``parquet``. `lines` are raw bytes without their line ends, blank lines
    left out (for Parquet None, and `batch` has the rows); `numbers` are their line (or row) numbers, from 1. With a
    `problem` the chunk stands for one dead letter, whose raw record is the only line, or nothing if there is none, and
    whose line is the problem's.
    """

    file: str
    kind: str
    lines: pa.LargeBinaryArray | None = None
    numbers: Numbers | None = None
    batch: pa.RecordBatch | None = None
    problem: Problem | None = None

    def __len__(self) -> int:
        """How many records it holds; a problem counts as one."""
        if self.problem is not None:
            return 1
        return len(self.numbers) if self.numbers is not None else 0

    def only(self, chosen: npt.NDArray[np.bool_]) -> Chunk:
        """These of the records alone."""
        if self.problem is not None or self.numbers is None or chosen.all():
            return self
        kept = pa.array(np.flatnonzero(chosen), pa.int64())
        lines = None if self.lines is None else self.lines.take(kept)
        batch = None if self.batch is None else self.batch.take(kept)
        return replace(self, lines=lines, batch=batch, numbers=self.numbers[chosen])


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Rows of several tables that have the same columns, table by table.

    Shape: the rows of the table `names[i]` are those of `rows` from `bounds[i]` to `bounds[i + 1]`.
    """

    names: tuple[str, ...]
    bounds: Numbers
    rows: pa.Table

    @staticmethod
    def of(name: str, rows: pa.Table) -> TableBlock:
        return TableBlock((name,), np.array([0, len(rows)]), rows)

    def split(self) -> Iterator[tuple[str, pa.Table]]:
        """The rows of each table."""
        starts, counts = self.bounds[:-1].tolist(), np.diff(self.bounds).tolist()
        for name, start, count in zip(self.names, starts, counts, strict=True):
            yield name, self.rows if len(self.names) == 1 else self.rows.slice(start, count)


class BlockTables(Mapping[str, pa.Table]):
    """The rows of tables by name, which lie in blocks: cut apart when they are asked for."""

    def __init__(self, blocks: Sequence[TableBlock]) -> None:
        self.blocks = blocks

    @cached_property
    def _tables(self) -> dict[str, pa.Table]:
        found: dict[str, list[pa.Table]] = {}
        for name, rows in (pair for block in self.blocks for pair in block.split()):
            found.setdefault(name, []).append(rows)
        return {name: rows[0] if len(rows) == 1 else pa.concat_tables(rows) for name, rows in found.items()}

    def __getitem__(self, name: str) -> pa.Table:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


@dataclass(frozen=True, slots=True)
class Landed:
    """What a chunk became.

    Shape: `tables` has the rows of each table, `blocks` the same before they are cut apart, `definitions` the XID
    behind each, `reasons` counts problem codes.
    Rule: read = rows of all tables + dead letters; read + empty is at least the number of records.
    """

    tables: Mapping[str, pa.Table]
    dead_letters: pa.Table
    read: int
    empty: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)

    @property
    def blocks(self) -> Sequence[TableBlock]:
        if isinstance(self.tables, BlockTables):
            return self.tables.blocks
        return [TableBlock.of(name, rows) for name, rows in self.tables.items()]

    @property
    def counts(self) -> Counter[str]:
        """The rows of each table."""
        found: Counter[str] = Counter()
        for block in self.blocks:
            found.update(dict(zip(block.names, np.diff(block.bounds).tolist(), strict=True)))
        return found


class Engine(Protocol):
    """Matches, validates and decodes the messages of a chunk, each into the row of a table or a dead letter."""

    def land(self, chunk: Chunk) -> Landed: ...


EngineFactory = Callable[[bytes, Mapping[str, Any]], Engine]
"""Catalogue (JSON) and options (``endpoint``, ``catalogue``: its fingerprint) to an engine; cached per process."""
