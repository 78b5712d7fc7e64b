"""The statistics of a data file in Delta's log, from its Parquet footer, so that readers skip files.

Left out are bounds that would not be safe: floats among which NaN may be, which is above all other values and is in no
footer, and infinite ones. As few columns as possible should lack them: `DeltaTable.to_pyarrow_dataset` of `deltalake`
finds no row by a column without bounds.

Which columns have them is a property of the table, `delta.dataSkippingNumIndexedCols` or
`delta.dataSkippingStatsColumns`.

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
    """Which columns have statistics, by the properties of a table.

    Shape: the first `number` columns, in which each member of a struct counts, and a list or map counts as one (None:
    all columns); or those with the `names`, and the members of these, if there are any. Names are in lower case, and
    are tuples, because they may lead into structs.
    """

    number: int | None = DEFAULT_NUMBER
    names: frozenset[tuple[str, ...]] = frozenset()

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> IndexedColumns:
        """As the properties say; what is not a number does not count."""
        try:
            number = int(properties.get(NUMBER, DEFAULT_NUMBER))
        except ValueError:
            number = DEFAULT_NUMBER
        return cls(None if number < 0 else number, frozenset(_names(properties.get(NAMES, ""))))

    def positions(self, schema: pa.Schema) -> frozenset[int]:
        """The positions of the Parquet columns of a file with these columns that have statistics."""
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
    """The names in a list with commas; parts of a name have dots between them, and may be in backticks."""
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
    """What counts as a column, with the number of its Parquet columns."""
    for field in fields:
        path, type_ = (*above, field.name), field.type
        if not type_.num_fields:  # most: the kind of a type takes longer to find
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
    """The paths (names) of the columns that have bounds in `minValues` of statistics."""
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
    """Rows, and the bounds and null counts of some columns and members of structs; lists and maps have none.

    `without_nan` are the paths (names) of floats among which there is no NaN. `positions` are those of the Parquet
    columns with statistics; None: the default.
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
        # A part of the path with a dot in its name has fewer definition levels than the path seems to have parts.
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
        with suppress(OverflowError, ValueError):  # a time that Python cannot express
            if bounds := _bounds(chunks, statistics):
                _put(lowest, path, bounds[0])
                _put(highest, path, bounds[1])
    return {"numRecords": metadata.num_rows, "minValues": lowest, "maxValues": highest, "nullCount": nulls}


def _put(statistics: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Note the value of a column, or of a member of a struct."""
    for name in path[:-1]:
        statistics = statistics.setdefault(name, {})
    statistics[path[-1]] = value


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
    if type_ not in _BOUNDS:
        return None
    low, high = _BOUNDS[type_]
    bounds = low(min(lows)), high(max(highs))
    return None if type_ is float and not all(map(math.isfinite, bounds)) else bounds


def _text_above(text: str) -> str:
    """A short text that is not below this one."""
    rest = text[MAX_TEXT:].lstrip(HIGHEST)
    return text[: len(text) - len(rest)] + HIGHEST if rest else text


def _instant(moment: datetime) -> str:
    """A time in milliseconds, as Delta writes it, with a time zone or without; rounded down."""
    moment = moment if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _instant_above(moment: datetime) -> str:
    """The same, rounded up: not all readers allow for the digits that are cut off."""
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
"""How the lower and the upper bound of values of a type are written."""
