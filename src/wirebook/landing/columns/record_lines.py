"""Writes records as lines of JSON, which dead letters store and replay reads.

Records of a Parquet capture are written by columns if these have the usual types, else one by one, with the same text.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.bindings import read_parquet_batch, to_line
from wirebook.bindings.amqp import SECTIONS
from wirebook.bindings.capture import MEMBERS
from wirebook.bindings.parquet import UNITS, is_instant, object_of
from wirebook.bindings.wire import CLASSES, Mqtt5Publish, MqttProperties
from wirebook.landing.chunks import Chunk
from wirebook.landing.columns.parquet_records import PAIRS
from wirebook.landing.columns.slot_columns import Mask, Rows, mask_of
from wirebook.landing.columns.text_columns import as_texts, is_strings_or_bytes, without_dictionary
from wirebook.landing.tables.json_text import json_objects

__all__ = ["record_lines"]

NUMBERS_AND_FLAGS = ("status", "partition", "offset", "qos", "retain")


class _Unusual(Exception):
    """A column has a type that only the reference reads."""


def record_lines(chunk: Chunk, places: Rows) -> pa.BinaryArray:
    """The records at the positions `places` in a chunk: lines as captured, Parquet rows as `to_line` writes them. The
    records must be valid."""
    if chunk.lines is not None:
        return chunk.lines.take(pa.array(places)).cast(pa.binary())
    assert chunk.batch is not None
    batch = chunk.batch.take(pa.array(places))
    try:
        lines, is_written = _by_columns(batch)
    except _Unusual:
        return _one_by_one(batch)
    if is_written.all():
        return lines
    others = ~is_written
    return pc.replace_with_mask(lines, pa.array(others), _one_by_one(batch.filter(pa.array(others))))


def _one_by_one(batch: pa.RecordBatch) -> pa.BinaryArray:
    records = (parsed.wire for parsed in read_parquet_batch(batch))
    return pa.array((to_line(record) for record in records if record is not None), pa.binary())


def _by_columns(batch: pa.RecordBatch) -> tuple[pa.BinaryArray, Mask]:
    """The lines, and a mask of the rows whose lines are correct.

    Raises: _Unusual
    """
    protocols = pc.unique(without_dictionary(batch.column("protocol"))).to_pylist() if len(batch) else []
    cls = CLASSES.get(protocols[0]) if len(protocols) == 1 else None
    if cls is None or len({*batch.schema.names}) < len(batch.schema.names):
        raise _Unusual
    is_written = np.ones(len(batch), bool)
    members = {"protocol": pa.repeat(pa.scalar(cls.protocol), len(batch))}
    for name in MEMBERS[cls]:
        if name not in batch.schema.names:
            continue
        column = without_dictionary(batch.column(name))
        if column.null_count == len(column):
            continue
        if name in PAIRS:
            members[name], is_right = _pairs(column)
        elif pa.types.is_timestamp(column.type):
            members[name], is_right = _times(column)
        elif name in NUMBERS_AND_FLAGS:
            if not (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
                raise _Unusual
            members[name], is_right = column, np.ones(len(column), bool)
        elif cls is Mqtt5Publish and name == "properties":
            members[name], is_right = _properties(column), np.ones(len(column), bool)
        elif name in SECTIONS:
            is_right = mask_of(column.is_null())  # the JSON text may be formatted in any way
        else:
            members[name], is_right = _texts(column)
        is_written &= is_right
    return json_objects(pa.table(members), spelled=["properties"]).cast(pa.binary()), is_written


def _texts(column: pa.Array) -> tuple[pa.StringArray, Mask]:
    """The values as texts, and a mask of those that are null or UTF-8.

    Raises: _Unusual
    """
    if not is_strings_or_bytes(column.type):
        raise _Unusual
    texts, odd = as_texts(column)
    return texts, ~odd


def _times(column: pa.TimestampArray) -> tuple[pa.StringArray, Mask]:
    """Instants in UTC, with as many fractional digits as they need, and a mask of those in the years 1 to 9999."""
    is_right = is_instant(column)
    utc = pc.if_else(pa.array(is_right), column, None).cast(pa.timestamp(column.type.unit))
    texts = pc.binary_replace_slice(utc.cast(pa.string()), 10, 11, "T")
    if UNITS[column.type.unit] > 1:
        texts = pc.replace_substring_regex(texts, r"\.?0+$", "")
    return pc.binary_join_element_wise(texts, "Z", ""), is_right


def _pairs(column: pa.Array) -> tuple[pa.ListArray, Mask]:
    """Lists of name-value pairs as lists of lists of texts, and a mask of the lists with no values of other types.

    Raises: _Unusual
    """
    kinds, type_ = pa.types, column.type
    if kinds.is_map(type_):
        column = column.cast(pa.list_(pa.struct([("name", type_.key_type), ("value", type_.item_type)])))
    elif not (kinds.is_list(type_) or kinds.is_large_list(type_)) or not kinds.is_struct(type_.value_type):
        raise _Unusual
    pairs, rows = column.flatten(), pc.list_parent_indices(column).to_numpy()
    if {"name", "value"} - {pairs.type.field(place).name for place in range(pairs.type.num_fields)}:
        raise _Unusual
    is_right = np.ones(len(column), bool)
    parts = []
    for part in ("name", "value"):
        texts, are_right = _texts(without_dictionary(pc.struct_field(pairs, part)))
        is_right[rows[~are_right]] = False
        parts.append(texts)
    order = np.arange(2 * len(pairs)).reshape(2, -1).T.ravel()
    inner = pa.ListArray.from_arrays(
        np.arange(0, 2 * len(pairs) + 1, 2, dtype=np.int32), pa.concat_arrays(parts).take(order)
    )
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32(), mask=_null_mask(column)), inner)
    return lists, is_right


def _properties(column: pa.Array) -> pa.StringArray:
    """MQTT 5.0 properties as JSON texts, as in records. Equal values are converted once: a capture has few distinct
    ones."""
    encoded = column.dictionary_encode()
    values = (object_of("properties", text) for text in encoded.dictionary.to_pylist())
    read = (msgspec.convert(value, MqttProperties | None) for value in values)
    texts = (None if value is None else msgspec.json.encode(value).decode() for value in read)
    return pa.array(texts, pa.string()).take(encoded.indices)


def _null_mask(column: pa.Array) -> Mask | None:
    """The null mask for the offsets of a list array; the last offset does not begin a list. None without nulls."""
    return np.append(mask_of(column.is_null()), False) if column.null_count else None
