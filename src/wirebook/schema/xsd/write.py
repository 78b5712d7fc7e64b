"""Values as XML: an element from what its columns are called, its children in an order that the content model allows.

Rule: names are those of the columns (`xsd_shapes.names_of`), values as `read` gives them or as JSON has them. Null is
`xsi:nil` where the schema allows that and asks for the element, else nothing. XML text stands for mixed content, any
type, and under ``<tag>`` for what has no column. Whether all is valid the reader says afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
Made = dict[str, list[Element]]  # children by tag, in order


class XmlWriter:
    """Writes one value; what does not fit is in `problems`. `types` are the types that a value may choose."""

    def __init__(self, types: Any) -> None:
        self.types = types
        self.problems: list[Problem] = []
        self.names: dict[int, ElementNames] = {}

    def element(self, declared: XsdElement, value: Any, path: Path = ()) -> Element | None:
        """The element, None where there is a problem."""
        if len(path) > MAX_LEVELS:
            self._refuse("payload-too-deep", path, f"at most {MAX_LEVELS} levels", None)
            return None
        made = etree.Element(declared.name)
        type_ = self._chosen(declared.type, value, made, path)
        if value is None and declared.nillable:
            made.set(NIL, "true")
        elif type_.is_simple():
            self._text(made, type_, value, path)
        elif isinstance(value, str) and (whole := self._whole(declared, value, path)) is not None:
            return whole
        elif type_.has_mixed_content() and not isinstance(value, dict):
            self._refuse("payload-invalid", path, "mixed content, as XML text", value)
        else:
            self._complex(made, declared, type_, value, path)
        return made

    def _refuse(self, code: str, path: Path, expected: str, actual: Any) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            slot, text = f"payload#{format_pointer(path)}", f"expected {expected}"
            self.problems.append(Problem(code, text, slot=slot, expected=expected, actual=preview(_said(actual))))

    def _chosen(self, type_: XsdType, value: Any, made: Element, path: Path) -> XsdType:
        """The type of an element: its own, or the one that the value chooses by `xsi:type`."""
        named = (
            next((value[type_name] for type_name in TYPE_NAMES if type_name in value), None)
            if isinstance(value, dict)
            else None
        )
        if named is None:
            return type_
        local = str(named).rpartition(":")[2].rpartition("}")[2]
        found = [each for name, each in self.types.items() if name.rpartition("}")[2] == local]
        chosen = next((each for each in found if each.is_derived(type_)), None)
        if chosen is None:
            self._refuse("payload-invalid", path, f"a type derived from '{type_.local_name or 'its own'}'", named)
            return type_
        namespace = chosen.target_namespace
        prefix = etree.SubElement(made, f"{{{namespace}}}x").prefix if namespace else None
        del made[:]
        made.set(TYPE, f"{prefix}:{local}" if prefix else local)
        return chosen

    # -- text ---------------------------------------------------------------------------------------------------------

    def _text(self, made: Element, type_: XsdType, value: Any, path: Path) -> None:
        text = self._lexical(type_, value, path)
        if text is not None:
            self._set(made, text, path)

    def _lexical(self, type_: XsdType, value: Any, path: Path) -> str | None:
        text = as_text(type_, value)
        if text is None:
            self._refuse("payload-invalid", path, f"a value of the type '{_name(type_)}'", value)
        return text

    def _set(self, made: Element, text: str, path: Path, attribute: str | None = None) -> None:
        try:
            if attribute is None:
                made.text = text
            else:
                made.set(attribute, text)
        except ValueError:
            self._refuse("payload-invalid", path, "characters that XML has", text)

    def _whole(self, declared: XsdElement, text: str, path: Path) -> Element | None:
        """An element given as XML text; None for a text that is none."""
        if not text.lstrip().startswith("<"):
            return None
        found = self._parsed(text, path)
        if found is not None and found.tag != declared.name:
            self._refuse("payload-invalid", path, f"the element '{declared.name}'", found.tag)
        return found

    def _parsed(self, text: Any, path: Path) -> Element | None:
        try:
            if isinstance(text, str):
                return parse_xml(text)
            self._refuse("payload-invalid", path, "XML text", text)
        except XmlError as error:
            self._refuse("payload-invalid", path, f"XML text ({error.message})", text)
        return None

    # -- elements with members ----------------------------------------------------------------------------------------

    def _complex(self, made: Element, declared: XsdElement, type_: XsdType, value: Any, path: Path) -> None:
        names = self.names.setdefault(id(type_), names_of(type_))
        if names.text is not None and not isinstance(value, dict):
            value = {names.text: value}
        if not isinstance(value, dict):
            self._refuse("payload-invalid", path, "an object" if _members(names) else "XML text", value)
            return
        self._attributes(made, names, value, path)
        if names.text is not None:
            given = value.get(names.text)
            if given is None and declared.nillable:
                made.set(NIL, "true")
            else:
                self._text(made, type_.content, given, (*path, names.text))
        children = dict(self._children(names, value, path))
        self._unknown(names, value, path)
        if children:
            made.extend(_in_order(type_.content, children))
            made.extend(each for left in children.values() for each in left)  # the reader says what is too much

    def _attributes(self, made: Element, names: ElementNames, value: dict[str, Any], path: Path) -> None:
        for name, column in names.attributes.items():
            if value.get(column) is not None:
                text = self._lexical(names.components[name].type, value[column], (*path, column))
                if text is not None:
                    self._set(made, text, (*path, column), name)

    def _children(self, names: ElementNames, value: dict[str, Any], path: Path) -> Iterator[tuple[str, list[Element]]]:
        for tag, column in names.children.items():
            if column in value:
                made = list(self._occurrences(names, tag, value[column], (*path, column)))
                if made:
                    yield tag, made
        for name, texts in value.items():
            if _is_tag(name) and isinstance(texts, list):
                found = [self._parsed(text, (*path, name, n)) for n, text in enumerate(texts)]
                yield name[1:-1], [each for each in found if each is not None]

    def _occurrences(self, names: ElementNames, tag: str, value: Any, path: Path) -> Iterator[Element]:
        declared = names.elements[tag]
        if tag not in names.repeated:
            given: Iterable[tuple[Path, Any]] = [(path, value)]
        elif isinstance(value, list | tuple):
            given = [((*path, number), each) for number, each in enumerate(value)]
        else:
            given = [(path, value)] if value is not None else []
        for place, each in given:
            if each is None and (not declared.nillable or (tag in names.optional and tag not in names.repeated)):
                continue
            made = self.element(declared, each, place)
            if made is not None:
                yield made

    def _unknown(self, names: ElementNames, value: dict[str, Any], path: Path) -> None:
        known = {*names.attributes.values(), *names.children.values(), *([names.text] if names.text else [])}
        for name, each in value.items():
            if name in known or name in TYPE_NAMES or (_is_tag(name) and isinstance(each, list)):
                continue
            listed = ", ".join(sorted(known)[:10]) or "nothing"
            expected = f"one of its members ({listed}); content of xs:any is XML text, in a list under '<tag>'"
            self._refuse("payload-invalid", (*path, str(name)), expected, each)


# -- order ------------------------------------------------------------------------------------------------------------


def _in_order(group: Any, left: Made, *, again: bool = False) -> Iterator[Element]:
    """Children in an order that a content model allows, each taken out of `left`. `again`: what stands around the group
    is repeated, so that it need not take everything at once."""
    needed = max(1, _rounds(group, left))
    rounds = needed if group.max_occurs is None else min(needed, group.max_occurs)
    repeated = again or rounds > 1
    for number in range(rounds):
        before = sum(map(len, left.values()))
        share = (needed if repeated else rounds) - number
        yield from _choice(group, left, again=repeated) if group.model == "choice" else _each(group, left, share)
        if sum(map(len, left.values())) == before:
            return


def _rounds(group: Any, left: Made) -> int:
    """How often a group must stand there, for all that is left to have its place."""
    if group.model == "choice":
        return sum(len(left.get(tag, ())) for tag in _tags(group))
    counts = [
        ceil(sum(len(left.get(tag, ())) for tag in _tags(each)) / each.max_occurs)
        if hasattr(each, "abstract")
        else max((len(left.get(tag, ())) for tag in _tags(each)), default=0)
        for each in group
        if (each.max_occurs == 1 if hasattr(each, "model") else each.max_occurs)
    ]
    return max(counts, default=0)


def _each(group: Any, left: Made, rounds: int) -> Iterator[Element]:
    """A sequence, or all, once; `rounds` are still to come, this one included."""
    for each in group:
        if hasattr(each, "model"):
            yield from _in_order(each, left, again=rounds > 1)
        elif not hasattr(each, "abstract"):  # a wildcard takes what nothing else does
            known = {tag for other in group.iter_elements() if hasattr(other, "abstract") for tag in _tags(other)}
            for tag in [tag for tag in left if tag not in known]:
                yield from left.pop(tag)
        else:
            yield from _taken(each, left, rounds)


def _taken(element: XsdElement, left: Made, rounds: int) -> Iterator[Element]:
    room = element.max_occurs
    for tag in _tags(element):
        there = left.get(tag, [])
        share = len(there) if rounds == 1 else ceil(len(there) / rounds)
        count = share if room is None else min(share, room)
        yield from there[:count]
        del there[:count]
        room = None if room is None else room - count


def _choice(group: Any, left: Made, *, again: bool) -> Iterator[Element]:
    """The alternative that most of what is left may be in."""
    given = {tag for tag, there in left.items() if there}
    best = max(group, key=lambda each: len(given & set(_tags(each))), default=None)
    if best is None:
        return
    if hasattr(best, "model"):
        yield from _in_order(best, left, again=again)
    elif hasattr(best, "abstract") and given & set(_tags(best)):
        yield from _taken(best, left, 1)
    else:
        yield from _each([each for each in group if not hasattr(each, "abstract")], left, 1) if _wild(group) else ()


def _wild(group: Any) -> bool:
    return any(not hasattr(each, "abstract") and not hasattr(each, "model") for each in group)


def _tags(particle: Any) -> list[str]:
    """The tags of the elements that a particle may be."""
    if hasattr(particle, "model"):
        return list(dict.fromkeys(each.name for each, _, _ in particles(particle)))
    if not hasattr(particle, "abstract"):
        return []
    others = [other.name for other in substitutes(particle)]
    return list(dict.fromkeys([*([] if particle.abstract else [particle.name]), *others]))


def _is_tag(name: Any) -> bool:
    return isinstance(name, str) and name.startswith("<") and name.endswith(">")


def _members(names: ElementNames) -> bool:
    return bool(names.attributes or names.children)


def _name(type_: XsdType) -> str:
    base = type_.base_type
    return str(type_.local_name or (base is not None and base.local_name) or "of the schema")


def _said(value: Any) -> Any:
    return value if isinstance(value, str | bool | int | float | type(None)) else type(value).__name__
