"""Parses XML that may be hostile: no DTD, no entities, no network access.

The limits of libxml2 apply: 10 MB for one text, 256 levels, and the size of expanded entities. Callers set lower limits
(`is_deeper`).
"""

from __future__ import annotations

import re
import threading
from itertools import chain
from typing import Any

from lxml import etree

Element = Any
XSI = "http://www.w3.org/2001/XMLSchema-instance"
_DECLARATION = re.compile(r"\s*<\?xml[^>]{0,200}\?>")
_OPTIONS: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "dtd_validation": False,
    "attribute_defaults": False,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
}


class _ThreadParser(threading.local):
    """The parser of each thread."""

    def __init__(self) -> None:
        self.parser = etree.XMLParser(**_OPTIONS)


_OWN = _ThreadParser()


class XmlError(ValueError):
    """A text cannot be parsed.

    Shape: `code` and `message` of the problem; `line` (from 1) and `column`, 0 if unknown.
    """

    def __init__(self, message: str, code: str = "payload-syntax", line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.message, self.code, self.line, self.column = message, code, line, column


def parse_xml(text: bytes | str) -> Element:
    """Return the root element. Raises: XmlError (payload-syntax, payload-too-large, payload-too-deep)"""
    if isinstance(text, str):  # the declaration may name an encoding that a string no longer has
        text = _DECLARATION.sub("", text.removeprefix("\ufeff"), count=1).encode("utf-8", "surrogatepass")
    try:
        root = etree.fromstring(text, _OWN.parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise _refused(error) from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise XmlError("a document type declaration is not allowed")
    return root


def _refused(error: Exception) -> XmlError:
    message = re.sub(r"( line \d+)?, line \d+, column \d+( \(.*\))?\Z", "", str(error).partition("\n")[0])
    line, column = getattr(error, "position", (0, 0))
    code = "payload-syntax"
    if "depth" in message.lower():
        code = "payload-too-deep"
    elif any(word in message.lower() for word in ("huge", "too long", "too large", "resource limit", "amplification")):
        code = "payload-too-large"
    return XmlError(message[:200] or "not well-formed XML", code, line, column)


def is_deeper(root: Element, levels: int) -> bool:
    """Whether elements are nested more than `levels` levels deep."""
    level = [root]
    for _ in range(levels):
        level = list(chain.from_iterable(level))
        if not level:
            return False
    return True


def xml_of(element: Element) -> str:
    """Return an element as XML text."""
    return str(etree.tostring(element, encoding="unicode", with_tail=False))


def to_bytes(root: Element) -> bytes:
    """Return a document in UTF-8. Namespaces are declared at the root; a single one becomes the default namespace."""
    namespaces = {etree.QName(element).namespace for element in root.iter()}
    default_namespace = next(iter(namespaces)) if len(namespaces) == 1 else None
    has_xsi = any(name.startswith(f"{{{XSI}}}") for element in root.iter() for name in element.attrib)
    declared = ({"xsi": XSI} if has_xsi else {}) | ({None: default_namespace} if default_namespace else {})
    copy = etree.Element(root.tag, dict(root.attrib), nsmap=declared)
    copy.text = root.text
    copy.extend(list(root))
    etree.cleanup_namespaces(copy, keep_ns_prefixes=_prefixes_in_values(copy))
    return bytes(etree.tostring(copy, encoding="utf-8", xml_declaration=True))


def _prefixes_in_values(root: Element) -> list[str]:
    """Return what may be a namespace prefix in a text or an attribute value, such as that of `xsi:type`."""
    texts = (text for element in root.iter() for text in (element.text, *element.attrib.values()) if text)
    return list({text.partition(":")[0].strip() for text in texts if ":" in text})
