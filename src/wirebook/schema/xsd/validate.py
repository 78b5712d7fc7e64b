"""Validation of XML: libxml2 where it can, xmlschema where it must.

libxml2 knows XSD 1.0 and takes microseconds. xmlschema knows 1.1 and takes a hundred times as long; it is also what the
columns are read from. Patterns are neither's: they run on an engine of linear time (xsd_patterns.py). With libxml2 they
are checked beside it, value by value, where all values with patterns are in sight; otherwise xmlschema does everything.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import xmlschema
from lxml import etree
from xmlschema.validators import XsdAssert

from wirebook.schema.payload_problems import MAX_PROBLEMS
from wirebook.schema.xsd.patterns import make_linear
from wirebook.schema.xsd.source import Documents, XsdError, is_new
from wirebook.schema.xsd.xml_text import Element
from wirebook.text.pointers import format_pointer

_ABOUT = re.compile(r"Element '[^']*'(?:, attribute '([^']*)')?: ")
_STEP = re.compile(r"([^\[@]+)(?:\[([0-9]{1,9})\])?\Z")
XSI_TYPE = "{http://www.w3.org/2001/XMLSchema-instance}type"


@dataclass(frozen=True, slots=True)
class XmlFault:
    """Shape: `pointer` from the root element; `value` its text; `rule` what is broken."""

    pointer: str
    value: str | None
    rule: str


class CompiledSchemas:
    """The documents of a schema in xmlschema; `new`: they need XSD 1.1. Raises: XsdError"""

    def __init__(self, documents: Documents, version: str | None) -> None:
        with TemporaryDirectory(prefix="wirebook-xsd-", ignore_cleanup_errors=True) as folder:
            self.new = version != "1.0" and is_new(documents)
            _write(documents, Path(folder))
            self.model = self._model(Path(folder))

    def _model(self, folder: Path) -> Any:
        class_ = xmlschema.XMLSchema11 if self.new else xmlschema.XMLSchema10
        try:
            model = class_(str(folder / "0.xsd"), allow="sandbox", defuse="always", use_fallback=False)
        except (xmlschema.XMLSchemaException, xmlschema.XMLResourceError, ValueError, TypeError, KeyError) as error:
            raise XsdError(_words(error)) from None
        except (AttributeError, IndexError, OSError, OverflowError, RecursionError) as error:
            raise XsdError(f"the schema cannot be compiled: {type(error).__name__} {error}"[:200]) from None
        make_linear(model)
        return model


def _words(error: Exception) -> str:
    text = str(getattr(error, "message", None) or error).strip().partition("\n")[0]
    return text.rstrip(":")[:300]


def _write(documents: Documents, folder: Path) -> None:
    for name, root in documents.items():
        (folder / name).write_bytes(etree.tostring(root, encoding="utf-8", xml_declaration=True))


def fast_schema(documents: Documents) -> etree.XMLSchema | None:
    """The documents compiled by libxml2; None if it does not take them. Their patterns are not to be in them."""
    with TemporaryDirectory(prefix="wirebook-xsd-", ignore_cleanup_errors=True) as folder:
        _write(documents, Path(folder))
        try:
            return etree.XMLSchema(file=str(Path(folder) / "0.xsd"))
        except etree.XMLSchemaError:
            return None


@dataclass
class ElementValidator:
    """Says what is wrong with an element: by libxml2 (`fast`) or by xmlschema (`model`)."""

    model: Any
    fast: Any | None
    patterns: bool
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_fast(self, root: Element) -> bool:
        """libxml2 it is, unless a payload chooses types itself and there are patterns to look at."""
        chosen = self.patterns and next((True for each in root.iter() if XSI_TYPE in each.attrib), False)
        return self.fast is not None and not chosen

    def faults(self, root: Element) -> list[XmlFault]:
        """At most 20, in the order of the document."""
        return self._by_libxml2(root) if self.is_fast(root) else self._by_xmlschema(root)

    def _by_libxml2(self, root: Element) -> list[XmlFault]:
        assert self.fast is not None
        with self._lock:  # the log of errors is the schema's
            try:
                if self.fast.validate(root):
                    return []
            except etree.XMLSchemaValidateError as error:
                return [XmlFault("", None, str(error))]
            entries = list(islice(self.fast.error_log, MAX_PROBLEMS))
        found = [_fault(root, entry) for entry in entries]
        return found or [XmlFault("", None, "the element is not valid")]

    def _by_xmlschema(self, root: Element) -> list[XmlFault]:
        try:
            payload = xmlschema.XMLResource(root, allow="none", defuse="never")  # parsed already
            return [_reason(error) for error in islice(self.model.iter_errors(payload), MAX_PROBLEMS)]
        except (xmlschema.XMLSchemaException, ValueError, TypeError, RecursionError, OverflowError) as error:
            return [XmlFault("", None, _words(error))]


def _fault(root: Element, entry: Any) -> XmlFault:
    """An entry of libxml2's log: its path leads to the element, its words name the attribute."""
    about = _ABOUT.match(entry.message)
    rule = entry.message[about.end() :] if about is not None else entry.message
    element = _at(root, entry.path or "")
    if about is not None and about[1] and about[1] in element.attrib:
        return XmlFault(pointer_of(element, about[1]), element.get(about[1]), rule)
    return XmlFault(pointer_of(element), _text(element), rule)


def _at(root: Element, path: str) -> Element:
    """The element at a path as libxml2 writes it: the names with the prefixes that the payload gives them, which may
    mean something else on each level, ``*`` for those of a default namespace, and places among their like."""
    element = root
    for step in path.split("/")[2:]:
        found = _STEP.match(step)
        alike = [each for each in element if found is not None and _is_like(each, found[1])]
        place = int(found[2] or 1) - 1 if found is not None else 0
        if place >= len(alike):
            return element
        element = alike[place]
    return element


def _is_like(element: Element, name: str) -> bool:
    local = element.tag.rpartition("}")[2]
    return name in ("*", f"{element.prefix}:{local}" if element.prefix else local)


def _reason(error: Any) -> XmlFault:
    element = error.elem
    reason = str(error.reason or error.message).partition("\n")[0]
    if isinstance(error.validator, XsdAssert):
        reason = f"{reason}: {error.validator.path}"
    if element is None or not hasattr(element, "getparent"):
        return XmlFault("", None, reason)
    return XmlFault(pointer_of(element), _text(element), reason)


def _text(element: Element) -> str | None:
    return None if len(element) else element.text


def pointer_of(element: Element, attribute: str | None = None) -> str:
    """Where an element, or an attribute of it, is: names from the root on, with a number where there are several."""
    steps: list[str | int] = [] if attribute is None else [attribute.rpartition("}")[2]]
    while (parent := element.getparent()) is not None:
        alike = _alike(element, parent)
        steps += [*([alike] if alike is not None else []), element.tag.rpartition("}")[2]]
        element = parent
    return format_pointer(reversed(steps))


def _alike(element: Element, parent: Element) -> int | None:
    """The place of an element among its siblings of one tag; None if it is the only one."""
    before = sum(1 for _ in element.itersiblings(element.tag, preceding=True))
    others: Iterator[Element] = parent.iterchildren(element.tag)
    return before if before or sum(1 for _ in islice(others, 2)) > 1 else None
