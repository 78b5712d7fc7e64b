"""Shapes: how the values of a schema lie in columns, and what a value leaves over.

A shape is a tree of `Leaf`, `Struct`, `List` and `Map`. It decides layout only, never validity: a value that its
column cannot hold exactly is null there and whole in the column ``_rest``, a JSON text that mirrors the payload with
everything that has a column taken away. So nothing is lost whatever the schema allows, and merging ``_rest`` over the
columns gives the payload back (docs/types.md).

Every shape says four things: `arrow`, its type in tables; `wire`, the type that `pyarrow.array` makes of decoded values
and that casts to `arrow` (in arrays.py); `fits`, a JSON Schema of the values that survive this exactly and leave
nothing over; and `fit`, the same for one value in Python: the cell and what is left.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import pyarrow as pa

REST = "_rest"
VALUE = "value"  # the one column of a payload that is no object
NOTHING = msgspec.UNSET  # what is left of a value that fits

Cell = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a payload.

    Shape: `path` of the member it comes from, () for the whole payload; `nullable` as the schema has it (the column is
    nullable in any case: a value may be in `_rest`); `doc` the schema's description.
    """

    name: str
    path: tuple[str, ...]
    arrow_type: pa.DataType
    nullable: bool = True
    doc: str | None = None


class Layout:
    """What every shape has; see the module."""

    arrow: pa.DataType
    wire: pa.DataType
    native: bool  # pyarrow.array and casts are enough, no function of ours

    def fits(self) -> dict[str, Any]:
        raise NotImplementedError

    def fit(self, value: Any) -> Cell:
        raise NotImplementedError

    @cached_property
    def columns(self) -> Struct:
        """The columns of a payload of this shape: the members of an object, or the one column ``value``."""
        return Struct({VALUE: self})


@dataclass(frozen=True, eq=False)
class Leaf(Layout):
    """A column of one type. `cell` gives the cell and the rest of a value that is not null.

    Shape: a value whose class is `direct` is its own cell; `load` makes an array of decoded values where pyarrow
    cannot.
    """

    name: str
    arrow: pa.DataType
    wire: pa.DataType
    accepts: dict[str, Any]
    cell: Callable[[Any], Cell]
    load: Callable[[list[Any]], pa.Array] | None = None
    direct: type | None = None

    @property
    def native(self) -> bool:  # type: ignore[override]
        return self.load is None

    def fits(self) -> dict[str, Any]:
        return self.accepts

    def fit(self, value: Any) -> Cell:
        return (None, NOTHING) if value is None else self.cell(value)


@dataclass(frozen=True, eq=False)
class Struct(Layout):
    """Named members, each with a shape; other members are left over. `docs` and `required` only describe."""

    members: dict[str, Layout]
    required: frozenset[str] = frozenset()
    docs: dict[str, str] | None = None

    @cached_property
    def arrow(self) -> pa.DataType:
        return pa.struct([(name, shape.arrow) for name, shape in self.members.items()])

    @cached_property
    def wire(self) -> pa.DataType:
        return pa.struct([(name, shape.wire) for name, shape in self.members.items()])

    @cached_property
    def native(self) -> bool:  # type: ignore[override]
        return all(shape.native for shape in self.members.values())

    def fits(self) -> dict[str, Any]:
        members = {name: shape.fits() for name, shape in self.members.items()}
        return {"type": ["object", "null"], "properties": members, "additionalProperties": False}

    def fit(self, value: Any) -> Cell:
        if not isinstance(value, dict):
            return None, NOTHING if value is None else value
        cells: dict[str, Any] = {}
        rest: dict[str, Any] = {}
        for name, direct, fit in self._members:
            each = value.get(name)
            if type(each) is direct:
                cells[name] = each
            elif each is not None:
                cells[name], left = fit(each)
                if left is not NOTHING:
                    rest[name] = left
        if value.keys() - self.members.keys():
            rest |= {name: each for name, each in value.items() if name not in self.members}
        return cells, rest or NOTHING

    @cached_property
    def columns(self) -> Struct:
        """Its members. One called ``_rest`` has no column of its own: it is left over, like an undeclared one."""
        if REST not in self.members:
            return self
        members = {name: member for name, member in self.members.items() if name != REST}
        return Struct(members, self.required, self.docs)

    @cached_property
    def native_part(self) -> Struct:
        """The members that need no function of ours."""
        return Struct({name: member for name, member in self.members.items() if member.native})

    @cached_property
    def _members(self) -> list[tuple[str, type | None, Callable[[Any], Cell]]]:
        return [(name, getattr(shape, "direct", None), shape.fit) for name, shape in self.members.items()]


