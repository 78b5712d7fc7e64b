"""Strict reading of one JSON value from bytes (D53): payloads, capture records, structured events.

One value and nothing after it, valid UTF-8 (a byte order mark is tolerated), no NaN or Infinity, no lone surrogates,
duplicate members: the last wins. Integers are exact whatever their size; other numbers are 64-bit floats, and a number
beyond their range is refused rather than turned into infinity. Time is linear in the input, depth is limited.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

import orjson

MAX_DEPTH = 200
MAX_INTEGER_DIGITS = 4300  # what Python converts in bounded time (sys.int_info.default_max_str_digits)
_BOM = b"\xef\xbb\xbf"
_DIGITS = bytes(48 if 48 <= c <= 57 else c for c in range(256))  # every digit as "0": a search in C, 5x a regex
_LONG_RUN = b"0" * 19  # shorter integers always fit 64 bits
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)  # possessive: linear also when the quote never closes
_BRACKETS = bytes(c for c in range(256) if c not in b"[]{}")
_STEPS = bytes(1 if c in b"[{" else 255 if c in b"]}" else 0 for c in range(256))  # as signed bytes


class JsonError(ValueError):
    """Why bytes are not one JSON value: `code` (of wirebook.problems), `message`, `offset` in bytes."""

    def __init__(self, code: str, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.code, self.message, self.offset = code, message, offset


def parse_json(data: bytes, *, max_depth: int = MAX_DEPTH) -> Any:
    """The one JSON value in `data`.

    Raises: JsonError with code payload-syntax, payload-too-deep or value-out-of-range.
    """
    if data.startswith(_BOM):
        return _after_bom(data, max_depth)
    if data.count(b"[") + data.count(b"{") > max_depth:
        check_depth(data, max_depth)
    if _LONG_RUN in data.translate(_DIGITS):
        return _parse_exact(data)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        _refuse(data, error)


def are_equal(one: Any, other: Any) -> bool:
    """Are two JSON values the same: numbers by value, objects whatever the order of their members?

    Raises: RecursionError for values nested too deep for Python.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(are_equal(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(are_equal, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def check_depth(data: bytes, max_depth: int = MAX_DEPTH) -> None:
    """Refuse arrays and objects nested deeper than `max_depth`, without parsing.

    Raises: JsonError with code payload-too-deep.
    """
    import numpy as np  # noqa: PLC0415 (takes long to load, and few values have so many brackets)

    steps = _STRING.sub(b"", data).translate(_STEPS, _BRACKETS)
    depth = np.cumsum(np.frombuffer(steps, dtype=np.int8), dtype=np.int64)
    if depth.size and int(depth.max()) > max_depth:
        raise JsonError("payload-too-deep", f"nested deeper than {max_depth} levels")


def _after_bom(data: bytes, max_depth: int) -> Any:
    try:
        return parse_json(data[3:], max_depth=max_depth) if not data.startswith(_BOM, 3) else _twice()
    except JsonError as error:
        raise JsonError(error.code, error.message, error.offset + 3) from None


def _twice() -> NoReturn:
    raise JsonError("payload-syntax", "a second byte order mark")


def _parse_exact(data: bytes) -> Any:
    """With integers beyond 64 bits kept; what is no JSON for orjson is none here."""
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if "infinity" not in error.msg:
            _refuse(data, error)
    try:
        value = json.loads(data, parse_int=_integer, parse_float=_float, parse_constant=_constant)
    except json.JSONDecodeError as error:
        _refuse(data, error)
    return _without_lone_surrogates(data, value)


def _without_lone_surrogates(data: bytes, value: Any) -> Any:
    if b"\\u" in data:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise JsonError("payload-syntax", "a lone surrogate in a string") from None
    return value


def _integer(text: str) -> int:
    if len(text) > MAX_INTEGER_DIGITS:
        raise JsonError("value-out-of-range", f"an integer of more than {MAX_INTEGER_DIGITS} digits")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise JsonError("value-out-of-range", "a number beyond the range of 64-bit floats")
    return value


def _constant(text: str) -> NoReturn:
    raise JsonError("payload-syntax", f"{text} is not JSON")


def _refuse(data: bytes, error: json.JSONDecodeError) -> NoReturn:
    """The parser's complaint with its place in bytes (parsers count characters)."""
    try:
        text = data.decode()
    except UnicodeDecodeError as broken:
        raise JsonError("payload-syntax", f"not valid UTF-8: {broken.reason}", broken.start) from None
    if "infinity" in error.msg:
        raise JsonError("value-out-of-range", "a number beyond the range of 64-bit floats", error.pos) from None
    raise JsonError("payload-syntax", error.msg, len(text[: error.pos].encode())) from None
