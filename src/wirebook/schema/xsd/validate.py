"""Validates XML with libxml2 if possible, otherwise with xmlschema.

libxml2 supports XSD 1.0 and takes microseconds. xmlschema supports XSD 1.0 and 1.1 and takes a hundred times as long;
the column layout is derived from its compiled schema. Patterns always run on a linear-time engine (patterns.py):
libxml2 validates without patterns, and the readers check them, if they read every value that has patterns; otherwise
xmlschema validates everything.
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
from wirebook.schema.xsd.read import TYPE
from wirebook.schema.xsd.source import Documents, XsdError, is_new
from wirebook.schema.xsd.xml_text import Element
from wirebook.text.pointers import format_pointer

_SUBJECT = re.compile(r"Element '[^']*'(?:, attribute '([^']*)')?: ")
_STEP = re.compile(r"([^\[@]+)(?:\[([0-9]{1,9})\])?\Z")


@dataclass(frozen=True, slots=True)
class XmlFault:
    """One violation of the schema.

    Shape: `pointer` is the place, from the root element; `value` is the text there; `rule` is the violated rule.
    """

    pointer: str
    value: str | None
    rule: str


class CompiledSchemas:
    """The documents of a schema, compiled by xmlschema. `new` is set if they need XSD 1.1. Raises: XsdError"""

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
            raise XsdError(_message(error)) from None
        except (AttributeError, IndexError, OSError, OverflowError, RecursionError) as error:
            raise XsdError(f"the schema cannot be compiled: {type(error).__name__} {error}"[:200]) from None
        make_linear(model)
        return model


def _message(error: Exception) -> str:
    text = str(getattr(error, "message", None) or error).strip().partition("\n")[0]
    return text.rstrip(":")[:300]


def _write(documents: Documents, folder: Path) -> None:
    for name, root in documents.items():
        (folder / name).write_bytes(etree.tostring(root, encoding="utf-8", xml_declaration=True))


def fast_schema(documents: Documents) -> etree.XMLSchema | None:
    """Return the documents compiled by libxml2; None if it does not support them. They must contain no patterns."""
    with TemporaryDirectory(prefix="wirebook-xsd-", ignore_cleanup_errors=True) as folder:
        _write(documents, Path(folder))
        try:
            return etree.XMLSchema(file=str(Path(folder) / "0.xsd"))
        except etree.XMLSchemaError:
            return None


@dataclass
class ElementValidator:
    """Validates elements with libxml2 (`fast`) or with xmlschema (`model`)."""

    model: Any
    fast: Any | None
    patterns: bool
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_fast(self, root: Element) -> bool:
        """Whether libxml2 validates an element: not one that uses `xsi:type` if the schema has patterns."""
        selects_type = self.patterns and any(TYPE in element.attrib for element in root.iter())
        return self.fast is not None and not selects_type

    def faults(self, root: Element) -> list[XmlFault]:
        """Return at most 20 faults, in document order."""
        return self._by_libxml2(root) if self.is_fast(root) else self._by_xmlschema(root)

    def _by_libxml2(self, root: Element) -> list[XmlFault]:
        assert self.fast is not None
        with self._lock:  # the schema has a single error log
            try:
                if self.fast.validate(root):
                    return []
            except etree.XMLSchemaValidateError as error:
                return [XmlFault("", None, str(error))]
            entries = list(islice(self.fast.error_log, MAX_PROBLEMS))
        return [_fault(root, entry) for entry in entries] or [XmlFault("", None, "the element is not valid")]

    def _by_xmlschema(self, root: Element) -> list[XmlFault]:
        try:
            payload = xmlschema.XMLResource(root, allow="none", defuse="never")  # already parsed
            return [_reason(error) for error in islice(self.model.iter_errors(payload), MAX_PROBLEMS)]
        except (xmlschema.XMLSchemaException, ValueError, TypeError, RecursionError, OverflowError) as error:
            return [XmlFault("", None, _message(error))]


def _fault(root: Element, entry: Any) -> XmlFault:
    """Return the fault of an entry in the error log of libxml2. Only its message names the attribute."""
    subject = _SUBJECT.match(entry.message)
    rule = entry.message[subject.end() :] if subject is not None else entry.message
    element = _at(root, entry.path or "")
    if subject is not None and subject[1] and subject[1] in element.attrib:
        return XmlFault(pointer_of(element, subject[1]), element.get(subject[1]), rule)
    return XmlFault(pointer_of(element), _text(element), rule)


def _at(root: Element, path: str) -> Element:
    """Return the element at a path in the notation of libxml2.

    Names have the prefixes of the payload, which each level may bind differently, or are ``*`` in a default namespace.
    Numbers count the elements of the same name.
    """
    element = root
    for step in path.split("/")[2:]:
        match = _STEP.match(step)
        namesakes = [candidate for candidate in element if match is not None and _is_like(candidate, match[1])]
        place = int(match[2] or 1) - 1 if match is not None else 0
        if place >= len(namesakes):
            return element
        element = namesakes[place]
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
    """Return the pointer of an element or attribute: local names from the root, with an index if a name is repeated."""
    steps: list[str | int] = [] if attribute is None else [attribute.rpartition("}")[2]]
    while (parent := element.getparent()) is not None:
        index = _sibling_index(element, parent)
        steps += [*([index] if index is not None else []), element.tag.rpartition("}")[2]]
        element = parent
    return format_pointer(reversed(steps))


def _sibling_index(element: Element, parent: Element) -> int | None:
    """Return the index of an element among its siblings with the same tag; None if it is the only one."""
    before = sum(1 for _ in element.itersiblings(element.tag, preceding=True))
    others: Iterator[Element] = parent.iterchildren(element.tag)
    return before if before or sum(1 for _ in islice(others, 2)) > 1 else None
