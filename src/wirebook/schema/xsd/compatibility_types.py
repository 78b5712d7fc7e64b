"""XML Schema's simple types: does the new type take every text that the old one does?

Spec: XML Schema 1.0 part 2; white space and lexical forms count, not the values: a document is validated as text.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from wirebook.schema.incompatibilities import UNPROVEN, Incompatibility
from wirebook.schema.xsd.source import XS

SimpleType = Any  # of xmlschema
TEXTS = frozenset(f"{XS}{name}" for name in ("string", "normalizedString", "token"))
ANYTHING = frozenset(
    f"{XS}{name}" for name in ("anySimpleType", "anyAtomicType", "string", "normalizedString", "token")
)
WIDER = {f"{XS}float": (f"{XS}double",), f"{XS}decimal": (f"{XS}float", f"{XS}double")}
RANGES = ("minInclusive", "minExclusive", "maxInclusive", "maxExclusive")
LENGTHS = ("length", "minLength", "maxLength")
HANDLED = frozenset((*RANGES, *LENGTHS, "enumeration", "pattern", "whiteSpace"))


def simple_incompatibilities(old: SimpleType, new: SimpleType, path: str) -> Iterator[Incompatibility]:
    """Why texts of `old` are not all of `new`."""
    if new.name in ANYTHING:
        return
    values = _values(old)
    if values is not None:
        refused = [value for value in values if not new.text_is_valid(value)]
        if refused:
            rule = "enumeration-narrowed" if new.enumeration else "type-narrowed"
            allowed = list(map(str, new.enumeration)) if new.enumeration else described(new)
            yield Incompatibility(path, rule, refused, allowed)
    elif old.is_union():
        for member in _plain(old).member_types:
            yield from simple_incompatibilities(member, new, path)
    elif new.is_union():
        members = _plain(new).member_types
        if _own_facets(new) or all(any(simple_incompatibilities(old, member, path)) for member in members):
            yield Incompatibility(path, "type-narrowed", described(old), described(new))
    elif old.is_list() or new.is_list():
        yield from _lists(old, new, path)
    else:
        yield from _atomic(old, new, path)


def _values(type_: SimpleType) -> list[str] | None:
    """The texts of an enumeration."""
    found = type_.enumeration
    if not found or not all(isinstance(each, str | int | bool | Decimal | float) for each in found):
        return None
    return [_text(each) for each in found]


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _plain(type_: SimpleType) -> SimpleType:
    """The union or list that a type restricts."""
    while type_.base_type is not None and not hasattr(type_, "member_types") and type_.is_union():
        type_ = type_.base_type
    while type_.is_list() and not hasattr(type_, "item_type") and type_.base_type is not None:
        type_ = type_.base_type
    return type_


def _lists(old: SimpleType, new: SimpleType, path: str) -> Iterator[Incompatibility]:
    if not (old.is_list() and new.is_list()):
        yield Incompatibility(path, "type-narrowed", described(old), described(new))
        return
    yield from simple_incompatibilities(_plain(old).item_type, _plain(new).item_type, path)
    yield from _facets(old, new, path)


def _atomic(old: SimpleType, new: SimpleType, path: str) -> Iterator[Incompatibility]:
    before, after = builtin(old), builtin(new)
    if not _is_wider(before, after) and not _is_wider_range(old, new):
        yield Incompatibility(path, "type-narrowed", described(old), described(new))
    else:
        yield from _facets(old, new, path)


def builtin(type_: SimpleType) -> SimpleType:
    """The nearest type of XML Schema itself."""
    while type_.base_type is not None and not (type_.name or "").startswith(XS):
        type_ = type_.base_type
    return type_


def _chain(type_: SimpleType) -> list[SimpleType]:
    found = [type_]
    while found[-1].base_type is not None and len(found) < 100:
        found.append(found[-1].base_type)
    return found


def _is_wider(old: SimpleType, new: SimpleType) -> bool:
    names = {each.name for each in _chain(old)}
    wider = {name for each in names for name in WIDER.get(each, ())}
    texts = new.name in TEXTS and bool(names & TEXTS)
    return new.name in names | wider or texts or new.name in ANYTHING


def _is_wider_range(old: SimpleType, new: SimpleType) -> bool:
    """Integers of another name, whose range is the same or larger."""
    integer = f"{XS}integer"
    return all(any(each.name == integer for each in _chain(type_)) for type_ in (old, new))


def _facets(old: SimpleType, new: SimpleType, path: str) -> Iterator[Incompatibility]:
    if new.enumeration and builtin(old).name != f"{XS}boolean":
        yield Incompatibility(path, "enumeration-added", described(old), list(map(str, new.enumeration)))
        return
    yield from _bounds(old, new, path)
    yield from _patterns(old, new, path)
    for name, value in _other_facets(new).items():
        had = _other_facets(old).get(name)
        if not _is_enough(name, had, value):
            yield Incompatibility(path, UNPROVEN if name == "assertion" else f"{_words(name)}-narrowed", had, value)


def _bounds(old: SimpleType, new: SimpleType, path: str) -> Iterator[Incompatibility]:
    for name, low in (("minLength", True), ("maxLength", False)):
        had, wanted = _length(old, name), _length(new, name)
        if wanted is not None and (had is None or (had < wanted if low else had > wanted)):
            yield Incompatibility(path, f"{_words(name)}-narrowed", had, wanted)
    for low in (True, False):
        limit, asked = _range(old, low), _range(new, low)
        if asked is not None and not _is_inside(limit, asked, low):
            yield Incompatibility(path, "range-narrowed", limit and _limit(limit), _limit(asked))


def _length(type_: SimpleType, name: str) -> int | None:
    for each in _chain(type_):
        for facet in ("length", name):
            found = getattr(each, "facets", {}).get(f"{XS}{facet}")
            if found is not None:
                return int(found.value)
    return None


def _range(type_: SimpleType, low: bool) -> tuple[Any, bool] | None:
    """The narrowest limit: the value, and whether it is excluded."""
    found = []
    for each in _chain(type_):
        for name in RANGES[:2] if low else RANGES[2:]:
            facet = getattr(each, "facets", {}).get(f"{XS}{name}")
            if facet is not None:
                found.append((facet.value, name.endswith("Exclusive")))
    return found[0] if found else None  # each restriction lies inside its base


def _limit(limit: tuple[Any, bool]) -> str:
    return f"{limit[0]}, excluded" if limit[1] else str(limit[0])


def _is_inside(had: tuple[Any, bool] | None, wanted: tuple[Any, bool], low: bool) -> bool:
    if had is None:
        return False
    try:
        if had[0] == wanted[0]:
            return had[1] or not wanted[1]
        return bool(had[0] > wanted[0] if low else had[0] < wanted[0])
    except TypeError:  # values of two types
        return False


def _patterns(old: SimpleType, new: SimpleType, path: str) -> Iterator[Incompatibility]:
    """One of the patterns of each step of restriction has to match; built-in types have theirs by their names."""
    olds = [set(pattern_step) for pattern_step in _pattern_steps(old)]
    for step in _pattern_steps(new):
        if not any(each <= set(step) for each in olds):
            yield Incompatibility(path, "pattern-changed", sorted(set().union(*olds)), step)


def _pattern_steps(type_: SimpleType) -> Iterator[list[str]]:
    for each in _chain(type_):
        if (each.name or "").startswith(XS):
            return
        found = getattr(each, "facets", {}).get(f"{XS}pattern")
        if found is not None:
            yield list(found.regexps)


def _own_facets(type_: SimpleType) -> bool:
    return bool(getattr(type_, "facets", None)) or bool(getattr(type_, "patterns", None))


def _other_facets(type_: SimpleType) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in reversed(_chain(type_)):
        for name, facet in getattr(each, "facets", {}).items():
            local = str(name).removeprefix(XS)
            if name is not None and local not in HANDLED:
                found[local] = getattr(facet, "value", None) or str(facet)
    return found


def _is_enough(name: str, had: Any, wanted: Any) -> bool:
    if name in ("totalDigits", "fractionDigits"):
        return had is not None and had <= wanted
    return bool(had == wanted)


def _words(name: str) -> str:
    return "".join(f"-{each.lower()}" if each.isupper() else each for each in name)


def described(type_: Any) -> str:
    """The name of a type, or what it restricts."""
    if type_.name:
        return str(type_.name).replace(XS, "xs:")
    base = type_.base_type
    return f"a type without a name, of {described(base)}" if base is not None else "a type without a name"
