"""From decoded values to Arrow arrays, a column at a time.

Whatever is *native* goes to `pyarrow.array` whole, nested structs and lists included; only the branches that hold a
leaf with a `load` of its own (JSON text, base64) are taken apart. No Python runs per value: `map` over functions of C.
"""

from __future__ import annotations

from itertools import chain, compress, repeat
from operator import is_, is_not, methodcaller
from typing import Any

import numpy as np
import pyarrow as pa

from wirebook.schema.shapes import Leaf, List, Map, Shape, Struct


def array_of(shape: Shape, values: list[Any]) -> pa.Array:
    """The column of `values`, which all fit `shape` (None is null).

    Raises: pyarrow.ArrowException, OverflowError when one does not fit after all.
    """
    if shape.native:
        return cast(shape, pa.array(values, shape.wire))
    if None not in values:
        return _assemble(shape, values)
    places = pa.array(_places(values), pa.int64())
    return _assemble(shape, list(compress(values, map(is_not, values, repeat(None))))).take(places)


def _places(values: list[Any]) -> np.ma.MaskedArray[Any, Any]:
    """For each value its index among those that are not None, masked for None."""
    absent = np.fromiter(map(is_, values, repeat(None)), dtype=bool, count=len(values))
    return np.ma.masked_array(np.cumsum(~absent) - 1, mask=absent)


def cast(shape: Shape, array: pa.Array) -> pa.Array:
    """From the wire type to the type in tables, part by part: what Arrow keeps below a null (an empty text, say) is no
    value of the type, and casting it would fail."""
    if array.type == shape.arrow:
        return array
    nulls = array.is_null() if array.null_count else None
    if isinstance(shape, Struct):
        parts = list(map(cast, shape.members.values(), array.flatten()))
        return pa.StructArray.from_arrays(parts, fields=list(shape.arrow), mask=nulls)
    if isinstance(shape, List):
        return pa.ListArray.from_arrays(array.offsets, cast(shape.item, array.values), shape.arrow, mask=nulls)
    if isinstance(shape, Map):
        values = cast(shape.values, array.items)
        return pa.MapArray.from_arrays(array.offsets, array.keys, values, shape.arrow, mask=nulls)
    return array.cast(shape.arrow)


def _assemble(shape: Shape, values: list[Any]) -> pa.Array:
    """An array of values of which none is None, from the arrays of its parts."""
    if isinstance(shape, Leaf):
        assert shape.load is not None
        return shape.load(values)
    if isinstance(shape, Struct):
        return _struct(shape, values)
    offsets = pa.array(
        np.concatenate(([0], np.cumsum(np.fromiter(map(len, values), np.int32, len(values))))), pa.int32()
    )
    if isinstance(shape, Map):
        keys = pa.array(list(chain.from_iterable(values)), pa.string())
        cells = array_of(shape.values, list(chain.from_iterable(map(dict.values, values))))
        return pa.MapArray.from_arrays(offsets, keys, cells)
    assert isinstance(shape, List)
    return pa.ListArray.from_arrays(offsets, array_of(shape.item, list(chain.from_iterable(values))))


def _struct(shape: Struct, values: list[Any]) -> pa.Array:
    """The native members in one go, the others one by one."""
    native = shape.native_part
    together = cast(native, pa.array(values, native.wire))
    parts = {name: together.field(name) for name in native.members}
    for name, each in shape.members.items():
        if name not in parts:
            parts[name] = array_of(each, list(map(methodcaller("get", name), values)))
    return pa.StructArray.from_arrays([parts[name] for name in shape.members], fields=list(shape.arrow))
