"""Combining shapes: of values that lie as both say, and of values that lie as either says."""

from __future__ import annotations

from collections.abc import Callable

from wirebook.schema.layout import Layout, Leaf, List, Map, Struct
from wirebook.schema.scalar_columns import INT64, JSON, NUMBER, TEXT


def meet(one: Layout, other: Layout) -> Layout:
    """The shape of values that lie as both say; JSON text says nothing."""
    if one is JSON or other is JSON:
        return other if one is JSON else one
    if isinstance(one, Struct) and isinstance(other, Struct):
        return _merge(one, other, meet, one.required | other.required)
    if isinstance(one, List) and isinstance(other, List):
        return List(meet(one.item, other.item))
    return one if isinstance(one, type(other)) and not isinstance(one, Leaf) else _narrower(one, other)


def _narrower(one: Layout, other: Layout) -> Layout:
    """Of two scalars the one that says more: a timestamp is a string, an integer a number."""
    return other if one in (TEXT, NUMBER) else one


def join(one: Layout, other: Layout) -> Layout:
    """The shape of values that lie as either says; JSON text where they have nothing in common."""
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


def _merge(one: Struct, other: Struct, combine: Callable[[Layout, Layout], Layout], required: frozenset[str]) -> Struct:
    members = dict(one.members)
    for name, shape in other.members.items():
        members[name] = combine(members[name], shape) if name in members else shape
    return Struct(members, required, {**(other.docs or {}), **(one.docs or {})})
