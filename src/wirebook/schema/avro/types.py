"""Avro schemas as a tree of types, names resolved.

Spec: Avro 1.11 "Schema Declaration", "Names", "Logical Types". An invalid logical type is ignored, as the text says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wirebook.schema.avro.names import PRIMITIVES, full_name, namespace_of

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
MAX_LEVELS = 64
MAX_PARTS = 20_000  # that a value must have, each of which may take no byte


class AvroError(ValueError):
    """Why an Avro schema cannot be used."""


@dataclass(eq=False)
class Type:
    """Shape: `kind` is the text's word, ``int`` ... ``union``; `logical` a valid logical type with `attributes`."""

    kind: str
    logical: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    name: str = ""  # of named types, in full
    size: int = 0  # of fixed
    symbols: tuple[str, ...] = ()
    fields: tuple[tuple[str, Type], ...] = ()
    items: Type | None = None  # of arrays and maps
    branches: tuple[Type, ...] = ()
    docs: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)  # of fields, as the schema writes them

    @property
    def branch_name(self) -> str:
        """What names this type as a branch of a union."""
        return self.name or self.kind

    @property
    def children(self) -> tuple[Type, ...]:
        items = (self.items,) if self.items is not None else ()
        return (*(each for _, each in self.fields), *items, *self.branches)


LOGICAL: dict[str, tuple[str, ...]] = {
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
SIZES = {"uuid": 16, "duration": 12}


def parse_types(schema: Any, resolve: Callable[[str], Any | None]) -> tuple[Type, dict[str, Type]]:
    """The type that a schema declares, and every named type in it. `resolve` knows names that it does not define.

    Raises: AvroError
    """
    parser = _Parser(resolve)
    whole = parser.type(schema, None)
    for each in (whole, *parser.names.values()):
        if least_parts(each) > MAX_PARTS:
            raise AvroError(f"a value of '{each.branch_name}' has more than {MAX_PARTS} parts at the least")
    return whole, parser.names


class _Parser:
    def __init__(self, resolve: Callable[[str], Any | None]) -> None:
        self.resolve = resolve
        self.names: dict[str, Type] = {}
        self.level = 0

    def type(self, schema: Any, namespace: str | None) -> Type:
        self.level += 1
        if self.level > MAX_LEVELS:
            raise AvroError(f"types are nested deeper than {MAX_LEVELS} levels")
        try:
            if isinstance(schema, str):
                return self._named(schema, namespace)
            if isinstance(schema, list):
                return self._union(schema, namespace)
            if isinstance(schema, dict):
                return self._declared(schema, namespace)
            raise AvroError(f"{schema!r} is no schema")
        finally:
            self.level -= 1

    def _named(self, name: str, namespace: str | None) -> Type:
        if name in PRIMITIVES:
            return Type(name)
        full = full_name(name, namespace)
        for known in (full, name):
            if known in self.names:
                return self.names[known]
        found = self.resolve(full)
        if not isinstance(found, dict):
            raise AvroError(f"the type '{full}' is not defined")
        return self.type(found, None)

    def _union(self, schema: list[Any], namespace: str | None) -> Type:
        branches = tuple(self.type(each, namespace) for each in schema)
        names = [branch.branch_name for branch in branches]
        if not branches or len(set(names)) < len(names) or "union" in names:
            raise AvroError(f"the union of {', '.join(names) or 'nothing'} is not allowed")
        return Type("union", branches=branches)

    def _declared(self, schema: dict[str, Any], namespace: str | None) -> Type:
        kind = schema.get("type")
        if isinstance(kind, dict | list):
            return self.type(kind, namespace)
        build = BUILDERS.get(kind) if isinstance(kind, str) else None
        if build is not None:
            return build(self, schema, namespace)
        if kind not in PRIMITIVES:
            return self._named(kind, namespace) if isinstance(kind, str) else self._fail(schema)
        return _with_logical(Type(str(kind)), schema)

    @staticmethod
    def _fail(schema: dict[str, Any]) -> Type:
        raise AvroError(f"a schema has no 'type': {str(schema)[:80]}")

    def _name(self, type_: Type, schema: dict[str, Any], namespace: str | None) -> str | None:
        """Enter a named type under its full name; gives the namespace inside it."""
        name = schema.get("name")
        if not isinstance(name, str) or not NAME.match(name):
            raise AvroError(f"{name!r} is no name")
        inside = namespace_of(schema, namespace)
        type_.name = full_name(name, inside)
        if type_.name in self.names:
            raise AvroError(f"the type '{type_.name}' is defined twice")
        self.names[type_.name] = type_
        for alias in schema.get("aliases") or ():
            self.names.setdefault(full_name(str(alias), inside), type_)
        return inside

    def record(self, schema: dict[str, Any], namespace: str | None) -> Type:
        type_ = Type("record")
        inside = self._name(type_, schema, namespace)
        declared = schema.get("fields")
        if not isinstance(declared, list) or not all(isinstance(each, dict) for each in declared):
            raise AvroError(f"the record '{type_.name}' has no 'fields'")
        names = [str(each.get("name")) for each in declared]
        if len(set(names)) < len(names) or not all(NAME.match(name) and "." not in name for name in names):
            raise AvroError(f"the record '{type_.name}' has fields without a proper name of their own")
        type_.fields = tuple(
            (name, self.type(each.get("type"), inside)) for name, each in zip(names, declared, strict=True)
        )
        type_.defaults = {
            name: each["default"] for name, each in zip(names, declared, strict=True) if "default" in each
        }
        type_.docs = {name: each["doc"] for name, each in zip(names, declared, strict=True) if "doc" in each}
        return type_

    def enum(self, schema: dict[str, Any], namespace: str | None) -> Type:
        type_ = Type("enum")
        self._name(type_, schema, namespace)
        symbols = schema.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols) or not symbols:
            raise AvroError(f"the enum '{type_.name}' has no 'symbols'")
        if not all(map(is_text, symbols)):
            raise AvroError(f"the enum '{type_.name}' has a symbol with half a surrogate pair")
        if len(set(symbols)) < len(symbols):
            raise AvroError(f"the enum '{type_.name}' has a symbol twice")
        type_.symbols = tuple(symbols)
        return type_

    def fixed(self, schema: dict[str, Any], namespace: str | None) -> Type:
        size = schema.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= 2**31:
            raise AvroError(f"a fixed type has the size {size!r}")
        type_ = Type("fixed", size=size)
        self._name(type_, schema, namespace)
        return _with_logical(type_, schema)

    def collection(self, schema: dict[str, Any], namespace: str | None) -> Type:
        kind = str(schema["type"])
        word = "items" if kind == "array" else "values"
        if word not in schema:
            raise AvroError(f"a type '{kind}' has no '{word}'")
        return Type(kind, items=self.type(schema[word], namespace))


