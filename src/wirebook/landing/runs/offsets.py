"""Which messages of a broker, or of a DataFrame with identified rows, have landed: intervals of line numbers by file.

The file of a message from Kafka is ``kafka:TOPIC/PARTITION``, and its line is the offset. Intervals have no gaps: what
was not read is in none, so a filtered DataFrame or a compacted topic loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from wirebook.landing.chunks import Numbers

__all__ = ["Interval", "Offsets", "RepeatedMessage", "add_offsets", "intervals_of", "is_within"]

Interval = tuple[int, int]
"""The first and the last line."""

Offsets = dict[str, list[Interval]]
"""The intervals of each file, sorted, and neither overlapping nor adjacent."""


class RepeatedMessage(ValueError):
    """A line of a file occurs twice."""

    def __init__(self, file: str, line: int) -> None:
        super().__init__(
            f"two rows of the DataFrame are line {line} of '{file}'; drop duplicates, or identify the rows otherwise"
        )


def intervals_of(file: str, numbers: Numbers) -> list[Interval]:
    """The intervals of distinct lines, in any order.

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


def is_within(numbers: Numbers, intervals: list[Interval]) -> npt.NDArray[np.bool_]:
    """A mask of the lines that are in one of the intervals."""
    if not intervals:
        return np.zeros(len(numbers), bool)
    bounds = np.array(intervals, np.int64)
    at = np.searchsorted(bounds[:, 0], numbers, side="right") - 1
    within: npt.NDArray[np.bool_] = (at >= 0) & (numbers <= bounds[np.maximum(at, 0), 1])
    return within
