"""Strict JSON: one value, no NaN, UTF-8, within limits; every refusal says where.

    read_json(data, "catalogue.json").value

A byte order mark is tolerated and reported; comments, trailing commas and text after the value are not JSON. A member
that occurs twice is an error: with different values the document is refused, with equal values it is read and the
error reported.

Spec: RFC 8259; docs/semantics.md D47.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, Final

from wirebook.problems import Problem, WirebookError
from wirebook.text.jsonvalue import are_equal
from wirebook.text.positions import outline
from wirebook.text.source import (
    DEFAULT_LIMITS,
    DocumentLimits,
    Source,
    SourcePosition,
    line_starts,
    place_in,
    place_of,
    places_of,
)

BYTE_ORDER_MARK: Final = "\ufeff"
SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89abAB]|\\u[dD][c-fC-F]")
LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
AFTER_KEY: Final = re.compile(r'"(?:[^"\\]|\\.)*"\s*:\s*', re.DOTALL)
MAX_DUPLICATES: Final = 20


class _Refused(ValueError):
    """A value that Python's reader takes and JSON does not: `code` says what, `found` is the text of it."""

    def __init__(self, code: str, found: str) -> None:
        self.code, self.found = code, found
        super().__init__(code)


def read_json(data: bytes, name: str, limits: DocumentLimits = DEFAULT_LIMITS) -> Source:
    """The document in `data`.

    Raises: too-large, not-utf-8, syntax-error, duplicate-member, not-a-number, too-deep.
    """
    text, problems = decode(data, name, limits)
    repeated: list[str] = []
    value = _parse(text, name, repeated)
    if is_deeper_than(value, limits.depth):
        raise WirebookError(_too_deep(text, name, limits))
    duplicates = tuple(_duplicates(text, name)) if repeated else ()
    return Source(name, value, (*problems, *duplicates), partial(_places, text))


def decode(data: bytes, name: str, limits: DocumentLimits = DEFAULT_LIMITS) -> tuple[str, tuple[Problem, ...]]:
    """The text of `data`, without its byte order mark, and what there is to say about it."""
    if len(data) > limits.size:
        raise WirebookError(too_large(name, len(data), limits))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WirebookError(_not_utf_8(data, name, error.start)) from None
    if not text.startswith(BYTE_ORDER_MARK):
        return text, ()
    mark = Problem(code="byte-order-mark", message="a byte order mark was skipped", file=name, line=1, column=1)
    return text[1:], (mark,)


def too_large(name: str, size: int, limits: DocumentLimits) -> Problem:
    return Problem(
        code="too-large",
        message=f"the document has {size} bytes, {limits.size} are allowed",
        file=name,
        expected=limits.size,
        actual=size,
    )


def _not_utf_8(data: bytes, name: str, offset: int) -> Problem:
    before = data[:offset].decode("utf-8", errors="replace")
    line, column = place_of(before, len(before))
    message = f"byte 0x{data[offset]:02x} at offset {offset} is not UTF-8"
    return Problem(
        code="not-utf-8", message=message, file=name, line=line, column=column, actual=f"0x{data[offset]:02x}"
    )


