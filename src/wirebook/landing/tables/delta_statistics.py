"""The statistics of a data file in Delta's log, from its Parquet footer, so that readers skip files.

Left out are bounds that would not be safe or not exact: floats, among which NaN may be, decimals, and times without a
time zone.

Spec: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import pyarrow.parquet as pq

__all__ = ["file_statistics"]

MAX_COLUMNS: Final = 32
"""How many leading columns have statistics, as Delta's own writers do it."""
MAX_TEXT: Final = 32
HIGHEST: Final = "\U0010ffff"


def file_statistics(metadata: pq.FileMetaData) -> dict[str, Any]:
    """Rows, and the bounds and null counts of the first columns that are not nested."""
    lowest: dict[str, Any] = {}
    highest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    schema, groups = metadata.schema, [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    for position in range(metadata.num_columns):
        declared = schema.column(position)
        name = declared.path
        if "." in name or declared.max_repetition_level:  # nested
            continue
        if len(nulls) == MAX_COLUMNS:
            break
        chunks = [group.column(position) for group in groups]
        statistics = [chunk.statistics for chunk in chunks]
        count = _null_count(statistics)
        if count is None:
            continue
        nulls[name] = count
        with suppress(OverflowError, ValueError):  # a time that Python cannot express
            if bounds := _bounds(chunks, statistics):
                lowest[name], highest[name] = bounds
    return {"numRecords": metadata.num_rows, "minValues": lowest, "maxValues": highest, "nullCount": nulls}


def _null_count(statistics: Sequence[pq.Statistics | None]) -> int | None:
    """The nulls of a column, from those of its row groups; None if they are not known."""
    count = 0
    for of_group in statistics:
        if of_group is None or not of_group.has_null_count:
            return None
        count += of_group.null_count
    return count


def _bounds(chunks: Sequence[pq.ColumnChunkMetaData], statistics: Sequence[pq.Statistics]) -> tuple[Any, Any] | None:
    """The lower and the upper bound of a column, as the log has them; None if it has no values, or none that are safe.

    Raises: OverflowError or ValueError for a time that Python cannot express
    """
    lows, highs = [], []
    for chunk, of_group in zip(chunks, statistics, strict=True):
        if of_group.has_min_max:
            lows.append(of_group.min)
            highs.append(of_group.max)
        elif chunk.num_values > of_group.null_count:
            return None
    type_ = type(lows[0]) if lows else None
    if type_ not in _BOUNDS or (type_ is datetime and lows[0].tzinfo is None):
        return None
    low, high = _BOUNDS[type_]
    return low(min(lows)), high(max(highs))


def _text_above(text: str) -> str:
    """A short text that is not below this one."""
    rest = text[MAX_TEXT:].lstrip(HIGHEST)
    return text[: len(text) - len(rest)] + HIGHEST if rest else text


def _instant(moment: datetime) -> str:
    """A time in milliseconds, as Delta writes it; rounded down."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _instant_above(moment: datetime) -> str:
    """The same, rounded up: not all readers allow for the digits that are cut off."""
    return _instant(moment + timedelta(microseconds=999))


_BOUNDS: Final[dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    int: (int, int),
    str: (lambda text: text[:MAX_TEXT], _text_above),
    date: (date.isoformat, date.isoformat),
    datetime: (_instant, _instant_above),
}
"""How the lower and the upper bound of values of a type are written."""
