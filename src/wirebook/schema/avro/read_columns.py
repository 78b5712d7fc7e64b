"""Decode whole columns of Avro's binary encoding strictly, by array arithmetic. read.py is the reference.

Each reader takes a type and a cursor over the rows and returns the column of values. A row is rejected, and left to
read.py, if it is invalid or has rare content: an array or map in several blocks, with many items or with a repeated
key, a decimal beyond 64 bits, or an instant that Python's datetime cannot represent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.schema.avro.columns import DURATION, MAX_COLUMNS, MAX_LEVELS, layout_of
from wirebook.schema.avro.types import AvroType, expanded_size, is_recursive
from wirebook.schema.cursor import Array, Cursor
from wirebook.schema.scalar_columns import INSTANT, LOCAL_TIME

MIN_ROWS = 16
"""Beyond this many items, items are read only while at least this many rows have one; other rows are rejected."""
MAX_ITEMS = 4096
MILLIS = (-62135596800000, 253402300799999)  # the years 1 to 9999
DAYS = (-719162, 2932896)
HEXADECIMAL = np.array([list(b"%02x" % octet) for octet in range(256)], np.uint8)
UUID_DIGITS = [place for place in range(36) if place not in (8, 13, 18, 23)]


def is_columnar(type_: AvroType) -> bool:
    """Return whether a column of this type can be decoded at once."""
    small = expanded_size(type_) <= MAX_COLUMNS and not is_recursive(type_)
    return small and _levels(type_) <= MAX_LEVELS and not _too_wide(type_)


def _levels(type_: AvroType) -> int:
    return bool(type_.name) + max(map(_levels, type_.children), default=0)


def _too_wide(type_: AvroType) -> bool:
    wide = type_.logical == "decimal" and type_.attributes["precision"] > 38
    return wide or any(_too_wide(child) for child in type_.children)


def read_values(type_: AvroType, cursor: Cursor) -> pa.Array:
    """Decode the next value of each row."""
    if type_.logical in LOGICAL:
        return LOGICAL[type_.logical](type_, cursor)
    return READERS[type_.kind](type_, cursor)


# -- scalars ----------------------------------------------------------------------------------------------------------


def _boolean(type_: AvroType, cursor: Cursor) -> pa.Array:  # noqa: ARG001
    values = cursor.octets()
    cursor.require(values <= 1)
    return pa.array(values == 1)


def _ints(cursor: Cursor, low: int = -(2**31), high: int = 2**31 - 1) -> Array:
    """Decode the next integer of each row. Rows whose integer is out of bounds are rejected and have the value 0."""
    values = cursor.longs()
    cursor.require((values >= low) & (values <= high))
    return np.where(cursor.good, values, 0)


def _bytes(type_: AvroType, cursor: Cursor) -> pa.Array:
    return cursor.slices(type_.size if type_.kind == "fixed" else cursor.longs())


def _string(type_: AvroType, cursor: Cursor) -> pa.Array:
    octets = _bytes(type_, cursor)
    try:
        return octets.cast(pa.string())
    except pa.ArrowInvalid:
        valid = np.fromiter(map(_is_utf8, octets.to_pylist()), bool, len(octets))
        cursor.require(valid)
        return pc.if_else(pa.array(valid), octets, pa.scalar(b"")).cast(pa.string())


def _is_utf8(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True


def _enum(type_: AvroType, cursor: Cursor) -> pa.Array:
    return pa.array(type_.symbols, pa.string()).take(pa.array(_ints(cursor, 0, len(type_.symbols) - 1)))


# -- logical types ----------------------------------------------------------------------------------------------------


def _moment(arrow: pa.DataType, factor: int) -> Callable[[AvroType, Cursor], pa.Array]:
    low, high = MILLIS if factor == 1000 else (MILLIS[0] * 1000, MILLIS[1] * 1000 + 999)

    def read(type_: AvroType, cursor: Cursor) -> pa.Array:  # noqa: ARG001
        return pa.array(_ints(cursor, low, high) * factor).view(arrow)

    return read


def _decimal(type_: AvroType, cursor: Cursor) -> pa.Array:
    """Decode big-endian two's complement numbers. Rows with more than eight bytes are rejected."""
    precision, scale = type_.attributes["precision"], type_.attributes["scale"]
    lengths = np.full(len(cursor), type_.size, np.int64) if type_.kind == "fixed" else cursor.longs()
    cursor.require((lengths >= 0) & (lengths <= np.minimum(8, cursor.end - cursor.at)))
    lengths = np.where(cursor.good, lengths, 0)
    words = cursor.words[cursor.at].byteswap().view(np.int64)
    numbers = np.where(lengths == 0, 0, words >> (64 - 8 * np.maximum(lengths, 1)))
    cursor.at += lengths
    limit = 10 ** min(precision, 18)
    cursor.require((numbers > -limit) & (numbers < limit) | (precision > 18))
    halves = np.stack([numbers, numbers >> 63], axis=1)
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(cursor), [None, pa.py_buffer(halves)])


