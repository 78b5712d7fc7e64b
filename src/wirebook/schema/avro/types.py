"""Parse an Avro schema into a tree of types in which every name is resolved.

Readers, writers, columns, the checks of declarations and the compatibility rules all use this tree.

Spec: Avro 1.11 "Schema Declaration", "Names", "Logical Types". As the specification requires, an invalid logical type
is ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from wirebook.schema.avro.names import PRIMITIVES, full_name, namespace_of
from wirebook.text.json import is_json_integer

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
MAX_LEVELS: Final = 64
MAX_PARTS: Final = 20_000
"""Limit on the minimum parts of a value: the payload size does not limit them, because parts may take no bytes."""


class AvroError(ValueError):
    """An Avro schema cannot be used: it is invalid, exceeds a limit or lacks the requested type."""


@dataclass(eq=False)
class AvroType:
    """One type of a schema. All uses of a named type, including recursive ones, are the same object.

    Shape: `kind` is ``int`` ... ``union`` (``record`` for ``error``); `logical` is a valid logical type; `attributes`
    has the precision and scale of a decimal; `name` and `aliases` are full names; `declaration` is the JSON object that
    declares a named type; `items` is the type of array items or map values; `defaults` and `docs` are by field name.
    """

    kind: str
    logical: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    aliases: frozenset[str] = frozenset()
    declaration: dict[str, Any] = field(default_factory=dict, repr=False)
    size: int = 0
    symbols: tuple[str, ...] = ()
    fields: tuple[tuple[str, AvroType], ...] = ()
    items: AvroType | None = None
    branches: tuple[AvroType, ...] = ()
    docs: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)

    @property
    def branch_name(self) -> str:
        """The name of this type as a branch of a union."""
        return self.name or self.kind

    @property
    def is_nullable(self) -> bool:
        """Whether null is a value of the type."""
        return self.kind == "null" or any(branch.kind == "null" for branch in self.branches)

    @property
    def children(self) -> tuple[AvroType, ...]:
        """The types directly inside this one."""
        items = (self.items,) if self.items is not None else ()
        return (*(type_ for _, type_ in self.fields), *items, *self.branches)


LOGICAL: Final[dict[str, tuple[str, ...]]] = {
    "decimal": ("bytes", "fixed"),
    "uuid": ("string", "fixed"),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "duration": ("fixed",),
}
"""The kinds that each logical type may annotate."""
SIZES: Final = {"uuid": 16, "duration": 12}
"""The size that a fixed type must have for a logical type. Units: bytes."""


def parse_types(schema: Any, resolve: Callable[[str], Any | None]) -> tuple[AvroType, dict[str, AvroType]]:
    """Return the type that a schema declares, and all its named types by full name and by alias.

    `resolve` returns the definition of a type that the schema uses but does not define; None if unknown.
    Raises: AvroError
    """
    parser = _Parser(resolve)
    root = parser.type(schema, None)
    known: dict[int, int] = {}
    for type_ in (root, *parser.names.values()):
        if min_parts(type_, known) > MAX_PARTS:
            raise AvroError(f"every value of '{type_.branch_name}' has more than {MAX_PARTS} parts")
    return root, parser.names


class _Parser:
    def __init__(self, resolve: Callable[[str], Any | None]) -> None:
        self.resolve = resolve
        self.names: dict[str, AvroType] = {}
        self.level = 0

    def type(self, schema: Any, namespace: str | None) -> AvroType:
        """Return the type of a schema in `namespace`. Raises: AvroError"""
        self.level += 1
        if self.level > MAX_LEVELS:
            raise AvroError(f"types are nested more than {MAX_LEVELS} levels deep")
        try:
            if isinstance(schema, str):
                return self._named(schema, namespace)
            if isinstance(schema, list):
                return self._union(schema, namespace)
            if isinstance(schema, dict):
                return self._declared(schema, namespace)
            raise AvroError(f"{schema!r} is not a schema; expected a name, an object or an array")
        finally:
            self.level -= 1

    def _named(self, name: str, namespace: str | None) -> AvroType:
        """Return the type with a name: primitive, already declared, or defined in another document."""
        if name in PRIMITIVES:
            return AvroType(name)
        full = full_name(name, namespace)
        for candidate in (full, name):
            if candidate in self.names:
                return self.names[candidate]
        definition = self.resolve(full)
        if not isinstance(definition, dict):
            raise AvroError(f"the type '{full}' is not defined")
        return self.type(definition, None)

    def _union(self, schema: list[Any], namespace: str | None) -> AvroType:
        branches = tuple(self.type(branch, namespace) for branch in schema)
        names = [branch.branch_name for branch in branches]
        if not branches or len(set(names)) < len(names) or "union" in names:
            listed = ", ".join(names) or "no branches"
            raise AvroError(f"a union must have distinct branches that are not unions; it has {listed}")
        return AvroType("union", branches=branches)

    def _declared(self, schema: dict[str, Any], namespace: str | None) -> AvroType:
        kind = schema.get("type")
        if isinstance(kind, dict | list):
            return self.type(kind, namespace)
        if not isinstance(kind, str):
            raise AvroError(f"a schema has no 'type': {str(schema)[:80]}")
        if kind in BUILDERS:
            return BUILDERS[kind](self, schema, namespace)
        if kind in PRIMITIVES:
            return _with_logical_type(AvroType(kind), schema)
        return self._named(kind, namespace)

    def _declare(self, type_: AvroType, schema: dict[str, Any], namespace: str | None) -> str | None:
        """Register a named type under its full name and aliases, and return the namespace inside it."""
        name = schema.get("name")
        if not isinstance(name, str) or not NAME.match(name):
            raise AvroError(f"{name!r} is not a valid name")
        inside = namespace_of(schema, namespace)
        type_.name, type_.declaration = full_name(name, inside), schema
        type_.aliases = frozenset(full_name(alias, inside) for alias in _aliases(schema))
        if type_.name in self.names:
            raise AvroError(f"the type '{type_.name}' is defined twice")
        self.names[type_.name] = type_
        for alias in type_.aliases:
            self.names.setdefault(alias, type_)
        return inside

    def record(self, schema: dict[str, Any], namespace: str | None) -> AvroType:
        type_ = AvroType("record")
        inside = self._declare(type_, schema, namespace)
        fields = schema.get("fields")
        if not isinstance(fields, list) or not all(isinstance(member, dict) for member in fields):
            raise AvroError(f"the record '{type_.name}' must have a list of 'fields'")
        names = [str(member.get("name")) for member in fields]
        if len(set(names)) < len(names) or not all(NAME.match(name) and "." not in name for name in names):
            raise AvroError(f"the fields of the record '{type_.name}' must have valid, distinct names")
        for member in fields:
            _aliases(member)
        named = list(zip(names, fields, strict=True))
        type_.fields = tuple((name, self.type(member.get("type"), inside)) for name, member in named)
        type_.defaults = {name: member["default"] for name, member in named if "default" in member}
        type_.docs = {name: member["doc"] for name, member in named if isinstance(member.get("doc"), str)}
        return type_

    def enum(self, schema: dict[str, Any], namespace: str | None) -> AvroType:
        type_ = AvroType("enum")
        self._declare(type_, schema, namespace)
        symbols = schema.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols) or not symbols:
            raise AvroError(f"the enum '{type_.name}' must have a list of 'symbols' that is not empty")
        if not all(map(is_text, symbols)):
            raise AvroError(f"a symbol of the enum '{type_.name}' has a lone surrogate")
        if len(set(symbols)) < len(symbols):
            raise AvroError(f"the enum '{type_.name}' has the same symbol twice")
        type_.symbols = tuple(symbols)
        return type_

    def fixed(self, schema: dict[str, Any], namespace: str | None) -> AvroType:
        size = schema.get("size")
        if not is_json_integer(size) or not 0 <= size <= 2**31:
            raise AvroError(f"the size of a fixed type must be an integer from 0 to {2**31}, not {size!r}")
        type_ = AvroType("fixed", size=size)
        self._declare(type_, schema, namespace)
        return _with_logical_type(type_, schema)

    def collection(self, schema: dict[str, Any], namespace: str | None) -> AvroType:
        kind = str(schema["type"])
        keyword = "items" if kind == "array" else "values"
        if keyword not in schema:
            raise AvroError(f"the type '{kind}' must have '{keyword}'")
        return AvroType(kind, items=self.type(schema[keyword], namespace))


BUILDERS: Final[dict[str, Callable[[_Parser, dict[str, Any], str | None], AvroType]]] = {
    "record": _Parser.record,
    "error": _Parser.record,
    "enum": _Parser.enum,
    "fixed": _Parser.fixed,
    "array": _Parser.collection,
    "map": _Parser.collection,
}


def _aliases(declaration: dict[str, Any]) -> list[str]:
    """Return the aliases of a named type or a field. Raises: AvroError"""
    aliases = declaration.get("aliases")
    if aliases is None:
        return []
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        name = declaration.get("name")
        raise AvroError(f"the aliases of '{name}' must be a list of names, not {str(aliases)[:60]!r}")
    return aliases


def _with_logical_type(type_: AvroType, schema: dict[str, Any]) -> AvroType:
    """Return the type, with the logical type of its schema if that is valid."""
    logical = schema.get("logicalType")
    if not isinstance(logical, str) or type_.kind not in LOGICAL.get(logical, ()):
        return type_
    if type_.kind == "fixed" and SIZES.get(logical, type_.size) != type_.size:
        return type_
    if logical == "decimal":
        precision, scale = schema.get("precision"), schema.get("scale", 0)
        if not (is_json_integer(precision) and is_json_integer(scale) and precision > 0 and 0 <= scale <= precision):
            return type_
        if type_.kind == "fixed" and precision > math.log10(2) * (8 * type_.size - 1):
            return type_
        type_.attributes = {"precision": precision, "scale": scale}
    type_.logical = logical
    return type_


def is_recursive(type_: AvroType, known: dict[int, bool] | None = None) -> bool:
    """Return whether a type contains itself, or a type that does. Cost: linear in the number of distinct types."""
    known = {} if known is None else known
    if id(type_) not in known:
        known[id(type_)] = True  # the result for a recursive use
        known[id(type_)] = any(is_recursive(child, known) for child in type_.children)
    return known[id(type_)]


def expanded_size(type_: AvroType, known: dict[int, int] | None = None) -> int:
    """Return the number of types in a type, counting a named type at each use; a recursive use counts as one."""
    known = {} if known is None else known
    if id(type_) not in known:
        known[id(type_)] = 1
        known[id(type_)] = 1 + sum(expanded_size(child, known) for child in type_.children)
    return known[id(type_)]


def min_parts(type_: AvroType, known: dict[int, int] | None = None) -> int:
    """Return the minimum number of parts of a value: itself and, for a record, the parts of all its fields."""
    known = {} if known is None else known
    if id(type_) not in known:
        known[id(type_)] = 1
        known[id(type_)] = 1 + sum(min_parts(member, known) for _, member in type_.fields)
    return known[id(type_)]


def is_text(text: str) -> bool:
    """Return whether a string can be encoded as UTF-8, that is, has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
