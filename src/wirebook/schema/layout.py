"""The column layout of a schema: the columns of its values, and the rest of a value that no column can hold.

A layout is a tree of `ScalarColumn`, `Struct`, `List` and `Map`. It never decides whether a value is valid. A value
that its column cannot hold exactly is null in the column and complete in the column ``_rest``. ``_rest`` is JSON text
that mirrors the payload without everything that is in other columns. Merging it over the columns restores the payload
(docs/types.md).
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
"""The name of the column for everything that no other column holds."""
VALUE = "value"
"""The name of the column of payloads that are not objects."""
NOTHING = msgspec.UNSET
"""The rest of a value that its column holds exactly: nothing remains."""

Cell = tuple[Any, Any]
"""The value in the column, and the rest for ``_rest``."""


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a payload.

    Shape: `path` is the path of the member, () for the whole payload; `nullable` is whether the schema allows null or
    no value (the column itself is always nullable, because a value may be in ``_rest``); `doc` is the description in
    the schema.
    """

    name: str
    path: tuple[str, ...]
    arrow_type: pa.DataType
    nullable: bool = True
    doc: str | None = None


class ColumnLayout:
    """The base of all layouts.

    Shape: `arrow` is the type in tables; `decoded_type` is the type that `pyarrow.array` builds from decoded values and
    that arrays.py casts to `arrow`; `native` is whether pyarrow can build it without a `load` function.
    """

    arrow: pa.DataType
    decoded_type: pa.DataType
    native: bool

    def fit_schema(self) -> dict[str, Any]:
        """Return a JSON Schema of the values that the columns hold exactly and that pyarrow can convert."""
        raise NotImplementedError

    def fit(self, value: Any) -> Cell:
        """Return the cell of one value and its rest."""
        raise NotImplementedError

    @cached_property
    def columns(self) -> Struct:
        """The columns of a payload with this layout: the members of an object, or the column ``value``."""
        return Struct({VALUE: self})


@dataclass(frozen=True, eq=False)
class ScalarColumn(ColumnLayout):
    """A column of one type.

    Shape: `cell` returns the cell and the rest of a value that is not null; `accepts` is the result of `fit_schema`; a
    value of exactly the class `direct` is its own cell; `load` builds an array of decoded values where pyarrow cannot.
    """

    name: str
    arrow: pa.DataType
    decoded_type: pa.DataType
    accepts: dict[str, Any]
    cell: Callable[[Any], Cell]
    load: Callable[[list[Any]], pa.Array] | None = None
    direct: type | None = None

    @property
    def native(self) -> bool:  # type: ignore[override]
        return self.load is None

    def fit_schema(self) -> dict[str, Any]:
        return self.accepts

    def fit(self, value: Any) -> Cell:
        return (None, NOTHING) if value is None else self.cell(value)


@dataclass(frozen=True, eq=False)
class Struct(ColumnLayout):
    """Named members, each with a layout; other members go to ``_rest``.

    Shape: `required` and `docs` describe the members, by name; they do not affect how values are stored.
    """

    members: dict[str, ColumnLayout]
    required: frozenset[str] = frozenset()
    docs: dict[str, str] | None = None

    @cached_property
    def arrow(self) -> pa.DataType:
        return pa.struct([(name, layout.arrow) for name, layout in self.members.items()])

    @cached_property
    def decoded_type(self) -> pa.DataType:
        return pa.struct([(name, layout.decoded_type) for name, layout in self.members.items()])

    @cached_property
    def native(self) -> bool:  # type: ignore[override]
        return all(layout.native for layout in self.members.values())

    def fit_schema(self) -> dict[str, Any]:
        members = {name: layout.fit_schema() for name, layout in self.members.items()}
        return {"type": ["object", "null"], "properties": members, "additionalProperties": False}

    def fit(self, value: Any) -> Cell:
        if not isinstance(value, dict):
            return None, NOTHING if value is None else value
        cells: dict[str, Any] = {}
        rest: dict[str, Any] = {}
        for name, direct, fit in self._members:
            member = value.get(name)
            if type(member) is direct:
                cells[name] = member
            elif member is not None:
                cells[name], rest_of_member = fit(member)
                if rest_of_member is not NOTHING:
                    rest[name] = rest_of_member
        if value.keys() - self.members.keys():
            rest |= {name: member for name, member in value.items() if name not in self.members}
        return cells, rest or NOTHING

    @cached_property
    def columns(self) -> Struct:
        """The members with columns. A member named ``_rest`` has no column of its own; it goes to ``_rest``."""
        if REST not in self.members:
            return self
        members = {name: member for name, member in self.members.items() if name != REST}
        return Struct(members, self.required, self.docs)

    @cached_property
    def native_part(self) -> Struct:
        """The native members."""
        return Struct({name: member for name, member in self.members.items() if member.native})

    @cached_property
    def _members(self) -> list[tuple[str, type | None, Callable[[Any], Cell]]]:
        return [(name, getattr(layout, "direct", None), layout.fit) for name, layout in self.members.items()]