def _uuid(type_: AvroType, cursor: Cursor) -> pa.Array:
    """Decode a UUID to text, from a string or from the sixteen bytes of a fixed type."""
    if type_.kind == "string":
        return _string(type_, cursor)
    octets = cursor.data[cursor.at[:, None] + np.arange(16)]
    cursor.at += 16
    cursor.require(cursor.at <= cursor.end)
    text = np.full((len(cursor), 36), ord("-"), np.uint8)
    text[:, UUID_DIGITS] = HEXADECIMAL[octets].reshape(len(cursor), 32)
    return pa.array(text.view("S36").ravel(), pa.binary()).cast(pa.string())


def _duration(type_: AvroType, cursor: Cursor) -> pa.Array:  # noqa: ARG001
    numbers = [pa.array((cursor.eight(4) & np.uint64(0xFFFFFFFF)).astype(np.int64)) for _ in DURATION]
    return pa.StructArray.from_arrays(numbers, fields=list(DURATION))


LOGICAL: dict[str, Callable[[AvroType, Cursor], pa.Array]] = {
    "decimal": _decimal,
    "uuid": _uuid,
    "date": lambda _, cursor: pa.array(_ints(cursor, *DAYS).astype(np.int32)).view(pa.date32()),
    "timestamp-millis": _moment(INSTANT, 1000),
    "timestamp-micros": _moment(INSTANT, 1),
    "local-timestamp-millis": _moment(LOCAL_TIME, 1000),
    "local-timestamp-micros": _moment(LOCAL_TIME, 1),
    "duration": _duration,
}


# -- complex types ----------------------------------------------------------------------------------------------------


def _record(type_: AvroType, cursor: Cursor) -> pa.Array:
    if not type_.fields:
        return pa.array(["{}"] * len(cursor), pa.string())
    parts = [read_values(field, cursor) for _, field in type_.fields]
    return pa.StructArray.from_arrays(parts, fields=list(layout_of(type_).arrow))


def _union(type_: AvroType, cursor: Cursor) -> pa.Array:
    indexes = _ints(cursor, 0, len(type_.branches) - 1)
    parts = {branch.branch_name: _branch(branch, cursor, np.flatnonzero((indexes == index) & cursor.good))
             for index, branch in enumerate(type_.branches) if branch.kind != "null"}  # fmt: skip
    if len(parts) == 1:
        return next(iter(parts.values()))
    names = [branch.branch_name for branch in type_.branches]
    absent = indexes == names.index("null") if "null" in names else np.zeros(len(cursor), bool)
    if not parts:
        return pa.nulls(len(cursor), pa.string())
    return pa.StructArray.from_arrays(list(parts.values()), list(parts), mask=pa.array(absent))


def _branch(type_: AvroType, cursor: Cursor, rows: Array) -> pa.Array:
    """Decode the values of `rows`, which have this branch. All other rows are null."""
    part = cursor.select(rows)
    values = read_values(type_, part)
    cursor.update(rows, part)
    return values if len(rows) == len(cursor) else values.take(_places(rows, len(cursor)))


