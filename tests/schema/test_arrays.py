"""The cast of arrays: any nesting, nulls anywhere, slices of arrays, added members."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from wirebook.schema.arrays import cast

Values = st.SearchStrategy[Any]
LEAF = (pa.int8(), pa.int64(), st.none() | st.integers(-128, 127))


def nested(inner: st.SearchStrategy[tuple[pa.DataType, pa.DataType, Values]]) -> Any:
    """A struct, list or map of the inner strategy: the narrow type, the wide type, values."""
    return st.one_of(
        inner.map(lambda part: (pa.list_(part[0]), pa.list_(part[1]), st.none() | st.lists(part[2], max_size=3))),
        inner.map(
            lambda part: (
                pa.map_(pa.string(), part[0]),
                pa.map_(pa.string(), part[1]),
                st.none() | st.dictionaries(st.text(max_size=2), part[2], max_size=3).map(lambda d: list(d.items())),
            )
        ),
        inner.map(
            lambda part: (
                pa.struct([("a", part[0]), ("b", pa.string())]),
                pa.struct([("new", pa.string()), ("b", pa.string()), ("a", part[1])]),
                st.none() | st.fixed_dictionaries({"a": part[2], "b": st.none() | st.text(max_size=2)}),
            )
        ),
    )


@given(st.data(), st.integers(0, 3), st.integers(0, 3))
def test_cast_keeps_values(data: st.DataObject, before: int, after: int) -> None:
    old, new, one = data.draw(st.recursive(st.just(LEAF), nested, max_leaves=4))
    values = data.draw(st.lists(one, max_size=6))
    around = [data.draw(one) for _ in range(before)], [data.draw(one) for _ in range(after)]
    whole = pa.array([*around[0], *values, *around[1]], old)
    array = cast(whole.slice(before, len(values)), new)
    assert array.type == new
    array.validate(full=True)
    assert array.to_pylist() == pa.array([added(value, old, new) for value in values], new).to_pylist()


def added(value: Any, old: pa.DataType, new: pa.DataType) -> Any:
    """Return the value with null for members that only the new type has."""
    if value is None or old == new:
        return value
    if pa.types.is_struct(old):
        return {f.name: added(value[f.name], old.field(f.name).type, f.type) if f.name in value else None for f in new}
    if pa.types.is_list(old):
        return [added(item, old.value_type, new.value_type) for item in value]
    if pa.types.is_map(old):
        return [(key, added(item, old.item_type, new.item_type)) for key, item in value]
    return value
