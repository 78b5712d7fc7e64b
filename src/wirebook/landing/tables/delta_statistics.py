"""The statistics of a data file in Delta's log, from its Parquet footer, so that readers skip files.

Left out are bounds that would not be safe or not exact: floats, among which NaN may be, decimals, and times without a
time zone.

Spec: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from collections.abc import Callable
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
        if declared.max_repetition_level or "." in name:  # nested
            continue
        if len(nulls) == MAX_COLUMNS:
            break
        columns = [group.column(position) for group in groups]
        statistics = [column.statistics for column in columns]
        if not all(item is not None and item.has_null_count for item in statistics):
            continue
        nulls[name] = sum(item.null_count for item in statistics)
        bounded = [item for item in statistics if item.has_min_max]
        values = sum(column.num_values - item.null_count for column, item in zip(columns, statistics, strict=True))
        if not bounded or values > sum(item.num_values for item in bounded):
            continue
        with suppress(OverflowError, ValueError):  # a time that Python cannot express
            least, most = min(item.min for item in bounded), max(item.max for item in bounded)
            is_local = isinstance(least, datetime) and least.tzinfo is None
            if type(least) in _BOUNDS and not is_local:
                low, high = _BOUNDS[type(least)]
                lowest[name], highest[name] = low(least), high(most)
    return {"numRecords": metadata.num_rows, "minValues": lowest, "maxValues": highest, "nullCount": nulls}


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
