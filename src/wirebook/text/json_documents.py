"""Read catalogue documents in JSON, with the line, the column and the JSON Pointer of every error.

    read_json(data, "catalogue.json").value

A byte order mark is skipped and reported. A duplicate member is reported. If its values differ, the document is
rejected.

Valid documents are parsed by `wirebook.text.json`. Others are parsed a second time with the standard library, which
reports the position of the error.

Spec: RFC 8259; docs/semantics.md D47.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any, Final

from wirebook.problems import Problem, WirebookError
from wirebook.text.json import JsonError, are_equal, parse_exactly, parse_json
from wirebook.text.positions import outline
from wirebook.text.source import (
    DEFAULT_LIMITS,
    DocumentLimits,
    Source,
    SourcePosition,
    decode_document,
    duplicate_member,
    line_starts,
    place_in,
    place_of,
    places_of,
    shortened_pointer,
)

SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89abAB]|\\u[dD][c-fC-F]")
LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
AFTER_KEY: Final = re.compile(r'"(?:[^"\\]|\\.)*"\s*:\s*', re.DOTALL)
MAX_DUPLICATES: Final = 20
"""Maximum number of duplicate members reported for one document."""


def read_json(data: bytes, name: str, limits: DocumentLimits = DEFAULT_LIMITS) -> Source:
    """Read the document in `data`.

    Raises: WirebookError (too-large, not-utf-8, syntax-error, duplicate-member, not-a-number, too-deep)
    """
    text, problems = decode_document(data, name, limits)
    try:
        value = parse_json(text.encode() if problems else data, max_depth=limits.depth, strict=True)
    except JsonError:
        value, duplicates = _parse_with_places(text, name, limits)
        problems = (*problems, *duplicates)
    return Source(name, value, problems, partial(_find_places, text))


def is_deeper_than(value: Any, depth: int) -> bool:
    """Return whether a value is nested more than `depth` levels. Cost: linear, without recursion."""
    containers = [value] if isinstance(value, (dict, list)) else []
    for _ in range(depth):
        if not containers:
            return False
        containers = [
            inner
            for outer in containers
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
    return bool(containers)


def _find_places(text: str) -> dict[str, SourcePosition]:  # a module-level function, because sources are pickled
    return places_of(text, outline(text).offsets)


class _DifferentValues(ValueError):
    """Raised for a duplicate member with different values."""


def _parse_with_places(text: str, name: str, limits: DocumentLimits) -> tuple[Any, list[Problem]]:
    """Return the value of a document with duplicate members of equal values, and a problem for each of them.

    Raises: WirebookError with the place of the error
    """
    try:
        value = parse_exactly(text, _merge_equal_members)
    except _DifferentValues:
        raise WirebookError(*_duplicates(text, name, equal=False)[:MAX_DUPLICATES]) from None
    except JsonError as error:
        raise WirebookError(_number_error(text, name, error)) from None
    except json.JSONDecodeError as error:
        raise WirebookError(_syntax_error(text, name, error.msg, error.pos)) from None
    except RecursionError:
        raise WirebookError(_too_deep(text, name, limits)) from None
    if SURROGATE_ESCAPE.search(text):
        lone = next((offset for offset, string in outline(text).strings if LONE_SURROGATE.search(string)), None)
        if lone is not None:
            raise WirebookError(_syntax_error(text, name, "half of a surrogate pair in a string", lone))
    if is_deeper_than(value, limits.depth):
        raise WirebookError(_too_deep(text, name, limits))
    return value, _duplicates(text, name, equal=True)


def _merge_equal_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    members = {}
    for name, value in pairs:
        if name in members and not are_equal(members[name], value):
            raise _DifferentValues
        members.setdefault(name, value)
    return members


# -- errors and their places ----------------------------------------------------------------------------------------


def _syntax_error(text: str, name: str, reason: str, offset: int) -> Problem:
    line, column = place_of(text, offset)
    if offset >= len(text.rstrip()):
        message = f"{reason}: the text ends here"
    else:
        excerpt = text[offset : offset + 20].split("\n", maxsplit=1)[0]
        message = f"{reason}, found {excerpt!r}"
    pointer = outline(text, offset).open_at
    return Problem("syntax-error", message, file=name, line=line, column=column, pointer=pointer)


def _duplicates(text: str, name: str, *, equal: bool) -> list[Problem]:
    """Return a problem for each duplicate member: all of them if all have equal values, else those that differ."""
    starts = line_starts(text)
    return [
        duplicate_member(name, pointer, place_in(starts, first), place_in(starts, second), are_equal=equal)
        for pointer, first, second in outline(text).duplicates
        if equal or not _have_equal_values(text, first, second)
    ]


def _have_equal_values(text: str, first: int, second: int) -> bool:
    """Return whether the members whose keys begin at two offsets have equal values."""

    def value_of(key: int) -> Any:
        start = AFTER_KEY.match(text, key)
        return json.JSONDecoder().raw_decode(text, start.end() if start else key)[0]

    try:
        return are_equal(value_of(first), value_of(second))
    except ValueError:
        return False


def _number_error(text: str, name: str, error: JsonError) -> Problem:
    """Return the problem of NaN, Infinity, a number beyond the range of floats, or an integer with too many digits."""
    offset = next((offset for offset, word in outline(text).words if word == error.number), 0)
    line, column = place_of(text, offset)
    code = "too-large" if (error.number or "").lstrip("-").isdecimal() else "not-a-number"
    actual = error.number if code == "not-a-number" else None
    pointer = outline(text, offset).open_at
    return Problem(code, error.message, actual=actual, file=name, line=line, column=column, pointer=pointer)


def _too_deep(text: str, name: str, limits: DocumentLimits) -> Problem:
    offset, pointer = outline(text, depth=limits.depth).deepest
    line, column = place_of(text, offset)
    message = f"nested deeper than {limits.depth} levels"
    return Problem(
        "too-deep", message, pointer=shortened_pointer(pointer), file=name, line=line, column=column,
        expected=limits.depth,
    )  # fmt: skip
