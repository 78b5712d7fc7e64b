"""Partitions by day: which column of a table has the time, and which day a file belongs to.

A file of a partitioned table has rows of one day. Its name ends with the day, so a repeated commit needs no other
information.

Spec: docs/how-to/table-settings.md#partitions; docs/decisions/0202, 0227, 0228
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from itertools import accumulate
from typing import Any, Final, Literal, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "NO_DAY",
    "DayPartition",
    "Partition",
    "day_in_name",
    "day_suffix",
    "day_values",
    "default_sort",
    "partition_of",
    "rows_by_day",
    "source_of",
]

EVENT_TIME: Final = "ce_time"
RECEIPT_TIME: Final = "_received"
NO_DAY: Final = "none"
Partition: TypeAlias = Literal["none", "event-day", "receipt-day"]
"""A value of the option `partition` of a table."""
EPOCH: Final = date(1970, 1, 1)
UNITS_A_DAY: Final = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
IN_NAME: Final = re.compile(r"-day-(\d{4}-\d\d-\d\d|none)\.parquet\Z")


class DayPartition(msgspec.Struct, frozen=True):
    """A partition by the UTC day of the column `source`. `column` is the name of the partition, and of its column if
    the format needs one."""

    source: str
    column: str


def partition_of(setting: Partition, schema: pa.Schema) -> DayPartition | None:
    """The partition of a new table with these columns; None if it is not partitioned."""
    source = source_of(setting, schema.names)
    if source is None or source not in schema.names:
        return None
    column = "event_day" if source == EVENT_TIME else "receipt_day"
    while column in {name.lower() for name in schema.names}:
        column += "_"
    return DayPartition(source, column)


def source_of(setting: Partition, columns: Iterable[str]) -> str | None:
    """The column whose day partitions a table with these columns; None if it is not partitioned. A table without
    event times is partitioned by the time of receipt."""
    if setting == "none":
        return None
    return EVENT_TIME if setting == "event-day" and EVENT_TIME in columns else RECEIPT_TIME


def default_sort(partition: DayPartition | None) -> tuple[str, ...]:
    """The default columns by which the rows of a file are sorted: the time column of the partition, if there is one."""
    return () if partition is None else (partition.source,)


def day_values(rows: pa.Table, partition: DayPartition) -> Any:
    """The UTC day of each row; null for a row without a time."""
    return rows[partition.source].combine_chunks().cast(pa.timestamp("us")).cast(pa.date32(), safe=False)


def rows_by_day(rows: pa.Table, partition: DayPartition) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each day, largest group first. The day is a date as text, or ``none``."""
    if (day := _only_day(rows[partition.source])) is not None:
        yield day, rows
        return
    days = day_values(rows, partition)
    rows = rows.take(pc.sort_indices(days))  # stable; nulls last
    counts = [(pair["values"], pair["counts"]) for pair in pc.value_counts(days).to_pylist()]
    counts.sort(key=lambda pair: (pair[0] is None, pair[0] or date.max))
    starts = accumulate((count for _, count in counts), initial=0)
    groups = [(day, start, count) for (day, count), start in zip(counts, starts, strict=False)]
    for day, start, count in sorted(groups, key=lambda group: -group[2]):
        yield _text(day), rows.slice(start, count)


def _only_day(times: pa.ChunkedArray) -> str | None:
    """The UTC day of all rows; None if there are several days. Most batches of a stream have only one."""
    if times.null_count:
        return NO_DAY if times.null_count == len(times) else None
    moments = times.combine_chunks().view(pa.int64()).to_numpy()
    first, last = (int(moment) // UNITS_A_DAY[times.type.unit] for moment in (moments.min(), moments.max()))
    return _text(EPOCH + timedelta(days=first)) if first == last else None


def _text(day: date | None) -> str:
    return NO_DAY if day is None else day.isoformat()


def day_suffix(day: str) -> str:
    """The end of the name of a file of this day, before the suffix of its format."""
    return f"-day-{day}"


def day_in_name(name: str) -> str | None:
    """The day in the name of a file; ``none`` for rows without a time; None if the file does not belong to a day."""
    match = IN_NAME.search(name)
    return match[1] if match else None
