"""Reading the same thing from many byte strings at once: one position per row, moved on by whole-column arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, Any]
PADDING = 16  # zero bytes behind the data, so that eight bytes may be read at any position

# A variable-length integer in eight bytes at once: where the first byte without its high bit is, then seven bits of
# each byte moved together in three steps.
_HIGH = np.uint64(0x8080808080808080)
_STEPS = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
_ONE = np.uint64(1)


@dataclass
class Cursor:
    """Where each row is being read.

    Shape: `data` are all bytes (padded), `words` the eight bytes at each position; `at`, `end` per row; `good` is False
    for a row that cannot be read, and what is read from it then means nothing.
    """

    data: Array
    words: Array
    at: Array
    end: Array
    good: Array

    @classmethod
    def over(cls, payloads: pa.BinaryArray) -> Cursor:
        """A cursor at the beginning of each payload."""
        _, offsets, data = payloads.buffers()
        edges = np.frombuffer(offsets, np.int32)[payloads.offset : payloads.offset + len(payloads) + 1].astype(np.int64)
        begin, end = (int(edges[0]), int(edges[-1])) if len(payloads) else (0, 0)
        octets = np.zeros(end - begin + PADDING, np.uint8)
        if end > begin:
            octets[:-PADDING] = np.frombuffer(data, np.uint8)[begin:end]
        words = np.ndarray((len(octets) - 7,), "<u8", octets, strides=(1,))
        good = np.ones(len(payloads), bool) if not payloads.null_count else np.asarray(payloads.is_valid())
        return cls(octets, words, edges[:-1] - begin, edges[1:] - begin, good)

    def __len__(self) -> int:
        return len(self.at)

    def select(self, rows: Array) -> Cursor:
        """A cursor over some rows; give it back with `update`."""
        return Cursor(self.data, self.words, self.at[rows], self.end[rows], self.good[rows])

    def update(self, rows: Array, part: Cursor) -> None:
        self.at[rows], self.good[rows] = part.at, part.good

    def require(self, holds: Array) -> None:
        """Rows for which something does not hold are not good, and are read no further."""
        self.good &= holds
        if not self.good.all():
            self.at[~self.good] = self.end[~self.good]

    # -- reading ------------------------------------------------------------------------------------------------------

    def octets(self) -> Array:
        """The next byte."""
        values: Array = self.data[self.at]
        self.at += 1
        self.require(self.at <= self.end)
        return values

    def eight(self, size: int = 8) -> Array:
        """The next `size` bytes, up to eight, as the low bytes of an integer."""
        values: Array = self.words[self.at]
        self.at += size
        self.require(self.at <= self.end)
        return values

    def longs(self) -> Array:
        """The next zigzag integer of up to 64 bits."""
        word = self.words[self.at]
        last = ~word & _HIGH
        last &= ~last + _ONE  # the lowest bit of it: the high bit of the integer's last byte
        number = word & (last - _ONE) & ~_HIGH
        for low, high, shift in _STEPS:
            number = (number & low) | ((number & high) >> shift)
        start = self.at.copy()
        self.at += np.frexp(last.astype(np.float64))[1] >> 3
        long = np.flatnonzero((last == 0) & self.good)
        if long.size:
            self._finish(long, start[long], number)
        self.require(self.at <= self.end)
        return np.asarray((number >> _ONE).astype(np.int64) ^ -(number & _ONE).astype(np.int64))

    def _finish(self, rows: Array, start: Array, number: Array) -> None:
        """The ninth and tenth byte of integers that are longer than eight."""
        ninth, tenth = (self.data[np.minimum(start + place, len(self.data) - 1)].astype(np.uint64) for place in (8, 9))
        more = ninth >= 0x80
        number[rows] |= (ninth & np.uint64(0x7F)) << np.uint64(56)
        number[rows] |= np.where(more, tenth << np.uint64(63), np.uint64(0))
        self.at[rows] = start + np.where(more, 10, 9)
        self.good[rows] &= ~more | (tenth <= 1)

    def slices(self, lengths: Array | int) -> pa.BinaryArray:
        """The next so many bytes of each row. Positions only grow with the rows, so that one array of the bytes and
        the gaps between them needs no copy of its own."""
        self.require((lengths >= 0) & (lengths <= self.end - self.at))
        edges = np.empty(2 * len(self), np.int32)
        edges[0::2] = self.at
        self.at = np.where(self.good, self.at + lengths, self.at)
        edges[1::2] = self.at
        if not len(self):
            return pa.array([], pa.binary())
        count = len(edges) - 1
        both = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(edges), pa.py_buffer(self.data)])
        return both.take(pa.array(np.arange(0, count, 2)))
