"""Collects an XML Schema with everything that it includes and imports, as documents that refer only to one another.

Rule: a schemaLocation refers to a document of the catalogue (lookup.py); an import can also be found by its namespace.
An unknown include is an error; an unknown import is one only if the schema uses components of it. Schemas that would
exhaust the memory or time of a compiler are rejected: texts that are too large, and content models that grow through
nested groups.

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
XML_ATTRIBUTES = Path(xmlschema.__file__).parent / "schemas" / "XML" / "xml.xsd"
"""The schema of the attributes that XML defines (xml:lang ...), a file of the library xmlschema."""
MAX_CHARACTERS = 8 * 1024 * 1024
MAX_DOCUMENTS = 300
MAX_NODES = 60_000
MAX_PARTICLES = 800
"""The most elements, attributes and members of unions in one type, with groups, unions and base types expanded."""
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
# In assertions: expressions that may take very long even for small payloads, or that read other documents.
COSTLY = re.compile(
    r"\b(?:for|some|every)\s+\$|[\w)\]'\"]\s+to\s+[\w@($./'\"]|\b(?:matches|replace|tokenize|analyze-string|doc|"
    r"doc-available|collection|uri-collection|unparsed-text\S*|environment-variable|available-environment-variables)\s*\("
)


class XsdError(ValueError):
    """A text cannot be used as an XML Schema."""


Documents = dict[str, Element]


def documents_of(source: SchemaSource) -> Documents:
    """Return the schema (first) and the documents that it refers to, by file name.

    In the documents, every schemaLocation is replaced by such a name.

    Raises: XsdError
    """
    documents: Documents = {}
    names = {source.base_uri: "0.xsd"}
    size = 0
    waiting = [SchemaText(source.document, source.base_uri)]
    while waiting:
        text = waiting.pop(0)
        size += len(text.content)
        if size > MAX_CHARACTERS or len(names) > MAX_DOCUMENTS:
            raise XsdError(
                f"the schema and its imports have more than {MAX_CHARACTERS} characters or {MAX_DOCUMENTS} documents"
            )
        root = documents[names[text.base_uri]] = _parsed(text.content)
        for element in root:
            if element.tag in [XS + name for name in REFERRING]:
                waiting += _resolved(element, source, text.base_uri, names)
    _check(documents)
    return documents


def _parsed(text: str) -> Element:
    try:
        root = parse_xml(text)
    except XmlError as error:
        raise XsdError(f"the schema is not well-formed XML: {error.message} (line {error.line})") from None
    if root.tag != f"{XS}schema":
        raise XsdError(f"the root element must be xs:schema, not '{root.tag}'")
    if is_deeper(root, MAX_LEVELS):
        raise XsdError(f"the schema is nested more than {MAX_LEVELS} levels deep")
    for name in [attribute for attribute in root.attrib if attribute.startswith(VERSIONING)]:
        del root.attrib[name]  # XSD 1.0 ignores a schema with a minimum version
    return root


def _resolved(element: Element, source: SchemaSource, base_uri: str, names: dict[str, str]) -> Iterator[SchemaText]:
    """Set the schemaLocation of a reference to the file of its document; yield the document if it is new.

    Raises: XsdError
    """
    location, namespace = element.get("schemaLocation"), element.get("namespace")
    document = next((text for name in (location, namespace) if name and (text := source.include(name, base_uri))), None)
    if document is None and namespace == XML_NAMESPACE:
        document = SchemaText(XML_ATTRIBUTES.read_text(encoding="utf-8"), XML_NAMESPACE)
    if document is None:
        if element.tag != f"{XS}import":
            raise XsdError(f"'{location}' is not in the catalogue; schemas are not fetched from elsewhere")
        element.attrib.pop("schemaLocation", None)
        return
    if document.base_uri not in names:
        names[document.base_uri] = f"{len(names)}.xsd"
        yield document
    element.set("schemaLocation", names[document.base_uri])


# -- properties of the documents --------------------------------------------------------------------------------------


def is_new(documents: Documents) -> bool:
    """Whether a schema uses features of XSD 1.1. Version attributes on the root alone do not count."""
    return any(_is_new(element, root) for root in documents.values() for element in root.iter(etree.Element))


def _is_new(element: Element, root: Element) -> bool:
    if element.tag.removeprefix(XS) in NEW or (element.tag == f"{XS}element" and "targetNamespace" in element.attrib):
        return True
    if element is not root and any(name.startswith(VERSIONING) for name in element.attrib):
        return True
    types = (element.get(name) or "" for name in ("type", "base", "itemType"))
    return any(name in NEW_ATTRIBUTES for name in element.attrib) or any(map(NEW_TYPES.search, types))


def has_patterns(documents: Documents) -> bool:
    """Whether a schema has patterns."""
    return any(next(root.iter(f"{XS}pattern"), None) is not None for root in documents.values())


def without_patterns(documents: Documents) -> None:
    """Remove all patterns, because libxml2 would match them by backtracking."""
    for root in documents.values():
        for element in list(root.iter(f"{XS}pattern")):
            element.getparent().remove(element)


def has_derived_types(documents: Documents) -> bool:
    """Whether a schema has complex types that are derived from others, which a payload may select with xsi:type."""
    return any(next(root.iter(f"{XS}complexContent"), None) is not None for root in documents.values())


def has_wildcards(documents: Documents) -> bool:
    """Whether a schema has wildcards (xs:any, xs:anyAttribute)."""
    wild = (f"{XS}any", f"{XS}anyAttribute")
    return any(next(root.iter(*wild), None) is not None for root in documents.values())


# -- limits -----------------------------------------------------------------------------------------------------------


def _check(documents: Documents) -> None:
    nodes = [element for root in documents.values() for element in root.iter()]
    if len(nodes) > MAX_NODES:
        raise XsdError(f"the schema has {len(nodes)} elements; the limit is {MAX_NODES}")
    for element in nodes:
        test = element.get("test")
        if test is not None and (len(test) > 2000 or COSTLY.search(test)):
            raise XsdError(
                f"the test '{test[:100]}' must not use for, some, every, to or regular expressions (too slow)"
            )
        for name in ("minOccurs", "maxOccurs"):
            number = element.get(name, "0").strip()
            if number != "unbounded" and (len(number) > 6 or (number.isdecimal() and int(number) > MAX_OCCURS)):
                raise XsdError(f"{name}='{number[:20]}' must be at most {MAX_OCCURS}, or unbounded")
    _Sizes(nodes).check()


class _Sizes:
    """Counts the elements, attributes and members of unions in each group and type, with all references expanded."""

    def __init__(self, nodes: list[Element]) -> None:
        self.named: dict[tuple[str, str], list[Element]] = {}
        for node in nodes:
            if node.get("name") and node.tag in KINDS:
                self.named.setdefault((KINDS[node.tag], node.get("name")), []).append(node)
        self.types = [node for node in nodes if node.tag in (f"{XS}complexType", f"{XS}simpleType")]
        self.known: dict[tuple[str, str], int] = {}
        self.heads: Counter[str] = Counter(
            _local(component) for node in nodes for component in node.get("substitutionGroup", "").split()
        )

    def check(self) -> None:
        for type_ in self.types:
            if self.of(type_, 0) > MAX_PARTICLES:
                name = type_.get("name") or "a type without a name"
                parts = "elements" if type_.tag == f"{XS}complexType" else "member types"
                raise XsdError(f"the content of '{name}' has more than {MAX_PARTICLES} {parts} when it is expanded")

    def of(self, element: Element, level: int) -> int:
        """Return the number of elements, attributes and members of unions in a component.

        Above `MAX_PARTICLES`, counting stops.
        """
        total = 0
        for part in _content(element):
            if part.tag in PARTICLES:
                total += 1 + self.heads[_local(part.get("ref", ""))]
            else:
                kind, attribute = REFERENCES[part.tag]
                names = part.get(attribute, "").split()
                total += sum(self._named(kind, _local(name), level) for name in names)
                total += len(names) + len(part.findall(f"{XS}simpleType")) if part.tag == f"{XS}union" else 0
            if total > MAX_PARTICLES:
                return total
        return total

    def _named(self, kind: str, name: str, level: int) -> int:
        if level > MAX_LEVELS:
            return MAX_PARTICLES + 1
        key = (kind, name)
        if key not in self.known:
            self.known[key] = 0  # compilers reject recursive groups
            self.known[key] = sum(self.of(component, level + 1) for component in self.named.get(key, ()))
        return self.known[key]


def _content(element: Element) -> Iterator[Element]:
    """Yield the elements, attributes and references in a component, but not those inside its elements."""
    for part in element:
        if part.tag in COUNTED:
            yield part
        if part.tag not in PARTICLES:
            yield from _content(part)


def _local(name: str) -> str:
    return name.rpartition(":")[2]


KINDS = {f"{XS}group": "group", f"{XS}attributeGroup": "attributeGroup", f"{XS}complexType": "type",
         f"{XS}simpleType": "type"}  # fmt: skip
REFERENCES: dict[str, tuple[str, str]] = {
    f"{XS}group": ("group", "ref"),
    f"{XS}attributeGroup": ("attributeGroup", "ref"),
    f"{XS}extension": ("type", "base"),
    f"{XS}restriction": ("type", "base"),
    f"{XS}union": ("type", "memberTypes"),
    f"{XS}list": ("type", "itemType"),
}
PARTICLES = (f"{XS}element", f"{XS}attribute")
COUNTED = frozenset((*PARTICLES, *REFERENCES))
