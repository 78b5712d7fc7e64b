"""The data types of the core specification, and whether a value is valid for each.

Spec: core/spec.md#data-types, #attributes, #labels-attribute, #deprecated-attribute.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from wirebook.bindings.attributes import is_uri_reference
from wirebook.core.entities.versions import instant_key
from wirebook.core.model.attributes import KEY_NAME, MAX_BYTES
from wirebook.core.model.datatypes import normal_timestamp
from wirebook.core.names import IDENTIFIER_IN_WORDS, is_identifier
from wirebook.definitions.lint.finding import Finding
from wirebook.definitions.normalize.preview import preview
from wirebook.text.pointers import child


class DataType(NamedTuple):
    """A data type: a description of its values for messages, and the test for them."""

    allowed: str
    test: Callable[[Any], bool]


def check_value(name: str, type_: str, value: Any, pointer: str) -> Iterator[Finding]:
    """Check an attribute's value against its type and the limit on its length."""
    if type_ in STRUCTURES:
        yield from STRUCTURES[type_](name, value, pointer)
    elif not (data_type := DATA_TYPES[type_]).test(value):
        yield wrong_type(name, value, pointer, data_type.allowed)
    elif type_ not in ("document", "base64", "any"):
        yield from check_length(name, value, pointer)


def wrong_type(name: str, value: Any, pointer: str, allowed: str) -> Finding:
    """The finding for an attribute whose value does not have its type. `allowed` describes the type."""
    message = f"'{name}' must be {allowed}; found {typed_preview(value)}"
    return Finding("bad-attribute", pointer, message, allowed, value)


def may_be(type_: str, value: Any) -> bool:
    """Return whether a value can be of a type: ``version: 1.2`` is not a misspelt ``versions``, which is a map."""
    return isinstance(value, dict) if type_ in STRUCTURES else DATA_TYPES[type_].test(value)


def typed_preview(value: Any) -> str:
    """Format a value for a message; a string is called one, to tell `5` from `"5"`."""
    return f"the string '{preview(value)}'" if isinstance(value, str) else preview(value)


def check_length(name: str, value: Any, pointer: str) -> Iterator[Finding]:
    """Check that the name and the scalar value of an attribute are not longer than the limit."""
    if isinstance(value, (str, int, float)):
        text = value if isinstance(value, str) else json.dumps(value)
        size = len(name) + len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_BYTES:
            message = f"'{preview(name)}' has {size} bytes (name and value); the limit is {MAX_BYTES}, so shorten it"
            yield Finding("attribute-too-long", pointer, message, MAX_BYTES, size)


# -- simple types -----------------------------------------------------------------------------------------------------


def is_url(value: Any) -> bool:
    """Return whether a value is a non-empty URI reference."""
    return isinstance(value, str) and value != "" and is_uri_reference(value)


def is_timestamp(value: Any) -> bool:
    """Return whether a value is an RFC 3339 timestamp; the time zone may be missing."""
    return isinstance(value, str) and normal_timestamp(value) is not None


def _is_short_address(value: Any) -> bool:
    return is_url(value) and "://" in value and "$" not in value


def _is_unsigned(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_base64(value: Any) -> bool:
    try:
        return isinstance(value, str) and base64.b64decode(value, validate=True) is not None
    except (binascii.Error, ValueError):
        return False


DATA_TYPES: Final[dict[str, DataType]] = {
    "any": DataType("any value", lambda value: value is not None),
    "document": DataType("any value", lambda value: value is not None),
    "string": DataType("a string", lambda value: isinstance(value, str)),
    "text+": DataType("a non-empty string", lambda value: isinstance(value, str) and value != ""),
    "id": DataType(IDENTIFIER_IN_WORDS, is_identifier),
    "xid": DataType("the XID of the entity", lambda value: isinstance(value, str)),
    "url+": DataType("a non-empty URL (RFC 3986)", is_url),
    "shortself": DataType("an absolute URL without '$'", _is_short_address),
    "uinteger": DataType("a non-negative integer", _is_unsigned),
    "boolean": DataType("true or false", lambda value: isinstance(value, bool)),
    "timestamp": DataType("a time as in RFC 3339, e.g. '2030-12-19T06:00:00Z'", is_timestamp),
    "base64": DataType("a string in base64 (RFC 4648 section 4)", _is_base64),
    "object": DataType("an object", lambda value: isinstance(value, dict)),
    "map": DataType("a map", lambda value: isinstance(value, dict)),
}

# -- types with members -----------------------------------------------------------------------------------------------

DEPRECATED: Final = {"effective": "timestamp", "removal": "timestamp", "alternative": "url+", "documentation": "url+"}


def _check_labels(name: str, value: Any, pointer: str) -> Iterator[Finding]:
    if not isinstance(value, dict):
        yield wrong_type(name, value, pointer, "a map of names to strings")
        return
    for key, text in value.items():
        if not KEY_NAME.match(key):
            message = f"'{preview(key)}' is not a valid name for a label"
            allowed = "1 to 63 of a-z 0-9 : - _ ., the first of a-z 0-9"
            yield Finding("bad-label", child(pointer, key), message, allowed, key)
        if not isinstance(text, str):
            message = f"the value of the label '{preview(key)}' must be a string; found {typed_preview(text)}"
            yield Finding("bad-attribute", child(pointer, key), message, "a string", text)


def _check_deprecated(name: str, value: Any, pointer: str) -> Iterator[Finding]:
    if not isinstance(value, dict):
        yield wrong_type(name, value, pointer, "an object")
        return
    for member, type_ in DEPRECATED.items():
        if value.get(member) is not None:
            yield from check_value(f"{name}.{member}", type_, value[member], child(pointer, member))
    effective, removal = value.get("effective"), value.get("removal")
    instants = [instant_key(text) for value in (effective, removal) if (text := normal_timestamp(str(value)))]
    if len(instants) == 2 and instants[1] < instants[0]:
        message = f"'removal' ('{removal}') must not be before 'effective' ('{effective}')"
        yield Finding("removal-before-effective", child(pointer, "removal"), message, effective, removal)


STRUCTURES: Final[dict[str, Callable[[str, Any, str], Iterator[Finding]]]] = {
    "labels": _check_labels,
    "deprecated": _check_deprecated,
}
