"""Compiles an XML Schema into a reader and writer of XML payloads.

Rule: a payload is one element. The fragment names a global element, or a global type, for which an element of the same
name is added. Without a fragment, the element is the only one that the schema defines, or the only one to which no
other refers.

Spec: schema/spec.md#432-xml-schema; XML Schema 1.0 and 1.1; docs/decisions/0051.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from wirebook.core.collector import without_collector
from wirebook.problems import Problem
from wirebook.schema.payload import Payload
from wirebook.schema.payload_problems import (
    MAX_PROBLEMS,
    failed,
    listed,
    not_compilable,
    preview,
    too_large,
    undecodable,
)
from wirebook.schema.reader import (
    ColumnReading,
    CompiledSchema,
    DecodedPayload,
    Encoded,
    SchemaReader,
    Unsupported,
    read_each,
)
from wirebook.schema.source import SchemaSource, UnnamedTypeError
from wirebook.schema.xsd.columns import ElementLayouts
from wirebook.schema.xsd.patterns import components
from wirebook.schema.xsd.read import PatternViolation, ReadElement
from wirebook.schema.xsd.source import (
    XS,
    Documents,
    XsdError,
    documents_of,
    has_derived_types,
    has_patterns,
    has_wildcards,
    without_patterns,
)
from wirebook.schema.xsd.validate import (
    CompiledSchemas,
    ElementValidator,
    XmlFault,
    fast_schema,
    pointer_of,
)
from wirebook.schema.xsd.write import XmlWriter
from wirebook.schema.xsd.xml_text import Element, XmlError, is_deeper, parse_xml, to_bytes
from wirebook.text.json import JsonError

MEDIA_TYPE = "application/xml"
_NAME = re.compile(r"""(?:@name\s*=\s*['"]|element\(|type\()?([^'"()\[\]@=/:\s]+)['")\]]*\Z""")
"""Matches the name in ``Order``, ``//xs:element[@name='Order']``, ``element(/Order)`` or ``xpointer(...)``."""


def compile_xsd(source: SchemaSource) -> CompiledSchema | Unsupported:
    """Return a reader for the element that the fragment names, or else for the only possible element.

    Problems: unnamed-type, schema-not-compilable
    """
    label = str(source.format)
    try:
        return _reader(label, source)
    except (XsdError, UnnamedTypeError, RecursionError) as error:
        return not_compilable(label, error)


def _reader(label: str, source: SchemaSource) -> XsdReader:
    documents = documents_of(source)
    name = _element_name(documents, source.fragment)
    compiled = CompiledSchemas(documents, source.format.version)
    element = compiled.model.maps.elements[name]
    patterns = has_patterns(documents)
    layouts = ElementLayouts(patterns=patterns)
    layout, convert = layouts.element(element)
    # the value of a union may have one of several types: a pattern may decide which
    has_unions = patterns and any(hasattr(component, "member_types") for component in components(compiled.model))
    visible = not patterns or not (layouts.opaque or has_wildcards(documents) or has_unions)
    is_nested = layouts.opaque or has_wildcards(documents) or has_derived_types(documents)
    without_patterns(documents)
    fast = fast_schema(documents) if visible and not compiled.new else None
    validator = ElementValidator(compiled.model, fast, patterns)
    return XsdReader(label, layout, source.options.limits, element, convert, validator, is_nested)


# -- the element ------------------------------------------------------------------------------------------------------


def _element_name(documents: Documents, fragment: str | None) -> str:
    """Return the full name of the element that a fragment names. For a type, an element of the type is added."""
    root = next(iter(documents.values()))
    namespace = root.get("targetNamespace")
    included = {part.get("schemaLocation") for part in root.iterchildren(f"{XS}include", f"{XS}redefine")}
    own = [document for name, document in documents.items() if document is root or name in included]
    elements = _names(own, "element")
    if fragment:
        match = _NAME.search(fragment.strip().rstrip("/)"))
        name = match[1] if match else fragment
        if name not in elements:
            types = _names(own, "complexType", "simpleType")
            if name not in types:
                raise XsdError(
                    f"the schema does not define '{name}'; it defines {listed([*elements, *types]) or 'nothing'}"
                )
            _add_element(documents, name, namespace)
    else:
        name = _only(elements, documents)
    return f"{{{namespace}}}{name}" if namespace else name


def _names(roots: list[Element], *kinds: str) -> list[str]:
    tags = [XS + kind for kind in kinds]
    return [name for root in roots for component in root.iterchildren(*tags) if (name := component.get("name"))]


