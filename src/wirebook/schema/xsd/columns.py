"""The columns of an XML element, and the functions that take its values out.

Rule: an element with children or attributes is a struct of both, by their local names; a name that both have is
``@name`` for the attribute; the text beside attributes is ``value``. What may occur more than once is a list. Mixed
content, any type, and an element inside itself are XML text. What has no column goes under its tag, as XML text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from wirebook.schema.layout import VALUE, Layout, List, Struct
from wirebook.schema.scalar_columns import TEXT
from wirebook.schema.xsd.patterns import XsdPattern, patterns_of
from wirebook.schema.xsd.types import item_of, leaf_of, settler
from wirebook.schema.xsd.xml_text import Element, xml_of

MAX_LEVELS = 32
MAX_COLUMNS = 4000
XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
NIL, TYPE = f"{XSI}nil", f"{XSI}type"
NO_DATA = frozenset((NIL, f"{XSI}schemaLocation", f"{XSI}noNamespaceSchemaLocation"))  # hints, and what is read already

XsdElement = Any  # of xmlschema
XsdType = Any


@dataclass(slots=True)
class PatternViolation:
    """A value that no pattern matches: where it is, and what is asked for."""

    element: Element
    attribute: str | None
    text: str
    pattern: str


Convert = Callable[[Element, list[PatternViolation]], Any]
FromText = Callable[[str, Element, str | None, list[PatternViolation]], Any]


@dataclass
class ElementMember:
    """One column of an element: an attribute, the text, or children of one tag."""

    shape: Layout
    convert: Any
    repeated: bool = False
    required: bool = False
    doc: str | None = None


@dataclass
class ElementLayouts:
    """Shapes of elements. `patterns`: our own check of them is asked for. `opaque`: something is kept as XML text, and
    patterns in it are not looked at."""

    patterns: bool
    left: int = MAX_COLUMNS
    opaque: bool = False
    open: list[int] = field(default_factory=list)

    def element(self, element: XsdElement) -> tuple[Layout, Convert]:
        """The shape of an element's values, and what takes one from it."""
        type_ = element.type
        if type_.is_simple():
            return self._simple(type_, element)
        closed = id(type_) in self.open or len(self.open) >= MAX_LEVELS or self.left <= 0
        if closed or type_.has_mixed_content() or _is_any(type_):
            self.opaque = True
            return TEXT, _whole
        self.open.append(id(type_))
        try:
            return self._complex(type_, element)
        finally:
            self.open.pop()

    def _simple(self, type_: XsdType, element: XsdElement) -> tuple[Layout, Convert]:
        from_text, default = self.text(type_), _default(element)

        def convert(each: Element, broken: list[PatternViolation]) -> Any:
            if each.get(NIL) in ("true", "1"):
                return None
            return from_text(each.text or default, each, None, broken)

        return leaf_of(type_), convert

    def text(self, type_: XsdType) -> FromText:
        """What takes a value of a simple type from its text."""
        settle, checks = settler(type_), list(patterns_of(type_)) if self.patterns else []
        if type_.is_list():
            return self._list(type_, checks)
        if not checks:
            return lambda text, element, attribute, broken: settle(text)  # noqa: ARG005

        def checked(text: str, element: Element, attribute: str | None, broken: list[PatternViolation]) -> str:
            settled = settle(text)
            for name, patterns in checks:
                if not any(pattern.is_match(settled) for pattern in patterns):
                    broken.append(PatternViolation(element, attribute, settled, name))
            return settled

        return checked

    def _list(self, type_: XsdType, checks: list[tuple[str, list[XsdPattern]]]) -> FromText:
        item = self.text(item_of(type_))
        self.opaque |= bool(checks)

        def convert(text: str, element: Element, attribute: str | None, broken: list[PatternViolation]) -> list[Any]:
            return [item(each, element, attribute, broken) for each in text.split()]

        return convert

    # -- elements with members ----------------------------------------------------------------------------------------

    def _complex(self, type_: XsdType, element: XsdElement) -> tuple[Layout, Convert]:
        names = names_of(type_)
        children = {tag: (name, self._child(names, tag)) for tag, name in names.children.items()}
        attributes = {
            name: (column, self._attribute(names.components[name])) for name, column in names.attributes.items()
        }
        text = (names.text, self._text_member(type_)) if names.text is not None else None
        members = dict([*attributes.values(), *([text] if text else []), *children.values()])
        self.left -= len(members)
        if not members:
            return TEXT, _whole
        shape = Struct(
            {name: List(member.shape) if member.repeated else member.shape for name, member in members.items()},
            frozenset(name for name, member in members.items() if member.required),
            {name: member.doc for name, member in members.items() if member.doc},
        )
        return shape, _ElementReader(attributes, text, children, dict(_defaults(type_)), _default(element))

    def _text_member(self, type_: XsdType) -> ElementMember:
        return ElementMember(leaf_of(type_.content), self.text(type_.content), required=True)

    def _attribute(self, attribute: Any) -> ElementMember:
        required = attribute.use == "required" or _default(attribute) != ""
        return ElementMember(leaf_of(attribute.type), self.text(attribute.type), required=required, doc=_doc(attribute))

    def _child(self, names: ElementNames, tag: str) -> ElementMember:
        element = names.elements[tag]
        shape, convert = self.element(element)
        required = tag not in names.optional and tag not in names.repeated and not element.nillable
        return ElementMember(shape, convert, tag in names.repeated, required, _doc(element))