def _places(rows: Array, count: int) -> pa.Array:
    """Return the index in `rows` of each of `count` rows; null if it is not among them."""
    places, absent = np.zeros(count, np.int64), np.ones(count, bool)
    places[rows], absent[rows] = np.arange(len(rows)), False
    return pa.array(places, mask=absent)


def _array(type_: AvroType, cursor: Cursor) -> pa.Array:
    assert type_.items is not None
    items = type_.items
    owners, columns = _items(cursor, lambda part: [read_values(items, part)])
    offsets, order = _row_major(owners, len(cursor))
    empty = pa.array([], layout_of(items).arrow)
    return pa.ListArray.from_arrays(offsets, _concat([column[0] for column in columns], empty).take(order))


def _map(type_: AvroType, cursor: Cursor) -> pa.Array:
    assert type_.items is not None
    items, key = type_.items, AvroType("string")
    owners, columns = _items(cursor, lambda part: [read_values(key, part), read_values(items, part)])
    offsets, order = _row_major(owners, len(cursor))
    keys = _concat([column[0] for column in columns], pa.array([], pa.string()))
    values = _concat([column[1] for column in columns], pa.array([], layout_of(items).arrow))
    cursor.require(~_with_repeats(owners, keys, len(cursor)))
    return pa.MapArray.from_arrays(offsets, keys.take(order), values.take(order))


def _items(cursor: Cursor, read: Callable[[Cursor], list[pa.Array]]) -> tuple[list[Array], list[list[pa.Array]]]:
    """Decode one block of items per row, and return the rows and the columns of the items.

    The first items of all rows are decoded at once, then the second items, and so on.
    """
    counts = _ints(cursor, 0, MAX_ITEMS)
    owners: list[Array] = []
    columns: list[list[pa.Array]] = []
    for index in range(int(counts.max(initial=0))):
        has_item = counts > index
        if index >= MIN_ROWS > has_item.sum():
            cursor.require(~has_item)
        rows = np.flatnonzero(has_item & cursor.good)
        if not rows.size:
            break
        part = cursor.select(rows)
        columns.append(read(part))
        owners.append(rows)
        cursor.update(rows, part)
    not_empty = np.flatnonzero((counts > 0) & cursor.good)
    part = cursor.select(not_empty)
    part.require(part.longs() == 0)
    cursor.update(not_empty, part)
    return owners, columns


def _row_major(owners: list[Array], count: int) -> tuple[pa.Array, pa.Array]:
    """Return the offsets of the lists, and the positions of their items sorted by row."""
    rows = np.concatenate([np.empty(0, np.int64), *owners]).astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=count)))).astype(np.int32)
    return pa.array(offsets), pa.array(np.argsort(rows, kind="stable"))


def _concat(parts: list[pa.Array], empty: pa.Array) -> pa.Array:
    return pa.concat_arrays(parts) if parts else empty


def _with_repeats(owners: list[Array], keys: pa.Array, count: int) -> Array:
    """Return which rows have a map that repeats a key."""
    has_repeats = np.zeros(count, bool)
    if len(owners) > 1:
        rows = np.concatenate(owners)
        codes = np.asarray(keys.dictionary_encode().indices, dtype=np.int64)
        pairs, times = np.unique(rows * (codes.max() + 1) + codes, return_counts=True)
        has_repeats[pairs[times > 1] // (codes.max() + 1)] = True
    return has_repeats


READERS: dict[str, Callable[[AvroType, Cursor], Any]] = {
    "null": lambda _, cursor: pa.nulls(len(cursor), pa.string()),
    "boolean": _boolean,
    "int": lambda _, cursor: pa.array(_ints(cursor).astype(np.int32)),
    "long": lambda _, cursor: pa.array(cursor.longs()),
    "float": lambda _, cursor: pa.array(cursor.eight(4).astype(np.uint32).view(np.float32)),
    "double": lambda _, cursor: pa.array(cursor.eight().view(np.float64)),
    "bytes": _bytes,
    "fixed": _bytes,
    "string": _string,
    "enum": _enum,
    "record": _record,
    "union": _union,
    "array": _array,
    "map": _map,
}
