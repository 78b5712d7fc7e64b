"""Counts messages over time: how many landed and how many became dead letters, by intervals of their receive times.

A row group whose bounds lie in one interval is counted from its footer. Of other row groups, the column of times is
read.

Spec: docs/land.md#the-report; docs/decisions/0063
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirebook.landing.chunks import Numbers
from wirebook.landing.stores.locations import Location, parquet_source

__all__ = ["GroupTimes", "Timeline", "group_times", "timeline"]

MAX_INTERVALS: Final = 60
MAX_ROWS: Final = 20_000_000
"""Maximum number of times that are read. Row groups beyond it are not in the timeline."""
MICROSECOND: Final = timedelta(microseconds=1)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
DAY: Final = 86_400
STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, DAY, 7 * DAY)
"""Lengths of intervals in seconds. Longer ones are whole weeks, shorter ones decimal fractions."""


@dataclass(frozen=True, slots=True)
class GroupTimes:
    """The receive times of a row group: their bounds, and `rows`, the number of times that are not null.

    Shape: `source` is (file, number of the row group, name of the column), or the times themselves.
    """

    first: datetime
    last: datetime
    rows: int
    source: tuple[Location, int, str] | pa.Array


@dataclass(frozen=True, slots=True)
class Timeline:
    """Messages by interval. The first interval begins at `start`; `landed` and `dead` have a count for each.

    `missing` counts messages that are in no interval: those without a receive time, those of tables that the report
    leaves out, and those of row groups whose times were not read (`MAX_ROWS`, or the file is missing).
    """

    start: datetime
    step: timedelta
    landed: tuple[int, ...]
    dead: tuple[int, ...]
    missing: int

    def __len__(self) -> int:
        """The number of intervals."""
        return len(self.landed)

    def intervals(self) -> Iterator[tuple[datetime, int, int]]:
        """Yield the start of each interval, and its numbers of landed messages and of dead letters."""
        for number, (landed, dead) in enumerate(zip(self.landed, self.dead, strict=True)):
            yield self.start + number * self.step, landed, dead


def group_times(metadata: pq.FileMetaData, file: Location | pa.Table, column: str) -> Iterator[GroupTimes]:
    """Yield the times of each row group whose footer has bounds; nothing if the column is missing. `file` is the file,
    or its rows if they are in memory."""
    names = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    if column not in names:
        return
    number = names.index(column)
    for group in range(metadata.num_row_groups):
        piece = metadata.row_group(group).column(number)
        bounds = piece.statistics
        if bounds is None or not (bounds.has_min_max and bounds.has_null_count):
            continue
        source = file.column(column).combine_chunks() if isinstance(file, pa.Table) else (file, group, column)
        rows = metadata.row_group(group).num_rows - bounds.null_count
        yield GroupTimes(_aware(bounds.min), _aware(bounds.max), rows, source)


def timeline(landed: Sequence[GroupTimes], dead: Sequence[GroupTimes], messages: int) -> Timeline | None:
    """The timeline of row groups of tables and of dead letters; None without row groups. `messages` is the number of
    all messages.

    Cost: reads the times of row groups that span several intervals.
    """
    groups = [*landed, *dead]
    if not groups:
        return None
    first, last = min(group.first for group in groups), max(group.last for group in groups)
    step = _step(last - first)
    start = EPOCH + (first - EPOCH) // step * step
    count = (last - start) // step + 1
    left = MAX_ROWS
    totals: list[tuple[int, ...]] = []
    for part in (landed, dead):
        total = np.zeros(count, np.int64)
        for group in part:
            lowest, highest = (group.first - start) // step, (group.last - start) // step
            if lowest == highest:
                total[lowest] += group.rows
            elif group.rows <= left:
                left -= group.rows
                total += _counts(group, start, step, count)
        totals.append(tuple(total.tolist()))
    return Timeline(start, step, totals[0], totals[1], missing=messages - sum(map(sum, totals)))


def _step(span: timedelta) -> timedelta:
    """The shortest interval of which sixty cover a span, wherever it begins; a second for a span of length 0."""
    if not span:
        return timedelta(seconds=1)
    seconds = span / timedelta(seconds=1) / (MAX_INTERVALS - 1)
    if seconds <= 1:
        exponent = math.floor(math.log10(max(seconds, 1e-6)))
        shares = (factor * 10.0**power for power in (exponent, exponent + 1) for factor in (1, 2, 5))
        return max(timedelta(seconds=next(share for share in shares if share >= seconds)), MICROSECOND)
    fitting = (step for step in STEPS if step >= seconds)
    return timedelta(seconds=next(fitting, math.ceil(seconds / (7 * DAY)) * 7 * DAY))


def _counts(group: GroupTimes, start: datetime, step: timedelta, count: int) -> Numbers:
    """The number of times in each interval."""
    times = _read(group)
    if times is None:
        return np.zeros(count, np.int64)
    moments = pc.cast(times.drop_null(), pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy(zero_copy_only=False)
    places = (moments - (start - EPOCH) // MICROSECOND) // (step // MICROSECOND)
    return np.bincount(places, minlength=count)[:count].astype(np.int64)


def _read(group: GroupTimes) -> pa.Array | None:
    """The times of a row group; None if its file is missing or unreadable."""
    if not isinstance(group.source, tuple):
        return group.source
    file, number, column = group.source
    try:
        with pq.ParquetFile(parquet_source(file)) as parquet:
            return parquet.read_row_group(number, columns=[column]).column(0).combine_chunks()
    except (OSError, pa.ArrowException):
        return None


def _aware(moment: Any) -> datetime:
    """A time of a footer, as an aware datetime. Parquet stores times in UTC."""
    time: datetime = moment
    return time if time.tzinfo else time.replace(tzinfo=UTC)
