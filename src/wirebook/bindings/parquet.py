"""Read captures in Parquet: each member of a record is a column (docs/capture-format.md).

Bytes are binary columns, times are UTC timestamps, pairs are ``list<struct<name, value>>``, objects are JSON text.
Columns may be absent. A null is an absent member. Columns that are not members of the format are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import repeat
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirebook.bindings.capture import EXPECTED, Parsed, record_of
from wirebook.bindings.wire import from_bytes, preview
from wirebook.problems import Problem
from wirebook.text.duplicates import first_duplicate, may_have_duplicates
from wirebook.text.json import JsonError, parse_json

_OBJECTS: Final = (
    "properties",
    "header",
    "delivery-annotations",
    "message-annotations",
    "application-properties",
    "footer",
)
UNITS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # units per second
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_SECOND: Final = -62135596800  # of the year 1
LAST_SECOND: Final = 253402300799  # of the year 9999
_NOT_UTF8: Final = "bytes that are not UTF-8"


class _Wrong:
    """An invalid value of a column, with its problem."""

    def __init__(self, member: str, expected: str, actual: Any) -> None:
        message = f"{member} must be {expected}"
        self.problem = Problem("malformed-record", message, slot=member, expected=expected, actual=preview(actual))


# Reading: other columns are not reported, because tables have columns such as partitions.
def read_parquet_batch(batch: pa.RecordBatch) -> list[Parsed]:
    """Read the records of the rows, with the same results as `parse_record`."""
    names = [name for name in ("protocol", *EXPECTED) if name in batch.schema.names]
    columns = {name: _column(name, batch) for name in names}
    rows = zip(*columns.values(), strict=True) if columns else ((),) * batch.num_rows
    return [_record(dict(zip(columns, row, strict=True))) for row in rows]


def _column(name: str, batch: pa.RecordBatch) -> Iterator[Any]:
    if batch.schema.names.count(name) > 1:
        return repeat(_Wrong(name, "a single column", "several columns"), len(batch))
    return _values(name, batch.column(name))


def _record(row: dict[str, Any]) -> Parsed:
    value = {name: item for name, item in row.items() if item is not None}
    wrong = tuple(item.problem for item in value.values() if isinstance(item, _Wrong))
    if not wrong:
        return record_of(value)
    return Parsed(None, wrong, {name: item for name, item in value.items() if not isinstance(item, _Wrong)})


def _values(name: str, column: pa.Array) -> Iterator[Any]:
    """Yield the values of a column as in the JSON of a record."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type):
        return _times(name, column)
    read = partial(object_of, name) if name in _OBJECTS else _READERS.get(name) or partial(_plain, name)
    return (item if item is None or isinstance(item, _Wrong) else read(item) for item in _items(name, column))


def _items(name: str, column: pa.Array) -> list[Any]:
    """Return the values of a column. Text that is not valid UTF-8 becomes a `_Wrong`."""
    try:
        items: list[Any] = column.to_pylist()
        return items
    except UnicodeDecodeError:
        return [_item(name, scalar) for scalar in column]


def _item(name: str, scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return _wrong(name, _NOT_UTF8)


def _wrong(name: str, actual: Any) -> _Wrong:
    return _Wrong(name, EXPECTED.get(name, "a string"), actual)


def _plain(name: str, item: Any) -> Any:
    """Return the value itself, or the text of bytes that are valid UTF-8."""
    try:
        return item.decode() if isinstance(item, bytes) else item
    except UnicodeDecodeError:
        return _wrong(name, _NOT_UTF8)


def _bytes(item: Any) -> Any:
    return from_bytes(item) if isinstance(item, bytes) else item


def _pairs(item: Any) -> Any:
    return [_pair(pair) for pair in item] if isinstance(item, list) else item


def _pair(pair: Any) -> Any:
    """Return the pair of a struct with a name and a value, or of a map entry."""
    if isinstance(pair, dict):
        pair = pair.get("name"), pair.get("value")
    return [_bytes(part) for part in pair] if isinstance(pair, tuple) else pair


def object_of(name: str, item: Any) -> Any:
    """Parse the JSON text of a member that is an object. Return a `_Wrong` for invalid text."""
    text = item.encode() if isinstance(item, str) else item
    if not isinstance(text, bytes):
        return _Wrong(name, "the JSON text of an object", item)
    try:
        value = parse_json(text)
    except JsonError as error:
        return _Wrong(name, "the JSON text of an object", error.message)
    duplicate = first_duplicate(text) if may_have_duplicates(text, value) else None
    return value if duplicate is None else _Wrong(f"{name}.{preview(duplicate[0])}", "a single member", "two members")


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("body", "key", "value", "payload", "data"), _bytes),
    **dict.fromkeys(("headers", "user_properties"), _pairs),
}


def is_instant(column: pa.TimestampArray) -> npt.NDArray[np.bool_]:
    """Return a mask of the times in the years 1 to 9999. Nulls are True."""
    seconds = column.cast(pa.int64()).fill_null(0).to_numpy() // UNITS[column.type.unit]
    return np.asarray((seconds >= FIRST_SECOND) & (seconds <= LAST_SECOND))


def _times(name: str, column: pa.Array) -> Iterator[Any]:
    scale = UNITS[column.type.unit]
    for item in column.cast(pa.int64()).to_pylist():
        yield None if item is None else _time(name, item, scale)


def _time(name: str, item: int, scale: int) -> Any:
    seconds, fraction = divmod(item, scale)
    try:
        text = (_EPOCH + timedelta(seconds=seconds)).isoformat().removesuffix("+00:00")
    except OverflowError:
        return _Wrong(name, "a time from the year 1 to 9999", item)
    digits = f"{fraction:0{len(str(scale)) - 1}d}".rstrip("0") if fraction else ""
    return f"{text}.{digits}Z" if digits else f"{text}Z"
