"""Writes values as XML elements, with children in an order that the content model allows.

Rule: members have the names of the columns (`columns.names_of`); values are as `read` returns them or plain JSON. Null
becomes `xsi:nil` if the schema allows it and requires the element; otherwise the element is omitted. Mixed content,
``xs:anyType``, and children without a column (under ``<tag>``) are given as XML text. The reader validates the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from math import ceil
from typing import Any

from lxml import etree

from wirebook.problems import Problem
from wirebook.schema.payload_problems import MAX_PROBLEMS, preview
from wirebook.schema.xsd.columns import ElementNames, XsdElement, names_of, particles, substitutes
from wirebook.schema.xsd.read import NIL, TYPE, XsdType
from wirebook.schema.xsd.write_text import as_text
from wirebook.schema.xsd.xml_text import Element, XmlError, parse_xml
from wirebook.text.pointers import format_pointer

MAX_LEVELS = 100
TYPE_NAMES = (f"@{TYPE}", "@xsi:type")
Path = tuple[str | int, ...]
Children = dict[str, list[Element]]
"""The children of an element by tag, in order."""


class XmlWriter:
    """Writes one value and collects `problems`. `types` are the types that the value may select (`xsi:type`)."""

    def __init__(self, types: Any) -> None:
        self.types = types
        self.problems: list[Problem] = []
        self.names: dict[int, ElementNames] = {}

    def element(self, declared: XsdElement, value: Any, path: Path = ()) -> Element | None:
        """Return the element of a value; None if it is nested too deeply. Other problems are only in `problems`."""
        if len(path) > MAX_LEVELS:
            self._refuse("payload-too-deep", path, f"at most {MAX_LEVELS} levels", None)
            return None
        node = etree.Element(declared.name)
        type_ = self._chosen(declared.type, value, node, path)
        if value is None and declared.nillable:
            node.set(NIL, "true")
        elif type_.is_simple():
            self._text(node, type_, value, path)
        elif isinstance(value, str) and (parsed := self._whole(declared, value, path)) is not None:
            return parsed
        elif type_.has_mixed_content() and not isinstance(value, dict):
            self._refuse("payload-invalid", path, "mixed content, as XML text", value)
        else:
            self._complex(node, declared, type_, value, path)
        return node

    def _refuse(self, code: str, path: Path, expected: str, actual: Any) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            slot, text = f"payload#{format_pointer(path)}", f"expected {expected}"
            shown = actual if isinstance(actual, str | bool | int | float | None) else type(actual).__name__
            self.problems.append(Problem(code, text, slot=slot, expected=expected, actual=preview(shown)))

    def _chosen(self, type_: XsdType, value: Any, element: Element, path: Path) -> XsdType:
        """Return the type of an element: the declared type, or the one that the value selects with `xsi:type`."""
        type_name = next((value[key] for key in TYPE_NAMES if key in value), None) if isinstance(value, dict) else None
        if type_name is None:
            return type_
        local = str(type_name).rpartition(":")[2].rpartition("}")[2]
        candidates = [candidate for name, candidate in self.types.items() if name.rpartition("}")[2] == local]
        chosen = next((candidate for candidate in candidates if candidate.is_derived(type_)), None)
        if chosen is None:
            self._refuse("payload-invalid", path, f"a type derived from '{type_.local_name or 'its own'}'", type_name)
            return type_
        namespace = chosen.target_namespace
        prefix = etree.SubElement(element, f"{{{namespace}}}x").prefix if namespace else None
        del element[:]
        element.set(TYPE, f"{prefix}:{local}" if prefix else local)
        return chosen

    # -- text ---------------------------------------------------------------------------------------------------------

    def _text(self, element: Element, type_: XsdType, value: Any, path: Path, attribute: str | None = None) -> None:
        """Write a value as the text of an element or of one of its attributes."""
        text = as_text(type_, value)
        if text is None:
            name = type_.local_name or getattr(type_.base_type, "local_name", None) or "of the schema"
            self._refuse("payload-invalid", path, f"a value of the type '{name}'", value)
            return
        try:
            if attribute is None:
                element.text = text
            else:
                element.set(attribute, text)
        except ValueError:
            self._refuse("payload-invalid", path, "only characters that XML allows", text)

    def _whole(self, declared: XsdElement, text: str, path: Path) -> Element | None:
        """Return the element that a value contains as XML text; None if the value is not XML."""
        if not text.lstrip().startswith("<"):
            return None
        element = self._parsed(text, path)
        if element is not None and element.tag != declared.name:
            self._refuse("payload-invalid", path, f"the element '{declared.name}'", element.tag)
        return element

    def _parsed(self, text: Any, path: Path) -> Element | None:
        try:
            if isinstance(text, str):
                return parse_xml(text)
            self._refuse("payload-invalid", path, "XML text", text)
        except XmlError as error:
            self._refuse("payload-invalid", path, f"XML text ({error.message})", text)
        return None

    # -- elements with members ----------------------------------------------------------------------------------------

    def _complex(self, element: Element, declared: XsdElement, type_: XsdType, value: Any, path: Path) -> None:
        names = self.names.get(id(type_)) or self.names.setdefault(id(type_), names_of(type_))
        if names.text is not None and not isinstance(value, dict):
            value = {names.text: value}
        if not isinstance(value, dict):
            expected = "an object" if names.attributes or names.children else "XML text"
            self._refuse("payload-invalid", path, expected, value)
            return
        for name, column in names.attributes.items():
            if value.get(column) is not None:
                self._text(element, type_.attributes[name].type, value[column], (*path, column), name)
        if names.text is not None:
            text_value = value.get(names.text)
            if text_value is None and declared.nillable:
                element.set(NIL, "true")
            else:
                self._text(element, type_.content, text_value, (*path, names.text))
        children = dict(self._children(names, value, path))
        self._unknown(names, value, path)
        if children:
            element.extend(_in_order(type_.content, children))
            element.extend(chain.from_iterable(children.values()))  # those left over; the reader reports them

    def _children(self, names: ElementNames, value: dict[str, Any], path: Path) -> Iterator[tuple[str, list[Element]]]:
        for tag, column in names.children.items():
            if column in value:
                elements = list(self._occurrences(names, tag, value[column], (*path, column)))
                if elements:
                    yield tag, elements
        for name, texts in value.items():
            if _is_tag(name) and isinstance(texts, list):
                parsed = [self._parsed(text, (*path, name, n)) for n, text in enumerate(texts)]
                yield name[1:-1], [element for element in parsed if element is not None]

    def _occurrences(self, names: ElementNames, tag: str, value: Any, path: Path) -> Iterator[Element]:
        declared = names.elements[tag]
        if tag not in names.repeated:
            items: Iterable[tuple[Path, Any]] = [(path, value)]
        elif isinstance(value, list | tuple):
            items = [((*path, number), item) for number, item in enumerate(value)]
        else:
            items = [(path, value)] if value is not None else []
        for place, item in items:
            if item is None and (not declared.nillable or (tag in names.optional and tag not in names.repeated)):
                continue
            element = self.element(declared, item, place)
            if element is not None:
                yield element

    def _unknown(self, names: ElementNames, value: dict[str, Any], path: Path) -> None:
        known = {*names.attributes.values(), *names.children.values(), *([names.text] if names.text else [])}
        for name, member in value.items():
            if name in known or name in TYPE_NAMES or (_is_tag(name) and isinstance(member, list)):
                continue
            listed = ", ".join(sorted(known)[:10]) or "nothing"
            expected = f"one of the members {listed}; children from xs:any are a list of XML texts under '<tag>'"
            self._refuse("payload-invalid", (*path, str(name)), expected, member)


# -- the order of children -------------------------------------------------------------------------------------------


def _in_order(group: Any, left: Children, *, again: bool = False) -> Iterator[Element]:
    """Yield children in an order that the content model allows, and remove them from `left`.

    `again` is set if a surrounding group is repeated: then one round need not use all children.
    """
    needed = max(1, _rounds(group, left))
    rounds = needed if group.max_occurs is None else min(needed, group.max_occurs)
    repeated = again or rounds > 1
    for number in range(rounds):
        before = sum(map(len, left.values()))
        share = (needed if repeated else rounds) - number
        yield from _choice(group, left, again=repeated) if group.model == "choice" else _sequence(group, left, share)
        if sum(map(len, left.values())) == before:
            return


def _rounds(group: Any, remaining: Children) -> int:
    """Return how often a group must occur to hold all remaining children."""
    if group.model == "choice":
        return sum(len(remaining.get(tag, ())) for tag in _tags(group))
    counts = [
        ceil(sum(len(remaining.get(tag, ())) for tag in _tags(particle)) / particle.max_occurs)
        if hasattr(particle, "abstract")
        else max((len(remaining.get(tag, ())) for tag in _tags(particle)), default=0)
        for particle in group
        if (particle.max_occurs == 1 if hasattr(particle, "model") else particle.max_occurs)
    ]
    return max(counts, default=0)


def _sequence(group: Any, left: Children, rounds: int) -> Iterator[Element]:
    """Yield the children of one round of a sequence or all group. `rounds` is the number left, including this one."""
    for particle in group:
        if hasattr(particle, "model"):
            yield from _in_order(particle, left, again=rounds > 1)
        elif not hasattr(particle, "abstract"):  # a wildcard takes the tags of no element
            known = {tag for other in group.iter_elements() if hasattr(other, "abstract") for tag in _tags(other)}
            for tag in [tag for tag in left if tag not in known]:
                yield from left.pop(tag)
        else:
            yield from _taken(particle, left, rounds)


def _taken(element: XsdElement, left: Children, rounds: int) -> Iterator[Element]:
    room = element.max_occurs
    for tag in _tags(element):
        children = left.get(tag, [])
        share = len(children) if rounds == 1 else ceil(len(children) / rounds)
        count = share if room is None else min(share, room)
        yield from children[:count]
        del children[:count]
        room = None if room is None else room - count


def _choice(group: Any, left: Children, *, again: bool) -> Iterator[Element]:
    """Yield the children of the alternative that accepts the most remaining tags."""
    tags = {tag for tag, children in left.items() if children}
    best = max(group, key=lambda particle: len(tags & set(_tags(particle))), default=None)
    if best is None:
        return
    if hasattr(best, "model"):
        yield from _in_order(best, left, again=again)
    elif hasattr(best, "abstract") and tags & set(_tags(best)):
        yield from _taken(best, left, 1)
    else:
        others = [particle for particle in group if not hasattr(particle, "abstract")]
        if any(not hasattr(particle, "model") for particle in others):  # a wildcard
            yield from _sequence(others, left, 1)


def _tags(particle: Any) -> list[str]:
    """Return the tags of the elements that a particle accepts."""
    if hasattr(particle, "model"):
        return list(dict.fromkeys(element.name for element, _, _ in particles(particle)))
    if not hasattr(particle, "abstract"):
        return []
    others = [other.name for other in substitutes(particle)]
    return list(dict.fromkeys([*([] if particle.abstract else [particle.name]), *others]))


def _is_tag(name: Any) -> bool:
    return isinstance(name, str) and name.startswith("<") and name.endswith(">")