def is_deeper_than(value: Any, depth: int) -> bool:
    """Is anything in `value` nested more than `depth` levels? Cost: linear, without recursion."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(depth):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
    return bool(level)


# -- parsing --------------------------------------------------------------------------------------------------------


def _parse(text: str, name: str, repeated: list[str]) -> Any:
    """The value; `repeated` gets the names of members that occur twice with equal values."""
    hook = partial(_object, repeated)
    try:
        value = json.loads(text, object_pairs_hook=hook, parse_constant=_constant, parse_float=_float)
    except _Refused as error:
        raise WirebookError(*_refusals(text, name, error)) from None
    except json.JSONDecodeError as error:
        raise WirebookError(_syntax_error(text, name, error.msg, error.pos)) from None
    except RecursionError:
        raise WirebookError(_too_deep(text, name, DEFAULT_LIMITS)) from None
    except ValueError as error:  # an integer of thousands of digits
        raise WirebookError(_endless_integer(text, name, str(error))) from None
    if SURROGATE_ESCAPE.search(text) and (found := _lone_surrogate(text)) is not None:
        raise WirebookError(_syntax_error(text, name, "Escaped surrogate without its other half", found))
    return value


def _object(repeated: list[str], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    members = {}
    for name, value in pairs:
        if name in members:
            if not are_equal(members[name], value):
                raise _Refused("duplicate-member", name)
            repeated.append(name)
        members.setdefault(name, value)
    return members


def _constant(text: str) -> Any:
    raise _Refused("not-a-number", text)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _Refused("not-a-number", text)
    return number


def _lone_surrogate(text: str) -> int | None:
    """The offset of the first string with half a surrogate pair."""
    return next((start for start, string in outline(text).strings if LONE_SURROGATE.search(string)), None)


# -- saying where ---------------------------------------------------------------------------------------------------


def _places(text: str) -> dict[str, SourcePosition]:
    return places_of(text, outline(text).offsets)


def _syntax_error(text: str, name: str, reason: str, offset: int) -> Problem:
    line, column = place_of(text, offset)
    ended = offset >= len(text.rstrip())
    message = f"{reason}: the text ends here" if ended else f"{reason}, found {_excerpt(text, offset)}"
    pointer = outline(text, offset).open_at
    return Problem(code="syntax-error", message=message, file=name, line=line, column=column, pointer=pointer)


def _excerpt(text: str, offset: int) -> str:
    return repr(text[offset : offset + 20].split("\n", maxsplit=1)[0])


def _refusals(text: str, name: str, error: _Refused) -> list[Problem]:
    if error.code == "duplicate-member":
        return list(islice(_duplicates(text, name, error.found), MAX_DUPLICATES))
    offset = next((start for start, word in outline(text).words if word == error.found), 0)
    return [_refused_number(text, name, error.found, offset)]


def _duplicates(text: str, name: str, different: str | None = None) -> Iterator[Problem]:
    """A problem for each repetition of a member: all have equal values, or those named `different` do not."""
    found = outline(text).duplicates
    if different is not None:
        found = [each for each in found if not _say_the_same(text, *each[1:])]
    starts = line_starts(text)
    for pointer, first, second in found:
        places = place_in(starts, first), place_in(starts, second)
        yield duplicate_member(name, pointer, *places, are_equal=different is None)


def duplicate_member(
    file: str, pointer: str, first: SourcePosition, second: SourcePosition, *, are_equal: bool
) -> Problem:
    """A member that an object has twice, at the place of the second one."""
    holder, _, token = pointer.rpartition("/")
    member = token.replace("~1", "/").replace("~0", "~")
    values = "equal values" if are_equal else "different values"
    message = (
        f"the member '{member}' of '{holder}' occurs twice, in lines {first.line} and {second.line}, with {values}"
    )
    hint = "`wirebook upgrade` writes it once" if are_equal else "remove one of them"
    return Problem(
        "duplicate-member", message, pointer=pointer, file=file, line=second.line, column=second.column,
        expected="one", hint=hint,
    )  # fmt: skip


def _say_the_same(text: str, first: int, second: int) -> bool:
    """Do two members, whose keys begin at these offsets, have equal values?"""
    try:
        return are_equal(_value_of(text, first), _value_of(text, second))
    except ValueError:
        return False


def _value_of(text: str, key: int) -> Any:
    start = AFTER_KEY.match(text, key)
    return json.JSONDecoder().raw_decode(text, start.end() if start else key)[0]


def _refused_number(text: str, name: str, word: str, offset: int) -> Problem:
    line, column = place_of(text, offset)
    pointer = outline(text, offset).open_at
    message = f"'{word}' is no number that JSON can carry"
    return Problem(
        code="not-a-number", message=message, actual=word, pointer=pointer, file=name, line=line, column=column
    )


def _endless_integer(text: str, name: str, reason: str) -> Problem:
    offset = max(outline(text).words, key=lambda found: len(found[1]), default=(0, ""))[0]
    line, column = place_of(text, offset)
    pointer = outline(text, offset).open_at
    message = f"an integer of too many digits: {reason.split(';', maxsplit=1)[0]}"
    return Problem(code="too-large", message=message, file=name, line=line, column=column, pointer=pointer)


def _too_deep(text: str, name: str, limits: DocumentLimits) -> Problem:
    offset, pointer = outline(text, depth=limits.depth).deepest
    line, column = place_of(text, offset)
    message = f"nested deeper than {limits.depth} levels"
    shown = pointer if len(pointer) < 200 else pointer[:200] + "..."
    return Problem(
        code="too-deep", message=message, pointer=shown, file=name, line=line, column=column, expected=limits.depth
    )
