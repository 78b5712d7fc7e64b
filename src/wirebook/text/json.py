"""The JSON reader: one value from bytes, for payloads, events, captures, requests, schemas and catalogue documents.

    parse_json(payload)
    parse_json(body, max_depth=100, strict=True)

A JSON text is exactly one value in valid UTF-8, without NaN, Infinity, lone surrogates, comments or trailing commas.
Integers of up to 4300 digits keep their value. Other numbers are 64-bit floats; numbers beyond their range are errors.
By default, a byte order mark is skipped, and the last of several members with the same name counts (D53). With
`strict`, both are errors.

orjson parses almost every text. The standard library parses texts with digit runs that may exceed 64 bits.
`wirebook.text.json_documents` adds the line and the column of errors.

Spec: RFC 8259; docs/decisions/0162.
"""

from __future__ import annotations

import json
import math
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn, TypeGuard

import orjson

from wirebook.text.duplicates import first_duplicate, may_have_duplicates

MAX_DEPTH: Final = 200
MAX_INTEGER_DIGITS: Final = 4300
"""Longer integers are rejected, because converting them takes too long (`sys.int_info.default_max_str_digits`)."""
MAX_QUOTE: Final = 200
"""Maximum characters of a name, a number or a pointer in an error message."""

_DIGITS_AS_ZERO: Final = bytes(48 if 48 <= c <= 57 else c for c in range(256))  # 5x faster than a regex
_LONG_DIGIT_RUN: Final = b"0" * 19  # shorter integers always fit 64 bits
_PIECE: Final = 256 * 1024  # bytes
_NOT_BRACKETS: Final = bytes(c for c in range(256) if c not in b"[]{}")
_NESTING_STEPS: Final = bytes(1 if c in b"[{" else 255 if c in b"]}" else 0 for c in range(256))  # as signed bytes


class JsonError(ValueError):
    """Bytes that are not one JSON value.

    Shape: `code` is a problem code, `offset` counts bytes, `number` is the text of the invalid number, if that is the
    error.
    """

    def __init__(self, code: str, message: str, offset: int = 0, number: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.offset, self.number = code, message, offset, number


def parse_json(data: bytes, *, max_depth: int = MAX_DEPTH, strict: bool = False) -> Any:
    """Return the JSON value in `data`.

    Cost: linear in the size of `data`.

    Raises: JsonError (payload-syntax, payload-too-deep, value-out-of-range; with `strict` also duplicate-member)
    """
    if data.startswith(BOM_UTF8):
        return _parse_after_bom(data, max_depth, strict=strict)
    if data.count(b"[") + data.count(b"{") > max_depth:
        _check_depth(data, max_depth)
    if _LONG_DIGIT_RUN in data.translate(_DIGITS_AS_ZERO):
        value = _parse_with_long_numbers(data)
    else:
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            _raise_syntax_error(data, error)
    if strict and may_have_duplicates(data, value) and (duplicate := first_duplicate(data)):
        name, pointer = map(_shortened, duplicate)
        raise JsonError("duplicate-member", f"duplicate member '{name}' at '{pointer}'; keep one of them")
    return value


def parse_exactly(text: str, make_object: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Parse with the standard library: slower, but with long integers, and with a hook for the members of an object.

    Raises: json.JSONDecodeError; JsonError (value-out-of-range, payload-syntax) with the number; RecursionError
    """
    return json.loads(
        text,
        object_pairs_hook=make_object,
        parse_int=_parse_integer,
        parse_float=_parse_float,
        parse_constant=_reject_constant,
    )


def is_json_integer(value: Any) -> TypeGuard[int]:
    """Return whether a JSON value is an integer. In Python, booleans are integers, too."""
    return isinstance(value, int) and not isinstance(value, bool)


def are_equal(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same: numbers by value, objects regardless of the order of members.

    Raises: RecursionError for values nested too deeply for Python.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(are_equal(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(are_equal, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _parse_after_bom(data: bytes, max_depth: int, *, strict: bool) -> Any:
    if strict:
        raise JsonError("payload-syntax", "the text begins with a byte order mark; remove it")
    if data.startswith(BOM_UTF8, len(BOM_UTF8)):
        raise JsonError("payload-syntax", "the text begins with two byte order marks", len(BOM_UTF8))
    try:
        return parse_json(data[len(BOM_UTF8) :], max_depth=max_depth)
    except JsonError as error:
        raise JsonError(error.code, error.message, error.offset + len(BOM_UTF8)) from None


def _check_depth(data: bytes, max_depth: int) -> None:
    """Count brackets outside strings, without parsing. Raises: JsonError (payload-too-deep)"""
    import numpy as np  # noqa: PLC0415 (slow to import, and few texts have so many brackets)

    steps = b"".join(_brackets(data)).translate(_NESTING_STEPS)
    depth = np.cumsum(np.frombuffer(steps, dtype=np.int8), dtype=np.int64)
    if depth.size and int(depth.max()) > max_depth:
        raise JsonError("payload-too-deep", f"nested deeper than {max_depth} levels")


def _brackets(data: bytes) -> Iterator[bytes]:
    """Yield the brackets outside strings in pieces, so that other threads run in between and memory stays small."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")  # each remaining quote begins or ends a string
    is_inside = False
    for start in range(0, len(data), _PIECE):
        pieces = data[start : start + _PIECE].split(b'"')
        yield b"".join(pieces[is_inside::2]).translate(None, _NOT_BRACKETS)
        is_inside ^= len(pieces) % 2 == 0


def _parse_with_long_numbers(data: bytes) -> Any:
    """Parse with integers beyond 64 bits. orjson decides what is JSON."""
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if "infinity" not in error.msg:
            _raise_syntax_error(data, error)
    try:
        value = parse_exactly(data.decode())
    except json.JSONDecodeError as error:
        _raise_syntax_error(data, error)
    except UnicodeDecodeError as error:
        raise JsonError("payload-syntax", f"not valid UTF-8: {error.reason}", error.start) from None
    if b"\\u" in data:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise JsonError("payload-syntax", "a string contains half of a surrogate pair") from None
    return value


def _parse_integer(text: str) -> int:
    if len(text) > MAX_INTEGER_DIGITS:
        message = f"an integer has {len(text)} digits; at most {MAX_INTEGER_DIGITS} are allowed"
        raise JsonError("value-out-of-range", message, number=text)
    return int(text)


def _parse_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        message = f"the number {_shortened(text)} is beyond the range of 64-bit floats"
        raise JsonError("value-out-of-range", message, number=text)
    return value


def _reject_constant(text: str) -> NoReturn:
    raise JsonError("payload-syntax", f"{text} is not a JSON number", number=text)


def _raise_syntax_error(data: bytes, error: json.JSONDecodeError) -> NoReturn:
    """Raise the parser's error with its offset in bytes (parsers count characters)."""
    try:
        text = data.decode()
    except UnicodeDecodeError as decode_error:
        message = f"not valid UTF-8: {decode_error.reason}"
        raise JsonError("payload-syntax", message, decode_error.start) from None
    if "infinity" in error.msg:
        raise JsonError("value-out-of-range", "a number is beyond the range of 64-bit floats", error.pos) from None
    raise JsonError("payload-syntax", error.msg, len(text[: error.pos].encode())) from None


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_QUOTE else f"{text[:MAX_QUOTE]}..."