BUILDERS: dict[str, Callable[[_Parser, dict[str, Any], str | None], Type]] = {
    "record": _Parser.record,
    "error": _Parser.record,
    "enum": _Parser.enum,
    "fixed": _Parser.fixed,
    "array": _Parser.collection,
    "map": _Parser.collection,
}


def _with_logical(type_: Type, schema: dict[str, Any]) -> Type:
    logical = schema.get("logicalType")
    fits = isinstance(logical, str) and type_.kind in LOGICAL.get(logical, ())
    if fits and (type_.kind != "fixed" or SIZES.get(str(logical), type_.size) == type_.size):
        attributes = {"precision": schema.get("precision"), "scale": schema.get("scale", 0)}
        if logical != "decimal" or _is_decimal(attributes):
            type_.logical, type_.attributes = str(logical), attributes
    return type_


def _is_decimal(attributes: dict[str, Any]) -> bool:
    precision, scale = attributes["precision"], attributes["scale"]
    return isinstance(precision, int) and isinstance(scale, int) and precision > 0 and 0 <= scale <= precision


def is_recursive(type_: Type) -> bool:
    """Does a type contain itself, or one in it? Cost: linear in the types, however often each is used."""
    return _is_recursive(type_, set(), set())


def _is_recursive(type_: Type, inside: set[int], done: set[int]) -> bool:
    if id(type_) in done:
        return False
    if id(type_) in inside:
        return True
    inside.add(id(type_))
    found = any(_is_recursive(child, inside, done) for child in type_.children)
    inside.discard(id(type_))
    done.add(id(type_))
    return found


def written_out(type_: Type, known: dict[int, int] | None = None) -> int:
    """How many types there are when each is written out wherever it is used; of one inside itself, once."""
    known = {} if known is None else known
    if id(type_) not in known:
        known[id(type_)] = 1
        known[id(type_)] = 1 + sum(written_out(child, known) for child in type_.children)
    return known[id(type_)]


def least_parts(type_: Type, known: dict[int, int] | None = None) -> int:
    """How many values a value of the type has in it at the least: records have all of theirs."""
    known = {} if known is None else known
    if id(type_) not in known:
        known[id(type_)] = 1
        known[id(type_)] = 1 + sum(least_parts(each, known) for _, each in type_.fields)
    return known[id(type_)]


def is_text(text: str) -> bool:
    """Can the text be written as UTF-8?"""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
