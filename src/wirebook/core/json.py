"""Strict JSON: one value, no duplicate members, no NaN, UTF-8, within limits; every refusal says where.

    read_json(data, "catalogue.json").value

A byte order mark is tolerated and reported; comments, trailing commas and text after the value are not JSON.

Spec: RFC 8259; docs/semantics.md D47.
"""

from __future__ import annotations

import json
import math
import re
from functools import partial
from typing import Any, Final

from wirebook.core.positions import outline
from wirebook.core.source import DEFAULT_LIMITS, Limits, Place, Source, place_of, places_of
from wirebook.problems import Problem, WirebookError

BYTE_ORDER_MARK: Final = "\ufeff"
SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89abAB]|\\u[dD][c-fC-F]")
LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
MAX_DUPLICATES: Final = 20


class _Refused(ValueError):
    """A value that Python's reader takes and JSON does not: `code` says what, `found` is the text of it."""

    def __init__(self, code: str, found: str) -> None:
        self.code, self.found = code, found
        super().__init__(code)


def read_json(data: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> Source:
    """The document in `data`.

    Raises: too-large, not-utf-8, syntax-error, duplicate-member, not-a-number, too-deep.
    """
    text, problems = decode(data, name, limits)
    value = _parse(text, name)
    if is_deeper_than(value, limits.depth):
        raise WirebookError(_too_deep(text, name, limits))
    return Source(name, value, problems, partial(_places, text))


def decode(data: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> tuple[str, tuple[Problem, ...]]:
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


def too_large(name: str, size: int, limits: Limits) -> Problem:
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


def _parse(text: str, name: str) -> Any:
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Refused("duplicate-member", "")
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


def _places(text: str) -> dict[str, Place]:
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
    found = outline(text)
    if error.code == "duplicate-member" and found.duplicates:
        return [_duplicate(text, name, *duplicate) for duplicate in found.duplicates[:MAX_DUPLICATES]]
    if error.code == "duplicate-member":
        return [Problem(code=error.code, message="a member is there twice, deep inside", file=name, line=1, column=1)]
    offset = next((start for start, word in found.words if word == error.found), 0)
    return [_refused_number(text, name, error.found, offset)]


def _duplicate(text: str, name: str, pointer: str, offset: int) -> Problem:
    line, column = place_of(text, offset)
    message = f"the member '{pointer}' is there twice"
    return Problem(
        code="duplicate-member", message=message, pointer=pointer, file=name, line=line, column=column, expected="one"
    )


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


def _too_deep(text: str, name: str, limits: Limits) -> Problem:
    offset, pointer = outline(text, depth=limits.depth).deepest
    line, column = place_of(text, offset)
    message = f"nested deeper than {limits.depth} levels"
    shown = pointer if len(pointer) < 200 else pointer[:200] + "..."
    return Problem(
        code="too-deep", message=message, pointer=shown, file=name, line=line, column=column, expected=limits.depth
    )
