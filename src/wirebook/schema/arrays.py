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

from wirebook.schema.layout import Layout, Leaf, List, Map, Struct


def array_of(shape: Layout, values: list[Any]) -> pa.Array:
    """The column of `values`, which all fit `shape` (None is null).

    Raises: pyarrow.ArrowException, OverflowError when one does not fit after all.
    """
    if shape.native:
        return cast(pa.array(values, shape.wire), shape.arrow)
    if None not in values:
        return _assemble(shape, values)
    places = pa.array(_places(values), pa.int64())
    return _assemble(shape, list(compress(values, map(is_not, values, repeat(None))))).take(places)


def _places(values: list[Any]) -> np.ma.MaskedArray[Any, Any]:
    """For each value its index among those that are not None, masked for None."""
    absent = np.fromiter(map(is_, values, repeat(None)), dtype=bool, count=len(values))
    return np.ma.masked_array(np.cumsum(~absent) - 1, mask=absent)


def cast(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """A cast part by part, at any depth: members that are not there are null, and what Arrow keeps below a null (an
    empty text, say) is not looked at, as it may be no value of the type."""
    if array.type.equals(type_):
        return array
    nulls = array.is_null() if array.null_count else None
    if pa.types.is_struct(type_):
        have = dict(zip(array.type.names, array.flatten(), strict=True))
        parts = [
            cast(have[each.name], each.type) if each.name in have else pa.nulls(len(array), each.type) for each in type_
        ]
        return pa.StructArray.from_arrays(parts, fields=list(type_), mask=nulls)
    if pa.types.is_list(type_):
        return pa.ListArray.from_arrays(_offsets(array), cast(array.flatten(), type_.value_type), type_, mask=nulls)
    if pa.types.is_map(type_):
        keys, items = _entries(array)
        return pa.MapArray.from_arrays(_offsets(array), keys, cast(items, type_.item_type), type_, mask=nulls)
    return array.cast(type_)


def _entries(maps: pa.MapArray) -> tuple[pa.Array, pa.Array]:
    """The keys and values of the maps that are not null."""
    there = maps.filter(maps.is_valid()) if maps.null_count else maps
    start, stop = (there.offsets[0].as_py(), there.offsets[-1].as_py()) if len(there) else (0, 0)
    return there.keys.slice(start, stop - start), there.items.slice(start, stop - start)


def _offsets(array: pa.ListArray | pa.MapArray) -> pa.Array:
    """Where each list or map begins among the items of all that are not null."""
    lengths = np.diff(array.offsets.to_numpy())
    if array.null_count:
        lengths = np.where(array.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    return pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())


def _assemble(shape: Layout, values: list[Any]) -> pa.Array:
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
    together = cast(pa.array(values, native.wire), native.arrow)
    parts = {name: together.field(name) for name in native.members}
    for name, member in shape.members.items():
        if name not in parts:
            parts[name] = array_of(member, list(map(methodcaller("get", name), values)))
    return pa.StructArray.from_arrays([parts[name] for name in shape.members], fields=list(shape.arrow))
