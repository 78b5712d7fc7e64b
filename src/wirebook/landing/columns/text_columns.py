"""Converts columns of strings or bytes, in any type that a Parquet writer may use, to string columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from wirebook.landing.columns.slot_columns import Mask, mask_of, texts

__all__ = ["as_texts", "is_bytes", "is_strings", "is_strings_or_bytes", "without_dictionary"]


def is_strings(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def is_bytes(type_: pa.DataType) -> bool:
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_))


def is_strings_or_bytes(type_: pa.DataType) -> bool:
    return is_strings(type_) or is_bytes(type_)


def without_dictionary(column: pa.Array) -> pa.Array:
    """The column, decoded if it is dictionary-encoded."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def as_texts(column: pa.Array) -> tuple[pa.StringArray, Mask]:
    """A column of strings or bytes as strings, and a mask of the values that become null because they are neither, or
    not valid UTF-8.

    Even a column of strings can have invalid UTF-8: writers need not check it.
    """
    if not is_strings_or_bytes(column.type):
        return pa.nulls(len(column), pa.string()), mask_of(column.is_valid())
    raw = column.cast(pa.binary())
    try:
        return raw.cast(pa.string()), np.zeros(len(column), bool)
    except pa.ArrowInvalid:
        text, odd = texts(list(map(_decoded, raw.to_pylist())))
        return text, odd & mask_of(column.is_valid())


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
