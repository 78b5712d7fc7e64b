"""Members that occur twice in one JSON object: found without a parser of our own.

Rule: in a capture record and in a structured event's own members a repeat is malformed; inside `data` the last wins.

`may_repeat` is quick and conservative: outside of strings ``":`` ends a name, inside them the quote is escaped, so a
text without repeats has as many names as its parsed value has members. `repeated_member` is exact and slower.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

_encode = msgspec.json.Encoder().encode
_BEFORE_COLON = (b'" ', b'"\t', b'"\n', b'"\r')


def name_count(text: bytes) -> int | None:
    """How many member names are in a JSON text; None when counting cannot tell."""
    if b'\\\\":' in text or any(blank in text for blank in _BEFORE_COLON):
        return None
    return text.count(b'":') - text.count(b'\\":')


def may_repeat(text: bytes, value: Any) -> bool:
    """Could an object in `text`, which parses to `value`, have a member twice?"""
    names = name_count(text)
    if names == 0:
        return False
    try:
        return names is None or names != name_count(_encode(value))
    except (OverflowError, TypeError, ValueError):
        return True


class NameCounts(NamedTuple):
    """Of each text: how many member names, and whether counting cannot tell.

    Shape: `nulls` counts the names with a null, `wrappers` those that begin an object ``{"base64": ...}``.
    `null_texts` and `null_places` say for each null in which text it is, and where the colon before it.
    """

    counts: npt.NDArray[np.int64]
    nulls: npt.NDArray[np.int64]
    wrappers: npt.NDArray[np.int64]
    doubtful: npt.NDArray[np.bool_]
    null_texts: list[int]
    null_places: list[int]


def names_of(texts: list[bytes]) -> NameCounts:
    """The names of a column of texts. Cost: linear, one pass in numpy and some work for each colon."""
    characters = np.frombuffer(b"\n".join((_PAD, *texts, _PAD)), dtype=np.uint8)
    starts = len(_PAD) + 1 + np.cumsum([0] + [len(text) + 1 for text in texts])
    colon = np.flatnonzero(characters == _COLON)
    before, second, third = (characters[colon - place] for place in (1, 2, 3))
    quoted = before == _QUOTE
    unclear = quoted & (second == _BACKSLASH) & (third == _BACKSLASH)
    unclear |= (before <= _BLANK) & ((second == _QUOTE) | (second <= _BLANK))

    def text_of(colons: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        places: npt.NDArray[np.int64] = np.searchsorted(starts, colons, side="right") - 1
        return places

    def per_text(colons: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.bincount(text_of(colons), minlength=len(texts))

    names = colon[quoted & (second != _BACKSLASH)]
    after = characters[names + 1]
    after = np.where(after == _BLANK, characters[names + 2], after)
    nulls = names[after == _N]
    null_texts = text_of(nulls)
    return NameCounts(
        counts=per_text(names),
        nulls=np.bincount(null_texts, minlength=len(texts)),
        wrappers=per_text(_wrappers(characters, names)),
        doubtful=per_text(colon[unclear]) > 0,
        null_texts=null_texts.tolist(),
        null_places=(nulls - starts[null_texts]).tolist(),
    )


def _wrappers(characters: npt.NDArray[np.uint8], names: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The names, by their colons, that begin an object with ``{"base64":`` behind a colon or a comma."""
    for place, character in enumerate(reversed(b'{"base64"'), start=1):
        names = names[characters[names - place] == character]
    before = characters[names - 10]
    before = np.where(before == _BLANK, characters[names - 11], before)
    inside: npt.NDArray[np.int64] = names[(before == _COLON) | (before == _COMMA)]
    return inside


_PAD = b"\n" * 10
_QUOTE, _BACKSLASH, _BLANK, _N, _COLON, _COMMA = b'"\\ n:,'


def name_before(text: bytes, colon: int) -> bytes:
    """The member name that ends before the colon at `colon`."""
    return text[text.rindex(b'"', 0, colon - 1) + 1 : colon - 1]


class _RepeatedMembers:
    """An object of which only a repeated name is kept."""

    __slots__ = ("repeated",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.repeated = _first_repeated(pairs)


def _first_repeated(pairs: list[tuple[str, Any]]) -> str | None:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    return None


def top_level_repeats(text: bytes) -> list[str | None]:
    """For an object its repeated member; for an array one entry for each of its items."""
    root = json.loads(text.decode("utf-8-sig"), object_pairs_hook=_RepeatedMembers, parse_int=str)
    items = root if isinstance(root, list) else [root]
    return [item.repeated if isinstance(item, _RepeatedMembers) else None for item in items]


def repeated_member(text: bytes) -> str | None:
    """The first member that occurs twice in an object of `text`, at whatever depth."""
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        name = _first_repeated(pairs)
        if name is not None:
            found.append(name)

    json.loads(text.decode("utf-8-sig"), object_pairs_hook=look, parse_int=str)
    return found[0] if found else None
