"""Decode many byte strings of the same layout in parallel: each row has a position, advanced by array arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, Any]
PADDING = 16
"""Number of zero bytes after the data, so that eight bytes can be read at any position."""

# The first eight bytes of a variable-length integer are decoded at once: find the first byte whose high bit is not
# set, then pack the seven low bits of each byte in three steps.
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
    """The current position in each row.

    Shape: `data` has the bytes of all rows and the padding; `words` has the eight bytes at each offset, little-endian;
    `at` and `end` are offsets per row; `good` is False for a rejected row, whose values are meaningless.
    """

    data: Array
    words: Array
    at: Array
    end: Array
    good: Array

    @classmethod
    def over(cls, payloads: pa.BinaryArray) -> Cursor:
        """Return a cursor at the beginning of each payload."""
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
        """Return a cursor over some rows. Pass it to `update` after reading."""
        return Cursor(self.data, self.words, self.at[rows], self.end[rows], self.good[rows])

    def update(self, rows: Array, part: Cursor) -> None:
        """Copy the positions and rejections of a cursor that `select` returned."""
        self.at[rows], self.good[rows] = part.at, part.good

    def require(self, holds: Array) -> None:
        """Reject the rows for which a condition is false, and move all rejected rows to their end."""
        self.good &= holds
        if not self.good.all():
            self.at[~self.good] = self.end[~self.good]

    # -- reading ------------------------------------------------------------------------------------------------------

    def octets(self) -> Array:
        """Read the next byte."""
        values: Array = self.data[self.at]
        self.at += 1
        self.require(self.at <= self.end)
        return values

    def eight(self, size: int = 8) -> Array:
        """Read the next `size` bytes, at most eight, as the low bytes of an integer; its other bytes are undefined."""
        values: Array = self.words[self.at]
        self.at += size
        self.require(self.at <= self.end)
        return values

    def longs(self) -> Array:
        """Read the next zigzag integer of up to 64 bits."""
        word = self.words[self.at]
        last = ~word & _HIGH
        last &= ~last + _ONE  # the lowest bit: the high bit of the integer's last byte
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
        """Read the ninth and tenth bytes of integers longer than eight bytes."""
        ninth, tenth = (self.data[np.minimum(start + place, len(self.data) - 1)].astype(np.uint64) for place in (8, 9))
        more = ninth >= 0x80
        number[rows] |= (ninth & np.uint64(0x7F)) << np.uint64(56)
        number[rows] |= np.where(more, tenth << np.uint64(63), np.uint64(0))
        self.at[rows] = start + np.where(more, 10, 9)
        self.good[rows] &= ~more | (tenth <= 1)

    def slices(self, lengths: Array | int) -> pa.BinaryArray:
        """Read the next `lengths` bytes of each row.

        Offsets ascend with the rows. A binary array that alternates values and the gaps between them can therefore
        share `data` without a copy.
        """
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
