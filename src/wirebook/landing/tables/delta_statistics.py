"""The statistics of a data file in Delta's log, computed from its Parquet footer, so that readers can skip files.

Unsafe bounds are left out: those of floats that may include NaN, which sorts above all other values but is not
covered by the bounds in the footer, and infinite ones. As few columns as possible should lack bounds, because
`DeltaTable.to_pyarrow_dataset` of `deltalake` finds no rows when it filters by a column without bounds.

The table properties `delta.dataSkippingNumIndexedCols` and `delta.dataSkippingStatsColumns` select the columns that
have statistics.

Spec: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["IndexedColumns", "bounded_columns", "file_statistics"]

NUMBER: Final = "delta.dataSkippingNumIndexedCols"
NAMES: Final = "delta.dataSkippingStatsColumns"
DEFAULT_NUMBER: Final = 32
NAME_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^`.,]+)|([.,])")
MAX_TEXT: Final = 32
FLOATS: Final = ("FLOAT", "DOUBLE")
HIGHEST: Final = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class IndexedColumns:
    """The columns that have statistics, according to the properties of a table.

    Shape: the columns with the `names`, and their members, if there are any names; otherwise the first `number`
    columns (None: all), where each member of a struct counts as a column, and a list or map counts as one. A name is
    in lower case, and is a tuple, because it may lead into structs.
    """

    number: int | None = DEFAULT_NUMBER
    names: frozenset[tuple[str, ...]] = frozenset()

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> IndexedColumns:
        """Read the properties of a table. A value that is not a number is ignored."""
        try:
            number = int(properties.get(NUMBER, DEFAULT_NUMBER))
        except ValueError:
            number = DEFAULT_NUMBER
        return cls(None if number < 0 else number, frozenset(_names(properties.get(NAMES, ""))))

    def positions(self, schema: pa.Schema) -> frozenset[int]:
        """The positions of the Parquet columns that have statistics, in a file with the columns `schema`."""
        chosen: set[int] = set()
        position = 0
        for number, (path, width) in enumerate(_counted(schema)):
            if self.names:
                lowered = tuple(name.lower() for name in path)
                is_chosen = any(lowered[: end + 1] in self.names for end in range(len(path)))
            else:
                is_chosen = self.number is None or number < self.number
            if is_chosen:
                chosen.update(range(position, position + width))
            position += width
        return frozenset(chosen)


def _names(text: str) -> Iterator[tuple[str, ...]]:
    """Parse a comma-separated list of names. The parts of a name are separated by dots, and may be quoted with
    backticks."""
    parts: list[str] = []
    for quoted, plain, separator in NAME_PART.findall(text):
        if separator == "," and parts:
            yield tuple(parts)
            parts = []
        elif name := quoted.replace("``", "`") or plain.strip():
            parts.append(name.lower())
    if parts:
        yield tuple(parts)


def _counted(fields: Iterable[pa.Field], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    """The paths of what counts as a column (see `IndexedColumns`), each with its number of Parquet columns."""
    for field in fields:
        path, type_ = (*above, field.name), field.type
        if not type_.num_fields:  # most columns: this is faster than checking the kind of a type
            yield path, 1
        elif pa.types.is_struct(type_):
            yield from _counted(type_, path)
        else:
            yield path, _width(type_)


def _width(type_: pa.DataType) -> int:
    """The number of Parquet columns of a type."""
    if pa.types.is_struct(type_):
        return sum(_width(member.type) for member in type_)
    if pa.types.is_map(type_):
        return _width(type_.key_type) + _width(type_.item_type)
    return _width(type_.value_type) if pa.types.is_nested(type_) else 1


def bounded_columns(statistics: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths (tuples of names) of the columns that have bounds, from the `minValues` of statistics."""
    for name, value in statistics.items():
        if isinstance(value, Mapping):
            yield from bounded_columns(value, (*above, name))
        else:
            yield (*above, name)


def file_statistics(
    metadata: pq.FileMetaData,
    without_nan: Collection[tuple[str, ...]] = (),
    positions: Collection[int] | None = None,
) -> dict[str, Any]:
    """The number of rows, and the bounds and null counts of columns and members of structs. Lists and maps have none.

    `without_nan` are the paths (tuples of names) of float columns that contain no NaN. `positions` selects the
    Parquet columns with statistics; None selects those that have statistics by default.
    """
    if positions is None:
        positions = IndexedColumns().positions(metadata.schema.to_arrow_schema())
    lowest: dict[str, Any] = {}
    highest: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    schema, groups = metadata.schema, [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    for position in sorted(positions):
        declared = schema.column(position)
        path = declared.path.split(".")
        # If a name contains a dot, the path seems to have more parts than the column has definition levels.
        if declared.max_repetition_level or (len(path) > 1 and declared.max_definition_level != len(path)):
            continue
        chunks = [group.column(position) for group in groups]
        statistics = [chunk.statistics for chunk in chunks]
        count = _null_count(statistics)
        if count is None:
            continue
        _put(nulls, path, count)
        if declared.physical_type in FLOATS and tuple(path) not in without_nan:
            continue
        with suppress(OverflowError, ValueError):  # a timestamp outside the range of Python's `datetime`
            if bounds := _bounds(chunks, statistics):
                _put(lowest, path, bounds[0])
                _put(highest, path, bounds[1])
    return {"numRecords": metadata.num_rows, "minValues": lowest, "maxValues": highest, "nullCount": nulls}


def _put(statistics: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Set the value of a column, or of a member of a struct."""
    for name in path[:-1]:
        statistics = statistics.setdefault(name, {})
    statistics[path[-1]] = value


def _null_count(statistics: Sequence[pq.Statistics | None]) -> int | None:
    """The number of nulls of a column in all row groups; None if it is unknown."""
    count = 0
    for of_group in statistics:
        if of_group is None or not of_group.has_null_count:
            return None
        count += of_group.null_count
    return count


def _bounds(chunks: Sequence[pq.ColumnChunkMetaData], statistics: Sequence[pq.Statistics]) -> tuple[Any, Any] | None:
    """The lower and the upper bound of a column in the format of the log; None if it has no values, or no safe
    bounds.

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
    if type_ not in _BOUNDS:
        return None
    low, high = _BOUNDS[type_]
    bounds = low(min(lows)), high(max(highs))
    return None if type_ is float and not all(map(math.isfinite, bounds)) else bounds


def _text_above(text: str) -> str:
    """A short upper bound of a text: it does not sort below the text."""
    rest = text[MAX_TEXT:].lstrip(HIGHEST)
    return text[: len(text) - len(rest)] + HIGHEST if rest else text


def _instant(moment: datetime) -> str:
    """A timestamp in Delta's text format, with or without a time zone, rounded down to milliseconds."""
    moment = moment if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _instant_above(moment: datetime) -> str:
    """As `_instant`, but rounded up, because not all readers account for the truncated digits."""
    return _instant(moment + timedelta(microseconds=999))


_BOUNDS: Final[dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    bool: (bool, bool),
    int: (int, int),
    float: (float, float),
    Decimal: (Decimal, Decimal),
    str: (lambda text: text[:MAX_TEXT], _text_above),
    date: (date.isoformat, date.isoformat),
    datetime: (_instant, _instant_above),
}
"""The functions that format the lower and the upper bound of a column, by type of value."""
