"""Compare values in filters and sorts: by attribute type, strings case-insensitively, timestamps by time.

The order is the same on every database: strings compare by the code points of their `fold`.

Spec: core/spec.md#filter-flag; core/spec.md#sort-flag.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any, Final

from wirebook.core.entities.versions import instant_key
from wirebook.core.timestamps import normal_timestamp

WHOLE: Final = re.compile(r"[+-]?[0-9]{1,4000}")
NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")


def fold(text: str) -> str:
    """Return the comparison key of a text: equal for texts that differ only in case or Unicode normal form."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def comparable(value: Any, type_: str | None) -> tuple[int, Any] | None:
    """Return the sort key of a scalar: its kind, then its value. Return None for null, objects and arrays.

    `type_` is the attribute's type if the model defines it.
    """
    if isinstance(value, bool):
        return 0, value
    if isinstance(value, (int, float)):
        return 1, value
    if not isinstance(value, str):
        return None
    if type_ == "timestamp" and (instant := normal_timestamp(value)):
        return 2, instant_key(instant)
    return 2, fold(value)


def read_operand(text: str, like: Any, type_: str | None) -> tuple[int, Any] | None:
    """Return the sort key of an expression's operand `text`, read as a value of the same kind as `like`.

    Return None if the text is not a value of that kind.
    """
    if isinstance(like, bool):
        return (0, text == "true") if text in ("true", "false") else None
    if isinstance(like, (int, float)):
        return (1, int(text) if WHOLE.fullmatch(text) else float(text)) if NUMBER.fullmatch(text) else None
    return _text(text, type_)


@lru_cache(maxsize=256)
def _text(text: str, type_: str | None) -> tuple[int, Any] | None:
    return comparable(text, type_)
