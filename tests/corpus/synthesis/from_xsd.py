"""Generate XML documents that are valid by an element of an XML Schema, as compiled by xmlschema.

Not drawn: identity constraints and assertions are not looked at, and an element of an abstract type is not replaced;
what the schema then does not take shows as a message that cannot be built.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lxml import etree

from synthesis import texts
from synthesis.dice import Dice
from synthesis.simple_types import text_of

XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
DEEP = 5  # levels below which nothing optional is there
SPELLINGS: tuple[dict[str, Any], ...] = (
    {"encoding": "utf-8", "xml_declaration": True},
    {"encoding": "us-ascii"},
    {"encoding": "utf-16", "xml_declaration": True},
    {"encoding": "utf-8", "pretty_print": True},
)

Component = Any  # of xmlschema
Element = Any


def xml(element: Component, dice: Dice) -> bytes:
    """A valid document, in one of the ways that writers have."""
    root = etree.Element(element.name, nsmap=_prefixes(element, dice))
    _fill(root, element, dice, 0)
    spelling = dice.choice(SPELLINGS) if dice.odd else {"encoding": "utf-8"}
    return bytes(etree.tostring(root, **spelling))


def _prefixes(element: Component, dice: Dice) -> dict[str | None, str]:
    namespace = element.target_namespace
    return {dice.choice((None, "own")): namespace} if namespace and element.name.startswith("{") else {}


def _fill(filled: Element, element: Component, dice: Dice, level: int) -> None:
    """Attributes, then a text or children, or neither where it may be nil."""
    type_ = element.type
    if not type_.is_simple():
        _add_attributes(filled, type_, dice)
    if element.nillable and element.fixed is None and dice.random() < 0.3:
        filled.set(f"{XSI}nil", "true")
    elif element.fixed is not None:
        filled.text = element.fixed
    elif type_.is_simple():
        filled.text = text_of(type_, dice)
    elif type_.has_simple_content():
        filled.text = text_of(type_.content, dice)
    else:
        _add_children(filled, type_, dice, level)


def _add_attributes(filled: Element, type_: Component, dice: Dice) -> None:
    for name, attribute in type_.attributes.items():
        is_usable = name is not None and attribute.use != "prohibited"
        if is_usable and (attribute.use == "required" or dice.random() < 0.6):
            filled.set(name, attribute.fixed if attribute.fixed is not None else text_of(attribute.type, dice))


def _add_children(filled: Element, type_: Component, dice: Dice, level: int) -> None:
    if type_.has_mixed_content() and dice.random() < 0.7:
        filled.text = texts.text(dice)
    for name, particle in _particles(type_.content, dice, level):
        child = etree.SubElement(filled, name)
        if particle is not None:
            _fill(child, particle, dice, level + 1)
        if type_.has_mixed_content() and dice.random() < 0.3:
            child.tail = texts.text(dice)


def _particles(group: Component, dice: Dice, level: int) -> Iterator[tuple[str, Component | None]]:
    """The elements of a content model that are to be there, in an order that it allows: names, with what is in them
    (None: whatever a wildcard lets through)."""
    parts = list(group)
    if group.model == "choice" and parts:
        parts = [dice.choice(parts)]
    elif group.model == "all":
        dice.shuffle(parts)
    for part in parts:
        for _ in range(_count(part, dice, level)):
            if hasattr(part, "model"):
                yield from _particles(part, dice, level)
            elif hasattr(part, "abstract"):
                chosen = _chosen(part, dice)
                yield chosen.name, chosen
            else:
                yield _free_name(part, dice), None


def _count(particle: Component, dice: Dice, level: int) -> int:
    least: int = particle.min_occurs
    most = least + 2 if particle.max_occurs is None else min(particle.max_occurs, least + 2)
    return least if level > DEEP else dice.randint(least, most)


def _chosen(element: Component, dice: Dice) -> Component:
    """The element, or one that may stand for it: xmlschema has these in a set, whose order is another each time."""
    others = sorted(
        (iter_substitute for iter_substitute in element.iter_substitutes() if not iter_substitute.abstract),
        key=lambda iter_substitute: iter_substitute.name,
    )
    own = [] if element.abstract else [element]
    return dice.choice([*own, *others])


def _free_name(wildcard: Component, dice: Dice) -> str:
    """An element that a wildcard lets through: of no schema, or, where it is looked at, a global one without content."""
    if wildcard.process_contents != "strict":
        names = [name for name in ("free", "{urn:elsewhere}free") if wildcard.is_matching(name)]
    else:
        names = [
            name for name, element in wildcard.maps.elements.items() if wildcard.is_matching(name) and _empty(element)
        ]
    return dice.choice(names)


def _empty(element: Component) -> bool:
    return bool(element.type.is_emptiable() and not element.type.is_simple() and not element.type.attributes)
