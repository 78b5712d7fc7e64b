"""Build Arrow arrays from decoded values, one column at a time.

`pyarrow.array` builds a *native* layout, with all its nested structs and lists, in one call. Only the parts of a layout
that contain a scalar column with its own `load` (JSON text, base64) are built separately. No Python bytecode runs per
value: all loops are `map` over C functions.
"""

from __future__ import annotations

from itertools import chain, compress, repeat
from operator import is_, is_not, methodcaller
from typing import Any

import numpy as np
import pyarrow as pa

from wirebook.schema.layout import ColumnLayout, List, Map, ScalarColumn, Struct


def array_of(layout: ColumnLayout, values: list[Any]) -> pa.Array:
    """Return the column of `values`, all of which must fit `layout` (None is null).

    Raises: pyarrow.ArrowException, OverflowError if a value does not fit
    """
    if layout.native:
        return cast(pa.array(values, layout.decoded_type), layout.arrow)
    if None not in values:
        return _assemble(layout, values)
    is_null = np.fromiter(map(is_, values, repeat(None)), dtype=bool, count=len(values))
    places = pa.array(np.cumsum(~is_null) - 1, pa.int64(), mask=is_null)  # index into the values that are not None
    return _assemble(layout, list(compress(values, map(is_not, values, repeat(None))))).take(places)


def cast(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return an array cast to a type, including its nested arrays. Struct members that the array lacks are null.

    Values below a null are not cast: Arrow stores placeholders there, such as an empty string, that may not be valid
    values of the type.
    """
    if array.type.equals(type_):
        return array
    nulls = array.is_null() if array.null_count else None
    if pa.types.is_struct(type_):
        members = dict(zip(array.type.names, array.flatten(), strict=True))
        parts = [
            cast(members[field.name], field.type) if field.name in members else pa.nulls(len(array), field.type)
            for field in type_
        ]
        return pa.StructArray.from_arrays(parts, fields=list(type_), mask=nulls)
    if pa.types.is_list(type_):
        return pa.ListArray.from_arrays(_offsets(array), cast(array.flatten(), type_.value_type), type_, mask=nulls)
    if pa.types.is_map(type_):
        keys, items = _entries(array)
        return pa.MapArray.from_arrays(_offsets(array), keys, cast(items, type_.item_type), type_, mask=nulls)
    return array.cast(type_)


def _entries(maps: pa.MapArray) -> tuple[pa.Array, pa.Array]:
    """Return the keys and values of the maps that are not null."""
    present = maps.filter(maps.is_valid()) if maps.null_count else maps
    start, stop = (present.offsets[0].as_py(), present.offsets[-1].as_py()) if len(present) else (0, 0)
    return present.keys.slice(start, stop - start), present.items.slice(start, stop - start)


def _offsets(array: pa.ListArray | pa.MapArray) -> pa.Array:
    """Return the offsets of lists or maps into their flattened items, which exclude those below a null."""
    lengths = np.diff(array.offsets.to_numpy())
    if array.null_count:
        lengths = np.where(array.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    return pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())


def _assemble(layout: ColumnLayout, values: list[Any]) -> pa.Array:
    """Return an array of values, none of which is None, assembled from arrays of its parts."""
    if isinstance(layout, ScalarColumn):
        assert layout.load is not None
        return layout.load(values)
    if isinstance(layout, Struct):
        return _struct(layout, values)
    offsets = pa.array(
        np.concatenate(([0], np.cumsum(np.fromiter(map(len, values), np.int32, len(values))))), pa.int32()
    )
    if isinstance(layout, Map):
        keys = pa.array(list(chain.from_iterable(values)), pa.string())
        cells = array_of(layout.values, list(chain.from_iterable(map(dict.values, values))))
        return pa.MapArray.from_arrays(offsets, keys, cells)
    assert isinstance(layout, List)
    return pa.ListArray.from_arrays(offsets, array_of(layout.item, list(chain.from_iterable(values))))


def _struct(layout: Struct, values: list[Any]) -> pa.Array:
    """Return a struct array: all native members are built in one call, the others one by one."""
    native = layout.native_part
    native_members = cast(pa.array(values, native.decoded_type), native.arrow)
    arrays = {name: native_members.field(name) for name in native.members}
    for name, member in layout.members.items():
        if name not in arrays:
            arrays[name] = array_of(member, list(map(methodcaller("get", name), values)))
    return pa.StructArray.from_arrays([arrays[name] for name in layout.members], fields=list(layout.arrow))
