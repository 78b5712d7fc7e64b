"""The JSON text of rows, made column by column: Python objects are created only for values of types that Arrow cannot
format.

The text of a row is concatenated from the texts of its columns. It is identical to the output of orjson for the same
values, except that timestamps in columns always have six decimal places.

Spec: docs/staging.md#the-staging-table
"""

from __future__ import annotations

import base64
import math
from collections.abc import Collection
from decimal import Decimal
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["json_objects"]

Parts = list[str | pa.StringArray]
"""The parts from which the JSON texts of a column are concatenated: literals, and arrays of strings. If the value of
a row is null, one of the arrays is null there, and so is the text."""

SPECIAL = r'["\\\x00-\x1f]'
"""The characters that are escaped in JSON strings."""


def json_objects(rows: pa.Table, spelled: Collection[str] = ()) -> pa.StringArray:
    """Each row as a JSON object of its columns, without null members. The columns `spelled` already contain JSON
    text."""
    parts: Parts = []
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        array = column.combine_chunks()
        if array.null_count == len(array):
            continue
        member = [f",{_quoted(name)}:", *([array] if name in spelled else _parts(array, is_column=True))]
        parts += [pc.fill_null(_joined(member), "")] if array.null_count else member
    if not parts:
        return pa.repeat(pa.scalar("{}", pa.string()), len(rows))
    if isinstance(parts[0], str):  # every row has the first member
        return _joined(["{" + parts[0][1:], *parts[1:], "}"])
    return _joined([pc.binary_replace_slice(_joined(parts), 0, 1, "{"), "}"])


def _joined(parts: Parts) -> pa.StringArray:
    """Concatenate parts, at least one of which is an array, to one array."""
    merged: Parts = []
    for part in parts:
        if merged and isinstance(part, str) and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return pc.binary_join_element_wise(*merged, "") if len(merged) > 1 else merged[0]


def _parts(array: pa.Array, *, is_column: bool = False) -> Parts:
    """The parts of the JSON texts of an array. Timestamps in columns (`is_column`) have six decimal places, even if
    these are zero."""
    kinds, type_ = pa.types, array.type
    if kinds.is_string(type_):
        return ['"', _escaped(array), '"']
    if kinds.is_integer(type_) or kinds.is_boolean(type_):
        return [array.cast(pa.string())]
    if kinds.is_floating(type_):
        return [_numbers(array)]
    if kinds.is_date32(type_):
        return ['"', array.cast(pa.string()), '"']
    if kinds.is_timestamp(type_) and type_.unit == "us" and type_.tz in (None, "UTC"):
        texts = pc.binary_replace_slice(array.cast(pa.timestamp("us")).cast(pa.string()), 10, 11, "T")
        return ['"', texts if is_column else pc.replace_substring(texts, ".000000", ""), 'Z"' if type_.tz else '"']
    if kinds.is_struct(type_) and type_.num_fields:
        return _objects(array)
    if kinds.is_list(type_):
        return _arrays(array)
    values = array.to_pylist(maps_as_pydicts="strict")
    return [pa.array((None if value is None else _spelled(value) for value in values), pa.string())]


def _objects(structs: pa.StructArray) -> Parts:
    """The parts of the JSON objects of structs. Null members are included."""
    parts: Parts = []
    for field, values in zip(structs.type, structs.flatten(), strict=True):
        member = _parts(values)
        parts.append(f"{',' if parts else '{'}{_quoted(field.name)}:")
        parts += [pc.fill_null(_joined(member), "null")] if values.null_count else member
    return _where_valid(structs, [*parts, "}"])


def _arrays(lists: pa.ListArray) -> Parts:
    """The parts of the JSON arrays of lists."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())
    items = pc.fill_null(_joined(_parts(lists.flatten())), "null")
    return _where_valid(lists, ["[", pc.binary_join(pa.ListArray.from_arrays(offsets, items), ","), "]"])


def _where_valid(array: pa.Array, parts: Parts) -> Parts:
    """The parts; if `array` has nulls, concatenated to one array with nulls in the same places."""
    return [pc.if_else(array.is_valid(), _joined(parts), None)] if array.null_count else parts


def _escaped(texts: pa.StringArray) -> pa.StringArray:
    """Escape texts for use between the quotes of JSON strings."""
    offsets, data = texts.buffers()[1:]
    if data is None:
        return texts
    first, last = np.frombuffer(offsets, np.int32)[[texts.offset, texts.offset + len(texts)]]
    characters = np.frombuffer(data, np.uint8)[first:last]
    if not ((characters < ord(" ")) | (characters == ord('"')) | (characters == ord("\\"))).any():
        return texts
    special = pc.match_substring_regex(texts, SPECIAL)
    replacements = (_quoted(text)[1:-1] for text in texts.filter(special).to_pylist())
    return pc.replace_with_mask(texts, special, pa.array(replacements, pa.string()))


def _numbers(floats: pa.FloatingPointArray) -> pa.StringArray:
    """Floats as JSON numbers. NaN and infinities are strings, because JSON has no numbers for them."""
    doubles = floats.cast(pa.float64())
    values = pc.fill_null(doubles, 0.0).to_numpy()
    texts = orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
    numbers = pc.split_pattern(pa.array([texts.decode()] if texts else [], pa.string()), ",").flatten()
    if not np.isfinite(values).all():
        names = pa.array(['"NaN"' if math.isnan(v) else '"Infinity"' if v > 0 else '"-Infinity"' for v in values])
        numbers = pc.if_else(pa.array(np.isfinite(values)), numbers, names)
    return pc.if_else(doubles.is_valid(), numbers, None) if doubles.null_count else numbers


# -- single values ---------------------------------------------------------------------------------------------------


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()


def _spelled(value: Any) -> str:
    """The JSON text of a value."""
    return orjson.dumps(_finite(value), default=_spell, option=orjson.OPT_UTC_Z).decode()


def _spell(value: Any) -> str:
    """Encode a value that has no JSON type."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(type(value).__name__)


def _finite(value: Any) -> Any:
    """A value with its non-finite floats, at any depth, replaced by strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
