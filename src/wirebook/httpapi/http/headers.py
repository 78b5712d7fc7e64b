"""Attributes as HTTP headers, for requests and responses whose body is a document.

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
CONTENT_TYPE: Final = "content-type"
SAFE: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
MAX_DIGITS: Final = 4000
"""Maximum length of a number, because Python parses integers in more than linear time."""

QUOTED_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
NO_HEADERS: Final = frozenset({"any", "array", "object"})
"""Types whose values are not sent as headers."""

READ_ONLY_LEVEL: Final = RESOURCE_LEVEL - {"meta", "versions"}
"""Read-only attributes of a Resource. They are ignored, so that a client can send back the headers that it received."""


def encode(text: str) -> str:
    """Return a text as a header value.

    Blanks, double quotes, percent signs and all characters except printable ASCII are percent-encoded.
    """
    return quote(text, safe=SAFE)


def decode(text: str, name: str, path: str) -> str:
    """Return the text of a header value, in which each character stands for a byte. Raises: header_error"""
    if '"' in text:
        text = QUOTED_STRING.sub(lambda quoted: re.sub(r"\\(.)", r"\1", quoted[1]), text)
    try:
        return unquote_to_bytes(text.encode("latin-1")).decode()
    except UnicodeError:
        raise refused("header_error", path, name=name, error_detail="its bytes are not valid UTF-8") from None


def format_headers(members: Mapping[str, Any], type_: ResourceType) -> Iterator[tuple[str, str]]:
    """Yield a header for each scalar attribute of an entity, and for each entry of its maps of scalars."""
    for name, value in members.items():
        attribute = _definition(type_.attributes, name)
        if name == "contenttype" or (attribute and attribute.type in NO_HEADERS):
            continue
        if not isinstance(value, (Mapping, list)):
            yield f"xRegistry-{name}", encode(text_of(value))
        elif isinstance(value, Mapping) and attribute and attribute.item and attribute.item.is_scalar:
            for key, item in value.items():
                if ":" not in key:  # a colon cannot be part of a header name
                    yield f"xRegistry-{name}.{key}", encode(text_of(item))


def _definition(attributes: Attributes, name: str) -> Attribute | None:
    """Return the definition of an attribute, which may depend on the value of another (`ifvalues`), or that of `*`."""
    wildcard = None if name in RESOURCE_LEVEL else attributes.get("*")
    return next(_definitions(attributes, name), wildcard)


def _definitions(attributes: Attributes, name: str) -> Iterator[Attribute]:
    if name in attributes:
        yield attributes[name]
    for attribute in attributes.values():
        for siblings in attribute.ifvalues.values():
            yield from _definitions(siblings, name)


def parse_headers(headers: Sequence[tuple[str, str]], type_: ResourceType, path: str) -> dict[str, Any]:
    """Return the attributes that a request has as headers, converted to the types of the model.

    `contenttype` is always included: a request without Content-Type erases it.

    Raises: extra_xregistry_header, header_error
    """
    content_types = [text for name, text in headers if name == CONTENT_TYPE]
    if len(content_types) > 1:
        raise _repeated("Content-Type", path)
    texts: dict[str, str] = {}
    for header, text in headers:
        if header.startswith(PREFIX):
            name = header.removeprefix(PREFIX)
            if name in texts:
                raise _repeated(f"xRegistry-{name}", path)
            texts[name] = text
    members: dict[str, Any] = {"contenttype": next((text for text in content_types if text not in ("", "null")), None)}
    for name, text in texts.items():
        _check_allowed(name, text, type_, path)
        if name == "contenttype":
            members[name] = None
        elif name not in READ_ONLY_LEVEL:
            _add_member(members, name, decode(text, f"xRegistry-{name}", path), type_)
    return members


def _repeated(header: str, path: str) -> Refused:
    return refused("header_error", path, name=header, error_detail="it occurs more than once; send it once")


def _check_allowed(name: str, text: str, type_: ResourceType, path: str) -> None:
    """Reject the headers that a request with a document must not have.

    These are the document itself, `contenttype` under its xRegistry name, and attributes that are neither scalars nor
    maps of scalars.

    Raises: extra_xregistry_header, header_error
    """
    header, (base, dot, _) = f"xRegistry-{name}", name.partition(".")
    if not base:
        raise refused("header_error", path, name=header, error_detail="the name of an attribute is missing")
    reason = None
    attribute = _definition(type_.attributes, base)
    if name in type_.document_names[::2]:
        reason = "the document is the body"
    elif name == "contenttype" and text != "null":
        reason = "use the header Content-Type"
    elif base in ("meta", "versions"):
        resource_path = "/".join(path.split("/")[:5])
        reason = f"'{base}' cannot be written by headers; use the path '{resource_path}/{base}'"
    elif attribute and _is_complex(attribute) and (dot or text != "null"):
        kind = "map of complex values" if attribute.type == "map" else attribute.type
        reason = f"'{base}' is of type {kind}, and headers carry scalars and maps of scalars only; use '{path}$details'"
    if reason:
        raise refused("extra_xregistry_header", path, name=header, error_detail=reason)


def _is_complex(attribute: Attribute) -> bool:
    if attribute.type == "map":
        return attribute.item is not None and not attribute.item.is_scalar and attribute.item.type != "any"
    return attribute.type in ("array", "object")


def _add_member(members: dict[str, Any], name: str, text: str, type_: ResourceType) -> None:
    """Add the value of a header to `members`.

    A map has one header for each key. If a header has a text for a whole map, the text is kept and headers for its keys
    are ignored; the type check then rejects the text.
    """
    name, dot, key = name.partition(".")
    attribute = _definition(type_.attributes, name)
    if not dot:
        value = _parse_value(text, attribute)
        if value is not None or name not in members:
            members[name] = value
    elif not isinstance(entries := members.get(name), str):
        entries = members[name] = entries if isinstance(entries, dict) else {}
        entries[key] = _parse_value(text, attribute.item if attribute else None)


def _parse_value(text: str, attribute: Attribute | None) -> Any:
    """Return a text converted to the type of its attribute.

    A text that does not fit is returned unchanged, and the type check rejects it.
    """
    if text == "null":
        return None
    type_ = attribute.type if attribute else "string"
    if type_ == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if type_ in ("integer", "uinteger", "decimal"):
        return _parse_number(text, is_whole=type_ != "decimal")
    return text


def _parse_number(text: str, *, is_whole: bool) -> Any:
    """Return the number of a text in JSON syntax, where leading zeros are allowed.

    Any other text, a number out of range and, with `is_whole`, a fraction stay a text.
    """
    if len(text) > MAX_DIGITS or not NUMBER.fullmatch(text):
        return text
    if text.lstrip("-").isdigit():
        return int(text)
    number = float(text)
    return number if math.isfinite(number) and (number.is_integer() or not is_whole) else text
