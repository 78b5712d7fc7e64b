"""The JSON of requests: one value, UTF-8, no duplicate members, no NaN; one error that names the place.

    parse_request(body, depth=100)

Unlike catalogues (text/json.py), requests have no lines to report and no author to ask: every duplicate member is an
error, and a fault is found in one pass over the parsed value, whatever the size.

Spec: RFC 8259; docs/decisions/0162.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from wirebook.text.json import SURROGATE_ESCAPE, is_deeper_than
from wirebook.text.pointers import format_pointer

SHOWN: Final = 200
"""Characters of a name, number or pointer in an error."""


def parse_request(data: bytes, depth: int) -> Any:
    """Return the JSON value in `data`, nested at most `depth` levels.

    Raises: ValueError, whose text names the fault and its place
    """
    text = data.decode("utf-8")
    try:
        value = _decode(text)
    except RecursionError:
        raise ValueError(f"it is nested deeper than {depth} levels") from None
    if text.count("{") + text.count("[") > depth and is_deeper_than(value, depth):
        raise ValueError(f"it is nested deeper than {depth} levels")
    if SURROGATE_ESCAPE.search(text) and not _is_text(value):
        raise ValueError("a string contains half of a surrogate pair")
    return value


def _decode(text: str) -> Any:
    """Raises: ValueError, RecursionError"""
    repeated = list[_Repeated]()

    def read(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            members = _Repeated(pairs)
            repeated.append(members)
        return members

    value = json.JSONDecoder(object_pairs_hook=read, parse_constant=_constant, parse_float=_float).decode(text)
    if repeated:
        raise ValueError(_first_duplicate(value))
    return value


class _Repeated(dict[str, Any]):
    """An object in which the member `name` occurs more than once."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        seen = set[str]()
        self.name = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def _first_duplicate(document: Any) -> str:
    """Describe the first duplicate member of a document that contains a `_Repeated`."""
    waiting: list[tuple[Any, tuple[Any, ...] | None]] = [(document, None)]
    while waiting:
        value, path = waiting.pop()
        if isinstance(value, _Repeated):
            tokens = [value.name]
            while path:
                path, token = path
                tokens.append(token)
            pointer = format_pointer(reversed(tokens))
            return f"duplicate member '{_shortened(value.name)}' at '{_shortened(pointer)}'; keep one of them"
        inner = [*value.items()] if isinstance(value, dict) else [*enumerate(value)] if isinstance(value, list) else []
        waiting += [(each, (path, token)) for token, each in reversed(inner)]
    raise AssertionError("no object has a duplicate member")


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _constant(text: str) -> Any:
    raise ValueError(f"'{text}' is not a number that JSON can represent")


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"'{_shortened(text)}' is beyond the range of 64-bit numbers")
    return number


def _is_text(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
