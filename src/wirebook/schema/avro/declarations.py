"""Checks of Avro declarations that readers do not need: names, aliases and default values.

Spec: Avro 1.12 "Names", "Complex Types: Records" (the table of defaults).
Reading: the default of a union may be a value of any branch, as in 1.12; 1.11 allows only the first branch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from wirebook.schema.avro.checks import MAX_FLOAT, bytes_of_characters
from wirebook.schema.avro.types import NAME, AvroError, AvroType

MAX_LEVELS: Final = 64
NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")
"""The defaults of floating-point numbers that JSON has no numbers for."""
SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def check_declarations(types: Iterable[AvroType]) -> None:
    """Check the named types of a schema. Raises: AvroError for an invalid name, alias or default value"""
    for type_ in {id(type_): type_ for type_ in types}.values():
        _check_names(type_)
        default = type_.declaration.get("default")
        if type_.kind == "enum" and default is not None and default not in type_.symbols:
            raise AvroError(f"the default {default!r} of the enum '{type_.name}' is not one of its symbols")
        for name, member in type_.fields:
            if name in type_.defaults and not is_default(member, type_.defaults[name]):
                preview = str(type_.defaults[name])[:80]
                raise AvroError(f"the default {preview!r} of '{type_.name}.{name}' is not a value of its type")


def _check_names(type_: AvroType) -> None:
    for declaration in (type_.declaration, *(type_.declaration.get("fields") or ())):
        name, aliases = declaration.get("name"), declaration.get("aliases") or []
        if not isinstance(name, str):
            raise AvroError(f"a field of '{type_.name}' has no name")
        if not all(NAME.match(alias) for alias in aliases):
            raise AvroError(f"the aliases of '{name}' in '{type_.name}' must be a list of valid names")
    invalid = next((symbol for symbol in type_.symbols if not SYMBOL.match(symbol)), None)
    if invalid is not None:
        raise AvroError(f"the symbol {invalid!r} of the enum '{type_.name}' is not a valid name")


def is_default(type_: AvroType, value: Any) -> bool:
    """Return whether a JSON value is a valid default of a type.

    Cost: linear in the size of the value for each union in the type.
    """
    return _is_default(type_, value, 0, {})


def _is_default(type_: AvroType, value: Any, level: int, known: dict[tuple[int, int], bool]) -> bool:
    """Return the same. `known` are the results for unions, by the identities of the type and the value."""
    if level > MAX_LEVELS:
        return False
    if type_.kind == "union":
        key = (id(type_), id(value))
        if key not in known:
            known[key] = any(_is_default(branch, value, level + 1, known) for branch in type_.branches)
        return known[key]
    if type_.items is not None:
        if not isinstance(value, list if type_.kind == "array" else dict):
            return False
        items = value.values() if isinstance(value, dict) else value
        return all(_is_default(type_.items, item, level + 1, known) for item in items)
    if type_.kind == "enum":
        return value in type_.symbols
    if type_.kind == "fixed":
        octets = bytes_of_characters(value)
        return octets is not None and len(octets) == type_.size
    if type_.kind == "record":
        return isinstance(value, dict) and all(
            _is_default(member, value[name], level + 1, known) if name in value else name in type_.defaults
            for name, member in type_.fields
        )
    return IS_PRIMITIVE[type_.kind](value)


def _is_integer(limit: int) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return is_whole and not isinstance(value, bool) and -limit <= value < limit

    return check


def _is_number(limit: float) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return abs(value) <= limit if is_number else value in NOT_FINITE

    return check


IS_PRIMITIVE: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": _is_integer(2**31),
    "long": _is_integer(2**63),
    "float": _is_number(MAX_FLOAT["float"]),
    "double": _is_number(MAX_FLOAT["double"]),
    "bytes": lambda value: bytes_of_characters(value) is not None,
    "string": lambda value: isinstance(value, str),
}
"""Functions that return whether a JSON value is a valid default of a primitive type."""
