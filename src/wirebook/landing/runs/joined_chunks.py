"""Joins small chunks so that they land as one: the engine takes milliseconds per chunk, however few records it has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from wirebook.landing.chunks import BlockTables, Chunk, Landed, Numbers, TableBlock

__all__ = ["ChunkQueue", "JoinedChunks"]

MAX_BYTES = 16 << 20
"""Maximum size in bytes of the records that land as one; a larger chunk lands alone."""
MAX_RECORDS = 1 << 16
T = TypeVar("T")


class JoinedChunks(Generic[T]):
    """Chunks that land as one chunk, in which records are numbered from 1. Never empty.

    Shape: `results` has the caller's value for each chunk.
    """

    def __init__(self, first: Chunk, result: T) -> None:
        self.chunks, self.results = [first], [result]
        self._size = _size_of(first)
        self._records = len(first)

    def accept(self, chunk: Chunk, result: T) -> bool:
        """Add a chunk, unless the result would be too large or its records have another format. Return whether it was
        added."""
        first, size = self.chunks[0], self._size + _size_of(chunk)
        is_alike = (
            first.problem is None
            and chunk.problem is None
            and first.file_type == chunk.file_type
            and (first.batch is None) == (chunk.batch is None)
            and (first.batch is None or chunk.batch is None or first.batch.schema.equals(chunk.batch.schema))
        )
        if not is_alike or size > MAX_BYTES or self._records + len(chunk) > MAX_RECORDS:
            return False
        self.chunks.append(chunk)
        self.results.append(result)
        self._size, self._records = size, self._records + len(chunk)
        return True

    def joined(self) -> Chunk:
        """All records as one chunk: the chunk itself if there is only one, else a chunk without a file name."""
        first = self.chunks[0]
        if len(self.chunks) == 1:
            return first
        numbers = np.arange(1, self._records + 1, dtype=np.int64)
        if first.batch is None:
            lines = pa.concat_arrays([chunk.lines for chunk in self.chunks if chunk.lines is not None])
            return Chunk("", first.file_type, lines, numbers)
        rows = pa.Table.from_batches([chunk.batch for chunk in self.chunks if chunk.batch is not None])
        return Chunk("", first.file_type, None, numbers, rows.combine_chunks().to_batches()[0])

    def restored(self, landed: Landed, file_column: str) -> tuple[Landed, list[int]]:
        """Restore the original file and line of each record in the result of the joined chunk. Return the result, and
        the number of messages of each chunk.

        `file_column` is the name of the column ``_file`` in the rows.
        """
        if len(self.chunks) == 1:
            return landed, [landed.read]
        lengths = [len(chunk) for chunk in self.chunks]
        chunk_of = np.repeat(np.arange(len(self.chunks)), lengths)
        lines = np.concatenate([chunk.numbers for chunk in self.chunks if chunk.numbers is not None])
        files = pa.array([chunk.file for chunk in self.chunks], pa.string())
        messages = np.zeros(len(self.chunks), np.int64)

        def restore(rows: pa.Table) -> pa.Table:
            places: Numbers = rows["_line"].to_numpy() - 1
            np.add.at(messages, chunk_of[places], 1)
            for name, values in (
                (file_column, files.take(pa.array(chunk_of[places]))),
                ("_line", pa.array(lines[places])),
            ):
                at = rows.schema.get_field_index(name)
                field = rows.schema.field(at)
                rows = rows.set_column(at, field, values.cast(field.type))
            return rows

        blocks = [TableBlock(block.names, block.bounds, restore(block.rows)) for block in landed.blocks]
        restored = replace(landed, tables=BlockTables(blocks), dead_letters=restore(landed.dead_letters))
        return restored, messages.tolist()

    def only(self, places: Numbers) -> Iterator[tuple[Chunk, T]]:
        """The chunks with records at `places`, which are positions in the joined chunk: each with only these records,
        and with the caller's value."""
        starts = np.cumsum([0, *map(len, self.chunks)])
        chunk_of = np.searchsorted(starts, places, side="right") - 1
        for number in np.unique(chunk_of).tolist():
            chunk = self.chunks[number]
            chosen = np.zeros(len(chunk), bool)
            chosen[places[chunk_of == number] - starts[number]] = True
            yield chunk.only(chosen), self.results[number]


class ChunkQueue(Generic[T]):
    """Joins chunks until the next one cannot land with them."""

    def __init__(self) -> None:
        self._joined: JoinedChunks[T] | None = None

    @property
    def is_empty(self) -> bool:
        return self._joined is None

    def add(self, chunk: Chunk, result: T) -> JoinedChunks[T] | None:
        """Add a chunk. If it cannot land with the chunks in the queue, remove and return them: they must land now."""
        if self._joined is not None and self._joined.accept(chunk, result):
            return None
        before, self._joined = self._joined, JoinedChunks(chunk, result)
        return before

    def take(self) -> JoinedChunks[T] | None:
        """Remove and return the chunks in the queue; None if it is empty."""
        joined, self._joined = self._joined, None
        return joined


def _size_of(chunk: Chunk) -> int:
    records = chunk.lines if chunk.batch is None else chunk.batch
    return 0 if records is None else int(records.nbytes)
