"""Reads the values of XML elements. The readers are created once per schema, one for each type.

A reader returns the value of an element: text for a simple type (the column layout converts it), a dict for an element
with attributes or children, XML text for content without columns. Values that violate a pattern are collected in a
list, because libxml2 validates without patterns (validate.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from wirebook.schema.layout import ColumnLayout
from wirebook.schema.xsd.patterns import XsdPattern, patterns_of
from wirebook.schema.xsd.types import item_of, whitespace_normalizer
from wirebook.schema.xsd.xml_text import XSI, Element, xml_of

NIL, TYPE = f"{{{XSI}}}nil", f"{{{XSI}}}type"
NOT_DATA: Final = frozenset((NIL, f"{{{XSI}}}schemaLocation", f"{{{XSI}}}noNamespaceSchemaLocation"))
"""Attributes defined by XML Schema that are not part of a value."""

XsdType = Any  # of xmlschema


@dataclass(slots=True)
class PatternViolation:
    """A value that does not match a pattern of its type.

    Shape: `attribute` is None for the text of the element; `pattern` describes the patterns, one of which must match.
    """

    element: Element
    attribute: str | None
    text: str
    pattern: str


ReadElement = Callable[[Element, list[PatternViolation]], Any]
"""Return the value of an element, and append the patterns that it violates to the list."""
ReadText = Callable[[str, Element, str | None, list[PatternViolation]], Any]
"""Return the value of a text. The element and the name of the attribute (None: its text) are for the violations."""


@dataclass
class ElementMember:
    """One column of an element: an attribute, the text, or the children with one tag.

    Shape: `read` is a `ReadElement` for children, else a `ReadText`; `repeated` children form a list.
    """

    layout: ColumnLayout
    read: Any
    repeated: bool = False
    required: bool = False
    doc: str | None = None


@dataclass
class ComplexReader:
    """Reads elements with attributes or children; a `ReadElement`.

    Shape: `attributes` (by full name) and `children` (by tag) are columns with their readers; `text` is the column of
    the text, `default_text` its default; `defaults` are the default values of attributes.
    """

    attributes: dict[str, tuple[str, ElementMember]]
    text: tuple[str, ElementMember] | None
    children: dict[str, tuple[str, ElementMember]]
    defaults: dict[str, str]
    default_text: str

    def __call__(self, element: Element, violations: list[PatternViolation]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for name, text in element.attrib.items():
            if name in self.attributes:
                column, member = self.attributes[name]
                value[column] = member.read(text, element, name, violations)
            elif name not in NOT_DATA:  # an attribute without a column, from xs:anyAttribute
                value[f"@{name}" if f"@{name}" not in self.attributes else f"@@{name}"] = text
        for name, text in self.defaults.items():
            column, member = self.attributes[name]
            if column not in value:
                value[column] = member.read(text, element, name, violations)
        if self.text is not None and element.get(NIL, "").strip() not in ("true", "1"):
            column, member = self.text
            value[column] = member.read(element.text or self.default_text, element, None, violations)
        for child in element:
            known = self.children.get(child.tag)
            if known is None or (known[0] in value and not known[1].repeated):  # no column, or its column has a value
                value.setdefault(f"<{child.tag}>", []).append(xml_of(child))
                continue
            column, member = known
            if member.repeated:
                value.setdefault(column, []).append(member.read(child, violations))
            else:
                value[column] = member.read(child, violations)
        return value


def simple_reader(read_text: ReadText, default: str) -> ReadElement:
    """Return the reader of an element with a simple type. An empty element has the value `default`."""

    def read(element: Element, violations: list[PatternViolation]) -> Any:
        if is_nil(element):
            return None
        return read_text(element.text or default, element, None, violations)

    return read


def read_xml(element: Element, violations: list[PatternViolation]) -> str | None:  # noqa: ARG001
    """Return an element as XML text; a `ReadElement` for content without columns."""
    return None if is_nil(element) else xml_of(element)


def is_nil(element: Element) -> bool:
    """Whether an element is null: it has `xsi:nil`."""
    return element.get(NIL) in ("true", "1")


def text_reader(type_: XsdType, *, check_patterns: bool) -> ReadText:
    """Return the reader of the texts of a simple type. It normalises white space and optionally checks patterns."""
    normalise = whitespace_normalizer(type_)
    if type_.is_list():
        read_item = text_reader(item_of(type_), check_patterns=check_patterns)
        return lambda text, *place: [read_item(item, *place) for item in text.split()]
    checks: list[tuple[str, list[XsdPattern]]] = list(patterns_of(type_)) if check_patterns else []
    if not checks:
        return lambda text, *_: normalise(text)

    def read(text: str, element: Element, attribute: str | None, violations: list[PatternViolation]) -> str:
        value = normalise(text)
        for name, patterns in checks:
            if not any(pattern.is_match(value) for pattern in patterns):
                violations.append(PatternViolation(element, attribute, value, name))
        return value

    return read
