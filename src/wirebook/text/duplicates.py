"""Find duplicate members of JSON objects, which parsers drop silently.

`may_have_duplicates` is fast and conservative. Outside strings ``":`` ends a member name, and inside strings the quote
is escaped, so counting ``":`` counts the names. A text without duplicates has as many names as its parsed value has
members. The other functions are exact and slower.

Rule: in a capture record, in the members of a structured event and in a request, a duplicate is an error; inside
payloads the last member counts.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from wirebook.text.pointers import format_pointer

_encode = msgspec.json.Encoder().encode
ESCAPED_COLON: Final = b"\\u003"
"""The beginning of an escaped colon. If a string begins with one, the re-encoded value has one more ``":``."""

_BLANK_BEFORE_COLON = (b'" ', b'"\t', b'"\n', b'"\r')


def may_have_duplicates(text: bytes, value: Any) -> bool:
    """Return False if it is certain that no object in `text`, whose parsed value is `value`, has duplicate members."""
    names = _count_names(text)
    if names == 0:
        return False
    try:
        return names is None or names != _count_names(_encode(value))
    except (OverflowError, TypeError, ValueError):
        return True


def first_duplicate(text: bytes) -> tuple[str, str] | None:
    """Return the name and the JSON Pointer of the first duplicate member in a valid JSON text, or None."""
    has_duplicate = False

    def make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_duplicate
        members = dict(pairs)
        if len(members) == len(pairs):
            return members
        has_duplicate = True
        return _ObjectWithDuplicate(pairs)

    document = json.loads(text.decode("utf-8-sig"), object_pairs_hook=make_object, parse_int=str)
    if not has_duplicate:
        return None
    # Paths are linked lists from the inside out, so that the cost is linear even for deep and wide documents.
    pending: list[tuple[Any, tuple[Any, ...] | None]] = [(document, None)]
    while pending:
        value, path = pending.pop()
        if isinstance(value, _ObjectWithDuplicate):
            tokens = [value.duplicate]
            while path:
                path, token = path
                tokens.append(token)
            return value.duplicate, format_pointer(reversed(tokens))
        items = [*value.items()] if isinstance(value, dict) else [*enumerate(value)] if isinstance(value, list) else []
        pending += [(item, (path, token)) for token, item in reversed(items)]
    return None


def top_level_duplicates(text: bytes) -> list[str | None]:
    """Return the duplicate member of an object, or of each item of an array; None where there is none."""
    root = json.loads(text.decode("utf-8-sig"), object_pairs_hook=_ObjectWithDuplicate.or_empty, parse_int=str)
    items = root if isinstance(root, list) else [root]
    return [item.duplicate if isinstance(item, _ObjectWithDuplicate) else None for item in items]


class _ObjectWithDuplicate(dict[str, Any]):
    """An object whose member `duplicate` occurs more than once."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        names = set[str]()
        for name, _ in pairs:
            if name in names:
                self.duplicate = name
                return
            names.add(name)

    @classmethod
    def or_empty(cls, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Return the object with its members if one of them is a duplicate, else an empty object."""
        return cls(pairs) if len({name for name, _ in pairs}) != len(pairs) else {}


def _count_names(text: bytes) -> int | None:
    """Count the member names in a JSON text. None if counting cannot tell."""
    if b'\\\\":' in text or ESCAPED_COLON in text or any(blank in text for blank in _BLANK_BEFORE_COLON):
        return None
    return text.count(b'":') - text.count(b'\\":')
