"""Merge two layouts: for values that have both layouts (`allOf`, `$ref`) or either of them (`anyOf`, `oneOf`)."""

from __future__ import annotations

from collections.abc import Callable

from wirebook.schema.layout import ColumnLayout, List, Map, Struct
from wirebook.schema.scalar_columns import INT64, JSON, NUMBER, TEXT


def meet(one: ColumnLayout, other: ColumnLayout) -> ColumnLayout:
    """Return the layout of values that have both layouts. A JSON column does not restrict the other layout."""
    if one is JSON or other is JSON:
        return other if one is JSON else one
    if isinstance(one, Struct) and isinstance(other, Struct):
        return _merge(one, other, meet, one.required | other.required)
    if isinstance(one, List) and isinstance(other, List):
        return List(meet(one.item, other.item))
    if isinstance(one, Map) and isinstance(other, Map):
        return one
    return other if one in (TEXT, NUMBER) else one  # the narrower one: timestamps are strings, integers are numbers


def join(one: ColumnLayout, other: ColumnLayout) -> ColumnLayout:
    """Return the layout of values that have either layout: a JSON column if the layouts have nothing in common."""
    if one is other:
        return one
    if {id(one), id(other)} == {id(INT64), id(NUMBER)}:
        return NUMBER
    if isinstance(one, Struct) and isinstance(other, Struct):
        return _merge(one, other, join, one.required & other.required)
    if isinstance(one, List) and isinstance(other, List):
        return List(join(one.item, other.item))
    if isinstance(one, Map) and isinstance(other, Map):
        return Map(join(one.values, other.values))
    return JSON


def _merge(
    one: Struct, other: Struct, combine: Callable[[ColumnLayout, ColumnLayout], ColumnLayout], required: frozenset[str]
) -> Struct:
    members = dict(one.members)
    for name, layout in other.members.items():
        members[name] = combine(members[name], layout) if name in members else layout
    return Struct(members, required, {**(other.docs or {}), **(one.docs or {})})
