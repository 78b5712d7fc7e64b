"""An XML Schema with all that it includes and imports, as documents that refer to one another and to nothing else.

Rule: a schemaLocation leads to a document of the catalogue (lookup.py), an import also by its namespace; an include
that leads nowhere is a fault, an import that does is left to what the schema takes from it. What would make compilers
run out of memory or time is refused: content models that grow by groups within groups, and too large texts.

Spec: XML Schema 1.0 and 1.1 part 1; docs/decisions/0051.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import xmlschema
from lxml import etree

from wirebook.schema.source import SchemaSource, SchemaText
from wirebook.schema.xsd.xml_text import Element, XmlError, is_deeper, parse_xml

XS = "{http://www.w3.org/2001/XMLSchema}"
VERSIONING = "{http://www.w3.org/2007/XMLSchema-versioning}"
XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"
MAX_CHARACTERS = 8 * 1024 * 1024
MAX_DOCUMENTS = 300
MAX_NODES = 60_000
MAX_PARTICLES = 800  # elements in one content model, groups and bases written out
MAX_LEVELS = 100
MAX_OCCURS = 100_000
REFERRING = ("include", "import", "redefine", "override")
NEW = frozenset(
    ["assert", "assertion", "alternative", "override", "openContent", "defaultOpenContent", "explicitTimezone"]
)
NEW_TYPES = re.compile(r"(?:\A|:)(?:dateTimeStamp|yearMonthDuration|dayTimeDuration|anyAtomicType|error)\Z")
NEW_ATTRIBUTES = frozenset(
    ["xpathDefaultNamespace", "defaultAttributes", "defaultAttributesApply", "inheritable", "notNamespace", "notQName"]
)
# In assertions: what may take very long over few bytes, or reads what is elsewhere.
COSTLY = re.compile(
    r"\b(?:for|some|every)\s+\$|[\w)\]'\"]\s+to\s+[\w@($./'\"]|\b(?:matches|replace|tokenize|analyze-string|doc|"
    r"doc-available|collection|uri-collection|unparsed-text\S*|environment-variable|available-environment-variables)\s*\("
)


class XsdError(ValueError):
    """Why a text cannot be used as a schema."""


Documents = dict[str, Element]


def documents_of(source: SchemaSource) -> Documents:
    """The schema, first, and what it refers to, by file name; every schemaLocation is one of these names.

    Raises: XsdError
    """
    documents: Documents = {}
    names: dict[str, str] = {}
    size = 0
    waiting = [SchemaText(source.document, source.base_uri)]
    names[source.base_uri] = "0.xsd"
    while waiting:
        text = waiting.pop(0)
        size += len(text.content)
        if size > MAX_CHARACTERS or len(names) > MAX_DOCUMENTS:
            raise XsdError(f"more than {MAX_CHARACTERS} characters or {MAX_DOCUMENTS} documents")
        root = documents[names[text.base_uri]] = _parsed(text.content)
        for element in root:
            if element.tag in [XS + name for name in REFERRING]:
                waiting += _settled(element, source, text.base_uri, names)
    _check(documents)
    return documents


def _parsed(text: str) -> Element:
    try:
        root = parse_xml(text)
    except XmlError as error:
        raise XsdError(f"the schema is not XML: {error.message} (line {error.line})") from None
    if root.tag != f"{XS}schema":
        raise XsdError(f"the root is '{root.tag}' and not xs:schema")
    if is_deeper(root, MAX_LEVELS):
        raise XsdError(f"the schema is nested deeper than {MAX_LEVELS}")
    for name in [each for each in root.attrib if each.startswith(VERSIONING)]:
        del root.attrib[name]  # a mark, after which XSD 1.0 would leave out everything
    return root


def _settled(element: Element, source: SchemaSource, base_uri: str, names: dict[str, str]) -> Iterator[SchemaText]:
    """Makes a reference lead to a document of ours, which is given if it is new."""
    location, namespace = element.get("schemaLocation"), element.get("namespace")
    found = next((text for each in (location, namespace) if each and (text := source.include(each, base_uri))), None)
    if found is None and namespace == XML_NAMESPACE:
        found = SchemaText(_xml_namespace(), XML_NAMESPACE)
    if found is None:
        if element.tag != f"{XS}import":
            raise XsdError(f"'{location}' is not in the catalogue; nothing is fetched")
        element.attrib.pop("schemaLocation", None)
        return
    if found.base_uri not in names:
        names[found.base_uri] = f"{len(names)}.xsd"
        yield found
    element.set("schemaLocation", names[found.base_uri])


def _xml_namespace() -> str:
    """The attributes of XML itself (xml:lang ...), as xmlschema brings them along."""
    return (Path(xmlschema.__file__).parent / "schemas" / "XML" / "xml.xsd").read_text(encoding="utf-8")


# -- what the documents ask for ---------------------------------------------------------------------------------------


def is_new(documents: Documents) -> bool:
    """Does a schema use what XSD 1.1 brought? Its mark on the root alone says nothing."""
    return any(_is_new(element, root) for root in documents.values() for element in root.iter(etree.Element))


def _is_new(element: Element, root: Element) -> bool:
    if element.tag.removeprefix(XS) in NEW or (element.tag == f"{XS}element" and "targetNamespace" in element.attrib):
        return True
    versioned = element is not root and any(name.startswith(VERSIONING) for name in element.attrib)
    return versioned or any(
        name in NEW_ATTRIBUTES or _is_new_type(name, value) for name, value in element.attrib.items()
    )


def _is_new_type(name: str, value: str) -> bool:
    return name in ("type", "base", "itemType") and NEW_TYPES.search(value) is not None


def has_patterns(documents: Documents) -> bool:
    return any(next(root.iter(f"{XS}pattern"), None) is not None for root in documents.values())


def without_patterns(documents: Documents) -> None:
    """Takes the patterns out: libxml2 tries them by backtracking."""
    for root in documents.values():
        for element in list(root.iter(f"{XS}pattern")):
            element.getparent().remove(element)


def has_wildcards(documents: Documents) -> bool:
    wild = (f"{XS}any", f"{XS}anyAttribute")
    return any(next(root.iter(*wild), None) is not None for root in documents.values())


# -- limits -----------------------------------------------------------------------------------------------------------


def _check(documents: Documents) -> None:
    nodes = [element for root in documents.values() for element in root.iter()]
    if len(nodes) > MAX_NODES:
        raise XsdError(f"{len(nodes)} elements; at most {MAX_NODES} are read")
    for element in nodes:
        test = element.get("test")
        if test is not None and (len(test) > 2000 or COSTLY.search(test)):
            raise XsdError(f"the test '{test[:100]}' may take too long: for, some, every, to, and regular expressions")
        for name in ("minOccurs", "maxOccurs"):
            number = element.get(name, "0").strip()
            if number != "unbounded" and (len(number) > 6 or (number.isdecimal() and int(number) > MAX_OCCURS)):
                raise XsdError(f"{name}='{number[:20]}'; at most {MAX_OCCURS}, or unbounded")
    _Sizes(nodes).check()


class _Sizes:
    """How many elements (or attributes) each group and type comes to, when what it refers to is written out."""

    def __init__(self, nodes: list[Element]) -> None:
        named = [node for node in nodes if node.get("name") and node.tag in KINDS]
        self.named: dict[tuple[str, str], list[Element]] = {}
        for each in named:
            self.named.setdefault((KINDS[each.tag], each.get("name")), []).append(each)
        self.types = [node for node in nodes if node.tag == f"{XS}complexType"]
        self.known: dict[tuple[str, str], int] = {}
        self.heads: Counter[str] = Counter(
            _local(each) for node in nodes for each in node.get("substitutionGroup", "").split()
        )

    def check(self) -> None:
        for type_ in self.types:
            if self.of(type_, 0) > MAX_PARTICLES:
                name = type_.get("name") or "a type without a name"
                raise XsdError(f"the content of '{name}' comes to more than {MAX_PARTICLES} elements")

    def of(self, element: Element, level: int) -> int:
        """The size of what stands in an element."""
        total = 0
        for each in _content(element):
            if each.tag in PARTICLES:
                total += 1 + self.heads[_local(each.get("ref", ""))]
            else:
                kind, attribute = REFERENCES[each.tag]
                total += self._named(kind, _local(each.get(attribute, "")), level)
            if total > MAX_PARTICLES:
                return total
        return total

    def _named(self, kind: str, name: str, level: int) -> int:
        if level > MAX_LEVELS:
            return MAX_PARTICLES + 1
        key = (kind, name)
        if key not in self.known:
            self.known[key] = 0  # within itself it is the compilers' to refuse
            self.known[key] = sum(self.of(each, level + 1) for each in self.named.get(key, ()))
        return self.known[key]


def _content(element: Element) -> Iterator[Element]:
    """The particles of a content model and what it refers to; not what stands in an element of it."""
    for each in element:
        if each.tag in COUNTED:
            yield each
        if each.tag not in PARTICLES:
            yield from _content(each)


def _local(name: str) -> str:
    return name.rpartition(":")[2]


KINDS = {f"{XS}group": "group", f"{XS}attributeGroup": "attributeGroup", f"{XS}complexType": "type"}
REFERENCES: dict[str, tuple[str, str]] = {
    f"{XS}group": ("group", "ref"),
    f"{XS}attributeGroup": ("attributeGroup", "ref"),
    f"{XS}extension": ("type", "base"),
    f"{XS}restriction": ("type", "base"),
}
PARTICLES = (f"{XS}element", f"{XS}attribute")
COUNTED = frozenset((*PARTICLES, *REFERENCES))
