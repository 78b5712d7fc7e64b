"""XML texts, read as if whoever wrote them meant harm: no DTD, no entities, nothing fetched, limits on size and depth.

libxml2's own limits hold, too: 10 MB for one text, 256 levels, what entities may come to.
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
_OWN = threading.local()


class XmlError(ValueError):
    """Why a text is not read: `code`, `message`, the `line` (from 1) and `column` where it is known."""

    def __init__(self, message: str, code: str = "payload-syntax", line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.message, self.code, self.line, self.column = message, code, line, column


def parse_xml(text: bytes | str) -> Element:
    """The root element. Raises: XmlError (payload-syntax, payload-too-large, payload-too-deep)"""
    data = _without_declaration(text) if isinstance(text, str) else text
    try:
        root = etree.fromstring(data, _parser())
    except (etree.XMLSyntaxError, ValueError) as error:
        raise _refused(error) from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise XmlError("a document type declaration is not allowed")
    return root


def _parser() -> Any:
    """The parser of this thread."""
    if not hasattr(_OWN, "parser"):
        _OWN.parser = etree.XMLParser(**_OPTIONS)
    return _OWN.parser


def _without_declaration(text: str) -> bytes:
    """A text that is no bytes any more has no encoding either."""
    return _DECLARATION.sub("", text.removeprefix("\ufeff"), count=1).encode("utf-8", "surrogatepass")


def _refused(error: Exception) -> XmlError:
    message = re.sub(r"( line \d+)?, line \d+, column \d+( \(.*\))?\Z", "", str(error).partition("\n")[0])
    line, column = getattr(error, "position", (0, 0))
    code = "payload-syntax"
    if "depth" in message.lower():
        code = "payload-too-deep"
    elif any(word in message.lower() for word in ("huge", "too long", "too large", "resource limit", "amplification")):
        code = "payload-too-large"
    return XmlError(message[:200] or "no XML", code, line, column)


def is_deeper(root: Element, levels: int) -> bool:
    """Are the elements nested deeper than so many levels?"""
    level = [root]
    for _ in range(levels):
        level = list(chain.from_iterable(level))
        if not level:
            return False
    return True


def xml_of(element: Element) -> str:
    """An element as XML text."""
    return str(etree.tostring(element, encoding="unicode", with_tail=False))


def to_bytes(root: Element) -> bytes:
    """A document in UTF-8, namespaces declared at the top, and without a prefix where every element has the same."""
    namespaces = {etree.QName(each).namespace for each in root.iter()}
    top = next(iter(namespaces)) if len(namespaces) == 1 else None
    chosen = {"xsi": XSI} if any(name.startswith(f"{{{XSI}}}") for each in root.iter() for name in each.attrib) else {}
    made = etree.Element(root.tag, dict(root.attrib), nsmap=chosen | ({None: top} if top else {}))
    made.text = root.text
    made.extend(list(root))
    etree.cleanup_namespaces(made, keep_ns_prefixes=_prefixes_in_values(made))
    return bytes(etree.tostring(made, encoding="utf-8", xml_declaration=True))


def _prefixes_in_values(root: Element) -> list[str]:
    """Prefixes that stand before a colon in a text or attribute, and not only in names."""
    texts = (text for each in root.iter() for text in (each.text, *each.attrib.values()) if text and ":" in text)
    return list({text.partition(":")[0].strip() for text in texts})