@dataclass(frozen=True, eq=False)
class List(ColumnLayout):
    """Items with the same layout. In the rest, null takes the place of an item that fits."""

    item: ColumnLayout

    @cached_property
    def arrow(self) -> pa.DataType:
        return pa.list_(self.item.arrow)

    @cached_property
    def decoded_type(self) -> pa.DataType:
        return pa.list_(self.item.decoded_type)

    @property
    def native(self) -> bool:  # type: ignore[override]
        return self.item.native

    def fit_schema(self) -> dict[str, Any]:
        return {"type": ["array", "null"], "items": self.item.fit_schema()}

    def fit(self, value: Any) -> Cell:
        if not isinstance(value, list):
            return None, NOTHING if value is None else value
        pairs = [self.item.fit(item) for item in value]
        rests = [None if rest is NOTHING else rest for _, rest in pairs]
        fits = all(rest is NOTHING for _, rest in pairs)
        return [cell for cell, _ in pairs], NOTHING if fits else rests


@dataclass(frozen=True, eq=False)
class Map(ColumnLayout):
    """Any names, with values of the same layout."""

    values: ColumnLayout

    @cached_property
    def arrow(self) -> pa.DataType:
        return pa.map_(pa.string(), self.values.arrow)

    @cached_property
    def decoded_type(self) -> pa.DataType:
        return pa.map_(pa.string(), self.values.decoded_type)

    @property
    def native(self) -> bool:  # type: ignore[override]
        return self.values.native

    def fit_schema(self) -> dict[str, Any]:
        return {"type": ["object", "null"], "additionalProperties": self.values.fit_schema()}

    def fit(self, value: Any) -> Cell:
        if not isinstance(value, dict):
            return None, NOTHING if value is None else value
        pairs = {name: self.values.fit(item) for name, item in value.items()}
        rests = {name: rest for name, (_, rest) in pairs.items() if rest is not NOTHING}
        return {name: cell for name, (cell, _) in pairs.items()}, rests or NOTHING


def scalars_of(layout: ColumnLayout) -> set[ColumnLayout]:
    """Return all scalar columns of a layout."""
    if isinstance(layout, Struct):
        return set().union(*map(scalars_of, layout.members.values()))
    if isinstance(layout, List | Map):
        return scalars_of(layout.item if isinstance(layout, List) else layout.values)
    return {layout}


def fields_of(layout: ColumnLayout) -> tuple[Field, ...]:
    """Return the columns of a payload except ``_rest``, which every table has."""
    columns, docs = layout.columns, getattr(layout, "docs", None) or {}
    whole = not isinstance(layout, Struct)
    return tuple(
        Field(name, () if whole else (name,), member.arrow, name not in columns.required, docs.get(name))
        for name, member in columns.members.items()
    )


def row_of(layout: ColumnLayout, value: Any) -> dict[str, Any]:
    """Return one payload as a row with all columns and ``_rest``."""
    columns = layout.columns
    cells, rest = columns.fit(value if isinstance(layout, Struct) else {VALUE: value})
    if not isinstance(layout, Struct) and rest is not NOTHING:
        rest = rest[VALUE]
    row = dict.fromkeys(columns.members) | (cells or {})
    return row | {REST: None if rest is NOTHING else json_text(rest)}


def json_text(value: Any) -> str:
    """Return the compact JSON text of a decoded value.

    Integers keep all digits. Bytes become base64. Lone surrogates are escaped.
    """
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), default=lambda octets: base64.b64encode(octets).decode())
