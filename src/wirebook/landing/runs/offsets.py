"""Tracks which messages of a broker, or of a DataFrame with identified rows, have landed: intervals of lines by file.

The file of a Kafka message is ``kafka:TOPIC/PARTITION``, and its line is the offset. Messages that were not read are in
no interval, so those that a DataFrame filters out can still land later. If a query is known to read all messages, the
intervals also include offsets without a message.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from wirebook.landing.chunks import Numbers

__all__ = ["Interval", "Offsets", "RepeatedMessage", "add_offsets", "fill_offsets", "intervals_of", "is_within"]

Interval = tuple[int, int]
"""The first and the last line, both inclusive."""

Offsets = dict[str, list[Interval]]
"""The intervals of each file, sorted, and neither overlapping nor adjacent."""


class RepeatedMessage(ValueError):
    """A line of a file occurs twice."""

    def __init__(self, file: str, line: int) -> None:
        super().__init__(
            f"two rows of the DataFrame have the same identity, line {line} of '{file}'; drop duplicates, or choose "
            "other identity columns"
        )


def intervals_of(file: str, numbers: Numbers) -> list[Interval]:
    """The intervals of lines, which must be distinct but may be in any order.

    Raises: RepeatedMessage
    """
    lines = np.sort(numbers)
    steps = np.diff(lines)
    if len(repeated := np.flatnonzero(steps == 0)):
        raise RepeatedMessage(file, int(lines[repeated[0]]))
    starts = np.concatenate(([0], np.flatnonzero(steps > 1) + 1)) if len(lines) else np.zeros(0, np.int64)
    ends = np.append(starts[1:] - 1, len(lines) - 1) if len(lines) else starts
    return list(zip(lines[starts].tolist(), lines[ends].tolist(), strict=True))


def add_offsets(total: Offsets, file: str, new: Iterable[Interval]) -> None:
    """Add intervals of a file.

    Raises: RepeatedMessage if one overlaps with another
    """
    merged: list[Interval] = []
    for first, last in sorted([*total.get(file, ()), *new]):
        if merged and first <= merged[-1][1]:
            raise RepeatedMessage(file, first)
        if merged and first == merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    total[file] = merged


def fill_offsets(total: Offsets, file: str, first: int, last: int) -> None:
    """Add the lines from `first` to `last` of a file, some of which may already be in its intervals."""
    apart: list[Interval] = []
    for start, end in total.get(file, ()):
        if end < first - 1 or start > last + 1:
            apart.append((start, end))
        else:
            first, last = min(first, start), max(last, end)
    total[file] = sorted([*apart, (first, last)])


def is_within(numbers: Numbers, intervals: list[Interval]) -> npt.NDArray[np.bool_]:
    """A mask of the lines that are in one of the intervals."""
    if not intervals:
        return np.zeros(len(numbers), bool)
    bounds = np.array(intervals, np.int64)
    at = np.searchsorted(bounds[:, 0], numbers, side="right") - 1
    within: npt.NDArray[np.bool_] = (at >= 0) & (numbers <= bounds[np.maximum(at, 0), 1])
    return within
