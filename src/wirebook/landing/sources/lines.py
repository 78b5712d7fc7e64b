"""Splits bytes into arrays of lines, with bounded memory.

A line ends at LF; a CR before it is dropped; a lone CR does not end a line. Blank lines are numbered but are not
records.

Spec: docs/land.md#messages-lines-files
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirebook.landing.chunks import Numbers

LF, CR, SPACE = 10, 13, 32
BOM = b"\xef\xbb\xbf"
BLANKS = b" \t\r\n"
PIECE = 1 << 18
"""Bytes that are searched per step. The intermediate arrays of a step fit into the processor's cache."""
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Limits on the memory that a reader uses.

    Units: bytes. `chunk` is the initial size of the buffer, which grows for a long line. Of a line of more than `line`
    bytes, only the first `head` bytes are kept.
    """

    chunk: int = 16 << 20
    line: int = 256 << 20
    head: int = 1 << 20


DEFAULT_SIZES = Sizes()


class ByteSource(Protocol):
    """A stream of bytes; `readinto` returns 0 at its end."""

    def readinto(self, buffer: memoryview, /) -> int: ...


class Lines(NamedTuple):
    """Complete lines that are not blank, their numbers, and the number of the last line, blank or not."""

    values: pa.LargeBinaryArray
    numbers: Numbers
    last: int


class LongLine(NamedTuple):
    """A line over the limit: its number, its first bytes and its full length."""

    number: int
    head: bytes
    length: int


def split_lines(data: Bytes, first: int, after: int = 0) -> Lines:
    """Split `data`, which begins at line `first`, into the lines numbered above `after`. Text after the last LF is a
    line.

    Cost: one copy of the data; about 0.3 µs per line.
    """
    starts, ends = _bounds(data)
    numbers = np.arange(first, first + len(starts), dtype=np.int64)
    selected = np.flatnonzero(~_is_blank(data, starts, ends) & (numbers > after))
    # Built from a buffer, because `pa.array` imports pandas.
    indices = pa.Array.from_buffers(pa.int64(), len(selected), [None, pa.py_buffer(2 * selected)])
    return Lines(_pieces(data, starts, ends).take(indices), numbers[selected], first + len(starts) - 1)


def one_line(raw: bytes) -> pa.LargeBinaryArray:
    """A line as an array. Does not call `pa.array`, which imports pandas: that takes longer than reading a file."""
    bounds = np.array([0, len(raw)], np.int64)
    return pa.Array.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(bounds), pa.py_buffer(raw)])


def _bounds(data: Bytes) -> tuple[Numbers, Numbers]:
    """The start and end of each line, line ends excluded."""
    parts = ((start, data[start : start + PIECE] == LF) for start in range(0, len(data), PIECE))
    ends = np.concatenate([np.zeros(0, np.int64), *(np.flatnonzero(is_end) + start for start, is_end in parts)])
    starts = np.concatenate([np.zeros(1, np.int64), ends + 1])
    if starts[-1] == len(data):
        starts = starts[:-1]
    else:
        ends = np.append(ends, len(data))
    has_cr = (ends > starts) & (data[np.maximum(ends - 1, 0)] == CR) if len(data) else np.zeros(0, np.bool_)
    return starts, ends - has_cr


def _is_blank(data: Bytes, starts: Numbers, ends: Numbers) -> npt.NDArray[np.bool_]:
    """A mask of the lines with only white space. Only lines that begin with white space are examined."""
    blank: npt.NDArray[np.bool_] = np.equal(starts, ends)
    suspects: Numbers = np.flatnonzero(~blank & (data[np.minimum(starts, len(data) - 1)] <= SPACE))
    for i in suspects:
        blank[i] = not data[starts[i] : ends[i]].tobytes().strip(BLANKS)
    return blank


def _pieces(data: Bytes, starts: Numbers, ends: Numbers) -> pa.LargeBinaryArray:
    """An array that alternates lines and line ends; lines are at even positions."""
    bounds = np.empty(2 * len(starts) + 1, dtype=np.int64)
    bounds[:-1:2], bounds[1::2], bounds[-1] = starts, ends, len(data)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), 2 * len(starts), buffers)


class LineReader:
    """Splits a stream into chunks of complete lines.

    Shape: iterate for `Lines` and `LongLine`. Afterwards `tail` is the text after the last LF (a `LongLine` if it is
    over the limit), and `line` its line number. Lines numbered up to `after` are skipped.
    """

    def __init__(self, source: ByteSource, first: int = 1, after: int = 0, sizes: Sizes = DEFAULT_SIZES) -> None:
        self.line = first
        self.tail: bytes | LongLine = b""
        self._source, self._after, self._sizes = source, after, sizes
        self._buffer = bytearray(sizes.chunk)
        self._filled = 0  # number of bytes in the buffer
        self._searched = 0  # how many of them contain no LF

    def __iter__(self) -> Iterator[Lines | LongLine]:
        if self.line == 1 and self._fill() and self._buffer.startswith(BOM):
            self._keep_from(len(BOM))
        while True:
            self._fill()
            end = self._buffer.rfind(b"\n", self._searched, self._filled) + 1
            self._searched = self._filled
            if end:
                yield self._take(end)
            elif self._filled < len(self._buffer):
                self.tail = bytes(memoryview(self._buffer)[: self._filled])
                return
            elif self._filled <= self._sizes.line:
                grown = bytearray(min(2 * len(self._buffer), self._sizes.line + 1))  # with a line end
                grown[: self._filled] = memoryview(self._buffer)[: self._filled]
                self._buffer = grown
            else:
                long = self._pass_over()
                if isinstance(self.tail, LongLine):
                    return
                yield long

    def _fill(self) -> bool:
        """Fill the buffer, or read up to the end of the stream; returns False if nothing was read."""
        before, view = self._filled, memoryview(self._buffer)
        while self._filled < len(view) and (count := self._source.readinto(view[self._filled :])):
            self._filled += count
        return self._filled > before

    def _take(self, end: int) -> Lines:
        lines = split_lines(np.frombuffer(self._buffer, np.uint8, end), self.line, self._after)
        self.line = lines.last + 1
        self._keep_from(end)
        return lines

    def _keep_from(self, start: int) -> None:
        """Move the bytes from `start` on to the front, and shrink a buffer that has grown."""
        rest = self._filled - start
        if len(self._buffer) > self._sizes.chunk >= rest:
            grown, self._buffer = self._buffer, bytearray(self._sizes.chunk)
            self._buffer[:rest] = memoryview(grown)[start : self._filled]
        else:
            self._buffer[:rest] = self._buffer[start : self._filled]
        self._filled, self._searched = rest, 0

    def _pass_over(self) -> LongLine:
        """Read to the end of a line that is over the limit, keeping only its first bytes."""
        head, length = bytes(self._buffer[: self._sizes.head]), self._filled
        while True:
            self._filled = 0
            if not self._fill():
                self.tail = LongLine(self.line, head, length)
                return self.tail
            end = self._buffer.find(b"\n", 0, self._filled)
            if end >= 0:
                break
            length += self._filled
        self._keep_from(end + 1)
        self.line += 1
        return LongLine(self.line - 1, head, length + end)
