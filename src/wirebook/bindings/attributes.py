"""The rules for names and values of CloudEvents context attributes, for readers and writers.

A URI may have a fragment, as in the JSON schema of CloudEvents. The specification's `Absolute URI` would exclude it.

Spec: cloudevents-spec.md#naming-conventions, #type-system, #context-attributes; RFC 3986 appendix A.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from wirebook.bindings.wire import TIME_PATTERN, preview
from wirebook.problems import Problem
from wirebook.text.mediatypes import is_media_type

MANDATORY: Final = ("specversion", "id", "source", "type")
WELL_KNOWN: Final = frozenset({*MANDATORY, "datacontenttype", "dataschema", "subject", "time"})
INT32: Final = (-(2**31), 2**31 - 1)
_NAME: Final = re.compile(r"[a-z0-9]+\Z")

# Characters that the CloudEvents type String does not allow: controls, surrogates, noncharacters.
FORBIDDEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(17))
    + "]"
)

# URIs. The expressions are valid in RE2, too.
_WORD: Final = "A-Za-z0-9._~!$&'()*+,;="
_ESCAPE: Final = "%[0-9A-Fa-f]{2}"
_PATH: Final = rf"(?:[{_WORD}:@/-]|{_ESCAPE})*"
_HOST: Final = rf"(?:\[[0-9A-Fa-f:.]+\]|\[v[0-9A-Fa-f]+\.[{_WORD}:-]+\]|(?:[{_WORD}-]|{_ESCAPE})*)"
_AUTHORITY: Final = rf"//(?:(?:[{_WORD}:-]|{_ESCAPE})*@)?{_HOST}(?::[0-9]*)?(?:/{_PATH})?"
_ROOTED: Final = rf"/(?:(?:[{_WORD}:@-]|{_ESCAPE}){_PATH})?"
_TAIL: Final = rf"(?:\?(?:[{_WORD}:@/?-]|{_ESCAPE})*)?(?:#(?:[{_WORD}:@/?-]|{_ESCAPE})*)?"
URI_PATTERN: Final = (
    rf"[A-Za-z][A-Za-z0-9+.-]*:(?:{_AUTHORITY}|{_ROOTED}|(?:(?:[{_WORD}:@-]|{_ESCAPE}){_PATH})?){_TAIL}"
)
URI_REFERENCE_PATTERN: Final = (
    rf"(?:{URI_PATTERN}|(?:{_AUTHORITY}|{_ROOTED}|(?:(?:[{_WORD}@-]|{_ESCAPE})+(?:/{_PATH})?)?){_TAIL})"
)
_is_uri: Final = re.compile(URI_PATTERN).fullmatch
_is_reference: Final = re.compile(URI_REFERENCE_PATTERN).fullmatch
_is_time: Final = re.compile(TIME_PATTERN).match


def is_uri_reference(text: str) -> bool:
    """Return whether the text is a URI or a relative reference; an empty text is one. Cost: linear."""
    return _is_reference(text) is not None


def attribute_slot(name: str) -> str:
    """Return the name of an attribute's slot, as problems use it."""
    return f"envelopemetadata.{name}"


def malformed(name: str, expected: str, actual: Any) -> Problem:
    """Return the problem of an attribute or data member that violates a rule of CloudEvents."""
    name = preview(name)
    message = f"the CloudEvent's '{name}' must be {expected}"
    return Problem(
        "malformed-cloudevent", message, slot=attribute_slot(name), expected=expected, actual=preview(actual)
    )


def is_attribute_name(name: str) -> bool:
    """Return whether CloudEvents allows the name: lower-case letters and digits, but not `data`."""
    return name in WELL_KNOWN or (_NAME.match(name) is not None and name != "data")


def wrong_attributes(attributes: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield (name, expected value, value) of each attribute that violates a rule, missing mandatory ones first.

    Values are as in `Received`. Native values of JSON and AMQP count as their canonical strings.
    """
    for name in MANDATORY:
        if name not in attributes:
            yield name, _EXPECTED[name], None
    for name, value in attributes.items():
        if expected := wrong_value(name, value):
            yield name, expected, value
        elif not is_attribute_name(name):
            yield name, "named with lower-case letters and digits, but not 'data'", name


def wrong_value(name: str, value: Any) -> str | None:
    """Return what the value must be, or None if the value is valid."""
    if isinstance(value, str):
        if not (value.isascii() and value.isprintable()) and FORBIDDEN.search(value):
            return "a string without control characters, surrogates and noncharacters"
        check = _CHECKS.get(name)
        return None if check is None or check(value) else _EXPECTED[name]
    if name in WELL_KNOWN:
        return _EXPECTED[name]
    if isinstance(value, (bool, bytes)):
        return None
    if isinstance(value, int):
        return None if INT32[0] <= value <= INT32[1] else "a 32-bit integer"
    return "a string, a boolean or an integer"


_CHECKS: Final[dict[str, Callable[[str], Any]]] = {
    "specversion": "1.0".__eq__,
    "id": bool,
    "source": lambda text: text and _is_reference(text),
    "type": bool,
    "subject": bool,
    "time": _is_time,
    "dataschema": _is_uri,
    "datacontenttype": lru_cache(maxsize=1024)(is_media_type),
}
_EXPECTED: Final = {
    "specversion": "'1.0'",
    "id": "a non-empty string",
    "source": "a non-empty URI reference (RFC 3986)",
    "type": "a non-empty string",
    "subject": "a non-empty string",
    "time": "an RFC 3339 time with an offset",
    "dataschema": "an absolute URI (RFC 3986)",
    "datacontenttype": "a media type (RFC 2046)",
}