@dataclass
class ElementNames:
    """What the columns of a type are called: of attributes by their full names, of children by tag, of the text.

    Shape: `elements` and `components` have the declarations of children and attributes; `repeated` and `optional` are
    the tags of children that may occur again, or be absent.
    """

    attributes: dict[str, str] = field(default_factory=dict)
    text: str | None = None
    children: dict[str, str] = field(default_factory=dict)
    components: dict[str, Any] = field(default_factory=dict)
    elements: dict[str, XsdElement] = field(default_factory=dict)
    repeated: set[str] = field(default_factory=set)
    optional: set[str] = field(default_factory=set)


def names_of(type_: XsdType) -> ElementNames:
    """The columns of a complex type: children by their local names, then attributes, then the text."""
    names = ElementNames()
    if not (type_.has_simple_content() or type_.is_empty()):
        _name_children(names, type_)
    taken = set(names.children.values())
    for name, attribute in type_.attributes.items():
        if name is not None and attribute.use != "prohibited":
            names.attributes[name], names.components[name] = _free(_local(name), taken), attribute
            taken.add(names.attributes[name])
    names.text = _free(VALUE, taken) if type_.has_simple_content() else None
    return names


def _name_children(names: ElementNames, type_: XsdType) -> None:
    content = type_.content
    again, absent = content.max_occurs is None or content.max_occurs > 1, content.min_occurs == 0
    for particle, repeated, optional in particles(content, again, absent):
        if particle.name in names.elements:
            names.repeated.add(particle.name)
            continue
        taken = names.children.values()
        names.children[particle.name] = particle.local_name if particle.local_name not in taken else particle.name
        names.elements[particle.name] = particle
        names.repeated |= {particle.name} if repeated else set()
        names.optional |= {particle.name} if optional else set()


@dataclass
class _ElementReader:
    """Takes an element apart; see `Convert`."""

    attributes: dict[str, tuple[str, ElementMember]]
    text: tuple[str, ElementMember] | None
    children: dict[str, tuple[str, ElementMember]]
    defaults: dict[str, str]
    default: str

    def __call__(self, element: Element, broken: list[PatternViolation]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        nil = False
        for name, text in element.attrib.items():
            if name in self.attributes:
                column, member = self.attributes[name]
                value[column] = member.convert(text, element, name, broken)
            elif name not in NO_DATA:
                value[f"@{name}" if f"@{name}" not in self.attributes else f"@@{name}"] = text
            elif name == NIL:
                nil = text.strip() in ("true", "1")
        for name, text in self.defaults.items():
            column, member = self.attributes[name]
            if column not in value:
                value[column] = member.convert(text, element, name, broken)
        if self.text is not None and not nil:
            value[self.text[0]] = self.text[1].convert(element.text or self.default, element, None, broken)
        for child in element:
            self._add(child, value, broken)
        return value

    def _add(self, child: Element, value: dict[str, Any], broken: list[PatternViolation]) -> None:
        known = self.children.get(child.tag)
        if known is None or (known[0] in value and not known[1].repeated):
            value.setdefault(f"<{child.tag}>", []).append(xml_of(child))
            return
        name, member = known
        if member.repeated:
            value.setdefault(name, []).append(member.convert(child, broken))
        else:
            value[name] = member.convert(child, broken)


def particles(group: Any, repeated: bool = False, optional: bool = False) -> Iterator[tuple[XsdElement, bool, bool]]:
    """Each element of a content model, with those that may stand for it: may it occur again, may it be absent?"""
    for each in group:
        again = repeated or each.max_occurs is None or each.max_occurs > 1
        absent = optional or each.min_occurs == 0 or (group.model == "choice" and len(group) > 1)
        if hasattr(each, "model"):
            yield from particles(each, again, absent)
        elif hasattr(each, "abstract") and each.max_occurs != 0:  # no wildcard
            others = substitutes(each)
            if not each.abstract:
                yield each, again, absent or bool(others)
            yield from ((other, again, True) for other in others)


def substitutes(element: XsdElement) -> list[XsdElement]:
    """The elements that may stand for one, by name: the library has them in a set, in another order in each process."""
    found = (other for other in element.iter_substitutes() if not other.abstract)
    return sorted(found, key=attrgetter("name"))


def _whole(element: Element, broken: list[PatternViolation]) -> str | None:  # noqa: ARG001
    return None if element.get(NIL) in ("true", "1") else xml_of(element)


def _is_any(type_: XsdType) -> bool:
    return bool(type_.name == "{http://www.w3.org/2001/XMLSchema}anyType")


def _default(component: Any) -> str:
    """What is read where nothing stands."""
    return str(component.default if component.default is not None else component.fixed or "")


def _defaults(type_: XsdType) -> Iterator[tuple[str, str]]:
    named = (
        (name, attribute)
        for name, attribute in type_.attributes.items()
        if name is not None and attribute.use != "prohibited"
    )
    for name, each in named:
        if each.default is not None or each.fixed is not None:
            yield name, _default(each)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name = f"@{name}"
    return name


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _doc(component: Any) -> str | None:
    annotation = component.annotation
    texts = ["".join(each.itertext()) for each in annotation.documentation] if annotation is not None else []
    return " ".join(" ".join(texts).split()) or None