def _add_element(documents: Documents, name: str, namespace: str | None) -> None:
    """Add an element of the type `name` to the first document. The element has the same name."""
    file, root = next(iter(documents.items()))
    prefixes = {uri: prefix for prefix, uri in root.nsmap.items()}
    if namespace and namespace not in prefixes:
        copy = root.makeelement(root.tag, dict(root.attrib), nsmap={**root.nsmap, "named": namespace})
        copy.extend(list(root))
        documents[file], root, prefixes[namespace] = copy, copy, "named"
    prefix = prefixes.get(namespace) if namespace else None
    type_ = f"{prefix}:{name}" if prefix else name
    root.append(root.makeelement(f"{XS}element", {"name": name, "type": type_}))


def _only(names: list[str], documents: Documents) -> str:
    if not names:
        raise XsdError("the schema defines no element")
    referred = {
        element.get("ref", "").rpartition(":")[2]
        for root in documents.values()
        for element in root.iter(f"{XS}element")
    }
    for candidates in (names, [name for name in names if name not in referred]):
        if len(candidates) == 1:
            return candidates[0]
    raise UnnamedTypeError(f"the schema defines {len(names)} elements and the reference names none: {listed(names)}")


# -- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class XsdReader(SchemaReader):
    """A compiled element. Shape: `is_nested` is set if elements may be nested to any depth."""

    declaration: Any
    read_element: ReadElement
    validator: ElementValidator
    is_nested: bool

    @property
    def element(self) -> str:
        """The full name of the root element of payloads."""
        return str(self.declaration.name)

    def read(self, payload: Payload) -> DecodedPayload:
        """Decode and validate one payload: bytes, or the string that is the data of a structured event."""
        try:
            root = self._root(payload)
        except XmlError as error:
            return _undecodable(error)
        except JsonError as error:
            return undecodable(error)
        if root.tag != self.element:
            return _invalid([XmlFault("", root.tag, f"expected the element '{self.element}'")])
        if faults := self.validator.faults(root):
            return _invalid(faults)
        violations: list[PatternViolation] = []
        value = self.read_element(root, violations)
        if violations and self.validator.is_fast(root):
            return _invalid(
                XmlFault(pointer_of(one.element, one.attribute), one.text, f"expected the pattern {one.pattern}")
                for one in violations[:MAX_PROBLEMS]
            )
        return self.decoded(value)

    def encode(self, value: Any, content_type: str | None = None) -> Encoded:
        """Write a value as an element and validate the result. Bytes are used as they are.

        So is a string that begins with ``<``, and any string if the type of the element is complex.
        """
        written = self._written(value)
        if not isinstance(written, bytes):
            return Encoded(None, written)
        payload = Payload(written, content_type=content_type or MEDIA_TYPE)
        problems = self.read(payload).problems
        return Encoded(None, problems) if problems else Encoded(payload)

    def _written(self, value: Any) -> bytes | tuple[Problem, ...]:
        if isinstance(value, bytes):
            return value
        simple = self.declaration.type.is_simple()
        if isinstance(value, str) and (value.lstrip("\ufeff \t\r\n").startswith("<") or not simple):
            return value.encode("utf-8", "surrogatepass")
        writer = XmlWriter(self.validator.model.maps.types)
        root = writer.element(self.declaration, value)
        return tuple(writer.problems) if writer.problems or root is None else to_bytes(root)

    def _root(self, payload: Payload) -> Element:
        raw = payload.value if payload.raw is None else payload.raw
        if not isinstance(raw, bytes | str):
            raise XmlError("the payload is a JSON value; XML in a structured event must be a string")
        if len(raw) > self.limits.size:
            raise too_large(raw if isinstance(raw, bytes) else raw.encode("utf-8", "replace"), self.limits)
        root = parse_xml(raw)
        if (self.is_nested or self.limits.depth < 32) and is_deeper(root, self.limits.depth):
            raise XmlError(f"elements are nested more than {self.limits.depth} levels deep", "payload-too-deep")
        return root

    def read_column(self, payloads: pa.BinaryArray, content_type: str | None = None) -> ColumnReading:
        """Decode and validate a column row by row. Most of the time is spent in C, in parsing and validation."""
        with without_collector():
            return read_each(self, payloads, content_type)


def _invalid(faults: Iterable[XmlFault]) -> DecodedPayload:
    problems = []
    for fault in faults:
        rule, value = preview(fault.rule), preview(fault.value)
        problems.append(Problem("payload-invalid", rule, slot=f"payload#{fault.pointer}", expected=rule, actual=value))
    return DecodedPayload(None, None, tuple(problems), "invalid-payload")


def _undecodable(error: XmlError) -> DecodedPayload:
    place = f" (line {error.line}, column {error.column})" if error.line else ""
    return failed(Problem(error.code, f"{error.message}{place}", slot="payload", actual=error.message))
