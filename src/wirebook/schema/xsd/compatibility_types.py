"""XML Schema simple types: does the new type accept every text that the old type accepts?

Documents are validated as text, so lexical forms are compared, not values.

Spec: XML Schema 1.0 part 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wirebook.schema.incompatibilities import UNPROVEN, Incompatibility, Steps
from wirebook.schema.xsd.patterns import regexps_of
from wirebook.schema.xsd.source import XS
from wirebook.schema.xsd.types import SimpleType, item_of, members_of

TEXTS = frozenset(f"{XS}{name}" for name in ("string", "normalizedString", "token"))
ANYTHING = TEXTS | {f"{XS}anySimpleType", f"{XS}anyAtomicType"}
WIDER = {f"{XS}float": (f"{XS}double",), f"{XS}decimal": (f"{XS}float", f"{XS}double")}
RANGES = ("minInclusive", "minExclusive", "maxInclusive", "maxExclusive")
LENGTHS = ("length", "minLength", "maxLength")
QUALIFIED = (f"{XS}QName", f"{XS}NOTATION")
WHITE_SPACE = ("preserve", "replace", "collapse")
HANDLED = frozenset((*RANGES, *LENGTHS, "enumeration", "pattern", "whiteSpace"))


class TypeComparison:
    """Compares simple types. Each pair and each enumerated value counts as a step."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.known: dict[int, Any] = {}
        self.numbers: dict[Any, int] = {}

    def incompatibilities(self, old: SimpleType, new: SimpleType, path: str) -> Iterator[Incompatibility]:
        """Yield why some texts of `old` are not valid against `new`. Raises: TooComplexError"""
        self.steps.take()
        if new.name in ANYTHING or self._is_extended(old, new):
            return
        texts = _texts(old)
        if texts is not None and (_is_text(old) or (_is_wider(builtin(old), builtin(new)) and not _is_text(new))):
            self.steps.take(len(texts) * (1 + len(new.enumeration or ())) // 1000)
            rejected = [text for text in texts if not new.text_is_valid(text)]
            if rejected:
                rule = "enumeration-narrowed" if new.enumeration else "type-narrowed"
                allowed = _texts(new) if new.enumeration else described(new)
                yield Incompatibility(path, rule, rejected, allowed)
            elif not _is_text(old):  # a value has several texts
                yield from _patterns(old, new, path)
            elif _white_space(new) < _white_space(old) and _restricts_text(new):
                yield _white_space_change(old, new, path)
        elif old.is_union():
            for member in _members(old):
                yield from self.incompatibilities(member, new, path)
        elif new.is_union():
            if _has_facets(new) or all(any(self.incompatibilities(old, member, path)) for member in _members(new)):
                yield Incompatibility(path, "type-narrowed", described(old), described(new))
        elif old.is_list() and new.is_list():
            yield from self.incompatibilities(item_of(old), item_of(new), path)
            yield from _facets(old, new, path)
        elif old.is_list() or new.is_list() or not _is_wider(builtin(old), builtin(new)):
            yield Incompatibility(path, "type-narrowed", described(old), described(new))
        else:
            yield from _facets(old, new, path)

    def has_same_values(self, old: SimpleType | None, new: SimpleType | None) -> bool:
        """Whether equal texts have equal values in both types. `None` is mixed content."""
        if old is None or new is None:
            return old is new
        if self._definition(old) == self._definition(new):
            return True
        if any(type_.is_union() or type_.is_list() for type_ in (old, new)) or _is_text(old) != _is_text(new):
            return False
        if _is_text(old):
            return _white_space(old) <= _white_space(new)
        return _is_wider(builtin(old), builtin(new))

    def _is_extended(self, old: SimpleType, new: SimpleType) -> bool:
        """Whether two types are equal, apart from values that the new type adds to the enumeration."""
        if self._definition(old) == self._definition(new):
            return True
        if old.base_type is None or new.base_type is None or hasattr(old, "item_type") or hasattr(old, "member_types"):
            return False
        facets, new_facets = _own_facets(old), _own_facets(new)
        values, new_values = facets.pop("enumeration", None), new_facets.pop("enumeration", None)
        is_wider = new_values is None or (values is not None and set(values) <= set(new_values))
        same_base = self._definition(old.base_type) == self._definition(new.base_type)
        return same_base and facets == new_facets and is_wider

    def _definition(self, type_: SimpleType) -> Any:
        """Return a number that equal definitions share."""
        if id(type_) not in self.known:
            self.steps.take()
            self.known[id(type_)] = self._number(type_)
        return self.known[id(type_)]

    def _number(self, type_: SimpleType) -> Any:
        if (type_.name or "").startswith(XS):
            return type_.name
        inner: tuple[Any, ...] = ()
        if hasattr(type_, "member_types"):
            inner = ("union", *map(self._definition, type_.member_types))
        elif hasattr(type_, "item_type"):
            inner = ("list", self._definition(type_.item_type))
        elif type_.base_type is not None:
            inner = ("restriction", self._definition(type_.base_type))
        definition = inner, tuple(sorted(_own_facets(type_).items()))
        return self.numbers.setdefault(definition, len(self.numbers))


def _own_facets(type_: SimpleType) -> dict[str, tuple[str, ...]]:
    """Return the facets of one derivation step, as written; qualified names with their namespace."""
    facets: dict[str, tuple[str, ...]] = {}
    for name, facet in getattr(type_, "facets", {}).items():
        if name == f"{XS}enumeration":
            texts = (element.get("value", "") for element in facet)
            facets["enumeration"] = tuple(f"{text} {value}" if ":" in text else text
                                          for text, value in zip(texts, facet.enumeration, strict=True))  # fmt: skip
        elif name == f"{XS}pattern":
            facets["pattern"] = tuple(facet.regexps)
        elif name is not None:
            facets[name.removeprefix(XS)] = (str(getattr(facet, "path", None) or facet.value),)
    return facets


def _texts(type_: SimpleType) -> list[str] | None:
    """Return one text of each value of an enumeration; None without one, or if the values of a type have no such text.

    The values of a text type have no other text.
    """
    if not type_.enumeration or type_.is_union() or type_.is_list() or builtin(type_).name in QUALIFIED:
        return None
    if _is_text(type_):
        return list(map(str, type_.enumeration))
    return [element.get("value", "") for element in type_.get_facet(f"{XS}enumeration")]


def _is_text(type_: SimpleType) -> bool:
    """Whether the values of a type are texts, and not numbers or others that can be written in several ways."""
    return any(ancestor.name in (f"{XS}string", f"{XS}anyURI") for ancestor in _chain(type_))


def _members(type_: SimpleType) -> list[SimpleType]:
    """Return the distinct members of a union type; those of a union without facets among them replace it."""
    members: dict[int, SimpleType] = {}
    seen: set[int] = set()
    waiting = [type_]
    while waiting:
        for member in members_of(waiting.pop()):
            if member.is_union() and not _has_facets(member):
                waiting += [] if id(member) in seen else [member]
                seen.add(id(member))
            else:
                members[id(member)] = member
    return list(members.values())


def _has_facets(type_: SimpleType) -> bool:
    return any(_own_facets(ancestor) for ancestor in _chain(type_))


def _white_space(type_: SimpleType) -> int:
    """Return how much white space a type normalises: none (0), to spaces (1), or to single spaces (2)."""
    if type_.is_union():
        return min(map(_white_space, _members(type_)))
    return {"preserve": 0, "replace": 1}.get(str(type_.white_space), 2)


def _restricts_text(type_: SimpleType) -> bool:
    """Whether a type accepts only some texts of its built-in type."""
    if type_.is_union():
        return _has_facets(type_) or any(map(_restricts_text, _members(type_)))
    return any(_own_facets(ancestor).keys() - {"whiteSpace"} for ancestor in _chain(type_)
               if not (ancestor.name or "").startswith(XS))  # fmt: skip


def _white_space_change(old: SimpleType, new: SimpleType, path: str) -> Incompatibility:
    before, after = (WHITE_SPACE[_white_space(type_)] for type_ in (old, new))
    return Incompatibility(path, "white-space-changed", before, after)


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
        yield Incompatibility(path, "enumeration-added", described(old), _texts(new) or list(map(str, new.enumeration)))
        return
    before, after = _white_space(old), _white_space(new)
    lengths = ("length", "minLength") if after > before else ("length", "maxLength")
    shrinks_or_grows = before != after and 2 in (before, after)
    if (before != after and any(regexps_of(new))) or (shrinks_or_grows and any(_restrictions(new, *lengths))):
        yield _white_space_change(old, new, path)
    yield from _bounds(old, new, path)
    yield from _patterns(old, new, path)
    for name, value in _other_facets(new).items():
        old_value = _other_facets(old).get(name)
        is_limit = name in ("totalDigits", "fractionDigits")
        if (not isinstance(old_value, int) or old_value > value) if is_limit else old_value != value:
            rule = UNPROVEN if name == "assertion" else f"{_kebab_case(name)}-narrowed"
            yield Incompatibility(path, rule, old_value, value)


def _bounds(old: SimpleType, new: SimpleType, path: str) -> Iterator[Incompatibility]:
    has_same_unit = _unit(old) == _unit(new)
    for name, low in (("minLength", True), ("maxLength", False)):
        old_length, new_length = _length(old, name) if has_same_unit else None, _length(new, name)
        if new_length is None:
            continue
        if old_length is None or (old_length < new_length if low else old_length > new_length):
            yield Incompatibility(path, f"{_kebab_case(name)}-narrowed", old_length, new_length)
    for low in (True, False):
        old_limit, new_limit = _range(old, low), _range(new, low)
        if new_limit is not None and not _is_inside(old_limit, new_limit, low):
            yield Incompatibility(path, "range-narrowed", old_limit and _limit(old_limit), _limit(new_limit))


def _unit(type_: SimpleType) -> str:
    """Return what the length of a value counts: characters, items, or the bytes of a binary type."""
    if type_.is_list():
        return "items"
    return "characters" if _is_text(type_) else str(builtin(type_).name)


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
        if isinstance(new[0], float) and new[1] and float(old[0]) == new[0]:  # a decimal may be rounded to the limit
            return False
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
                value = getattr(facet, "value", None)
                facets[local] = str(facet) if value is None else value
    return facets


def _kebab_case(name: str) -> str:
    return "".join(f"-{character.lower()}" if character.isupper() else character for character in name)


def described(type_: Any) -> str:
    """Return the name of a type; for a type without a name, that of its base type."""
    if type_.name:
        return str(type_.name).replace(XS, "xs:")
    base = type_.base_type
    return f"a type without a name, of {described(base)}" if base is not None else "a type without a name"