@dataclass(frozen=True, eq=False)
class List(Layout):
    """Items of one shape. What is left keeps its places: null stands for an item that fits."""

    item: Layout

    @cached_property
    def arrow(self) -> pa.DataType:
        return pa.list_(self.item.arrow)

    @cached_property
    def wire(self) -> pa.DataType:
        return pa.list_(self.item.wire)

    @property
    def native(self) -> bool:  # type: ignore[override]
        return self.item.native

    def fits(self) -> dict[str, Any]:
        return {"type": ["array", "null"], "items": self.item.fits()}

    def fit(self, value: Any) -> Cell:
        if not isinstance(value, list):
            return None, NOTHING if value is None else value
        pairs = [self.item.fit(each) for each in value]
        left = [None if rest is NOTHING else rest for _, rest in pairs]
        fits = all(rest is NOTHING for _, rest in pairs)
        return [cell for cell, _ in pairs], NOTHING if fits else left


@dataclass(frozen=True, eq=False)
class Map(Layout):
    """Any names, values of one shape."""

    values: Layout

    @cached_property
    def arrow(self) -> pa.DataType:
        return pa.map_(pa.string(), self.values.arrow)

    @cached_property
    def wire(self) -> pa.DataType:
        return pa.map_(pa.string(), self.values.wire)

    @property
    def native(self) -> bool:  # type: ignore[override]
        return self.values.native

    def fits(self) -> dict[str, Any]:
        return {"type": ["object", "null"], "additionalProperties": self.values.fits()}

    def fit(self, value: Any) -> Cell:
        if not isinstance(value, dict):
            return None, NOTHING if value is None else value
        pairs = {name: self.values.fit(each) for name, each in value.items()}
        left = {name: rest for name, (_, rest) in pairs.items() if rest is not NOTHING}
        return {name: cell for name, (cell, _) in pairs.items()}, left or NOTHING


def leaves_of(shape: Layout) -> set[Layout]:
    """The columns of one type that a shape has in it."""
    if isinstance(shape, Struct):
        return set().union(*map(leaves_of, shape.members.values()))
    return (
        leaves_of(shape.item if isinstance(shape, List) else shape.values) if isinstance(shape, List | Map) else {shape}
    )


def fields_of(shape: Layout) -> tuple[Field, ...]:
    """The columns of a payload, described; ``_rest`` is not among them: it is always there."""
    columns, docs = shape.columns, getattr(shape, "docs", None) or {}
    whole = not isinstance(shape, Struct)
    return tuple(
        Field(name, () if whole else (name,), member.arrow, name not in columns.required, docs.get(name))
        for name, member in columns.members.items()
    )


def row_of(shape: Layout, value: Any) -> dict[str, Any]:
    """One payload as a row: every column and ``_rest``."""
    columns = shape.columns
    cells, rest = columns.fit(value if isinstance(shape, Struct) else {VALUE: value})
    if not isinstance(shape, Struct) and rest is not NOTHING:
        rest = rest[VALUE]
    row = dict.fromkeys(columns.members) | (cells or {})
    return row | {REST: None if rest is NOTHING else json_text(rest)}


def json_text(value: Any) -> str:
    """Compact JSON of a decoded value; integers of any size stay integers, bytes are base64.

    Half a surrogate pair, which a value that is given as one may have, is an escape.
    """
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), default=lambda each: base64.b64encode(each).decode())
