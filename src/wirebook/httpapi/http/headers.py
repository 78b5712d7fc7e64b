"""Attributes as headers, where the body is a document.

Spec: core/http.md#serializing-resource-domain-specific-documents; core/http.md#http-header-values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

from wirebook.core.entities.attributes import RESOURCE_LEVEL
from wirebook.core.model.compiled import Attribute, Attributes, ResourceType
from wirebook.core.model.datatypes import text_of
from wirebook.problems.xregistry import Refused, refused

PREFIX: Final = "xregistry-"
SAFE: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
LONGEST: Final = 4000
"""Digits of a number, which take more than linear time to read."""
QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')


def encode(text: str) -> str:
    """A value as a header has it: blanks, quotes, percent signs and all but printable ASCII percent-encoded."""
    return quote(text, safe=SAFE)


def decode(text: str, name: str, path: str) -> str:
    """The value of a header, each character of which is a byte. Raises: header_error"""
    bare = QUOTED.sub(lambda found: re.sub(r"\\(.)", r"\1", found[1]), text) if '"' in text else text
    try:
        return unquote_to_bytes(bare.encode("latin-1")).decode()
    except UnicodeError:
        raise refused("header_error", path, name=name, error_detail="its bytes are not UTF-8") from None


def format_headers(members: Mapping[str, Any], type_: ResourceType) -> Iterator[tuple[str, str]]:
    """The scalar attributes of an entity, and the entries of its maps of scalars."""
    for name, value in members.items():
        attribute = _definition(type_.attributes, name)
        if name == "contenttype" or (attribute and attribute.type in NO_HEADERS):
            continue
        if not isinstance(value, (Mapping, list)):
            yield f"xRegistry-{name}", encode(text_of(value))
        elif isinstance(value, Mapping) and attribute and attribute.item and attribute.item.is_scalar:
            shown = ((key, each) for key, each in value.items() if ":" not in key)  # which no name of a header has
            yield from ((f"xRegistry-{name}.{key}", encode(text_of(each))) for key, each in shown)


NO_HEADERS: Final = frozenset({"any", "array", "object"})


def _definition(attributes: Attributes, name: str) -> Attribute | None:
    """The definition of an attribute, which may depend on values, or be that of any name a Version can have."""
    others = None if name in RESOURCE_LEVEL else attributes.get("*")
    return next(_named(attributes, name), others)


def _named(attributes: Attributes, name: str) -> Iterator[Attribute]:
    if name in attributes:
        yield attributes[name]
    for owner in attributes.values():
        for siblings in owner.ifvalues.values():
            yield from _named(siblings, name)


def parse_headers(headers: Sequence[tuple[str, str]], type_: ResourceType, path: str) -> dict[str, Any]:
    """Return the attributes that a request carries as headers, converted to the types of the model.

    `contenttype` is always included: a request without Content-Type erases it.
    Raises: extra_xregistry_header, header_error
    """
    content_types = [text for name, text in headers if name == CONTENT_TYPE]
    if len(content_types) > 1:
        raise _repeated("Content-Type", path)
    found: dict[str, str] = {}
    for header, text in headers:
        if header.startswith(PREFIX):
            name = header.removeprefix(PREFIX)
            if name in found:
                raise _repeated(f"xRegistry-{name}", path)
            found[name] = text
    sent: dict[str, Any] = {"contenttype": next((text for text in content_types if text not in ("", "null")), None)}
    for name, text in found.items():
        _check_allowed(name, text, type_, path)
        if name == "contenttype":
            sent[name] = None
        elif name not in READ_ONLY_LEVEL:
            _add(sent, name, decode(text, f"xRegistry-{name}", path), type_)
    return sent


CONTENT_TYPE: Final = "content-type"
READ_ONLY_LEVEL: Final = RESOURCE_LEVEL - {"meta", "versions"}
"""Attributes of the Resource that are read-only: they are ignored, so that a client can send back what it received."""


def _repeated(header: str, path: str) -> Refused:
    return refused("header_error", path, name=header, error_detail="it occurs more than once; send it once")


def _check_allowed(name: str, text: str, type_: ResourceType, path: str) -> None:
    """Reject the headers that a request with a document must not have: the document itself, `contenttype` under its
    xRegistry name, and whatever is neither a scalar nor a map of scalars.

    Raises: extra_xregistry_header, header_error
    """
    shown, (base, dot, _) = f"xRegistry-{name}", name.partition(".")
    if not base:
        raise refused("header_error", path, name=shown, error_detail="the name of an attribute is missing")
    why = None
    attribute = _definition(type_.attributes, base)
    if name in type_.document_names[::2]:
        why = "the document is the body"
    elif name == "contenttype" and text != "null":
        why = "use the header Content-Type"
    elif base in ("meta", "versions"):
        why = f"'{base}' cannot be written by headers; use the path '{_metadata_path(path, base)}'"
    elif attribute and _is_complex(attribute) and (dot or text != "null"):
        kind = "map of complex values" if attribute.type == "map" else attribute.type
        why = f"'{base}' is of type {kind}, and headers carry scalars and maps of scalars only; use '{path}$details'"
    if why:
        raise refused("extra_xregistry_header", path, name=shown, error_detail=why)


def _metadata_path(path: str, base: str) -> str:
    return f"{'/'.join(path.split('/')[:5])}/{base}"


def _is_complex(attribute: Attribute) -> bool:
    if attribute.type == "map":
        return attribute.item is not None and not attribute.item.is_scalar and attribute.item.type != "any"
    return attribute.type in ("array", "object")


def _add(sent: dict[str, Any], name: str, text: str, type_: ResourceType) -> None:
    """Add the value of a header to `sent`; a map is sent one key per header.

    A text that stands for a whole map beside headers for its keys stays, and fails where types are checked.
    """
    name, dot, key = name.partition(".")
    attribute = _definition(type_.attributes, name)
    if not dot:
        value = _value(text, attribute)
        if value is not None or name not in sent:
            sent[name] = value
    elif not isinstance(entries := sent.get(name), str):
        entries = sent[name] = entries if isinstance(entries, dict) else {}
        entries[key] = _value(text, attribute.item if attribute else None)


def _value(text: str, attribute: Attribute | None) -> Any:
    """A text as its type has it; what does not fit stays a text, and is refused where types are checked."""
    if text == "null":
        return None
    type_ = attribute.type if attribute else "string"
    if type_ == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if type_ in ("integer", "uinteger", "decimal"):
        return _number(text, whole=type_ != "decimal")
    return text


def _number(text: str, *, whole: bool) -> Any:
    """A number as JSON writes it, with zeros before it if need be; what is none, or is too large, stays a text."""
    if len(text) > LONGEST or not NUMBER.fullmatch(text):
        return text
    if text.lstrip("-").isdigit():
        return int(text)
    number = float(text)
    return number if math.isfinite(number) and (number.is_integer() or not whole) else text
