"""What has to hold in Avro schemas and reading does not need: names, aliases and default values.

Spec: Avro 1.12 "Names", "Complex Types: Records" (the table of defaults). A default of a union may be of any branch, as
1.12 has it; 1.11 takes the first alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from wirebook.schema.avro.names import NAMED, PRIMITIVES, full_name, named_types, namespace_of
from wirebook.schema.avro.types import NAME, AvroError

INTEGERS = {"int": 2**31, "long": 2**63}
MAX_LEVELS = 64
SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def check_declarations(document: Any) -> None:
    """Raises: AvroError when a name is none, or a default no value of its type; the document is a schema otherwise."""
    named = dict(named_types(document))
    for name, node in named.items():
        _check_names(name, node)
        if node["type"] == "enum":
            default = node.get("default")
            if default is not None and default not in node["symbols"]:
                raise AvroError(f"the default {default!r} of the enum '{name}' is not one of its symbols")
        for field in node.get("fields") or ():
            if "default" in field:
                _check(field, name, _Values(named), namespace_of(node, None))


def _check_names(name: str, node: dict[str, Any]) -> None:
    for each in (node, *(node.get("fields") or ())):
        if not isinstance(each.get("name"), str):
            raise AvroError(f"a field of '{name}' has no name")
        aliases = each.get("aliases") or []
        if not isinstance(aliases, list) or not all(isinstance(alias, str) and NAME.match(alias) for alias in aliases):
            raise AvroError(f"the aliases of '{each['name']}' in '{name}' are no list of names")
    wrong = [symbol for symbol in node.get("symbols") or () if not SYMBOL.match(symbol)]
    if node["type"] == "enum" and wrong:
        raise AvroError(f"the symbol {wrong[0]!r} of the enum '{name}' is no name")


def _check(field: dict[str, Any], record: str, values: _Values, space: str | None) -> None:
    if not values.has(field["type"], field["default"], space, 0):
        raise AvroError(f"the default {str(field['default'])[:80]!r} of '{record}.{field['name']}' is not of its type")


class _Values:
    def __init__(self, named: dict[str, Any]) -> None:
        self.named = named
        self.aliases = dict(_aliases(named))

    def has(self, type_: Any, value: Any, space: str | None, level: int) -> bool:
        """Is a JSON value one of a type?"""
        if level > MAX_LEVELS:
            return False
        if isinstance(type_, list):
            return any(self.has(each, value, space, level + 1) for each in type_)
        kind = type_["type"] if isinstance(type_, dict) else type_
        if isinstance(kind, dict | list):
            return self.has(kind, value, space, level + 1)
        if kind in PRIMITIVES:
            return PRIMITIVE[kind](value)
        if kind in ("array", "map"):
            return self._collection(kind, type_, value, space, level)
        if kind in NAMED:
            return self._named(type_, value, namespace_of(type_, space), level)
        found = self._by_name(kind, space)
        return self._named(found, value, namespace_of(found, None), level)

    def _by_name(self, name: str, space: str | None) -> Any:
        full = full_name(name, space)
        return self.named.get(full) or self.named.get(name) or self.named[self.aliases[full]]

    def _collection(self, kind: str, type_: Any, value: Any, space: str | None, level: int) -> bool:
        if not isinstance(value, list if kind == "array" else dict):
            return False
        items = type_["items" if kind == "array" else "values"]
        values = value.values() if isinstance(value, dict) else value
        return all(self.has(items, each, space, level + 1) for each in values)

    def _named(self, type_: Any, value: Any, space: str | None, level: int) -> bool:
        if type_["type"] == "enum":
            return value in type_["symbols"]
        if type_["type"] == "fixed":
            return _is_bytes(value) and len(value) == type_["size"]
        if not isinstance(value, dict):
            return False
        return all(
            self.has(field["type"], value[field["name"]], space, level + 1)
            if field["name"] in value
            else "default" in field
            for field in type_["fields"]
        )


def _aliases(named: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, node in named.items():
        for alias in node.get("aliases") or ():
            yield full_name(str(alias), namespace_of(node, None)), name


def _is_integer(limit: int) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return whole and not isinstance(value, bool) and -limit <= value < limit

    return check


def _is_number(value: Any) -> bool:
    return (isinstance(value, int | float) and not isinstance(value, bool)) or value in ("NaN", "Infinity", "-Infinity")


def _is_bytes(value: Any) -> bool:
    return isinstance(value, str) and all(ord(each) < 256 for each in value)


PRIMITIVE: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": _is_integer(INTEGERS["int"]),
    "long": _is_integer(INTEGERS["long"]),
    "float": _is_number,
    "double": _is_number,
    "bytes": _is_bytes,
    "string": lambda value: isinstance(value, str),
}
