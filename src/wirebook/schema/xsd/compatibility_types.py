"""XML Schema simple types: does the new type accept every text that the old type accepts?

Documents are validated as text, so lexical forms are compared, not values.

Spec: XML Schema 1.0 part 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from wirebook.schema.incompatibilities import UNPROVEN, Incompatibility
from wirebook.schema.xsd.patterns import regexps_of
from wirebook.schema.xsd.source import XS
from wirebook.schema.xsd.types import SimpleType, item_of, members_of

TEXTS = frozenset(f"{XS}{name}" for name in ("string", "normalizedString", "token"))
ANYTHING = TEXTS | {f"{XS}anySimpleType", f"{XS}anyAtomicType"}
WIDER = {f"{XS}float": (f"{XS}double",), f"{XS}decimal": (f"{XS}float", f"{XS}double")}
RANGES = ("minInclusive", "minExclusive", "maxInclusive", "maxExclusive")
LENGTHS = ("length", "minLength", "maxLength")
HANDLED = frozenset((*RANGES, *LENGTHS, "enumeration", "pattern", "whiteSpace"))


def simple_incompatibilities(old: SimpleType, new: SimpleType, path: str) -> Iterator[Incompatibility]:
    """Yield why some texts of `old` are not valid against `new`."""
    if new.name in ANYTHING:
        return
    values = _values(old)
    if values is not None:
        rejected = [value for value in values if not new.text_is_valid(value)]
        if rejected:
            rule = "enumeration-narrowed" if new.enumeration else "type-narrowed"
            allowed = list(map(str, new.enumeration)) if new.enumeration else described(new)
            yield Incompatibility(path, rule, rejected, allowed)
    elif old.is_union():
        for member in members_of(old):
            yield from simple_incompatibilities(member, new, path)
    elif new.is_union():
        members = members_of(new)
        has_facets = bool(getattr(new, "facets", None)) or bool(getattr(new, "patterns", None))
        if has_facets or all(any(simple_incompatibilities(old, member, path)) for member in members):
            yield Incompatibility(path, "type-narrowed", described(old), described(new))
    elif old.is_list() and new.is_list():
        yield from simple_incompatibilities(item_of(old), item_of(new), path)
        yield from _facets(old, new, path)
    elif old.is_list() or new.is_list() or not _is_wider(builtin(old), builtin(new)):
        yield Incompatibility(path, "type-narrowed", described(old), described(new))
    else:
        yield from _facets(old, new, path)


def _values(type_: SimpleType) -> list[str] | None:
    """Return the texts of an enumeration; None without one, or if its values have no plain text."""
    values = type_.enumeration
    if not values or not all(isinstance(value, str | int | bool | Decimal | float) for value in values):
        return None
    return [str(value).lower() if isinstance(value, bool) else str(value) for value in values]


def builtin(type_: SimpleType) -> SimpleType:
    """Return the nearest built-in type that a type is derived from."""
    while type_.base_type is not None and not (type_.name or "").startswith(XS):
        type_ = type_.base_type
    return type_


def _chain(type_: SimpleType) -> list[SimpleType]:
    types = [type_]
    while types[-1].base_type is not None and len(types) < 100:
        types.append(types[-1].base_type)
    return types


def _is_wider(old: SimpleType, new: SimpleType) -> bool:
    """Whether the built-in type `new` accepts what `old` accepts. For two integer types, the facets decide later."""
    names, new_names = ({ancestor.name for ancestor in _chain(type_)} for type_ in (old, new))
    wider = {wider_name for name in names for wider_name in WIDER.get(name, ())}
    is_text, is_integer = new.name in TEXTS and bool(names & TEXTS), f"{XS}integer" in names & new_names
    return new.name in names | wider | ANYTHING or is_text or is_integer


def _facets(old: SimpleType, new: SimpleType, path: str) -> Iterator[Incompatibility]:
    if new.enumeration and builtin(old).name != f"{XS}boolean":
        yield Incompatibility(path, "enumeration-added", described(old), list(map(str, new.enumeration)))
        return
    yield from _bounds(old, new, path)
    yield from _patterns(old, new, path)
    for name, value in _other_facets(new).items():
        old_value = _other_facets(old).get(name)
        is_limit = name in ("totalDigits", "fractionDigits")
        if (old_value is None or old_value > value) if is_limit else old_value != value:
            rule = UNPROVEN if name == "assertion" else f"{_kebab_case(name)}-narrowed"
            yield Incompatibility(path, rule, old_value, value)


def _bounds(old: SimpleType, new: SimpleType, path: str) -> Iterator[Incompatibility]:
    for name, low in (("minLength", True), ("maxLength", False)):
        old_length, new_length = _length(old, name), _length(new, name)
        if new_length is None:
            continue
        if old_length is None or (old_length < new_length if low else old_length > new_length):
            yield Incompatibility(path, f"{_kebab_case(name)}-narrowed", old_length, new_length)
    for low in (True, False):
        old_limit, new_limit = _range(old, low), _range(new, low)
        if new_limit is not None and not _is_inside(old_limit, new_limit, low):
            yield Incompatibility(path, "range-narrowed", old_limit and _limit(old_limit), _limit(new_limit))


def _length(type_: SimpleType, name: str) -> int | None:
    return next((int(facet.value) for _, facet in _restrictions(type_, "length", name)), None)


def _range(type_: SimpleType, low: bool) -> tuple[Any, bool] | None:
    """Return the narrowest limit and whether it is exclusive; None without a limit."""
    names = RANGES[:2] if low else RANGES[2:]
    return next(((facet.value, name.endswith("Exclusive")) for name, facet in _restrictions(type_, *names)), None)


def _restrictions(type_: SimpleType, *names: str) -> Iterator[tuple[str, Any]]:
    """Yield the facets with these names: those of the type first, then those of its base types, which are wider."""
    for ancestor in _chain(type_):
        for name in names:
            facet = getattr(ancestor, "facets", {}).get(f"{XS}{name}")
            if facet is not None:
                yield name, facet


def _limit(limit: tuple[Any, bool]) -> str:
    return f"{limit[0]}, excluded" if limit[1] else str(limit[0])


def _is_inside(old: tuple[Any, bool] | None, new: tuple[Any, bool], low: bool) -> bool:
    if old is None:
        return False
    try:
        if old[0] == new[0]:
            return old[1] or not new[1]
        return bool(old[0] > new[0] if low else old[0] < new[0])
    except TypeError:  # values of different types
        return False


def _patterns(old: SimpleType, new: SimpleType, path: str) -> Iterator[Incompatibility]:
    """Compare patterns. A text must match one pattern of each restriction. Built-in types are compared by name."""
    old_steps = [set(pattern_step) for pattern_step in regexps_of(old)]
    for step in regexps_of(new):
        if not any(old_step <= set(step) for old_step in old_steps):
            yield Incompatibility(path, "pattern-changed", sorted(set().union(*old_steps)), step)


def _other_facets(type_: SimpleType) -> dict[str, Any]:
    facets: dict[str, Any] = {}
    for ancestor in reversed(_chain(type_)):
        for name, facet in getattr(ancestor, "facets", {}).items():
            local = str(name).removeprefix(XS)
            if name is not None and local not in HANDLED:
                facets[local] = getattr(facet, "value", None) or str(facet)
    return facets


def _kebab_case(name: str) -> str:
    return "".join(f"-{character.lower()}" if character.isupper() else character for character in name)


def described(type_: Any) -> str:
    """Return the name of a type; for a type without a name, that of its base type."""
    if type_.name:
        return str(type_.name).replace(XS, "xs:")
    base = type_.base_type
    return f"a type without a name, of {described(base)}" if base is not None else "a type without a name"
