"""The column layout of an XML element, with the readers of the values.

Rule: an element with children or attributes becomes a struct of both, by local name. If a child and an attribute have
the same name, the attribute is ``@name``; the text of an element with attributes is ``value``. A child that may occur
more than once becomes a list. Mixed content, ``xs:anyType``, and elements inside themselves become XML text. Children
without a column are kept under ``<tag>``, as XML text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

from wirebook.schema.layout import VALUE, ColumnLayout, List, Struct
from wirebook.schema.scalar_columns import TEXT
from wirebook.schema.xsd.patterns import patterns_of
from wirebook.schema.xsd.read import (
    ComplexReader,
    ElementMember,
    ReadElement,
    ReadText,
    XsdType,
    read_xml,
    simple_reader,
    text_reader,
)
from wirebook.schema.xsd.source import XS
from wirebook.schema.xsd.types import scalar_column

MAX_LEVELS: Final = 32
"""The deepest nesting of elements that get columns; deeper elements become XML text."""
MAX_COLUMNS: Final = 4000

XsdElement = Any  # of xmlschema


@dataclass
class ElementLayouts:
    """Builds the column layout of an element.

    Shape: `patterns` makes the readers check patterns. `opaque` is set afterwards if content is kept as XML text or a
    list type has patterns, which the readers do not check.
    """

    patterns: bool
    remaining: int = MAX_COLUMNS
    opaque: bool = False

    def element(self, element: XsdElement, ancestors: tuple[int, ...] = ()) -> tuple[ColumnLayout, ReadElement]:
        """Return the layout of the values of an element, and the reader of the values."""
        type_ = element.type
        if type_.is_simple():
            return scalar_column(type_), simple_reader(self._text(type_), _default(element))
        is_closed = id(type_) in ancestors or len(ancestors) >= MAX_LEVELS or self.remaining <= 0
        if is_closed or type_.has_mixed_content() or type_.name == f"{XS}anyType":
            self.opaque = True
            return TEXT, read_xml
        return self._complex(type_, element, (*ancestors, id(type_)))

    def _text(self, type_: XsdType) -> ReadText:
        if type_.is_list() and self.patterns and next(patterns_of(type_), None) is not None:
            self.opaque = True
        return text_reader(type_, check_patterns=self.patterns)

    def _complex(
        self, type_: XsdType, element: XsdElement, ancestors: tuple[int, ...]
    ) -> tuple[ColumnLayout, ReadElement]:
        names = names_of(type_)
        children = {tag: (column, self._child(names, tag, ancestors)) for tag, column in names.children.items()}
        attributes = {
            name: (column, self._attribute(type_.attributes[name])) for name, column in names.attributes.items()
        }
        text = None
        if names.text is not None:
            text = names.text, ElementMember(scalar_column(type_.content), self._text(type_.content), required=True)
        members = dict([*attributes.values(), *([text] if text else []), *children.values()])
        self.remaining -= len(members)
        if not members:
            return TEXT, read_xml
        layout = Struct(
            {column: List(member.layout) if member.repeated else member.layout for column, member in members.items()},
            frozenset(column for column, member in members.items() if member.required),
            {column: member.doc for column, member in members.items() if member.doc},
        )
        defaults = {
            name: _default(attribute)
            for name, attribute in type_.attributes.items()
            if name in names.attributes and not (attribute.default is None and attribute.fixed is None)
        }
        return layout, ComplexReader(attributes, text, children, defaults, _default(element))

    def _attribute(self, attribute: Any) -> ElementMember:
        required = attribute.use == "required" or _default(attribute) != ""
        layout, read = scalar_column(attribute.type), self._text(attribute.type)
        return ElementMember(layout, read, required=required, doc=_documentation(attribute))

    def _child(self, names: ElementNames, tag: str, ancestors: tuple[int, ...]) -> ElementMember:
        element = names.elements[tag]
        layout, read = self.element(element, ancestors)
        required = tag not in names.optional and tag not in names.repeated and not element.nillable
        return ElementMember(layout, read, tag in names.repeated, required, _documentation(element))


def _default(component: Any) -> str:
    """Return the value of an empty element or an absent attribute: its default or fixed value."""
    return str(component.default if component.default is not None else component.fixed or "")


def _documentation(component: Any) -> str | None:
    annotation = component.annotation
    texts = ["".join(text.itertext()) for text in annotation.documentation] if annotation is not None else []
    return " ".join(" ".join(texts).split()) or None


# -- names of columns -------------------------------------------------------------------------------------------------


@dataclass
class ElementNames:
    """The column names of a complex type.

    Shape: `attributes` are columns by full name, `children` are columns by tag, `text` is the column of the text;
    `elements` are the declarations of the children by tag; `repeated` and `optional` are the tags of children that may
    occur more than once, and of those that may be absent.
    """

    attributes: dict[str, str] = field(default_factory=dict)
    text: str | None = None
    children: dict[str, str] = field(default_factory=dict)
    elements: dict[str, XsdElement] = field(default_factory=dict)
    repeated: set[str] = field(default_factory=set)
    optional: set[str] = field(default_factory=set)


def names_of(type_: XsdType) -> ElementNames:
    """Return the column names of a complex type. Children have the first choice, then attributes, then the text."""
    names = ElementNames()
    if not (type_.has_simple_content() or type_.is_empty()):
        _name_children(names, type_)
    taken = set(names.children.values())
    for name, attribute in type_.attributes.items():
        if name is not None and attribute.use != "prohibited":
            names.attributes[name] = _unused(name.rpartition("}")[2], taken)
            taken.add(names.attributes[name])
    names.text = _unused(VALUE, taken) if type_.has_simple_content() else None
    return names


def _name_children(names: ElementNames, type_: XsdType) -> None:
    content = type_.content
    is_repeated, is_optional = content.max_occurs is None or content.max_occurs > 1, content.min_occurs == 0
    for particle, repeated, optional in particles(content, is_repeated, is_optional):
        if particle.name in names.elements:
            names.repeated.add(particle.name)
            continue
        taken = names.children.values()
        names.children[particle.name] = particle.local_name if particle.local_name not in taken else particle.name
        names.elements[particle.name] = particle
        names.repeated |= {particle.name} if repeated else set()
        names.optional |= {particle.name} if optional else set()


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name = f"@{name}"
    return name


def particles(group: Any, repeated: bool = False, optional: bool = False) -> Iterator[tuple[XsdElement, bool, bool]]:
    """Yield each element of a content model and its substitutes, and whether it may be repeated and may be absent."""
    for particle in group:
        is_repeated = repeated or particle.max_occurs is None or particle.max_occurs > 1
        is_optional = optional or particle.min_occurs == 0 or (group.model == "choice" and len(group) > 1)
        if hasattr(particle, "model"):
            yield from particles(particle, is_repeated, is_optional)
        elif hasattr(particle, "abstract") and particle.max_occurs != 0:  # an element, not a wildcard
            others = substitutes(particle)
            if not particle.abstract:
                yield particle, is_repeated, is_optional or bool(others)
            yield from ((other, is_repeated, True) for other in others)


def substitutes(element: XsdElement) -> list[XsdElement]:
    """Return the elements that may replace an element, sorted by name: the library's order varies between processes."""
    others = (other for other in element.iter_substitutes() if not other.abstract)
    return sorted(others, key=attrgetter("name"))
